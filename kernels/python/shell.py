# SPDX-License-Identifier: Apache-2.0
"""IPython's shell without a terminal: no history file, no threads, no colours, no prompts."""
import asyncio
import contextlib
import subprocess
import sys
import warnings

import IPython
from IPython.core import interactiveshell, page
from IPython.core.compilerop import CachingCompiler
from IPython.core.history import HistoryManager
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.profiledir import ProfileDir
from traitlets import Unicode
from traitlets.config import Config

from glovebox_kernel import errors, figure_options, inline, interrupt, no_input, render, search_path, streams
from glovebox_kernel.shell_cells import Cells
from glovebox_kernel.shell_display import Formatter, Hook, Publisher

try:
    from _sha1 import sha1
except ImportError:
    from hashlib import sha1

WARM_UP = ("1 + 1", "'a'", "[1]", "print(end='')", "def f():\n    return 1 / 0\n\nf()", "(", "import asyncio", "%pwd")
TOUCH = ("print(end='')", "1 + 1")


class Profile(ProfileDir):
    """None: its directories have no names and are not made."""

    location = Unicode("/nonexistent")


class Compiler(CachingCompiler):
    """Cells have the names that IPython gives them, without OpenSSL: of that, each context would need pages of its own."""

    def get_code_name(self, raw_code, transformed_code, number):
        digest = sha1(transformed_code.encode("utf-8")).hexdigest()
        return f"<ipython-input-{number}-{digest[:12]}>"


class History(HistoryManager):
    """Four of its texts change with each cell. Nobody watches them, so they are no traits."""

    _i00 = _i = _ii = _iii = ""


class Shell(InteractiveShell):
    """Reports to its Engine instead of a terminal."""

    compiler_class = Compiler
    execution_count = 1  # no traits either
    last_execution_succeeded = True

    def __init__(self, **kwargs):
        self.failure = None
        self.format_problems = None
        self.publish = lambda bundle, is_main=False: None
        self.cells = None
        super().__init__(**kwargs)
        self.cells = Cells(self)

    # --- nothing is written to a home directory -------------------------------------------------------

    def init_ipython_dir(self, ipython_dir):
        pass

    def init_profile_dir(self, profile_dir):
        self.profile_dir = Profile()

    def init_virtualenv(self):
        pass

    def init_history(self):
        self.history_manager = History(shell=self, parent=self)
        self.configurables.append(self.history_manager)

    # --- nor kept in memory, which version 9 does with everything that cells say ----------------------

    def _tee(self, channel):  # pylint: disable=unused-argument
        return contextlib.nullcontext()

    def _format_exception_for_storage(self, *_args, **_kwargs):
        return {}

    def forget_outputs(self):
        outputs = getattr(self.history_manager, "outputs", None)
        if outputs:
            outputs.clear()

    # --- how things look ------------------------------------------------------------------------------

    def init_display_formatter(self):
        self.display_formatter = Formatter(parent=self)
        self.configurables.append(self.display_formatter)

    def init_hooks(self):
        super().init_hooks()
        self.set_hook("show_in_pager", page.as_hook(page.display_page), 99)

    # --- errors ---------------------------------------------------------------------------------------

    def showtraceback(self, exc_tuple=None, *args, **kwargs):  # pylint: disable=arguments-differ
        """In IPython's words, or Python's where it has none."""
        problem = exc_tuple[1] if exc_tuple else sys.exc_info()[1]
        if errors.is_group(problem):
            self._fail(errors.describe(problem))
            return
        try:
            super().showtraceback(exc_tuple, *args, **kwargs)
        except Exception:  # pylint: disable=broad-except
            self._fail(errors.describe(problem))

    def _showtraceback(self, etype, evalue, stb):
        text = stb if isinstance(stb, str) else self.InteractiveTB.stb2text(stb)
        self._fail((errors.name_of(etype), errors.text_of(evalue), text))

    def _fail(self, failure):
        if self.format_problems is not None:
            self.format_problems.append(failure)
        elif self.failure is None or failure[0] == "KeyboardInterrupt":
            self.failure = failure  # the first says what happened; others are about telling of it

    def show_usage_error(self, exc):
        self.failure = (type(exc).__name__, str(exc), f"{type(exc).__name__}: {exc}")

    def tell_format_problems(self, problems, was_formatted):
        """With some representation left they are worth a remark; with none they are the cell's error."""
        if problems and not was_formatted and self.format_problems is None:
            self.failure = problems[0]
        else:
            for problem in problems:
                print(problem[2], file=sys.stderr)

    def ask_exit(self):
        raise SystemExit

    # --- running. Below run_code() is the cell, which can be interrupted; around it are locks ----------

    interrupt.raises_in(InteractiveShell.run_code)
    interrupt.waits_in(InteractiveShell.run_cell_async)

    def transform_cell(self, raw_cell):
        if self.cells is not None and self.cells.are_python(raw_cell):
            return raw_cell if raw_cell.endswith("\n") else raw_cell + "\n"
        return super().transform_cell(raw_cell)

    def should_run_async(self, raw_cell, *, transformed_cell=None, **kwargs):  # pylint: disable=arguments-differ
        """Saves compiling a cell twice."""
        cell = raw_cell if transformed_cell is None else transformed_cell
        if "await" not in cell and "async" not in cell:
            return False
        return super().should_run_async(raw_cell, transformed_cell=transformed_cell, **kwargs)

    async def run_code(self, code_obj, result=None, **kwargs):  # pylint: disable=arguments-differ
        interrupt.check()
        return await super().run_code(code_obj, result, **kwargs)

    # --- programs -------------------------------------------------------------------------------------

    def system(self, cmd):
        """!cmd: it has our output and error, so that its words come as they are said and in order."""
        streams.flush()
        command = self.var_expand(cmd, depth=1)
        done = subprocess.run(["/bin/sh", "-c", command], stdin=subprocess.DEVNULL, check=False)
        self.user_ns["_exit_code"] = done.returncode
        search_path.refresh()

    system_piped = system_raw = system

    # --- pictures -------------------------------------------------------------------------------------

    def enable_matplotlib(self, gui=None):
        """%matplotlib, with whatever word: there is one way to show figures here."""
        from glovebox_kernel import figures  # pylint: disable=import-outside-toplevel
        figures.activate()
        return "inline", figures.BACKEND

    def enable_gui(self, gui=None):
        pass


