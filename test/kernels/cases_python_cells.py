# SPDX-License-Identifier: Apache-2.0
"""Cells that are Python and nothing else are not taken apart by IPython: kernels/python/shell_cells.py decides which."""
from cases_python import check, command, need  # noqa: F401  pylint: disable=unused-import

PYTHON = ["print(1)", "x = 1\ny = 2\n", "def f():\n    return 1\n\nf()", "a = (1,\n2)", "x", "import os; os.sep", "'a'", "# nothing", "x.real",
          "for i in range(3):\n    print(i)", "@staticmethod\ndef f():\n    pass\n", "print('''\n1\n''')", "1\n\n\n"]
OTHERS = ["%pwd", "!echo 1", "x?", "?x", "a = !echo 1", "a = %pwd", "%%bash\necho 1", ">>> 1 + 1", ">>> for i in []:\n...     i", "In [1]: 1 + 1",
          "[ins] In [1]: 1", "if 1:\n   ...: 1", "  x = 1\n  y = 2", "\n\nx", "/abs -1", ",str a b", ";str a b", "pwd", "ls -l", "cd /", "time 1 + 1",
          "exit", "quit()", "m", "m\n", "x = 1\n!echo 1", "x = 1\n    %pwd", "x = 1\r%pwd\n", "x = 1\r/abs -1", "x = 1\x0c\n/abs -1", "", " ", "\n",
          "1 % 2", "1 != 2", "f'{x!r}'", "x = 1\n/abs -1", "x = 1\n  ,str a"]
AGREE = """
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.macro import Macro
shell, m, x = get_ipython(), Macro("1 + 1"), 1
def differ(cells):
    return [cell for cell in cells if shell.transform_cell(cell) != InteractiveShell.transform_cell(shell, cell)]
"""


def shell_cells(world):
    kernel = world.new()
    need(kernel, "IPython")
    check(kernel.cell(AGREE).error, None)
    return kernel


def test_agree(world):
    """whatever a cell looks like, it becomes what IPython alone makes of it"""
    with shell_cells(world) as kernel:
        check(kernel.cell(f"differ({PYTHON + OTHERS!r})").main["json"], [])


def test_taken(world):
    """cells that IPython leaves alone are known, and none of those that it changes"""
    with shell_cells(world) as kernel:
        check(kernel.cell(f"[cell for cell in {PYTHON!r} if not shell.cells.are_python(cell)]").main["json"], [])
        changed = f"[c for c in {OTHERS!r} if c and InteractiveShell.transform_cell(shell, c) not in (c, c + chr(10))]"
        check(kernel.cell(f"changed = {changed}; any(shell.cells.are_python(c) for c in changed)").main["text"], "False")
        assert int(kernel.cell("len(changed)").text) > 25


def test_own(world):
    """transformers that a cell adds, and autocall, count from then on"""
    for change, cell, answer in (("shell.input_transformers_post.append(lambda lines: [line.replace('x', '7') for line in lines])", "x", "7"),
                                 ("shell.input_transformers_cleanup.append(lambda lines: ['8'])", "x\nx", "8"),
                                 ("shell.autocall = 2", "abs 9", "9")):
        with shell_cells(world) as kernel:
            check(kernel.cell(cell).text if "abs" not in cell else "1", "1")
            check(kernel.cell(change).error, None)
            check(kernel.cell(cell).text, answer)


def test_names(world):
    """a cell's file has the name that IPython gives it"""
    with shell_cells(world) as kernel:
        kernel.cell("def f(): pass")
        check(kernel.cell("from IPython.core.compilerop import code_name\nf.__code__.co_filename == code_name(In[3] + chr(10), 3)").text, "True")


def test_inputs(world):
    """_i, _ii, _iii and _iN are the texts of the last cells"""
    with world.new() as kernel:
        need(kernel, "IPython")
        for code in ("'a'", "'b'", "'c'"):
            kernel.cell(code)
        check(kernel.cell("[_i, _ii, _iii, _i2, In[-1]]").main["json"], ["'c'", "'b'", "'a'", "'a'", "[_i, _ii, _iii, _i2, In[-1]]"])
