# SPDX-License-Identifier: Apache-2.0
"""POST /v1/run of a Python script: a fork of an interpreter that is loaded, and nobody can tell but by the time. Each
program is run both ways, and what came of it is compared."""
import json
import os
import pathlib
import re
import signal

import service
from service import wait_for

LOAD_SECONDS = 60
SAME = ("status", "step", "exit_code", "signal", "stdout", "stderr", "truncated", "message", "limits", "refused_outputs")

# All that a script can ask about itself and its interpreter.
FACTS = r"""
import sys
modules, names, depth, frame = sorted(sys.modules), sorted(globals()), 0, sys._getframe()
while frame:
    depth, frame = depth + 1, frame.f_back
import atexit, builtins, faulthandler, gc, json, locale, os, resource, signal, site, tempfile, threading, time, warnings

def stream(s):
    return [repr(s), repr(vars(s)), s.errors, s.line_buffering, s.write_through, s.seekable(), s.isatty(), s.newlines,
            repr(s.buffer), repr(getattr(s.buffer, "raw", None)), s.readable(), s.writable(), s.fileno()]

def text(path):
    with open("/proc/self/" + path) as f:
        return f.read().rstrip("\0")

status = dict(line.split(":", 1) for line in text("status").splitlines())
main = threading.main_thread()
print(json.dumps({
    "arguments": [sys.argv, sys.orig_argv, sys.flags, sys.warnoptions, sys._xoptions, sys.path, sys.executable, sys.prefix],
    "main": [__name__, __file__, names, type(__loader__).__name__, repr(__spec__), repr(__package__), depth],
    "modules": modules, "filters": [repr(f) for f in warnings.filters], "builtins": sorted(vars(builtins)),
    "streams": [stream(s) for s in (sys.stdin, sys.stdout, sys.stderr)],
    "originals": [sys.stdin is sys.__stdin__, sys.stdout is sys.__stdout__, sys.stderr is sys.__stderr__],
    "signals": {n: repr(signal.getsignal(n)) for n in range(1, 65)}, "wakeup": signal.set_wakeup_fd(-1),
    "hooks": [repr(h).split(" at ")[0] for h in (sys.excepthook, sys.displayhook, sys.unraisablehook, sys.breakpointhook,
                                                 exit, input, print, sys.gettrace(), sys.getprofile())],
    "import": [[repr(f).split(" at ")[0] for f in sys.meta_path], len(sys.path_hooks), sorted(sys.path_importer_cache),
               sys.dont_write_bytecode, sys.pycache_prefix],
    "locale": [locale.setlocale(locale.LC_ALL), locale.getpreferredencoding(), sys.getfilesystemencoding(), time.tzname],
    "variables": [dict(os.environ), text("environ").split("\0"), site.ENABLE_USER_SITE, site.USER_SITE, tempfile.gettempdir()],
    "process": [os.getcwd(), os.getpid() == os.getsid(0) == os.getpgrp(), os.getppid(), os.getresuid(), os.getresgid(),
                os.getgroups(), os.nice(0), sorted(os.sched_getaffinity(0)), text("comm"), text("cmdline"),
                os.readlink("/proc/self/exe"), text("oom_score_adj")],
    "limits": {n: resource.getrlimit(getattr(resource, n)) for n in dir(resource) if n.startswith("RLIMIT_")},
    "descriptors": [sorted(os.listdir("/proc/self/fd")), [os.get_inheritable(fd) for fd in range(3)]],
    "status": {n: status[n].split() for n in ("Umask", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "Threads",
                                              "NoNewPrivs", "Seccomp", "SigBlk", "SigIgn", "SigCgt", "SigPnd", "TracerPid")},
    "threads": [threading.active_count(), main is threading.current_thread(), main.native_id == os.getpid(), main.name],
    "rest": [gc.isenabled(), gc.get_threshold(), sys.getrecursionlimit(), sys.getswitchinterval(), faulthandler.is_enabled(),
             atexit._ncallbacks(), hasattr(sys, "last_type"), sys.get_asyncgen_hooks()[0], time.process_time() < 5],
}))
"""

