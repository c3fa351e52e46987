# SPDX-License-Identifier: Apache-2.0
"""Commands."""
import threading
import time

import e2b
from e2b import Sandbox
from harness import box, needs, raises, until


def test_run():
    """output, errors, status"""
    sandbox = box()
    result = sandbox.commands.run("echo out; echo err >&2")
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 0)
    error = raises(e2b.CommandExitException, sandbox.commands.run, "echo x; exit 42")
    assert (error.exit_code, error.stdout, error.error) == (42, "x\n", "exit status 42")


def test_options():
    """cwd, envs, user, sudo"""
    sandbox = box()
    assert sandbox.commands.run("pwd", cwd="/tmp").stdout == "/tmp\n"
    assert sandbox.commands.run("echo $X", envs={"X": "y"}).stdout == "y\n"
    assert sandbox.commands.run("id -un", user="root").stdout == "root\n"
    assert sandbox.commands.run("sudo id -un").stdout == "root\n"
    raises(e2b.InvalidArgumentException, sandbox.commands.run, "pwd", cwd="/no/such")
    raises(e2b.AuthenticationException, sandbox.commands.run, "pwd", user="nobody-of-that-name")


def test_callbacks():
    """output as it comes"""
    seen = []
    box().commands.run("for i in 1 2 3; do echo $i; sleep 1; done", on_stdout=lambda text: seen.append((text, time.monotonic())))
    assert "".join(text for text, _ in seen) == "1\n2\n3\n"
    assert seen[-1][1] - seen[0][1] > 0.4


def test_background():
    """background, list, kill, connect"""
    sandbox = box()
    handle = sandbox.commands.run("until [ -e /tmp/go ]; do sleep 0.05; done; echo go; sleep 100", background=True, timeout=0)
    assert [process.pid for process in sandbox.commands.list()] == [handle.pid]
    handle.disconnect()
    again = sandbox.commands.connect(handle.pid)
    sandbox.files.write("/tmp/go", "")
    for out, _, _ in again:
        if out:
            break
    assert out == "go\n"
    assert sandbox.commands.kill(handle.pid) is True
    until(lambda: not sandbox.commands.list(), "it is gone")
    assert sandbox.commands.kill(handle.pid) is False


def test_stdin():
    """send_stdin() and close_stdin()"""
    sandbox = box()
    handle = sandbox.commands.run("cat; echo end", background=True, stdin=True)
    sandbox.commands.send_stdin(handle.pid, "one\n")
    sandbox.commands.close_stdin(handle.pid)
    assert handle.wait().stdout == "one\nend\n"


def test_stream_input():
    """stream_input()"""
    needs("stream_input")
    sandbox = box()
    handle = sandbox.commands.run("wc -c", background=True, stdin=True)
    sandbox.commands.stream_input(handle.pid, (b"x" * 10_000 for _ in range(50)))
    sandbox.commands.close_stdin(handle.pid)
    assert handle.wait().stdout.strip() == "500000"


def test_timeout():
    """timeout: the command is killed"""
    sandbox = box()
    raises(e2b.TimeoutException, sandbox.commands.run, "sleep 100", timeout=1)
    until(lambda: not sandbox.commands.list(), "nothing runs any more")


def test_big():
    """8 MiB of output"""
    assert len(box().commands.run("yes 0123456789abcde | head -c 8388608").stdout) == 8388608


def test_missing():
    """a process that is not there"""
    sandbox = box()
    raises(e2b.NotFoundException, sandbox.commands.connect, 4000000)
    raises(e2b.NotFoundException, sandbox.commands.send_stdin, 4000000, "x")


def test_killed():
    """killed under a running command: says so"""
    sandbox = box()
    other = Sandbox.connect(sandbox.sandbox_id)

    def kill():
        until(other.commands.list, "the command runs")
        Sandbox.kill(sandbox.sandbox_id)
    threading.Thread(target=kill).start()
    try:
        sandbox.commands.run("sleep 60", timeout=0)
    except e2b.TimeoutException as error:
        assert "The sandbox was killed or reached its end of life while the request was in flight." in str(error)
    else:
        raise AssertionError("no error")
