# SPDX-License-Identifier: Apache-2.0
"""The Python kernel: cells, state, output, errors, interrupts, and cells that mean harm."""
import os
import signal
import tempfile
import time

import harness
import suite
import tap
from everywhere import ends_quickly, streams

PYTHON = os.environ.get("KERNEL_PYTHON", "/usr/bin/python3")


def command():
    if not os.access(PYTHON, os.X_OK):
        raise tap.Skip(f"no {PYTHON}")
    return [PYTHON, "-I", "-B", str(suite.KERNELS / "python" / "kernel.py")]


def need(kernel, package):
    if kernel.cell(f"import {package}").error:
        raise tap.Skip(f"no {package} here")


def check(got, want):
    assert got == want, f"got {got!r}, expected {want!r}"


# --- cells and state ------------------------------------------------------------------------------------


def test_ready(world):
    """it says its pid, and numbers cells from 1"""
    with world.new() as kernel:
        check(kernel.ready, kernel.process.pid)
        check(kernel.cell("x = 41").parts, [("count", 1)])
        answer = kernel.cell("x + 1")
        check(answer.parts, [("count", 2), ("result", {"text": "42", "is_main_result": True})])
        check(kernel.cell("").parts, [])
        check(kernel.cell("x").count, 3)


def test_print(world):
    """print(1) is one piece of output, before the result"""
    answer = world.kernel.cell("print(1)\n2")
    check(answer.parts[1:], [("stdout", b"1\n"), ("result", {"text": "2", "is_main_result": True})])


def test_history(world):
    """_, __, _N, In and Out are IPython's"""
    with world.new() as kernel:
        for code in ("10", "20"):
            kernel.cell(code)
        check(kernel.cell("[_, __, _1, Out[2], In[1]]").main["json"], [20, 10, 10, 20, "10"])


def test_semicolon(world):
    """a semicolon keeps the value back"""
    check(world.kernel.cell("5;").results, [])


def test_indented(world):
    """common indentation is accepted"""
    check(world.kernel.cell("\n    a = 1\n    if a:\n        a += 1\n    a\n").text, "2")


def test_await(world):
    """await at the top level, and asyncio.run() in an ordinary cell"""
    kernel = world.kernel
    check(kernel.cell("import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 7\nawait f()").text, "7")
    check(kernel.cell("asyncio.run(f())").text, "7")


def test_main_module(world):
    """classes of cells can be pickled, and __name__ is __main__"""
    answer = world.kernel.cell("import pickle\nclass C:\n    pass\n__name__, type(pickle.loads(pickle.dumps(C()))) is C")
    check(answer.text, "('__main__', True)")


def test_pieces(world):
    """code in pieces that cut characters"""
    check(world.kernel.cell("'äöü€😀' * 3", piece=1).text, "äöü€😀" * 3)


def test_not_utf8(world):
    """code that is not UTF-8"""
    answer = world.kernel.cell(b"print('\xff')")
    check((answer.error["name"], answer.kinds), ("UnicodeDecodeError", ["count", "error"]))
    check(world.kernel.cell("1").text, "1")


def test_modules_of_the_directory(world):
    """modules are imported from the working directory, PYTHONPATH, and not from the kernel"""
    with tempfile.TemporaryDirectory() as here, tempfile.TemporaryDirectory() as there, world.new() as kernel:
        for path, name in ((here, "channel"), (there, "results")):
            with open(os.path.join(path, f"{name}.py"), "w", encoding="ascii") as file:
                file.write(f"where = {name!r}\n")
        answer = kernel.cell("import channel, results\nchannel.where, results.where", cwd=here, base={"PYTHONPATH": there})
        check(answer.text, "('channel', 'results')")


# --- variables and directory ----------------------------------------------------------------------------


