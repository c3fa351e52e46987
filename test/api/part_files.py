# SPDX-License-Identifier: Apache-2.0
"""/files by hand: signatures and their texts, forms, ranges, half uploads (FI-01 to FI-08, FI-16, FI-18)."""
import base64
import gzip
import hashlib
import json
import os
import time
import urllib.parse

import raw
import tap
from service import wait_for

BOUNDARY = "----boundary"


def signature(path, operation, token, user="", expiration=None):
    text = f"{path}:{operation}:{user}:{token}" + (f":{expiration}" if expiration else "")
    return "v1_" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


def signed(name, operation, token, user="", expiration=None, **changes):
    query = {"path": name, "signature": signature(name, operation, token, user, expiration)}
    if user:
        query["username"] = user
    if expiration:
        query["signature_expiration"] = str(expiration)
    return "/files?" + urllib.parse.urlencode({name: value for name, value in (query | changes).items() if value is not None})


def form(*files):
    """A multipart body: (filename, bytes) each."""
    parts = [f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
             f"Content-Type: application/octet-stream\r\n\r\n".encode() + data + b"\r\n" for name, data in files]
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


FORM = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
OCTETS = {"Content-Type": "application/octet-stream"}


def quote(path):
    return urllib.parse.quote(path, "")


def read(box, path, **options):
    return box.ask("GET", f"/files?path={quote(path)}", **options)


def write(box, path, data, headers=None, **options):
    return box.ask("POST", f"/files?path={quote(path)}", data, OCTETS | (headers or {}), **options)


def test_signatures(world):
    """signed URLs: exact texts of what is wrong"""
    box = world.client.create()
    write(box, "f", b"content")
    now = int(time.time())
    plain = raw.Client(world.port, None, "127.0.2.1")
    named = {"E2b-Sandbox-Id": box.id, "E2b-Sandbox-Port": "49983"}
    assert plain.ask("GET", signed("f", "read", box.token)).body == b"content"
    assert plain.ask("GET", signed("f", "read", box.token), headers=named).body == b"content"
    assert plain.ask("GET", signed("f", "read", box.token, expiration=now + 60), headers=named).body == b"content"
    for url, text in (("/files?path=f", "missing signature query parameter"),
                      (signed("f", "read", "wrong"), "invalid signature"),
                      (signed("f", "write", box.token), "invalid signature"),
                      (signed("f", "read", box.token, path="/etc/passwd"), "invalid signature"),
                      (signed("f", "read", box.token, username="root"), "invalid signature"),
                      (signed("f", "read", box.token, signature_expiration=str(now + 60)), "invalid signature"),
                      (signed("f", "read", box.token, expiration=now + 60, signature_expiration=None), "invalid signature"),
                      (signed("f", "read", box.token, expiration=now - 60), "signature is already expired"),
                      (signed("f", "read", box.token, signature="v1_"), "invalid signature")):
        reply = plain.ask("GET", url, headers=named)
        assert reply.status == 401 and reply.message() == text, (url, reply)
    # The same for who names no sandbox, be it by a signature or by a token.
    assert plain.ask("GET", signed("f", "read", box.token, expiration=now + 60)).body == b"content"
    assert plain.ask("GET", signed("f", "read", "wrong"), headers={"X-Access-Token": box.token}).body == b"content"
    for url, headers in ((signed("f" * 8000, "read", "wrong"), {}), (signed("f", "read", box.token, signature="v1_x"), {}),
                         (signed("f", "read", box.token, expiration="0" * 4000 + str(now + 60)), {}),
                         ("/files?path=f", {"X-Access-Token": "x" * 8000})):
        reply = plain.ask("GET", url, headers=headers)
        assert reply.status == 401, (url, reply)
    # A wrong token is not made good by a signature.
    reply = plain.ask("GET", signed("f", "read", box.token), headers=named | {"X-Access-Token": "wrong"})
    assert reply.status == 401, reply


def test_signature_of_another(world):
    """a signature of one sandbox is none for another"""
    one, two = world.client.create(), world.client.create()
    write(one, "f", b"one")
    write(two, "f", b"two")
    plain = raw.Client(world.port, None, "127.0.2.2")
    assert plain.ask("GET", signed("f", "read", one.token)).body == b"one"
    reply = plain.ask("GET", signed("f", "read", one.token), headers={"E2b-Sandbox-Id": two.id, "E2b-Sandbox-Port": "49983"})
    assert reply.status == 401, reply
    one.kill()
    assert plain.ask("GET", signed("f", "read", one.token)).status in (401, 404, 502)


