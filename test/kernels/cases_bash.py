# SPDX-License-Identifier: Apache-2.0
"""The Bash kernel: one shell whose state stays, whatever a cell does to it."""
import os
import shutil
import signal
import tempfile
import time

import harness
import suite
import tap
from everywhere import check, ends_quickly, interrupt_storm, interrupted, is_interrupted, streams


def command():
    if not shutil.which("bash"):
        raise tap.Skip("no bash")
    return ["bash", "--noprofile", "--norc", str(suite.KERNELS / "bash" / "kernel.sh")]


def status(value):
    text = str(value)
    return {"name": "ExitStatus", "value": text, "traceback": f"the command ended with status {text}"}


# --- cells and state ------------------------------------------------------------------------------------


def test_ready(world):
    """it says its pid, and numbers cells from 1"""
    with world.new() as kernel:
        check((kernel.ready, kernel.greeting.parts), (kernel.process.pid, []))
        check(kernel.cell("x=1").parts, [("count", 1)])
        check(kernel.cell("echo $x").parts, [("count", 2), ("stdout", b"1\n")])
        check(kernel.cell().parts, [])
        check(kernel.cell("# nothing").parts, [("count", 3)])


def test_state(world):
    """variables, arrays, functions, aliases, options, directory, arguments and descriptors stay"""
    with world.new() as kernel, tempfile.TemporaryDirectory() as there:
        kernel.cell(f"declare -A m=([a]=1); arr=(1 2 3); f() {{ echo f$1; }}; alias hi='echo hello'; shopt -s nullglob\n"
                    f"cd {there}; set -- one two; exec 7>file; umask 027; export E=exported; declare -i n=3")
        answer = kernel.cell("m[b]=2; n+=4; echo ${m[a]}${m[b]} ${arr[2]} $(f 1) $# $2 $n $(umask) *.none; hi; echo x >&7; pwd\n"
                             "bash -c 'echo $E'; cat file")
        check(answer.stdout, f"12 3 f1 2 two 7 0027\nhello\n{there}\nexported\nx\n")


def test_status(world):
    """the status of the last command is the error, and $? of the next cell"""
    kernel = world.kernel
    check(kernel.cell("false; true").error, None)
    check(kernel.cell("(exit 3)").error, status(3))
    check(kernel.cell("# comments and space do not change it\n\n").error, None)
    check(kernel.cell("echo $?").parts[1:], [("stdout", b"3\n")])
    check(kernel.cell("not-a-command-at-all").error, status(127))


def test_pieces(world):
    """code in pieces that cut characters"""
    check(world.kernel.cell("echo 'äöü€😀'; s='€😀'; echo \"$s\"", piece=1).stdout, "äöü€😀\n€😀\n")


def test_large(world):
    """a megabyte of code"""
    check(world.kernel.cell("echo " + "x" * 1_000_000 + " | wc -c").stdout, "1000001\n")


def test_nul(world):
    """a NUL in the code is an error, and the next cell is whole"""
    answer = world.kernel.cell(b"echo a\0b\0")
    check((answer.error["name"], answer.stdout), ("NulByte", ""))
    check(world.kernel.cell("echo c").stdout, "c\n")


def test_here_document(world):
    """here-documents, also one without an end"""
    check(world.kernel.cell("cat <<END\na$((1+1))\nEND").stdout, "a2\n")
    answer = world.kernel.cell("cat <<END\nunfinished")
    check((answer.stdout, answer.error), ("unfinished\n", None))
    assert "warning" in answer.stderr


def test_same_cell(world):
    """an alias and an option of syntax count from the next line on"""
    with world.new() as kernel:
        check(kernel.cell("alias say='echo said'\nsay it").stdout, "said it\n")
        check(kernel.cell("shopt -s extglob\nx=aab; echo ${x##+(a)}").stdout, "b\n")


def test_lines(world):
    """lines count from 1"""
    check(world.kernel.cell("echo $LINENO\n\necho $LINENO").stdout, "1\n3\n")


# --- what would end a shell -----------------------------------------------------------------------------