PROGRAMS = {
    "an exit status": "import sys; print('a'); sys.exit(3)",
    "an exit with a text": "import sys; sys.exit('enough')",
    "os._exit": "import os; print('a', end=''); os._exit(7)",
    "an exception": "def f():\n    raise ValueError('ü')\nprint(1)\nf()",
    "an exception in an exception": "try:\n    1 / 0\nexcept ZeroDivisionError:\n    open('/nowhere')",
    "a syntax error": "print(1)\n)",
    "a warning": "import warnings; warnings.warn('mind', stacklevel=2)\n'a' is 'a'",
    "the stack": "import traceback; traceback.print_stack()",
    "too deep": "def f(n):\n    return f(n + 1)\ntry:\n    f(0)\nexcept RecursionError as e:\n    print(e)",
    "both streams": "import sys\nfor i in range(200):\n    print('o' * 999)\n    print('e' * 999, file=sys.stderr)",
    "bytes": "import sys; sys.stdout.buffer.write(bytes(range(256)) * 100)",
    "no end of line": "import sys; sys.stdout.write('a'); sys.stdout.write('b')",
    "a surrogate": "print('\\udc80')",
    "atexit": "import atexit; atexit.register(print, 'last'); print('first')",
    "a finalizer": "class A:\n    def __del__(self): print('gone')\na = A()\nprint('here')",
    "a cycle's finalizer": "class A:\n    def __del__(self): print('gone')\na = A(); a.a = a\ndel a\nprint('here')",
    "a thread that stays": "import threading, time\nthreading.Thread(target=lambda: (time.sleep(.1), print('late'))).start()\nprint('main')",
    "a signal": "import os, signal; print(1); os.kill(os.getpid(), signal.SIGTERM)",
    "SIGKILL": "import os; os.kill(os.getpid(), 9)",
    "an interrupt": "import os, signal; os.kill(os.getpid(), signal.SIGINT)\nimport time; time.sleep(5)",
    "abort": "import os; os.abort()",
    "faulthandler": "import faulthandler; faulthandler.enable()\ndef f():\n    faulthandler._sigsegv()\nf()",
    "a broken pipe": "import os; r, w = os.pipe(); os.close(r)\ntry:\n    os.write(w, b'x')\nexcept BrokenPipeError as e:\n    print(e)",
    "a program": "import subprocess; print(subprocess.run(['sh', '-c', 'echo $A; echo e >&2; exit 4'], env=None).returncode)",
    "a pipe to a program": "import subprocess; print(subprocess.run('yes | head -1', shell=True, capture_output=True, text=True))",
    "fork": "import os\npid = os.fork()\nif not pid:\n    print('child', os.getppid() > 1)\n    os._exit(5)\nprint(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))",
    "processes by fork": "import multiprocessing as m\nm.set_start_method('fork')\nwith m.Pool(2) as p:\n    print(p.map(abs, [-1, -2]))",
    "processes by spawn": "import multiprocessing as m\nif __name__ == '__main__':\n    m.set_start_method('spawn')\n    with m.Pool(1) as p:\n        print(p.map(abs, [-1, -2]))",
    "asyncio": "import asyncio\nasync def f():\n    await asyncio.sleep(.01)\n    return (await (await asyncio.create_subprocess_exec('true')).wait())\nprint(asyncio.run(f()))",
    "no input": "import sys; print(repr(sys.stdin.read()))\ninput()",
    "its own module": "import helper, sys; print(helper.__file__, helper.x, 'helper' in sys.modules)",
    "its own file": "print(open(__file__).read() == open('main.py').read(), __import__('os').listdir('.'))",
    "itself again": "import __main__, runpy, sys\nprint(__main__ is sys.modules['__main__'])\nif 'again' not in sys.argv:\n    sys.argv.append('again'); runpy.run_path('main.py', run_name='__main__')",
    "nothing": "",
}


