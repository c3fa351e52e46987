# SPDX-License-Identifier: Apache-2.0
"""The tests of one area with $SDK_PACKAGE from PYTHONPATH:  python3 harness.py FILE. Prints TAP; a test is
a function whose name begins with test_, and its first docstring line is its name."""
import importlib
import importlib.metadata
import os
import sys
import time
import traceback

SDK = importlib.import_module(os.environ["SDK_PACKAGE"])
VERSION = tuple(int(part) for part in importlib.metadata.version("e2b").split("."))
# From which of the tested versions something is there.
FEATURES = {"stream_input": (2, 63, 0), "idempotency_key": (2, 63, 0), "not_running": (2, 63, 0),
            "mode": (2, 63, 0), "strict": (2, 63, 0)}
MADE = []
SHARED = []


class Skipped(Exception):
    pass


def needs(feature):
    """Leaves a test out where the version has no such thing."""
    if VERSION < FEATURES[feature]:
        raise Skipped(f"e2b {'.'.join(map(str, VERSION))} has no {feature}")


def box(*args, **opts):
    """A sandbox that is killed after the test."""
    sandbox = SDK.Sandbox.create(*args, **opts)
    MADE.append(sandbox.sandbox_id)
    return sandbox


def common():
    """One for all tests of the area that do no harm to it."""
    if not SHARED:
        SHARED.append(SDK.Sandbox.create(timeout=600))
    return SHARED[0]


def raises(kind, function, *args, containing="", **opts):
    """Calls it and wants exactly this exception."""
    try:
        value = function(*args, **opts)
    except Exception as error:  # pylint: disable=broad-except
        assert type(error) is kind, f"{kind.__name__} was expected, it is {type(error).__name__}: {error}"
        assert containing in str(error), f"{containing!r} is not in {error}"
        return error
    raise AssertionError(f"{kind.__name__} was expected; instead {value!r}")


def until(condition, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.03)
    return value


def plain(text):
    return " ".join(str(text).split()).replace("#", "")


def run(name, function):
    try:
        function()
        print(f"ok - {name}")
    except Skipped as why:
        print(f"ok - {name} # SKIP {plain(why)}")
    except BaseException as error:  # pylint: disable=broad-except
        print(f"not ok - {name}")
        lines = traceback.format_exception(error)
        for line in "".join([*lines[-3:]]).splitlines()[-25:]:
            print("#", line)
    sys.stdout.flush()
    while MADE:
        try:
            SDK.Sandbox.kill(MADE.pop())
        except Exception:  # pylint: disable=broad-except
            pass


def main():
    directory, name = os.path.split(os.path.abspath(sys.argv[1]))
    sys.path.insert(0, directory)
    area = importlib.import_module(name.removesuffix(".py"))
    tests = [function for name, function in vars(area).items() if name.startswith("test_")]
    for function in tests:
        run(plain((function.__doc__ or function.__name__[5:]).strip().splitlines()[0]), function)
    for sandbox in SHARED:
        sandbox.kill()
    print(f"1..{len(tests)}", flush=True)
    os._exit(0)


if __name__ == "__main__":
    # The areas import this module by its name: it has to be one and the same.
    sys.modules["harness"] = sys.modules["__main__"]
    main()