def test_exit(world):
    """exit ends the cell, from any depth, and not the context"""
    kernel = world.kernel
    kernel.cell("kept=5")
    for code, error in (("exit 3\necho NO", status(3)), ("exit", status(3)), ("exit 0; echo NO", None),
                        ("f() { local l=1; eval 'exit 6'; echo NO; }\nf; echo NO", status(6)),
                        ("source <(echo 'exit 7'); echo NO", status(7)), ("while true; do exit 8; done", status(8)),
                        ("trap 'exit 9' USR1; kill -USR1 $$; sleep 2; echo NO", status(9)),
                        ("trap - USR1; exit 256", None)):
        answer = kernel.cell(code)
        check((code, answer.error, answer.stdout), (code, error, ""))
    check(kernel.cell("(exit 4); echo $?; x=$(exit 5); echo $? $l").stdout, "4\n5\n")
    check(kernel.cell("echo $kept; jobs").stdout, "5\n")


def test_errexit(world):
    """set -e ends the cell where it would end a script, stays set, and does not end the context"""
    with world.new() as kernel:
        check(kernel.cell("set -e\necho a; false; echo NO").parts[1:], [("stdout", b"a\n"), ("error", status(1))])
        check(kernel.cell("g() { (exit 4); echo NO; }; h() { g; echo NO; }\nh; echo NO").error, status(4))
        answer = kernel.cell("if ! h; then echo tolerated; fi; false || echo or; ! true; (false; echo NO); echo NO")
        check((answer.stdout, answer.error), ("NO\nNO\nor\n", status(1)))
        check(kernel.cell("return 5").error, status(5))
        check(kernel.cell("[[ $- == *e* ]] && echo still; exit 2").parts[1:],
              [("stdout", b"still\n"), ("error", status(2))])
        check(kernel.cell("set +e; false; echo on").stdout, "on\n")


def test_errors_of_expansion(world):
    """what throws a shell back ends the whole cell"""
    kernel = world.kernel
    for code in ("set -u\necho $not_set\necho NO", "set +u; : ${not_set:?gone}\necho NO", "x=$((1/0))\necho NO",
                 "readonly fixed=1; fixed=2\necho NO"):
        answer = kernel.cell(code)
        check((code, answer.stdout, answer.error), (code, "", status(1)))
        assert answer.stderr
    check(kernel.cell("set +u; return 3; echo NO").error, status(3))
    check(kernel.cell("break; continue; echo on").stdout, "on\n")


def test_options(world):
    """options of a cell stay and do not trouble the kernel"""
    for option in ("-u", "-f", "-x", "-v", "-C", "-k", "-T", "-o posix", "-a", "-e"):
        with world.new() as kernel:
            kernel.cell(f"set {option}; IFS=0123456789; TMOUT=1; shopt -s nocasematch failglob")
            kernel.cell("(exit 3)")
            check((option, kernel.cell('echo "$((40 + 2))"').stdout), (option, "42\n"))


def test_posix(world):
    """a sandbox whose variables ask for POSIX's shell"""
    with world.new(env={**os.environ, "POSIXLY_CORRECT": "1", "BASHOPTS": "extdebug", "PROMPT_COMMAND": "echo NO"}) as kernel:
        check(kernel.cell("exit 3").error, status(3))
        check(kernel.cell("echo on").parts[1:], [("stdout", b"on\n")])


def test_syntax(world):
    """errors of syntax"""
    kernel = world.kernel
    answer = kernel.cell("echo before\nif; then")
    check((answer.stdout, answer.error["name"], answer.error["value"]),
          ("before\n", "SyntaxError", "syntax error near unexpected token `;'"))
    assert "line 2" in answer.error["traceback"] and "line 2: syntax error" in answer.stderr, answer
    check(kernel.cell("echo 'not closed").error["name"], "SyntaxError")
    answer = kernel.cell("echo ( 'é😀\"\\'")
    check((answer.error["name"], "\x1b" in answer.error["value"]), ("SyntaxError", False))
    check(kernel.cell("}\necho NO\n{").error["name"], "SyntaxError")
    check(kernel.cell("echo on").stdout, "on\n")


def test_large_syntax(world):
    """an error of syntax in a large word"""
    answer = world.kernel.cell("echo a )" + "x" * 500_000)
    check((answer.error["name"], len(answer.error["value"]) <= 1000), ("SyntaxError", True))


def test_odd_bytes(world):
    """bytes that are not UTF-8 in an error"""
    answer = world.kernel.cell(b"case x in \xff\xe9) ;; esac\n\xff\xc3( \xf0\x9f )")
    check(answer.error["name"], "SyntaxError")
    check(world.kernel.cell(b"echo \xff").parts[1:], [("stdout", b"\xff\n")])


