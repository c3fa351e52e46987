# SPDX-License-Identifier: Apache-2.0
"""Large bodies of POST /files, which the kernel moves into the box past the HTTP library: every byte arrives, none is
taken for anything else, and whatever goes wrong in the middle is told as for a small one (FI-18, AG-09)."""
import concurrent.futures
import fcntl
import hashlib
import json
import os
import pathlib
import re
import socket
import struct
import subprocess
import termios
import time

import raw
import service
from service import wait_for

MIB = 1 << 20
POUR_MIN = MIB  # so much must be left for it
FIRST = 1000    # bytes that come with the head, and so through the library
HIDDEN = (".bashrc", ".profile", ".bash_logout")


def head(box, path, length, **more):
    headers = {"Host": "127.0.0.1", "Content-Type": "application/octet-stream", "Content-Length": str(length)}
    headers |= {name.replace("_", "-"): value for name, value in more.items()} | box.headers()
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST /files?path={path} HTTP/1.1\r\n{lines}\r\n".encode()


def unacknowledged(connection):
    return struct.unpack("i", fcntl.ioctl(connection.socket, termios.TIOCOUTQ, bytes(4)))[0]


def is_read(connection):
    """Whether the server has read all that was sent to it: by the kernel's list, in which its end is the one with our port
    as the remote one."""
    ours, theirs = (f":{end[1]:04X}" for end in (connection.socket.getsockname(), connection.socket.getpeername()))
    for line in pathlib.Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
        _, local, remote, state, queues, *_ = line.split()
        if local.endswith(theirs) and remote.endswith(ours):
            return state == "01" and queues.endswith(":00000000")
    return False


def open_upload(box, path, length, first=b"", **more):
    """A connection on which an upload has begun: what follows is read from it alone."""
    connection = box.client.connect()
    connection.send(head(box, path, length, **more) + first)
    # The head is read when the kernel has all of it (what it has not delivered yet counts as not acknowledged).
    assert wait_for(lambda: unacknowledged(connection) == 0 and is_read(connection))
    return connection


def upload(box, path, data):
    with open_upload(box, path, len(data), data[:FIRST]) as connection:
        connection.send(data[FIRST:])
        reply = connection.reply("POST")
    raw.SEEN.append(raw.Seen("POST", f"/files?path={path}", box.headers(), reply))
    return reply


def digest_in(box, path):
    return box.run(f"sha256sum <'{path}'")[0].decode().split()[0]


def names(box):
    out = box.run("ls -A")[0].decode().split()
    return set(out) - set(HIDDEN)


