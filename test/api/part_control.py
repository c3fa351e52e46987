# SPDX-License-Identifier: Apache-2.0
"""The control plane where the SDK does not look: v1 forms, Idempotency-Key (AP-16), events, templates, logs."""
import datetime
import json
import threading
import urllib.parse

import raw


def seconds(info):
    start, end = (datetime.datetime.fromisoformat(info[name].replace("Z", "+00:00")) for name in ("startedAt", "endAt"))
    return (end - start).total_seconds()


def test_defaults(world):
    """15 seconds in v1, 300 in v2"""
    for version, want in ((1, 15), (2, 300)):
        box = world.client.create(version)
        info = world.client.ask("GET", f"/sandboxes/{box.id}").json()
        assert want - 2 <= seconds(info) <= want + 2, (version, info)


def test_secure(world):
    """v1 has a token when asked for one, v2 always"""
    assert world.client.create(1, secure=True).token
    assert not world.client.create(1, secure=False).token
    assert world.client.create(2).token


def test_listing(world):
    """v1 lists what runs, v2 both; headers of the pages"""
    running, paused = world.client.create(), world.client.create()
    assert world.client.ask("POST", f"/sandboxes/{paused.id}/pause").status == 204
    old = [item["sandboxID"] for item in world.client.ask("GET", "/sandboxes").json()]
    assert running.id in old and paused.id not in old
    reply = world.client.ask("GET", "/v2/sandboxes?limit=1")
    assert reply.headers["x-next-token"] and int(reply.headers["x-total-running"]) >= 1, reply
    assert "x-next-token" not in world.client.ask("GET", "/v2/sandboxes?limit=100").headers
    item = world.client.ask("GET", "/v2/sandboxes?state=paused").json()[0]
    for name in ("sandboxID", "templateID", "clientID", "startedAt", "endAt", "cpuCount", "memoryMB", "diskSizeMB", "state",
                 "envdVersion"):
        assert name in item, (name, item)


def test_metadata_layers(world):
    """the metadata filter: three layers of encoding"""
    mark = {"k 1": "v/é", "b": "c&d=e"}
    box = world.client.create(metadata=mark)
    quoted = {urllib.parse.quote(key, ""): urllib.parse.quote(value, "") for key, value in mark.items()}
    value = urllib.parse.quote(urllib.parse.urlencode(quoted), "")
    assert [item["sandboxID"] for item in world.client.ask("GET", f"/v2/sandboxes?metadata={value}").json()] == [box.id]
    for bad in ("%25zz", "a", "a%3Db%26c", "%3Db", "a%253D%2525ff%3D1"):
        assert world.client.ask("GET", f"/v2/sandboxes?metadata={bad}").status in (200, 400), bad


def test_statuses(world):
    """connect 200 or 201, resume 201 or 409, pause 204 or 409, kill 204 or 404"""
    box = world.client.create()

    def ask(what, body=None):
        return world.client.ask("POST", f"/sandboxes/{box.id}/{what}", body).status
    assert ask("connect", {"timeout": 100}) == 200
    assert ask("resume", {"timeout": 100}) == 409
    assert ask("pause") == 204
    assert ask("pause", {"memory": True}) == 409
    assert ask("connect", {"timeout": 100}) == 201
    assert ask("pause", {}) == 204
    assert ask("resume", {"timeout": 100}) == 201
    assert ask("refreshes", {"duration": 100}) == 204
    assert ask("refreshes") == 204
    assert ask("timeout", {"timeout": 100}) == 204
    assert ask("timeout") == 400
    assert box.kill().status == 204
    assert box.kill().status == 404
    for what in ("connect", "resume", "timeout"):
        assert ask(what, {"timeout": 100}) == 404, what
    assert ask("pause") == 404


def test_empty_bodies(world):
    """an answer without a body says so"""
    box = world.client.create()
    reply = world.client.ask("POST", f"/sandboxes/{box.id}/timeout", {"timeout": 50})
    assert reply.status == 204 and reply.body == b"", reply