def run(world, code, **body):
    reply = world.client.ask("POST", "/v1/run", {"language": "python", "code": code} | body)
    assert reply.status == 200, reply
    return reply.json()


def forks(world):
    """A script is a fork, as soon as there is somebody to fork it from."""
    return wait_for(lambda: run(world, "")["isolation"]["zygote"], LOAD_SECONDS, 0.1)


def without_addresses(value):
    return re.sub("0x[0-9a-f]+", "0x", value) if isinstance(value, str) else value


def both(world, code, **body):
    """What came of it as a fork and executed; of all but time it must be the same."""
    forked, executed = run(world, code, **body), run(world, code, **body, zygote=False)
    assert forked["isolation"]["zygote"] and not forked["isolation"]["own_address_layout"], forked["isolation"]
    assert not executed["isolation"]["zygote"] and executed["isolation"]["own_address_layout"], executed["isolation"]
    differs = {name: (forked[name], executed[name]) for name in SAME
               if without_addresses(forked[name]) != without_addresses(executed[name])}
    assert not differs, differs
    return forked


def test_facts(world):
    """everything that a script can see is as in a Python that was started for it"""
    assert forks(world), world.service.log_tail(5)
    for body in ({}, {"stdin": "a\nb\n"}, {"env": {"A": "ü", "B": ""}}):
        one, other = (json.loads(run(world, FACTS, zygote=zygote, **body)["stdout"]) for zygote in (True, False))
        for name, value in one.items():
            assert value == other[name], (name, value, other[name])


def test_programs(world):
    """programs print, fail and end as they do when they are executed"""
    files = [{"path": "helper.py", "content": "x = 1\n"}]
    for name, code in PROGRAMS.items():
        try:
            both(world, code, files=files, env={"A": "1"})
        except AssertionError as problem:
            raise AssertionError(f"{name}: {problem}") from problem


def test_input(world):
    """standard input reaches them, by every way to read it"""
    data = "one\ntwo\r\nthree" + "x" * 100000
    for code in ("print(input()); print(repr(input())); import sys; print(len(sys.stdin.read()))",
                 "import sys; print([len(line) for line in sys.stdin])",
                 "import sys; print(len(sys.stdin.buffer.read()))",
                 "import os; print(len(os.read(0, 10)))",
                 "import subprocess; print(subprocess.run('wc -c', shell=True, capture_output=True).stdout)"):
        both(world, code, stdin=data)
    assert both(world, "import sys; sys.stdout.write(sys.stdin.read())", stdin="ü\n")["stdout"] == "ü\n"


def test_limits(world):
    """every limit ends them, with its name"""
    for status, code, limits in (
            ("timeout", "import time; time.sleep(30)", {"timeout_ms": 300}),
            ("cpu_limit", "while True: pass", {"cpu_time_ms": 200}),
            ("memory_limit", "x = []\nwhile True: x.append(b'x' * 1000000)", {"memory_bytes": 64 << 20}),
            ("pids_limit", "import os\nwhile True:\n    if not os.fork():\n        import time; time.sleep(9)", {"pids": 8}),
            ("output_limit", "while True: print('x' * 999)", {"output_bytes": 10000}),
            ("disk_limit", "open('f', 'wb').write(b'x' * 30000000)", {"disk_bytes": 1 << 20})):
        for zygote in (True, False):
            got = run(world, code, limits=limits, zygote=zygote)
            assert got["status"] == status and got["isolation"]["zygote"] == zygote, (status, zygote, got)


def test_usage(world):
    """what they used is counted"""
    used = run(world, "x = b'x' * 50000000\nfor i in range(10 ** 6): pass\nopen('f', 'wb').write(x)")["usage"]
    assert used["memory_peak_bytes"] > 50000000 and used["cpu_user_ms"] + used["cpu_system_ms"] > 10, used
    assert used["wall_ms"] > 10 and used["processes_peak"] >= 1 and used["written_bytes"] >= 50000000, used