# --- variables and directory ----------------------------------------------------------------------------


def test_variables(world):
    """variables of the sandbox stay, those of a cell go"""
    with world.new() as kernel:
        check(kernel.cell(base={"A": "1", "B": "2"}).parts, [])
        read = "echo \"${A-none},${B-none},${C-none}\"; bash -c 'echo \"$A$B$C\"'"
        check(kernel.cell(read, base={"A": "other"}, env={"B": "x=y\n'\"$", "C": ""}).stdout,
              "1,x=y\n'\"$,\n1x=y\n'\"$\n")
        check(kernel.cell(read).stdout, "1,2,none\n12\n")
        kernel.cell("B=changed; unset C; exit 3", env={"B": "cell", "C": "cell"})
        check(kernel.cell(read).stdout, "1,2,none\n12\n")
        kernel.cell("arr=(a b); loc=1")
        kernel.cell("true", env={"arr": "x", "loc": "y", "bad name": "z", "UID": "0", "__gb_count": "9"})
        check(kernel.cell("declare -p arr loc").stdout, 'declare -a arr=([0]="a" [1]="b")\ndeclare -- loc="1"\n')


def test_directory(world):
    """the directory of the first cell, once; one that is not there is an error"""
    with world.new() as kernel:
        answer = kernel.cell("echo NO", cwd="/not/there")
        check((answer.count, answer.error["name"], answer.error["value"], answer.stdout),
              (1, "ChangeDirectory", "cannot go to the directory /not/there", ""))
        check(kernel.cell("pwd", cwd="/usr").stdout, "/usr\n")
        check(kernel.cell("pwd", cwd="/etc").stdout, "/usr\n")


# --- output ---------------------------------------------------------------------------------------------


def test_streams(world):
    """output comes while the cell runs"""
    streams(world.kernel, "echo first; sleep 60", "printf first; sleep 60", "/bin/echo first >&2; sleep 60")


def test_much_output(world):
    """ten megabytes of output, whole"""
    check(world.kernel.cell("head -c 10000000 /dev/zero | tr '\\0' y").stdout, "y" * 10_000_000)


def test_nothing_to_read(world):
    """there is nothing to read"""
    answer = world.kernel.cell("cat; read x; echo $?")
    check((answer.stdout, answer.error), ("1\n", None))


def test_redirected(world):
    """a cell that redirects or closes its output does so for itself"""
    kernel = world.kernel
    kernel.cell("exec >/dev/null 2>&1; echo hidden")
    check(kernel.cell("echo seen").stdout, "seen\n")
    kernel.cell("exec 0<&- 1>&- 2>&-")
    check(kernel.cell("echo seen").stdout, "seen\n")


def test_descriptors(world):
    """programs get 0, 1 and 2 and nothing else; cells that close 3 to 20 go on"""
    with world.new() as kernel:
        check(kernel.cell("ls -l /proc/self/fd; ( ls -l /proc/self/fd )").stdout.count("pipe:"), 4)
        kernel.cell("for ((i = 3; i <= 20; i++)); do eval \"exec $i>&-\"; done")
        check(kernel.cell("echo on").stdout, "on\n")


def test_traced(world):
    """set -x shows the cell's commands and not the kernel's"""
    with world.new() as kernel:
        kernel.cell("set -x")
        answer = kernel.cell("echo a; set +x")
        check([line.lstrip("+ ") for line in answer.stderr.splitlines()], ["echo a", "set +x"])


# --- interrupts -----------------------------------------------------------------------------------------


def test_interrupt(world):
    """SIGINT ends programs, pipes, functions and loops that run no program"""
    kernel = world.kernel
    kernel.cell("kept=5")
    is_interrupted(kernel, "echo go; sleep 60; echo NO", "echo go; while :; do :; done; echo NO",
                   "f() { local l=1; echo go; sleep 60 | cat; }; f; echo NO",
                   "echo go; read -t 60 </dev/tcp/127.0.0.1/1 || wait; sleep 60",
                   "echo go; set -e; (sleep 60); echo NO", "set +e; echo go; x=$(sleep 60); echo NO",
                   "echo go; sleep 60 & wait; echo NO")
    check(kernel.cell("echo $kept $l").stdout, "5\n")
    check(kernel.cell("kill %1 2>/dev/null; wait; true").error, None)


