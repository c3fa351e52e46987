# SPDX-License-Identifier: Apache-2.0
"""Sandboxes that are paused without memory, at bad moments: what was answered holds, and what has ended stays so."""
import contextlib
import os
import signal
import sqlite3
import threading
import time

import raw
from helpers import kill_server, running, wait_back
from service import children, program_of, wait_for

PAUSED, ENDED = 2, 3  # as the store writes it


def pause_cold(client, box):
    return client.ask("POST", f"/sandboxes/{box.id}/pause", {"memory": False}).status


def connect(client, box, timeout=600):
    return client.ask("POST", f"/v2/sandboxes/{box.id}/connect", {"timeout": timeout}).status


def attempt(client, *request):
    """Asks a server that may die of it."""
    with contextlib.suppress(OSError, raw.Closed):
        client.ask(*request)


def state_of(each, box):
    """What the store says."""
    with contextlib.closing(sqlite3.connect(f"file:{each.state}/db/glovebox.db?mode=ro", uri=True)) as db:
        return db.execute("SELECT state FROM sandboxes WHERE id = ?", (box.id,)).fetchone()[0]


def test_new_server(_):
    """kill -9 of the server: one that was paused without memory and goes on does so with the next"""
    with running() as (each, client):
        box = client.create(timeout=600)
        assert pause_cold(client, box) == 204 and connect(client, box) == 201
        assert box.run("echo kept >file")[2]["exited"]
        kill_server(each)
        assert client.ask("GET", f"/sandboxes/{box.id}").status == 200
        assert box.run("cat file")[0] == b"kept\n"


def test_deadline(_):
    """its time is over while its files are copied: either it was paused, or it has ended and nobody said otherwise"""
    with running() as (_each, client):
        answers = []
        for early in (0.01, 0.05, 0.1, 0.2, 0.5, 0.9):
            box = client.create(timeout=600)
            assert box.run("head -c 300M /dev/zero >file")[2]["exited"]
            assert client.ask("POST", f"/sandboxes/{box.id}/timeout", {"timeout": 1}).status == 204
            time.sleep(1 - early)
            answers.append(pause_cold(client, box))
            if answers[-1] == 204:
                assert connect(client, box) == 201, early
                assert box.run("wc -c <file")[0] == b"314572800\n", early
            box.kill()
        assert 204 in answers and set(answers) <= {204, 404}, answers


def test_no_time(_):
    """resumed for no time at all: it ends, and is not on record as living"""
    with running(pool_size=0) as (each, client):
        for _ in range(15):
            box = client.create(timeout=600)
            assert pause_cold(client, box) == 204
            assert connect(client, box, timeout=0) in (201, 404)
            assert wait_for(lambda: client.ask("GET", f"/sandboxes/{box.id}").status == 404)  # pylint: disable=cell-var-from-loop
            assert wait_for(lambda: state_of(each, box) == ENDED), state_of(each, box)  # pylint: disable=cell-var-from-loop


def test_not_saved(_):
    """its files were kept but that cannot be saved: it goes on as if nobody had asked, and can be killed"""
    with running(pool_size=0) as (each, client):
        box, got = client.create(timeout=600), []
        assert box.run("head -c 300M /dev/zero >file")[2]["exited"]
        thread = threading.Thread(target=lambda: got.append(pause_cold(client, box)))
        thread.start()
        assert wait_for(lambda: os.listdir(f"{each.state}/layers"), pause=0.001)
        with each.store_locked():
            thread.join()
        assert got == [500], got
        assert box.run("wc -c <file")[0] == b"314572800\n"
        assert box.kill().status == 204 and wait_for(lambda: not each.agents())


def test_resume_not_saved(_):
    """that it goes on cannot be saved: it stays paused, and its files are there when it can"""
    with running(pool_size=0) as (each, client):
        box = client.create(timeout=600)
        assert box.run("echo kept >file")[2]["exited"] and pause_cold(client, box) == 204
        with each.store_locked():
            assert connect(client, box) == 500
        assert client.ask("GET", f"/sandboxes/{box.id}").json()["state"] == "paused"
        assert wait_for(lambda: not each.agents())
        kill_server(each)
        assert connect(client, box) == 201 and box.run("cat file")[0] == b"kept\n"


