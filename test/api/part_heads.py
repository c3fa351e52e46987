# SPDX-License-Identifier: Apache-2.0
"""AP-04: heads of requests that no honest client sends. Refused, the connection closed, nobody confused."""
import contextlib
import time

import raw
import tap


def send(world, data, timeout=15):
    """What is answered to these bytes: a status, or None when the connection is closed without a word."""
    with world.client.connect(timeout) as connection:
        connection.send_some(data)
        try:
            return connection.reply()
        except raw.Closed:
            return None


def refused(world, data, *statuses):
    """Refused, and nothing that comes behind it on this connection is taken for a request."""
    with world.client.connect(15) as connection:
        connection.send_some(data)
        try:
            reply = connection.reply()
        except raw.Closed:
            return
        assert reply.status in statuses, f"{data[:200]!r}: {reply}"
        connection.send_some(head(world, method="GET", path="/health"))
        assert connection.ended() and b"HTTP/1.1" not in connection.buffer, \
            f"{data[:200]!r}: the connection goes on after {reply.status}: {connection.buffer[:100]}"


def head(world, *lines, method="GET", path="/v2/sandboxes"):
    return "\r\n".join([f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{world.port}", f"X-API-KEY: {world.client.key}",
                        *lines, "", ""]).encode("latin-1")


def test_huge_header(world):
    """one header of 10 MB"""
    refused(world, head(world, "X-Big: " + "a" * 10_000_000), 400, 413, 431)


def test_many_headers(world):
    """10,000 headers"""
    refused(world, head(world, *(f"X-{i}: 1" for i in range(10_000))), 400, 413, 431)


def test_65_headers(world):
    """one header more than is allowed, and as many as are"""
    assert send(world, head(world, *(f"X-{i}: 1" for i in range(50)))).status == 200
    refused(world, head(world, *(f"X-{i}: 1" for i in range(70))), 400, 431)


def test_long_line(world):
    """a request line of 100 kB"""
    refused(world, head(world, path="/v2/sandboxes?" + "a" * 100_000), 400, 413, 414, 431)


def test_content_lengths(world):
    """Content-Length: negative, huge, twice, with a sign, not a number"""
    for value in ("-1", "99999999999999999999", "9223372036854775808", "+5", "5, 5", "0x5", "5 5", "", "abc", "1e3"):
        refused(world, head(world, f"Content-Length: {value}", "Content-Type: application/json", method="POST") + b"{}   ",
                400, 413)
    refused(world, head(world, "Content-Length: 2", "Content-Length: 3", "Content-Type: application/json", method="POST") +
            b"{} ", 400)


def test_smuggling(world):
    """Content-Length together with Transfer-Encoding"""
    inner = head(world, method="DELETE", path=f"/sandboxes/{world.bystander.id}")
    for lines in (("Content-Length: 5", "Transfer-Encoding: chunked"), ("Transfer-Encoding: chunked", "Content-Length: 5"),
                  ("Transfer-Encoding: chunked", "Transfer-Encoding: identity"), ("Transfer-Encoding: xchunked",),
                  ("Transfer-Encoding: chunked, identity",), ("Transfer-Encoding: gzip, chunked",),
                  ("Transfer-Encoding:\tchunked\t", "Content-Length: 5"), ("Transfer-Encoding : chunked",)):
        refused(world, head(world, *lines, "Content-Type: application/json", method="POST") + b"0\r\n\r\n" + inner, 400, 411, 415, 501)
        assert world.client.ask("GET", f"/sandboxes/{world.bystander.id}").status == 200, f"smuggled behind {lines}"


def test_chunks(world):
    """broken chunks"""
    start = head(world, "Transfer-Encoding: chunked", "Content-Type: application/json", method="POST")
    for body in (b"zz\r\n{}\r\n0\r\n\r\n", b"-2\r\n{}\r\n0\r\n\r\n", b"ffffffffffffffffff\r\n{}", b"2\r\n{}XX0\r\n\r\n", b"0x2\r\n{}\r\n0\r\n\r\n"):
        reply = send(world, start + body)
        assert reply is None or 400 <= reply.status < 500, (body, reply)