def test_interrupt_between(world):
    """SIGINT between cells means nothing"""
    for _ in range(20):
        world.kernel.interrupt()
        check(world.kernel.cell("echo on").stdout, "on\n")


def test_interrupt_storm(world):
    """SIGINT at any moment: the end of a cell is never lost, nor the next cell"""
    with world.new() as kernel:
        def ask():
            check(kernel.cell("echo $((40 + 2))").stdout.split()[-1:], ["42"])
        interrupt_storm(kernel, "for i in 1 2 3 4 5; do echo $i; /bin/true; done", ask, rounds=150, step=0.00023)


def test_traps(world):
    """a cell's traps stay and are its own"""
    with world.new() as kernel:
        kernel.cell("trap 'echo caught' INT; trap 'echo failed' ERR; trap 'echo told' USR1")
        answer = interrupted(kernel, "echo go; sleep 60; echo on", pause=1)
        check((answer.stdout, answer.error), ("go\ncaught\nfailed\non\n", None))
        os.kill(kernel.ready, signal.SIGUSR1)
        time.sleep(0.05)
        check(kernel.cell("false").stdout.replace("told\n", ""), "failed\n")
        check(kernel.cell("trap -p INT ERR").stdout, "trap -- 'echo caught' SIGINT\ntrap -- 'echo failed' ERR\n")
        kernel.cell("trap - INT ERR")
        is_interrupted(kernel, "echo go; sleep 60")


def test_trap_that_exits(world):
    """exit in a handler of interrupts ends the cell"""
    with world.new() as kernel:
        kernel.cell("trap 'echo bye; exit 9' INT")
        for code in ("echo go; while :; do sleep 60; done", "echo go; while :; do :; done"):
            answer = interrupted(kernel, code)
            check((answer.stdout, answer.error), ("go\nbye\n", status(9)))
        check(kernel.cell("jobs; trap -p INT").stdout, "trap -- 'echo bye; exit 9' SIGINT\n")


# --- cells that mean harm -------------------------------------------------------------------------------


def test_background(world):
    """jobs go on in the background, and hold nothing up"""
    with world.new() as kernel:
        begin = time.monotonic()
        check(kernel.cell("sleep 60 & (sleep 60; echo NO) & true").parts, [("count", 1)])
        check(kernel.cell("jobs -r | wc -l").stdout, "2\n")
        assert time.monotonic() - begin < 30
        check(kernel.cell("kill %1 %2; wait; jobs").error, None)
        check(kernel.cell("{ sleep 0.1; echo later; } & wait").stdout, "later\n")


def test_end(world):
    """cells that end the shell; it does not spin"""
    for code in ("kill -9 $$", "exec true", "builtin exit 3", "exec 240<&- 241>&- 244>&-"):
        with world.new() as kernel:
            try:
                kernel.cell(code)
            except harness.Died:
                continue
            raise AssertionError(f"alive after {code}")


def test_end_of_file(world):
    """end of file is the end, with jobs and traps"""
    for code in ("true", "sleep 60 & shopt -s checkjobs", "trap 'echo bye' EXIT", "exit() { :; }; printf() { :; }"):
        kernel = world.new()
        kernel.cell(code)
        ends_quickly(kernel)
        if "sleep" in code:
            os.killpg(kernel.process.pid, signal.SIGKILL)


def test_replaced(world):
    """functions and aliases named like builtins do not trouble the kernel"""
    with world.new() as kernel:
        kernel.cell("read() { echo NO; }; printf() { echo NO; }; trap() { echo NO; }; cd() { echo NO; }; source() { echo NO; }\n"
                    "alias eval='echo NO' builtin='echo NO' true='echo NO'")
        check(kernel.cell("x=1; echo $x").stdout, "1\n")
        check(kernel.cell("(exit 3)").error, status(3))
        check(kernel.cell("__gb_next() { echo NO; }").error, status(1))


def test_recursion(world):
    """recursion without end ends the shell, or the cell where Bash has a limit"""
    with world.new() as kernel:
        check(kernel.cell("FUNCNEST=50; f() { f; }; f; echo NO").error["name"], "ExitStatus")
        check(kernel.cell("echo on").stdout, "on\n")
