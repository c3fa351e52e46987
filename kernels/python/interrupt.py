# SPDX-License-Identifier: Apache-2.0
"""SIGINT is a KeyboardInterrupt in the code of a cell and nowhere else.

The handler looks where it came in, from the innermost function outwards. If it meets one that runs the code of
a cell, it raises. If it meets one of ours or IPython's first, raising would lose an event, leave a lock taken
or end the kernel: it is remembered, and counts when the cell begins or goes on. So there is no moment at which
a flag is already, or not yet, what it should be."""
import _signal  # signal's own functions make enumerations of everything, which costs a new context 30 pages
import _thread

_pending = False
_main_thread = None
_verdicts = {}


def raises_in(function):
    """A decorator: below this function is the code of a cell."""
    _verdicts[function.__code__] = True
    return function


def waits_in(function):
    """A decorator: below this function nothing may be torn apart."""
    _verdicts[function.__code__] = False
    return function


def _handle(_signal, frame):
    global _pending  # pylint: disable=global-statement
    while frame is not None:
        verdict = _verdicts.get(frame.f_code)
        if verdict:
            raise KeyboardInterrupt
        if verdict is not None:
            break
        frame = frame.f_back
    _pending = True


def install():
    """Also after each cell, which may have had its own idea of SIGINT."""
    global _main_thread  # pylint: disable=global-statement
    _main_thread = _thread.get_ident()
    if _signal.getsignal(_signal.SIGINT) is not _handle:
        _signal.signal(_signal.SIGINT, _handle)


def forget():
    """A cell begins: what came before it was not meant for it."""
    global _pending  # pylint: disable=global-statement
    _pending = False


def check():
    """Raises what was remembered, where the code of a cell begins or goes on; not in a thread of its own."""
    global _pending  # pylint: disable=global-statement
    if _pending and _thread.get_ident() == _main_thread:
        _pending = False
        raise KeyboardInterrupt
