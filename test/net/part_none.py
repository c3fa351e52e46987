# SPDX-License-Identifier: Apache-2.0
"""A box that was allowed nothing: no packet leaves, whatever it tries."""
import places
import service
import suite

EVERYWHERE = ("1.1.1.1", "8.8.8.8", "45.67.90.10", places.WORLD, places.MACHINE, "10.0.0.1", "192.168.1.1", "172.16.0.1", "100.64.0.1",
              "169.254.169.254", "100.100.100.200", "203.0.113.80", "224.0.0.251", "255.255.255.255", "240.0.0.1", "2606:4700:4700::1111",
              places.WORLD6, "fd00:ec2::254", "64:ff9b::2d43:5a0a", "::ffff:45.67.90.10", "2002:2d43:5a0a::1", "ff02::fb")
PORTS = (22, 53, 80, 443, 853, 3128, 3129)
NO_WAY = {"ENETUNREACH", "EHOSTUNREACH", "EACCES", "EADDRNOTAVAIL", "EINVAL", "EPERM", "ENETDOWN"}


def everything():
    for host in EVERYWHERE:
        for port in PORTS:
            yield {"do": "raw", "to": [host, port], "send": "GET / HTTP/1.0\r\n\r\n", "wait": 2}
            yield {"do": "udp", "to": [host, port], "wait": 0.2}


def try_all(world, box):
    world.net.forget()
    results = box.attempt(*everything())
    for what, result in zip(everything(), results):
        assert result.get("error") in NO_WAY, (what, result)
        assert result["seconds"] < suite.FAST, (what, result)
    names = [{"do": "resolve", "name": name} for name in ("web.example", "metadata.google.internal", "a.b.c.evil.example")]
    questions = [{"do": "dns", "name": "secret.evil.example", "server": server, "over": over, "wait": 1}
                 for server in ("127.0.0.53", "127.0.0.1", "8.8.8.8", places.WORLD) for over in ("udp", "tcp")]
    proxies = [{"do": "connect", "to": "web.example:443"}, {"do": "socks", "host": "web.example", "port": 80},
               {"do": "proxy", "send": "GET http://web.example/hello HTTP/1.1\r\nHost: web.example\r\n\r\n"}]
    for what, result in zip(names + questions + proxies, box.attempt(*names, *questions, *proxies)):
        assert "error" in result, (what, result)
        assert result["seconds"] < suite.FAST, (what, result)


def test_control(world):
    """the laboratory sees a packet that is sent"""
    world.net.run(["/usr/bin/python3", "-c", "import socket; socket.create_connection(('8.8.8.8', 443), 3)"])
    assert ("tcp", "8.8.8.8", 443) in world.net.sent(), world.net.sent()


def test_default(world):
    """a box that names no network sends no packet, whatever it tries (NW-01, NW-02, NW-05, NW-06, NW-19)"""
    try_all(world, world.box())
    assert not world.net.sent(), world.net.sent()[:20]
    assert not world.net.queries(), world.net.queries()


def test_no_internet(world):
    """nor does one with allow_internet_access false"""
    box = world.box()
    assert box.update(allow_internet_access=False).status in (200, 204)
    try_all(world, box)
    assert not world.net.sent(), world.net.sent()[:20]


def test_costs_nothing(world):
    """a service whose boxes have no network has nothing open for them: no door, no rule, no process"""
    running = world.service(server__domain="none.example")
    box = world.box(running=running)
    # One that is still being made for the pool is not in a network of its own yet.
    pids = [pid for pid in running.agents() if service.program_of(pid) == "glovebox-agent"]
    assert len(pids) >= 1, pids
    for pid in pids:
        for table in ("tcp", "tcp6", "udp", "udp6", "route"):
            with open(f"/proc/{pid}/net/{table}", encoding="ascii") as lines:
                found = lines.readlines()[1:]
            assert not found, (table, found)
    assert box.command("echo fine")[1] == "fine\n"
    world.end_service(server__domain="none.example")
