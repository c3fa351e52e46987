// SPDX-License-Identifier: Apache-2.0
//
// Contexts of the other languages keep state as Python's do; languages without contexts run once.
import assert from 'node:assert/strict';
import { box, common, test } from '../js/harness.mjs';
import { fails, output, run, stderr, stdout, value } from './kit.mjs';

// Two cells, of which the second prints 42; a failing cell, its error's name and a part of its value.
const STATE = {
  javascript: ['let x = 20; function double(n) { return 2 * n }', 'console.log(double(x) + 2)',
    'undefinedName + 1', 'ReferenceError', 'undefinedName'],
  typescript: ['interface P { n: number }\nlet p: P = { n: 21 }', 'console.log(p.n * 2)',
    'throw new TypeError("wrong" as string)', 'TypeError', 'wrong'],
  bash: ['x=20; double() { echo $((2 * $1)); }', 'echo $(($(double $x) + 2))', 'no-such-program', null, ''],
  r: ['x <- 20; double <- function(n) 2 * n', 'cat(double(x) + 2, "\\n", sep="")', 'stop("wrong")', null, 'wrong'],
  java: ['int x = 20; int twice(int n) { return 2 * n; }', 'System.out.println(twice(x) + 2);',
    'throw new IllegalStateException("wrong");', null, 'wrong'],
};
for (const [language, [first, second, bad, name, part]] of Object.entries(STATE)) {
  test(`${language}: state, errors and life after them`, async () => {
    await run(first, { language });
    assert.equal(await output(second, { language }), '42\n');
    const error = await fails(bad, name, { language });
    assert.ok(error.value.includes(part), `${error.name}: ${error.value}`);
    assert.equal(await output(second, { language }), '42\n');
  });

  test(`${language}: streamed, also to standard error`, async () => {
    const wait = 'await new Promise((done) => setTimeout(done, 1000))';
    const code = {
      javascript: `for (let i = 0; i < 3; i++) { console.log(i); console.error("e" + i); ${wait} }`,
      typescript: `for (let i: number = 0; i < 3; i++) { console.log(i); console.error("e" + i); ${wait} }`,
      bash: 'for i in 0 1 2; do echo $i; echo e$i >&2; sleep 1; done',
      r: 'for (i in 0:2) { cat(i, "\\n", sep=""); message("e", i); Sys.sleep(1) }',
      java: 'for (int i = 0; i < 3; i++) { System.out.println(i); System.err.println("e" + i); Thread.sleep(1000); }',
    }[language];
    const seen = [];
    const execution = await run(code, { language, onStdout: ({ line }) => { seen.push([line, Date.now()]); } });
    assert.equal(stdout(execution), '0\n1\n2\n');
    assert.equal(stderr(execution), 'e0\ne1\ne2\n');
    assert.ok(seen.at(-1)[1] - seen[0][1] > 350, JSON.stringify(seen));
  });

  test(`${language}: a context of its own, restarted and removed`, async () => {
    const sandbox = await common();
    const context = await sandbox.createCodeContext({ language });
    assert.equal(context.language, language);
    const missing = (await sandbox.runCode(second, { context })).error ?? stdout(await run(first, { context }));
    assert.ok(missing !== '42\n', 'it does not know the variables of the other');
    await run(first, { context });
    assert.equal(await output(second, { context }), '42\n');
    await sandbox.restartCodeContext(context);
    const { error, logs } = await sandbox.runCode(second, { context });
    assert.ok(error || logs.stdout.join('') !== '42\n', 'the variables are gone');
    await sandbox.removeCodeContext(context);
  });

  test(`${language}: characters of every kind`, async () => {
    const code = {
      javascript: 'console.log("žluť 漢字 🚀")', typescript: 'console.log("žluť 漢字 🚀" as string)',
      bash: 'echo "žluť 漢字 🚀"',
      r: 'cat("žluť 漢字 🚀\\n")', java: 'System.out.println("žluť 漢字 🚀");',
    }[language];
    assert.equal(await output(code, { language }), 'žluť 漢字 🚀\n');
  });
}

test('js and ts are other names', async () => {
  assert.equal(await output('console.log(6 * 7)', { language: 'js' }), '42\n');
  assert.equal(await output('console.log((6 as number) * 7)', { language: 'ts' }), '42\n');
});

test('javascript: the value of the last expression', async () => {
  const language = 'javascript';
  assert.equal(await value('6 * 7', { language }), '42');
  assert.equal(await value('"text"', { language }), 'text');
  assert.equal((await run('undefined', { language })).results.length, 0);
  assert.match(await value('({ a: [1, 2] })', { language }), /a: \[ ?1, 2 ?\]/);
});

