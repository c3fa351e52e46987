# SPDX-License-Identifier: Apache-2.0
"""The R kernel: state, printing as at R's prompt, plots, tables, conditions, interrupts."""
import base64
import os
import shutil
import struct
import tempfile

import harness
import suite
import tap
from everywhere import built, check, ends_quickly, interrupt_storm, is_interrupted, streams

KERNEL = suite.KERNELS / "r"


def command():
    if not shutil.which("Rscript"):
        raise tap.Skip("no R here")
    channel = built("r/channel.so", "cc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-nostdlib", "-o", "@OUTPUT@",
                    str(KERNEL / "channel.c"))
    return ["Rscript", "--vanilla", str(KERNEL / "kernel.R"), channel]


def result(text, **more):
    return {"text": text, "is_main_result": True, **more}


# --- cells and state ------------------------------------------------------------------------------------


def test_ready(world):
    """it says its pid, and numbers cells from 1"""
    with world.new() as kernel:
        check((kernel.ready, kernel.greeting.parts), (kernel.process.pid, []))
        check(kernel.cell("x <- 41").parts, [("count", 1)])
        check(kernel.cell("x + 1").parts, [("count", 2), ("result", result("[1] 42"))])
        check(kernel.cell().parts, [])
        check(kernel.cell("# nothing").parts, [("count", 3)])
        check(kernel.cell("ls(all.names = TRUE)").text, '[1] "x"')


def test_visible(world):
    """what is visible is printed, and the last value is the result"""
    answer = world.kernel.cell("1\ninvisible(2)\ny <- 3\n4")
    check(answer.parts[1:], [("stdout", b"[1] 1\n"), ("result", result("[1] 4"))])
    check(world.kernel.cell("invisible(5)").parts[1:], [])
    check(world.kernel.cell("for (i in 1:2) print(i)").parts[1:], [("stdout", b"[1] 1\n[1] 2\n")])
    world.kernel.cell("8")
    check(world.kernel.cell(".Last.value").text, "[1] 8")


def test_methods(world):
    """print and show are those of the cells"""
    kernel = world.kernel
    check(kernel.cell("print.mine <- function(x, ...) cat('<mine>\\n')\nstructure(1, class = 'mine')").text, "<mine>")
    check(kernel.cell("setClass('P', representation(a = 'numeric'))\n"
                      "setMethod('show', 'P', function(object) cat('P of', object@a, '\\n'))\nnew('P', a = 2)").text,
          "P of 2 ")


def test_masked(world):
    """functions of cells do not trouble the kernel"""
    with world.new() as kernel:
        kernel.cell("paste0 <- say <- charToRaw <- c <- length <- function(...) stop('mine'); T <- FALSE; F <- TRUE")
        check(kernel.cell("x <- 5; x").text, "[1] 5")
        check(kernel.cell("length(1)").error["value"], "mine")


def test_unicode(world):
    """code in pieces that cut characters"""
    answer = world.kernel.cell("s <- 'äöü€😀'; cat(s, nchar(s), '\\n'); s", piece=1)
    check((answer.stdout, answer.text), ("äöü€😀 5 \n", '[1] "äöü€😀"'))
    check(world.kernel.cell("stop('bad €😀')").error["value"], "bad €😀")
    check(world.kernel.cell("'a\\\\b\"c\\td'").text, '[1] "a\\\\b\\"c\\td"')


def test_other_locale(world):
    """the same without a locale"""
    with world.new(env={"PATH": os.environ["PATH"], "LC_ALL": "C"}) as kernel:
        check(kernel.cell("cat('é😀')").stdout, "é😀")


def test_odd_bytes(world):
    """bytes that are not text, in code and in values"""
    kernel = world.kernel
    check(kernel.cell(b"x <- 1\0").error["name"], "NulByte")
    check(kernel.cell(b"x <- '\xff'").error["name"], "SyntaxError")
    check(kernel.cell("x <- '\\xffa'; cat(x)").parts[1:], [("stdout", b"\xffa")])
    check(kernel.cell("stop(x)").error["value"], "<ff>a")


def test_large(world):
    """a megabyte of code, and a result of a megabyte"""
    check(world.kernel.cell("nchar('" + "x" * 1_000_000 + "')").text, "[1] 1000000")
    check(len(world.kernel.cell("cat_me <- strrep('é', 500000); noquote(cat_me)").text), 500_004)


