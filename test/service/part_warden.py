# SPDX-License-Identifier: Apache-2.0
"""The warden is killed: every box goes with it, and the next start knows why."""
import os
import time

from helpers import Counter, kill_warden, machine, restart, running
from service import alive, wait_for

TRIES = 3


def killed_with_boxes(each, client):
    """Kills the warden of five boxes that work: they, and the seconds until all its children are gone."""
    boxes = [client.create(timeout=600) for _ in range(5)]
    for box in boxes:
        Counter(box).read(2)
    agents, server = each.agents(), each.server_pid()
    assert len(agents) >= 5, agents
    kill_warden(each)
    began = time.monotonic()
    assert wait_for(lambda: not any(alive(pid) for pid in agents + [server])), "its children outlive it"
    return boxes, time.monotonic() - began


def test_killed(verdicts):
    """kill -9: no process of any box is left within two seconds"""
    with running() as (each, client):
        # Where all processors are busy with others even the end of a process waits: not each time, then.
        for _ in range(TRIES):
            boxes, seconds = killed_with_boxes(each, client)
            restart(each)
            if seconds < 2:
                break
        verdicts.ok(seconds < 2, "warden: its children are gone in 2 s", f"{seconds:.1f} s")
        for box in boxes:
            reply = client.ask("GET", f"/sandboxes/{box.id}")
            assert reply.status == 404, reply
            assert any(word in reply.body.decode() for word in ("stopped", "restart")), reply
            data = box.ask("GET", "/health", token=False)
            assert data.status == 502 and any(word in data.body.decode() for word in ("stopped", "restart")), data
        assert client.ask("GET", "/v2/sandboxes").json() == []
        assert client.create().run("echo new")[0] == b"new\n"
    assert machine() == {"orphans": "", "mounts": 0}, machine()


def test_kept(_):
    """kill -9: keys and snapshots are still there"""
    with running() as (each, client):
        box = client.create()
        box.run("echo kept >file")
        snapshot = client.ask("POST", f"/sandboxes/{box.id}/snapshots", {}).json()["snapshotID"]
        paused = client.create()
        paused.run("echo paused >file")
        assert client.ask("POST", f"/sandboxes/{paused.id}/pause", {"memory": False}).status == 204
        kill_warden(each)
        restart(each)
        again = client.create(templateID=snapshot)
        assert again.run("cat file")[0] == b"kept\n"
        # What kept no memory lost nothing.
        reply = client.ask("POST", f"/v2/sandboxes/{paused.id}/connect", {})
        assert reply.status == 201, reply
        assert paused.run("cat file")[0] == b"paused\n"


def test_stopped(_):
    """SIGTERM and a new start: the same is told"""
    with running() as (each, client):
        box = client.create(timeout=600)
        assert each.kill(15) == 0
        restart(each)
        reply = client.ask("GET", f"/sandboxes/{box.id}")
        assert reply.status == 404 and any(word in reply.body.decode() for word in ("stopped", "restart")), reply


def test_layers(_):
    """what a snapshot leaves half-made is cleaned up"""
    with running() as (each, client):
        layers = os.path.join(each.state, "layers")
        box = client.create()
        client.ask("POST", f"/sandboxes/{box.id}/snapshots", {})
        kill_warden(each)
        half = os.path.join(layers, "lhalfmade.tmp")
        os.makedirs(half)
        restart(each)
        assert wait_for(lambda: not os.path.exists(half)), os.listdir(layers)
        assert len(os.listdir(layers)) == 1, os.listdir(layers)
