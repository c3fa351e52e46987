# SPDX-License-Identifier: Apache-2.0
"""When a sandbox is gone, everybody who asks is told why."""
import os
import signal

from service import wait_for


def gone(world, box):
    """The two answers about a sandbox that has ended: of the data plane and of the control plane."""
    assert wait_for(lambda: box.ask("GET", "/health", token=False).status == 502), "it is not gone"
    data = box.ask("GET", "/health", token=False)
    control = world.client.ask("GET", f"/sandboxes/{box.id}")
    assert data.json()["code"] == 502 and data.json()["sandboxId"] == box.id, data
    assert "not found" in data.json()["message"], data
    assert control.status == 404 and control.json()["code"] == 404, control
    return data.json(), control.json()


def tells(answers, word):
    for answer in answers:
        assert word in str(answer.get("reason", "")) + answer["message"], (word, answer)


def test_killed(world):
    """killed: by a request"""
    box = world.client.create()
    box.kill()
    tells(gone(world, box), "killed")


def test_timeout(world):
    """its time was over"""
    box = world.client.create(timeout=1)
    answers = gone(world, box)
    tells(answers, "time")
    assert "endedAt" in answers[1] or "ago" in answers[1]["message"], answers[1]


def test_crashed(world):
    """its agent was killed from outside"""
    before = set(world.service.agents())
    box = world.client.create()
    box.run("true")
    # The pool may have made others meanwhile: the one whose cgroup has our process in it is meant.
    ours = 1000 + os.getpid()  # a sleep that nobody else on this machine sleeps
    with box.start(f"sleep {ours}"):
        agent = wait_for(lambda: agent_of(ours))
    assert agent, (before, world.service.agents())
    os.kill(agent, signal.SIGKILL)
    tells(gone(world, box), "crash")


def agent_of(seconds):
    """The process outside that is the parent of `sleep SECONDS` in a box."""
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as stream:
                if stream.read() != b"sleep\0%d\0" % seconds:
                    continue
            pid = int(entry)
            while True:
                with open(f"/proc/{pid}/status", encoding="ascii") as stream:
                    lines = dict(line.split(":\t", 1) for line in stream.read().splitlines() if ":\t" in line)
                if lines["NSpid"].split()[-1] == "1":
                    return pid
                pid = int(lines["PPid"])
        except (OSError, KeyError):
            continue
    return None


def test_never(world):
    """there never was one"""
    box = world.client.create()
    box.id = "inosuchsandbox"
    reply = box.ask("GET", "/health", token=False)
    assert reply.status == 502 and reply.json()["sandboxId"] == "inosuchsandbox", reply
    assert "killed" not in reply.json()["message"], reply


def test_paused(world):
    """paused: looks dead, and says that it is paused"""
    box = world.client.create()
    world.client.ask("POST", f"/sandboxes/{box.id}/pause")
    reply = box.ask("GET", "/health", token=False)
    assert reply.status == 502 and "paused" in reply.body.decode(), reply


def test_every_route(world):
    """502 on every route of the data plane"""
    box = world.client.create()
    box.kill()
    for method, path in (("POST", "/process.Process/List"), ("POST", "/process.Process/Start"), ("GET", "/files?path=f"),
                         ("POST", "/filesystem.Filesystem/Stat"), ("GET", "/envs"), ("GET", "/metrics"), ("GET", "/anything")):
        reply = box.ask(method, path, {} if method == "POST" else None)
        assert reply.status == 502 and reply.json()["code"] == 502, (path, reply)


def test_reason_only_for_owner(world):
    """another key is not told that there was one"""
    box = world.client.create()
    box.kill()
    foreign = world.other.ask("GET", f"/sandboxes/{box.id}").json()
    never = world.other.ask("GET", "/sandboxes/inosuchsandbox").json()
    assert foreign["message"].replace(box.id, "X") == never["message"].replace("inosuchsandbox", "X"), foreign