def test_outputs(world):
    """files go in and come back"""
    got = both(world, "import os; os.mkdir('out'); open('out/b', 'w').write(open('dir/a').read() * 2)",
               files=[{"path": "dir/a", "content": "12"}], outputs=True)
    assert [(out["path"], out["content_base64"]) for out in got["outputs"]] == [("b", "MTIxMg==")], got["outputs"]


def test_executed(world):
    """what an interpreter looks at while it starts has its effect: these are executed"""
    show = "import os, sys, time; print(sys.flags.optimize, hash('a'), os.environ.get('A'), time.tzname[0], sys.executable)"
    for env in ({"PYTHONOPTIMIZE": "2"}, {"PYTHONHASHSEED": "1"}, {"PYTHONUNBUFFERED": ""}, {"PATH": "/usr/bin"}, {"TZ": "Asia/Tokyo"},
                {"LC_ALL": "C"}, {"LANG": "C"}, {"HOME": "/tmp"}, {"LD_PRELOAD": ""}, {"LD_PRELOAD": "/opt/glovebox/lib/script.so"},
                {"MALLOC_ARENA_MAX": "1"}, {"GLIBC_TUNABLES": ""}):
        assert not run(world, show, env=env)["isolation"]["zygote"], env
    assert run(world, show, env={"PYTHONHASHSEED": "1"})["stdout"] == run(world, show, env={"PYTHONHASHSEED": "1"})["stdout"]
    assert "JST" in run(world, show, env={"TZ": "Asia/Tokyo"})["stdout"]
    version = run(world, "import sys; print('%d.%d' % sys.version_info[:2])")["stdout"].strip()
    site = f".local/lib/python{version}/site-packages"
    got = run(world, "import mine; print(mine.x)", files=[{"path": f"{site}/mine.py", "content": "x = 5"}])
    assert got["stdout"] == "5\n" and not got["isolation"]["zygote"], got
    got = run(world, "print(2)", limits={"pids": 1})
    assert got["status"] == "ok" and not got["isolation"]["zygote"], got


def test_others(world):
    """other languages and commands are executed"""
    for body in ({"command": ["python3", "-c", "print(1)"]}, {"language": "bash", "code": "echo 1"}):
        got = world.client.ask("POST", "/v1/run", body).json()
        assert got["stdout"] == "1\n" and got["isolation"]["zygote"] is False, got
        assert got["isolation"]["own_address_layout"] is True, got
    assert world.client.ask("POST", "/v1/run", {"language": "python", "code": "", "zygote": 1}).status == 400


def test_chance(world):
    """nothing that is to be random is what it was in the run before"""
    code = """
import random, secrets, ssl, tempfile, uuid
print(random.random(), secrets.token_hex(), ssl.RAND_bytes(8).hex(), uuid.uuid4(), uuid.uuid1().clock_seq, next(tempfile._get_candidate_names()))
"""
    one, other = (run(world, code)["stdout"].split() for _ in range(2))
    assert len(one) == 6 and not set(one) & set(other), (one, other)


def zygote_of(world):
    """The process that scripts are forked from: below its keeper, which is the warden's child."""
    for keeper in service.children(world.service.process.pid):
        for pid in service.children(keeper):
            if pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() == b"python3\0main.py\0":
                return pid
    return 0


def test_death(world):
    """without the zygote they are executed, and forked again from the next one"""
    assert forks(world)
    first = zygote_of(world)
    assert first
    os.kill(first, signal.SIGKILL)
    for _ in range(3):
        assert run(world, "print(1)")["stdout"] == "1\n"
    assert forks(world) and zygote_of(world) not in (0, first), world.service.log_tail(5)


def test_stopped(world):
    """a zygote that does not answer costs them a moment, and nothing else"""
    pid = zygote_of(world)
    os.kill(pid, signal.SIGSTOP)
    try:
        got = run(world, "print(1)")
        assert got["stdout"] == "1\n" and not got["isolation"]["zygote"] and got["usage"]["wall_ms"] < 5000, got
    finally:
        os.kill(pid, signal.SIGCONT)
    assert forks(world)
