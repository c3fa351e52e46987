# SPDX-License-Identifier: Apache-2.0
"""The JavaScript kernel: cells, state, output, results and errors."""
import os
import shlex
import shutil
import tempfile

import harness
import javascript_cells
import suite
import tap

NODE = os.environ.get("KERNEL_NODE", "node")
PNG = "iVBORw0KGgo="


def language_command(language):
    """The command of the language file, with the kernel of this source."""
    if shutil.which(NODE) is None:
        raise tap.Skip(f"no {NODE}")
    text = (suite.KERNELS.parent / "languages" / f"{language}.lang").read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("kernel = "))
    line = line.replace("{heap_mb}", "256").replace("/opt/glovebox/kernels", str(suite.KERNELS))
    return [NODE] + shlex.split(line)[3:]


def command():
    return language_command("javascript")


def check(got, want):
    assert got == want, f"got {got!r}, expected {want!r}"


def fails(answer, name, value):
    assert answer.error is not None, f"no error: {answer!r}"
    check(answer.error["name"], name)
    assert value in answer.error["value"], f"{value!r} is not in {answer.error!r}"


# --- cells and state ------------------------------------------------------------------------------------


def test_ready(world):
    """it says its pid, and numbers cells from 1"""
    with world.new() as kernel:
        check(kernel.ready, kernel.process.pid)
        check(kernel.cell("let x = 41").parts, [("count", 1)])
        check(kernel.cell("x + 1").parts, [("count", 2), ("result", {"text": "42", "is_main_result": True})])
        check(kernel.cell("").parts, [])
        check(kernel.cell("x").count, 3)


def test_tricky_cells(world):
    """cells that are easy to read wrongly"""
    with world.new(cwd="/tmp") as kernel:
        for code, want in javascript_cells.CELLS:
            answer = kernel.cell(code)
            if isinstance(want, javascript_cells.Out):
                check((code, answer.error, answer.stdout), (code, None, want.text))
            elif isinstance(want, javascript_cells.Err):
                fails(answer, *want)
            else:
                check((code, answer.error, answer.text), (code, None, want))
            check((code, answer.stderr), (code, ""))


def test_state(world):
    """functions of an earlier cell see what a later one declares anew"""
    kernel = world.kernel
    kernel.cell("let total = 1; function add(n) { total += n; return total }")
    check(kernel.cell("add(1)").text, "2")
    check(kernel.cell("let total = 10; add(5)").text, "15")
    check(kernel.cell("total").text, "15")
    kernel.cell("const data = [1, 2, 3]; const size = () => data.length")
    check(kernel.cell("const data = [1]; size()").text, "1")


def test_base_env_cwd(world):
    """the sandbox's variables and directory count once, a cell's own only for it"""
    with world.new() as kernel, tempfile.TemporaryDirectory() as place:
        check(kernel.cell(None, base={"A": "1=2"}, cwd=place).parts, [])
        check(kernel.cell("[process.env.A, process.cwd()]", base={"A": "3"}, cwd="/").main["json"], ["1=2", place])
        check(kernel.cell("process.env.A + process.env.B", env={"A": "x", "B": "y"}).text, "xy")
        check(kernel.cell("[process.env.A, typeof process.env.B]").main["json"], ["1=2", "undefined"])
        check(kernel.cell("__dirname").text, place)


def test_cwd_missing(world):
    """a directory that is not there is an error"""
    with world.new() as kernel:
        fails(kernel.cell("1", cwd="/nowhere"), "Error", "ENOENT")
        check(kernel.cell("2").text, "2")


def test_own_modules(world):
    """import and require find the files and packages of the current directory"""
    with world.new() as kernel, tempfile.TemporaryDirectory() as place:
        os.makedirs(f"{place}/node_modules/pack")
        for name, text in (("m.mjs", "export const m = 1; export default 2"), ("c.cjs", "exports.c = 3"),
                           ("node_modules/pack/package.json", '{"name":"pack","main":"i.js"}'),
                           ("node_modules/pack/i.js", "exports.p = 4")):
            with open(f"{place}/{name}", "w", encoding="utf-8") as file:
                file.write(text)
        kernel.cell(None, cwd=place)
        code = "import two, { m } from './m.mjs'; import c from './c.cjs'; import { p } from 'pack'; [m, two, c.c, p]"
        check(kernel.cell(code).main["json"], [1, 2, 3, 4])
        check(kernel.cell("[require('./c.cjs').c, require('pack').p]").main["json"], [3, 4])
        check(kernel.cell("(await import('./m.mjs')).m").text, "1")


def test_code_in_pieces(world):
    """code may come in pieces that part a character; what is not UTF-8 is an error"""
    check(world.kernel.cell("'é😀ñ'.length", piece=1).text, "4")
    fails(world.kernel.cell(b"'\xff'"), "SyntaxError", "not UTF-8")


