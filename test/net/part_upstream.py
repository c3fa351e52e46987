# SPDX-License-Identifier: Apache-2.0
"""A machine whose only way out is a proxy (egress.proxy)."""
import json
import os

import places
import service


def settings():
    return {"egress__proxy": f"http://{places.PROXY_LOGIN}@{places.WORLD}:{places.PROXY_PORT}"}


def test_through_a_proxy(world):
    """HTTP, CONNECT and caught connections go through it, with its password; nothing goes past it"""
    running = world.service(**settings())
    box = world.box("web.example", running=running)
    world.net.forget()
    for command in ("curl -sSf -m 10 http://web.example/hello", "curl -sSf -m 10 https://web.example/hello",
                    "env -u http_proxy -u https_proxy -u HTTPS_PROXY curl -sSf -m 10 https://web.example/hello"):
        status, out, err = box.command(command)
        assert (status, out) == (0, "hello from web.example\n"), (command, out, err)
    assert len(world.net.raw(places.PROXY_PORT)) == 3, world.net.raw()
    direct = [each for each in world.net.sent() if each[0] == "tcp" and each[2] != places.PROXY_PORT]
    assert not direct, direct[:10]


def test_rules_hold(world):
    """what is not allowed does not reach it"""
    running = world.service(**settings())
    box = world.box("web.example", running=running)
    world.net.forget()
    results = box.attempt({"do": "connect", "to": "other.example:443"}, {"do": "connect", "to": "169.254.169.254:80"}, {"do": "connect", "to": "10.0.0.1:443"},
                          {"do": "connect", "to": "web.example:443", "hello": {"names": ["evil.example"]}})
    assert [result["status"] for result in results[:3]] == [403, 403, 403], results
    assert world.net.carried(b"evil.example") == 0 and world.net.carried(b"other.example") == 0


def asked(world):
    """What the proxy was asked for."""
    return [each["head"][0] for each in world.net.raw(places.PROXY_PORT)]


def test_checked_address(world):
    """it is asked for the address that was checked, not for a name that it would look up anew"""
    box = world.box("web.example", running=world.service(**settings()))
    world.net.forget()
    for command in ("curl -sSf -m 10 http://web.example/hello", "curl -sSf -m 10 https://web.example/hello"):
        status, out, err = box.command(command)
        assert (status, out) == (0, "hello from web.example\n"), (command, out, err)
    assert asked(world) == ["CONNECT 45.67.90.10:80 HTTP/1.1", "CONNECT 45.67.90.10:443 HTTP/1.1"], asked(world)
    assert "web.example" not in str(world.net.raw(places.PROXY_PORT))


def test_other_address(world):
    """an address of a host that the proxy does not reach: the next one is tried"""
    world.net.records({"two.wild.example": {"A": [places.UNREACHED, "45.67.90.71"]}})
    box = world.box("*.wild.example", running=world.service(**settings()))
    world.net.forget()
    status, out, err = box.command("curl -sSf -m 10 https://two.wild.example/hello")
    assert (status, out) == (0, "hello from two.wild.example\n"), (out, err)
    assert asked(world) == [f"CONNECT {places.UNREACHED}:443 HTTP/1.1", "CONNECT 45.67.90.71:443 HTTP/1.1"], asked(world)


def names_unknown(world, **more):
    """A name that only the proxy knows: what a box gets whose rules name it, and one that may reach everything."""
    running = world.service(**settings(), egress__internet="all", **more)
    named, free = world.box("intranet.lan", running=running), world.box(running=running)
    world.net.forget()
    get = {"do": "proxy", "send": "GET http://intranet.lan/hello HTTP/1.1\r\nHost: intranet.lan\r\n\r\n"}
    connect = {"do": "connect", "to": "intranet.lan:443", "hello": {"names": ["intranet.lan"]}, "limit": 1}
    found = [[result["status"] for result in box.attempt(get, connect)] for box in (named, free)]
    seen = asked(world)
    world.end_service(**settings(), egress__internet="all", **more)
    return found, seen


def test_names_stay_here(world):
    """a name that cannot be resolved here does not go to it"""
    found, seen = names_unknown(world)
    assert found == [[502, 502], [502, 502]] and not seen, (found, seen)


def test_proxy_resolves(world):
    """with egress.proxy_resolves it is asked for names, also for one that cannot be resolved here if a rule names it"""
    found, seen = names_unknown(world, egress__proxy_resolves="true")
    assert found == [[200, 200], [502, 502]], found
    assert seen == ["GET http://intranet.lan/hello HTTP/1.1", "CONNECT intranet.lan:443 HTTP/1.1"], seen


def test_learning(world):
    """while rules are learned it is asked for names that no rule names yet"""
    settings_here = world.net.settings(**settings(), egress__proxy_resolves="true")
    environment = {f"GLOVEBOX_{name.replace('.', '_').upper()}": value for name, value in settings_here.items()}
    world.net.forget()
    status, out, err = world.net.run([service.GLOVEBOX, "run", "--local", "--json", "--net", "learn", "--",
                                      "curl", "-sSf", "-m", "10", "http://intranet.lan/hello", "https://intranet.lan/"], env=os.environ | environment)
    assert "hello from intranet.lan" in json.loads(out)["stdout"], (status, out, err)
    assert json.loads(out)["learned"]["rules"] == ["intranet.lan"], out
    assert asked(world) == ["GET http://intranet.lan/hello HTTP/1.1", "CONNECT intranet.lan:443 HTTP/1.1"], asked(world)


def test_secret_of_the_proxy(world):
    """its password is not told to boxes or in logs"""
    running = world.service(**settings())
    box = world.box("web.example", "lost.example", running=running)
    box.command("curl -s -m 5 http://web.example/hello")
    password = places.PROXY_LOGIN.partition(":")[2]
    assert password not in running.log() and password not in str(box.log()), "in a log"
    assert not any(password in str(request["headers"]) for request in world.net.requests()), "at the host"
    world.end_service(**settings())
