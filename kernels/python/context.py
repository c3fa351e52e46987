# SPDX-License-Identifier: Apache-2.0
"""A context: cells come in, run in one interpreter, and are answered."""
import gc
import importlib
import os
import sys
import threading
import traceback

from glovebox_kernel import chance, errors, hooks, interrupt, results, search_path, streams
from glovebox_kernel.channel import Channel, Closed

THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")

# A context that nobody has asked for so long prepares itself for its first cell. One that is asked sooner would only be kept
# from it, and where sandboxes come and go quickly that would be a third of what its processor time is spent on.
QUIET_MS = 250

_context = None


def _make_engine():
    """IPython's shell, or plain Python where IPython is not installed or is not one that we know."""
    # pylint: disable=import-outside-toplevel
    try:
        from glovebox_kernel import shell
        return shell.Engine()
    except Exception:  # pylint: disable=broad-except
        from glovebox_kernel import plain
        return plain.Engine()


def _import_quietly(name):
    try:
        importlib.import_module(name)
    except Exception:  # pylint: disable=broad-except
        pass  # not installed, or broken: the cell that needs it will say so


def _preload(names):
    """Some packages start a thread for each processor when they are loaded, and after a fork they would be
    lost or made again; one is enough until a cell asks for more."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    for name in names:
        _import_quietly(name)
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value


def _make_context():
    engine, channel = _make_engine(), Channel()
    engine.warm_up()
    context = Context(channel, engine)
    streams.settle_with(channel.settle)
    os.register_at_fork(before=streams.settle)
    os.register_at_fork(before=streams.flush, after_in_child=channel.abandon)
    engine.publish_with(context.publish)
    return context


def load(preload):
    """Everything but what belongs to one process: done before the forks, it costs none of them a page of its own."""
    global _context  # pylint: disable=global-statement
    streams.install()
    hooks.install()
    _preload(preload)
    _context = _make_context()
    interrupt.install()
    if "matplotlib.pyplot" in sys.modules:
        from glovebox_kernel import figures  # pylint: disable=import-outside-toplevel
        figures.warm_up()
    gc.collect()
    gc.freeze()  # a collection in a forked context leaves these pages shared


def before_forks(environ):
    os.environ.clear()
    os.environ.update(environ)
    chance.prepare()
    if "tempfile" in sys.modules:
        sys.modules["tempfile"]._name_sequence = None  # pylint: disable=protected-access
    for name in ("get_configdir", "get_cachedir"):  # remembered for the zygote's home
        forget = getattr(getattr(sys.modules.get("matplotlib"), name, None), "cache_clear", None)
        if forget is not None:
            forget()
    gc.collect()
    gc.freeze()


def after_fork():
    chance.renew()


class Context:
    """What is between the channel and the engine."""

    def __init__(self, channel, engine):
        self.channel = channel
        self.engine = engine
        self.pid = None
        self.is_first = True
        self.is_running = False
        self.strangers = frozenset()  # threads that earlier cells left behind

    # --- what a cell says -----------------------------------------------------------------------------

    def _may_speak(self):
        """Not between cells, not in a child of a cell, and not as a thread that an earlier cell left behind."""
        return self.is_running and os.getpid() == self.pid and threading.get_ident() not in self.strangers

    def publish(self, bundle, is_main=False):
        """A result. What was printed before it comes before it."""
        if not bundle or not self._may_speak():
            return
        data = results.event(bundle, is_main)
        streams.flush()
        self.channel.send(b"result", data)
        interrupt.check()

    def _say_error(self, error):
        try:
            data = results.error(*error)
        except Exception:  # pylint: disable=broad-except
            data = results.error(str(error[0])[:1000], "", "")  # memory is short, or a str is not what it seems
        streams.flush()
        self.channel.send(b"error", data)

    def _say_end(self):
        streams.flush()
        self.channel.send(b"end")

    # --- one cell -------------------------------------------------------------------------------------

    def _prepare(self, cell):
        """Variables and directory, which count in the first cell only. Returns an error or None."""
        if not self.is_first:
            return None
        self.is_first = False
        for item in cell.base:
            name, _, value = item.partition(b"=")
            os.environb[name] = value
        error = None
        if cell.cwd is not None:
            try:
                os.chdir(cell.cwd)
            except OSError as problem:
                error = (type(problem).__name__, str(problem), f"The working directory: {problem}")
        search_path.install()
        hooks.heed_variables()
        return error

    def _run_code(self, text):
        """Runs in the hands of the cell. Returns its error, or None."""
        try:
            return self.engine.run(text)
        except Closed:
            raise
        except BaseException as problem:  # pylint: disable=broad-except
            return errors.describe(problem)

    def _run(self, cell, code):
        try:
            text = code.decode("utf-8")
        except UnicodeDecodeError as problem:
            self.channel.send(b"count", b"%d" % self.engine.skip())
            return ("UnicodeDecodeError", str(problem), f"UnicodeDecodeError: {problem}")
        self.channel.send(b"count", b"%d" % self.engine.number)
        before = _set_variables(cell.env)
        try:
            error = self._run_code(text)
            if os.getpid() != self.pid:
                _leave_child(error)
            return error
        finally:
            interrupt.install()
            _restore_variables(before)

    def _perform(self, cell):
        """Prepares and runs. Returns the error, or None."""
        error = self._prepare(cell)
        code = b"".join(cell.code)
        if code and error is None:
            return self._run(cell, code)
        if code:
            self.channel.send(b"count", b"%d" % self.engine.skip())
        return error

    def _answer(self, cell):
        try:
            interrupt.forget()
            self.strangers = _other_threads()
            self.is_running = True
            error = self._perform(cell)
        except Closed:
            raise
        except BaseException as problem:  # pylint: disable=broad-except
            error = errors.describe(problem)
        self.is_running = False
        if error is not None:
            _surely(self._say_error, error)
        _surely(self._say_end)

    def serve(self):
        self.pid = os.getpid()
        self.channel.send(b"ready", b"%d" % self.pid)
        if self.channel.is_quiet_for(QUIET_MS):
            self.engine.touch()
        while True:
            try:
                self._answer(self.channel.receive())
            except Closed:
                return
            except Exception:  # pylint: disable=broad-except
                continue  # of a signal handler that a cell left behind


def _leave_child(error):
    """A process that the cell forked came to the end of the cell: it is not the kernel."""
    if error is not None:
        print(error[2], file=sys.__stderr__)
    streams.flush()
    os._exit(0 if error is None else 1)  # pylint: disable=protected-access


def _surely(function, *args):
    """A signal handler that a cell left behind may raise anywhere. An event is sent nevertheless."""
    try:
        function(*args)
    except Closed:
        raise
    except BaseException:  # pylint: disable=broad-except
        pass


def _other_threads():
    if threading.active_count() <= 1:
        return frozenset()
    main = threading.main_thread()
    return frozenset(thread.ident for thread in threading.enumerate() if thread is not main)


def _set_variables(items):
    """Sets them and returns what they were."""
    before = {}
    for item in items:
        name, _, value = item.partition(b"=")
        before.setdefault(name, os.environb.get(name))
        os.environb[name] = value
    return before


def _restore_variables(before):
    for name, value in before.items():
        if value is None:
            os.environb.pop(name, None)
        else:
            os.environb[name] = value


def serve(requests_fd, events_fd):
    sys.argv[:] = [""]
    interrupt.install()
    _context.channel.open(requests_fd, events_fd)
    status = 1
    try:
        _context.serve()
        status = 0
    except Closed:
        status = 0
    except BaseException:  # pylint: disable=broad-except
        traceback.print_exc()
    finally:
        streams.flush()
        os._exit(status)  # pylint: disable=protected-access
