# SPDX-License-Identifier: Apache-2.0
"""Headers that egress adds: for the host they are for, over TLS that was verified, and told to nobody (NW-23)."""
import json
import pathlib

VALUE = "hunter2-f3b9c1d7e5"
RULES = {"api.example": [{"transform": {"headers": {"Authorization": "Bearer ${secrets.LAB_TOKEN}", "X-Plain": "seen"}}}]}
TRUST = ("untrusted.example", "wrongname.example")


def secret(world, running=None):
    running = running or world.running
    status, value, _ = running.ask("POST", "/secrets", {"name": "LAB_TOKEN", "value": VALUE})
    assert status in (201, 409), (status, value)


def get(host, path="/seen", more=""):
    return {"do": "proxy", "send": f"GET http://{host}{path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n", "wait": 8}


def headers_of(request):
    return {name.lower(): value for name, value in request["headers"]}


def untold(world, box, *texts):
    """The value is in none of these, nor in the box, the log, the service's own log or its answers."""
    texts = [json.dumps(text) for text in texts] + [json.dumps(box.log()), world.running.log(), box.client.ask("GET", f"/sandboxes/{box.id}").body.decode(),
                                                   box.client.ask("GET", f"/sandboxes/{box.id}/logs").body.decode()]
    texts.append(box.command("env; cat /proc/self/environ /proc/1/environ 2>/dev/null; cat ~/.curlrc /etc/environment 2>/dev/null; true")[1])
    for text in texts:
        assert VALUE not in text, text[:500]


def test_added(world):
    """the box speaks HTTP, the host hears TLS with the header in it; the box never sees the value"""
    secret(world)
    box = world.box("api.example", rules=RULES)
    result = box.one(**get("api.example", "/hello", "Authorization: mine\r\nauthorization: mine too\r\n"))
    assert result["status"] == 200, result
    seen = world.net.requests(host="api.example")
    assert len(seen) == 1 and seen[0]["tls"] and seen[0]["sni"] == "api.example" and seen[0]["port"] == 443, seen
    sent = [value for name, value in seen[0]["headers"] if name.lower() == "authorization"]
    assert sent == [f"Bearer {VALUE}"], seen
    assert headers_of(seen[0])["x-plain"] == "seen"
    assert world.net.carried(VALUE.encode()) == 0, "in the clear"
    untold(world, box, result)


def test_only_there(world):
    """no other host gets it: by name, by redirect, by Host, by address, by another port"""
    secret(world)
    box = world.box("api.example:80,443,8080", "web.example", "www.web.example", "45.67.90.30", rules=RULES)
    attempts = [get("web.example"), get("www.web.example"), get("API.example."), get("45.67.90.30"), get("web.example", "/moved/http%3A%2F%2Fapi.example%2Fseen"),
                {"do": "connect", "to": "api.example:443", "hello": {"names": ["api.example"]}, "wait": 2},
                {"do": "proxy", "send": "GET http://web.example/seen HTTP/1.1\r\nHost: api.example\r\n\r\n", "wait": 3}]
    results = box.attempt(*attempts)
    for request in world.net.requests():
        has = VALUE in json.dumps(request["headers"])
        assert has == (request["sni"] == "api.example" and request["tls"]), request
    assert world.net.carried(VALUE.encode()) == 0
    untold(world, box, *[result for what, result in zip(attempts, results) if "API" not in what.get("send", "")])


def test_wrong_certificates(world):
    """a host with a certificate of another name, or of nobody we trust, gets nothing"""
    secret(world)
    rules = {host: RULES["api.example"] for host in TRUST}
    box = world.box(*TRUST, rules=rules)
    for host in TRUST:
        result = box.one(**get(host))
        assert result["status"] == 502 and result["reason"] == "tls_failed", (host, result)
        box.logged(name=host, reason="tls_failed")
    assert not world.net.requests(), world.net.requests()
    untold(world, box)


