# SPDX-License-Identifier: Apache-2.0
"""Names: what is one, which are allowed, and that nobody is asked about the others (NW-04, NW-09, NW-10, NW-12)."""
import places
import suite

NOT_NAMES = ("web.example\0.evil.example", "web.example%00.evil.example", "web.example%2eevil.example", "evil.example#web.example",
             "evil.example@web.example", "web.example@evil.example", "user:pass@evil.example", "web.example\t", "web example", " web.example", "-web.example",
             "web..example", ".web.example", "*.example", "web.example..", "w" * 64 + ".example", "a." * 127 + "example", "w\xc3\xa4b.example",
             "web.example\\@evil.example", "web.example/evil", "web.example?x", "[web.example]", "web.example,evil.example", "")
# Addresses in every way that some parser takes for one.
LOCAL = ("127.1", "127.0.1", "0x7f.1", "0x7f000001", "2130706433", "017700000001", "0177.0.0.1", "127.0.0.1", "0.0.0.0", "0", "[::]", "[::1]",
         "[::ffff:127.0.0.1]", "[0:0:0:0:0:ffff:7f00:1]", "localhost", "localhost.", "x.localhost", "LOCALHOST", "127.0.0.1.", "127.000.000.001", "127.0.0.1%00",
         "[::1%lo]", "[fe80::1%25lo]")
OTHERS = ("evilweb.example", "web.example.evil.example", "evil-web.example", "web.example.example", "eweb.example", "example", "xn--web-0ra.example",
          "wild.example", "evilwild.example", "a.wild.example.evil.example")
SAME = ("web.example", "WEB.example", "web.Example", "web.example.")
BELOW = ("a.wild.example", "b.a.wild.example", "A.WILD.EXAMPLE", "_x.wild.example")


def refused(result):
    """By the proxy, or inside the tunnel: at port 80 it listens for the request before it decides."""
    inner = result.get("data", "").startswith("HTTP/1.1 4") and "X-Glovebox-Reason" in result["data"]
    return result.get("status", 0) >= 400 or result.get("reply", 0) != 0 or "error" in result or inner


def every_way(host, port=80):
    """The same host by CONNECT, by an absolute address, and by SOCKS where it can have the bytes."""
    yield {"do": "connect", "to": f"{host}:{port}", "send": f"GET /hello HTTP/1.1\r\nHost: {host}\r\n\r\n"}
    yield {"do": "proxy", "send": f"GET http://{host}:{port}/hello HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n"}
    if len(host) < 256:
        yield {"do": "socks", "host": host.strip("[]") if ":" in host else host, "port": port, "send": f"GET /hello HTTP/1.1\r\nHost: {host}\r\n\r\n"}


def none_gets_through(world, box, hosts, port=80):
    attempts = [what for host in hosts for what in every_way(host, port)]
    for what, result in zip(attempts, box.attempt(*attempts)):
        assert refused(result), (what, result)
        assert "hello from" not in result.get("data", ""), (what, result)
        assert result["seconds"] < suite.FAST, (what, result)
    assert not world.net.requests(), world.net.requests()


def test_not_names(world):
    """NW-09: NUL, blanks, percent signs, @ and others in a host's name are refused before any lookup"""
    box = world.box("web.example", "*.wild.example", "evil.example:1")
    none_gets_through(world, box, NOT_NAMES)
    assert not world.net.queries(), world.net.queries()


def test_line_ends(world):
    """NW-09: line ends in a host's name reach nobody"""
    box = world.box("web.example")
    attempts = [{"do": "socks", "host": host, "port": 80} for host in ("web.example\r\nX: y", "web.example\n", "\rweb.example")]
    attempts += [{"do": "connect", "to": "web.example\n:80"}, {"do": "connect", "to": "web.example:80\r\n \r\n"},
                 {"do": "connect", "to": "web.example:80\rX"}]
    for what, result in zip(attempts, box.attempt(*attempts)):
        assert refused(result), (what, result)
    assert not world.net.queries() and not world.net.requests(), world.net.queries()


