# SPDX-License-Identifier: Apache-2.0
"""Who may ask: AP-01, AP-02, AP-07, AP-15, AP-17."""
import pathlib
import re

import raw
from tap import Skip

WRONG = "e2b_" + "0" * 40
# Every control-plane route with a sandbox in it.
ROUTES = (("GET", "/sandboxes/{}", None), ("DELETE", "/sandboxes/{}", None),
          ("POST", "/sandboxes/{}/timeout", {"timeout": 60}), ("POST", "/sandboxes/{}/connect", {"timeout": 60}),
          ("POST", "/v2/sandboxes/{}/connect", {}), ("POST", "/sandboxes/{}/resume", {}),
          ("POST", "/sandboxes/{}/pause", {}), ("POST", "/sandboxes/{}/refreshes", {"duration": 60}),
          ("GET", "/sandboxes/{}/metrics", None), ("GET", "/sandboxes/{}/logs", None),
          ("GET", "/v2/sandboxes/{}/logs", None), ("PUT", "/sandboxes/{}/network", {}),
          ("POST", "/sandboxes/{}/snapshots", {}), ("POST", "/sandboxes/{}/fork", {}))


def stranger(world, last, key=None):
    """A client from another address: its failures are its own."""
    return raw.Client(world.port, key, f"127.0.1.{last}")


def test_no_key(world):
    """AP-01: without a key"""
    client = stranger(world, 1)
    for method, path, body in (("GET", "/v2/sandboxes", None), ("POST", "/sandboxes", {"templateID": "base"}),
                               ("POST", "/v2/sandboxes", {"templateID": "base"}), ("GET", "/templates", None)):
        reply = client.ask(method, path, body)
        assert reply.status == 401, (path, reply)
        assert reply.json()["code"] == 401 and reply.message(), reply


def test_wrong_keys(world):
    """AP-01: with a wrong key, in any form"""
    good = world.client.key
    for wrong in (WRONG, good[:-1] + ("0" if good[-1] != "0" else "1"), good + "0", good[:-1], good.upper(), "e2b_",
                  "", "x" * 5000, "' OR 1=1 --", "e2b_" + "g" * 40, good.replace("e2b_", "")):
        reply = stranger(world, 2).ask("GET", "/v2/sandboxes", headers={"X-API-KEY": wrong})
        assert reply.status in (401, 429), (wrong[:60], reply)


def test_key_in_query(world):
    """AP-01: a key in the address is none"""
    key = world.client.key
    for name in ("api_key", "apiKey", "key", "X-API-KEY", "x-api-key", "token"):
        reply = stranger(world, 3).ask("GET", f"/v2/sandboxes?{name}={key}")
        assert reply.status in (400, 401), reply


def test_bearer(world):
    """the key as a bearer"""
    reply = stranger(world, 4).ask("GET", "/v2/sandboxes", headers={"Authorization": f"Bearer {world.client.key}"})
    assert reply.status == 200, reply


def test_penalty(world):
    """AP-01: guessing gets slower, for the guesser"""
    statuses = [stranger(world, 5, "e2b_%040x" % i).ask("GET", "/v2/sandboxes").status for i in range(60)]
    assert set(statuses) == {401, 429}, statuses
    reply = stranger(world, 5, WRONG).ask("GET", "/v2/sandboxes")
    assert reply.status == 429 and re.fullmatch(r"\d+", reply.headers.get("retry-after", "")), reply
    assert stranger(world, 6, world.client.key).ask("GET", "/v2/sandboxes").status == 200


def test_log(world):
    """AP-01: no key and no token in the log"""
    box = world.client.create()
    box.run("true")
    log = world.service.log()
    for secret in (world.client.key, world.other.key, box.token, WRONG):
        assert secret not in log, f"{secret[:8]}... is in the log"
    assert log.strip(), "there is a log"


def test_foreign_sandbox(world):
    """AP-02: another key's sandbox is none, on every route"""
    box = world.client.create()
    for method, path, body in ROUTES:
        foreign = world.other.ask(method, path.format(box.id), body)
        nobody = world.other.ask(method, path.format("inosuchsandbox"), body)
        assert foreign.status == 404, (method, path, foreign)
        assert foreign.json()["code"] == 404, foreign
        # Nothing tells it from one that never was.
        assert foreign.message().replace(box.id, "X") == nobody.message().replace("inosuchsandbox", "X"), (foreign, nobody)
    assert box.id not in repr(world.other.ask("GET", "/v2/sandboxes").json())
    assert box.id not in repr(world.other.ask("GET", f"/sandboxes/metrics?sandbox_ids={box.id}").body)
    assert world.client.ask("GET", f"/sandboxes/{box.id}").json()["state"] == "running"