def test_injected_lines(world):
    """a box's own headers cannot split, hide or repeat what is added"""
    secret(world)
    box = world.box("api.example", rules=RULES)
    for more in ("Connection: authorization\r\n", "Authorization: x\r\n" * 30, "X: Authorization: x\r\n"):
        box.one(**get("api.example", "/hello", more))
    seen = world.net.requests(host="api.example")
    assert len(seen) == 3, seen
    for request in seen:
        assert [value for name, value in request["headers"] if name.lower() == "authorization"] == [f"Bearer {VALUE}"], request


def test_echoing_host(world):
    """a host that sends back what it gets is the host's business, but egress's own pages and logs show nothing"""
    secret(world)
    box = world.box("api.example:80,443,1", rules=RULES)
    refused = box.attempt(get("other.example"), {"do": "proxy", "send": "GET http://api.example:1/ HTTP/1.1\r\nHost: api.example:1\r\n\r\n"},
                          get("api.example", "/reset"), get("api.example", "/<bad>"))
    untold(world, box, *refused)


def test_changed_secret(world):
    """a new value is used at once, a removed one no longer"""
    secret(world)
    box = world.box("api.example", rules=RULES)
    assert box.one(**get("api.example", "/hello"))["status"] == 200
    status, value, _ = world.running.ask("POST", "/secrets/LAB_TOKEN", {"value": "second-" + VALUE})
    assert status in (200, 201), (status, value)
    assert world.net.wait_for(lambda: box.one(**get("api.example", "/hello")) and
                              headers_of(world.net.requests(host="api.example")[-1]).get("authorization") == f"Bearer second-{VALUE}"), world.net.requests()[-1]
    assert world.running.ask("DELETE", "/secrets/LAB_TOKEN")[0] == 204
    box.one(**get("api.example", "/hello"))
    assert VALUE not in json.dumps(world.net.requests()[-1]["headers"]) or world.net.wait_for(
        lambda: box.one(**get("api.example", "/hello")) and VALUE not in json.dumps(world.net.requests()[-1]["headers"]))


def test_too_long_together(world):
    """a value that has no room any more is gone, the old one too, and the log says so; a box cannot begin like that"""
    secret(world)
    rules = {"web.example": [{"transform": {"headers": {f"X-{n}": f"{n} ${{secrets.LAB_TOKEN}}" for n in range(9)}}}],
             "api.example": [{"transform": {"headers": {"X-Last": "last ${secrets.LAB_TOKEN}"}}}]}
    box = world.box("api.example", rules=rules)
    assert box.one(**get("api.example", "/hello"))["status"] == 200
    assert headers_of(world.net.requests(host="api.example")[-1])["x-last"] == f"last {VALUE}"
    status, value, _ = world.running.ask("POST", "/secrets/LAB_TOKEN", {"value": "long" * 1900})
    assert status in (200, 201), (status, value)
    assert world.net.wait_for(lambda: box.one(**get("api.example", "/hello")) and
                              not headers_of(world.net.requests(host="api.example")[-1]).get("x-last")), "the old value is still sent"
    assert "sent empty" in box.client.ask("GET", f"/sandboxes/{box.id}/logs").body.decode()
    reply = box.client.ask("POST", "/sandboxes", {"templateID": "base", "network": {"allowOut": ["api.example"], "denyOut": ["0.0.0.0/0"], "rules": rules}})
    assert reply.status == 400 and b"65536" in reply.body, reply
    assert world.running.ask("DELETE", "/secrets/LAB_TOKEN")[0] == 204


def test_at_rest(world):
    """the value is nowhere in the service's files, and no answer has it"""
    secret(world)
    state = pathlib.Path(world.running.state)
    files = [path for path in state.rglob("*") if path.is_file() and path.stat().st_size < 64 << 20]
    assert files, state
    for path in files:
        assert VALUE.encode() not in path.read_bytes(), path
    assert VALUE not in json.dumps(world.running.ask("GET", "/secrets")[1])
    assert VALUE not in json.dumps(world.running.ask("GET", "/secrets/LAB_TOKEN")[1])
