// SPDX-License-Identifier: Apache-2.0
//
// Cells of Python: state, values, errors, magics, callbacks.
import assert from 'node:assert/strict';
import { box, common, test } from '../js/harness.mjs';
import { elapsed, fails, output, run, stderr, stdout, value } from './kit.mjs';

test('the default template has an interpreter', async () => {
  const sandbox = await box();
  const execution = await sandbox.runCode('print("hello"); 6 * 7');
  assert.deepEqual(execution.logs, { stdout: ['hello\n'], stderr: [] });
  assert.equal(execution.text, '42');
  assert.equal(execution.error, undefined);
  assert.equal(execution.executionCount, 1);
});

test('the template base has one too', async () => {
  const sandbox = await box('base');
  assert.equal(await value('1 + 1', {}, sandbox), '2');
});

test('variables, functions, classes and imports stay', async () => {
  await run('x = 20\ndef double(n):\n    return 2 * n\nclass Point:\n    z = 1\nimport math');
  assert.equal(await value('double(x) + 2 + Point.z'), '43');
  assert.equal(await value('math.floor(2.5)'), '2');
  await run('x += 1; del double');
  assert.equal(await value('x'), '21');
  await fails('double(1)', 'NameError');
});

test('each cell has the next number', async () => {
  const sandbox = await box();
  const counts = [];
  for (const code of ['1', 'x = 2', 'print(3)', 'nonsense']) counts.push((await sandbox.runCode(code)).executionCount);
  assert.deepEqual(counts, [1, 2, 3, 4]);
});

test('the value of the last expression, and only of that', async () => {
  assert.equal(await value('1\n2\n3'), '3');
  assert.equal((await run('x = 5')).results.length, 0);
  assert.equal((await run('None')).results.length, 0);
  assert.equal((await run('5;')).results.length, 0);
  assert.equal((await run('print("only printed")')).text, undefined);
  const { results } = await run('[1, 2]');
  assert.equal(results.length, 1);
  assert.equal(results[0].isMainResult, true);
});

test('the text of a string has no quotes around it', async () => {
  assert.equal(await value('"abc"'), 'abc');
  assert.equal(await value('"it\'s"'), 'it\'s');
  assert.equal(await value('["abc"]'), '[\'abc\']');
});

test('_, Out and In are what they are in a notebook', async () => {
  const sandbox = await box();
  await run('40 + 2', {}, sandbox);
  assert.equal(await value('_ + 1', {}, sandbox), '43');
  assert.equal(await value('Out[1], _1', {}, sandbox), '(42, 42)');
  assert.equal(await value('In[1]', {}, sandbox), '40 + 2');
});

test('no code, a comment, only spaces', async () => {
  for (const code of ['', '# nothing', '  \n\n ']) {
    const execution = await run(code);
    assert.deepEqual([execution.results, execution.logs], [[], { stdout: [], stderr: [] }]);
  }
});

test('code that is indented as a whole', async () => {
  assert.equal(await value('    x = 1\n    if x:\n        x = 7\n    x'), '7');
});

test('code with every kind of character', async () => {
  assert.equal(await output('print("žluťoučký kůň 漢字 🚀 \\u0000 \\"quoted\\" \\\\ end")'),
    'žluťoučký kůň 漢字 🚀 \0 "quoted" \\ end\n');
  assert.equal(await value('größe = 3; größe'), '3');
});

test('a megabyte of code', async () => {
  assert.equal(await value(`text = """${'x'.repeat(1_000_000)}"""; len(text)`), '1000000');
});

test('await at the top', async () => {
  assert.equal(await value('import asyncio\nawait asyncio.sleep(0.05)\n"slept"'), 'slept');
  assert.equal(await value('sum(await asyncio.gather(*[asyncio.sleep(0.05, i) for i in range(10)]))'), '45');
  const code = 'async def numbers():\n    for i in range(3):\n        yield i\nasync for n in numbers():\n    print(n)';
  assert.equal(await output(code), '0\n1\n2\n');
});

