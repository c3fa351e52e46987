# SPDX-License-Identifier: Apache-2.0
"""Layers that nobody knows of: what a server leaves that dies at a bad moment is found by the next one."""
import contextlib
import os
import shutil
import signal
import threading

import raw
from helpers import kill_server, running, wait_back
from service import wait_for

GONE_SECONDS = 30


def names(each):
    """The layers that are whole."""
    return {name for name in os.listdir(os.path.join(each.state, "layers")) if name.isalnum()}


def snapshot_of(client, box):
    reply = client.ask("POST", f"/sandboxes/{box.id}/snapshots", {})
    assert reply.status == 201, reply
    return reply.json()["snapshotID"]


def plant(each, like, *new):
    """Layers without a record."""
    for name in new:
        shutil.copytree(f"{each.state}/layers/{like}", f"{each.state}/layers/{name}", symlinks=True)


def test_unknown(_):
    """layers without a record go at the next start; those of snapshots and of paused sandboxes stay"""
    with running() as (each, client):
        box = client.create()
        box.run("echo kept >file")
        snapshot = snapshot_of(client, box)
        (layer,) = names(each)
        paused = client.create(templateID=snapshot)
        paused.run("echo paused >file")
        assert client.ask("POST", f"/sandboxes/{paused.id}/pause", {"memory": False}).status == 204
        known = names(each)
        assert len(known) == 2, known
        plant(each, layer, "0first", "l" + "a" * 30, "zlast", *(f"lplanted{i}" for i in range(20)))
        kill_server(each)
        # What is made while the search goes on is not taken for an orphan.
        made = [snapshot_of(client, box) for _ in range(6)]
        expected = known | {name.partition(":")[0] for name in made}
        assert wait_for(lambda: names(each) == expected, GONE_SECONDS), (names(each), expected)
        assert each.log().count('"event":"orphaned_layer"') == 23, each.log_tail()
        for name in (snapshot, *made):
            assert client.create(templateID=name).run("cat file")[0] == b"kept\n"
        assert client.ask("POST", f"/v2/sandboxes/{paused.id}/connect", {}).status == 201
        assert paused.run("cat file")[0] == b"paused\n"


def test_never_told(_):
    """a layer that was made for a server that does not live to record it"""
    with running() as (each, client):
        box = client.create()
        assert box.run("head -c 200M /dev/zero >file")[2]["exited"]

        def ask():
            with contextlib.suppress(raw.Closed, OSError):
                client.ask("POST", f"/sandboxes/{box.id}/snapshots", {})

        asking = threading.Thread(target=ask)
        asking.start()
        assert wait_for(lambda: any(name.endswith(".tmp") for name in os.listdir(f"{each.state}/layers")), 10, 0.001)
        server = each.server_pid()
        os.kill(server, signal.SIGSTOP)
        assert wait_for(lambda: len(names(each)) == 1, 20), "the warden made it"
        os.kill(server, signal.SIGKILL)
        wait_back(each, server)
        asking.join()
        assert wait_for(lambda: not names(each), GONE_SECONDS), names(each)
        assert snapshot_of(client, box) and len(names(each)) == 1
        assert box.run("wc -c <file")[0] == b"209715200\n"