test('javascript: await at the top, promises, imports', async () => {
  const language = 'javascript';
  assert.equal(await value('await Promise.resolve(41) + 1', { language }), '42');
  assert.equal(await value('Promise.resolve("kept")', { language }), 'kept');
  assert.equal(await output('import { join } from "node:path"\nconsole.log(join("a", "b"))', { language }), 'a/b\n');
  assert.equal(await output('import * as os from "os"; const { EOL } = os\nconsole.log(JSON.stringify(EOL))', { language }), '"\\n"\n');
  assert.equal(await output('console.log(join("still", "there"))', { language }), 'still/there\n');
  assert.equal(await output('const fs = require("fs"); console.log(typeof fs.readFileSync)', { language }), 'function\n');
});

test('javascript: const and let of an earlier cell can be said again', async () => {
  const language = 'javascript';
  await run('const again = 1; let more = 1; class Thing {}', { language });
  await run('const again = 2; let more = 2; class Thing { n = 2 }', { language });
  assert.equal(await output('console.log(again, more, new Thing().n)', { language }), '2 2 2\n');
});

test('javascript: errors of code and of promises', async () => {
  const language = 'javascript';
  await fails('let = = 1', 'SyntaxError', { language });
  assert.equal((await fails('await Promise.reject(new RangeError("far"))', 'RangeError', { language })).value, 'far');
  assert.match((await fails('throw new Error("plain")', 'Error', { language })).traceback, /plain/);
});

test('typescript: what JavaScript does not have', async () => {
  const language = 'typescript';
  await run('enum Colour { Red = 3 }\nfunction first<T>(list: T[]): T { return list[0] }\ntype Name = string', { language });
  assert.equal(await output('const name: Name = "ann"; console.log(Colour.Red, first<string>([name]))', { language }), '3 ann\n');
});

test('bash: directory, exported variables, status', async () => {
  const language = 'bash';
  await run('cd /tmp; export KEPT=yes; set -- a b', { language });
  assert.equal(await output('pwd; sh -c \'echo $KEPT\'', { language }), '/tmp\nyes\n');
  const error = await fails('(exit 7)', null, { language });
  assert.match(error.name + error.value, /7/);
  await run('cd', { language });
});

test('bash: exit ends the cell, and the sandbox lives', async () => {
  const sandbox = await box();
  await sandbox.runCode('exit 3', { language: 'bash' });
  assert.equal(await output('echo alive', { language: 'bash' }, sandbox), 'alive\n');
});

test('r: values are shown as at its prompt, plots as pictures', async () => {
  const language = 'r';
  const execution = await run('x <- c(1, 2, 3)\nmean(x)', { language });
  assert.match(stdout(execution) + (execution.text ?? ''), /\[1\] 2/);
  const plotted = await run('plot(x, main = "Three")', { language });
  const { png } = plotted.results.find((each) => each.png) ?? {};
  assert.equal(Buffer.from(png ?? '', 'base64').subarray(1, 4).toString(), 'PNG');
});

test('java: values, classes, imports', async () => {
  const language = 'java';
  await run('import java.util.stream.*;\nrecord Point(int x, int y) {}', { language });
  assert.equal(await output('System.out.println(IntStream.range(0, 4).sum() + new Point(1, 2).y());', { language }), '8\n');
});

test('state of every language at once, in one sandbox', async () => {
  const sandbox = await box();
  await run('x = 1', {}, sandbox);
  await run('let x = 2', { language: 'javascript' }, sandbox);
  await run('x=3', { language: 'bash' }, sandbox);
  assert.equal(await value('x', {}, sandbox), '1');
  assert.equal(await output('console.log(x)', { language: 'javascript' }, sandbox), '2\n');
  assert.equal(await output('echo $x', { language: 'bash' }, sandbox), '3\n');
  const listed = (await sandbox.listCodeContexts()).map(({ language }) => language);
  assert.deepEqual(listed, ['python', 'javascript', 'bash']);
});

// Languages that keep no state: the program is compiled where it must be, and run.
const ONCE = {
  ruby: 'puts 6 * 7', perl: 'print 6 * 7, "\\n";', php: '<?php echo 6 * 7, "\\n";', lua: 'print(6 * 7)',
  c: '#include <stdio.h>\nint main(void) { printf("%d\\n", 6 * 7); }',
  go: 'package main\nimport "fmt"\nfunc main() { fmt.Println(6 * 7) }',
};
for (const [language, code] of Object.entries(ONCE)) {
  test(`${language}: once`, async () => {
    assert.equal(await output(code, { language, timeoutMs: 80_000 }), '42\n');
  });
}

test('a program that cannot be compiled, and one that fails', async () => {
  assert.ok(await fails('int main(void) { return no_such; }', null, { language: 'c' }));
  const error = await fails('warn "said"; exit 3', null, { language: 'ruby' });
  assert.match(error.name + error.value, /3/);
});