test('errors: name, value and traceback', async () => {
  const unknown = await fails('unknown_name');
  assert.deepEqual([unknown.name, unknown.value], ['NameError', 'name \'unknown_name\' is not defined']);
  assert.match(unknown.traceback, /Traceback[^]*unknown_name[^]*NameError/);
  assert.equal((await fails('1 / 0', 'ZeroDivisionError')).value, 'division by zero');
  assert.equal((await fails('{}["k"]', 'KeyError')).value, '\'k\'');
  assert.equal((await fails('raise ValueError("žluť 🚀")', 'ValueError')).value, 'žluť 🚀');
  assert.equal((await fails('assert False', 'AssertionError')).value, '');
  await fails('import no_such_module', 'ModuleNotFoundError');
  await fails('class Mine(Exception):\n    pass\nraise Mine("x")', 'Mine');
});

test('errors of the code itself', async () => {
  assert.match((await fails('def f(:\n    pass', 'SyntaxError')).traceback, /def f\(:/);
  await fails('if True:\nx = 1', 'IndentationError');
  await fails('print("never")\n)', 'SyntaxError');
});

test('a traceback shows the line in a function of an earlier cell', async () => {
  await run('def inner():\n    raise RuntimeError("deep")');
  const { traceback } = await fails('def outer():\n    inner()\nouter()', 'RuntimeError');
  assert.match(traceback, /outer\(\)[^]*inner\(\)[^]*raise RuntimeError\("deep"\)/);
});

test('what came before an error is there, and the state too', async () => {
  const execution = await (await common()).runCode('before = 1\nprint("before")\n1 / 0\nprint("after")');
  assert.equal(execution.error.name, 'ZeroDivisionError');
  assert.equal(stdout(execution), 'before\n');
  assert.deepEqual(execution.results, []);
  assert.equal(await value('before'), '1');
});

test('sys.exit() and exit() end the cell, not the context', async () => {
  await run('kept = "yes"');
  await fails('import sys; sys.exit(3)', 'SystemExit');
  await (await common()).runCode('exit()');
  assert.equal(await value('kept'), 'yes');
});

test('input() has nobody to ask: an error, not a wait', async () => {
  const took = await elapsed(() => fails('input("name? ")'));
  assert.ok(took < 20_000, `${took} ms`);
});

test('!command: output, status, into a variable', async () => {
  assert.equal(await output('!echo out; echo err >&2'), 'out\n');
  assert.equal(await output('name = "braces"\n!echo {name} $name'), 'braces braces\n');
  assert.equal(await value('lines = !printf "a\\nb\\n"\nlist(lines)'), '[\'a\', \'b\']');
  assert.equal(await value('!exit 3\n_exit_code'), '3');
});

test('magics of a line', async () => {
  assert.equal(await value('%pwd'), '/home/user');
  assert.equal(await value('%cd -q /tmp\nimport os\nos.getcwd()'), '/tmp');
  await run('%cd -q ~');
  assert.match(await output('%timeit -n 1 -r 1 pass'), /per loop/);
  assert.match(await output('zz_visible = 1\n%who int'), /zz_visible/);
});

test('magics of a cell', async () => {
  assert.equal(await output('%%bash\nfor i in 1 2 3; do echo $i; done'), '1\n2\n3\n');
  assert.match(await output('%%time\nprint("timed")'), /^timed\n[^]*Wall time/);
  assert.match(await output('%%writefile made.txt\ncontent of it'), /Writing made.txt/);
  assert.equal((await (await common()).files.read('made.txt')).trimEnd(), 'content of it');
  assert.equal(await output('%%capture kept\nprint("hidden")') + await output('print(kept.stdout, end="")'), 'hidden\n');
});

test('a magic that does not exist does no harm', async () => {
  const execution = await (await common()).runCode('%no_such_magic');
  assert.match(stderr(execution) + (execution.error?.value ?? ''), /no_such_magic/);
  assert.equal(await value('1'), '1');
});

test('callbacks: as it happens, in the order in which it happens', async () => {
  const seen = [];
  const note = (what) => (message) => { seen.push([what(message), Date.now()]); };
  const code = 'import sys, time\nfrom IPython.display import display\nfor i in range(3):\n' +
    '    print("out", i)\n    print("err", i, file=sys.stderr)\n    display(i)\n    time.sleep(1)\n"last"';
  await run(code, {
    onStdout: note(({ line, error }) => `${error}:${line}`),
    onStderr: note(({ line, error }) => `${error}:${line}`),
    onResult: note(({ text, isMainResult }) => `${isMainResult}:${text}`),
  });
  assert.deepEqual(seen.map(([what]) => what), [
    'false:out 0\n', 'true:err 0\n', 'false:0', 'false:out 1\n', 'true:err 1\n', 'false:1',
    'false:out 2\n', 'true:err 2\n', 'false:2', 'true:last']);
  for (const [before, after] of [[2, 3], [5, 6], [8, 9]]) {
    const gap = seen[after][1] - seen[before][1];
    assert.ok(gap > 150, `a gap of ${gap} ms where the cell slept`);
  }
});

test('a line that is not ended yet comes when it is flushed', async () => {
  const seen = [];
  const code = 'import time\nprint("no end", end="", flush=True)\ntime.sleep(1.5)\nprint(" now")';
  await run(code, { onStdout: ({ line }) => { seen.push([line, Date.now()]); } });
  assert.equal(seen.map(([line]) => line).join(''), 'no end now\n');
  assert.ok(seen.at(-1)[1] - seen[0][1] > 300, JSON.stringify(seen));
});

test('callbacks that are asynchronous are waited for', async () => {
  const seen = [];
  await run('print(1)\nprint(2)\n3', {
    onStdout: async ({ line }) => { await new Promise((done) => setTimeout(done, 30)); seen.push(line); },
    onResult: async ({ text }) => { seen.push(text); },
  });
  assert.equal(seen.join(''), '1\n2\n3');
});

test('onError', async () => {
  const seen = [];
  const execution = await (await common()).runCode('raise KeyError("k")', { onError: (error) => { seen.push(error); } });
  assert.deepEqual(seen, [execution.error]);
  assert.equal(seen[0].name, 'KeyError');
});

test('print and programs that are started write in one order', async () => {
  const code = 'import os, subprocess\nprint("a")\nsubprocess.run(["echo", "b"])\nprint("c")\nos.system("echo d")\n!echo e\nprint("f")';
  assert.equal(await output(code), 'a\nb\nc\nd\ne\nf\n');
});

test('threads, warnings and logging are heard', async () => {
  const execution = await run('import logging, threading, warnings\n' +
    'thread = threading.Thread(target=print, args=("from a thread",)); thread.start(); thread.join()\n' +
    'warnings.warn("careful")\nlogging.warning("logged")');
  assert.equal(stdout(execution), 'from a thread\n');
  assert.match(stderr(execution), /UserWarning: careful[^]*WARNING:root:logged/);
});

test('cells of one context run one after the other, in order', async () => {
  await run('import time\nlog = []');
  await Promise.all(Array.from({ length: 6 }, (_, i) => run(`seen = len(log)\ntime.sleep(0.1)\nlog.append((seen, ${i}))`)));
  assert.equal(await value('[seen for seen, _ in log]'), '[0, 1, 2, 3, 4, 5]');
});

test('files of commands and files of cells are the same', async () => {
  const sandbox = await common();
  await sandbox.files.write('shared.csv', 'a,b\n1,2\n');
  assert.equal(await output('print(open("shared.csv").read(), end="")'), 'a,b\n1,2\n');
  await run('open("/tmp/by-cell", "w").write("hello")');
  assert.equal((await sandbox.commands.run('cat /tmp/by-cell; stat -c " %U" /tmp/by-cell')).stdout, 'hello user\n');
});

test('an execution as JSON', async () => {
  const execution = await run('print(1); 2');
  const plain = JSON.parse(JSON.stringify(execution));
  assert.deepEqual(plain, { results: [{ text: '2' }], logs: { stdout: ['1\n'], stderr: [] } });
});
