# SPDX-License-Identifier: Apache-2.0
"""A Python that keeps its state between cells; see ../PROTOCOL.md.

    python3 -I kernel.py            is one context on descriptors 3 and 4
    load(packages), then a fork:    the same without loading anything again (zygote.py)

Its modules are the package glovebox_kernel, so that no name of theirs is in the way of a cell's imports.
"""
import os
import sys
import types

PACKAGE = "glovebox_kernel"
REQUESTS_FD, EVENTS_FD = 3, 4


def _make_package():
    package = types.ModuleType(PACKAGE)
    package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
    sys.modules[PACKAGE] = package


if PACKAGE not in sys.modules:
    _make_package()

from glovebox_kernel import context  # noqa: E402  pylint: disable=wrong-import-position


def load(preload=()):
    """Makes ready whatever contexts have in common. Packages of `preload` that are not installed are left
    out. Starts no thread and opens no descriptor that stays."""
    context.load(preload)


def before_forks(environ):
    """In the process that contexts are forked from, when all is loaded: these variables are all they have. What can be
    done here costs no context a page of its own."""
    context.before_forks(environ)


def after_fork():
    """In the process that becomes a context: nothing random may be what it is in a sister process."""
    context.after_fork()


def serve(requests_fd, events_fd):
    """One context. Never returns: the process ends when the agent closes the requests."""
    context.serve(requests_fd, events_fd)


if __name__ == "__main__":
    load()
    serve(REQUESTS_FD, EVENTS_FD)