def status_of(pid, name):
    """The first word of a line of /proc/PID/status."""
    return re.search(rf"^{name}:\s+(\w+)", pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii"), re.M).group(1)


def went_past(reply):
    return reply.headers.get("connection", "").lower() == "close"


def logged(world, reply):
    """The line of the log about a request."""
    number = reply.headers["x-request-id"]

    def find():
        return [line for line in world.service.log().splitlines() if f'"request":"{number}"' in line and '"event":"request"' in line]
    lines = wait_for(find)
    assert len(lines) == 1, lines
    return json.loads(lines[0])


def test_sizes(world):
    """large bodies arrive whole, on either side of where they go past the library"""
    box = world.client.create()
    for size in (FIRST + POUR_MIN - 1, FIRST + POUR_MIN, FIRST + POUR_MIN + 1, 3 * MIB + 17, 40 * MIB):
        data = os.urandom(MIB) * (size // MIB) + os.urandom(size % MIB)
        reply = upload(box, "f", data)
        assert reply.status == 200 and reply.json()[0]["path"] == "/home/user/f", reply
        assert went_past(reply) == (size >= FIRST + POUR_MIN), (size, reply)
        assert digest_in(box, "f") == hashlib.sha256(data).hexdigest(), size
    assert names(box) == {"f"}


def test_same_reply(world):
    """the reply and the log are those of a small upload"""
    box = world.client.create()
    small, large = upload(box, "f", b"x"), upload(box, "f", bytes(2 * MIB))
    assert large.headers.keys() == small.headers.keys() | {"connection"}, (small, large)
    for name in small.headers.keys() - {"date", "x-request-id"}:
        assert large.headers[name] == small.headers[name], name
    assert large.body == small.body
    lines = [logged(world, small), logged(world, large)]
    assert lines[0].keys() == lines[1].keys() and "broken_off" not in lines[1], lines
    assert lines[1]["status"] == 200 and lines[1]["operation"] == lines[0]["operation"], lines


def test_metadata(world):
    """a large upload has its metadata, and replaces what was there in one step"""
    box = world.client.create()
    for value in ("one", "two"):
        with open_upload(box, "m", 2 * MIB, X_Metadata_Who=value) as connection:
            connection.send(value[:1].encode() * 2 * MIB)
            reply = connection.reply("POST")
        assert reply.status == 200 and reply.json()[0]["metadata"] == {"who": value}, reply
    assert box.run("tr -d t <m | wc -c")[0].strip() == b"0"


def test_expectation(world):
    """a client that waits for 100 Continue first"""
    box = world.client.create()
    with box.client.connect() as connection:
        connection.send(head(box, "f", 3 * MIB, Expect="100-continue"))
        assert connection.head()[0] == 100
        connection.send(b"e" * 3 * MIB)
        reply = connection.reply("POST")
    assert reply.status == 200 and digest_in(box, "f") == hashlib.sha256(b"e" * 3 * MIB).hexdigest(), reply


def test_late_reader(world):
    """the reply waits for a client that reads it late, and behind it is an end"""
    box = world.client.create()
    with open_upload(box, "f", 2 * MIB) as connection:
        connection.send(bytes(2 * MIB))
        time.sleep(1)
        assert connection.reply("POST").status == 200
        assert connection.more() == b""


def test_pipelined(world):
    """what stands behind the body is not taken for a request, nor for the file"""
    box, victim = world.client.create(), world.client.create()
    behind = f"DELETE /sandboxes/{victim.id} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-KEY: {world.client.key}\r\n\r\n".encode()
    with open_upload(box, "f", 2 * MIB) as connection:
        connection.send_some(bytes(2 * MIB) + behind)
        try:
            assert connection.reply("POST").status == 200
            assert connection.ended() and b"HTTP/1.1" not in connection.buffer, connection.buffer
        except raw.Closed:
            pass  # nobody read what was sent too much: a reset may overtake the reply
    assert box.run("stat -c %s f")[0].strip() == str(2 * MIB).encode()
    assert victim.run("echo alive")[0] == b"alive\n"


def test_at_once(world):
    """twenty large ones at once, each its own"""
    box = world.client.create()
    blocks = [os.urandom(MIB) for _ in range(20)]
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        replies = list(pool.map(lambda number: upload(box, f"f{number}", blocks[number] * 6), range(20)))
    assert [reply.status for reply in replies] == [200] * 20, replies
    for number in range(20):
        assert digest_in(box, f"f{number}") == hashlib.sha256(blocks[number] * 6).hexdigest(), number


def test_crowd(world):
    """more at once than the kernel gives a user large pipes: the others arrive as small ones do"""
    boxes = [world.client.create() for _ in range(4)]
    # In pages; a pipe of 1 MiB has 256. There may be no limit, or none for the server (one with a sanitizer).
    limit = int(pathlib.Path("/proc/sys/fs/pipe-user-pages-soft").read_text(encoding="ascii"))
    limited = limit > 0 and int(status_of(world.service.server_pid(), "CapEff"), 16) == 0
    size = FIRST + 2 * POUR_MIN
    with concurrent.futures.ThreadPoolExecutor(80) as pool:
        crowd = list(pool.map(lambda number: open_upload(boxes[number % 4], f"f{number}", size, bytes(FIRST)), range(80)))

        def begun():
            return sum(int(box.run("find . -name '.glovebox-upload-*' | wc -l")[0]) for box in boxes)
        assert wait_for(lambda: begun() == 80), begun()
        time.sleep(0.5)  # and have their pipes

        def finish(connection):
            with connection:
                connection.send(bytes(size - FIRST))
                return connection.reply("POST")
        replies = list(pool.map(finish, crowd))
    assert [reply.status for reply in replies] == [200] * 80, replies
    past = sum(map(went_past, replies))
    assert 0 < past and (past <= limit // 256 or not limited), past
    for box in boxes:
        assert box.run(f"find . -name 'f*' -size {size}c | wc -l")[0].strip() == b"20"


def test_pieces(world):
    """small pieces with pauses"""
    box = world.client.create()
    data = os.urandom(FIRST + MIB + 5000)
    with open_upload(box, "f", len(data), data[:FIRST]) as connection:
        connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(FIRST, len(data), 9973):
            connection.send(data[at:at + 9973])
            time.sleep(0.005)
        reply = connection.reply("POST")
    assert reply.status == 200 and went_past(reply), reply
    assert digest_in(box, "f") == hashlib.sha256(data).hexdigest()


def test_full(world):
    """a disk that becomes full in the middle: 507, and the space is free again"""
    box = world.client.create()
    box.run("fallocate -l $(($(df --output=avail -k . | tail -n 1) - 20480))K filler")
    for size in (24 * MIB, 200 * MIB):
        with open_upload(box, "more", size, bytes(FIRST)) as connection:
            for _ in range(size // MIB - 1):
                connection.send(bytes(MIB))
            connection.send(bytes(MIB - FIRST))
            reply = connection.reply("POST")
        assert reply.status == 507 and "full" in reply.message() and went_past(reply), reply
        assert logged(world, reply)["status"] == 507
        assert names(box) == {"filler"}, names(box)
    assert upload(box, "fits", bytes(16 * MIB)).status == 200


def test_refused(world):
    """what cannot be written to is said, however large the body is"""
    box = world.client.create()
    box.run("mkdir d; mkfifo p")
    for path, status, text in (("d", 400, "is a directory"), ("p", 400, ""), ("/etc/x", 403, ""), ("f/../d", 400, "is a directory")):
        reply, small = upload(box, path, bytes(8 * MIB)), upload(box, path, b"x")
        assert (reply.status, reply.message()) == (small.status, small.message()), (path, reply, small)
        assert reply.status == status and text in reply.message(), (path, reply)
    assert names(box) == {"d", "p"}


def test_broken_off(world):
    """FI-18: one that breaks off leaves nothing"""
    box = world.client.create()
    assert upload(box, "old", b"whole").status == 200
    for name in ("new", "old"):
        for end in ("reset", "close", "half"):
            connection = open_upload(box, name, 4 * MIB)
            connection.send(bytes(2 * MIB))
            if end == "half":
                connection.socket.shutdown(socket.SHUT_WR)
                assert connection.ended() and not connection.buffer, connection.buffer
                end = "close"
            getattr(connection, end)()
    assert wait_for(lambda: names(box) == {"old"}), names(box)
    assert box.run("cat old")[0] == b"whole"


def test_urgent(world):
    """urgent data, which HTTP knows nothing of, ends an upload and keeps nobody busy"""
    box = world.client.create()
    pid = world.service.server_pid()

    def cpu_ticks():
        return sum(map(int, pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(") ")[2].split()[11:13]))
    with open_upload(box, "f", 8 * MIB) as connection:
        connection.send(bytes(MIB))
        before = cpu_ticks()
        connection.socket.send(b"!", socket.MSG_OOB)
        connection.send_some(bytes(MIB))
        assert connection.ended() and not connection.buffer, connection.buffer
    assert cpu_ticks() - before < 100, cpu_ticks() - before
    assert wait_for(lambda: names(box) == set()), names(box)


def test_gone(world):
    """a sandbox that is killed in the middle"""
    box = world.client.create()
    with open_upload(box, "f", 64 * MIB) as connection:
        connection.send(bytes(8 * MIB))
        box.kill()
        connection.send_some(bytes(56 * MIB))
        reply = connection.reply("POST")
    assert reply.status == 502 and reply.message(), reply


def test_tls(world):
    """what is encrypted cannot go past the library"""
    directory = f"{world.service.state}/tls-uploads"
    subprocess.run([service.GLOVEBOX, "cert", "sbx.test", "--out", directory], env=service.CLEAN, capture_output=True, timeout=30, check=True)
    running = service.Service({"server.tls_cert": f"{directory}/cert.pem", "server.tls_key": f"{directory}/key.pem"},
                              ca=f"{directory}/ca.pem").start()
    try:
        created = running.ask("POST", "/v2/sandboxes", {"templateID": "base"})[1]
        headers = {"E2b-Sandbox-Id": created["sandboxID"], "E2b-Sandbox-Port": "49983", "X-Access-Token": created["envdAccessToken"]}
        text = "encrypted " * 400_000
        status, _, replied = running.ask("POST", "/files?path=f", text.encode(), headers | {"Content-Type": "application/octet-stream"})
        assert status == 200 and replied.get("connection", "").lower() != "close", replied
        assert running.ask("GET", "/files?path=f", headers=headers)[1] == text
    finally:
        running.stop()


def test_memory(world):
    """512 MiB, and the server does not grow"""
    box = world.client.create()
    pid = world.service.server_pid()

    def memory(name):
        return int(status_of(pid, name)) * 1024
    block, total = os.urandom(MIB), hashlib.sha256()
    pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")
    before = memory("VmRSS")
    with open_upload(box, "f", 512 * MIB) as connection:
        for _ in range(512):
            connection.send(block)
            total.update(block)
        assert connection.reply("POST").status == 200
    assert memory("VmHWM") - before < 8 * MIB, (memory("VmHWM"), before)
    assert digest_in(box, "f") == total.hexdigest()
