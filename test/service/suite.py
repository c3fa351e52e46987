# SPDX-License-Identifier: Apache-2.0
"""What outlives what: the server, the warden, agents and the whole service are killed while they work. Each
part is a file of its own beside this one.  run [PART[.TEST]]... runs only those. Prints TAP.

    SERVICE_KILLS=300     how often something is killed at random (15)
    SERVICE_CYCLES=100000 how many sandboxes come and go (300)
    SERVICE_FULL=1        also a thousand sandboxes at once
"""
import os
import pathlib
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "lib"), str(HERE)]
import service  # noqa: E402  pylint: disable=wrong-import-position
import tap  # noqa: E402  pylint: disable=wrong-import-position

PARTS = ("server", "warden", "layers", "pauses", "agent", "ends", "random", "cycles", "crowd")


def main():
    if os.getuid() != 0:
        tap.skip_all("needs root")
    if not os.access(service.GLOVEBOX, os.X_OK):
        tap.skip_all(f"no program at {service.GLOVEBOX}")
    verdicts = tap.Tap()
    for name, _, cases in tap.parts(PARTS):
        verdicts.diag(name)
        for text, function in cases:
            verdicts.attempt(f"{name}: {text}", function, verdicts)
        verdicts.equal(service.left_behind(), "", f"{name}: nothing is left behind")
    return verdicts.finish()


if __name__ == "__main__":
    sys.exit(main())
