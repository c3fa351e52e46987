# SPDX-License-Identifier: Apache-2.0
"""Preview: requests for ports of a sandbox's own programs, in both directions and byte by byte. What answers in the box is
port_server.py."""
import base64
import hashlib
import json
import os
import pathlib
import select
import socket
import subprocess
import threading
import time

import raw
import service
import tap
from part_limits import at_once

PORT = 3000
SERVER = (pathlib.Path(__file__).resolve().parent / "port_server.py").read_bytes()
BIG = 100 << 20
SLOW = raw.PATIENCE
QUIET = 12  # seconds: more than a request may take for its head
WEB = {"Accept": "text/html,application/xhtml+xml"}
WORLD = {}  # the box that most tests share


def start(box, port=PORT, address="127.0.0.1", program=SERVER, name="server.py"):
    """Until it listens, which is not tried: some of these programs would take that for a client."""
    reply = box.ask("POST", f"/files?path=/home/user/{name}", program, {"Content-Type": "application/octet-stream"})
    assert reply.status == 200, reply
    _, err, end, _ = box.run(f"setsid python3 /home/user/{name} {port} {address} >/tmp/{port}.log 2>&1 </dev/null & "
                             f"until cat /proc/net/tcp /proc/net/tcp6 | grep -q ':{port:04X} 0*:0000 0A'; do sleep 0.01; done 2>/dev/null")
    assert end["exited"], err


def shared(world):
    if "box" not in WORLD or WORLD["service"] is not world.service:
        WORLD.update(box=world.client.create(timeout=3600), service=world.service)
        start(WORLD["box"])
        assert service.wait_for(lambda: visit(world, WORLD["box"], "/echo").status == 200)
        WORLD.update(quiet=websocket(world, WORLD["box"]), since=time.monotonic())
    return WORLD["box"]


def host(box, port=PORT):
    return f"{port}-{box.id}.localhost"


def visit(world, box, path, method="GET", headers=None, body=None, port=PORT, **options):
    """A request by the box's own name. These are not answers of ours, so they are not held against openapi.json."""
    headers = {"Host": host(box, port)} | (headers or {})
    with world.client.connect(SLOW) as connection:
        try:
            return connection.ask(method, path, headers, body, **options)
        finally:
            raw.SEEN[:] = [seen for seen in raw.SEEN if seen.headers is not headers and seen.headers.get("Host") != headers["Host"]]


def raw_path(data, **more):
    words = "".join(f"&{name}={value}" for name, value in more.items())
    return "/raw?bytes=" + base64.urlsafe_b64encode(data).decode() + words


def lines_of(reply):
    assert reply.status == 200, reply
    return reply.json()["lines"]


def field(lines, name):
    return [line.split(": ", 1)[1] for line in lines[1:] if line.lower().startswith(name.lower() + ":")]


# --- who is asked ---------------------------------------------------------------------------------------------

def test_by_name(world):
    """by the box's name: the request arrives as it was sent"""
    lines = lines_of(visit(world, shared(world), "/echo/%2e%2e//a;b?x=1&x=2&%zz={}|"))
    assert lines[0] == "GET /echo/%2e%2e//a;b?x=1&x=2&%zz={}| HTTP/1.1", lines
    assert field(lines, "Host") == [host(shared(world))], lines


def test_by_headers(world):
    """by headers at our own address: its answer cannot act there"""
    box = shared(world)
    answer = (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\nClear-Site-Data: \"*\"\r\n"
              b"Service-Worker-Allowed: /\r\nStrict-Transport-Security: max-age=1\r\nAlt-Svc: h3\r\nCache-Control: max-age=9\r\n"
              b"X-Kept: yes\r\n\r\nok")
    with world.client.connect() as connection:
        connection.send(f"GET {raw_path(answer)} HTTP/1.1\r\nHost: 127.0.0.1:{world.port}\r\nE2b-Sandbox-Id: {box.id}\r\n"
                        f"E2b-Sandbox-Port: {PORT}\r\n\r\n".encode())
        reply = connection.reply()
    assert reply.status == 200 and reply.body == b"ok" and reply.headers["x-kept"] == "yes", reply
    for name in ("set-cookie", "clear-site-data", "service-worker-allowed", "strict-transport-security", "alt-svc"):
        assert name not in reply.headers, (name, reply)
    assert reply.headers["content-security-policy"] == "sandbox", reply
    assert reply.headers["x-content-type-options"] == "nosniff" and reply.headers["cache-control"] == "no-store", reply


def test_own_origin(world):
    """by the box's name its cookies are its own, and nothing of ours is added"""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nSet-Cookie: a=b\r\nCache-Control: max-age=9\r\nDate: never\r\n\r\nok"
    reply = visit(world, shared(world), raw_path(answer))
    assert reply.headers == {"set-cookie": "a=b", "cache-control": "max-age=9", "date": "never", "content-length": "2"}, reply


