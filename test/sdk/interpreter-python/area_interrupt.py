# SPDX-License-Identifier: Apache-2.0
"""Cells that do not end, and cells that end more than themselves."""
import time

from harness import raises
from kit import box, ci, fails, run, value


def given_up(code):
    sandbox = box()
    run("kept = 1", sandbox)
    raises(ci.TimeoutException, sandbox.run_code, code, timeout=1)
    before = time.monotonic()
    assert value("kept", sandbox) == "1"
    assert time.monotonic() - before < 40


def test_sleep():
    """timeout interrupts time.sleep; the state stays"""
    given_up("import time\ntime.sleep(60)")


def test_loop():
    """timeout interrupts a loop"""
    given_up("while True: pass")


def test_program():
    """timeout interrupts a program"""
    given_up("!sleep 60")


def test_endless():
    """timeout interrupts endless output"""
    given_up("while True: print('x' * 1000)")


def test_dead():
    """an interpreter that ends: said so, and the next cell has a new context"""
    sandbox = box()
    for code in ("import os\nos._exit(5)", "import os\nos.kill(os.getpid(), 9)"):
        run("kept = 1", sandbox)
        fails(code, "ContextDied", sandbox)
        fails("kept", "NameError", sandbox)
