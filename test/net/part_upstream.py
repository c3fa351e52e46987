# SPDX-License-Identifier: Apache-2.0
"""A machine whose only way out is a proxy (egress.proxy)."""
import places


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


def test_secret_of_the_proxy(world):
    """its password is not told to boxes or in logs"""
    running = world.service(**settings())
    box = world.box("web.example", "lost.example", running=running)
    box.command("curl -s -m 5 http://web.example/hello")
    password = places.PROXY_LOGIN.partition(":")[2]
    assert password not in running.log() and password not in str(box.log()), "in a log"
    assert not any(password in str(request["headers"]) for request in world.net.requests()), "at the host"
    world.end_service(**settings())
