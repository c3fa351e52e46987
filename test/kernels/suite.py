# SPDX-License-Identifier: Apache-2.0
"""Interpreters over pipes as kernels/PROTOCOL.md has it, outside a box.  run [NAME[.TEST]]... runs only those of
cases_NAME.py.

A file of cases has command(), which returns the kernel's argv or raises tap.Skip, and functions test_*(world).
world.kernel is a living context that the cases of a file share; world.new() is a new one. Prints TAP."""
import pathlib
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "lib"), str(HERE)]
import harness  # noqa: E402  pylint: disable=wrong-import-position
import tap  # noqa: E402  pylint: disable=wrong-import-position

KERNELS = HERE.parent.parent / "kernels"


class World:
    """What the cases get."""

    def __init__(self, argv):
        self.argv = argv
        self._kernel = None

    def new(self, argv=None, **more):
        return harness.Kernel(argv or self.argv, **more)

    @property
    def kernel(self):
        if self._kernel is None:
            self._kernel = self.new()
        return self._kernel

    def forget(self):
        """After a case that failed: who knows what state it is in."""
        if self._kernel is not None:
            self._kernel.close()
            self._kernel = None


def run_file(verdicts, name, module, cases):
    verdicts.diag(name)
    try:
        world = World(module.command())
    except tap.Skip as why:
        verdicts.skip(name, why)
        return
    for text, function in cases:
        failed = verdicts.failed
        verdicts.attempt(f"{name}: {text}", function, world)
        if verdicts.failed > failed:
            world.forget()
    world.forget()


def main():
    verdicts = tap.Tap()
    names = sorted(path.stem[6:] for path in HERE.glob("cases_*.py"))
    for name, module, cases in tap.parts(names, "cases_"):
        run_file(verdicts, name, module, cases)
    return verdicts.finish()


if __name__ == "__main__":
    sys.exit(main())
