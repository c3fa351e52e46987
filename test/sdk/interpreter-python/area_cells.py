# SPDX-License-Identifier: Apache-2.0
"""Cells of Python."""
import json
import threading
import time

from kit import box, ci, common, fails, output, run, value


def test_first():
    """the default template has an interpreter"""
    execution = box().run_code("print('hello'); 6 * 7")
    assert execution.logs.stdout == ["hello\n"] and execution.logs.stderr == []
    assert (execution.text, execution.error, execution.execution_count) == ("42", None, 1)


def test_state():
    """variables, functions and imports stay; each cell has the next number"""
    sandbox = box()
    run("import math\nx = 20\ndef double(n):\n    return 2 * n", sandbox)
    assert value("double(x) + 2", sandbox) == "42"
    assert run("math.pi", sandbox).execution_count == 3


def test_values():
    """the value of the last expression, and only of that"""
    assert value("1\n2") == "2"
    assert run("x = 1").results == [] and run("None").results == [] and run("1;").results == []
    assert value("'abc'") == "abc"
    assert run("[1]").results[0].is_main_result is True


def test_errors():
    """errors: name, value and traceback; the state stays"""
    run("kept = 1")
    error = fails("unknown_name", "NameError")
    assert error.value == "name 'unknown_name' is not defined"
    assert "NameError" in error.traceback and "unknown_name" in error.traceback
    fails("def f(:", "SyntaxError")
    fails("class Mine(Exception): pass\nraise Mine('žluť 🚀')", "Mine")
    assert value("kept") == "1"


def test_before_error():
    """what came before an error is there"""
    execution = common().run_code("print('before')\n1 / 0\nprint('after')")
    assert execution.logs.stdout == ["before\n"]
    assert execution.error.name == "ZeroDivisionError"


def test_exit():
    """sys.exit() ends the cell, not the context"""
    run("kept = 'yes'")
    fails("import sys; sys.exit(3)", "SystemExit")
    assert value("kept") == "yes"


def test_await():
    """await at the top"""
    assert value("import asyncio\nsum(await asyncio.gather(*[asyncio.sleep(0.05, i) for i in range(10)]))") == "45"


def test_magics():
    """magics and commands"""
    assert output("!echo out") == "out\n"
    assert value("%pwd") == "/home/user"
    assert output("%%bash\necho $((6 * 7))") == "42\n"
    assert value("lines = !printf 'a\\nb\\n'\nlen(lines)") == "2"


def test_indented():
    """code that is indented as a whole, and no code"""
    assert value("    x = 1\n    x") == "1"
    assert run("").results == []


def test_callbacks():
    """callbacks: as it happens, in the order in which it happens"""
    seen = []

    def note(what):
        seen.append((what, time.monotonic()))
    run("import sys, time\nfrom IPython.display import display\nfor i in range(3):\n    print(i)\n"
        "    print('e', i, file=sys.stderr)\n    display(i)\n    time.sleep(1)\n'last'",
        on_stdout=lambda message: note(("out", message.line, message.error)),
        on_stderr=lambda message: note(("err", message.line, message.error)),
        on_result=lambda each: note(("result", each.text, each.is_main_result)))
    want = []
    for i in range(3):
        want += [("out", f"{i}\n", False), ("err", f"e {i}\n", True), ("result", str(i), False)]
    assert [what for what, _ in seen] == [*want, ("result", "last", True)], seen
    for before, after in ((2, 3), (5, 6), (8, 9)):
        assert seen[after][1] - seen[before][1] > 0.15


def test_on_error():
    """on_error"""
    seen = []
    execution = common().run_code("raise KeyError('k')", on_error=seen.append)
    assert seen == [execution.error] and seen[0].name == "KeyError"


def test_timestamps():
    """timestamps of the service rise from line to line"""
    seen = []
    run("import time\nfor i in range(3):\n    print(i)\n    time.sleep(1)", on_stdout=lambda message: seen.append(message.timestamp))
    assert len(seen) == 3 and len(set(seen)) == 3, seen
    assert sorted(seen, key=str) == seen, seen


def test_serial():
    """cells of one context run one after the other"""
    run("import time\nlog = []")
    threads = [threading.Thread(target=run, args=(f"n = len(log)\ntime.sleep(0.1)\nlog.append((n, {i}))",)) for i in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert value("[n for n, _ in log]") == "[0, 1, 2, 3, 4]"


def test_json():
    """an execution as JSON"""
    data = json.loads(run("print(1); {'a': 2}").to_json())
    assert data["results"] == [{"text": "{'a': 2}", "json": {"a": 2}}], data
    assert json.loads(data["logs"]) == {"stdout": ["1\n"], "stderr": []}


def test_base():
    """the template base has an interpreter too"""
    assert value("1 + 1", box("base")) == "2"


def test_bound():
    """a client that is bound to its settings"""
    import os  # pylint: disable=import-outside-toplevel
    bound = ci.E2B(api_key=os.environ["E2B_API_KEY"], api_url=os.environ["E2B_API_URL"], sandbox_url=os.environ["E2B_SANDBOX_URL"])
    sandbox = bound.Sandbox.create()
    try:
        assert value("6 * 7", sandbox) == "42"
    finally:
        sandbox.kill()
