# SPDX-License-Identifier: Apache-2.0
"""The Python kernel where IPython is not installed. Whatever is not IPython's own must be the same."""
import cases_python
from cases_python import check

# What only IPython does, or does in other words.
NOT_HERE = ("test_errors",)

globals().update({name: test for name, test in vars(cases_python).items() if name.startswith("test_") and name not in NOT_HERE})


def command():
    """-S leaves out the directories of packages, and IPython with them."""
    argv = cases_python.command()
    return argv[:1] + ["-S"] + argv[1:]


def test_no_ipython(world):
    """there is no IPython in here"""
    check(world.kernel.cell("import IPython").error["name"], "ModuleNotFoundError")


def test_plain_errors(world):
    """tracebacks have the lines of the cell, also those of an earlier one"""
    world.kernel.cell("def f():\n    return nothing")
    answer = world.kernel.cell("f()")
    check((answer.error["name"], answer.error["value"]), ("NameError", "name 'nothing' is not defined"))
    text = answer.error["traceback"]
    assert text.startswith("Traceback") and "    return nothing" in text and "    f()" in text, text
    assert "glovebox" not in text and "kernel" not in text, text


def test_refused(world):
    """IPython's syntax is refused, and says why"""
    for code in ("%matplotlib inline", "!ls", "x = !ls", "%%bash\nls", "len?"):
        error = world.kernel.cell(code).error
        check((code, error["name"]), (code, "SyntaxError"))
        assert "IPython is not installed" in error["value"], error


def test_future(world):
    """a __future__ import holds for later cells"""
    world.kernel.cell("from __future__ import annotations")
    check(world.kernel.cell("def f(a: nothing): pass\nf.__annotations__['a']").text, "nothing")


def test_representations(world):
    """_repr_*_ methods and display() are known here too"""
    code = "class A:\n    def _repr_html_(self): return '<i>'\n    def _repr_png_(self): 1 / 0\n    def __repr__(self): return 'A!'\ndisplay(A())\nA()"
    answer = world.kernel.cell(code)
    check(answer.results, [{"text": "A!", "html": "<i>", "is_main_result": main} for main in (False, True)])
    assert "ZeroDivisionError" in answer.stderr
    check(world.kernel.cell("display({'text/latex': 'x'}, raw=True)").results, [{"latex": "x", "is_main_result": False}])


def test_broken_repr(world):
    """a repr that fails is the error of its cell"""
    check(world.kernel.cell("class B:\n    def __repr__(self): 1 / 0\nB()").error["name"], "ZeroDivisionError")