def test_download_gzip(world):
    """gzip for who asks for nothing else, the plain file for everybody who does not"""
    box = world.client.create()
    for content in (b"", b"small", os.urandom(300_000) + b"z" * 3_000_000):
        write(box, "g", content)
        reply = box.ask("GET", "/files?path=g", headers={"Accept-Encoding": "gzip"})
        assert reply.status == 200 and reply.headers.get("content-encoding") == "gzip", reply
        assert gzip.decompress(reply.body) == content, len(reply.body)
        for other in ("gzip, deflate", "identity", "gzip;q=0", "br"):
            reply = box.ask("GET", "/files?path=g", headers={"Accept-Encoding": other})
            assert "content-encoding" not in reply.headers and reply.body == content, (other, reply)
    reply = box.ask("GET", "/files?path=g", headers={"Accept-Encoding": "gzip", "Range": "bytes=0-9"})
    assert reply.status == 206 and reply.body == content[:10], reply


def test_form(world):
    """forms: one file, several, to full paths"""
    box = world.client.create()
    reply = box.ask("POST", "/files?path=a", form(("ignored", b"1")), FORM)
    assert reply.status == 200 and reply.json()[0]["path"] == "/home/user/a", reply
    reply = box.ask("POST", "/files", form(("/tmp/x/b", b"2"), ("c", b"3"), ("é", b"4")), FORM)
    assert [item["path"] for item in reply.json()] == ["/tmp/x/b", "/home/user/c", "/home/user/é"], reply
    reply = box.ask("POST", "/files", form(("/tmp/x/b", b"chunked")), FORM, chunked=True)
    assert reply.status == 200 and read(box, "/tmp/x/b").body == b"chunked", reply


def test_form_errors(world):
    """forms that are none"""
    box = world.client.create()
    whole = form(("a", b"1"))
    for body, headers in ((whole, {"Content-Type": "multipart/form-data"}), (b"", FORM), (b"nonsense", FORM), (whole[:40], FORM),
                          (form(("a", b"1"), ("a", b"2")), FORM), (form(("", b"1")), FORM),
                          (whole.replace(b'name="file"', b'name="other"'), FORM), (whole, {"Content-Type": "text/plain"}),
                          (whole, {"Content-Type": "multipart/form-data; boundary=" + "b" * 5000})):
        reply = box.ask("POST", "/files", body, headers)
        assert reply.status == 400 and reply.message(), (body[:60], headers, reply)


def test_form_bytes(world):
    """names that are no text: written, whether the client or a link in the box says them"""
    box = world.client.create()
    latin = form(("caf_.txt", b"1")).replace(b"caf_", b"caf\xe9")
    reply = box.ask("POST", "/files", latin, FORM)
    assert reply.status == 200 and len(reply.json()) == 1, reply
    assert box.run("cat $'caf\\351.txt'")[0] == b"1"
    twice = latin[:latin.rindex(b"--" + BOUNDARY.encode())] + latin
    reply = box.ask("POST", "/files", twice, FORM)
    assert reply.status == 400 and "two files" in reply.message(), reply
    box.run("mkdir $'\\377'; ln -s $'\\377' link")
    reply = write(box, "link/x", b"2")
    assert reply.status == 200 and read(box, "link/x").body == b"2", reply


@tap.slow
def test_form_many(world):
    """what is kept of the files of one request is bounded"""
    box = world.client.create()
    deep = "/".join(["d" * 240] * 15)
    reply = box.ask("POST", "/files", form(*((f"{deep}/{number}", b"") for number in range(1300))), FORM)
    assert reply.status == 400 and "too many files" in reply.message(), reply
    assert box.ask("POST", "/files", form(*((f"f{number}", b"x") for number in range(300))), FORM).status == 200


def test_octets(world):
    """octet-stream: plain, gzip, chunked, empty, without a path"""
    box = world.client.create()
    for name, data, headers in (("plain", b"x" * 100_000, {}), ("empty", b"", {}),
                                ("zip", gzip.compress(b"y" * 100_000), {"Content-Encoding": "gzip"})):
        reply = write(box, name, data, headers, chunked=name == "zip")
        assert reply.status == 200 and reply.json()[0]["type"] == "file", reply
    assert read(box, "zip").body == b"y" * 100_000
    assert read(box, "empty").body == b""
    assert box.ask("POST", "/files", b"x", OCTETS).status == 400
    assert write(box, "bad", b"this is no gzip", {"Content-Encoding": "gzip"}).status == 400
    assert write(box, "bad", b"x", {"Content-Encoding": "br"}).status in (400, 415)
    assert write(box, "cut", gzip.compress(b"z" * 100_000)[:-20], {"Content-Encoding": "gzip"}).status == 400