def test_variables(world):
    """variables of the sandbox stay, those of a cell go"""
    read = "import os\n[os.environ.get(name) for name in 'ABC']"
    with world.new() as kernel:
        check(kernel.cell(base={"A": "1", "B": "2"}).parts, [])
        check(kernel.cell(read, base={"A": "other"}, env={"B": "x=y", "C": ""}).main["json"], ["1", "x=y", ""])
        check(kernel.cell(read).main["json"], ["1", "2", None])
        check(kernel.cell("os.environ['B'] = 'set'\n1/0", env={"B": "cell"}).error["name"], "ZeroDivisionError")
        check(kernel.cell("import subprocess; _ = subprocess.run('echo $B', shell=True)").stdout, "2\n")


def test_directory(world):
    """the directory of the first cell, once"""
    with world.new() as kernel:
        check(kernel.cell("import os; os.getcwd()", cwd="/usr").text, "/usr")
        check(kernel.cell("os.getcwd()", cwd="/etc").text, "/usr")


def test_no_directory(world):
    """a directory that is not there is an error, and the context lives"""
    with world.new() as kernel:
        answer = kernel.cell("1", cwd="/not/there")
        check((answer.count, answer.error["name"], answer.results), (1, "FileNotFoundError", []))
        assert "/not/there" in answer.error["value"], answer.error
        check(kernel.cell("1").text, "1")


# --- errors ---------------------------------------------------------------------------------------------


def test_errors(world):
    """name, value and traceback, without colours"""
    answer = world.kernel.cell("def f():\n    return nothing\n\nf()")
    check((answer.error["name"], answer.error["value"]), ("NameError", "name 'nothing' is not defined"))
    for line in ("----> 2     return nothing", "NameError: name 'nothing' is not defined"):
        assert line in answer.error["traceback"], answer.error["traceback"]
    assert "\x1b" not in answer.error["traceback"] and "glovebox" not in answer.error["traceback"]
    check(answer.stdout + answer.stderr, "")


def test_syntax_errors(world):
    """errors of syntax and indentation"""
    check(world.kernel.cell("a = (").error["name"], "SyntaxError")
    answer = world.kernel.cell("if 1:\nx")
    check(answer.error["name"], "IndentationError")
    check(world.kernel.cell("return 1").error["name"], "SyntaxError")


def test_exit(world):
    """exit(), quit() and sys.exit() end the cell and not the context"""
    kernel = world.kernel
    kernel.cell("kept = 1")
    for code, value in (("exit()", ""), ("quit()", ""), ("import sys; sys.exit(3)", "3"), ("raise SystemExit('bye')", "bye")):
        answer = kernel.cell(code)
        check((answer.error["name"], answer.error["value"] or "", answer.stderr), ("SystemExit", value, ""))
    check(kernel.cell("kept").text, "1")


def test_recursion(world):
    """recursion without end"""
    check(world.kernel.cell("def f(n):\n    return f(n + 1)\nf(0)").error["name"], "RecursionError")
    check(world.kernel.cell("1").text, "1")


def test_memory(world):
    """memory that is not there"""
    check(world.kernel.cell("bytearray(1 << 62)").error["name"], "MemoryError")


def test_hostile_exceptions(world):
    """exceptions whose text cannot be had, or is enormous"""
    answer = world.kernel.cell("class E(Exception):\n    def __str__(self):\n        raise ValueError\nraise E")
    check(answer.error["name"], "E")
    answer = world.kernel.cell("raise ValueError('x' * 5_000_000)")
    check((answer.error["name"], len(answer.error["value"]) < 1_100_000), ("ValueError", True))


def test_groups(world):
    """groups of exceptions, where Python has them"""
    answer = world.kernel.cell("raise ExceptionGroup('several', [ValueError(1), KeyError(2)])")
    if answer.error["name"] == "NameError":
        raise tap.Skip("this Python has none")
    check((answer.error["name"], answer.stderr), ("ExceptionGroup", ""))
    assert "KeyError: 2" in answer.error["traceback"] and "glovebox" not in answer.error["traceback"], answer.error


def test_input(world):
    """input() says why it cannot"""
    answer = world.kernel.cell("input('name?')")
    check(answer.error["name"], "EOFError")
    assert "no standard input" in answer.error["value"]


# --- output ---------------------------------------------------------------------------------------------


