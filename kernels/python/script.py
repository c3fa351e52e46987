# SPDX-License-Identifier: Apache-2.0
"""For the Python that scripts are forked from: src/zygote/script.c runs this in a namespace that nobody sees, when the
interpreter is about to open its script. Nothing may stay of it that a script could meet: no module, no variable."""
import io
import posix
import sys


def _open_input():
    """Standard input was /dev/null when the interpreter started. What it is now it could not know: this is what it does
    then."""
    old = sys.stdin
    buffer = io.open(0, "rb", -1, closefd=False)
    buffer.raw.name = "<stdin>"
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(buffer, old.encoding, old.errors, "\n", old.line_buffering,
                                                 old.write_through)
    sys.stdin.mode = "r"


def become(variables, has_input):
    """In a fork: `variables` are those of the run, each with a NUL behind it."""
    posix.environ.clear()  # os.environ keeps them there
    for item in variables.split(b"\0")[:-1]:
        name, _, value = item.partition(b"=")
        posix.environ[name] = value
    if has_input:
        _open_input()
