// SPDX-License-Identifier: Apache-2.0
//
// Cells that do not end, and cells that end more than themselves: afterwards the next one runs.
import assert from 'node:assert/strict';
import { box, rejects, sdk, sleep, test } from '../js/harness.mjs';
import { begun, elapsed, fails, output, run, value } from './kit.mjs';

const { TimeoutError } = sdk;
const DEAD = 'ContextDied';

// A cell that is given up after a second; then another, which must not have to wait.
async function givenUp(sandbox, code, opts, next, want) {
  const gaveUp = sandbox.runCode(code, { timeoutMs: 1000, ...opts });
  await rejects(gaveUp, TimeoutError, /^Execution timed out/);
  let said;
  const took = await elapsed(async () => { said = await output(next, opts, sandbox); });
  assert.equal(said, want);
  assert.ok(took < 40_000, `the next cell waited ${took} ms`);
}

const ENDLESS = {
  'time.sleep': 'import time\ntime.sleep(60)',
  'a loop': 'while True: pass',
  'a loop that catches': 'while True:\n    try:\n        pass\n    except Exception:\n        pass',
  'a program': 'import subprocess\nsubprocess.run(["sleep", "60"])',
  '!command': '!sleep 60',
  '%%bash': '%%bash\nsleep 60',
  'await': 'import asyncio\nawait asyncio.sleep(60)',
  'a wait in C': 'import threading\nthreading.Event().wait()',
  'endless output': 'while True: print("x" * 1000)',
};
for (const [name, code] of Object.entries(ENDLESS)) {
  test(`timeoutMs interrupts ${name}; the state stays`, async () => {
    const sandbox = await box();
    await run('kept = "yes"', {}, sandbox);
    await givenUp(sandbox, code, {}, 'print(kept)', 'yes\n');
  });
}

test('a cell that takes no notice is killed, and the next gets a new context', async () => {
  const sandbox = await box();
  const stubborn = 'import time\nwhile True:\n    try:\n        time.sleep(60)\n    except KeyboardInterrupt:\n        pass';
  await rejects(sandbox.runCode(stubborn, { timeoutMs: 1000 }), TimeoutError);
  const took = await elapsed(async () => assert.equal(await output('print("fresh")', {}, sandbox), 'fresh\n'));
  assert.ok(took < 40_000, `${took} ms`);
});

const OTHERS = {
  javascript: ['for (;;) {}', 'console.log("next")'],
  'javascript (waiting)': ['await new Promise((r) => setTimeout(r, 60000))', 'console.log("next")'],
  typescript: ['while (true as boolean) {}', 'console.log("next")'],
  bash: ['sleep 60', 'echo next'],
  'bash (a loop)': ['while :; do :; done', 'echo next'],
  r: ['Sys.sleep(60)', 'cat("next\\n")'],
  java: ['Thread.sleep(60000);', 'System.out.println("next");'],
};
for (const [name, [code, next]] of Object.entries(OTHERS)) {
  test(`timeoutMs interrupts ${name}`, async () => {
    const sandbox = await box();
    const language = name.split(' ')[0];
    await output(next, { language }, sandbox); // it has started: that time is not the cell's
    await givenUp(sandbox, code, { language }, next, 'next\n');
  });
}

test('cells that wait behind an interrupted one run, in order', async () => {
  const sandbox = await box();
  await run('log = []', {}, sandbox);
  const first = rejects(sandbox.runCode('import time\ntime.sleep(60)', { timeoutMs: 8000 }), TimeoutError);
  const others = [];
  for (const i of [1, 2, 3]) {
    await sleep(1000); // each on a connection of its own: who comes first is who was sent first
    others.push(run(`log.append(${i})`, {}, sandbox));
  }
  await Promise.all([first, ...others]);
  assert.equal(await value('log', {}, sandbox), '[1, 2, 3]');
});

test('a cell that waits and is given up is never run', async () => {
  const sandbox = await box();
  await run('log = []', {}, sandbox);
  const { running } = await begun('import os, time\nwhile not os.path.exists("/tmp/go"): time.sleep(0.02)', {}, sandbox);
  await rejects(sandbox.runCode('log.append("must not be")', { timeoutMs: 500 }), TimeoutError);
  await sleep(3000); // until the service knows
  await sandbox.files.write('/tmp/go', '');
  await running;
  assert.equal(await value('log', {}, sandbox), '[]');
});

// What kills an interpreter. The sandbox lives, and so does the next cell.
const DEADLY = {
  'os._exit()': 'import os\nos._exit(5)',
  'a signal to itself': 'import os\nos.kill(os.getpid(), 9)',
  'a crash': 'import ctypes\nctypes.string_at(0)',
  'its descriptors closed': 'import os\nos.closerange(0, 1000)',
  'recursion to death': 'import sys\nsys.setrecursionlimit(10**9)\ndef deep(n): return deep(n + 1)\ndeep(0)',
};
for (const [name, code] of Object.entries(DEADLY)) {
  test(`${name}: said so, and the next cell has a new context`, async () => {
    const sandbox = await box();
    await run('kept = 1', {}, sandbox);
    const error = await fails(code, DEAD, {}, sandbox);
    assert.ok(error.value.length > 10, error.value);
    await fails('kept', 'NameError', {}, sandbox);
    assert.equal(await value('1 + 1', {}, sandbox), '2');
  });
}

test('recursion that Python itself stops', async () => {
  const sandbox = await box();
  await run('kept = 1', {}, sandbox);
  await fails('def deep(): return deep()\ndeep()', 'RecursionError', {}, sandbox);
  assert.equal(await value('kept', {}, sandbox), '1');
});

test('more memory than the sandbox has', async () => {
  const sandbox = await box();
  const { error } = await sandbox.runCode('data = []\nwhile True:\n    data.append(bytearray(16 << 20))', { timeoutMs: 60_000 });
  assert.ok(error && ['MemoryError', DEAD].includes(error.name), `${error?.name}: ${error?.value}`);
  assert.equal(await value('1 + 1', {}, sandbox), '2');
});

test('children that outlive the cell do no harm', async () => {
  const sandbox = await box();
  await run('import os, time\nif os.fork() == 0:\n    time.sleep(30)\n    os._exit(0)', {}, sandbox);
  assert.equal(await value('"next"', {}, sandbox), 'next');
  await sandbox.runCode('import os\npid = os.fork()', {}); // the child must not go on as a second context
  assert.equal(await value('"after"', {}, sandbox), 'after');
  assert.equal(await output('print(1)', {}, sandbox), '1\n');
});

test('one context dies, another does not notice', async () => {
  const sandbox = await box();
  const context = await sandbox.createCodeContext();
  await run('kept = 1', { context }, sandbox);
  await fails('import os\nos._exit(1)', DEAD, {}, sandbox);
  assert.equal(await value('kept', { context }, sandbox), '1');
});