@interrupt.raises_in
def _run_async(coroutine):
    """For cells that await. Contexts have one event loop, and tasks go on when a later cell awaits; but a cell
    that was interrupted does not."""
    loop = _event_loop()
    task = loop.create_task(coroutine)
    try:
        return loop.run_until_complete(task)
    except BaseException:
        if not task.done():
            task.cancel()
            try:
                loop.run_until_complete(task)
            except BaseException:  # pylint: disable=broad-except
                pass
        raise


_loop = None


def _event_loop():
    global _loop  # pylint: disable=global-statement
    if _loop is None or _loop.is_closed():
        _loop = asyncio.new_event_loop()
        asyncio.set_event_loop(_loop)
    return _loop


def _close_devnull():
    """IPython keeps a file open that nothing here writes to, and no descriptor may go over into a sandbox."""
    devnull = getattr(sys.modules.get("IPython.utils.io"), "devnull", None)
    if devnull is not None:
        devnull.close()


def _config():
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "NoColor" if IPython.version_info[0] < 9 else "nocolor"
    config.InteractiveShell.autoindent = False
    return config


class Engine:
    """Runs cells in IPython's shell."""

    def __init__(self):
        no_input.install()
        self.initial = {}
        interactiveshell.PickleShareDB = lambda _path: {}  # %store is kept as long as the context is
        self.shell = Shell.instance(config=_config(), displayhook_class=Hook, display_pub_class=Publisher)
        self.shell.loop_runner = _run_async
        _close_devnull()
        inline.register(self.shell)
        # SystemExit is reported as the cell's error; IPython's advice about Ctrl-D helps nobody here.
        warnings.filterwarnings("ignore", message="To exit: use")

    @property
    def number(self):
        """The number of the next cell."""
        return self.shell.execution_count

    def skip(self):
        """A cell that cannot be run has a number too."""
        number = self.shell.execution_count
        self.shell.execution_count = number + 1
        return number

    def publish_with(self, function):
        """Results go there: a function that takes a bundle and whether it is the main result."""
        self.shell.publish = function
        render.publish_with(lambda bundle: self.shell.display_pub.publish(bundle))  # which %%capture replaces

    def run(self, code):
        """Runs a cell and returns its error as (name, value, traceback), or None."""
        shell = self.shell
        shell.failure = None
        number = shell.execution_count
        outcome = shell.run_cell(code, store_history=True)
        shell.forget_outputs()
        if shell.execution_count > number + 1:
            shell.execution_count = number + 1  # some versions count twice what they cannot transform
        try:
            figure_options.flush()
        except BaseException:  # pylint: disable=broad-except
            if shell.failure is None:
                shell.showtraceback()
        problem = outcome.error_before_exec or outcome.error_in_exec
        if shell.failure is None and problem is not None:
            shell.failure = errors.describe(problem)  # nobody has shown it
        return shell.failure

    def warm_up(self):
        """Runs what cells usually run, so that a fork finds it loaded; then everything is as new."""
        self.shell.reset(new_session=True)
        self.initial = dict(self.shell.user_ns)
        for code in WARM_UP:
            self.run(code)
        self._forget()

    def touch(self):
        """After a fork the first cell copies the pages it writes to. This one does it instead."""
        for code in TOUCH:
            self.run(code)
        self._forget()

    def _forget(self):
        """As if no cell had been run. shell.reset() would do more than a forked process should pay for."""
        shell, history, hook = self.shell, self.shell.history_manager, self.shell.displayhook
        history.input_hist_parsed[:] = [""]
        history.input_hist_raw[:] = [""]
        history.output_hist.clear()
        history._i00 = history._i = history._ii = history._iii = ""  # pylint: disable=protected-access
        hook._ = hook.__ = hook.___ = ""  # pylint: disable=protected-access
        shell.user_ns.clear()
        shell.user_ns.update(self.initial)
        shell.execution_count = 1
        shell.last_execution_result = None
        for name in ("last_type", "last_value", "last_traceback", "last_exc"):
            if hasattr(sys, name):
                delattr(sys, name)
