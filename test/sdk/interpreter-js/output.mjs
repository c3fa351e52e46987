// SPDX-License-Identifier: Apache-2.0
//
// Output: much of it, odd characters, bytes that are no text.
import assert from 'node:assert/strict';
import { box, common, test } from '../js/harness.mjs';
import { output, result, run, stderr, stdout, value } from './kit.mjs';

const MIB = 1_048_576;

test('characters of two, three and four bytes are never cut', async () => {
  // 13 bytes each, so that pieces of any size end inside of one.
  const text = await output('print("é漢字🚀\\n" * 150_000, end="")');
  assert.ok(text === 'é漢字🚀\n'.repeat(150_000), `${text.length} characters`);
});

test('one line of such characters', async () => {
  const text = await output('print("漢🚀" * 300_000)');
  assert.ok(text === `${'漢🚀'.repeat(300_000)}\n`, `${text.length} characters`);
});

test('a character written byte by byte', async () => {
  const code = 'import os, time\nfor byte in "🚀漢é".encode():\n    os.write(1, bytes([byte]))\n    time.sleep(0.03)';
  assert.equal(await output(code), '🚀漢é');
});

test('such characters in results and errors', async () => {
  const shown = await result('from IPython.display import HTML\nHTML("<b>" + "漢🚀" * 100_000 + "</b>")');
  assert.ok(shown.html === `<b>${'漢🚀'.repeat(100_000)}</b>`);
  const { error } = await (await common()).runCode('raise ValueError("🚀" * 50_000)');
  assert.ok(error.value === '🚀'.repeat(50_000));
});

test('bytes that are no text, and halves of characters', async () => {
  assert.equal(await output('import os\nos.write(1, b"a\\xff\\xfeb\\xf0\\x9f\\n");'), 'a\ufffd\ufffdb\ufffd\n');
  await run('print("\\ud800")');
  assert.equal(await value('1'), '1');
});

test('control characters stay what they are', async () => {
  assert.equal(await output('print("\\x00\\x01\\x1b[31mred\\x1b[0m\\r50%\\r100%\\t\\x7f\\u2028")'),
    '\0\x01\x1b[31mred\x1b[0m\r50%\r100%\t\x7f\u2028\n');
});

test('5 MiB in one go, whole', async () => {
  const text = await output(`print("0123456789abcde\\n" * ${5 * MIB / 16}, end="")`);
  assert.ok(text === '0123456789abcde\n'.repeat(5 * MIB / 16), `${text.length}`);
});

test('20,000 short lines, each in its place', async () => {
  const text = await output('for i in range(20_000):\n    print(i)');
  assert.ok(text === Array.from({ length: 20_000 }, (_, i) => `${i}\n`).join(''));
});

test('both streams at once, each whole', async () => {
  const execution = await run('import sys\nfor i in range(5000):\n    print(i)\n    print(i, file=sys.stderr)');
  const all = Array.from({ length: 5000 }, (_, i) => `${i}\n`).join('');
  assert.ok(stdout(execution) === all && stderr(execution) === all);
});

test('more than is sent goes into a file, which is named', async () => {
  const sandbox = await box();
  const execution = await run(`for i in range(${12 * 64}):\n    print(("%5d" % i) + "x" * 16_378)`, {}, sandbox);
  const sent = stdout(execution);
  assert.ok(sent.length >= 7 * MIB && sent.length <= 8 * MIB, `${sent.length} bytes were sent`);
  const path = /the rest is in (\/\S+)\]/.exec(stderr(execution))?.[1];
  assert.ok(path, `no file is named: ${stderr(execution).slice(0, 300)}`);
  const { stdout: size } = await sandbox.commands.run(`stat -c %s '${path}'`);
  assert.equal(sent.length + Number(size), 12 * MIB);
  const { stdout: last } = await sandbox.commands.run(`tail -c 16384 '${path}' | head -c 6`);
  assert.equal(last, '  767x');
  assert.equal(await value('1', {}, sandbox), '1');
});

test('10,000 results', async () => {
  const { results } = await run('from IPython.display import display\nfor i in range(10_000):\n    display(i)');
  assert.equal(results.length, 10_000);
  assert.equal(results[9_999].text, '9999');
});

test('a result of 5 MiB', async () => {
  const shown = await result(`from IPython.display import HTML\nHTML("x" * ${5 * MIB})`);
  assert.equal(shown.html.length, 5 * MIB);
});

test('what a cell leaves running does no harm to the next one', async () => {
  const sandbox = await box();
  await run('import subprocess\nchild = subprocess.Popen(["sh", "-c", "sleep 0.5; echo late"])', {}, sandbox);
  const { results, error } = await sandbox.runCode('import time\ntime.sleep(1)\n"mine"');
  assert.equal(error, undefined);
  assert.equal(results[0].text, 'mine');
});