def test_foreign_token(world):
    """AP-02: another sandbox's token opens nothing"""
    mine, other = world.client.create(), world.other.create()
    other.client = raw.Client(world.port, None, "127.0.1.7")
    other.id = mine.id
    for method, path in (("POST", "/process.Process/List"), ("POST", "/filesystem.Filesystem/Stat"), ("GET", "/envs"),
                         ("GET", "/metrics"), ("GET", "/files?path=/etc/passwd")):
        reply = other.ask(method, path, {"path": "/"} if method == "POST" else None)
        assert reply.status == 401, (path, reply)


def test_token(world):
    """the data plane: no token, a wrong one, and the key instead"""
    box = world.client.create()
    box.client = raw.Client(world.port, None, "127.0.1.8")
    for headers in ({}, {"X-Access-Token": "x"}, {"X-Access-Token": ""}, {"X-API-KEY": world.client.key},
                    {"X-Access-Token": box.token[:-1]}, {"X-Access-Token": box.token + "0"}):
        reply = box.ask("POST", "/process.Process/List", {}, headers, token=False)
        assert reply.status == 401, (headers, reply)
    reply = box.ask("GET", "/envs", token=False)
    assert reply.message() == ("unauthorized access, please provide a valid access token or method signing if "
                               "supported"), reply
    assert box.ask("GET", "/health", token=False).status == 204


def test_host(world):
    """AP-07: a name that is not ours"""
    for host in ("evil.test", "evil.test:80", "127.0.0.1.evil.test", "localhost.evil.test", "", "a b", "[::1"):
        reply = world.client.ask("GET", "/v2/sandboxes", headers={"Host": host})
        assert reply.status in (400, 403, 421), (host, reply)
    for host in (f"127.0.0.1:{world.port}", "127.0.0.1", "localhost", f"localhost:{world.port}"):
        assert world.client.ask("GET", "/v2/sandboxes", headers={"Host": host}).status == 200, host


def test_no_host(world):
    """AP-07: no name, or two"""
    for lines in ("", f"Host: 127.0.0.1:{world.port}\r\nHost: evil.test\r\n"):
        with world.client.connect() as connection:
            connection.send(f"GET /v2/sandboxes HTTP/1.1\r\n{lines}X-API-KEY: {world.client.key}\r\n\r\n".encode())
            assert connection.reply().status == 400, lines


def test_no_cors(world):
    """AP-07: a page of somebody else's may not read the control plane"""
    reply = world.client.ask("GET", "/v2/sandboxes", headers={"Origin": "https://evil.test"})
    assert "access-control-allow-origin" not in reply.headers, reply
    reply = stranger(world, 9).ask("OPTIONS", "/v2/sandboxes", headers={
        "Origin": "https://evil.test", "Access-Control-Request-Method": "POST"})
    assert "access-control-allow-origin" not in reply.headers, reply


def test_cors_of_boxes(world):
    """a browser may talk to a sandbox, with its token"""
    box = world.client.create()
    reply = box.ask("OPTIONS", "/process.Process/List", token=False, headers={
        "Origin": "https://app.test", "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "x-access-token,content-type"})
    assert reply.status in (200, 204), reply
    assert reply.headers.get("access-control-allow-origin") in ("*", "https://app.test"), reply


def test_open_pages(world):
    """AP-15: what everybody may see says nothing of anybody"""
    box = world.client.create(metadata={"secret": "tenant-data"})
    client = stranger(world, 10)
    for path in ("/health", "/livez", "/readyz", "/version", "/capabilities", "/openapi.json"):
        reply = client.ask("GET", path)
        assert reply.status in (200, 204, 401), (path, reply)
        text = reply.body.decode()
        for word in (box.id, "tenant-data", world.client.key, world.service.state, "/work/", "/tmp/"):
            assert word not in text, (path, word)


def test_headers(world):
    """answers carry nosniff and an id, and no banner"""
    reply = world.client.ask("GET", "/v2/sandboxes")
    assert reply.headers.get("x-content-type-options") == "nosniff", reply
    assert "server" not in reply.headers, reply


def test_server_process(world):
    """AP-17: the server's memory is nobody's business, and it has no power"""
    pid = world.service.server_pid()
    if not pid:
        raise Skip("the server's process was not found")
    status = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
                  if ":\t" in line)
    assert status["Uid"].split()[0] != "0", status["Uid"]
    assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == int(status["CapBnd"], 16) == 0, status["CapEff"]
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", (status["NoNewPrivs"], status["Seccomp"])
    # A process that is not dumpable has its /proc files owned by root.
    assert pathlib.Path(f"/proc/{pid}/mem").stat().st_uid == 0
    limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
    assert re.search(r"Max core file size\s+[01]\s", limits), limits


def test_environment(world):
    """AP-17: no key in a command line or an environment"""
    for pid in (world.service.process.pid, world.service.server_pid()):
        for name in ("cmdline", "environ"):
            text = pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
            assert b"e2b_" not in text, (pid, name)
