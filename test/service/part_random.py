# SPDX-License-Identifier: Apache-2.0
"""Something is killed at random points under load, again and again. What was answered must hold."""
import collections
import contextlib
import os
import random
import signal
import threading
import time

import raw
import service
from helpers import BACK_SECONDS, kill_warden, machine, restart, running, wait_back

KILLS = int(os.environ.get("SERVICE_KILLS", "15"))
ERRORS = (raw.Closed, OSError, AssertionError, ValueError, StopIteration, KeyError)


class Load:
    """Workers that create, use and kill sandboxes, and remember what the service said of each."""

    def __init__(self, client, workers=4):
        self.client, self.stop = client, threading.Event()
        self.lock = threading.Lock()
        self.made, self.killed = {}, set()  # id: when; what 201 and 204 were said of
        self.done = collections.Counter()
        self.threads = [threading.Thread(target=self.work, args=(i,), daemon=True) for i in range(workers)]
        for thread in self.threads:
            thread.start()

    def work(self, seed):
        chance = random.Random(seed)
        while not self.stop.is_set():
            with contextlib.suppress(*ERRORS):
                self.once(chance)
            time.sleep(0.005)

    def once(self, chance):
        box = self.client.create(timeout=900)
        with self.lock:
            self.made[box.id] = time.monotonic()
        self.done["created"] += 1
        if box.run("echo x")[0] == b"x\n":
            self.done["ran"] += 1
        if chance.random() < 0.3:
            box.ask("POST", "/files?path=f", bytes(200_000), {"Content-Type": "application/octet-stream"})
        if chance.random() < 0.2:
            self.client.ask("POST", f"/sandboxes/{box.id}/pause", {"memory": chance.random() < 0.5})
        if chance.random() < 0.9 and box.kill().status == 204:
            with self.lock:
                self.killed.add(box.id)

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join(2 * service.PATIENCE)


def check_records(client, load, told):
    """Nothing that was answered is forgotten. told: what may have ended, with a reason."""
    with load.lock:
        made, killed = dict(load.made), set(load.killed)
    for ident in made:
        reply = client.ask("GET", f"/sandboxes/{ident}")
        if ident in killed:
            assert reply.status == 404, (ident, reply)
        elif reply.status != 200:
            # Its kill may have been done without our hearing of it.
            assert reply.status == 404 and "reason" in reply.json(), (ident, reply)
            assert reply.json()["reason"] in told, (ident, reply)


def kill_something(each, what):
    if what == "server":
        pid = service.wait_for(each.server_pid, BACK_SECONDS)
        assert pid, f"no server within {BACK_SECONDS} s:\n{each.log_tail()}"
        os.kill(pid, signal.SIGKILL)
        wait_back(each, pid)
    elif what == "agent":
        agents = each.agents()
        if agents:
            with contextlib.suppress(ProcessLookupError):
                os.kill(random.choice(agents), signal.SIGKILL)
    else:
        agents = each.agents()
        kill_warden(each)
        assert service.wait_for(lambda: not any(service.alive(pid) for pid in agents)), "boxes outlived the warden"
        restart(each)


def test_random(verdicts):
    """kill -9 of server, agents and warden at random points under load"""
    chance = random.Random(7)
    counts = collections.Counter()
    with running(limits_ended_kept=100_000) as (each, client):
        load = Load(client)
        try:
            for _ in range(KILLS):
                time.sleep(chance.random() * 0.7)
                what = chance.choices(("server", "agent", "warden"), (5, 3, 2))[0]
                kill_something(each, what)
                counts[what] += 1
            wait_back(each)
        finally:
            load.end()
        check_records(client, load, ("killed", "crashed", "stopped", "timeout", "memory"))
        box = client.create()
        assert box.run("echo fine")[0] == b"fine\n"
        verdicts.diag(f"{dict(counts)}; {dict(load.done)}; {len(load.killed)} killed")
        assert load.done["ran"] > KILLS, load.done
    assert machine() == {"orphans": "", "mounts": 0}, machine()
