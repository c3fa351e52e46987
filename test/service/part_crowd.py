# SPDX-License-Identifier: Apache-2.0
"""Many sandboxes at once. A thousand only with SERVICE_FULL=1: that takes gigabytes."""
import concurrent.futures
import os
import pathlib
import re
import time

import service
from helpers import held, running

FULL = os.environ.get("SERVICE_FULL") == "1"
COUNT = 1000 if FULL else 100
EACH_KB = 3 * 1024


def machine_kb():
    """All memory the system uses, caches that it can give back not counted."""
    with open("/proc/meminfo", encoding="ascii") as stream:
        text = stream.read()
    total, available = (int(re.search(rf"{name}:\s+(\d+)", text).group(1)) for name in ("MemTotal", "MemAvailable"))
    return total - available


def box_kb(pid):
    """What the cgroup of a box's agent is charged for: its processes, files and what the kernel keeps for them."""
    for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text(encoding="ascii").splitlines():
        _, controllers, path = line.split(":", 2)
        for usage in (f"/sys/fs/cgroup/memory{path}/memory.usage_in_bytes" if "memory" in controllers.split(",") else "",
                      f"/sys/fs/cgroup{path}/memory.current" if not controllers else ""):
            if os.path.exists(usage):
                return int(pathlib.Path(usage).read_text(encoding="ascii")) / 1024
    return held(pid)["kB"]


def service_kb(each):
    """The same of the whole service, whatever others do beside it."""
    return held(each.process.pid)["kB"] + held(each.server_pid())["kB"] + sum(map(box_kb, each.agents()))


def test_idle(verdicts):
    """idle sandboxes weigh little, and every one of them works"""
    with running(pool_size=0) as (each, client):
        # The whole machine only where one wants to know that, and has it to oneself.
        used_kb = machine_kb if FULL else lambda: service_kb(each)
        client.create().kill()
        service.wait_for(lambda: not each.agents())
        before = used_kb()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            boxes = [made.result() for made in [pool.submit(client.create, timeout=3000) for _ in range(COUNT)]]
        time.sleep(2)
        each_kb = (used_kb() - before) / COUNT
        verdicts.diag(f"{COUNT} sandboxes: {each_kb:.0f} kB each")
        verdicts.ok(each_kb <= EACH_KB, f"crowd: {COUNT} idle ones weigh at most {EACH_KB} kB each", f"{each_kb:.0f} kB each")
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            outputs = [done.result()[0] for done in [pool.submit(box.run, f"echo {i}") for i, box in enumerate(boxes)]]
        assert outputs == [f"{i}\n".encode() for i in range(COUNT)]
        assert int(client.ask("GET", "/v2/sandboxes?limit=1").headers["x-total-running"]) == COUNT
