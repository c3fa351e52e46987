# SPDX-License-Identifier: Apache-2.0
"""Layers that nobody knows of: what a server leaves that dies at a bad moment is found by the next one."""
import contextlib
import os
import re
import shutil
import signal
import sqlite3
import threading
import urllib.parse

import raw
from helpers import kill_server, running, wait_back
from service import wait_for

TRIES = 10


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
        planted = {"0first", "l" + "a" * 30, "zlast", *(f"lplanted{i}" for i in range(20))}
        plant(each, layer, *planted)
        kill_server(each)
        # What is made while the search goes on is not taken for an orphan.
        made = [snapshot_of(client, box) for _ in range(6)]
        expected = known | {name.partition(":")[0] for name in made}
        assert wait_for(lambda: names(each) == expected), (names(each), expected)
        # Of one that the killed server had just found there is word twice.
        assert wait_for(lambda: set(re.findall('"orphaned_layer","layer":"([^"]*)"', each.log())) == planted), each.log_tail()
        for name in (snapshot, *made):
            assert client.create(templateID=name).run("cat file")[0] == b"kept\n"
        assert client.ask("POST", f"/v2/sandboxes/{paused.id}/connect", {}).status == 201
        assert paused.run("cat file")[0] == b"paused\n"


def test_server_of_before(_):
    """what a server of an earlier version paused and made, in a database that has our form already, keeps its layers"""
    with running() as (each, client):
        box = client.create()
        box.run("echo below >file")
        below = snapshot_of(client, box)
        upper = client.create(templateID=below)
        upper.run("echo above >other")
        above = snapshot_of(client, upper)
        assert client.ask("DELETE", f"/templates/{urllib.parse.quote(below, '')}").status == 204
        box.run("echo paused >file")
        assert client.ask("POST", f"/sandboxes/{box.id}/pause", {"memory": False}).status == 204
        assert client.ask("DELETE", f"/sandboxes/{upper.id}").status == 204
        known = names(each)
        assert len(known) == 3, known
        plant(each, above.partition(":")[0], "0first", "zlast")
        with contextlib.closing(sqlite3.connect(f"{each.state}/db/glovebox.db", isolation_level=None)) as db:
            db.executescript("BEGIN IMMEDIATE; UPDATE sandboxes SET layers = NULL; UPDATE snapshots SET layers = NULL;"
                             "DELETE FROM layer_users WHERE layer <> user; COMMIT")
        kill_server(each)
        assert wait_for(lambda: names(each) == known), (names(each), known)
        assert client.create(templateID=above).run("cat file other")[0] == b"below\nabove\n"
        assert client.ask("POST", f"/v2/sandboxes/{box.id}/connect", {}).status == 201
        assert box.run("cat file")[0] == b"paused\n"


def asking(client, box):
    """A thread that asks for a snapshot and may get no answer."""
    def ask():
        with contextlib.suppress(raw.Closed, OSError):
            client.ask("POST", f"/sandboxes/{box.id}/snapshots", {})

    thread = threading.Thread(target=ask)
    thread.start()
    return thread


def stopped_in_a_copy(each, client, box):
    """Stops the server while the warden copies a layer for it: the one who asked. A copy does not take long: again, if
    it was there before the server stood still."""
    def half():
        return any(name.endswith(".tmp") for name in os.listdir(f"{each.state}/layers"))

    for _ in range(TRIES):
        who = asking(client, box)
        wait_for(lambda: half() or not who.is_alive(), pause=0.001)
        os.kill(each.server_pid(), signal.SIGSTOP)
        if half():
            return who
        os.kill(each.server_pid(), signal.SIGCONT)
        who.join()
        for snapshot in client.ask("GET", "/snapshots").json():
            client.ask("DELETE", f"/templates/{urllib.parse.quote(snapshot['snapshotID'], '')}")
        assert wait_for(lambda: not names(each)), names(each)
    raise AssertionError("every copy was made before the server could be stopped")


def test_never_told(_):
    """a layer that was made for a server that does not live to record it"""
    with running() as (each, client):
        box = client.create()
        assert box.run("head -c 200M /dev/zero >file")[2]["exited"]
        who, server = stopped_in_a_copy(each, client, box), each.server_pid()
        assert wait_for(lambda: len(names(each)) == 1), "the warden made it"
        os.kill(server, signal.SIGKILL)
        wait_back(each, server)
        who.join()
        assert wait_for(lambda: not names(each)), names(each)
        assert snapshot_of(client, box) and len(names(each)) == 1
        assert box.run("wc -c <file")[0] == b"209715200\n"
