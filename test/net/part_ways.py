# SPDX-License-Identifier: Apache-2.0
"""Ways round the doors of a box that has network: none (NW-03, NW-18, NW-19, NW-20, NW-21)."""
import socket
import threading

import part_none
import places
import suite

RAW = """
import ctypes, errno, socket
libc = ctypes.CDLL(None, use_errno=True)
for family, kind, protocol in ((socket.AF_INET, socket.SOCK_RAW, 1), (socket.AF_INET, socket.SOCK_RAW, 6), (socket.AF_INET, socket.SOCK_RAW, 255),
                               (socket.AF_INET6, socket.SOCK_RAW, 58), (socket.AF_PACKET, socket.SOCK_RAW, 768), (socket.AF_INET, socket.SOCK_DGRAM, 1),
                               (socket.AF_INET6, socket.SOCK_DGRAM, 58), (socket.AF_NETLINK, socket.SOCK_RAW, 12)):
    try:
        socket.socket(family, kind, protocol)
        print("open", family, kind, protocol)
    except OSError as error:
        pass
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
for option, value in ((socket.SO_MARK, 1), (socket.SO_BINDTODEVICE, b"lo")):
    try:
        s.setsockopt(socket.SOL_SOCKET, option, value)
        s.connect(("45.67.90.10", 22)); s.settimeout(2); print("connected with", option, s.recv(20) and "data")
    except OSError:
        pass
"""


def host_listener(address):
    """A service of the machine's own that must never be reached: the connections it got."""
    server, got = socket.create_server((address, 0), family=socket.AF_INET6 if ":" in address else socket.AF_INET), []

    def accept():
        while True:
            try:
                got.append(server.accept()[1])
            except OSError:
                return

    threading.Thread(target=accept, daemon=True).start()
    return server, got


def test_host_services(world):
    """NW-03: services of the machine, on loopback and on its own address, also where everything is allowed"""
    listeners = [host_listener(address) for address in ("127.0.0.1", places.MACHINE, "::1")]
    box = world.box("0.0.0.0/0", "web.example:*")
    for server, got in listeners:
        address, port = server.getsockname()[:2]
        literal = f"[{address}]" if ":" in address else address
        for result in box.attempt({"do": "raw", "to": [address, port], "wait": 2}, {"do": "connect", "to": f"{literal}:{port}", "wait": 2},
                                  {"do": "proxy", "send": f"GET http://{literal}:{port}/ HTTP/1.1\r\nHost: {literal}:{port}\r\n\r\n", "wait": 2}):
            assert result.get("status", 400) >= 400, result
        assert not got, (address, got)
        server.close()
    api = world.running.port
    assert "error" in box.one(do="raw", to=["127.0.0.1", api])
    assert box.one(do="connect", to=f"127.0.0.1:{api}")["status"] == 403


def test_datagrams(world):
    """NW-19: UDP, QUIC and ICMP end at once, and nothing leaves"""
    box = world.box("web.example:*", "0.0.0.0/0")
    world.net.forget()
    attempts = [{"do": "udp", "to": [host, port], "wait": 0.3} for host in part_none.EVERYWHERE for port in (80, 123, 443, 853, 4500)]
    for what, result in zip(attempts, box.attempt(*attempts, timeout=200)):
        assert "error" in result, (what, result)
    assert not world.net.sent(), world.net.sent()[:20]


def test_raw_sockets(world):
    """NW-18: no raw, packet or ping socket, no device, no mark that passes the redirect, in a box with network either"""
    box = world.box("web.example")
    box.put("/home/user/raw.py", RAW.encode())
    status, out, err = box.command("python3 /home/user/raw.py")
    assert (status, out) == (0, ""), (out, err)
    for tool in ("ip link add x type veth", "ip route del local default dev lo", "ip route add default dev lo", "nft flush ruleset", "nft list ruleset",
                 "tc qdisc add dev lo root pfifo", "iptables -F"):
        status, out, err = box.command(f"PATH=/usr/sbin:/usr/bin {tool}")
        assert status != 0, (tool, out, err)
    assert box.one(do="raw", to=["45.67.90.10", 22], wait=2).get("data", "") == "", "the redirect holds"
    assert not world.net.raw() and not world.net.requests()


