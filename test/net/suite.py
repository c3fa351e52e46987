# SPDX-License-Identifier: Apache-2.0
"""The network of boxes, in a laboratory without a way out (lab.py): what a box reaches, what it does not, and what is
seen of it outside. Each part is a file of its own beside this one.  run [PART[.TEST]]... runs only those. Prints TAP."""
import json
import os
import pathlib
import shlex
import sys
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "lib"), str(HERE)]
import lab  # noqa: E402  pylint: disable=wrong-import-position
import raw  # noqa: E402  pylint: disable=wrong-import-position
import service  # noqa: E402  pylint: disable=wrong-import-position
import tap  # noqa: E402  pylint: disable=wrong-import-position

PARTS = ("none", "clients", "names", "addresses", "tls", "http", "dns", "ways", "policy", "limits", "floods", "secrets",
         "upstream", "crash")
INSIDE = (HERE / "inside.py").read_bytes()
FAST = 4  # seconds: a refusal that takes longer is a program that hangs, for five or more
SETTLE = 0.1  # seconds without a packet: then the ends of connections of the test before are through
SETTINGS = {"limits.sandboxes": 64, "egress.lookups": 600}


class Box(raw.Box):
    """A sandbox that has our program inside."""

    def attempt(self, *attempts, timeout=120):
        """Results of inside.py's attempts."""
        self.put("/home/user/attempts", json.dumps(attempts).encode())
        status, out, err = self.command("/usr/bin/python3 /home/user/inside.py /home/user/attempts", timeout)
        assert status == 0, (status, out[-300:], err[-2000:])
        return json.loads(out)

    def one(self, **what):
        return self.attempt(what)[0]

    def command(self, text, timeout=60):
        """Status, output and errors of a shell command."""
        with self.start(text, timeout=timeout) as connection:
            out, err, end, last = raw.collect(raw.messages(connection))
        assert end, (text[:200], last)
        # An end without a status is one by a signal, or a 0 that was left out.
        return end.get("exitCode", 0) if end.get("exited", True) else -1, out.decode(errors="replace"), err.decode(errors="replace")

    def put(self, path, data):
        reply = self.ask("POST", f"/files?path={path}", data, {"Content-Type": "application/octet-stream"})
        assert reply.status == 200, reply

    def log(self):
        """The connections that the service tells of, newest last, and the sums."""
        reply = self.client.ask("GET", f"/v1/sandboxes/{self.id}/connections")
        assert reply.status == 200, reply
        return reply.json()

    def logged(self, **wanted):
        """Waits for an entry with these values."""
        def find():
            return [each for each in self.log()["connections"] if all(each.get(key) == value for key, value in wanted.items())]

        found = service.wait_for(find, pause=0.1)
        assert found, (wanted, self.log())
        return found[-1]

    def again(self):
        """Paused without memory and resumed: another box, with the same files."""
        reply = self.client.ask("POST", f"/sandboxes/{self.id}/pause", {"memory": False})
        assert reply.status == 204, reply
        reply = self.client.ask("POST", f"/sandboxes/{self.id}/connect", {"timeout": 300})
        assert reply.status in (200, 201), reply

    def update(self, **network):
        return self.client.ask("PUT", f"/sandboxes/{self.id}/network", network)


class World:
    """What the parts get."""

    def __init__(self, net):
        self.net = net
        self.services = {}
        self.running = self.service()

    def service(self, **settings):
        """The one service with these settings more; all of them end with the suite."""
        key = json.dumps(settings, sort_keys=True)
        if key not in self.services:
            self.services[key] = self.net.service(**({name.replace(".", "__"): value for name, value in SETTINGS.items()} | settings))
        return self.services[key]

    def end_service(self, **settings):
        running = self.services.pop(json.dumps(settings, sort_keys=True), None)
        if running:
            running.stop()

    def box(self, *allow, running=None, deny=None, timeout=600, **network):
        """A sandbox that may reach these; nothing at all without any."""
        running = running or self.running
        client = raw.Client(running.port, running.key)
        body = {"templateID": "base", "timeout": timeout}
        if allow or network or deny:
            body["network"] = {"allowOut": list(allow), "denyOut": deny or ["0.0.0.0/0"], **network}
        reply = client.ask("POST", "/sandboxes", body)
        assert reply.status == 201, reply
        box = Box(client, reply.json())
        box.put("/home/user/inside.py", INSIDE)
        return box

    def cleanup(self):
        for running in self.services.values():
            client = raw.Client(running.port, running.key)
            for box in client.ask("GET", "/v2/sandboxes?limit=100").json():
                client.ask("DELETE", f"/sandboxes/{box['sandboxID']}")

    def egress_pid(self, running=None):
        """The room's process, which the warden starts again when it dies."""
        for pid in service.children((running or self.running).process.pid):
            if service.program_of(pid).startswith("glovebox-egress"):
                return pid
        return None


def quoted(*words):
    return " ".join(shlex.quote(word) for word in words)


def settle(net):
    """Waits until nothing of the test before is on the cable any more, and forgets it."""
    def quiet():
        net.forget()
        time.sleep(SETTLE)
        return not net.sent()

    service.wait_for(quiet)
    net.forget()


def run_part(verdicts, world, name, cases):
    verdicts.diag(name)
    for text, function in cases:
        settle(world.net)
        began = time.monotonic()
        verdicts.attempt(f"{name}: {text}", function, world)
        verdicts.diag(f"{time.monotonic() - began:.1f} seconds")
        world.cleanup()


def main():
    if why := lab.cannot():
        tap.skip_all(why)
    if not os.access(service.GLOVEBOX, os.X_OK):
        tap.skip_all(f"no program at {service.GLOVEBOX}")
    verdicts = tap.Tap()
    with lab.Lab() as net, net.inside():
        world, started = None, time.monotonic()
        try:
            world = World(net)
            for name, _, cases in tap.parts(PARTS):
                run_part(verdicts, world, name, cases)
        except (service.ServiceError, AssertionError, OSError, raw.Closed) as error:
            verdicts.ok(False, "the service runs", f"{type(error).__name__}: {error}")
        finally:
            for running in world.services.values() if world else ():
                if verdicts.failed:
                    verdicts.diag("a service said at last:\n" + running.log_tail(15))
                verdicts.equal(running.stop(), 0, "the service ends when asked")
        verdicts.equal(service.left_behind(), "", "nothing is left behind")
        verdicts.diag(f"{time.monotonic() - started:.0f} seconds")
    return verdicts.finish()


if __name__ == "__main__":
    sys.exit(main())
