# SPDX-License-Identifier: Apache-2.0
"""AP-03: clients that take their time. The limits are real ones, so these tests wait; all at once."""
import threading
import time

import raw
from service import wait_for

HEAD_SECONDS, BODY_SECONDS, REFUSED_SECONDS = 10, 5, 30
SLACK = 20  # what a busy machine may be late; a connection that is kept has no end at all


def timed(connection):
    """After how many seconds the service ends the connection; None when it does not."""
    started = time.monotonic()
    return time.monotonic() - started if connection.ended() else None


def drip(connection, data, pause, seconds):
    """Sends byte by byte until the other side has enough."""
    started = time.monotonic()
    for byte in data:
        if time.monotonic() - started > seconds:
            return None
        try:
            connection.send(bytes([byte]))
            connection.socket.settimeout(pause)
            try:
                if not connection.more():
                    return time.monotonic() - started
                if b"HTTP/1.1 4" in connection.buffer:
                    return time.monotonic() - started
            except TimeoutError:
                pass
        except raw.Closed:
            return time.monotonic() - started
    return None


def head_forever(world):
    """a head that never ends"""
    with world.client.connect(HEAD_SECONDS + SLACK) as connection:
        connection.send(b"GET /v2/sandboxes HTTP/1.1\r\nHost: 127.0.0.1\r\nX-")
        taken = timed(connection)
    assert taken and HEAD_SECONDS - 3 <= taken <= HEAD_SECONDS + SLACK, taken


def head_drip(world):
    """a byte of a head each second"""
    with world.client.connect() as connection:
        taken = drip(connection, b"GET /v2/sandboxes HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: " + b"a" * 100, 1, HEAD_SECONDS + SLACK)
    assert taken and taken <= HEAD_SECONDS + SLACK, taken


def body_silent(world):
    """a body that does not come"""
    with world.client.connect(BODY_SECONDS + SLACK + 5) as connection:
        connection.send(f"POST /v2/sandboxes HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-KEY: {world.client.key}\r\n"
                        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{".encode())
        taken = timed(connection)
    assert taken and taken <= BODY_SECONDS + SLACK, taken


def upload_silent(world):
    """an upload that stops in the middle"""
    box = world.client.create()
    with world.client.connect(BODY_SECONDS + SLACK + 5) as connection:
        connection.send(("POST /files?path=half HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/octet-stream\r\n"
                         "Transfer-Encoding: chunked\r\n" +
                         "".join(f"{name}: {value}\r\n" for name, value in box.headers().items()) +
                         "\r\n5\r\nhello\r\n").encode())
        taken = timed(connection)
    assert taken and taken <= BODY_SECONDS + SLACK, taken
    assert box.ask("GET", "/files?path=half").status == 404


def begin_large(connection, box, path, length):
    """An upload that goes past the HTTP library."""
    connection.send((f"POST /files?path={path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/octet-stream\r\n"
                     f"Content-Length: {length}\r\n" +
                     "".join(f"{name}: {value}\r\n" for name, value in box.headers().items()) + "\r\n").encode() + b"x")


def upload_large_silent(world):
    """a large upload that stops in the middle"""
    box = world.client.create()
    with world.client.connect(BODY_SECONDS + SLACK + 5) as connection:
        begin_large(connection, box, "half", 4 << 20)
        connection.send(bytes(2 << 20))
        taken = timed(connection)
    assert taken and BODY_SECONDS - 3 <= taken <= BODY_SECONDS + SLACK, taken
    assert wait_for(lambda: box.run("ls -A | grep -c glovebox")[0] == b"0\n")


def upload_large_slow(world):
    """a large upload that is slow but goes on is let through"""
    box = world.client.create()
    with world.client.connect() as connection:
        begin_large(connection, box, "slow", 13 << 17)
        for _ in range(12):
            time.sleep(1)
            connection.send(bytes(1 << 17))
        connection.send(bytes((1 << 17) - 1))
        assert connection.reply().status == 200
    assert box.run("stat -c %s slow")[0].strip() == str(13 << 17).encode()


def upload_slow(world):
    """an upload that is slow but goes on is let through"""
    box = world.client.create()
    with world.client.connect() as connection:
        connection.send(("POST /files?path=slow HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/octet-stream\r\n"
                         "Content-Length: 12\r\n" +
                         "".join(f"{name}: {value}\r\n" for name, value in box.headers().items()) + "\r\n").encode())
        for _ in range(12):
            connection.send(b"x")
            time.sleep(1)
        assert connection.reply().status == 200
    assert box.ask("GET", "/files?path=slow").body == b"x" * 12


def quiet_stream(world):
    """a stream that is quiet for long is not a slow client"""
    box = world.client.create()
    with box.start("sleep 13; echo awake") as connection:
        out, _, _, _ = raw.collect(raw.messages(connection))
    assert out == b"awake\n", out


def refused_drip(world):
    """a byte now and then of a body that nobody wants, from somebody without a key"""
    with world.client.connect() as connection:
        connection.send(b"POST /v2/sandboxes HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                        b"Content-Length: 1000\r\n\r\n")
        taken = drip(connection, b"x" * 1000, 3, REFUSED_SECONDS + SLACK)
        if b"HTTP/1.1 4" in connection.buffer:
            taken = timed(connection)
    assert taken and taken <= REFUSED_SECONDS + SLACK, taken


def connected_silent(world):
    """a connection that says nothing is not kept for ever, and costs nobody else"""
    crowd = [world.client.connect() for _ in range(50)]
    started = time.monotonic()
    assert world.client.ask("GET", "/health").status in (200, 204)
    assert time.monotonic() - started < HEAD_SECONDS - 2, "it waited for those who say nothing"
    for connection in crowd:
        connection.close()


CASES = (head_forever, head_drip, body_silent, upload_silent, upload_large_silent, upload_slow, upload_large_slow, quiet_stream,
         connected_silent, refused_drip)


def test_all(world):
    """heads, bodies and uploads that stall are cut off in time; slow ones that go on are not"""
    failures = []

    def attempt(case):
        try:
            case(world)
        except Exception as error:  # pylint: disable=broad-except
            failures.append(f"{case.__doc__}: {type(error).__name__}: {error}")
    threads = [threading.Thread(target=attempt, args=(case,)) for case in CASES]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, "\n".join(failures)
