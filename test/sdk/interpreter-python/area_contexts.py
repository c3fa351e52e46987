# SPDX-License-Identifier: Apache-2.0
"""Contexts."""
import concurrent.futures
import threading

from harness import raises
from kit import box, ci, common, fails, output, run, value


def test_list():
    """there is one for Python and one for JavaScript before anything ran"""
    assert [(each.language, each.cwd) for each in box().list_code_contexts()] == [("python", "/home/user"), ("javascript", "/home/user")]


def test_create():
    """a new one: what it says of itself, its place in the list, a state of its own"""
    sandbox = box()
    one, two = sandbox.create_code_context(), sandbox.create_code_context(cwd="/tmp", language="python")
    assert (one.language, one.cwd, two.cwd) == ("python", "/home/user", "/tmp")
    assert [each.id for each in sandbox.list_code_contexts()][2:] == [one.id, two.id]
    run("x = 'one'", sandbox, context=one)
    fails("x", "NameError", sandbox, context=two)
    assert value("x", sandbox, context=one) == "one"
    assert value("import os\nos.getcwd()", sandbox, context=two) == "/tmp"


def test_restart():
    """restart: the variables are gone, the directory stays"""
    sandbox = box()
    context = sandbox.create_code_context(cwd="/tmp")
    run("x = 1", sandbox, context=context)
    sandbox.restart_code_context(context)
    fails("x", "NameError", sandbox, context=context)
    assert value("import os\nos.getcwd()", sandbox, context=context) == "/tmp"
    sandbox.restart_code_context(context.id)


def test_restart_running():
    """restart while a cell runs: the cell says so"""
    sandbox = box()
    context = sandbox.create_code_context()
    restarter = threading.Thread(target=sandbox.restart_code_context, args=(context,))
    execution = sandbox.run_code("import time\nprint('started')\ntime.sleep(60)", context=context, on_stdout=lambda _: restarter.start())
    assert execution.error.name == "ContextRestarting", execution.error


def test_remove():
    """remove: by object and by id"""
    sandbox = box()
    one, two = sandbox.create_code_context(), sandbox.create_code_context()
    sandbox.remove_code_context(one)
    sandbox.remove_code_context(two.id)
    assert len(sandbox.list_code_contexts()) == 2
    raises(ci.NotFoundException, sandbox.run_code, "1", context=one, containing=f"Context {one.id} not found")


def test_missing():
    """one that does not exist, a language that does not exist, both at once"""
    sandbox = common()
    raises(ci.NotFoundException, sandbox.restart_code_context, "nobody", containing="Context nobody not found")
    raises(ci.NotFoundException, sandbox.remove_code_context, "nobody", containing="Context nobody not found")
    raises(ci.SandboxException, sandbox.create_code_context, language="klingon", containing="klingon")
    raises(ci.SandboxException, sandbox.run_code, "1", language="klingon", containing="klingon")
    context = sandbox.list_code_contexts()[0]
    raises(ci.InvalidArgumentException, sandbox.run_code, "1", language="python", context=context)


def test_bad_directory():
    """a directory that does not exist is refused"""
    raises(ci.SandboxException, box().create_code_context, cwd="/no/such/directory", containing="/no/such/directory")


def test_parallel():
    """contexts run beside each other"""
    sandbox = box()
    contexts = [sandbox.create_code_context() for _ in range(4)]

    def meet(i):
        """Each waits for all the others."""
        run(f"import os, time\nopen('/tmp/met-{i}', 'w').close()\n"
            "while not all(os.path.exists(f'/tmp/met-{j}') for j in range(4)): time.sleep(0.02)", sandbox, context=contexts[i])

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(meet, range(4)))


def test_fifty():
    """50 at once, each with its own state"""
    sandbox = box()
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        contexts = list(pool.map(lambda _: sandbox.create_code_context(), range(50)))
        list(pool.map(lambda pair: run(f"x = {pair[0]}", sandbox, context=pair[1]), enumerate(contexts)))
        values = list(pool.map(lambda context: output("print(x)", sandbox, context=context), contexts))
    assert values == [f"{i}\n" for i in range(50)]
