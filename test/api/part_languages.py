# SPDX-License-Identifier: Apache-2.0
"""Contexts of Bash, R and Java in a box: state, errors, interrupts, directories, and the end of an interpreter. What
their kernels do with cells is looked at more closely in test/kernels."""
import shutil

import cells
import tap
from cells import ask, cell, error, of, text

# For each: set a variable, show it, fail, run without end, tell variable A and the directory, end the interpreter.
CODES = {
    "bash": ("x=5", "echo $x", "(exit 3)", "echo go; while :; do :; done", "echo $A $PWD", "kill -9 $$"),
    "r": ("x <- 5", "cat(x, '\\n', sep = '')", "stop('no')", "cat('go\\n'); repeat {}",
          "cat(Sys.getenv('A'), getwd(), '\\n')", "tools::pskill(Sys.getpid(), 9)"),
    "java": ("int x = 5;", "System.out.println(x);", "throw new Error(\"no\");",
             "{ System.out.println(\"go\"); while (true) {} }",
             "System.out.println(System.getenv(\"A\") + \" \" + Path.of(\"\").toAbsolutePath());",
             "Runtime.getRuntime().halt(9);"),
}
ERRORS = {"bash": ("ExitStatus", "3"), "r": ("simpleError", "no"), "java": ("Error", "no")}
NEEDS = {"bash": "bash", "r": "Rscript", "java": "javac"}


def need(language):
    if not shutil.which(NEEDS[language]):
        raise tap.Skip(f"no {NEEDS[language]} here")


def keeps_state(world, language):
    need(language)
    put, show, fail, endless, tell, kill = CODES[language]
    box = world.client.create(envVars={"A": "one"})
    cell(box, put, language=language)
    assert text(cell(box, show, language=language)) == "5\n"
    found = error(cell(box, fail, language=language))
    assert (found["name"], found["value"]) == ERRORS[language], found
    assert text(cell(box, tell, language=language)).split() == ["one", "/home/user"]
    # A client that goes away interrupts its cell, and the state stays.
    with cells.opened(box, endless, language=language) as connection:
        cells.until(cells.events(connection), "stdout")
        connection.reset()
    assert text(cell(box, show, language=language)) == "5\n"
    # An interpreter that ends is made anew, and that is said.
    assert error(cell(box, kill, language=language))["name"] == "ContextDied"
    assert text(cell(box, show, language=language)) != "5\n"


def goes_elsewhere(world, language):
    need(language)
    box = world.client.create(envVars={"A": "one"})
    there = cells.create(box, language=language, cwd="/tmp")
    assert text(cell(box, CODES[language][4], context_id=there["id"])).split() == ["one", "/tmp"]
    reply = ask(box, "POST", "/contexts", {"language": language, "cwd": "/not/there"})
    assert reply.status == 400 and b"/not/there" in reply.body, reply
    assert [each["id"] for each in cells.contexts(box)][2:] == [there["id"]]


def test_bash(world):
    """Bash keeps its state, is interrupted, and is made anew"""
    keeps_state(world, "bash")


def test_r(world):
    """R keeps its state, is interrupted, and is made anew"""
    keeps_state(world, "r")


def test_java(world):
    """Java keeps its state, is interrupted, and is made anew"""
    keeps_state(world, "java")


def test_bash_elsewhere(world):
    """a Bash context in a directory of its own"""
    goes_elsewhere(world, "bash")


def test_r_elsewhere(world):
    """an R context in a directory of its own"""
    goes_elsewhere(world, "r")


def test_java_elsewhere(world):
    """a Java context in a directory of its own"""
    goes_elsewhere(world, "java")


def test_r_results(world):
    """values, tables and plots of R"""
    need("r")
    box = world.client.create()
    (shown,) = of(cell(box, "data.frame(a = 1:2, b = c('x', NA))", language="r"), "result")
    assert shown["data"] == {"a": [1, 2], "b": ["x", None]} and shown["is_main_result"], shown
    assert "<td>x</td>" in shown["html"], shown
    pictures = of(cell(box, "plot(1:3)\nhist(1:9)", language="r"), "result")
    assert [sorted(one) for one in pictures][0] == ["extra", "is_main_result", "png", "type"], pictures
    assert pictures[0]["png"].startswith("iVBORw0KGgo") and pictures[0]["extra"] == {}


def test_no_channel(world):
    """programs of a cell get nothing of the kernel's"""
    box = world.client.create()
    look = "ls -l /proc/self/fd | grep -c pipe:"
    assert text(cell(box, look, language="bash")) == "2\n"
    need("r")
    assert text(cell(box, f"system('{look.replace('-c', '-o')} | wc -l')", language="r")).strip() == "2"
