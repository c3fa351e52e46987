# SPDX-License-Identifier: Apache-2.0
"""Webhooks arrive: signed, once, again after a failure, and never anywhere but where they were sent."""
import base64
import concurrent.futures
import contextlib
import hashlib
import http.server
import json
import threading

import raw
import service
from part_limits import small

SECRET = "a secret of ours"
CREATED = "sandbox.lifecycle.created"
KILLED = "sandbox.lifecycle.killed"


class Receiver(http.server.ThreadingHTTPServer):
    """Keeps every request; answers with the statuses given, in order, then with 200."""

    def __init__(self, *statuses):
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen = []
        self.statuses = list(statuses)
        self.port = self.server_address[1]

    def of(self, sandbox_id, kind):
        return [(headers, body) for headers, body in list(self.seen)
                if json.loads(body)["type"] == kind and json.loads(body)["sandbox_id"] == sandbox_id]


class Handler(http.server.BaseHTTPRequestHandler):
    """POST only."""

    def do_POST(self):  # pylint: disable=invalid-name
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.seen.append((self.headers, body))
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        self.send_response(status)
        if status == 302:
            self.send_header("Location", f"http://127.0.0.1:{self.server.port}/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def receiver(*statuses):
    server = Receiver(*statuses)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def register(client, port, events, host="127.0.0.1"):
    reply = client.ask("POST", "/events/webhooks", {"name": "test", "url": f"http://{host}:{port}/hook", "events": events,
                                                    "signatureSecret": SECRET})
    assert reply.status == 201, reply
    return reply.json()["id"]


def signature(body):
    return base64.b64encode(hashlib.sha256(SECRET.encode() + body).digest()).decode().rstrip("=")


def test_delivery(_):
    """signed, with the sandbox's metadata; only the events that were asked for; none when switched off"""
    with receiver() as hook, receiver() as witness, small(webhooks_private_addresses="true") as (running, client):
        hook_id = register(client, hook.port, [CREATED, KILLED])
        register(client, witness.port, [CREATED])
        other = raw.Client(running.port, running.new_key()).create()
        box = client.create(metadata={"é": "\n"})
        client.ask("POST", f"/sandboxes/{box.id}/pause")
        box.kill()
        # Each is sent by itself: the second may arrive first.
        assert service.wait_for(lambda: hook.of(box.id, CREATED) and hook.of(box.id, KILLED)), hook.seen
        headers, body = hook.of(box.id, CREATED)[0]
        assert headers["e2b-signature"] == signature(body) and headers["e2b-signature-version"] == "v1", headers
        assert headers["e2b-webhook-id"] == hook_id and headers["e2b-delivery-id"], headers
        event = json.loads(body)
        assert event["event_data"]["sandbox_metadata"] == {"é": "\n"} and event["sandboxId"] == box.id, event
        execution = json.loads(hook.of(box.id, KILLED)[0][1])["event_data"]["execution"]
        assert set(execution) == {"started_at", "vcpu_count", "memory_mb", "execution_time"}, execution
        assert len(hook.seen) == 2 and other.id.encode() not in b"".join(body for _, body in hook.seen), hook.seen
        client.ask("PATCH", f"/events/webhooks/{hook_id}", {"enabled": False})
        silent = client.create()
        # Who gets an event is decided once for all webhooks, a moment after it happened.
        assert service.wait_for(lambda: witness.of(silent.id, CREATED)), witness.seen
        client.ask("PATCH", f"/events/webhooks/{hook_id}", {"enabled": True})
        silent.kill()
        assert service.wait_for(lambda: hook.of(silent.id, KILLED))
        assert not hook.of(silent.id, CREATED)


def test_again(_):
    """tried again after a failure; a redirect is a failure and is not followed; a deleted one is left in peace"""
    with receiver(500, 302) as hook, receiver(500, 500) as deleted, small(webhooks_private_addresses="true") as (_, client):
        register(client, hook.port, [CREATED])
        deleted_id = register(client, deleted.port, [CREATED])
        first, second = client.create(), client.create()
        assert service.wait_for(lambda: len(hook.seen) >= 2 and len(deleted.seen) >= 2), (hook.seen, deleted.seen)
        assert client.ask("DELETE", f"/events/webhooks/{deleted_id}").status == 200
        # Ten seconds later.
        assert service.wait_for(lambda: len(hook.of(first.id, CREATED)) == 2 and len(hook.of(second.id, CREATED)) == 2), hook.seen
        attempts = {headers["e2b-delivery-id"] for headers, _ in hook.seen}
        assert len(attempts) == len(hook.seen) == 4, hook.seen
        # What failed at the same time would have been tried again by now, or is about to be.
        assert not service.wait_for(lambda: len(deleted.seen) > 2, 2), deleted.seen


def test_private_addresses(world):
    """this machine and its network cannot be reached: not by address, not by a name that leads there"""
    for host in ("127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "10.0.0.1", "169.254.169.254", "192.168.0.1", "[fe80::1]"):
        reply = world.client.ask("POST", "/events/webhooks", {"name": "x", "url": f"http://{host}/", "events": [],
                                                              "signatureSecret": "x"})
        assert reply.status == 400 and "private" in reply.message(), (host, reply)
    with receiver() as hook:
        hook_id = register(world.client, hook.port, [], host="localhost")
        box = world.client.create()
        box.kill()
        assert not service.wait_for(lambda: hook.seen, 2), hook.seen
        world.client.ask("DELETE", f"/events/webhooks/{hook_id}")


def test_credentials(world):
    """a URL with a user or a password in it is refused, however long they are"""
    for who in ("u", "u:p", ":p", "u:", "someone-with-a-long-name", "someone-with-a-long-name:and-a-password", ":a-long-password", "%75ser"):
        reply = world.client.ask("POST", "/events/webhooks", {"name": "x", "url": f"http://{who}@example.test/", "events": [],
                                                              "signatureSecret": "x"})
        assert reply.status == 400 and "password" in reply.message(), (who, reply)


def test_at_once(world):
    """of many that are made at once a key gets sixteen; of changes at once none is undone by another"""
    body = {"name": "x", "url": "http://example.test/", "events": [], "signatureSecret": "x"}

    def ask(pool, method, path, bodies):
        return [each.result() for each in [pool.submit(world.other.ask, method, path, body) for body in bodies]]

    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        made = [reply for reply in ask(pool, "POST", "/events/webhooks", [body] * 64) if reply.status == 201]
        assert len(made) == 16, len(made)
        paths = [f"/events/webhooks/{reply.json()['id']}" for reply in made]
        for turn in range(20):
            ask(pool, "PATCH", paths[0], [{"enabled": bool(turn % 2)}, *[{"name": f"{turn}-{i}"} for i in range(8)]])
            assert world.other.ask("GET", paths[0]).json()["enabled"] == bool(turn % 2), turn
        assert {reply.status for path in paths for reply in ask(pool, "DELETE", path, [None])} == {200}


def test_bounded(world):
    """a key has at most sixteen"""
    made = [register(world.other, 1, [], host="example.test") for _ in range(16)]
    reply = world.other.ask("POST", "/events/webhooks", {"name": "x", "url": "http://example.test/", "events": [],
                                                         "signatureSecret": "x"})
    assert reply.status == 429, reply
    for hook_id in made:
        assert world.other.ask("DELETE", f"/events/webhooks/{hook_id}").status == 200
