# SPDX-License-Identifier: Apache-2.0
"""Terminals."""
import e2b
from harness import box, raises, until


def test_pty():
    """a terminal: input, size, status"""
    sandbox = box()
    handle = sandbox.pty.create(e2b.PtySize(rows=30, cols=100))
    sandbox.pty.send_stdin(handle.pid, b"stty size\n")
    sandbox.pty.resize(handle.pid, e2b.PtySize(rows=50, cols=132))
    sandbox.pty.send_stdin(handle.pid, b"stty size; exit 5\n")
    seen = bytearray()
    error = raises(e2b.CommandExitException, handle.wait, on_pty=seen.extend)
    assert error.exit_code == 5
    assert b"50 132" in seen, seen


def test_pty_kill():
    """kill() of a terminal"""
    sandbox = box()
    handle = sandbox.pty.create(e2b.PtySize(rows=24, cols=80))
    assert sandbox.pty.kill(handle.pid) is True
    until(lambda: not sandbox.pty.kill(handle.pid), "it is gone")
