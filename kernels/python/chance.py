# SPDX-License-Identifier: Apache-2.0
"""Random generators of forked processes: none may go on where its sister's does.

numpy seeds its old global generator in a way that brings half a megabyte of numpy into the process, which is two
thirds of what a context costs that never uses it. So its state is written in place, where it is found to be what it
should be; otherwise the slow way is taken."""
import os
import sys

WORDS = 624  # of the Mersenne twister
STATE_BYTES = WORDS * 4

_state = None  # (function, address) for numpy's generator


def _write(memmove, address, words):
    memmove(address, words + WORDS.to_bytes(4, sys.byteorder), STATE_BYTES + 4)  # the key, then the place in it


def _find_state(random):
    """Where the generator keeps its key, if writing there does what it is meant to do."""
    import ctypes  # pylint: disable=import-outside-toplevel
    address = random.mtrand._rand._bit_generator.ctypes.state_address  # pylint: disable=protected-access
    address = getattr(address, "value", address)
    words = os.urandom(STATE_BYTES)
    _write(ctypes.memmove, address, words)
    name, key, place, *_ = random.get_state()
    random.seed()  # which also forgets a number that was kept back
    if name == "MT19937" and key.tobytes() == words and place == WORDS:
        return ctypes.memmove, address
    return None


def prepare():
    """Before the forks."""
    global _state  # pylint: disable=global-statement
    random = sys.modules.get("numpy.random")
    try:
        _state = _find_state(random) if random is not None else None
    except Exception:  # pylint: disable=broad-except
        _state = None  # another numpy than those we know


def renew():
    """In a fork: from the system's entropy. Python's own generator renews itself after a fork."""
    if "torch" in sys.modules:
        sys.modules["torch"].seed()
    if _state is not None:
        _write(*_state, os.urandom(STATE_BYTES))
    elif "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