def test_order(world):
    """prints, programs and results come in the order in which they were made"""
    code = ("import os, subprocess, sys\nprint('a', end='')\nos.system('echo b')\nprint('c', end='')\n"
            "subprocess.run(['echo', 'd'])\nos.system('echo e')\ndisplay('f')\nprint('g', end='')\n"
            "print('h', file=sys.stderr)\ndisplay('i')\nprint('j')")
    answer = world.kernel.cell(code)
    seen = ""
    for kind, value in answer.parts[1:]:
        seen += value.decode() if kind == "stdout" else value["text"] if kind == "result" else ""
    for order in ("abcdef", "agi"):  # what is printed after a result may overtake it
        check([one for one in seen if one in order], list(order))


def test_streams(world):
    """output comes while the cell runs, also without an end of line"""
    streams(world.kernel, *(f"import time\n{code}\ntime.sleep(60)" for code in (
        "print('first')", "print('fir', end=''); time.sleep(0.06); print('st', end='')", "import os; os.system('echo first')")))


def test_printf(world):
    """what C prints comes before the end of its cell"""
    if world.kernel.cell("import ctypes").error:
        raise tap.Skip("no ctypes here")
    check(world.kernel.cell("_ = ctypes.CDLL(None).printf(b'from C\\n')").stdout, "from C\n")


def test_odd_text(world):
    """text that is no text does not end a cell"""
    answer = world.kernel.cell(r"print('a\ud800b'); '\ud800'")
    check(answer.stdout, "a\\ud800b\n")
    assert answer.error is None and answer.main["text"], answer
    check(world.kernel.cell("import sys; sys.stdout.buffer.write(b'\\xff'); sys.stdout.fileno()").parts[1], ("stdout", b"\xff"))


def test_replaced_streams(world):
    """cells that replace or close sys.stdout"""
    with world.new() as kernel:
        kernel.cell("import io, sys\nold = sys.stdout\nsys.stdout = io.StringIO()\nprint('hidden')")
        check(kernel.cell("print('hidden'); sys.stdout = old; print('seen')").stdout, "seen\n")
        kernel.cell("sys.stdout.close()")
        check(kernel.cell("print('still')").stdout, "still\n")
        kernel.cell("import os; os.close(1)")
        check(kernel.cell("1").text, "1")


def test_much_output(world):
    """much output, whole"""
    answer = world.kernel.cell("for i in range(200000): print(i)")
    check(answer.stdout, "".join(f"{i}\n" for i in range(200000)))


def test_many_displays(world):
    """many displays: linear, and in bounded memory"""
    with world.new() as kernel:
        kernel.cell("import resource")
        peak = "resource.getrusage(resource.RUSAGE_SELF).ru_maxrss"
        before = int(kernel.cell(peak).text)
        check(len(kernel.cell("for i in range(50000): display(i)").results), 50000)
        grown = int(kernel.cell(peak).text) - before
        assert grown < 4096, f"{grown} KiB for 50,000 displays"


# --- interrupts -----------------------------------------------------------------------------------------


def interrupted(kernel, code):
    kernel.begin(code)
    kernel.wait_output("go\n")
    kernel.interrupt()
    return kernel.end()


def test_interrupt(world):
    """SIGINT is a KeyboardInterrupt, in Python, in sleep, in await and in programs"""
    kernel = world.kernel
    kernel.cell("import time, asyncio\nkept = 5")
    for code in ("print('go')\nwhile True: pass", "print('go')\ntime.sleep(60)", "import subprocess\nsubprocess.run('echo go; sleep 60', shell=True)",
                 "print('go')\nawait asyncio.sleep(60)", "class C:\n    def __repr__(self):\n        print('go')\n        time.sleep(60)\nC()"):
        answer = interrupted(kernel, code)
        check((code, answer.error and answer.error["name"]), (code, "KeyboardInterrupt"))
    check(kernel.cell("await asyncio.sleep(0)\nkept").text, "5")


def test_interrupt_between(world):
    """SIGINT between cells means nothing"""
    kernel = world.kernel
    for _ in range(20):
        kernel.interrupt()
        check(kernel.cell("1").text, "1")