def test_bad_ports(world):
    """ports that are none, and the proxy's own, are refused"""
    box = world.box("web.example:*")
    attempts = [{"do": "connect", "to": f"web.example{port}"}
                for port in ("", ":", ":0", ":65536", ":-1", ":+80", ":80 ", ":0x50", ":080000", ":80:80", ":99999999999999999999")]
    for what, result in zip(attempts, box.attempt(*attempts)):
        assert refused(result), (what, result)
    assert not world.net.connections(), world.net.connections()


def test_local_addresses(world):
    """NW-04: this machine's loopback, in every way one can write it, also where everything is allowed"""
    for box in (world.box("web.example"), world.box("0.0.0.0/0")):
        none_gets_through(world, box, LOCAL)
        assert not world.net.queries(), world.net.queries()


def test_other_names(world):
    """NW-10: names that only look like an allowed one are refused, and never looked up"""
    box = world.box("web.example", "*.wild.example")
    none_gets_through(world, box, OTHERS)
    assert not world.net.queries(), world.net.queries()
    assert box.logged(name="evilweb.example")["reason"] == "not_allowed"


def test_same_names(world):
    """NW-10: case and a dot at the end make no other name; *.name has everything below it"""
    box = world.box("web.example", "*.wild.example")
    for host in SAME + BELOW:
        for what in every_way(host):
            result = box.attempt(what)[0]
            assert "hello from" in result.get("data", ""), (what, result)
    assert set(world.net.asked()) <= {"web.example", *(name.lower() for name in BELOW)}, world.net.asked()


def test_ports(world):
    """NW-12: an allowed host at another port is refused: proxy, SOCKS and caught"""
    box = world.box("web.example", "api.example:8080")
    address = places.HOSTS["web.example"][0]
    assert box.one(do="resolve", name="web.example")["addresses"] == [address]
    attempts = [{"do": "connect", "to": "web.example:22"}, {"do": "connect", "to": "api.example:443"}, {"do": "connect", "to": "web.example:8080"},
                {"do": "socks", "host": "web.example", "port": 22}, {"do": "proxy", "send": "GET http://web.example:8080/ HTTP/1.1\r\nHost: web.example:8080\r\n\r\n"},
                {"do": "raw", "to": [address, 22]}, {"do": "raw", "to": [address, 5432], "send": "x"}]
    for what, result in zip(attempts, box.attempt(*attempts)):
        assert refused(result) or (result.get("end") != "silence" and not result["data"]), (what, result)
        assert result["seconds"] < suite.FAST, (what, result)
    assert box.logged(name="web.example", port=22)["reason"] == "port_not_allowed"
    assert not world.net.raw() and not world.net.requests(), world.net.raw()


def test_relay(world):
    """NW-14: what passes on a request for others inside the box gets the same answer"""
    box = world.box("web.example")
    relay = ("import socket, threading\ns = socket.create_server(('127.0.0.1', 4128))\nprint('ready', flush=True)\n"
             "def go(a, b):\n while d := a.recv(65536): b.sendall(d)\n b.shutdown(1)\n"
             "while True:\n c, _ = s.accept(); u = socket.create_connection(('127.0.0.1', 3128))\n"
             " threading.Thread(target=go, args=(c, u)).start(); threading.Thread(target=go, args=(u, c)).start()\n")
    box.put("/home/user/relay.py", relay.encode())
    with box.start("exec python3 -u /home/user/relay.py", timeout=30) as connection:
        events = suite.raw.messages(connection)
        next(events), next(events)  # pylint: disable=expression-not-assigned
        for header in ("", "X-Forwarded-For: 127.0.0.1\r\n", "X-Glovebox-Sandbox: other\r\nProxy-Authorization: Basic YWRtaW46YWRtaW4=\r\n"):
            refusal = box.one(do="connect", to="other.example:443", proxy=["127.0.0.1", 4128], headers=header)
            assert refusal.get("status") == 403 and refusal.get("reason") == "not_allowed", refusal
    assert not world.net.queries(), world.net.queries()