def test_queue(world):
    """cells that come together run one after the other"""
    with world.new() as kernel:
        first = harness.message("code", b"await new Promise((done) => setTimeout(done, 100)); console.log(1)")
        os.write(kernel.requests, first + harness.message("run"))
        assert kernel.cell("console.log(2)").stdout.startswith("1\n"), kernel.answer
        answer = kernel.end()
        check((answer.stdout, [kind for kind in answer.kinds if kind == "count"]), ("1\n2\n", ["count"] * 2))


# --- output ---------------------------------------------------------------------------------------------


def test_output_order(world):
    """what is printed before a result stands before it"""
    code = """console.log('a'); display(1); console.error('b'); process.stdout.write('c'); display(2)
console.log('d'); 3"""
    printed, seen = b"", {}
    for kind, value in world.kernel.cell(code).parts:
        if kind == "result":
            seen[value["text"]] = printed
        elif kind != "count":
            printed += value
    for result, before in (("1", b"a"), ("2", b"abc"), ("3", b"abcd")):
        assert set(before) <= set(seen[result]), seen


def test_children(world):
    """children write between prints, and get neither 3 nor 4"""
    code = """console.log(1); const { execFileSync, spawnSync } = require('child_process')
execFileSync('sh', ['-c', 'echo 2'], { stdio: 'inherit' }); console.log(3)
spawnSync('sh', ['-c', 'ls /proc/self/fd'], { encoding: 'utf8' }).stdout.trim().split('\\n').map(Number)"""
    answer = world.kernel.cell(code)
    check(answer.stdout, "1\n2\n3\n")
    check([fd for fd in answer.main["json"] if fd > 2], [3])  # ls's own: the directory
    code = "spawnSync('sh', ['-c', 'readlink /proc/self/fd/4 || echo none'], { encoding: 'utf8' }).stdout.trim()"
    check(world.kernel.cell(code).text, "none")


def test_much_output(world):
    """ten megabytes in one write, and in a hundred thousand"""
    answer = world.kernel.cell("process.stdout.write('x'.repeat(1e7)); process.stdout.write('\\n')")
    check(len(answer.stdout), 10**7 + 1)
    answer = world.kernel.cell("for (let i = 0; i < 1e5; i++) console.log(i)")
    check(answer.stdout.split(), [str(i) for i in range(10**5)])


def test_ended_output(world):
    """a cell cannot end the output of the next"""
    world.kernel.cell("process.stdout.end('last'); process.stderr.destroy()")
    answer = world.kernel.cell("console.log('on'); console.error('and on')")
    check((answer.stdout, answer.stderr), ("on\n", "and on\n"))


def test_many_displays(world):
    """twenty thousand displays"""
    check(len(world.kernel.cell("for (let i = 0; i < 20000; i++) display(i)").results), 20000)


# --- results --------------------------------------------------------------------------------------------


def test_values(world):
    """values as Node shows them, plain ones as JSON too"""
    kernel = world.kernel
    check(kernel.cell("'text'").main, {"text": "text", "is_main_result": True})
    check(kernel.cell("({ a: [1, null, 'ü'] })").main["json"], {"a": [1, None, "ü"]})
    check(kernel.cell("[1, [2]]").main, {"text": "[ 1, [ 2 ] ]", "json": [1, [2]], "is_main_result": True})
    for code, text in (("new Map([[1, 2]])", "Map(1) { 1 => 2 }"), ("new Date(0)", "1970-01-01T00:00:00.000Z"),
                       ("Symbol('s')", "Symbol(s)"), ("-0", "-0"), ("5n", "5n"), ("/r/g", "/r/g"), ("NaN", "NaN")):
        check(kernel.cell(code).main, {"text": text, "is_main_result": True})
    for code in ("const loop = {}; loop.loop = loop; loop", "[1n]", "({ toJSON() { throw 1 } })", "new Proxy({}, {})"):
        answer = kernel.cell(code)
        assert answer.error is None and "json" not in answer.main and answer.text, repr(answer)


def test_mime(world):
    """values that say how they are shown"""
    kernel = world.kernel
    for code, want in (
            ("({ toHtml: () => '<b>' })", {"html": "<b>"}), ("({ toSvg: async () => '<svg/>' })", {"svg": "<svg/>"}),
            (f"({{ toPng: () => Buffer.from('{PNG}', 'base64') }})", {"png": PNG}),
            ("({ [Symbol.for('Jupyter.display')]: () => ({ 'text/plain': 'T', 'text/markdown': '#', 'x/y': [1] }) })",
             {"text": "T", "markdown": "#", "extra": {"x/y": [1]}}),
            ("({ toMime: async () => ({ 'application/json': { j: 1 }, 'text/latex': '$x$' }) })",
             {"json": {"j": 1}, "latex": "$x$"}),
            ("({ toMime: () => ({ 'text/plain': 'c', 'e2b/chart': { type: 'line' }, 'e2b/data': { a: [1] } }) })",
             {"text": "c", "chart": {"type": "line"}, "data": {"a": [1]}})):
        main = kernel.cell(code).main
        check({field: main.get(field) for field in want}, want)
        assert main["text"], main


