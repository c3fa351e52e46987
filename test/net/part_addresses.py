# SPDX-License-Identifier: Apache-2.0
"""Addresses that no box reaches, whatever leads there (NW-02, NW-05, NW-06), and what a DNS server can do about it
(NW-07, NW-08). In the laboratory's world every one of these addresses has a server that would answer."""
import places
import suite

SPECIAL = ("0.0.0.1", "10.0.0.1", "10.255.255.53", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.8.8.8", "169.254.169.254", "172.16.0.1",
           "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.80",
           "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", places.MACHINE)
SPECIAL6 = ("::", "::1", "::ffff:10.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::10.0.0.1", "64:ff9b::a00:1", "64:ff9b::a9fe:a9fe",
            "64:ff9b::808:808", "64:ff9b:1::a00:1", "100::1", "2001::1", "2001:0:4136:e378:8000:63bf:f5ff:fffe", "2001:db8::1", "2002:a00:1::1", "2002:7f00:1::1",
            "2002:a9fe:a9fe::", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1", "ff0e::1", places.MACHINE6)
METADATA = ("169.254.169.254", "[fd00:ec2::254]", "100.100.100.200", "metadata.google.internal")


def bracketed(address):
    return f"[{address}]" if ":" in address else address


def by_literal(address, port=80):
    text = bracketed(address)
    yield {"do": "connect", "to": f"{text}:{port}", "send": "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"}
    yield {"do": "proxy", "send": f"GET http://{text}/hello HTTP/1.1\r\nHost: {text}\r\nConnection: close\r\n\r\n"}
    if not address.startswith(("0.", "127.", "::1", "::ffff:127.")) and address != "::":
        yield {"do": "raw", "to": [address, port], "send": "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"}


def by_name(name):
    """At 443 the proxy answers when it knows where the name leads; at 80 when it has the request."""
    yield {"do": "connect", "to": f"{name}:443", "hello": {"names": [name]}}
    yield {"do": "connect", "to": f"{name}:80", "send": f"GET /hello HTTP/1.1\r\nHost: {name}\r\n\r\n"}
    yield {"do": "socks", "host": name, "port": 80, "send": f"GET /hello HTTP/1.1\r\nHost: {name}\r\n\r\n"}
    yield {"do": "proxy", "send": f"GET http://{name}/hello HTTP/1.1\r\nHost: {name}\r\n\r\n"}


def reason(result):
    """Why it was refused, wherever that is said."""
    said = [line.split(": ")[1] for line in result.get("data", "").split("\r\n") if line.startswith("X-Glovebox-Reason: ")]
    return result.get("reason") or (said[0] if said else None)


def none_answers(world, attempts, results):
    for what, result in zip(attempts, results):
        assert "hello from" not in result.get("data", "") and not result.get("data", "").startswith("\x16"), (what, result)
        assert result.get("status", 400) >= 400 or reason(result), (what, result)
        assert result["seconds"] < suite.FAST, (what, result)
    assert not world.net.connections() and not world.net.raw(), world.net.connections()
    sent = [each for each in world.net.sent() if each[0] != "udp"]
    assert not sent, sent[:20]


def test_control(world):
    """the world answers at these addresses to whom it can hear"""
    for address in ("10.0.0.1", "169.254.169.254", "fd00:ec2::254"):
        status, out, err = world.net.run(["curl", "-sS", "-m", "5", f"http://{bracketed(address)}/hello"])
        assert (status, out) == (0, f"hello from {bracketed(address)}\n"), (out, err)


def test_everything_allowed(world):
    """NW-05, NW-06: special addresses stay out of reach where everything is allowed"""
    box = world.box("0.0.0.0/0")
    attempts = [what for address in SPECIAL + SPECIAL6 for what in by_literal(address)]
    results = box.attempt(*attempts)
    none_answers(world, attempts, results)
    for what, result in zip(attempts, results):
        if what["do"] == "connect":
            assert result["status"] == 403 and result["reason"] in ("private_address", "bad_name"), (what, result)
    assert box.one(do="connect", to="45.67.90.10:80", send="GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")["data"].endswith("hello from x\n")


def test_named(world):
    """a client's own rule for a special range opens nothing"""
    box = world.box("10.0.0.0/8", "169.254.169.254", "fd00::/8", "127.0.0.0/8", "0.0.0.0/0")
    attempts = [what for address in ("10.0.0.1", "169.254.169.254", "fd00:ec2::254", "127.0.0.1") for what in by_literal(address)]
    none_answers(world, attempts, box.attempt(*attempts))


def test_metadata(world):
    """NW-02: the metadata services of clouds, by address and by name, with a line in the log"""
    world.net.records({"metadata.google.internal": {"A": ["169.254.169.254"]}})
    for box in (world.box("metadata.google.internal", "0.0.0.0/0"), world.box("web.example")):
        attempts = [what for host in METADATA for what in by_name(host)]
        none_answers(world, attempts, box.attempt(*attempts))
        box.logged(port=80, verdict="refused")
        assert len(box.log()["connections"]) >= len(METADATA), box.log()


def test_names_that_lead_there(world):
    """NW-05, NW-06: an allowed name whose address is special is refused, also in the box's DNS"""
    names = {f"a{number}.wild.example": {"A" if ":" not in address else "AAAA": [address], "ttl": 0} for number, address in enumerate(SPECIAL + SPECIAL6)}
    world.net.records(names)
    box = world.box("*.wild.example")
    attempts = [what for name in names for what in by_name(name)]
    none_answers(world, attempts, box.attempt(*attempts))
    for name, result in zip(names, box.attempt(*({"do": "resolve", "name": name} for name in names))):
        assert "error" in result, (name, names[name], result)


def test_mixed(world):
    """NW-08: one special address among the answers refuses the name"""
    world.net.records({"mixed.wild.example": {"A": ["45.67.90.71", "10.0.0.1", "45.67.90.72"], "ttl": 0},
                       "mixed6.wild.example": {"A": ["45.67.90.71"], "AAAA": ["fd00::1"], "ttl": 0},
                       "alias.wild.example": {"CNAME": "inner.lan", "ttl": 0}, "inner.lan": {"A": ["192.168.0.1"], "ttl": 0}})
    box = world.box("*.wild.example")
    attempts = [what for name in ("mixed", "mixed6", "alias") for what in by_name(f"{name}.wild.example")]
    results = box.attempt(*attempts)
    none_answers(world, attempts, results)
    assert all(reason(result) == "private_address" for result in results if "reply" not in result), results
    assert "error" in box.one(do="resolve", name="mixed.wild.example")


def test_rebinding(world):
    """NW-07: a name that changes its address between question and connection leads nowhere else"""
    world.net.records({"moving.wild.example": {"turns": [{"A": ["45.67.90.73"], "ttl": 0}, {"A": ["10.0.0.1"], "ttl": 0}]}})
    box = world.box("*.wild.example")
    get = "GET /hello HTTP/1.1\r\nHost: moving.wild.example\r\nConnection: close\r\n\r\n"
    results = [box.one(do="connect", to="moving.wild.example:80", send=get) for _ in range(4)]
    assert "hello from" in results[0]["data"], results[0]
    at = {each["at"] for each in world.net.connections()}
    assert at == {"45.67.90.73"}, at
    assert not [each for each in world.net.sent() if each[1] == "10.0.0.1"], world.net.sent()


def test_told_is_not_kept(world):
    """an address that DNS told for one name is no way to another, nor to another port"""
    box = world.box("web.example", "api.example:5432")
    address = box.one(do="resolve", name="web.example")["addresses"][0]
    results = box.attempt({"do": "raw", "to": [address, 5432], "send": "x\n"}, {"do": "raw", "to": ["45.67.90.30", 5432], "send": "x\n"},
                          {"do": "raw", "to": ["45.67.91.66", 443], "send": "x\n"})
    for result in results:
        assert not result.get("data"), result
    assert not world.net.raw(), world.net.raw()
    assert box.one(do="resolve", name="api.example")["addresses"] == ["45.67.90.30"]
    assert box.one(do="raw", to=["45.67.90.30", 5432], send="x\n", until="x\n")["data"] == "x\n"


def test_private_by_operator(world):
    """a range that the operator opens is reached by rules that name it, and its neighbours are not"""
    running = world.service(egress__private="10.1.0.0/16")
    world.net.records({"mirror.lan": {"A": ["10.1.2.3"]}, "router.lan": {"A": ["10.2.2.3"]}})
    box = world.box("mirror.lan", "router.lan", "10.1.9.0/24", running=running)
    get = "GET /hello HTTP/1.1\r\nHost: x.lan\r\nConnection: close\r\n\r\n"
    results = [box.one(do="connect", to=to, send=get.replace("x.lan", to.partition(":")[0]))
               for to in ("mirror.lan:80", "10.1.9.1:80", "router.lan:80", "10.2.9.1:80", "10.1.8.1:80")]
    assert ["hello from" in result.get("data", "") for result in results] == [True, True, False, False, False], results
    world.end_service(egress__private="10.1.0.0/16")


def test_operator_denies(world):
    """what the operator denies stays denied, whatever a client allows"""
    running = world.service(egress__deny="evil.example 45.67.91.0/24 *.bad.example")
    world.net.records({"good.wild.example": {"A": ["45.67.91.1"]}, "x.bad.example": {"A": ["45.67.90.1"]}})
    box = world.box("evil.example", "*.wild.example", "x.bad.example", "45.67.91.0/24", running=running)
    attempts = [what for host in ("evil.example", "good.wild.example", "x.bad.example", "45.67.91.5") for what in by_name(host)]
    for what, result in zip(attempts, box.attempt(*attempts)):
        assert result.get("reply") or reason(result) == "denied_by_operator", (what, result)
    assert not world.net.connections()
    world.end_service(egress__deny="evil.example 45.67.91.0/24 *.bad.example")


def test_operator_denies_names(world):
    """a name that the operator denies is denied too where its address or everything is allowed"""
    running = world.service(egress__deny="evil.example", egress__internet="all")
    get = "GET /hello HTTP/1.1\r\nHost: {}\r\n\r\n".format
    evil, good = {"names": ["evil.example"]}, {"names": ["web.example"]}
    at = "45.67.91.66"
    denied = ({"do": "connect", "to": f"{at}:443", "hello": evil}, {"do": "connect", "to": f"{at}:8443", "hello": evil | {"split": 7}},
              {"do": "connect", "to": f"{at}:443", "hello": good | {"ech": True}}, {"do": "raw", "to": [at, 443], "hello": evil},
              {"do": "connect", "to": f"{at}:80", "send": get("evil.example")}, {"do": "raw", "to": [at, 80], "send": get("EVIL.example.")},
              {"do": "raw", "to": [at, 8080], "send": get("evil.example:8080")})
    allowed = ({"do": "connect", "to": f"{at}:443", "hello": good, "limit": 1}, {"do": "raw", "to": [at, 443], "hello": {}, "limit": 1},
               {"do": "raw", "to": [at, 8080], "send": get("web.example:8080") + get("evil.example:8080")},
               {"do": "raw", "to": [at, 5432], "send": "\0", "until": "\0"}, {"do": "raw", "to": [at, 22], "until": "\r\n"})
    free, listed = world.box(running=running), world.box(f"{at}/24", running=running)
    world.net.forget()
    for box in (free, listed):
        for what, result in zip(denied, box.attempt(*denied)):
            assert not result.get("data", "").startswith("\x16") and "hello from" not in result.get("data", ""), (what, result)
        found = box.attempt(*allowed)
        assert all(result.get("data") for result in found), found
        assert found[2]["data"].count("hello from web.example:8080\n") == 1, found[2]
        assert box.logged(reason="denied_by_operator", name="evil.example", port=443)
    assert not free.one(do="connect", to="web.example:443", hello=evil).get("data", "").startswith("\x16")
    assert world.net.carried(b"evil.example") == 0 and world.net.carried(b"EVIL.example") == 0
    world.end_service(egress__deny="evil.example", egress__internet="all")
