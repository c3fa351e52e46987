# SPDX-License-Identifier: Apache-2.0
"""The asynchronous half of the package."""
import asyncio
import time

from e2b_code_interpreter import AsyncSandbox, NotFoundException, TimeoutException
from harness import MADE


def together(function):
    """Makes a test of a coroutine that wants a sandbox."""
    async def inside():
        sandbox = await AsyncSandbox.create(envs={"OF_BOX": "sandbox"})
        MADE.append(sandbox.sandbox_id)
        await asyncio.wait_for(function(sandbox), 60)

    def test():
        asyncio.run(inside())
    test.__doc__ = function.__doc__
    return test


async def raises(kind, awaitable, containing=""):
    try:
        value = await awaitable
    except kind as error:
        assert containing in str(error), str(error)
        return
    raise AssertionError(f"{kind.__name__} was expected; instead {value!r}")


@together
async def test_state(sandbox):
    """state, values, errors, environment"""
    await sandbox.run_code("x = 41")
    assert (await sandbox.run_code("x + 1")).text == "42"
    assert (await sandbox.run_code("nothing")).error.name == "NameError"
    assert (await sandbox.run_code("import os\nos.environ['OF_BOX'] + os.environ['C']", envs={"C": "cell"})).text == "sandboxcell"


@together
async def test_callbacks(sandbox):
    """callbacks, plain and asynchronous"""
    seen = []

    async def later(message):
        await asyncio.sleep(0.01)
        seen.append((str(message), time.monotonic()))
    execution = await sandbox.run_code("import time\nfor i in range(3):\n    print(i)\n    time.sleep(1)\n'last'",
                                       on_stdout=later, on_result=lambda result: seen.append((result.text, time.monotonic())))
    assert [text for text, _ in seen] == ["0\n", "1\n", "2\n", "last"], seen
    assert seen[2][1] - seen[0][1] > 0.4
    assert execution.text == "last"


@together
async def test_contexts(sandbox):
    """contexts: create, list, restart, remove"""
    context = await sandbox.create_code_context(cwd="/tmp")
    assert (await sandbox.run_code("import os\nx = 1\nos.getcwd()", context=context)).text == "/tmp"
    assert [each.id for each in await sandbox.list_code_contexts()][2:] == [context.id]
    await sandbox.restart_code_context(context)
    assert (await sandbox.run_code("x", context=context)).error.name == "NameError"
    await sandbox.remove_code_context(context)
    await raises(NotFoundException, sandbox.run_code("1", context=context), f"Context {context.id} not found")


@together
async def test_together(sandbox):
    """twenty contexts at once"""
    contexts = await asyncio.gather(*(sandbox.create_code_context() for _ in range(20)))
    await asyncio.gather(*(sandbox.run_code(f"x = {i}", context=context) for i, context in enumerate(contexts)))
    texts = [each.text for each in await asyncio.gather(*(sandbox.run_code("x", context=context) for context in contexts))]
    assert texts == [str(i) for i in range(20)]


@together
async def test_timeout(sandbox):
    """timeout: interrupted, and the next cell runs"""
    await sandbox.run_code("kept = 1")
    await raises(TimeoutException, sandbox.run_code("import time\ntime.sleep(60)", timeout=1))
    assert (await sandbox.run_code("kept")).text == "1"


async def begun(sandbox):
    """The task of a cell that has begun, and does not end."""
    started = asyncio.Event()
    task = asyncio.create_task(sandbox.run_code("import time\nprint('started')\ntime.sleep(60)", on_stdout=lambda _: started.set()))
    await started.wait()
    return task


@together
async def test_cancelled(sandbox):
    """a task that is cancelled: interrupted, and the next cell runs"""
    await sandbox.run_code("kept = 1")
    task = await begun(sandbox)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    before = time.monotonic()
    assert (await sandbox.run_code("kept")).text == "1"
    assert time.monotonic() - before < 40


@together
async def test_killed(sandbox):
    """killed while a cell runs"""
    task = await begun(sandbox)
    await sandbox.kill()
    await raises(TimeoutException, task, "The sandbox was killed while the request was in progress")


@together
async def test_languages(sandbox):
    """other languages"""
    await sandbox.run_code("let x = 41", language="javascript")
    assert (await sandbox.run_code("x + 1", language="javascript")).text == "42"
    assert (await sandbox.run_code("echo $((6 * 7))", language="bash")).logs.stdout == ["42\n"]