def test_no_cors_of_ours(world):
    """a preflight is the program's to answer, and no CORS headers of ours go out"""
    reply = visit(world, shared(world), "/echo", "OPTIONS", {"Origin": "http://evil.test", "Access-Control-Request-Method": "PUT"})
    assert lines_of(reply)[0].startswith("OPTIONS "), reply
    for path, port in (("/echo", PORT), ("/", 3999)):
        reply = visit(world, shared(world), path, headers={"Origin": "http://evil.test"}, port=port)
        assert not [name for name in reply.headers if name.startswith("access-control")], reply


def test_only_ipv6(world):
    """a program that listens on ::1 alone"""
    box = shared(world)
    start(box, 3006, "::1")
    assert lines_of(visit(world, box, "/echo", port=3006))[0] == "GET /echo HTTP/1.1"


def test_methods(world):
    """any method; HEAD has no body"""
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "BREW"):
        assert lines_of(visit(world, shared(world), "/echo", method))[0].startswith(method + " "), method
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n"
    reply = visit(world, shared(world), raw_path(answer), "HEAD")
    assert reply.status == 200 and reply.headers["content-length"] == "12345" and reply.body == b"", reply


# --- what goes in -----------------------------------------------------------------------------------------------

def test_credentials_stay_out(world):
    """keys and tokens of ours never reach a box"""
    box = shared(world)
    key = world.client.key
    secret = {"X-API-KEY": key, "X-Access-Token": box.token or "x", "E2B-Traffic-Access-Token": "t" * 40,
              "Authorization": f"Bearer {key}", "Proxy-Authorization": "Basic eDp5"}
    text = "\n".join(lines_of(visit(world, box, "/echo", headers=secret)))
    for name, value in secret.items():
        assert name.lower() not in text.lower() and value not in text, (name, text)
    own = {"Authorization": "Bearer of-the-application", "Cookie": "session=1"}
    lines = lines_of(visit(world, box, "/echo", headers=own))
    assert field(lines, "Authorization") == ["Bearer of-the-application"] and field(lines, "Cookie") == ["session=1"], lines


def test_forwarded(world):
    """who the client is, we say"""
    lies = {"X-Forwarded-For": "6.6.6.6", "X-Forwarded-Proto": "gopher", "X-Forwarded-Host": "evil.test",
            "Forwarded": "for=6.6.6.6", "X-Real-IP": "6.6.6.6"}
    lines = lines_of(visit(world, shared(world), "/echo", headers=lies))
    assert field(lines, "X-Forwarded-For") == ["127.0.0.1"] and field(lines, "X-Forwarded-Proto") == ["http"], lines
    assert field(lines, "X-Forwarded-Host") == [host(shared(world))], lines
    assert not field(lines, "Forwarded") and not field(lines, "X-Real-IP"), lines


def test_hop_by_hop(world):
    """what is between neighbours stays between them"""
    hops = {"Connection": "keep-alive, X-Private", "X-Private": "1", "Keep-Alive": "timeout=9", "TE": "trailers",
            "Proxy-Connection": "close", "X-Public": "1"}
    lines = lines_of(visit(world, shared(world), "/echo", headers=hops))
    for name in ("Connection", "X-Private", "Keep-Alive", "TE", "Proxy-Connection"):
        assert not field(lines, name), (name, lines)
    assert field(lines, "X-Public") == ["1"], lines


def test_mask(world):
    """maskRequestHost"""
    box = world.client.create(timeout=600, network={"maskRequestHost": "localhost:${PORT}"})
    start(box)
    lines = lines_of(visit(world, box, "/echo"))
    assert field(lines, "Host") == [f"localhost:{PORT}"] and field(lines, "X-Forwarded-Host") == [host(box)], lines
    for wrong in ("a b", "a\r\nX: y", "a/b", "", "${HOST}", "x" * 300):
        reply = world.client.ask("POST", "/v2/sandboxes", {"templateID": "base", "network": {"maskRequestHost": wrong}})
        assert reply.status == 400, (wrong, reply)


def smuggle(world, box, head, body=b""):
    with world.client.connect() as connection:
        connection.send(head.replace("HOST", host(box)).encode("latin-1") + body)
        try:
            return connection.reply()
        except raw.Closed:
            return None


