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
    """forked contexts draw different numbers, have their own variables and nothing of the warming up"""
    for packages in ("random tempfile", PACKAGES):
        children = forked(world, packages)["children"]
        drawn = [str(value) for child in children for value in child["drawn"]]
        check(len(set(drawn)), len(drawn))
        check([(child["A"], child["B"]) for child in children], [(None, "theirs")] * 3)
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
