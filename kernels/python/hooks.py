# SPDX-License-Identifier: Apache-2.0
"""Small changes to packages, made when a cell imports them and not before: a package that is not used costs
nothing, one that is not installed is not missed."""
import importlib.util
import os
import sys
import time

from glovebox_kernel import streams

FIGURES = "module://glovebox_kernel.figures"


def _flush_before(owner, name):
    """Whatever a cell printed stands before what a program prints that it starts."""
    original = getattr(owner, name)

    def flushing(*args, **kwargs):
        streams.flush()
        streams.settle()
        return original(*args, **kwargs)

    flushing.__name__, flushing.__doc__ = name, original.__doc__
    setattr(owner, name, flushing)


def _subprocess(module):
    _flush_before(module.Popen, "_execute_child")


def _matplotlib(module):
    """Figures are shown as results, unless the cell or its environment has chosen something else."""
    if not os.environ.get("MPLBACKEND"):
        module.rcParams["backend"] = FIGURES


def heed_variables():
    """Of the sandbox, which come when packages are perhaps loaded already."""
    if os.environ.get("TZ"):
        time.tzset()
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None and os.environ.get("MPLBACKEND"):
        try:
            pyplot.switch_backend(os.environ["MPLBACKEND"])
        except Exception:  # pylint: disable=broad-except
            pass  # there is none of this name


def _pillow(module):
    from glovebox_kernel import pictures  # pylint: disable=import-outside-toplevel
    pictures.install(module.Image)


class Finder:
    """Asked first for every module that is imported; knows a few of them."""

    def __init__(self):
        self.waiting = {"subprocess": _subprocess, "matplotlib": _matplotlib, "PIL.Image": _pillow}

    def find_spec(self, name, _path=None, _target=None):
        hook = self.waiting.pop(name, None)
        if hook is None:
            return None
        spec = importlib.util.find_spec(name)  # of the other finders, since we do not know it anymore
        if spec is None or not hasattr(spec.loader, "exec_module"):
            self.waiting[name] = hook
            return spec
        self._run_after(spec.loader, hook)
        return spec

    @staticmethod
    def _run_after(loader, hook):
        original = loader.exec_module

        def exec_module(module):
            del loader.exec_module
            original(module)
            hook(module)

        loader.exec_module = exec_module


def install():
    finder = Finder()
    for name in list(finder.waiting):
        if name in sys.modules:
            finder.waiting.pop(name)(sys.modules[name])
    sys.meta_path.insert(0, finder)
    for name in ("system", "posix_spawn", "posix_spawnp"):
        _flush_before(os, name)