def test_display(world):
    """display() and its kinds"""
    code = f"""display.html('<i>'); display.png('data:image/png;base64,{PNG}')
display({{ 'text/markdown': 'm' }}, {{ raw: true }}); display.json([1]); display.javascript('1')
await display({{ toHtml: async () => 'late' }}); undefined"""
    results = world.kernel.cell(code).results
    check([result["is_main_result"] for result in results], [False] * 6)
    check([sorted(set(result) - {"is_main_result", "text"}) for result in results],
          [["html"], ["png"], ["markdown"], ["json"], ["javascript"], ["html"]])


def test_broken_display(world):
    """values that fail to show themselves do not fail the cell"""
    kernel = world.kernel
    answer = kernel.cell("({ toHtml() { throw new Error('broken') } })")
    assert answer.error is None and answer.text and "broken" in answer.stderr, repr(answer)
    answer = kernel.cell("({ toHtml: async () => { throw new Error('broken') } })")
    assert answer.error is None and answer.text and "broken" in answer.stderr, repr(answer)
    answer = kernel.cell("({ [require('util').inspect.custom]() { throw new Error('no') } })")
    check((answer.error, answer.text), (None, "[the value cannot be shown: no]"))
    check(kernel.cell("({ toMime: () => ({ 'text/plain': 'kept', 'x/y': 1n }) })").text, "kept")


def test_large_result(world):
    """a result that is too long is replaced by a note"""
    answer = world.kernel.cell("'x'.repeat(30 * 1024 * 1024)")
    assert answer.error is None and "is not shown" in answer.text, answer.text[:100]


# --- errors ---------------------------------------------------------------------------------------------


def test_errors(world):
    """errors by name, message and the cell's own lines"""
    with world.new() as kernel:
        answer = kernel.cell("function f() {\n  throw new TypeError('in f')\n}\n\nf()")
        check(answer.error, {"name": "TypeError", "value": "in f",
                             "traceback": "TypeError: in f\n    at f (cell-1.js:2:9)\n    at cell-1.js:5:1"})
        answer = kernel.cell("const a = 1\nlet b = await 2; missing")
        check(answer.error["traceback"], "ReferenceError: missing is not defined\n    at cell-2.js:2:18")
        answer = kernel.cell("throw new Error('outer', { cause: new RangeError('inner') })")
        assert "[cause]: RangeError: inner" in answer.error["traceback"], answer
        answer = kernel.cell("let ok = 1\nlet x = = 2")
        check(answer.error["traceback"], "cell-4.js:2\nlet x = = 2\n        ^\n\nSyntaxError: Unexpected token '='")
        check(kernel.cell("try { f() } catch (e) { console.log(e.stack) }").stdout,
              "TypeError: in f\n    at f (cell-1.js:2:9)\n    at cell-5.js:1:7\n")


def test_odd_errors(world):
    """whatever is thrown"""
    for code, name, value in (
            ("throw 5", "Error", "5"), ("throw null", "Error", "null"), ("throw undefined", "Error", "undefined"),
            ("throw { a: 1 }", "Error", "{ a: 1 }"), ("throw -0", "Error", "-0"), ("throw 10n", "Error", "10n"),
            ("class Own extends Error { name = 'Own' }; throw new Own('m')", "Own", "m"),
            ("let e = new Error('m'); Object.defineProperty(e, 'name', { get() { throw 1 } }); throw e", "Error", "m"),
            ("throw new Proxy({}, { get() { throw new Error('trap') } })", "Error", ""),
            ("(function f() { f() })()", "RangeError", "call stack"), ("throw Symbol('s')", "Error", "Symbol(s)")):
        fails(world.kernel.cell(code), name, value)
    check(world.kernel.cell("'alive'").text, "alive")


def test_background_errors(world):
    """errors that no cell waits for are printed and kill nothing"""
    answer = world.kernel.cell("Promise.reject(new Error('nobody')); 1")
    check(answer.text, "1")
    assert "Uncaught (in promise) Error: nobody\n    at cell-" in answer.stderr, answer
    code = "setTimeout(() => { throw new Error('timer') }, 1); await new Promise((done) => setTimeout(done, 30)); 2"
    answer = world.kernel.cell(code)
    check(answer.text, "2")
    assert "Uncaught Error: timer" in answer.stderr, answer


def test_exit(world):
    """process.exit() ends the cell and nothing catches it; the context lives"""
    kernel = world.kernel
    kernel.cell("let kept = 'kept'")
    for before in ("", "await 1; ", "await new Promise((done) => setTimeout(done, 5)); "):
        code = "try { process.exit(3) } catch { console.log(1) } finally { console.log(2) }; console.log(3)"
        answer = kernel.cell(before + code)
        check((answer.stdout, answer.error["name"], answer.error["value"]), ("", "ProcessExit", "3"))
        answer = kernel.cell(before + "console.log('yes'); process.exit(); console.log('no')")
        check((answer.stdout, answer.error), ("yes\n", None))
    answer = kernel.cell("setTimeout(() => process.exit(4), 5); await new Promise(() => {})")
    check(answer.error["value"], "4")
    check(kernel.cell("kept").text, "kept")