def test_chunk_extensions(world):
    """a chunk extension of 1 MB: not read to its end"""
    start = head(world, "Transfer-Encoding: chunked", "Content-Type: application/json", method="POST")
    reply = send(world, start + b"2;" + b"x" * 1_000_000 + b"\r\n{}\r\n0\r\n\r\n")
    # The HTTP library answers this one by itself, before we hear of it: with a 500, and closes.
    assert reply is None or reply.status in (400, 413, 431, 500) and reply.headers.get("connection") == "close", reply


def test_bare_line_feed(world):
    """lines that end with a line feed alone"""
    data = head(world).replace(b"\r\n", b"\n")
    refused(world, data, 400)


def test_folded(world):
    """a header folded over two lines"""
    refused(world, head(world, "X-Folded: a", " b"), 400)


def test_odd_characters(world):
    """NUL, control characters and spaces where none may be"""
    for line in ("X-Nul: a\0b", "X Space: a", "X-Colon", ": empty", "X\0: a", "X-Cr: a\rb"):
        refused(world, head(world, line), 400)


def test_absolute_form(world):
    """an absolute address, as a proxy would get it"""
    for path in ("http://evil.test/v2/sandboxes", "https://evil.test/", "evil.test:443", "*", "?x", "v2/sandboxes"):
        reply = send(world, head(world, path=path))
        assert reply is None or reply.status in (400, 404, 405, 421), (path, reply)


def test_upgrade(world):
    """an upgrade that is not ours"""
    for lines in (("Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMAAABk"),
                  ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: x", "Sec-WebSocket-Version: 13")):
        reply = send(world, head(world, *lines))
        assert reply is None or reply.status != 101, reply


def test_versions(world):
    """other versions of the protocol"""
    for version in ("HTTP/2.0", "HTTP/0.9", "HTTP/1.9999", "HTTP/1.1x", "http/1.1", "ICY"):
        refused(world, head(world).replace(b"HTTP/1.1", version.encode()), 400, 426, 505)
    refused(world, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, 404, 405, 505)


@tap.slow
def test_garbage(world):
    """bytes that are no request: TLS, SSH, nothing, zeros"""
    with contextlib.ExitStack() as stack:
        sent = []
        for data in (bytes.fromhex("16030100c8010000c40303") + bytes(200), b"SSH-2.0-x\r\n\r\n", b"\r\n" * 1000, bytes(5000)):
            sent.append((data, stack.enter_context(world.client.connect())))
            sent[-1][1].send_some(data)
        deadline = time.monotonic() + 3  # for all of them
        for data, connection in sent:
            connection.socket.settimeout(max(0.1, deadline - time.monotonic()))
            try:
                reply = connection.reply()
            except (raw.Closed, TimeoutError, ValueError, IndexError):
                continue
            assert reply.status >= 400, (data[:20], reply)


def test_keep_alive(world):
    """many requests on one connection, one after the other and at once"""
    with world.client.connect() as connection:
        for _ in range(50):
            assert connection.ask("GET", "/v2/sandboxes", {"X-API-KEY": world.client.key}).status == 200
        connection.send(head(world) * 20)
        assert [connection.reply().status for _ in range(20)] == [200] * 20


def test_keep_alive_after_error(world):
    """a 4xx does not end an honest connection in the wrong place"""
    with world.client.connect() as connection:
        for _ in range(5):
            reply = connection.ask("POST", "/v2/sandboxes", {"X-API-KEY": world.client.key}, {"templateID": 5})
            assert reply.status == 400, reply
            if reply.headers.get("connection", "").lower() == "close":
                return
            assert connection.ask("GET", "/health").status in (200, 204)


def test_expect(world):
    """Expect: 100-continue, as curl sends it"""
    body = b'{"timeout":60}'
    box = world.client.create()
    with world.client.connect() as connection:
        connection.send(head(world, "Expect: 100-continue", f"Content-Length: {len(body)}", "Content-Type: application/json",
                             method="POST", path=f"/sandboxes/{box.id}/connect"))
        status, _ = connection.head()
        assert status == 100, status
        connection.send(body)
        assert connection.reply().status == 200