def test_interrupt_storm(world):
    """SIGINT at any moment: the end of a cell is never lost, nor the next cell"""
    kernel = world.kernel
    pause = 0.0
    for _ in range(150):
        kernel.begin("for i in range(20): display(i); print(i)\n[1, 2, 3]")
        time.sleep(pause)
        pause = (pause + 0.00037) % 0.008
        kernel.interrupt()
        answer = kernel.end()
        assert answer.error is None or "KeyboardInterrupt" in answer.error["traceback"], answer
        check(kernel.cell("40 + 2").text, "42")


def test_own_handler(world):
    """a cell's own idea of SIGINT ends with it"""
    kernel = world.kernel
    kernel.cell("import signal\nsignal.signal(signal.SIGINT, signal.SIG_DFL)")
    kernel.interrupt()
    check(kernel.cell("1").text, "1")


# --- cells that mean harm -------------------------------------------------------------------------------


def test_fork(world):
    """a child of a cell neither answers nor goes on as a kernel"""
    kernel = world.kernel
    code = ("import os\npid = os.fork()\nif pid == 0:\n    print('child')\n    display('no')\n"
            "else:\n    os.waitpid(pid, 0)\n    print('parent')\n'both'")
    answer = kernel.cell(code)
    check((answer.stdout, answer.text, len(answer.results)), ("child\nparent\n", "both", 1))
    check(kernel.cell("import multiprocessing\nwith multiprocessing.get_context('fork').Pool(2) as pool: print(pool.map(abs, [-1, -2]))").stdout, "[1, 2]\n")
    check(kernel.cell("1").text, "1")


def test_failing_child(world):
    """a child of a cell that fails says so on its stderr"""
    answer = world.kernel.cell("import os\npid = os.fork()\nif pid == 0:\n    1 / 0\nos.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])")
    check((answer.text, answer.error), ("1", None))
    assert "ZeroDivisionError" in answer.stderr, answer


def test_late_thread(world):
    """a thread that outlives its cell speaks for no other"""
    kernel = world.kernel
    kernel.cell("import threading, time\n"
                "def late():\n    time.sleep(0.3)\n    display('late')\n    print('printed')\nthreading.Thread(target=late).start()")
    check(kernel.cell("time.sleep(0.6)\n'mine'").results, [{"text": "mine", "is_main_result": True}])


def test_thread(world):
    """a thread of the running cell may display"""
    code = "import threading\nt = threading.Thread(target=lambda: display('t'))\nt.start()\nt.join()"
    check([result["text"] for result in world.kernel.cell(code).results], ["t"])


def test_closed_descriptors(world):
    """cells that close descriptors 3 and 4 go on"""
    with world.new() as kernel:
        kernel.cell("import os\nfor fd in range(3, 50):\n    try: os.close(fd)\n    except OSError: pass")
        check(kernel.cell("1").text, "1")


def test_closed_channel(world):
    """a cell that takes the channel away ends the kernel, which does not spin"""
    for code in ("import os; os.closerange(3, 65536)", "import os; os._exit(7)", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"):
        with world.new() as kernel:
            try:
                kernel.cell(code)
            except harness.Died:
                continue
            raise AssertionError(f"alive after {code}")


def test_end_of_file(world):
    """end of file is the end, also while a thread runs"""
    kernel = world.new()
    kernel.cell("import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()")
    ends_quickly(kernel)


def test_background(world):
    """a program left in the background holds nothing up"""
    with world.new() as kernel:
        begin = time.monotonic()
        kernel.cell("import subprocess\np = subprocess.Popen(['sleep', '60'])")
        check(kernel.cell("1").text, "1")
        assert time.monotonic() - begin < 30
        kernel.cell("p.kill()")


def test_alarm(world):
    """a signal handler that a cell left behind does not end the kernel"""
    with world.new() as kernel:
        kernel.cell("import signal\ndef f(*_): raise TimeoutError\nsignal.signal(signal.SIGUSR1, f)")
        os.kill(kernel.ready, signal.SIGUSR1)
        time.sleep(0.1)
        check(kernel.cell("1").parts[1:], [("result", {"text": "1", "is_main_result": True})])
