# SPDX-License-Identifier: Apache-2.0
"""What outlives what: the server, the warden, agents and the whole service are killed while they work. Each
part is a file of its own beside this one.  run [PART]... runs only those. Prints TAP.

    SERVICE_KILLS=300     how often something is killed at random (15)
    SERVICE_CYCLES=100000 how many sandboxes come and go (300)
    SERVICE_FULL=1        also a thousand sandboxes at once
"""
import importlib
import os
import pathlib
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "lib"), str(HERE)]
import service  # noqa: E402  pylint: disable=wrong-import-position
import tap  # noqa: E402  pylint: disable=wrong-import-position

PARTS = ("part_server", "part_warden", "part_layers", "part_pauses", "part_agent", "part_ends", "part_random", "part_cycles", "part_crowd")


def main():
    if os.getuid() != 0:
        tap.skip_all("needs root")
    if not os.access(service.GLOVEBOX, os.X_OK):
        tap.skip_all(f"no program at {service.GLOVEBOX}")
    verdicts = tap.Tap()
    for name in [f"part_{part}" for part in sys.argv[1:]] or PARTS:
        module = importlib.import_module(name)
        verdicts.diag(name)
        for label, function in list(vars(module).items()):
            if label.startswith("test_"):
                text = (function.__doc__ or label[5:].replace("_", " ")).strip().splitlines()[0]
                verdicts.attempt(f"{name[5:]}: {text}", function, verdicts)
        verdicts.equal(service.left_behind(), "", f"{name[5:]}: nothing is left behind")
    return verdicts.finish()


if __name__ == "__main__":
    sys.exit(main())
