# SPDX-License-Identifier: Apache-2.0
"""Time-outs, pausing and waking."""
import e2b
from e2b import Sandbox
from harness import box, needs, raises, until


def test_timeout():
    """its time is over"""
    sandbox = box(timeout=1)
    until(lambda: not sandbox.is_running(), "it ends")
    raises(e2b.SandboxNotFoundException, sandbox.get_info)
    raises(e2b.SandboxNotFoundException, sandbox.set_timeout, 5)


def test_gone():
    """what is asked of one that is gone fails as a time-out"""
    sandbox = box()
    sandbox.kill()
    for ask in (lambda: sandbox.commands.run("true"), lambda: sandbox.files.read("f"),
                lambda: sandbox.files.list("/"), lambda: sandbox.files.exists("f")):
        try:
            ask()
        except e2b.TimeoutException as error:
            assert "sandbox" in str(error).lower(), str(error)
        else:
            raise AssertionError("no error")


def test_gone_class():
    """one that is gone is known to be not running"""
    needs("not_running")
    sandbox = box()
    sandbox.kill()
    raises(e2b.SandboxNotRunningException, sandbox.files.read, "f")
    raises(e2b.SandboxNotRunningException, sandbox.files.exists, "f")
    raises(e2b.SandboxNotRunningException, sandbox.commands.run, "true")


def test_set_timeout():
    """set_timeout() makes it longer and shorter"""
    sandbox = box(timeout=60)
    sandbox.set_timeout(600)
    assert (sandbox.get_info().end_at - sandbox.get_info().started_at).total_seconds() > 590
    Sandbox.set_timeout(sandbox.sandbox_id, 1)
    until(lambda: not sandbox.is_running(), "it ends")


def test_pause():
    """pause() and connect(): the same processes"""
    sandbox = box(envs={"KEPT": "env"})
    handle = sandbox.commands.run("sleep 1000", background=True, timeout=0)
    handle.disconnect()
    assert sandbox.pause() in (True, None)
    assert sandbox.pause() is False
    assert sandbox.get_info().state == e2b.SandboxState.PAUSED
    assert sandbox.is_running() is False
    again = Sandbox.connect(sandbox.sandbox_id)
    assert handle.pid in [process.pid for process in again.commands.list()]
    assert again.commands.run("echo $KEPT").stdout == "env\n"


def test_pause_files():
    """pause() that keeps only the files"""
    sandbox = box()
    sandbox.files.write("kept", "yes")
    handle = sandbox.commands.run("sleep 1000", background=True, timeout=0)
    handle.disconnect()
    assert sandbox.pause(keep_memory=False) in (True, None)
    again = Sandbox.connect(sandbox.sandbox_id)
    assert again.files.read("kept") == "yes"
    assert again.commands.list() == []


def test_pause_mode():
    """pause(mode="filesystem")"""
    needs("mode")
    sandbox = box()
    sandbox.files.write("kept", "yes")
    assert sandbox.pause(mode="filesystem") is True
    assert Sandbox.connect(sandbox.sandbox_id).files.read("kept") == "yes"


def test_pause_strict():
    """pause(strict=True)"""
    needs("strict")
    assert box().pause(strict=True) is True


def test_auto_pause():
    """lifecycle: paused when its time is over, woken by traffic"""
    sandbox = box(timeout=1, lifecycle={"on_timeout": "pause", "auto_resume": True})
    sandbox.files.write("kept", "yes")
    assert sandbox.get_info().lifecycle["on_timeout"] == "pause"
    until(lambda: sandbox.get_info().state == e2b.SandboxState.PAUSED, "it is paused")
    assert sandbox.files.read("kept") == "yes"
    assert sandbox.get_info().state == e2b.SandboxState.RUNNING