@tap.slow
def test_bomb(world):
    """FI-10: a small gzip that becomes large stops at the disk's limit"""
    box = world.client.create()
    bomb = gzip.compress(bytes(1 << 28)) * 20
    try:
        reply = write(box, "bomb", bomb, {"Content-Encoding": "gzip"}, chunked=True)
        assert reply.status in (400, 413, 507), reply
    except raw.Closed:
        pass
    assert read(box, "bomb").status == 404


def test_paths(world):
    """FI-01: paths that lead out lead nowhere"""
    box = world.client.create()
    for path in ("../../../../etc/hostname", "/proc/1/root/etc/shadow", "/a\0b", "x" * 5000, "/" + "d/" * 3000, ""):
        reply = read(box, path)
        assert reply.status in (200, 400, 401, 403, 404, 409, 414) and b"root:$" not in reply.body, (path[:40], reply)
    assert read(box, "/%2e%2e/etc/passwd").status == 404
    assert b"user:x:1000" in read(box, "../../etc/passwd").body


def test_not_files(world):
    """FI-04 to FI-06: directories, FIFOs, sockets, devices: refused without waiting"""
    box = world.client.create()
    box.run("mkfifo fifo; ln -s /dev/zero zero; ln -s fifo link; python3 -c 'import socket; socket.socket(1).bind(\"sock\")'")
    for path in ("/home/user", "fifo", "sock", "link", "zero", "/dev/zero", "/dev/null", "/dev/tty"):
        reply = read(box, path)
        assert 400 <= reply.status < 500, (path, reply)
        reply = write(box, path, b"x")
        assert 400 <= reply.status < 500 or path in ("/dev/null",), (path, reply)


def test_upload_through_link(world):
    """FI-04: an upload through a link stays in the box"""
    box = world.client.create()
    box.run("ln -s /etc/passwd l; ln -s /nowhere/x dangling; ln -s /tmp dir")
    assert write(box, "l", b"x").status >= 400
    assert write(box, "dir/inside", b"ok").status == 200
    assert read(box, "/tmp/inside").body == b"ok"


def test_download_races(world):
    """FI-07: a file that changes while it is read"""
    box = world.client.create()
    with box.start("while :; do head -c 3M /dev/zero >f; : >f; done"):
        for _ in range(20):
            try:
                reply = read(box, "f")
            except raw.Closed:
                continue  # cut off rather than wrong
            assert reply.status == 404 or reply.status == 200 and not reply.body.strip(b"\0"), reply


@tap.slow
def test_download_of_small_file(world):
    """FI-07: a small file that is written anew all the time is whole at each moment, and so is what is sent"""
    box = world.client.create()
    with box.start("while :; do echo 0123456789 >f; done"):
        wait_for(lambda: read(box, "f").status == 200, 10, 0.05)
        bodies = {read(box, "f").body for _ in range(400)}
    assert bodies <= {b"", b"0123456789\n"}, bodies


def test_sparse(world):
    """FI-08: a sparse file of 1 TiB is sent as far as anybody reads"""
    box = world.client.create()
    box.run("truncate -s 1T big || truncate -s 1G big")
    with world.client.connect() as connection:
        connection.send(("GET /files?path=big HTTP/1.1\r\nHost: 127.0.0.1\r\n" +
                         "".join(f"{name}: {value}\r\n" for name, value in box.headers().items()) + "\r\n").encode())
        status, _ = connection.head()
        if status == 200:
            connection.take(1_000_000)


def test_ranges(world):
    """ranges and conditions"""
    box = world.client.create()
    write(box, "r", b"0123456789")

    def get(**headers):
        return read(box, "r", headers={name.replace("_", "-"): value for name, value in headers.items()})
    for wanted, body in (("bytes=0-3", b"0123"), ("bytes=5-", b"56789"), ("bytes=-3", b"789"), ("bytes=9-9", b"9"),
                         ("bytes=5-100", b"56789")):
        reply = get(Range=wanted)
        assert reply.status == 206 and reply.body == body, (wanted, reply)
    assert get(Range="bytes=10-").status == 416
    for wanted in ("bytes=5-1", "lines=1-2", "bytes=a-b", "bytes=0-1,3-4", "bytes=", "bytes=99999999999999999999-"):
        assert get(Range=wanted).status in (200, 206, 400, 416), wanted
    reply = get()
    assert reply.headers["content-length"] == "10" and "filename" in reply.headers["content-disposition"], reply
    if "etag" in reply.headers:
        assert get(If_None_Match=reply.headers["etag"]).status == 304
    if "last-modified" in reply.headers:
        assert get(If_Modified_Since=reply.headers["last-modified"]).status == 304


