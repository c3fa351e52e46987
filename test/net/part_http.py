# SPDX-License-Identifier: Apache-2.0
"""Requests in the clear: one for each check, understood in only one way (NW-13)."""
import places
import suite

WEB = places.HOSTS["web.example"][0]
SMUGGLED = "GET /smuggled HTTP/1.1\r\nHost: evil.example\r\n\r\n"
ABSOLUTE = "GET http://web.example/hello HTTP/1.1\r\n"
# Requests that no honest client sends.
BAD = (
    ABSOLUTE + "Host: evil.example\r\n\r\n",
    ABSOLUTE + "Host: web.example:8080\r\n\r\n",
    ABSOLUTE + "Host: web.example\r\nHost: evil.example\r\n\r\n",
    ABSOLUTE + "Host: web.example, evil.example\r\n\r\n",
    ABSOLUTE + "\r\n",
    "GET /hello HTTP/1.1\r\nHost: web.example evil.example\r\n\r\n",
    "GET https://web.example/hello HTTP/1.1\r\nHost: web.example\r\n\r\n",
    "GET ftp://web.example/hello HTTP/1.1\r\nHost: web.example\r\n\r\n",
    "GET http://web.example@evil.example/hello HTTP/1.1\r\nHost: web.example@evil.example\r\n\r\n",
    "GET http://evil.example\\@web.example/hello HTTP/1.1\r\nHost: web.example\r\n\r\n",
    "GET http://web.example/hello HTTP/1.1\nHost: web.example\n\n",
    "GET http://web.example/hello HTTP/1.1\r\nHost : web.example\r\n\r\n",
    "GET http://web.example/hello HTTP/1.1\r\n Host: web.example\r\n\r\n",
    "GET http://web.example/hello HTTP/1.1\r\nHost: web.example\r\nX: a\r\n b\r\n\r\n",
    "GET http://web.example/hello HTTP/1.1\r\nHost: web.example\r\nX: a\0b\r\n\r\n",
    "GET http://web.example/hello HTTP/1.1\r\nHost: web.example\r\nX: a\rb\r\n\r\n",
    "GET http://web.example/he llo HTTP/1.1\r\nHost: web.example\r\n\r\n",
    "GET http://web.example/hello\0 HTTP/1.1\r\nHost: web.example\r\n\r\n",
    "GET http://web.example/hello HTTP/2.0\r\nHost: web.example\r\n\r\n",
    "GET http://web.example/hello HTTP/0.9\r\nHost: web.example\r\n\r\n",
    "GET http://web.example/hello\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "POST http://web.example/upload HTTP/1.1\r\nHost: web.example\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "POST http://web.example/upload HTTP/1.1\r\nHost: web.example\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello" + SMUGGLED,
    "POST http://web.example/upload HTTP/1.1\r\nHost: web.example\r\nContent-Length: +5\r\n\r\nhello" + SMUGGLED,
    "POST http://web.example/upload HTTP/1.1\r\nHost: web.example\r\nContent-Length: -1\r\n\r\n" + SMUGGLED,
    "POST http://web.example/upload HTTP/1.1\r\nHost: web.example\r\nContent-Length: 5, 5\r\n\r\nhello" + SMUGGLED,
    "POST http://web.example/upload HTTP/1.1\r\nHost: web.example\r\nContent-Length: 99999999999999999999\r\n\r\nhello",
    "POST http://web.example/upload HTTP/1.1\r\nHost: web.example\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "POST http://web.example/upload HTTP/1.1\r\nHost: web.example\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "POST http://web.example/upload HTTP/1.1\r\nHost: web.example\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "POST http://web.example/upload HTTP/1.1\r\nHost: web.example\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "POST http://web.example/upload HTTP/1.0\r\nHost: web.example\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "GET http://web.example/hello HTTP/1.1\r\nHost: web.example\r\nX: " + "x" * 20000 + "\r\n\r\n",
    "GET http://evil.example/hello HTTP/1.1\r\nHost: web.example\r\n\r\n",
    "GET //evil.example/hello HTTP/1.1\r\nHost: web.example\r\nHost:\r\n\r\n",
    "CONNECT evil.example:443 HTTP/1.1\r\nHost: web.example\r\n\r\n",
    "POST http://web.example/upload HTTP/1.1\r\nHost: web.example\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "G\xcbT http://web.example/hello HTTP/1.1\r\nHost: web.example\r\n\r\n",
)
# Well-formed requests with another one behind them.
TWO = (
    ABSOLUTE + "Host: web.example\r\nConnection: keep-alive\r\n\r\n" + SMUGGLED,
    ABSOLUTE + "Host: web.example\r\nContent-Length: 0\r\n\r\n" + SMUGGLED,
    "POST http://web.example/upload HTTP/1.1\r\nHost: web.example\r\nContent-Length: 5\r\n\r\nhello" + SMUGGLED,
    "POST http://web.example/upload HTTP/1.1\r\nHost: web.example\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n" + SMUGGLED,
    "POST http://web.example/upload HTTP/1.1\r\nHost: web.example\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nTrailer: x\r\n\r\n" + SMUGGLED,
    # A server that takes no notice of the upgrade goes on reading requests.
    ABSOLUTE + "Host: web.example\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n" + SMUGGLED,
)
UPGRADE = ABSOLUTE + ("Host: web.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                      "Sec-WebSocket-Version: 13\r\n\r\n")
# Bodies whose framing breaks off in the middle.
BROKEN = ("5\r\nhelloX\r\n0\r\n\r\n", "-5\r\nhello\r\n0\r\n\r\n", "0x5\r\nhello\r\n0\r\n\r\n", "fffffffffffffffff\r\nhello", "5\nhello\n0\n\n", "\r\n0\r\n\r\n",
          "5\r\nhello\r\n0\r\nHost: evil.example\nX\0: y\r\n\r\n")


def as_origin(request):
    """The same request as one in a tunnel or to the host itself has it."""
    return request.replace(" http://web.example", " ", 1)


def ways(request):
    yield {"do": "proxy", "send": request}
    yield {"do": "connect", "to": "web.example:80", "send": as_origin(request)}
    yield {"do": "socks", "host": "web.example", "port": 80, "send": as_origin(request)}
    yield {"do": "raw", "to": [WEB, 80], "send": as_origin(request)}


def unsmuggled(world):
    seen = world.net.requests()
    assert not [each for each in seen if "smuggled" in each["target"] or "evil" in each["host"] or each["nth"] > 1], seen
    assert world.net.carried(b"evil.example") == 0


def test_bad_requests(world):
    """NW-13: forged hosts, both lengths, odd framing, folded lines, NUL: refused, and nothing of it is passed on"""
    box = world.box("web.example", "evil.example:443")
    attempts = [what for request in BAD for what in ways(request)]
    results = box.attempt(*attempts, timeout=300)
    for what, result in zip(attempts, results):
        assert "hello from" not in result.get("data", "") and '"length"' not in result.get("data", ""), (what, result)
        if what["do"] == "proxy":
            assert result.get("status", 0) in (400, 403, 431, 501, 505), (what, result)
    assert not world.net.requests(), world.net.requests()
    unsmuggled(world)


def test_second_request(world):
    """NW-13: behind one request comes no second one, whatever its framing"""
    box = world.box("web.example", "evil.example:443")
    attempts = [what for request in TWO for what in ways(request)]
    for what, result in zip(attempts, box.attempt(*attempts, timeout=300)):
        assert result["data"].count("HTTP/1.1 ") == 1 and result["data"].startswith("HTTP/1.1 200"), (what, result)
        assert result["end"] == "end", (what, result)
    assert len(world.net.requests()) == len(attempts)
    unsmuggled(world)


def test_refused_upgrade(world):
    """NW-13: nor behind an upgrade that the host does not make: a WebSocket is one when the host says so"""
    box = world.box("web.example", "evil.example:443")
    attempts = [what | {"wait": 2} for what in ways(UPGRADE + SMUGGLED)]  # those that are taken for a WebSocket stay open
    for what, result in zip(attempts, box.attempt(*attempts)):
        assert result["data"].count("HTTP/1.1 200") <= 1, (what, result)
    unsmuggled(world)


def test_broken_bodies(world):
    """NW-13: a body whose framing is broken ends there: nothing behind it is passed on"""
    box = world.box("web.example", "evil.example:443")
    head = "POST http://web.example/upload HTTP/1.1\r\nHost: web.example\r\nTransfer-Encoding: chunked\r\n\r\n"
    attempts = [what for body in BROKEN for what in ways(head + body + SMUGGLED)]
    for what, result in zip(attempts, box.attempt(*attempts, timeout=300)):
        assert '"length"' not in result.get("data", "") or result["data"].count("HTTP/1.1 ") == 1, (what, result)
    unsmuggled(world)


def test_later_request(world):
    """NW-13: nor does one that is sent after the answer"""
    program = ("import socket\ns = socket.create_connection(('127.0.0.1', 3128)); s.settimeout(5)\n"
               f"s.sendall({(ABSOLUTE + 'Host: web.example' + chr(13) + chr(10) + chr(13) + chr(10)).encode()!r})\n"
               "first = s.recv(65536)\n"
               "try:\n s.sendall(b'GET http://evil.example/smuggled HTTP/1.1\\r\\nHost: evil.example\\r\\n\\r\\n'); rest = b''\n"
               " while d := s.recv(65536): rest += d\nexcept OSError as e: rest = b''\nprint(first.split()[1].decode(), rest.count(b'HTTP/1.'))\n")
    box = world.box("web.example", "evil.example:443")
    box.put("/home/user/later.py", program.encode())
    status, out, err = box.command("python3 /home/user/later.py")
    assert (status, out) == (0, "200 0\n"), (out, err)
    unsmuggled(world)


def test_passed_on(world):
    """what is passed on: origin form, one Host, nothing of this connection, closed behind it"""
    box = world.box("web.example")
    request = ("GET http://web.example/seen?x=1 HTTP/1.1\r\nHost: web.example\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: Basic eDp5\r\n"
               "Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nX-Kept: 2\r\nKeep-Alive: 5\r\nTE: trailers\r\n\r\n")
    box.one(do="proxy", send=request)
    seen = world.net.requests()[-1]
    names = [name.lower() for name, _ in seen["headers"]]
    assert seen["target"] == "/seen?x=1", seen
    assert names.count("host") == 1 and "x-kept" in names, seen
    assert not {"proxy-connection", "proxy-authorization", "x-hop", "keep-alive"} & set(names), seen
    assert [value for name, value in seen["headers"] if name.lower() == "connection"] == ["close"], seen


def test_not_http(world):
    """port 80 of an allowed name is for HTTP: nothing else is passed on"""
    box = world.box("web.example")
    box.one(do="resolve", name="web.example")
    for send in ("SSH-2.0-x\r\n", "\x05\x01\x00", "\x16\x03\x01\x00\x05hello", "x" * 70000, "\r\n\r\n\r\n", "\0"):
        for what in ({"do": "connect", "to": "web.example:80"}, {"do": "raw", "to": [WEB, 80]}):
            result = box.one(**what, send=send, shut=True)
            assert "Lab" not in result.get("data", ""), (what, send[:20], result)
    assert not world.net.requests(), world.net.requests()


def test_all_in_one_go(world):
    """CONNECT to port 80, the request in it and the end, all at once: the answer comes"""
    box = world.box("web.example")
    send = "CONNECT web.example:80 HTTP/1.1\r\nHost: web.example:80\r\n\r\n" + as_origin(ABSOLUTE) + "Host: web.example\r\n\r\n"
    for _ in range(5):  # the end need not be there yet when the request is read
        result = box.one(do="proxy", send=send, shut=True)
        assert "hello from web.example" in result["data"], result
    assert len(world.net.requests()) == 5, world.net.requests()


def test_methods(world):
    """every ordinary method passes; what proxies are asked for does not"""
    box = world.box("web.example")
    for method in ("HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        length = "" if method in ("HEAD", "DELETE") else "Content-Length: 0\r\n"
        result = box.one(do="proxy", send=f"{method} http://web.example/hello HTTP/1.1\r\nHost: web.example\r\n{length}\r\n")
        assert result["status"] == 200, (method, result)
    for send in ("GET /hello HTTP/1.1\r\nHost: web.example\r\n\r\n", "GET / HTTP/1.1\r\nHost: 127.0.0.1:3128\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: web.example\r\n\r\n"):
        result = box.one(do="proxy", send=send)
        assert result["status"] in (400, 403, 404, 405, 501), (send, result)


def test_refusal(world):
    """a refusal says what was refused, why and what to do, in plain text, and does not take markup for text"""
    box = world.box("web.example")
    refusal = box.one(do="proxy", send="GET http://other.example/<script>alert(1)</script> HTTP/1.1\r\nHost: other.example\r\n\r\n")
    assert refusal["status"] == 403 and refusal["reason"] == "not_allowed", refusal
    head, _, body = refusal["data"].partition("\r\n\r\n")
    assert "content-type: text/plain" in head.lower(), head
    assert "other.example" in body and "no rule allows it" in body, body
    assert "<script>" not in body, body
    assert refusal["seconds"] < suite.FAST


def test_slow_head(world):
    """a request that comes too slowly is ended"""
    box = world.box("web.example")
    result = box.one(do="proxy", send="GET http://web.example/hello HTTP/1.1\r\nHost: web", wait=20)
    assert result["end"] != "silence" and result["seconds"] < 19, result
    box.logged(reason="too_slow")


def test_other_ports(world):
    """NW-13: a request at another port of an allowed name is held against the name too, and has none behind it"""
    box = world.box("api.example:8080", "evil.example:443")
    address = box.one(do="resolve", name="api.example")["addresses"][0]
    ways_there = ({"do": "connect", "to": "api.example:8080"}, {"do": "socks", "host": "api.example", "port": 8080}, {"do": "raw", "to": [address, 8080]})
    for what in ways_there:
        for host in ("evil.example", "evil.example:8080", "api.example:80", "api.example.evil.example"):
            result = box.one(**what, send=f"GET /hello HTTP/1.1\r\nHost: {host}\r\n\r\n")
            assert "hello from" not in result.get("data", ""), (what, host, result)
        result = box.one(**what, send="GET /hello HTTP/1.1\r\nHost: api.example:8080\r\n\r\n" + SMUGGLED)
        assert result["data"].count("hello from") == 1 and result["end"] == "end", (what, result)
    box.logged(name="api.example", port=8080, reason="host_mismatch")
    unsmuggled(world)
