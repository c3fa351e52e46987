# SPDX-License-Identifier: Apache-2.0
"""The server is killed: boxes and their commands go on, and are found again."""
import os
import signal
import time

import raw
from helpers import Counter, kill_server, running, wait_back
from service import wait_for


def test_fifty_commands(_):
    """kill -9 in the middle of 50 running commands: all of them go on, and nothing is lost after reconnecting"""
    with running() as (each, client):
        boxes = [client.create(timeout=600) for _ in range(10)]
        counters = [Counter(box) for box in boxes for _ in range(5)]
        for counter in counters:
            counter.read(3)
        kill_server(each)
        assert all(counter.broken() for counter in counters), "every stream broke off"
        lasts = [counter.seen[-1] for counter in counters]
        for counter in counters:
            counter.reconnect()
        for counter, last in zip(counters, lasts):
            got = counter.read(20)
            assert got[0] > last, (last, got)
            assert got == list(range(got[0], got[0] + len(got))), got
        for box in boxes:
            assert len(box.rpc("process.Process/List", {})[1]["processes"]) == 5


def test_everything_known(_):
    """after kill -9 everything is as it was: lists, metadata, ends, tokens, paused ones"""
    with running() as (each, client):
        boxes = [client.create(timeout=600, metadata={"n": str(i)}, envVars={"N": str(i)}) for i in range(5)]
        client.ask("POST", f"/sandboxes/{boxes[0].id}/pause")
        boxes[1].run("echo kept >file")
        before = client.ask("GET", "/v2/sandboxes").json()
        kill_server(each)
        after = client.ask("GET", "/v2/sandboxes").json()
        assert after == before, f"\n{before}\n{after}"
        assert boxes[1].run("cat file; echo $N")[0] == b"kept\n1\n"
        assert client.ask("POST", f"/sandboxes/{boxes[0].id}/connect", {"timeout": 60}).status == 201
        assert boxes[0].run("echo $N")[0] == b"0\n"


def test_records(_):
    """what was answered before kill -9 holds after it"""
    with running() as (each, client):
        alive, dead = [], []
        for i in range(40):
            box = client.create(timeout=600)
            if i % 2:
                assert box.kill().status == 204
                dead.append(box.id)
            else:
                alive.append(box.id)
            if i % 10 == 9:
                kill_server(each)
        listed = {item["sandboxID"] for item in client.ask("GET", "/v2/sandboxes?limit=100").json()}
        assert listed == set(alive), (len(listed), len(alive))
        for ident in dead:
            reply = client.ask("GET", f"/sandboxes/{ident}")
            assert reply.status == 404 and "killed" in reply.body.decode(), reply


def test_deadline(_):
    """a time that runs out while there is no server"""
    with running() as (each, client):
        box = client.create(timeout=2)
        pid = each.server_pid()
        # A server that hangs is as good as none.
        os.kill(pid, signal.SIGSTOP)
        time.sleep(3)
        os.kill(pid, signal.SIGKILL)
        wait_back(each, pid)
        reply = client.ask("GET", f"/sandboxes/{box.id}")
        assert reply.status == 404 and "time" in reply.body.decode(), reply


def test_hup(_):
    """SIGHUP: another server, the same boxes"""
    with running() as (each, client):
        counter = Counter(client.create(timeout=600))
        counter.read(3)
        old = each.server_pid()
        each.process.send_signal(signal.SIGHUP)
        wait_back(each, old)
        last = counter.seen[-1]
        counter.reconnect()
        assert counter.read(5)[0] > last


def test_often(_):
    """killed ten times in a row, it comes back each time"""
    with running() as (each, client):
        box = client.create(timeout=600)
        for _ in range(10):
            old = wait_for(each.server_pid)
            kill_server(each)
            assert each.server_pid() != old
        assert box.run("echo still")[0] == b"still\n"


def test_input(_):
    """a command that waits for input gets it from the next server"""
    with running() as (each, client):
        box = client.create(timeout=600)
        connection = box.start("read x; echo got $x", stdin=True)
        pid = next(raw.messages(connection))[1]["event"]["start"]["pid"]
        kill_server(each)
        connection.close()
        with box.stream("process.Process/Connect", {"process": {"pid": pid}}) as again:
            stream = raw.messages(again)
            next(stream)
            status, answer = box.rpc("process.Process/SendInput", {"process": {"pid": pid}, "input": {"stdin": "aGkK"}})
            assert status == 200, answer
            assert raw.collect(stream)[0] == b"got hi\n"
