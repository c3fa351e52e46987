# SPDX-License-Identifier: Apache-2.0
"""The service from outside, byte by byte: who may ask, what is refused and how, what a bad client costs the
others. Each part is a file of its own beside this one.  run [PART[.TEST]]... runs only those. Prints TAP."""
import os
import pathlib
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "lib"), str(HERE)]
import openapi  # noqa: E402  pylint: disable=wrong-import-position
import raw  # noqa: E402  pylint: disable=wrong-import-position
import service  # noqa: E402  pylint: disable=wrong-import-position
import tap  # noqa: E402  pylint: disable=wrong-import-position

PARTS = ("auth", "routes", "heads", "bodies", "limits", "control", "webhooks", "secrets", "files", "uploads", "rpc",
         "interpreter", "kernels", "languages", "scripts", "reasons", "network", "ports", "slow", "flood")
QUICK_PARTS = ("auth", "routes", "heads", "bodies", "control", "files", "rpc", "interpreter", "reasons", "ports")


class World:
    """What the parts get: the service, two keys, and a client that must never notice anything."""

    def __init__(self, running):
        self.service = running
        self.port = running.port
        self.client = raw.Client(running.port, running.key)
        self.other = raw.Client(running.port, running.new_key())
        self.bystander = self.client.create(timeout=3600)

    def unharmed(self):
        """Somebody else's work goes on."""
        try:
            out, _, end, _ = self.bystander.run("echo fine")
            assert out == b"fine\n" and end["exited"], (out, end)
        except Exception:
            self.bystander = self.client.create(timeout=3600)  # for the parts to come
            raise

    def cleanup(self):
        for box in self.client.ask("GET", "/v2/sandboxes?limit=100").json():
            if box["sandboxID"] != self.bystander.id:
                self.client.ask("DELETE", f"/sandboxes/{box['sandboxID']}")


def run_part(verdicts, world, name, cases):
    verdicts.diag(name)
    for text, function in cases:
        verdicts.attempt(f"{name}: {text}", function, world)
    verdicts.attempt(f"{name}: the others did not notice", world.unharmed)
    world.cleanup()


def check_answers(verdicts, world):
    """Every answer of the whole run is as /openapi.json says."""
    try:
        description = openapi.Description(world.client.ask("GET", "/openapi.json").json())
    except ImportError:
        verdicts.skip("every answer is as /openapi.json says", "no jsonschema here (package python3-jsonschema)")
        return
    bad = {}
    for seen in raw.SEEN:
        for problem in description.problems(seen):
            bad.setdefault((seen.method, seen.path.partition("?")[0][:60], seen.reply.status, problem), seen)
    verdicts.ok(not bad, f"all {len(raw.SEEN)} answers are as /openapi.json says",
                *(f"{method} {path}: {status}: {problem}" for method, path, status, problem in list(bad)[:30]))
    # Clients of the interpreter show the body of an error as it is: there it is text.
    errors = [seen for seen in raw.SEEN if seen.reply.status >= 400 and seen.method != "HEAD" and
              openapi.plane_of(seen.headers) != "interpreter"]
    plain = [seen for seen in errors if not seen.reply.headers.get("content-type", "").startswith("application/json")]
    verdicts.ok(not plain, f"all {len(errors)} errors are JSON", *(f"{seen.method} {seen.path}: {seen.reply}" for seen in plain[:10]))


def main():
    if os.getuid() != 0:
        tap.skip_all("needs root")
    if not os.access(service.GLOVEBOX, os.X_OK):
        tap.skip_all(f"no program at {service.GLOVEBOX}")
    verdicts = tap.Tap()
    running = service.Service()
    try:
        running.start()
        world = World(running)
        pid = running.server_pid()
        for name, _, cases in tap.parts(QUICK_PARTS if tap.QUICK else PARTS):
            run_part(verdicts, world, name, cases)
        check_answers(verdicts, world)
        verdicts.equal(running.server_pid(), pid, "the server was never started again")
    except (service.ServiceError, AssertionError, OSError, raw.Closed) as error:
        verdicts.ok(False, "the service runs", f"{type(error).__name__}: {error}", running.log_tail())
    finally:
        if verdicts.failed:
            verdicts.diag("the service said at last:\n" + running.log_tail(15))
        status = running.stop()
    verdicts.equal(status, 0, "the service ends when asked")
    verdicts.equal(service.left_behind(), "", "nothing is left behind")
    return verdicts.finish()


if __name__ == "__main__":
    sys.exit(main())