def test_large_values(world):
    """values and errors that are too large"""
    kernel = world.kernel
    check(kernel.cell("noquote(strrep('x', 3e7))").text, "the result is too large to be shown")
    answer = kernel.cell("stop(structure(class = c('big', 'error', 'condition'), list(message = strrep('x', 2e6), call = NULL)))")
    check((answer.error["name"], len(answer.error["value"])), ("big", 1_000_000))


# --- tables ---------------------------------------------------------------------------------------------


def test_frame(world):
    """a data frame: text, a table in HTML and Markdown, and its data"""
    code = ("data.frame(n = c(1L, NA), x = c(0.1, Inf), s = c('<&|', NA), f = factor(c('u', 'v')), l = c(TRUE, NA),\n"
            "  d = as.Date('2020-02-28') + 0:1, t = as.POSIXct(0, origin = '1970-01-01', tz = 'UTC') + 0:1, stringsAsFactors = FALSE)")
    shown = world.kernel.cell(code).main
    check(shown["data"], {"n": [1, None], "x": [0.1, None], "s": ["<&|", None], "f": ["u", "v"], "l": [True, None],
                          "d": ["2020-02-28", "2020-02-29"],
                          "t": ["1970-01-01T00:00:00.000+0000", "1970-01-01T00:00:01.000+0000"]})
    assert "<th>n</th><th>x</th>" in shown["html"] and "<td>&lt;&amp;|</td>" in shown["html"], shown["html"]
    check(shown["markdown"].splitlines()[:2],
          ["|  | n | x | s | f | l | d | t |", "| --- | --- | --- | --- | --- | --- | --- | --- |"])
    assert "<&\\|" in shown["markdown"]
    assert shown["text"].startswith("   n   x    s f    l          d")


def test_cut_tables(world):
    """large tables are cut, very large ones have no data, odd ones are at least text"""
    kernel = world.kernel
    shown = kernel.cell("as.data.frame(matrix(1:3000, 100))").main
    check((shown["html"].count("<tr>"), len(shown["data"]["V30"]), "…" in shown["markdown"]), (62, 100, True))
    check("data" in kernel.cell("data.frame(x = 1:100001)").main, False)
    check(sorted(kernel.cell("matrix(1:4, 2, dimnames = list(c('a', 'b'), NULL))").main),
          ["html", "is_main_result", "markdown", "text"])
    for code in ("data.frame()", "data.frame(a = integer())", "d <- data.frame(a = 1); d$m <- matrix(1:2, 1); d",
                 "matrix(list(1, 'b'), 1)",
                 "structure(list(), class = 'data.frame')",
                 "data.frame(a = 1:2, check.names = FALSE, `b c` = I(list(1, 'x')))"):
        answer = kernel.cell(code)
        check((code, answer.error, bool(answer.text)), (code, None, True))


# --- plots ----------------------------------------------------------------------------------------------


