# SPDX-License-Identifier: Apache-2.0
"""The name in a TLS handshake must be the one that was allowed (NW-11)."""
import places
import suite

WEB = places.HOSTS["web.example"][0]
# ClientHellos by hand, and why each is refused.
BAD = (({"names": ["evil.example"]}, "sni_mismatch"), ({"names": ["www.web.example"]}, "sni_mismatch"), ({"names": []}, "no_sni"),
       ({"names": ["web.example"], "ech": True}, "ech"), ({"names": ["web.example", "evil.example"]}, None), ({"names": ["evil.example", "web.example"]}, None),
       ({"names": ["web.example"], "twice": True}, None), ({"names": [""]}, None), ({"names": ["web.example\0.evil.example"]}, None),
       ({"names": ["127.0.0.1"]}, None), ({"names": [WEB]}, None))


def handshakes(world):
    """Handshakes that a host has seen: none may be there that was refused."""
    return [each for each in world.net.sent() if each[0] == "tcp" and each[2] == 443]


def not_answered(result):
    """Nothing of a server's came back: no ServerHello, and it ended."""
    return not result.get("data", "").startswith("\x16") and result.get("end") != "silence"


def test_tunnel(world):
    """NW-11: CONNECT to an allowed host with another name, none, two, or a hidden one in the handshake"""
    box = world.box("web.example", "evil.example:80")
    for hello, reason in BAD:
        result = box.one(do="connect", to="web.example:443", hello=hello)
        assert not_answered(result), (hello, result)
        assert result["seconds"] < suite.FAST, (hello, result)
        if reason:
            box.logged(name="web.example", port=443, reason=reason)
    assert not any(each["sni"] for each in world.net.requests()), world.net.requests()
    assert world.net.carried(b"evil.example") == 0


def test_caught(world):
    """NW-11: the same for connections that know of no proxy"""
    box = world.box("web.example", "evil.example:80")
    assert box.one(do="resolve", name="web.example")["addresses"] == [WEB]
    for hello, _ in BAD[1:]:
        result = box.one(do="raw", to=[WEB, 443], hello=hello)
        assert not_answered(result), (hello, result)
        assert result["seconds"] < suite.FAST, (hello, result)
    result = box.one(do="raw", to=[WEB, 443], hello={"names": ["evil.example"]})
    assert not_answered(result), result
    box.logged(name="evil.example", verdict="refused", how="direct")
    assert world.net.carried(b"evil.example") == 0


def test_good(world):
    """the right name passes: in pieces, with GREASE, in upper case"""
    box = world.box("web.example")
    box.one(do="resolve", name="web.example")
    for hello in ({"names": ["web.example"]}, {"names": ["web.example"], "split": 1}, {"names": ["web.example"], "split": 70},
                  {"names": ["web.example"], "grease": True}, {"names": ["WEB.EXAMPLE"]}):
        for what in ({"do": "connect", "to": "web.example:443"}, {"do": "raw", "to": [WEB, 443]}):
            result = box.one(**what, hello=hello, limit=1)
            assert result.get("data", "").startswith(("\x16", "\x15")), (what, hello, result)


def test_caught_goes_where_the_name_leads(world):
    """a caught handshake leads to the name's own address, not to the one the box chose"""
    box = world.box("web.example")
    result = box.one(do="raw", to=["45.67.91.66", 443], hello={"names": ["web.example"]}, limit=1)
    assert result.get("data", "").startswith(("\x16", "\x15")), result
    assert {each["at"] for each in world.net.connections()} == {WEB}, world.net.connections()
    assert not [each for each in world.net.sent() if each[1] == "45.67.91.66"]


def test_not_tls(world):
    """port 443 of an allowed name is for TLS: nothing else is passed on"""
    box = world.box("web.example")
    box.one(do="resolve", name="web.example")
    for send in ("GET /hello HTTP/1.1\r\nHost: web.example\r\n\r\n", "SSH-2.0-x\r\n", "\x16\x03\x01\x00\x05hello", "\x16\x03\x01\xff\xff" + "x" * 100, "\x80\x2e\x01\x03\x01", "\0" * 50):
        for what in ({"do": "connect", "to": "web.example:443"}, {"do": "raw", "to": [WEB, 443]}):
            result = box.one(**what, send=send, shut=True)
            assert not result.get("data", "").startswith("hello"), (what, result)
            assert result.get("end") != "silence" or "error" in result, (what, send, result)
    assert not world.net.requests(), world.net.requests()
    assert world.net.carried(b"SSH-2.0-x") == 0


def test_silent_client(world):
    """a tunnel whose client says nothing is ended within the handshake's time"""
    box = world.box("web.example")
    result = box.one(do="connect", to="web.example:443", wait=20)
    assert result.get("end") in ("end", "ECONNRESET") and result["seconds"] < 19, result


def test_other_ports(world):
    """a handshake at another port is held against the name too"""
    box = world.box("api.example:8443", "evil.example:80")
    bad = box.one(do="connect", to="api.example:8443", hello={"names": ["evil.example"]})
    assert not_answered(bad), bad
    good = box.one(do="connect", to="api.example:8443", hello={"names": ["api.example"]}, limit=1)
    assert good.get("data", "").startswith(("\x16", "\x15")), good
    assert world.net.carried(b"evil.example") == 0


def test_by_address(world):
    """where an address is allowed, no name is needed"""
    box = world.box("45.67.90.0/24")
    result = box.one(do="connect", to=f"{WEB}:443", hello={"names": []}, limit=1)
    assert result.get("data", "").startswith(("\x16", "\x15")), result
