# SPDX-License-Identifier: Apache-2.0
"""The Test Anything Protocol for Python suites; tap.sh is the same for bash."""
import importlib
import os
import sys
import traceback

QUICK = os.environ.get("TEST_TIER") == "quick"


def one_line(text):
    """A test's name is one line without '#', which would start a TAP directive."""
    return " ".join(str(text).split()).replace("#", "")


class Tap:
    """Counts verdicts and prints them. A suite ends with sys.exit(tap.finish())."""

    def __init__(self):
        self.run = self.failed = self.skipped = 0

    def diag(self, text):
        for line in str(text).splitlines() or [""]:
            print("#", line)

    def ok(self, good, name, *why):
        """One verdict; `why` is shown when it is a bad one. Returns it."""
        self.run += 1
        print(f"{'' if good else 'not '}ok {self.run} - {one_line(name)}", flush=True)
        if not good:
            self.failed += 1
            for text in why:
                self.diag(text)
        return bool(good)

    def equal(self, got, want, name):
        return self.ok(got == want, name, f"     got: {got!r}"[:4000], f"expected: {want!r}"[:4000])

    def skip(self, name, why):
        self.run += 1
        self.skipped += 1
        print(f"ok {self.run} - {one_line(name)} # SKIP {one_line(why)}", flush=True)

    def attempt(self, name, function, *args):
        """A test that is a function: it passes by returning and fails by raising."""
        try:
            function(*args)
        except Skip as why:
            self.skip(name, why)
        except Exception as error:  # pylint: disable=broad-except
            where = traceback.format_exception(error)
            self.ok(False, name, f"{type(error).__name__}: {error}", "".join(where)[-3000:])
        else:
            self.ok(True, name)

    def finish(self):
        """Prints the plan and returns the exit status."""
        if self.run == 0:
            print("# no test was run")
        print(f"1..{self.run}", flush=True)
        return 1 if self.failed or self.run == 0 else 0


def slow(test):
    """For a test that the quick tier leaves out."""
    test.slow = True
    return test


def cases(module, only=""):
    """The tests of a module in their order, as (what it is called, function); or the only one."""
    for label, function in list(vars(module).items()):
        if label.startswith("test_") and only in ("", label[5:]) and not (QUICK and hasattr(function, "slow")):
            yield (function.__doc__ or label[5:].replace("_", " ")).strip().splitlines()[0], function


def parts(names, prefix="part_"):
    """What a suite of modules is to run: (name, module, (text, function) of each test). The command line has PART or
    PART.TEST, or nothing: then these names."""
    for argument in sys.argv[1:] or names:
        name, _, only = argument.removeprefix(prefix).partition(".")
        module = importlib.import_module(prefix + name)
        yield name, module, cases(module, only.removeprefix("test_"))


class Skip(Exception):
    """Raised by a test that cannot be run here."""


def skip_all(why):
    print(f"1..0 # SKIP {one_line(why)}")
    sys.exit(0)
