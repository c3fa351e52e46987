# SPDX-License-Identifier: Apache-2.0
"""An agent is killed: its sandbox ends, and no other."""
import os
import signal

from helpers import Counter, agent_of, running
from service import wait_for


def test_killed(_):
    """kill -9 of one of five agents"""
    with running() as (_, client):
        boxes = [client.create(timeout=600) for _ in range(5)]
        counters = [Counter(box) for box in boxes]
        agents = [agent_of(box) for box in boxes]
        assert all(agents) and len(set(agents)) == 5, agents
        os.kill(agents[2], signal.SIGKILL)
        assert counters[2].broken(), "its stream broke off"
        assert wait_for(lambda: boxes[2].ask("GET", "/health", token=False).status == 502)
        reply = client.ask("GET", f"/sandboxes/{boxes[2].id}")
        assert reply.status == 404 and "crash" in reply.body.decode(), reply
        for counter in counters[:2] + counters[3:]:
            got = counter.read(10)
            assert got == list(range(got[0], got[0] + len(got))), got
        assert len(client.ask("GET", "/v2/sandboxes").json()) == 4


def test_paused(_):
    """kill -9 of a paused one's agent"""
    with running() as (_, client):
        box = client.create(timeout=600)
        agent = agent_of(box)
        client.ask("POST", f"/sandboxes/{box.id}/pause")
        os.kill(agent, signal.SIGKILL)
        assert wait_for(lambda: client.ask("GET", f"/sandboxes/{box.id}").status == 404), "it is gone"


def test_stopped(_):
    """an agent that hangs harms nobody else, and its sandbox can be killed"""
    with running() as (_, client):
        stuck, fine = client.create(timeout=600), client.create(timeout=600)
        os.kill(agent_of(stuck), signal.SIGSTOP)
        assert fine.run("echo fine")[0] == b"fine\n"
        assert client.ask("GET", f"/sandboxes/{stuck.id}").status == 200
        assert stuck.kill().status == 204
        assert fine.run("echo fine")[0] == b"fine\n"


def test_memory(_):
    """a sandbox that eats its memory loses the eater; others do not notice"""
    with running(sandbox_memory="64M") as (_, client):
        hungry, fine = client.create(timeout=600), client.create(timeout=600)
        end = hungry.run("exec python3 -c 'import time; x = b\"x\" * (300 << 20); time.sleep(10)'")[2]
        assert end.get("exitCode") in (-1, 1, 137), end
        assert fine.run("echo fine")[0] == b"fine\n"
