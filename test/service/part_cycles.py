# SPDX-License-Identifier: Apache-2.0
"""CR-07: sandboxes come and go, and nothing grows."""
import concurrent.futures
import os
import time

from helpers import held, machine, running, size_of
from service import PATIENCE, wait_for

CYCLES = int(os.environ.get("SERVICE_CYCLES", "300"))
WARM = 150
CALM_SECONDS = 1.5
BUSY = 1 if CYCLES <= 10000 else 20  # one of so many does something; in a long run the others only come and go
# What one run may differ from another by, whatever the number of cycles.
SLACK = {"descriptors": 4, "threads": 4, "kB": 6144}


def work(box):
    out = box.run("echo x; dd if=/dev/zero of=f bs=64k count=4 2>/dev/null")[0]
    assert out == b"x\n", out
    assert box.ask("GET", "/files?path=f").status == 200


def cycle(client, busy):
    box = client.create(metadata={"k": "v" * 100})
    if busy:
        work(box)
    assert box.kill().status == 204


def cycles(client, count, at_once=4):
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for done in [pool.submit(cycle, client, number % BUSY == 0) for number in range(count)]:
            done.result()


def counts(each):
    """What changes while something is still going away."""
    return [(now["descriptors"], now["threads"]) for now in (held(each.process.pid), held(each.server_pid()))], sorted(each.agents())


def settled(each):
    """What is held once everything that is going away has gone: when nothing has changed for a while."""
    before, since, until = counts(each), time.monotonic(), time.monotonic() + PATIENCE
    while time.monotonic() - since < CALM_SECONDS and time.monotonic() < until:
        time.sleep(0.1)
        if (now := counts(each)) != before:
            before, since = now, time.monotonic()
    return {"warden": held(each.process.pid), "server": held(each.server_pid()),
            "machine": machine() | {"boxes": len(each.agents())},
            "database": size_of(os.path.join(each.state, "db"))}


def test_flat(verdicts):
    """descriptors, threads, memory, cgroups, mounts and the database stay as they were"""
    with running(limits_ended_kept=100, limits_events_kept=100, pool_size=2, limits_creates_per_second=100000,
                 limits_requests_per_second=1000000) as (each, client):
        cycles(client, WARM)
        before = settled(each)
        started = time.monotonic()
        cycles(client, CYCLES)
        seconds = time.monotonic() - started
        wait_for(lambda: settled(each)["machine"] == before["machine"])
        after = settled(each)
        verdicts.diag(f"{CYCLES} cycles in {seconds:.1f} s; before {before}; after {after}")
        for process in ("warden", "server"):
            for what, slack in SLACK.items():
                grown = after[process][what] - before[process][what]
                verdicts.ok(grown <= slack, f"cycles: {process}: {what} did not grow", f"{before[process]}", f"{after[process]}")
        verdicts.equal(after["machine"], before["machine"], "cycles: boxes, cgroups and mounts did not grow")
        verdicts.ok(after["database"] - before["database"] < 2_000_000, "cycles: the database did not grow",
                    f"{before['database']}, then {after['database']}")
        verdicts.equal(client.ask("GET", "/v2/sandboxes").json(), [], "cycles: no sandbox is left")


def test_streams_flat(verdicts):
    """broken streams and uploads leave nothing either"""
    with running(pool_size=0) as (each, client):
        box = client.create(timeout=900)

        def rude():
            connection = box.start("sleep 0.3")
            connection.reset()
            upload = client.connect()
            upload.send(("POST /files?path=x HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n"
                         "Content-Type: application/octet-stream\r\n" +
                         "".join(f"{name}: {value}\r\n" for name, value in box.headers().items()) + "\r\nxxx").encode())
            upload.reset()
        for _ in range(30):
            rude()
        before = settled(each)
        for _ in range(200):
            rude()
        after = settled(each)
        for what, slack in SLACK.items():
            grown = after["server"][what] - before["server"][what]
            verdicts.ok(grown <= slack, f"cycles: after rude clients: {what} did not grow", before, after)
        assert box.run("ls -A | grep -c '^\\.glovebox\\|^x$'; true")[0] == b"0\n", box.run("ls -A")[0]
