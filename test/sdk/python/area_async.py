# SPDX-License-Identifier: Apache-2.0
"""The asynchronous half of the package."""
import asyncio

import e2b
from e2b import AsyncSandbox, Sandbox
from harness import MADE


def together(function):
    """Makes a test of a coroutine that wants a sandbox."""
    async def inside():
        sandbox = await AsyncSandbox.create()
        MADE.append(sandbox.sandbox_id)
        await asyncio.wait_for(function(sandbox), 60)

    def test():
        asyncio.run(inside())
    test.__doc__ = function.__doc__
    return test


@together
async def test_run(sandbox):
    """commands, ten at once"""
    results = await asyncio.gather(*(sandbox.commands.run(f"sleep 0.2; echo {i}") for i in range(10)))
    assert [result.stdout for result in results] == [f"{i}\n" for i in range(10)]


@together
async def test_background(sandbox):
    """background with callbacks, stdin, kill"""
    seen = []
    handle = await sandbox.commands.run("cat", background=True, stdin=True, on_stdout=seen.append)
    await sandbox.commands.send_stdin(handle.pid, "hello\n")
    for _ in range(3000):
        if seen:
            break
        await asyncio.sleep(0.02)
    assert seen == ["hello\n"]
    assert await handle.kill() is True
    try:
        await handle.wait()
    except e2b.CommandExitException as error:
        assert error.exit_code == -1
    else:
        raise AssertionError("no error")


@together
async def test_files(sandbox):
    """files there and back"""
    await sandbox.files.write("f", "content")
    assert await sandbox.files.read("f") == "content"
    assert [entry.name for entry in await sandbox.files.list("/home/user") if entry.name == "f"] == ["f"]
    assert await sandbox.files.exists("none") is False


@together
async def test_watch(sandbox):
    """watch_dir(): streamed"""
    events = []
    await sandbox.files.make_dir("w")
    handle = await sandbox.files.watch_dir("w", events.append)
    await sandbox.files.write("w/f", "x")
    for _ in range(3000):
        if any(event.name == "f" and event.type == e2b.FilesystemEventType.WRITE for event in events):
            break
        await asyncio.sleep(0.02)
    else:
        raise AssertionError(f"not among {events}")
    await handle.stop()


@together
async def test_pty(sandbox):
    """a terminal"""
    seen = bytearray()
    handle = await sandbox.pty.create(e2b.PtySize(rows=24, cols=80), on_data=seen.extend)
    await sandbox.pty.send_stdin(handle.pid, b"echo $((6*7)); exit\n")
    await handle.wait()
    assert b"\r42\r\n" in seen, seen


@together
async def test_killed(sandbox):
    """killed under a running command"""
    handle = await sandbox.commands.run("sleep 60", background=True, timeout=0)
    await asyncio.to_thread(Sandbox.kill, sandbox.sandbox_id)
    try:
        await handle.wait()
    except e2b.TimeoutException as error:
        assert "The sandbox was killed or reached its end of life" in str(error), str(error)
    else:
        raise AssertionError("no error")


@together
async def test_lifecycle(sandbox):
    """info, pause, connect, kill"""
    assert (await sandbox.get_info()).state == e2b.SandboxState.RUNNING
    await sandbox.pause()
    again = await AsyncSandbox.connect(sandbox.sandbox_id)
    assert (await again.commands.run("echo back")).stdout == "back\n"
    assert await again.kill() is True
