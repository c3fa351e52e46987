# SPDX-License-Identifier: Apache-2.0
"""AP-08: an address is what it is, letter by letter."""


def test_unknown(world):
    """what is not there is 404, with a reason"""
    for path in ("/nothing", "/sandbox", "/v3/sandboxes", "/v2", "/sandboxes/x/y/z", "/admin", "/.git/config", "/favicon.ico"):
        reply = world.client.ask("GET", path)
        assert reply.status == 404 and reply.json()["code"] == 404 and reply.message(), (path, reply)


def test_tricks(world):
    """AP-08: other spellings of an address are other addresses"""
    for path in ("//sandboxes", "/sandboxes/", "/v2//sandboxes", "/V2/sandboxes", "/v2/Sandboxes", "/v2%2fsandboxes",
                 "/v2/../v2/sandboxes", "/./v2/sandboxes", "/v2/sandboxes/..;/", "/v2/sandboxes;x=y", "/v2\\sandboxes",
                 "/%76%32/sandboxes/x/%2e%2e", "/v2/sandboxes%00", "/v2/sandboxes%20", "/v2/sandboxes.json"):
        reply = world.client.ask("GET", path)
        assert reply.status in (400, 404), (path, reply)


def test_parameter_encoding(world):
    """a parameter is decoded after it was split off"""
    box = world.client.create()
    assert world.client.ask("GET", f"/sandboxes/{box.id}").status == 200
    encoded = "".join(f"%{ord(letter):02x}" for letter in box.id)
    assert world.client.ask("GET", f"/sandboxes/{encoded}").status == 200
    for path in (f"/sandboxes/..%2f{box.id}", f"/sandboxes/{box.id}%2ftimeout", f"/sandboxes/{box.id}%00",
                 f"/sandboxes/{box.id.upper()}", "/sandboxes/%", "/sandboxes/%zz", "/sandboxes/%ff%fe"):
        reply = world.client.ask("GET", path)
        assert reply.status in (400, 404), (path, reply)


def test_method(world):
    """a wrong method is 405, and says which are right"""
    for method, path in (("PUT", "/v2/sandboxes"), ("PATCH", "/sandboxes"), ("POST", "/health"), ("DELETE", "/snapshots")):
        reply = world.client.ask(method, path)
        assert reply.status == 405 and reply.headers.get("allow"), (method, path, reply)


def test_odd_methods(world):
    """methods that nobody has"""
    for method in ("TRACE", "CONNECT", "PROPFIND", "get", "G" * 300, "GET\tX"):
        with world.client.connect() as connection:
            connection.send_some(f"{method} /v2/sandboxes HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-KEY: {world.client.key}\r\n\r\n".encode())
            try:
                status = connection.reply().status
            except Exception as error:  # pylint: disable=broad-except
                assert type(error).__name__ in ("Closed", "ValueError", "IndexError"), error
            else:
                assert 400 <= status <= 501, (method, status)


def test_query(world):
    """a query that cannot be decoded, or says things twice"""
    for query in ("limit=%", "limit=%zz", "limit=1&limit=2", "limit=%00", "limit=abc", "limit=0", "limit=-1", "limit=101",
                  "limit=1e2", "limit=", "state=flying", "order=up", "startedAfter=yesterday", "nextToken=%ff"):
        reply = world.client.ask("GET", f"/v2/sandboxes?{query}")
        assert reply.status == 400 and reply.message(), (query, reply)


def test_long_query(world):
    """a thousand parameters, or one of 100 kB"""
    for query in ("&".join(f"p{i}=1" for i in range(1000)), "metadata=" + "a" * 100_000):
        reply = world.client.ask("GET", f"/v2/sandboxes?{query}")
        assert reply.status in (400, 414, 431), reply


def test_sandbox_address(world):
    """the two headers that name a sandbox"""
    box = world.client.create()
    base = {"X-Access-Token": box.token}
    for headers in ({"E2b-Sandbox-Id": box.id}, {"E2b-Sandbox-Port": "49983"},
                    {"E2b-Sandbox-Id": "../x", "E2b-Sandbox-Port": "49983"},
                    {"E2b-Sandbox-Id": box.id.upper(), "E2b-Sandbox-Port": "49983"},
                    {"E2b-Sandbox-Id": box.id, "E2b-Sandbox-Port": "0"},
                    {"E2b-Sandbox-Id": box.id, "E2b-Sandbox-Port": "99999"},
                    {"E2b-Sandbox-Id": box.id, "E2b-Sandbox-Port": "x"}):
        with world.client.connect() as connection:
            reply = connection.ask("GET", "/files?path=/etc/hostname", base | headers)
        assert reply.status in (400, 401), (headers, reply)


def test_other_port(world):
    """a port that nothing listens on"""
    box = world.client.create()
    with world.client.connect() as connection:
        reply = connection.ask("GET", "/", {"E2b-Sandbox-Id": box.id, "E2b-Sandbox-Port": "3000"})
    assert reply.status == 502 and reply.json()["code"] == 502, reply
    assert reply.json()["sandboxId"] == box.id and reply.json()["port"] == 3000, reply


def test_planes(world):
    """the planes do not mix"""
    box = world.client.create()
    assert box.ask("GET", "/v2/sandboxes", headers={"X-API-KEY": world.client.key}).status == 404
    assert world.client.ask("POST", "/process.Process/List", {}).status in (400, 404)
    for path in ("/init", "/freeze", "/unfreeze", "/collapse", "/fsfreeze", "/fsthaw", "/upgrade"):
        assert box.ask("POST", path, {}).status == 404, path
