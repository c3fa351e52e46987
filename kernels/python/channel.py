# SPDX-License-Identifier: Apache-2.0
"""Messages to and from the agent: a line `WORD LENGTH`, then LENGTH bytes."""
import _thread
import fcntl
import os
import re
import select
import termios
import time

from glovebox_kernel import interrupt

HEADER = re.compile(rb"([a-z]{1,15}) (0|[1-9][0-9]{0,7})\n")
HEADER_MAX = 25  # 15 letters, a space, 8 digits, a newline
READ_SIZE = 65536
# Cells that close "every" descriptor start at 3 and rarely come so far. Lower ones do where few are allowed.
HIGH_FDS = (900, 200, 60, 10)
SETTLE_TRIES, SETTLE_PAUSE = 500, 0.0001  # seconds


class Closed(Exception):
    """The agent is gone, or a cell took the channel away. There is nothing left to do."""


class Cell:
    """What came before a `run`."""

    def __init__(self):
        self.base = []
        self.env = []
        self.cwd = None
        self.code = []


def _move_high(fd):
    """The same descriptor at a number that is out of the way, closed on exec."""
    for lowest in HIGH_FDS:
        try:
            high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, lowest)
        except OSError:
            continue
        os.close(fd)
        return high
    os.set_inheritable(fd, False)
    return fd


def _into(results, function, *args):
    """Calls a function and appends what it returns. Python runs signal handlers after a call, where an exception
    of theirs would take the place of what was returned; here the call and the append are one."""
    results.extend(map(function, *((arg,) for arg in args)))


class Channel:
    def __init__(self):
        self._requests = self._events = -1
        self._buffer = bytearray()
        self._cell = Cell()
        self._lock = _thread.allocate_lock()
        self._is_unread = False

    def open(self, requests_fd, events_fd):
        self._requests = _move_high(requests_fd)
        self._events = _move_high(events_fd)

    def abandon(self):
        """In a child that a cell forked: it has no part in the conversation. A context that was forked itself has not
        begun with it."""
        if self._requests < 0:
            return
        for fd in (self._requests, self._events):
            try:
                os.close(fd)
            except OSError:
                pass
        self._requests = self._events = -1
        self._is_unread = False
        self._lock = _thread.allocate_lock()  # whoever held it is not here

    def _more(self):
        pieces = []
        try:
            _into(pieces, os.read, self._requests, READ_SIZE)
        except OSError as error:
            if error.errno is not None:
                raise Closed from error
            raise  # not of the read, but of a signal handler that a cell left behind
        finally:
            for piece in pieces:
                self._buffer += piece
        if not pieces[0]:
            raise Closed

    def _message(self):
        while True:
            match = HEADER.match(self._buffer)
            if match:
                break
            if len(self._buffer) >= HEADER_MAX:
                raise Closed  # not our protocol
            self._more()
        start, end = match.end(), match.end() + int(match[2])
        while len(self._buffer) < end:
            self._more()
        word, content = bytes(match[1]), bytes(self._buffer[start:end])
        del match  # it looks into the buffer, which could not be shortened
        del self._buffer[:end]
        return word, content

    def is_quiet_for(self, milliseconds):
        """Whether nothing is asked for so long."""
        poll = select.poll()
        poll.register(self._requests, select.POLLIN)
        return not poll.poll(milliseconds)

    def receive(self):
        """Waits for the next cell. May be called again when it was torn away by an exception."""
        while True:
            word, content = self._message()
            if word == b"run":
                cell, self._cell = self._cell, Cell()
                return cell
            if word == b"cwd":
                self._cell.cwd = content
            elif word in (b"base", b"env", b"code"):
                getattr(self._cell, word.decode()).append(content)
            else:
                raise Closed

    @interrupt.waits_in
    def send(self, word, content=b""):
        """One event, whole and once. What a signal handler raises meanwhile is raised when it is out; an
        interrupt does not even come so far."""
        data = b"%s %d\n%s" % (word, len(content), content)
        problem = None
        with self._lock:
            while data:
                written = []
                try:
                    _into(written, os.write, self._events, data)
                except OSError as error:
                    if error.errno is not None:
                        raise Closed from error
                    problem = error
                except BaseException as error:  # pylint: disable=broad-except
                    problem = error
                data = data[sum(written):]
        self._is_unread = word == b"result"
        if problem is not None:
            raise problem

    def settle(self):
        """Waits until the last result has been read, so that what is printed now does not overtake it. Not for
        long: nobody reads while the cell's client does not."""
        if not self._is_unread:
            return
        self._is_unread = False
        for _ in range(SETTLE_TRIES):
            try:
                waiting = fcntl.ioctl(self._events, termios.FIONREAD, bytes(4))
            except OSError:
                return  # closed by the cell
            if waiting == bytes(4):
                return
            time.sleep(SETTLE_PAUSE)