def test_double_kill(world):
    """AP-16: killed by ten at once, it is killed once"""
    box = world.client.create()
    statuses = []
    threads = [threading.Thread(target=lambda: statuses.append(box.kill().status)) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [204] + [404] * 9, statuses


def test_idempotency(world):
    """AP-16: the same key, the same sandbox"""
    headers = {"Idempotency-Key": "test-key-1"}
    first = world.client.create(headers=headers, metadata={"a": "1"})
    second = world.client.create(headers=headers, metadata={"a": "1"})
    assert first.created == second.created
    # Another customer's key of that name is another.
    assert world.other.create(headers=headers, metadata={"a": "1"}).id != first.id
    # The same name for something else is a mistake.
    reply = world.client.ask("POST", "/v2/sandboxes", {"templateID": "base", "metadata": {"a": "2"}}, headers)
    assert reply.status in (400, 409, 422), reply


def test_idempotency_race(world):
    """AP-16: ten at once with one key make one"""
    ids, headers = set(), {"Idempotency-Key": "test-key-race"}
    statuses = []

    def create():
        reply = world.client.ask("POST", "/v2/sandboxes", {"templateID": "base"}, headers)
        statuses.append(reply.status)
        if reply.status == 201:
            ids.add(reply.json()["sandboxID"])
    threads = [threading.Thread(target=create) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 1 and set(statuses) <= {201, 409}, (ids, statuses)


def test_idempotency_bad(world):
    """AP-16: a key that cannot be"""
    for bad in ("x" * 300, "UPPER", "a b", "é"):
        reply = world.client.ask("POST", "/v2/sandboxes", {"templateID": "base"}, {"Idempotency-Key": bad})
        assert reply.status in (201, 400), (bad[:20], reply)
    assert world.client.ask("POST", "/v2/sandboxes", {"templateID": "base"}, {"Idempotency-Key": "x" * 300}).status == 400


def test_templates(world):
    """templates: what is built in"""
    for path in ("/templates", "/v2/templates"):
        names = json.dumps(world.client.ask("GET", path).json())
        assert '"base"' in names and '"code-interpreter-v1"' in names, names
    assert world.client.ask("GET", "/templates/aliases/base").status == 200
    assert world.client.ask("GET", "/templates/aliases/none%2Fof%3Athem").status == 404
    assert world.client.ask("DELETE", "/templates/base").status in (400, 403)
    assert world.client.ask("DELETE", "/templates/none").status == 404


def test_metrics_of_many(world):
    """metrics of many sandboxes"""
    boxes = [world.client.create() for _ in range(2)]
    ids = ",".join(box.id for box in boxes)
    reply = world.client.ask("GET", f"/sandboxes/metrics?sandbox_ids={ids}")
    assert reply.status == 200 and isinstance(reply.json()["sandboxes"], dict), reply
    too_many = ",".join(["i" + "a" * 19] * 101)
    assert world.client.ask("GET", f"/sandboxes/metrics?sandbox_ids={too_many}").status == 400


def test_logs(world):
    """logs: what was run, and nothing of others"""
    box = world.client.create()
    box.run("echo said-this")
    reply = world.client.ask("GET", f"/sandboxes/{box.id}/logs").json()
    assert isinstance(reply["logs"], list) and isinstance(reply["logEntries"], list), reply
    newer = world.client.ask("GET", f"/v2/sandboxes/{box.id}/logs").json()["logs"]
    assert any("said-this" in json.dumps(entry) for entry in newer), newer
    for query in ("limit=-1", "limit=x", "direction=up", "level=loud", "cursor=x"):
        assert world.client.ask("GET", f"/v2/sandboxes/{box.id}/logs?{query}").status == 400, query


def test_events(world):
    """events: what happened to a sandbox, in order"""
    box = world.client.create()
    world.client.ask("POST", f"/sandboxes/{box.id}/pause")
    world.client.ask("POST", f"/sandboxes/{box.id}/connect", {"timeout": 60})
    box.kill()
    events = world.client.ask("GET", f"/events/sandboxes/{box.id}?orderAsc=true").json()
    kinds = [event["type"].rpartition(".")[2] for event in events]
    assert [kind for kind in kinds if kind in ("created", "paused", "resumed", "killed")] == \
        ["created", "paused", "resumed", "killed"], events
    assert box.id not in json.dumps(world.other.ask("GET", "/events/sandboxes").json())
    assert world.other.ask("GET", f"/events/sandboxes/{box.id}").json() == []


def test_webhooks(world):
    """webhooks: made, changed, deleted; somebody else's are none; no way to this machine"""
    body = {"name": "hook", "url": "https://example.test/hook", "events": ["sandbox.lifecycle.created"], "enabled": True,
            "signatureSecret": "x" * 40}
    reply = world.client.ask("POST", "/events/webhooks", body)
    assert reply.status == 201 and "x" * 40 not in reply.body.decode(), reply
    path = f"/events/webhooks/{reply.json()['id']}"
    assert world.client.ask("GET", path).json()["name"] == "hook"
    assert world.other.ask("GET", path).status == 404
    assert world.other.ask("DELETE", path).status == 404
    assert world.client.ask("PATCH", path, {"enabled": False}).json()["enabled"] is False
    for url in ("file:///etc/passwd", "ftp://a.test/", "gopher://a.test/", "javascript:1", "x", ""):
        assert world.client.ask("POST", "/events/webhooks", body | {"url": url}).status == 400, url
    assert world.client.ask("DELETE", path).status == 200
    assert world.client.ask("GET", path).status == 404


def test_snapshot_ownership(world):
    """snapshots of others are none"""
    box = world.client.create()
    snapshot = world.client.ask("POST", f"/sandboxes/{box.id}/snapshots", {}).json()["snapshotID"]
    quoted = urllib.parse.quote(snapshot, "")
    assert snapshot not in world.other.ask("GET", "/snapshots").body.decode()
    assert world.other.ask("POST", "/v2/sandboxes", {"templateID": snapshot}).status in (403, 404)
    assert world.other.ask("DELETE", f"/templates/{quoted}").status in (403, 404)
    assert world.client.ask("DELETE", f"/templates/{quoted}").status == 204


def test_snapshots_for_admin(world):
    """who may delete everybody's snapshots deletes the one whose id the list has, and of a bare name his own"""
    admin = raw.Client(world.port, world.service.new_key("--scope", "admin"))
    theirs = {}
    for client in (admin, world.client, world.other):  # the newest last
        box = client.create()
        theirs[client] = client.ask("POST", f"/sandboxes/{box.id}/snapshots", {"name": "same-name"}).json()["snapshotID"]
        box.kill()

    def left():
        return {each["snapshotID"] for each in admin.ask("GET", "/snapshots?limit=100").json()} & set(theirs.values())

    assert left() == set(theirs.values()), left()
    assert admin.ask("DELETE", f"/templates/{urllib.parse.quote(theirs[world.client], safe='')}").status == 204
    assert left() == {theirs[admin], theirs[world.other]}, left()
    assert admin.ask("DELETE", "/templates/same-name").status == 204
    assert left() == {theirs[world.other]}, left()
    assert admin.ask("DELETE", "/templates/same-name").status == 404
    assert world.other.ask("DELETE", "/templates/same-name").status == 204


def test_deadline_exact(world):
    """connect with a shorter time leaves the end where it is, to the bit"""
    box = world.client.create(timeout=500)
    before = world.client.ask("GET", f"/sandboxes/{box.id}").json()["endAt"]
    world.client.ask("POST", f"/sandboxes/{box.id}/connect", {"timeout": 10})
    world.client.ask("POST", f"/v2/sandboxes/{box.id}/connect", {})
    assert world.client.ask("GET", f"/sandboxes/{box.id}").json()["endAt"] == before


def test_system(world):
    """version, capabilities, description"""
    assert world.client.ask("GET", "/version").json()
    assert world.client.ask("GET", "/capabilities").status == 200
    document = world.client.ask("GET", "/openapi.json").json()
    assert document["openapi"].startswith("3.1"), document["openapi"]
    # Every route that is described is there.
    for path, operations in document["paths"].items():
        if next(iter(operations.values())).get("x-plane") != "control":
            continue
        for method in operations:
            concrete = path.replace("{sandboxID}", "inosuch").replace("{", "").replace("}", "")
            reply = world.client.ask(method.upper(), concrete, {} if method in ("post", "put", "patch") else None)
            assert reply.status not in (405, 500, 501), (method, path, reply)
            assert reply.status != 404 or "{" in path, (method, path, reply)
