# SPDX-License-Identifier: Apache-2.0
"""What the parts share: a service, commands that count, and what a process holds."""
import base64
import contextlib
import os
import pathlib
import re
import signal
import time

import raw
import service

BACK_SECONDS = service.PATIENCE
COUNT = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.03; done"


@contextlib.contextmanager
def running(**settings):
    """A service for one test: (service, client)."""
    each = service.Service({name.replace("_", ".", 1): value for name, value in settings.items()})
    try:
        each.start()
        yield each, raw.Client(each.port, each.key)
    finally:
        each.stop()


class Counter:
    """A command that counts aloud. seen is what was read of it so far."""

    def __init__(self, box):
        self.box, self.seen, self.rest = box, [], b""
        self.connection = box.start(COUNT)
        self.stream = raw.messages(self.connection)
        self.pid = next(self.stream)[1]["event"]["start"]["pid"]

    def reconnect(self):
        self.rest = b""
        self.connection.close()
        self.connection = self.box.stream("process.Process/Connect", {"process": {"pid": self.pid}})
        assert self.connection.status == 200, self.connection.status
        self.stream = raw.messages(self.connection)
        start = next(self.stream)[1]
        assert start["event"]["start"]["pid"] == self.pid, start

    def read(self, count):
        """The next numbers, at least so many."""
        got = []
        while len(got) < count:
            flags, message = next(self.stream)
            assert not flags, message
            self.rest += base64.b64decode(message["event"].get("data", {}).get("stdout", ""))
            *lines, self.rest = self.rest.split(b"\n")
            got += [int(line) for line in lines if line]
        self.seen += got
        return got

    def broken(self, seconds=service.PATIENCE):
        """Whether the stream breaks off without an end."""
        self.connection.socket.settimeout(seconds)
        try:
            for flags, _ in self.stream:
                if flags:
                    return False
        except raw.Closed:
            return True
        except (TimeoutError, ValueError):
            return False
        return True


def kill_server(each):
    """Kills the server room and waits until another one answers."""
    old = service.wait_for(each.server_pid, BACK_SECONDS)
    assert old, "there is a server"
    os.kill(old, signal.SIGKILL)
    wait_back(each, old)


def wait_back(each, old=None):
    def back():
        return each.server_pid() not in (None, old) and each.ready()
    assert service.wait_for(back, BACK_SECONDS), f"no other server answers:\n{each.log_tail()}"


def kill_warden(each):
    each.process.kill()
    each.process.wait()


def restart(each):
    """Starts a service again on its state and its port."""
    each.start()


def agent_of(box):
    """The process id, seen from here, of pid 1 in this box."""
    mark = f"{time.monotonic_ns()}"
    connection = box.start(f"exec -a mark-{mark} sleep 1000")
    next(raw.messages(connection))
    try:
        return service.wait_for(lambda: _pid_one_above(f"mark-{mark}"))
    finally:
        connection.close()


def _pid_one_above(mark):
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError, KeyError):
            if not (entry / "cmdline").read_bytes().startswith(mark.encode() + b"\0"):
                continue
            pid = int(entry.name)
            while True:
                status = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
                              if ":\t" in line)
                if status["NSpid"].split()[-1] == "1":
                    return pid
                pid = int(status["PPid"])
    return None


def held(pid):
    """What a process holds: descriptors, threads, kilobytes."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return {"descriptors": len(os.listdir(f"/proc/{pid}/fd")),
            "threads": int(re.search(r"Threads:\s+(\d+)", status).group(1)),
            "kB": int(re.search(r"VmRSS:\s+(\d+)", status).group(1))}


def machine():
    """What boxes leave on a machine when something is wrong. Others may have boxes too: only orphans count."""
    mounts = [line for line in pathlib.Path("/proc/mounts").read_text().splitlines() if "glovebox" in line]
    return {"orphans": service.left_behind(), "mounts": len(mounts)}


def size_of(directory):
    return sum(path.stat().st_size for path in pathlib.Path(directory).rglob("*") if path.is_file())
