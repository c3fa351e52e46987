# SPDX-License-Identifier: Apache-2.0
"""Contexts that are forked from a loaded Python, as the zygote's are."""
import json
import subprocess

import suite
from cases_python import check, command  # noqa: F401  pylint: disable=unused-import

PACKAGES = "numpy pandas matplotlib.pyplot no_such_package_here"


def forked(world, packages):
    argv = world.argv[:-1] + [str(suite.HERE / "forks.py"), world.argv[-1], packages, "3"]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=True)
    check(done.stderr, b"")
    return json.loads(done.stdout)


def test_forks(world):
    """forked contexts draw different numbers, have their own variables and nothing of the warming up, and say a line at once"""
    for packages in ("random tempfile", PACKAGES):
        children = forked(world, packages)["children"]
        drawn = [str(value) for child in children for value in child["drawn"]]
        check(len(set(drawn)), len(drawn))
        check([(child["A"], child["B"], child["pieces"]) for child in children], [(None, "theirs", 1)] * 3)
        for child in children:
            assert child["said"].startswith("ready ") and "count 1\n1" in child["said"] and child["said"].endswith("end 0\n"), child
            assert not {"f", "asyncio", "_1", "_i2"} & set(child["names"]), child


def test_memory(world):
    """a forked context with the scientific packages has less than 8 MiB for itself after a cell"""
    private = [child["private_kib"] for child in forked(world, PACKAGES)["children"]]
    assert max(private) < 8192, private


def test_parent(world):
    """the process that they come from has one thread and no descriptor that it did not have"""
    about = forked(world, PACKAGES)
    check((about["threads"], about["descriptors"]), (1, []))


STIRRED = """
import os, ssl, sys
__file__ = sys.argv[1]
text = open(__file__).read()
assert text.endswith("\\nmain()\\n")
exec(text[:-len("main()\\n")])
calls, real, alike = [], os.getpid, sys.argv[2] == "alike"
sys.modules["_ssl"].RAND_add = lambda data, entropy: calls.append((len(data), entropy))
os.getpid = lambda: 7 if alike else real()
keep_openssl_apart()
if os.fork() == 0:
    print(calls, flush=True)
    os._exit(0)
os.wait()
"""


def test_openssl(world):
    """a fork that has the pid of the process it comes from has OpenSSL's random numbers changed; others have it done by OpenSSL"""
    zygote = world.argv[-1].replace("kernel.py", "zygote.py")
    for pids, calls in (("alike", b"[(32, 32.0)]"), ("unlike", b"[]")):
        done = subprocess.run([world.argv[0], "-I", "-c", STIRRED, zygote, pids], stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
                              check=True)
        check(done.stdout.strip(), calls)
