# SPDX-License-Identifier: Apache-2.0
"""Files."""
import hashlib
import io
import os

import e2b
from harness import box, raises


def test_text():
    """write() and read() in every form"""
    files = box().files
    info = files.write("dir/é.txt", "text é🚀\n")
    assert (info.name, info.path) == ("é.txt", "/home/user/dir/é.txt")
    assert files.read("dir/é.txt") == "text é🚀\n"
    data = os.urandom(300_000)
    files.write("b", data)
    assert bytes(files.read("b", format="bytes")) == data
    assert b"".join(files.read("b", format="stream")) == data
    files.write("io", io.BytesIO(data))
    assert bytes(files.read("io", format="bytes")) == data
    files.write("empty", "")
    assert files.read("empty") == ""


def test_many():
    """several files at once"""
    files = box().files
    infos = files.write_files([{"path": "a", "data": "1"}, {"path": "/tmp/deep/b", "data": b"2"}])
    assert [info.path for info in infos] == ["/home/user/a", "/tmp/deep/b"]
    assert files.read("/tmp/deep/b") == "2"


def test_modes():
    """octet-stream, gzip, metadata"""
    files = box().files
    files.write("z", "zip " * 50_000, gzip=True)
    assert files.read("z", gzip=True) == "zip " * 50_000
    files.write("o", "x", use_octet_stream=True, metadata={"author": "me"})
    assert files.get_info("o").metadata == {"author": "me"}
    for letter in "abc":  # the service ends the connection after a large one: the next must not notice
        files.write("large", letter * 4_000_000, use_octet_stream=True)
        assert files.read("large") == letter * 4_000_000, letter


def test_big():
    """100 MiB there and back"""
    files = box().files
    piece = os.urandom(1 << 20)
    want = hashlib.sha256(piece * 100).hexdigest()
    files.write("big", io.BytesIO(piece * 100), request_timeout=80)
    got = hashlib.sha256()
    for part in files.read("big", format="stream", request_timeout=80):
        got.update(part)
    assert got.hexdigest() == want


def test_tree():
    """list, exists, get_info, make_dir, rename, remove"""
    sandbox = box()
    files = sandbox.files
    assert files.make_dir("d/e") is True
    assert files.make_dir("d/e") is False
    files.write("d/f", "abc")
    sandbox.commands.run("chmod 640 d/f; ln -s f d/link")
    assert [entry.name for entry in files.list("d")] == ["e", "f", "link"]
    assert [entry.path for entry in files.list(".", depth=2)][-4:] == [
        "/home/user/d", "/home/user/d/e", "/home/user/d/f", "/home/user/d/link"]
    info = files.get_info("d/f")
    assert (info.size, info.mode, info.permissions, info.owner) == (3, 0o640, "-rw-r-----", "user")
    assert info.type == e2b.FileType.FILE
    assert files.get_info("d/link").symlink_target == "/home/user/d/f"
    assert files.rename("d/f", "new/g").path == "/home/user/new/g"
    assert files.exists("d/f") is False
    files.remove("d")
    files.remove("d")
    assert files.exists("d") is False


def test_errors():
    """what is not there, what is no file, whose it is not"""
    files = box().files
    raises(e2b.FileNotFoundException, files.read, "none")
    raises(e2b.FileNotFoundException, files.list, "none")
    raises(e2b.FileNotFoundException, files.get_info, "none")
    raises(e2b.FileNotFoundException, files.rename, "none", "x")
    raises(e2b.InvalidArgumentException, files.read, "/home/user")
    raises(e2b.InvalidArgumentException, files.list, "/etc/passwd")
    raises(e2b.AuthenticationException, files.read, "f", user="nobody-of-that-name")