def size_of(png):
    data = base64.b64decode(png, validate=True)
    check(data[:8], b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", data[16:24])


def test_plots(world):
    """each page is a picture, before the result, and what is added to a page is on it"""
    kernel = world.kernel
    if kernel.cell("stopifnot(capabilities('png'))").error:
        raise tap.Skip("this R draws no pictures")
    plain = kernel.cell("plot(1:3)").results
    check([sorted(one) for one in plain], [["is_main_result", "png"]])
    check((size_of(plain[0]["png"]), plain[0]["is_main_result"]), ((840, 840), False))
    answer = kernel.cell("plot(1:3)\nlines(3:1)\nhist(c(1, 2, 2), plot = TRUE)\ncat('drawn\\n')\n7")
    check([kind for kind in answer.kinds if kind == "result"], ["result"] * 3)
    check((answer.text, "png" in answer.results[0], answer.results[0] != plain[0]), ("[1] 7", True, True))
    check(len(kernel.cell("for (i in 1:5) plot(i)").results), 5)
    check(kernel.cell("1").results, [result("[1] 1")])
    check(len(kernel.cell("library(grid); grid.newpage(); grid.rect(); stop('after')").results), 1)


def test_plot_options(world):
    """the size of a plot, and devices that cells open themselves"""
    with world.new() as kernel, tempfile.TemporaryDirectory() as there:
        if kernel.cell("stopifnot(capabilities('png'))").error:
            raise tap.Skip("this R draws no pictures")
        kernel.cell("options(repr.plot.width = 4, repr.plot.height = 3, repr.plot.res = 100)")
        check(size_of(kernel.cell("plot(1)").results[0]["png"]), (400, 300))
        check(kernel.cell(f"pdf('{there}/x.pdf'); plot(1); invisible(dev.off())").results, [])
        assert os.path.getsize(f"{there}/x.pdf") > 500
        check(len(kernel.cell("plot(1); graphics.off(); plot(2)").results), 2)


# --- variables and directory ----------------------------------------------------------------------------


def test_variables(world):
    """variables of the sandbox stay, those of a cell go"""
    read = "cat(Sys.getenv(c('A', 'B', 'C'), unset = 'none'), sep = ',')"
    with world.new() as kernel:
        check(kernel.cell(base={"A": "1", "B": "2"}).parts, [])
        check(kernel.cell(read, base={"A": "other"}, env={"B": "x=y", "C": "é"}).stdout, "1,x=y,é")
        check(kernel.cell(read).stdout, "1,2,none")
        kernel.cell("Sys.setenv(B = 'set'); stop('x')", env={"B": "cell"})
        check(kernel.cell(read).stdout, "1,2,none")


def test_directory(world):
    """the directory of the first cell, once; one that is not there is an error"""
    with world.new() as kernel:
        answer = kernel.cell("1", cwd="/not/there")
        check((answer.count, answer.error["name"], answer.results), (1, "ChangeDirectory", []))
        check(kernel.cell("cat(getwd())", cwd="/usr").stdout, "/usr")
        check(kernel.cell("cat(getwd())", cwd="/etc").stdout, "/usr")


# --- conditions -----------------------------------------------------------------------------------------


def test_errors(world):
    """name, value and the calls"""
    kernel = world.kernel
    answer = kernel.cell("f <- function(a) g(a)\ng <- function(b) stop('in g: ', b)\nf(3)")
    check(answer.error, {"name": "simpleError", "value": "in g: 3",
                         "traceback": 'Error in g(a): in g: 3\nTraceback:\n1. f(3)\n2. g(a)\n3. stop("in g: ", b)'})
    check(answer.stdout + answer.stderr, "")
    check(kernel.cell("stop('bad')").error["traceback"], 'Error: bad\nTraceback:\n1. stop("bad")')
    check(kernel.cell("undefined_thing").error["value"], "object 'undefined_thing' not found")
    check(kernel.cell("stop(structure(class = c('mine', 'error', 'condition'), list(message = 'hey', call = NULL)))").error["name"], "mine")
    check(kernel.cell("tryCatch(stop('a'), error = function(e) 'caught')").text, '[1] "caught"')


def test_syntax(world):
    """errors of syntax"""
    answer = world.kernel.cell("cat('NO')\n1 + )")
    check((answer.error["name"], answer.stdout), ("SyntaxError", ""))
    assert answer.error["value"].startswith("2:5: unexpected ')'"), answer.error
    check(world.kernel.cell("f(").error["name"], "SyntaxError")


def test_warnings(world):
    """warnings come at the end, at once, not at all, or are errors, as the option says"""
    with world.new() as kernel:
        answer = kernel.cell("f <- function() warning('two')\nwarning('one'); f(); cat('on\\n')")
        check((answer.stdout, answer.stderr), ("on\n", "Warning messages:\n1: one\n2: In f() : two\n"))
        check(kernel.cell("x <- as.integer('a')").stderr, "Warning message:\nNAs introduced by coercion\n")
        check(kernel.cell("options(warn = 1); f(); message('then')").stderr, "Warning: In f() : two\nthen\n")
        check(kernel.cell("options(warn = -1); f()").stderr, "")
        check(kernel.cell("options(warn = 2); f()").error["value"], "(converted from warning) two")
        kernel.cell("options(warn = 0)")
        check(len(kernel.cell("for (i in 1:200) warning(i)").stderr.splitlines()), 51)


def test_quit(world):
    """quit() ends the cell and not the context"""
    kernel = world.kernel
    check(kernel.cell("kept <- 5; quit(); cat('NO')").parts[1:], [])
    answer = kernel.cell("f <- function() q('no', status = 3); f(); cat('NO')")
    check((answer.error["name"], answer.error["value"], answer.stdout), ("ExitStatus", "3", ""))
    check(kernel.cell("kept").text, "[1] 5")


def test_recursion(world):
    """recursion without end"""
    assert "Error" in world.kernel.cell("f <- function() f(); f()").error["name"]
    check(world.kernel.cell("1").text, "[1] 1")


def test_input(world):
    """there is nothing to read"""
    check(world.kernel.cell("readLines(file('stdin'))").text, "character(0)")


# --- output ---------------------------------------------------------------------------------------------


def test_streams(world):
    """output comes while the cell runs"""
    streams(world.kernel, "cat('first'); Sys.sleep(60)", "message('first'); Sys.sleep(60)",
            "system('echo first; sleep 60')")


def test_order(world):
    """prints and programs come in the order in which they were made"""
    check(world.kernel.cell("cat('a\\n'); system('echo b'); print('c'); cat('d')").stdout, 'a\nb\n[1] "c"\nd')


def test_much_output(world):
    """ten megabytes of output, whole"""
    check(len(world.kernel.cell("for (i in 1:1000) cat(strrep('y', 9999), '\\n', sep = '')").stdout), 10_000_000)


def test_sink(world):
    """a diversion of output that a cell leaves behind goes on, and does not trouble results"""
    with world.new() as kernel, tempfile.TemporaryDirectory() as there:
        kernel.cell(f"sink('{there}/out')")
        check(kernel.cell("cat('hidden\\n'); 5").parts[1:], [("result", result("[1] 5"))])
        kernel.cell("sink()")
        with open(f"{there}/out", encoding="ascii") as file:
            check(file.read(), "hidden\n")


def test_descriptors(world):
    """programs do not get the channel, and a cell that closes all connections goes on"""
    kernel = world.kernel
    check(kernel.cell("system('ls -l /proc/self/fd')").stdout.count("pipe:"), 2)
    check(kernel.cell("closeAllConnections(); 1").text, "[1] 1")


# --- interrupts -----------------------------------------------------------------------------------------


def test_interrupt(world):
    """SIGINT ends loops, sleep, and functions that catch errors"""
    kernel = world.kernel
    kernel.cell("kept <- 5")
    is_interrupted(kernel, "cat('go\\n'); repeat {}", "cat('go\\n'); Sys.sleep(60)",
                   "cat('go\\n'); while (TRUE) tryCatch(Sys.sleep(1), error = function(e) 1)",
                   "print.slow <- function(x, ...) { cat('go\\n', file = stderr()); Sys.sleep(60) }\nstructure(1, class = 'slow')")
    check(kernel.cell("kept").text, "[1] 5")


def test_interrupt_between(world):
    """SIGINT between cells means nothing"""
    for _ in range(20):
        world.kernel.interrupt()
        check(world.kernel.cell("1").text, "[1] 1")


def test_interrupt_storm(world):
    """SIGINT at any moment: the end of a cell is never lost, nor the next cell"""
    with world.new() as kernel:
        def ask():
            check(kernel.cell("40 + 2", 20).text, "[1] 42")
        interrupt_storm(kernel,
                        "for (i in 1:20) { cat(i, '\\n'); x <- try(log(-1), silent = TRUE) }\ndata.frame(a = 1:3)", ask)


# --- cells that mean harm -------------------------------------------------------------------------------


def test_fork(world):
    """a child of a cell neither answers nor goes on as a kernel"""
    kernel = world.kernel
    check(kernel.cell("unlist(parallel::mclapply(1:3, function(i) i * 2))").text, "[1] 2 4 6")
    answer = kernel.cell("p <- parallel:::mcfork()\nif (inherits(p, 'masterProcess')) cat('child\\n') else Sys.sleep(3)\n'both'")
    check((answer.stdout, len(answer.results), answer.text), ("child\n", 1, '[1] "both"'))
    check(kernel.cell("1").text, "[1] 1")


def test_end(world):
    """cells that end the process; it does not spin"""
    for code in ("base::quit('no', 3)", "tools::pskill(Sys.getpid(), 9)"):
        with world.new() as kernel:
            try:
                kernel.cell(code)
            except harness.Died:
                continue
            raise AssertionError(f"alive after {code}")


def test_end_of_file(world):
    """end of file is the end, with a program in the background"""
    kernel = world.new()
    kernel.cell("system('sleep 60', wait = FALSE)")
    ends_quickly(kernel)
