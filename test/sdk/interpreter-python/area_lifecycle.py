# SPDX-License-Identifier: Apache-2.0
"""What becomes of contexts when their sandbox is found again, paused, killed."""
import threading

from harness import raises
from kit import box, ci, fails, run, value


def test_connect():
    """connect(): the same variables"""
    sandbox = box()
    context = sandbox.create_code_context()
    run("x = 1", sandbox)
    run("x = 2", sandbox, context=context)
    again = ci.Sandbox.connect(sandbox.sandbox_id)
    assert (value("x", again), value("x", again, context=context)) == ("1", "2")


def test_pause():
    """pause() and connect(): the variables are there"""
    sandbox = box()
    run("x = {'deep': [1, 2]}", sandbox)
    sandbox.pause()
    assert value("x['deep']", ci.Sandbox.connect(sandbox.sandbox_id)) == "[1, 2]"


def test_pause_files():
    """paused without memory: the files stay, contexts start anew"""
    sandbox = box()
    run("x = 1; open('kept', 'w').write('file');", sandbox)
    sandbox.pause(keep_memory=False)
    again = ci.Sandbox.connect(sandbox.sandbox_id)
    fails("x", "NameError", again)
    assert value("open('kept').read()", again) == "file"


def test_killed():
    """killed while a cell runs: the SDK says so"""
    sandbox = box()
    killer = threading.Thread(target=ci.Sandbox.kill, args=(sandbox.sandbox_id,))
    raises(ci.TimeoutException, sandbox.run_code, "import time\nprint('started')\ntime.sleep(60)", on_stdout=lambda _: killer.start(),
           containing="The sandbox was killed while the request was in progress")


def test_gone():
    """one that is gone"""
    sandbox = box()
    sandbox.kill()
    raises(ci.TimeoutException, sandbox.run_code, "1", containing="sandbox timeout")
    raises(ci.TimeoutException, sandbox.create_code_context)
    raises(ci.TimeoutException, sandbox.list_code_contexts)