def test_box_root(world):
    """NW-18: the box's own root cannot change the redirect, the routes or the doors"""
    box = world.box("web.example")
    for tool in ("ip route flush table all", "ip link set lo down", "nft flush ruleset", "nft delete table inet glovebox", "ip address add 45.67.89.9/24 dev lo",
                 "ip link add x type dummy"):
        box.command(f"sudo -n env PATH=/usr/sbin:/usr/bin {tool}")
    result = box.one(do="raw", to=["45.67.90.10", 22], wait=2)
    assert not result.get("data"), result
    assert not world.net.raw() and not [each for each in world.net.sent() if each[2] == 22], world.net.sent()
    status, out, _ = box.command("curl -sSf -m 30 http://web.example/hello")
    assert (status, out) == (0, "hello from web.example\n")


def test_other_boxes(world):
    """NW-20: a box does not reach another's doors or ports, nor its policy"""
    one, other = world.box("web.example"), world.box("api.example")
    with other.start("python3 -m http.server 41234", timeout=30):
        assert suite.service.wait_for(lambda: "error" not in other.one(do="raw", to=["127.0.0.1", 41234], send="GET / HTTP/1.0\r\n\r\n"))
        for address in ("127.0.0.1", "127.0.0.2", "0.0.0.0", "::1"):
            assert "error" in one.one(do="raw", to=[address, 41234]), address
    assert one.one(do="connect", to="api.example:443")["status"] == 403
    assert other.one(do="connect", to="api.example:443", hello={"names": ["api.example"]}, wait=1)["status"] == 200
    assert other.one(do="connect", to="web.example:443")["status"] == 403


def test_listener_is_inside(world):
    """NW-21: what listens in a box is not to be found outside of it"""
    box = world.box("web.example")
    with box.start("python3 -m http.server 41235 --bind 0.0.0.0", timeout=30):
        assert suite.service.wait_for(lambda: "error" not in box.one(do="raw", to=["127.0.0.1", 41235], send="GET / HTTP/1.0\r\n\r\n"))
        for address in ("127.0.0.1", places.MACHINE):
            try:
                socket.create_connection((address, 41235), 1).close()
            except OSError:
                continue
            raise AssertionError(f"{address} answers")


def test_doors_are_the_boxes_own(world):
    """the doors' ports are only on the box's loopback, and none of the machine's"""
    world.box("web.example")
    for port in (3128, 3129, 3153):
        for address in ("127.0.0.1", places.MACHINE):
            try:
                socket.create_connection((address, port), 1).close()
            except OSError:
                continue
            raise AssertionError(f"{address}:{port} answers")


def test_visitors_of_doors(world):
    """who visits the ports of a box's own doors from outside gets nowhere with them"""
    box = world.box("web.example")
    world.net.forget()
    for port in ("3128", "3129", "3153"):
        for method, path in (("GET", "/hello"), ("GET", "//web.example/hello"), ("GET", "http://web.example/hello"),
                             ("CONNECT", "web.example:80")):
            reply = box.ask(method, path, headers={"E2b-Sandbox-Port": port})
            assert reply.status >= 400, (port, method, path, reply)
    assert not world.net.requests()


def test_catch_port(world):
    """the catching port, spoken to directly, and loops of the doors to themselves lead nowhere"""
    box = world.box("0.0.0.0/0")
    attempts = [{"do": "raw", "to": ["127.0.0.1", port], "send": "GET /hello HTTP/1.1\r\nHost: web.example\r\n\r\n", "wait": 3} for port in (3129, 3153)]
    attempts += [{"do": "connect", "to": f"127.0.0.1:{port}", "wait": 3} for port in (3128, 3129, 3153, 53)]
    for what, result in zip(attempts, box.attempt(*attempts)):
        assert "hello from" not in result.get("data", "") and result.get("status", 403) == 403, (what, result)
    assert not world.net.requests()


def test_own_listener(world):
    """what a box listens on at every address does not catch what it sends out"""
    box = world.box("web.example:80,443,8080")
    with box.start("exec python3 -m http.server 8080 --bind 0.0.0.0", timeout=30):
        assert suite.service.wait_for(lambda: "error" not in box.one(do="raw", to=["127.0.0.1", 8080], send="GET / HTTP/1.0\r\n\r\n"))
        status, out, err = box.command("curl -sSf -m 30 --noproxy '*' http://web.example:8080/hello")
    assert (status, out) == (0, "hello from web.example:8080\n"), (out, err)
