# SPDX-License-Identifier: Apache-2.0
"""Cells without IPython: Python as it is, the value of the last expression, await at the top level, tracebacks
with lines of code. What only IPython knows, magics and !commands, is refused with the reason."""
import __future__
import ast
import asyncio
import builtins
import inspect
import linecache
import pprint
import re
import sys
import textwrap
import traceback
import types

from glovebox_kernel import errors, figure_options, interrupt, no_input, render

IPYTHON_LINE = re.compile(r"^\s*(%%?[A-Za-z_]|!|\?)|\?\s*$|=\s*[!%]", re.MULTILINE)
NO_IPYTHON = "this is IPython's syntax, and IPython is not installed, or does not work, in this sandbox's template"
FUTURE_FLAGS = 0
for _name in __future__.all_feature_names:
    FUTURE_FLAGS |= getattr(__future__, _name).compiler_flag

METHODS = {
    "text/html": "_repr_html_", "text/markdown": "_repr_markdown_", "image/svg+xml": "_repr_svg_",
    "image/png": "_repr_png_", "image/jpeg": "_repr_jpeg_", "application/pdf": "_repr_pdf_",
    "text/latex": "_repr_latex_", "application/json": "_repr_json_", "application/javascript": "_repr_javascript_",
}


def _ask(value, method, *args):
    """What a _repr_*_ method says. One that fails is a remark on stderr and no end of the cell."""
    if isinstance(value, type) or not callable(getattr(value, method, None)):
        return None
    try:
        answer = getattr(value, method)(*args)
    except NotImplementedError:
        return None
    except Exception:  # pylint: disable=broad-except
        traceback.print_exc()
        return None
    return answer[0] if isinstance(answer, tuple) else answer


def bundle_of(value):
    """All that an object says about its looks."""
    whole = render.whole(value)
    if whole is not None:
        return whole
    text = pprint.pformat(value, sort_dicts=False) if isinstance(value, (list, dict, tuple, set)) else repr(value)
    bundle = {"text/plain": text}
    for mime, method in METHODS.items():
        answer = _ask(value, method)
        if answer is not None:
            bundle[mime] = answer
    bundle.update(_ask(value, "_repr_mimebundle_") or {})
    render.enrich(value, bundle)
    return bundle


def display(*values, raw=False, **_):
    """Shows values as results; with raw=True they are {MIME type: data} themselves."""
    for value in values:
        render.publish(value if raw else bundle_of(value))


def _exit(*code):
    raise SystemExit(*code)


class Engine:
    """Runs cells in the namespace of a module __main__."""

    def __init__(self):
        no_input.install()
        self.number = 1
        self.publish = lambda bundle, is_main=False: None
        self.flags = 0
        self.loop = None
        self._begin()
        builtins.display = display
        builtins.exit = builtins.quit = _exit

    def _begin(self):
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module
        self.names = module.__dict__
        self.names.update(In=[""], Out={}, _="", __="", ___="")
        self.number = 1

    def publish_with(self, function):
        self.publish = function
        render.publish_with(function)

    def skip(self):
        self.number += 1
        return self.number - 1

    # --- running --------------------------------------------------------------------------------------

    def _parse(self, code, filename):
        try:
            return compile(code, filename, "exec", self._flags() | ast.PyCF_ONLY_AST, True)
        except SyntaxError as problem:
            if IPYTHON_LINE.search(code):
                problem.msg = f"{problem.msg} ({NO_IPYTHON})"
            raise

    def _flags(self):
        return self.flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT

    @interrupt.raises_in
    def _evaluate(self, tree, filename, mode):
        code = compile(tree, filename, mode, self._flags(), True)
        self.flags |= code.co_flags & FUTURE_FLAGS
        interrupt.check()
        value = eval(code, self.names)  # pylint: disable=eval-used
        return self._await(value) if code.co_flags & inspect.CO_COROUTINE else value

    def _await(self, coroutine):
        if self.loop is None or self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self.loop)
        task = self.loop.create_task(coroutine)
        try:
            return self.loop.run_until_complete(task)
        finally:
            task.cancel()

    @interrupt.raises_in
    def _show(self, value):
        self.publish(bundle_of(value), True)

    def _execute(self, code, filename):
        tree = self._parse(code, filename)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = ast.Expression(tree.body.pop().value)
        if tree.body:
            self._evaluate(tree, filename, "exec")
        if last is None:
            return
        value = self._evaluate(last, filename, "eval")
        if value is not None and not code.rstrip().endswith(";"):
            self._remember(value)
            self._show(value)

    def _remember(self, value):
        names = self.names
        names["Out"][self.number] = names[f"_{self.number}"] = value
        names["_"], names["__"], names["___"] = value, names.get("_"), names.get("__")

    def run(self, code):
        """Runs a cell and returns its error as (name, value, traceback), or None."""
        if not code.strip():
            return None
        if code[0].isspace():
            code = textwrap.dedent(code.strip("\n"))
        filename = f"<cell {self.number}>"
        linecache.cache[filename] = (len(code), None, code.splitlines(True), filename)
        self.names["In"].append(code)
        problem = None
        try:
            self._execute(code, filename)
        except BaseException as caught:  # pylint: disable=broad-except
            problem = caught
        try:
            figure_options.flush()
        except BaseException as caught:  # pylint: disable=broad-except
            problem = problem or caught
        finally:
            self.number += 1
        return None if problem is None else errors.describe(problem)

    def warm_up(self):
        for code in ("1 + 1", "print(end='')", "1 / 0", "("):
            self.run(code)
        self._begin()

    def touch(self):
        """After a fork the first cell copies the pages it writes to. This one does it instead."""
        self.run("print(end='')")
        self._begin()
