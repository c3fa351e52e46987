# SPDX-License-Identifier: Apache-2.0
"""How cells of the JavaScript kernel end: interrupts, what they leave behind, and cells that mean harm."""
import tempfile
import time

import everywhere
import harness
from cases_javascript import check, command, fails  # noqa: F401  pylint: disable=unused-import

# --- interrupts -----------------------------------------------------------------------------------------

ENDLESS = (
    "while (true);",
    "console.log('x'); for (;;) ;",
    "await new Promise(() => {})",
    "new Promise(() => {})",
    "await null; while (true);",
    "await new Promise((done) => setTimeout(done, 5)); for (;;) ;",
    "for (;;) await 1",
    "setTimeout(() => { while (true); }, 5); await new Promise(() => {})",
    "setImmediate(() => { while (true); }); await new Promise(() => {})",
    "process.nextTick(() => { while (true); }); await new Promise(() => {})",
    "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)",
    "process.on('SIGINT', () => console.log('mine')); while (true);",
    "process.on('SIGINT', () => console.log('mine')); await new Promise(() => {})",
    "process.removeAllListeners('SIGINT'); while (true);",
    "/^(a+)+$/.test('a'.repeat(40) + 'b')",
    "try { for (;;) ; } catch { console.log('caught') } finally { for (;;) ; }",
    "for await (const x of (async function* () { for (;;) yield 1 })()) ;",
)


def test_interrupt(world):
    """cells without end are interrupted, whatever they wait for, and the state is kept"""
    with world.new() as kernel:
        kernel.cell("let kept = 'kept'")
        for code in ENDLESS:
            kernel.begin(code)
            kernel.wait_begun()
            time.sleep(0.2)
            kernel.interrupt()
            answer = kernel.end()
            check((code, answer.error and answer.error["name"]), (code, "KeyboardInterrupt"))
            check((code, kernel.cell("kept").text), (code, "kept"))


def test_interrupt_at_once(world):
    """the first cell that awaits can be interrupted from its first moment"""
    for code in ("await null; while (true);", "await new Promise(() => {})", "while (true);"):
        with world.new() as kernel:
            kernel.begin(f"console.log('on'); {code}")
            kernel.wait_output("on")
            kernel.interrupt()
            check(kernel.end().error["name"], "KeyboardInterrupt")


def test_interrupt_storm(world):
    """an interrupt at any moment: no cell's end is lost, and it does not reach the next cell"""
    with world.new() as kernel:
        kernel.cell("let kept = 'kept'")

        def ask():
            check(kernel.cell("kept").parts[1:], [("result", {"text": "kept", "is_main_result": True})])

        busy = "while (Date.now() - start < 6);"
        for code in (f"let start = Date.now(); {busy}", f"let start = Date.now(); await 1; {busy}",
                     "await new Promise((done) => setTimeout(done, 5))"):
            everywhere.interrupt_storm(kernel, code, ask, rounds=50)


def test_interrupt_child(world):
    """a child that a cell waits for gets the signal too; which of both ends the cell is open"""
    world.kernel.begin("console.log('on'); require('child_process').execSync('sleep 60')")
    world.kernel.wait_output("on")
    time.sleep(0.1)
    world.kernel.interrupt()
    assert world.kernel.end().error["name"] in ("KeyboardInterrupt", "Error"), world.kernel.answer
    check(world.kernel.cell("1").text, "1")


def test_interrupted_loop_stops(world):
    """what an interrupted cell awaited does not go on"""
    with world.new() as kernel:
        loop = "for (;;) { await new Promise((done) => setTimeout(done, 20)); console.log('tick') }"
        for code in (loop, f"const endless = async () => {{ {loop} }}; endless()"):
            kernel.begin(code)
            kernel.wait_output("tick")
            kernel.interrupt()
            check(kernel.end().error["name"], "KeyboardInterrupt")
            check(kernel.cell("await new Promise((done) => setTimeout(done, 100)); 'quiet'").parts[1:],
                  [("result", {"text": "quiet", "is_main_result": True})])


def test_interrupt_between(world):
    """between cells an interrupt means nothing"""
    with world.new() as kernel:
        for code in ("1", "await 2", "3"):
            kernel.interrupt()
            time.sleep(0.1)
            check(kernel.cell(code).error, None)


# --- what cells leave behind, and cells that mean harm -----------------------------------------------------


def test_background(world):
    """timers and servers live on between cells"""
    kernel = world.kernel
    kernel.cell("let ticks = 0; const timer = setInterval(() => ticks++, 5)")
    kernel.cell("""import http from 'http'; const server = http.createServer((q, s) => s.end('served'))
await new Promise((done) => server.listen(0, '127.0.0.1', done))""")
    check(kernel.cell("await (await fetch(`http://127.0.0.1:${server.address().port}`)).text()").text, "served")
    kernel.cell("while (ticks <= 3) await new Promise((done) => setTimeout(done, 5))")
    check(kernel.cell("clearInterval(timer); server.close(); ticks > 3").text, "true")


def test_workers(world):
    """worker threads and forked children work"""
    code = """const { Worker } = require('worker_threads')
const worker = new Worker("require('worker_threads').parentPort.postMessage(6 * 7)", { eval: true })
await new Promise((done) => worker.once('message', done))"""
    check(world.kernel.cell(code).text, "42")
    with tempfile.NamedTemporaryFile("w", suffix=".cjs") as script:
        script.write("process.send(process.execArgv)")
        script.flush()
        code = f"""const child = require('child_process').fork('{script.name}')
await new Promise((done) => child.once('message', done))"""
        check(world.kernel.cell(code).main["json"], [])


def test_deaths(world):
    """a cell that ends the process ends it, and nothing answers for it"""
    for code in ("process.kill(process.pid, 'SIGKILL'); for (;;);", "process.abort()", "process.reallyExit(7)",
                 "require('fs').closeSync(4); 1", "let big = []; for (;;) big.push(Array(1e5).fill(Math.random()))"):
        with world.new() as kernel:
            try:
                answer = kernel.cell(code)
                raise AssertionError(f"{code}: {answer!r}")
            except harness.Died:
                pass


def test_end_of_file(world):
    """the end of requests is the end of the kernel, even while a cell runs"""
    kernel = world.new()
    kernel.begin("console.log('on'); setInterval(() => {}, 1000); await new Promise(() => {})")
    kernel.wait_output("on")
    started = time.monotonic()
    kernel.close()
    assert time.monotonic() - started < harness.END_SECONDS, "it had to be killed"


def test_tampering(world):
    """a cell that changes what everything uses harms no more than itself"""
    with world.new() as kernel:
        kernel.cell("JSON.stringify = () => 'gone'; Buffer.from = null; require('fs').writeSync = console.log = null")
        check(kernel.cell("[1, 'é']").main["json"], [1, "é"])
        code = "globalThis.__glovebox__ = 1; __glovebox__.value = 2; throw new Error('told')"
        fails(kernel.cell(code), "Error", "told")
