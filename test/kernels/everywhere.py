# SPDX-License-Identifier: Apache-2.0
"""What any kernel must do, told the code of its language. For cases_*.py."""
import atexit
import os
import shutil
import subprocess
import tempfile
import time


def check(got, want):
    assert got == want, f"got {got!r}, expected {want!r}"


def built(name, *command):
    """A file that the build makes for kernels/. Where script/test has not built one, the command makes it, which is
    told the file's name in place of @OUTPUT@."""
    path = os.path.join(os.environ.get("GLOVEBOX_BUILD", "/nonexistent"), "kernels", name)
    if not os.path.exists(path):
        there = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, there)
        path = os.path.join(there, os.path.basename(name))
        subprocess.run([path if word == "@OUTPUT@" else word for word in command], check=True)
    return path


def interrupted(kernel, code, pause=0.1):
    """The answer of a cell that prints `go` and is interrupted then."""
    kernel.begin(code)
    kernel.wait_output("go\n")
    time.sleep(pause)  # until what follows has begun
    kernel.interrupt()
    return kernel.end()


def is_interrupted(kernel, *codes):
    for code in codes:
        answer = interrupted(kernel, code)
        check((code, answer.error and answer.error["name"]), (code, "KeyboardInterrupt"))


def interrupt_storm(kernel, code, ask, rounds=100, step=0.00037, longest=0.008):
    """SIGINT at any moment: no end of a cell is lost, and the next cell is whole. ask() runs one and checks it."""
    pause = 0.0
    for _ in range(rounds):
        kernel.begin(code)
        time.sleep(pause)
        pause = (pause + step) % longest
        kernel.interrupt()
        answer = kernel.end()
        if answer.error:
            check(answer.error["name"], "KeyboardInterrupt")
        kernel.interrupt()
        ask()


def streams(kernel, *codes):
    """Each prints `first` and then takes a minute: the output comes before, and nobody waits for the rest."""
    for code in codes:
        begin = time.monotonic()
        kernel.begin(code)
        kernel.wait_output("first")
        assert time.monotonic() - begin < 30, "the output came only at the end"
        time.sleep(0.1)  # until what follows has begun
        kernel.interrupt()
        kernel.end()


def ends_quickly(kernel):
    """At the end of file the kernel ends by itself, whatever its cells left running for a minute."""
    check(kernel.close(), 0)