def test_dies_resuming(_):
    """kill -9 of the server that resumes it, before that is saved, and of the next one: it is paused, with its files"""
    with running(pool_size=0) as (each, client):
        box = client.create(timeout=600)
        assert box.run("echo kept >file")[2]["exited"] and pause_cold(client, box) == 204
        assert wait_for(lambda: not each.agents())
        old = each.server_pid()
        thread = threading.Thread(target=attempt, args=(client, "POST", f"/v2/sandboxes/{box.id}/connect", {"timeout": 600}))
        with each.store_locked():
            thread.start()
            assert wait_for(each.agents, pause=0.001)
            os.kill(old, signal.SIGKILL)
        thread.join()
        wait_back(each, old)
        assert state_of(each, box) == PAUSED
        assert wait_for(lambda: not each.agents())
        kill_server(each)
        assert client.ask("GET", f"/sandboxes/{box.id}").json()["state"] == "paused"
        assert connect(client, box) == 201 and box.run("cat file")[0] == b"kept\n"


def test_at_its_deadline(_):
    """given more time in the moment in which it is paused because its time is over: who is told so finds it running"""
    with running(pool_size=0) as (each, client):
        for path, body in (("connect", {"timeout": 600}), ("timeout", {"timeout": 600}), ("refreshes", {"duration": 600})):
            box, got = client.create(timeout=2, autoPause=True), []
            os.kill(each.process.pid, signal.SIGSTOP)
            thread = threading.Thread(target=lambda: got.append(client.ask("POST", f"/sandboxes/{box.id}/{path}", body)))  # pylint: disable=cell-var-from-loop
            time.sleep(2.1)  # the warden learns of the time first, then of the request
            thread.start()
            time.sleep(0.2)
            os.kill(each.process.pid, signal.SIGCONT)
            thread.join()
            if got[0].status == 404:
                assert path != "connect" and "paused" in got[0].body.decode(), (path, got)
                assert connect(client, box) == 201
            else:
                assert got[0].status in (200, 201, 204), (path, got)
            assert box.run("echo runs")[0] == b"runs\n", (path, got)


def copiers(each):
    """Processes of the warden's own that copy files for a snapshot."""
    return {pid for pid in children(each.process.pid) if program_of(pid) == "glovebox"}


def test_while_copied(_):
    """asked for while its files are copied for a server that is gone: refused, or it is paused"""
    with running(pool_size=0) as (each, client):
        box, before = client.create(timeout=600), copiers(each)
        assert box.run("head -c 300M /dev/zero >file")[2]["exited"]
        thread = threading.Thread(target=attempt, args=(client, "POST", f"/sandboxes/{box.id}/snapshots", {}))
        thread.start()
        copier = wait_for(lambda: copiers(each) - before, pause=0.001).pop()
        os.kill(copier, signal.SIGSTOP)
        kill_server(each)
        thread.join()
        for body in ({}, {"memory": False}):
            assert client.ask("POST", f"/sandboxes/{box.id}/pause", body).status == 409
            assert client.ask("GET", f"/sandboxes/{box.id}").json()["state"] == "running"
        os.kill(copier, signal.SIGCONT)
        assert wait_for(lambda: client.ask("POST", f"/sandboxes/{box.id}/pause", {}).status == 204)
        assert connect(client, box) == 201 and box.run("wc -c <file")[0] == b"314572800\n"


def test_one_name(_):
    """two snapshots of one name at once: the newer one is there"""
    with running() as (_each, client):
        boxes = [client.create(timeout=600) for _ in range(4)]

        def snapshot(box, got):
            got.append(client.ask("POST", f"/sandboxes/{box.id}/snapshots", {"name": "same"}).status)

        for _ in range(60):
            got = []
            threads = [threading.Thread(target=snapshot, args=(box, got)) for box in boxes]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert got == [201] * len(boxes), got
            assert len(client.ask("GET", "/snapshots").json()) == 1