def test_browser(world):
    """FI-16: what a browser is sent cannot act as a page of ours"""
    box = world.client.create()
    name = 'a"b\r\nX-Evil: 1\né.html'
    write(box, name, b"<script>1</script>")
    reply = read(box, name)
    assert reply.status == 200 and "x-evil" not in reply.headers, reply
    assert reply.headers["x-content-type-options"] == "nosniff", reply
    assert "sandbox" in reply.headers.get("content-security-policy", ""), reply


def test_full(world):
    """a full disk is told, however much is still to come"""
    box = world.client.create()
    box.run("fallocate -l $(($(df --output=avail -k . | tail -n 1) - 2048))K filler")
    for chunked in (False, True):
        reply = write(box, "more", bytes(12 << 20), chunked=chunked)
        assert reply.status == 507, reply
        assert read(box, "more").status == 404


def test_half_upload(world):
    """FI-18: an upload that breaks off leaves nothing"""
    box = world.client.create()
    write(box, "old", b"whole")
    for name in ("new", "old"):
        for end in ("reset", "close"):
            connection = world.client.connect()
            connection.send((f"POST /files?path={name} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n"
                             "Content-Type: application/octet-stream\r\n" +
                             "".join(f"{key}: {value}\r\n" for key, value in box.headers().items()) + "\r\n").encode() +
                            b"x" * 200_000)
            getattr(connection, end)()
    time.sleep(0.3)

    def names():
        listed = box.rpc("filesystem.Filesystem/ListDir", {"path": "/home/user"})[1]["entries"]
        return {entry["name"] for entry in listed} - {".bashrc", ".profile", ".bash_logout"}
    assert wait_for(lambda: names() == {"old"}), names()
    assert read(box, "new").status == 404, read(box, "new")
    assert read(box, "old").body == b"whole"


def test_metadata(world):
    """metadata of files: replaced as a whole, bounded"""
    box = world.client.create()
    reply = write(box, "m", b"x", {"X-Metadata-Author": "me", "X-Metadata-b": "c d"})
    assert reply.json()[0]["metadata"] == {"author": "me", "b": "c d"}, reply
    write(box, "m", b"x")
    assert "metadata" not in box.rpc("filesystem.Filesystem/Stat", {"path": "m"})[1]["entry"]
    assert write(box, "m", b"x", {"X-Metadata-" + "k" * 300: "v"}).status == 400
    assert write(box, "m", b"x", {"X-Metadata-k": "v" * 5000}).status in (400, 431)
    assert write(box, "m", b"x", {"X-Metadata-k": "é"}).status == 400


def test_compose(world):
    """/files/compose joins and removes"""
    box = world.client.create()
    for name in ("1", "2"):
        write(box, name, name.encode() * 3)
    reply = box.ask("POST", "/files/compose", {"source_paths": ["1", "2"], "destination": "whole"})
    assert reply.status == 200, reply
    assert read(box, "whole").body == b"111222" and read(box, "1").status == 404
    assert box.ask("POST", "/files/compose", {"source_paths": ["none"], "destination": "x"}).status == 404
    assert box.ask("POST", "/files/compose", {"source_paths": "x", "destination": 1}).status == 400


def test_envs_and_metrics(world):
    """/envs and /metrics of a box"""
    box = world.client.create(envVars={"A": "b"})
    assert box.ask("GET", "/envs").json()["A"] == "b"
    metrics = box.ask("GET", "/metrics").json()
    for name in ("ts", "cpu_count", "cpu_used_pct", "mem_total", "mem_used", "disk_used", "disk_total"):
        assert isinstance(metrics[name], (int, float)), metrics


def test_names(world):
    """FI-12: names that are no text do no harm"""
    box = world.client.create()
    box.run("mkdir odd; cd odd; touch $'a\\nb' $'\\e[2J' $'\\377\\376' $'\\u202e'")
    status, answer = box.rpc("filesystem.Filesystem/ListDir", {"path": "odd"})
    assert status == 200 and len(answer["entries"]) >= 3, answer
    json.dumps(answer)
