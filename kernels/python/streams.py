# SPDX-License-Identifier: Apache-2.0
"""Standard output and error of cells: text that is written at once but not piecemeal."""
import io
import sys
from time import monotonic

BUFFER_SIZE = 8192
IO_LINE_BUFFERED = 1  # _IOLBF of <stdio.h>
PATIENCE = 0.05  # seconds that the beginning of a line may wait, if more is written after it

_settle = None


class Stream(io.TextIOWrapper):
    """Written at each end of a line, by the second half of print(1) and not by its first. What cannot be
    encoded is written as an escape sequence, since an exception about it would help nobody."""

    def __init__(self, fd, name):
        raw = io.FileIO(fd, "wb", closefd=False)
        raw.name = name
        super().__init__(io.BufferedWriter(raw, BUFFER_SIZE), encoding="utf-8", errors="backslashreplace",
                         newline="\n", line_buffering=True)
        self.mode = "w"
        self._waits_since = None

    def write(self, text):
        settle()
        count = super().write(text)
        if "\n" in text or "\r" in text:
            self._waits_since = None
        elif self._waits_since is None:
            self._waits_since = monotonic() if text else None
        elif monotonic() - self._waits_since >= PATIENCE:
            self.flush()
        return count

    def flush(self):
        self._waits_since = None
        super().flush()

    def close(self):
        """A cell that closes sys.stdout does not mean that of the cells to come."""
        self.flush()


def settle():
    """What is written from now on comes after the results that were sent before: see Channel.settle()."""
    if _settle is not None:
        _settle()


def settle_with(function):
    global _settle  # pylint: disable=global-statement
    _settle = function


def _flush(stream):
    try:
        stream.flush()
    except Exception:  # pylint: disable=broad-except
        pass  # closed by the cell, or an object of its own: its loss


def flush():
    """Everything printed so far is in the pipes. Whatever a cell put in the place of our streams is asked too."""
    _flush(sys.stdout)
    _flush(sys.stderr)
    if sys.stdout is not sys.__stdout__:
        _flush(sys.__stdout__)
    if sys.stderr is not sys.__stderr__:
        _flush(sys.__stderr__)


def _set_libc():
    """What extensions in C print comes at each end of a line too, and not when the process ends."""
    try:
        import ctypes  # pylint: disable=import-outside-toplevel
        libc = ctypes.CDLL(None)
        libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, IO_LINE_BUFFERED, ctypes.c_size_t(0))
    except (ImportError, OSError, ValueError, AttributeError):
        pass  # a Python without ctypes, or a C library that is another


def install():
    sys.stdout = sys.__stdout__ = Stream(1, "<stdout>")
    sys.stderr = sys.__stderr__ = Stream(2, "<stderr>")
    _set_libc()