def test_smuggling_in(world):
    """a request that can be read in two ways is refused, and nothing of it arrives"""
    box = shared(world)
    rest = "GET /smuggled HTTP/1.1\r\nHost: HOST\r\n\r\n"
    for head in ("POST /echo HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + rest,
                 "POST /echo HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello" + rest,
                 "POST /echo HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
                 "POST /echo HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
                 "POST /echo HTTP/1.0\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + rest,
                 "GET /echo HTTP/1.1\r\nHost: HOST\r\nX: a\n" + rest,
                 "GET /echo HTTP/1.1\r\nHost: HOST\r\n X: folded\r\n\r\n",
                 "GET /echo HTTP/1.1\r\nHost: HOST\r\nHost: other\r\n\r\n",
                 "GET /a b HTTP/1.1\r\nHost: HOST\r\n\r\n",
                 "GET /a\tb HTTP/1.1\r\nHost: HOST\r\n\r\n",
                 "GET /caf\xe9 HTTP/1.1\r\nHost: HOST\r\n\r\n",
                 "GET /a#b HTTP/1.1\r\nHost: HOST\r\n\r\n",
                 "GET http://HOST/ HTTP/1.1\r\nHost: HOST\r\n\r\n",
                 "CONNECT /echo HTTP/1.1\r\nHost: HOST\r\n\r\n",
                 "G(ET /echo HTTP/1.1\r\nHost: HOST\r\n\r\n",
                 "OPTIONS * HTTP/1.1\r\nHost: HOST\r\n\r\n"):
        reply = smuggle(world, box, head)
        assert reply is None or 400 <= reply.status <= 501, (head, reply)
    # What the chunks are called on the way in does not matter on the way on: one framing, ours.
    reply = smuggle(world, box, "POST /echo HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "5;a=b\r\nhello\r\n0\r\nX-Trailer: 1\r\n\r\n")
    assert reply and reply.json()["bytes"] == 5 and not field(lines_of(reply), "X-Trailer"), reply


# --- what comes out ---------------------------------------------------------------------------------------------

def test_framing_out(world):
    """bodies by length, by chunks, by the end; none with 204 and 304; 1xx passed over"""
    box = shared(world)
    for answer, status, body in (
            (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, b"hello"),
            (b"HTTP/1.1 201 Made\r\nTransfer-Encoding: chunked\r\n\r\n5;x\r\nhello\r\n0\r\nX-Trailer: 1\r\n\r\n", 201, b"hello"),
            (b"HTTP/1.1 200 OK\r\n\r\nhello", 200, b"hello"),
            (b"HTTP/1.0 200 OK\r\n\r\nhello", 200, b"hello"),
            (b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", 200, b""),
            (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
            (b"HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\nContent-Length: 7\r\n\r\n", 304, b""),
            (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: 1\r\n\r\nx", 404, b"x"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Empty:\r\nX-Tab: a\tb\r\nX-Latin: caf\xe9\r\n\r\nok", 200, b"ok")):
        reply = visit(world, box, raw_path(answer))
        assert (reply.status, reply.body) == (status, body), (answer, reply)
        assert "x-trailer" not in reply.headers, reply


def test_smuggling_out(world):
    """an answer that can be read in two ways is none: 502, and the reason"""
    box = shared(world)
    for answer in (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
                   b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                   b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
                   b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                   b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 1e3\r\n\r\n",
                   b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
                   b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", b"HTTP/1.1 200 OK\r\nX: a\n\r\n\r\n",
                   b"HTTP/1.1 200 OK\r\n X: folded\r\nContent-Length: 0\r\n\r\n",
                   b"HTTP/1.1 200 OK\r\nX: a\r\n folded\r\nContent-Length: 0\r\n\r\n",
                   b"HTTP/1.1 200 OK\r\nX\x00: a\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\n", b"HTTP/1.1 200 OK\r\nX y: a\r\n\r\n",
                   b"HTTP/1.1 99 Low\r\n\r\n", b"HTTP/1.1 999 High\r\nContent-Length: 0\r\n\r\n", b"HTTP/2 200\r\n\r\n",
                   b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
                   b"SSH-2.0-OpenSSH_9\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"a" * 40000 + b"\r\n\r\n",
                   b"HTTP/1.1 200 OK\r\n" + b"X: a\r\n" * 200 + b"\r\n", b"HTTP/1.1 100 Continue\r\n\r\n" * 50, b"", b"HTTP/1.1 200 O"):
        reply = visit(world, box, "/raw", "POST", body=answer)
        assert reply.status == 502 and reply.json()["code"] == 502 and reply.json()["detail"], (answer[:200], reply)


def test_second_answer(world):
    """bytes behind an answer are not the next one's"""
    box = shared(world)
    double = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
    for _ in range(5):
        assert visit(world, box, raw_path(double, keep=1)).body == b"ok"
        assert lines_of(visit(world, box, "/echo"))[0] == "GET /echo HTTP/1.1"


def test_kept_alive(world):
    """connections to a program are used again, also by another client's request"""
    box = shared(world)
    seen = {visit(world, box, "/echo").json()["connection"] for _ in range(10)}
    assert len(seen) < 10, seen
    start(box, 3007, program=b"""
import socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    while True:
        peer, _ = server.accept()
        while b"\\r\\n\\r\\n" not in peer.recv(65536):
            pass
        peer.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
        peer.close()
""", name="closes.py")
    for _ in range(20):  # it says that it keeps the connection, and does not
        assert visit(world, box, "/", port=3007).body == b"ok"


# --- streams ------------------------------------------------------------------------------------------------------

def test_events(world):
    """server-sent events arrive when they happen"""
    box = shared(world)
    with world.client.connect() as connection:
        connection.send(f"GET /events?events=4 HTTP/1.1\r\nHost: {host(box)}\r\n\r\n".encode())
        status, headers = connection.head()
        assert status == 200 and headers["content-type"] == "text/event-stream", headers
        for number in range(4):
            assert connection.chunk() == b"data: %d\n\n" % number
            assert visit(world, box, "/next").status == 200  # none is sent before the one before it was seen
        assert connection.chunk() == b""


@tap.slow
def test_large(world):
    """100 MB up, with a length and in chunks, and 100 MB down"""
    box = shared(world)
    data = os.urandom(1 << 20) * (BIG >> 20)
    digest = hashlib.sha256(data).hexdigest()
    for chunked in (False, True):
        with world.client.connect(120) as connection:
            head = f"PUT /echo HTTP/1.1\r\nHost: {host(box)}\r\n"
            if chunked:
                connection.send(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
                connection.send_chunks(data, 1 << 20)
            else:
                connection.send(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
            said = connection.reply().json()
        assert (said["bytes"], said["sha256"]) == (BIG, digest), (chunked, said["bytes"])
    reply = visit(world, box, f"/big?bytes={BIG}")
    assert hashlib.sha256(reply.body).digest() == hashlib.sha256(bytes(range(256)) * (BIG >> 8)).digest(), len(reply.body)


def test_early_answer(world):
    """a program that answers before it was sent everything"""
    box = shared(world)
    with world.client.connect(60) as connection:
        connection.send(f"PUT /early HTTP/1.1\r\nHost: {host(box)}\r\nContent-Length: {20 << 20}\r\n\r\n".encode())
        connection.send_some(b"x" * (20 << 20))
        reply = connection.reply()
    assert reply.status == 413 and reply.body == b"enough", reply


def test_early_answer_kept(world):
    """a connection with half a request on it is not used for another one"""
    box = shared(world)
    with world.client.connect(60) as connection:
        connection.send(f"PUT /early?keep=1 HTTP/1.1\r\nHost: {host(box)}\r\nContent-Length: {20 << 20}\r\n\r\n".encode())
        connection.send_some(b"x" * (20 << 20))
        assert connection.reply().status == 413
        for _ in range(5):
            assert lines_of(visit(world, box, "/echo"))[0] == "GET /echo HTTP/1.1"


def test_body_not_read(world):
    """a program that leaves a body on the connection takes it for a request: nobody else's comes behind it"""
    box = shared(world)
    for _ in range(5):
        body = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
        assert visit(world, box, "/early?keep=1", "POST", body=body).status == 413
        assert lines_of(visit(world, box, "/echo"))[0] == "GET /echo HTTP/1.1"


def test_slow_client(world):
    """a client that takes its time gets everything, and others do not wait for it"""
    box = shared(world)
    with world.client.connect(60, receive_buffer=4096) as connection:
        connection.send(f"GET /big?bytes={4 << 20} HTTP/1.1\r\nHost: {host(box)}\r\n\r\n".encode())
        connection.head()
        time.sleep(1)
        assert lines_of(visit(world, box, "/echo"))
        assert len(connection.take(4 << 20)) == 4 << 20


def broken_off(connection):
    """Whether the client can tell that something is missing."""
    try:
        connection.reply()
    except (raw.Closed, ValueError):
        return True
    return False


def test_half_answers(world):
    """an answer that breaks off resets the client's connection"""
    box = shared(world)
    for how in ("length", "chunks"):
        with world.client.connect() as connection:
            connection.send(f"GET /half?by={how}&seconds=0.1 HTTP/1.1\r\nHost: {host(box)}\r\n\r\n".encode())
            assert broken_off(connection), how


def test_box_ends(world):
    """the sandbox ends, or is paused, in the middle of an answer or of a WebSocket"""
    for action in (lambda b: world.client.ask("DELETE", f"/sandboxes/{b.id}"), lambda b: world.client.ask("POST", f"/sandboxes/{b.id}/pause", {})):
        box = world.client.create(timeout=600)
        start(box)
        assert visit(world, box, "/echo").status == 200
        with world.client.connect() as length, world.client.connect() as end, world.client.connect() as pending:
            length.send(f"GET /half?by=length&seconds=30 HTTP/1.1\r\nHost: {host(box)}\r\n\r\n".encode())
            end.send(f"GET /half?by=end&seconds=30 HTTP/1.1\r\nHost: {host(box)}\r\n\r\n".encode())
            pending.send(f"GET /hang?seconds=30 HTTP/1.1\r\nHost: {host(box)}\r\n\r\n".encode())
            peer = websocket(world, box)
            assert length.head()[0] == 200 and end.head()[0] == 200
            assert action(box).status == 204
            assert broken_off(length)
            try:
                assert pending.reply().status == 502
            except raw.Closed:
                pass
            assert peer.ended()
            peer.close()


# --- WebSockets -----------------------------------------------------------------------------------------------------

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


def websocket(world, box, early=b"", query="", connection="Upgrade"):
    peer = world.client.connect(SLOW)
    peer.send(f"GET /socket{query} HTTP/1.1\r\nHost: {host(box)}\r\nConnection: {connection}\r\nUpgrade: WebSocket\r\n"
              f"Sec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode() + early)
    status, headers = peer.head()
    assert status == 101 and headers["sec-websocket-accept"] == ACCEPT, (status, headers)
    assert headers["upgrade"].lower() == "websocket" and headers["connection"].lower() == "upgrade", headers
    return peer


def test_websocket(world):
    """a WebSocket: bytes both ways, as they are, from the first to the last"""
    box = shared(world)
    with websocket(world, box, b"early", "?greeting=hi", "keep-alive, Upgrade") as peer:
        assert peer.take(7) in (b"hiearly",), peer.buffer
        data = os.urandom(8 << 20)
        sender = threading.Thread(target=peer.socket.sendall, args=(data,))
        sender.start()
        assert peer.take(len(data)) == data
        sender.join()
        peer.send(b"BYE")
        assert peer.take(3) == b"BYE" and peer.ended()


def test_websocket_quiet(world):
    """a WebSocket may be quiet for longer than a request may"""
    shared(world)
    with WORLD["quiet"] as peer:
        time.sleep(max(0, QUIET - (time.monotonic() - WORLD["since"])))
        peer.send(b"still there")
        assert peer.take(11) == b"still there"


def test_websocket_refused(world):
    """a program that wants no WebSocket says so; other protocols are not offered to it"""
    box = shared(world)
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": KEY}
    lines = lines_of(visit(world, box, "/echo", headers=upgrade))
    assert field(lines, "Upgrade") == ["websocket"] and field(lines, "Connection") == ["Upgrade"], lines
    for other in ("h2c", "TLS/1.0", "websocket, h2c"):
        lines = lines_of(visit(world, box, "/echo", headers={"Connection": "Upgrade, HTTP2-Settings", "Upgrade": other, "HTTP2-Settings": "AA"}))
        assert not field(lines, "Upgrade") and not field(lines, "HTTP2-Settings"), lines
    h2c = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n"
    reply = visit(world, box, raw_path(h2c), headers=upgrade)
    assert reply.status == 502, reply
    reply = world.client.ask("GET", "/health", headers={"Connection": "Upgrade", "Upgrade": "websocket"})
    assert reply.status == 400, reply


# --- what we say ourselves --------------------------------------------------------------------------------------

def test_closed_port(world):
    """nobody listens: 502 with the port, for people a page"""
    box = shared(world)
    reply = visit(world, box, "/", port=3999)
    assert reply.status == 502 and reply.json() == {"sandboxId": box.id, "message": "The sandbox is running but port is not open",
                                                    "port": 3999, "code": 502}, reply
    reply = visit(world, box, "/<script>alert(1)</script>", headers=WEB, port=3999)
    page = reply.body.decode()
    assert reply.status == 502 and reply.headers["content-type"].startswith("text/html") and box.id in page, reply
    assert "script" not in page and "default-src 'none'" in reply.headers["content-security-policy"], reply
    reply = visit(world, box, "/", "POST", body=b"x" * 100000, port=3999)
    assert reply.status == 502, reply


def test_opening_port(world):
    """a port that is only being opened is waited for, for a moment"""
    box = shared(world)
    # On a busy machine the program may take longer than that moment: not each time, then.
    for port in range(3008, 3013):
        box.run(f"setsid sh -c 'sleep 0.2; exec python3 /home/user/server.py {port}' >/dev/null 2>&1 </dev/null &")
        reply = visit(world, box, "/echo", port=port)
        if reply.status == 200:
            break
    assert lines_of(reply)


def test_unknown(world):
    """no such sandbox: 502"""
    for name in ("i" + "0" * 19, "abc"):
        reply = visit(world, type("Nobody", (), {"id": name}), "/")
        assert reply.status == 502 and reply.json()["sandboxId"] == name and reply.json()["code"] == 502, reply
        assert visit(world, type("Nobody", (), {"id": name}), "/", headers=WEB).headers["content-type"].startswith("text/html")


def test_token(world):
    """allowPublicTraffic: false: 403 without the token, and the token goes no further"""
    box = world.client.create(timeout=600, network={"allowPublicTraffic": False})
    start(box)
    token = box.created["trafficAccessToken"]
    for wrong in ({}, {"E2B-Traffic-Access-Token": token[:-1]}, {"E2B-Traffic-Access-Token": token + "x"}):
        reply = visit(world, box, "/echo", headers=wrong)
        assert reply.status == 403 and reply.json()["sandboxId"] == box.id and reply.json()["code"] == 403, reply
    assert visit(world, box, "/", headers=WEB).headers["content-type"].startswith("text/html")
    lines = lines_of(visit(world, box, "/echo", headers={"E2B-Traffic-Access-Token": token}))
    assert token not in "\n".join(lines), lines


def test_paused(world):
    """paused: 502, unless traffic wakes it; then everything is as it was"""
    box = world.client.create(timeout=600)
    start(box)
    assert visit(world, box, "/echo").status == 200
    assert world.client.ask("POST", f"/sandboxes/{box.id}/pause", {}).status == 204
    reply = visit(world, box, "/echo")
    assert reply.status == 502 and reply.json()["reason"] == "paused", reply
    box = world.client.create(timeout=600, autoPause=True, autoResume={"enabled": True})
    start(box)
    assert visit(world, box, "/echo").status == 200
    assert world.client.ask("POST", f"/sandboxes/{box.id}/pause", {}).status == 204
    assert lines_of(visit(world, box, "/echo"))
    assert world.client.ask("GET", f"/sandboxes/{box.id}").json()["state"] == "running"


@tap.slow
def test_too_many(world):
    """too many at once: 429, and the other sandbox does not notice"""
    small = service.Service({"limits.connections_per_sandbox": 3}).start()
    try:
        client = raw.Client(small.port, small.key)
        box, other = client.create(timeout=600), client.create(timeout=600)
        here = type("Here", (), {"client": client})
        for each in (box, other):
            start(each)
            assert visit(here, each, "/echo").status == 200
        held = [None] * 3

        def answered(connection):
            return connection is None or select.select([connection.socket], [], [], 0)[0]

        def is_full():
            """Our own question may have been in the way of one of those that hang: that one comes again."""
            for i, connection in enumerate(held):
                if answered(connection):
                    held[i] = client.connect()
                    held[i].send(f"GET /hang?seconds=600 HTTP/1.1\r\nHost: {host(box)}\r\n\r\n".encode())
            time.sleep(0.1)
            return visit(here, box, "/echo").status == 429 and not any(answered(connection) for connection in held)

        assert service.wait_for(is_full), visit(here, box, "/echo")
        reply = visit(here, box, "/echo")
        assert reply.headers["retry-after"] == "1" and reply.json()["code"] == 429, reply
        assert visit(here, other, "/echo").status == 200
        for connection in held:
            connection.close()
        assert service.wait_for(lambda: visit(here, box, "/echo").status == 200)
    finally:
        small.stop()


@tap.slow
def test_not_rated(world):
    """a page with hundreds of parts is not throttled, while our own planes are"""
    slow = service.Service({"limits.requests_per_second": 1}).start()
    try:
        client = raw.Client(slow.port, slow.key)
        box = client.create(timeout=600)
        start(box)
        here = type("Here", (), {"client": client})
        statuses = [visit(here, box, "/echo").status for _ in range(60)]
        assert set(statuses) == {200}, statuses
        assert 429 in [reply.status for reply in at_once(60, lambda: client.ask("GET", "/v2/sandboxes"))]
    finally:
        slow.stop()


# --- the express way --------------------------------------------------------------------------------------------------

def ask_on(connection, name, path="/echo", more=""):
    connection.send(f"GET {path} HTTP/1.1\r\nHost: {name}\r\n{more}\r\n".encode())
    return connection.reply()


def test_changes_plane(world):
    """one connection, as a proxy in front of us would use it: a port, our own address, another sandbox, a body, a port again"""
    box, other = shared(world), world.client.create(timeout=600)
    start(other)
    assert visit(world, other, "/echo").status == 200
    with world.client.connect(SLOW) as connection:
        for _ in range(3):
            assert field(lines_of(ask_on(connection, host(box))), "Host") == [host(box)]
        assert field(lines_of(ask_on(connection, host(other))), "Host") == [host(other)]
        assert ask_on(connection, f"127.0.0.1:{world.port}", "/health").status in (200, 204)
        assert lines_of(ask_on(connection, host(box)))
        connection.send(f"POST /echo HTTP/1.1\r\nHost: {host(box)}\r\nContent-Length: 5\r\n\r\nhello".encode())
        assert connection.reply().json()["bytes"] == 5
        assert ask_on(connection, host(other, 3999)).status == 502
    with world.client.connect(SLOW) as connection:
        assert lines_of(ask_on(connection, host(box)))
        assert ask_on(connection, "evil.test").status == 421
    raw.SEEN.clear()


def test_one_after_the_other(world):
    """requests that are sent without waiting for the answers are answered in turn, whoever answers them"""
    box = shared(world)
    with world.client.connect(SLOW) as connection:
        paths = [f"/echo/{i}" for i in range(20)]
        connection.send("".join(f"GET {path} HTTP/1.1\r\nHost: {host(box)}\r\n\r\n" for path in paths).encode())
        for path in paths:
            assert lines_of(connection.reply())[0] == f"GET {path} HTTP/1.1", path
        connection.send((f"GET /echo/a HTTP/1.1\r\nHost: {host(box)}\r\n\r\n"
                         f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{world.port}\r\n\r\n"
                         f"GET /echo/b HTTP/1.1\r\nHost: {host(box)}\r\nConnection: close\r\n\r\n").encode())
        assert lines_of(connection.reply())[0] == "GET /echo/a HTTP/1.1"
        assert connection.reply().status in (200, 204)
        assert lines_of(connection.reply())[0] == "GET /echo/b HTTP/1.1"
        assert connection.ended()
    raw.SEEN.clear()


def test_close(world):
    """a client that wants the connection closed has it closed, and is told so"""
    with world.client.connect(SLOW) as connection:
        reply = ask_on(connection, host(shared(world)), more="Connection: close\r\n")
        assert reply.headers["connection"] == "close" and lines_of(reply), reply
        assert connection.ended()
    raw.SEEN.clear()


HALF_CLOSED = b"""
import socket, sys
listener = socket.create_server((sys.argv[2], int(sys.argv[1])))
kept = []
while True:
    connection, _ = listener.accept()
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nhi")
    connection.shutdown(socket.SHUT_WR)
    kept.append(connection)
"""


def test_half_closed(world):
    """a program that says no more after an answer, but keeps the connection, is asked on another one"""
    box = shared(world)
    start(box, 3077, program=HALF_CLOSED, name="half_closed.py")
    with world.client.connect(10) as connection:
        for _ in range(20):
            connection.send(f"GET / HTTP/1.1\r\nHost: {host(box, 3077)}\r\n\r\n".encode())
            reply = connection.reply()
            assert reply.body == b"hi", reply
    raw.SEEN.clear()


def test_head_in_parts(world):
    """a head that comes in parts, and one that comes with half of the next"""
    box = shared(world)
    head = f"GET /echo HTTP/1.1\r\nHost: {host(box)}\r\n\r\n".encode()
    for cut in (1, 20, len(head) - 1):
        with world.client.connect(SLOW) as connection:
            assert lines_of(ask_on(connection, host(box)))
            connection.send(head[:cut])
            time.sleep(0.1)
            connection.send(head[cut:] + head[:cut])
            assert lines_of(connection.reply())
            connection.send(head[cut:])
            assert lines_of(connection.reply())
    raw.SEEN.clear()


def test_one_at_a_time(world):
    """a program that serves one connection at a time is not held up by ours"""
    box = shared(world)
    start(box, 3018, program=b"""
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
""", name="single.py")
    assert service.wait_for(lambda: visit(world, box, "/", port=3018).status == 200)
    connections = [world.client.connect(SLOW) for _ in range(6)]  # more than there are threads; all stay open
    try:
        for _ in range(3):
            for connection in connections:
                since = time.monotonic()
                reply = ask_on(connection, host(box, 3018), "/")
                assert reply.status == 200 and reply.body == b"ok", reply
                assert time.monotonic() - since < 3, "it waited for a connection that nobody used"  # IDLE_MS of src/server/port/pool.c
    finally:
        for connection in connections:
            connection.close()
    raw.SEEN.clear()


def test_slow_reader(world):
    """a client that does not read slows its own answer only, and gets all of it"""
    box = shared(world)
    with world.client.connect(SLOW) as slow, world.client.connect(SLOW) as quick:
        slow.send(f"GET /big?bytes={32 << 20} HTTP/1.1\r\nHost: {host(box)}\r\n\r\n".encode())
        time.sleep(0.5)
        for _ in range(50):
            assert lines_of(ask_on(quick, host(box)))
        reply = slow.reply()
        assert len(reply.body) == 32 << 20 and reply.body[:256] == bytes(range(256)), len(reply.body)
        assert lines_of(ask_on(slow, host(box)))
    raw.SEEN.clear()


# --- TLS --------------------------------------------------------------------------------------------------------------

def certificate(directory, domain="sbx.test"):
    done = subprocess.run([service.GLOVEBOX, "cert", domain, "--out", directory], env=service.CLEAN, capture_output=True, text=True,
                          timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@tap.slow
def test_https_ports(world):
    """httpsPorts: TLS to a program whose certificate nobody knows"""
    box = world.client.create(timeout=600, network={"httpsPorts": [3443]})
    certificate(f"{world.service.state}/inner", "inside.test")
    for name in ("cert", "key"):
        data = pathlib.Path(f"{world.service.state}/inner/{name}.pem").read_bytes()
        assert box.ask("POST", f"/files?path=/home/user/{name}.pem", data, {"Content-Type": "application/octet-stream"}).status == 200
    program = SERVER.replace(b"    peer = Peer(sock)\n", b"    import ssl\n    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)\n"
                             b"    context.load_cert_chain('/home/user/cert.pem', '/home/user/key.pem')\n"
                             b"    sock = context.wrap_socket(sock, server_side=True)\n"
                             b"    time.sleep(0.5)\n"  # in which its tickets arrive, and more than the connection holds
                             b"    peer = Peer(sock)\n")
    assert program != SERVER
    start(box, 3443, program=program, name="tls.py")
    start(box)
    assert lines_of(visit(world, box, "/echo", port=3443))[0] == "GET /echo HTTP/1.1"
    assert len(visit(world, box, f"/big?bytes={8 << 20}", port=3443).body) == 8 << 20
    reply = visit(world, box, "/echo", "POST", body=b"x" * (32 << 20), port=3443)
    assert reply.json()["bytes"] == 32 << 20, reply
    assert lines_of(visit(world, box, "/echo"))  # the other port stays plain
    other = world.client.create(timeout=600, network={"httpsPorts": [PORT]})
    start(other)
    reply = visit(world, other, "/echo")
    assert reply.status == 502, reply
    for port in (49983, 49999):
        assert world.client.ask("POST", "/v2/sandboxes", {"templateID": "base", "network": {"httpsPorts": [port]}}).status == 400


def test_tls(world):
    """glovebox cert: https://PORT-ID.DOMAIN with curl, and a WebSocket over TLS"""
    directory = f"{world.service.state}/tls"
    said = certificate(directory)
    assert "--tls-cert" in said and "NODE_EXTRA_CA_CERTS" in said, said
    assert oct(os.stat(f"{directory}/key.pem").st_mode & 0o777) == "0o600"
    again = subprocess.run([service.GLOVEBOX, "cert", "sbx.test", "--out", directory], env=service.CLEAN, capture_output=True, text=True,
                           timeout=30, check=False)
    assert again.returncode == 1 and "there already" in again.stderr, again
    port = service.free_port()
    running = service.Service({"server.tls_cert": f"{directory}/cert.pem", "server.tls_key": f"{directory}/key.pem",
                               "server.domain": f"sbx.test:{port}"}, port=port, ca=f"{directory}/ca.pem").start()
    try:
        over_tls(running, f"{directory}/ca.pem")
    finally:
        running.stop()


def curl(ca, port, url, *more):
    return subprocess.run(["curl", "-sS", "-m", "20", "--cacert", ca, "--connect-to", f"::127.0.0.1:{port}", url, *more],
                          capture_output=True, text=True, timeout=30, check=False)


def over_tls(running, ca):
    status, created, _ = running.ask("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 600}, {"Host": "api.sbx.test"})
    assert status == 201, created
    name, token = created["sandboxID"], {"X-Access-Token": created.get("envdAccessToken") or ""}
    envd = {"Host": f"49983-{name}.sbx.test"} | token
    assert running.ask("POST", "/files?path=/home/user/server.py", SERVER, envd | {"Content-Type": "application/octet-stream"})[0] == 200
    message = raw.envelope(json.dumps({"process": {"cmd": "/bin/sh", "args": [
        "-c", f"setsid python3 /home/user/server.py {PORT} >/dev/null 2>&1 </dev/null &"]}, "stdin": False}).encode())
    assert running.ask("POST", "/process.Process/Start", message, envd | {"Content-Type": "application/connect+json"})[0] == 200
    base = f"https://{PORT}-{name}.sbx.test:{running.port}"
    # -f: of an answer that says "nothing listens yet" nothing may stand before the one that counts.
    done = curl(ca, running.port, f"{base}/echo", "-f", "--retry", "8", "--retry-all-errors")
    lines = json.loads(done.stdout)["lines"]
    assert field(lines, "X-Forwarded-Proto") == ["https"], done
    done = curl(ca, running.port, f"{base}/big?bytes={8 << 20}", "-o", "/dev/null", "-w", "%{size_download}")
    assert done.stdout == str(8 << 20), done
    assert curl("/etc/ssl/certs/ca-certificates.crt", running.port, f"{base}/echo").returncode != 0
    socket_over_tls(running, ca, f"{PORT}-{name}.sbx.test")


def socket_over_tls(running, ca, name):
    import ssl  # pylint: disable=import-outside-toplevel
    context = ssl.create_default_context(cafile=ca)
    with socket.create_connection(("127.0.0.1", running.port), 20) as plain, context.wrap_socket(plain, server_hostname=name) as peer:
        peer.sendall(f"GET /socket?greeting=hi HTTP/1.1\r\nHost: {name}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                     f"Sec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        got = b""
        while b"\r\n\r\nhi" not in got:
            got += peer.recv(4096)
        for size in (1, 1000, 16384, 40000, 64 << 10):
            data = os.urandom(size)
            peer.sendall(data)
            back = b""
            while len(back) < size:
                back += peer.recv(1 << 16)
            assert back == data, (size, len(back))
        peer.sendall(b"BYE")
        assert peer.recv(10) == b"BYE" and peer.recv(10) == b""
