// SPDX-License-Identifier: Apache-2.0
//
// Contexts: made, listed, restarted, removed; each with a state of its own.
import assert from 'node:assert/strict';
import { box, caught, common, rejects, sdk, test, until } from '../js/harness.mjs';
import { begun, fails, output, run, value } from './kit.mjs';

const { InvalidArgumentError, NotFoundError, SandboxError } = sdk;
const ids = (contexts) => contexts.map(({ id }) => id);

test('there is one for Python and one for JavaScript before anything ran', async () => {
  const contexts = await (await box()).listCodeContexts();
  assert.deepEqual(contexts.map(({ language, cwd }) => [language, cwd]),
    [['python', '/home/user'], ['javascript', '/home/user']]);
});

test('a new one: what it says of itself, its place in the list', async () => {
  const sandbox = await box();
  const first = await sandbox.createCodeContext();
  assert.deepEqual([first.language, first.cwd], ['python', '/home/user']);
  assert.match(first.id, /^[\w-]+$/);
  const second = await sandbox.createCodeContext({ language: 'bash', cwd: '/tmp' });
  assert.deepEqual([second.language, second.cwd], ['bash', '/tmp']);
  assert.deepEqual((await sandbox.listCodeContexts()).slice(2), [first, second]);
});

test('variables of one are not those of another; files are', async () => {
  const sandbox = await box();
  const [one, two] = [await sandbox.createCodeContext(), await sandbox.createCodeContext()];
  await run('x = "default"; open("f", "w").write("file");', {}, sandbox);
  await run('x = "one"', { context: one }, sandbox);
  await fails('x', 'NameError', { context: two }, sandbox);
  assert.equal(await value('x', { context: one }, sandbox), 'one');
  assert.equal(await value('x', {}, sandbox), 'default');
  assert.equal(await value('open("f").read()', { context: two }, sandbox), 'file');
});

test('each counts its own cells', async () => {
  const sandbox = await box();
  const context = await sandbox.createCodeContext();
  await run('1', {}, sandbox);
  await run('1', {}, sandbox);
  assert.equal((await run('1', { context }, sandbox)).executionCount, 1);
});

test('cwd: of the context, kept from cell to cell', async () => {
  const sandbox = await box();
  await sandbox.files.makeDir('work/dir');
  const context = await sandbox.createCodeContext({ cwd: '/home/user/work/dir' });
  assert.equal(context.cwd, '/home/user/work/dir');
  assert.equal(await value('import os\nos.getcwd()', { context }, sandbox), '/home/user/work/dir');
  assert.equal(await output('!pwd', { context }, sandbox), '/home/user/work/dir\n');
  await run('os.chdir("/tmp")', { context }, sandbox);
  assert.equal(await value('os.getcwd()', { context }, sandbox), '/tmp');
  assert.equal(await value('import os\nos.getcwd()', {}, sandbox), '/home/user');
});

for (const language of ['javascript', 'bash', 'r']) {
  test(`cwd of a context for ${language}`, async () => {
    const sandbox = await common();
    const code = { javascript: 'console.log(process.cwd())', bash: 'pwd', r: 'cat(getwd(), "\\n", sep="")' }[language];
    assert.equal(await output(code, { language }), '/home/user\n');
    const context = await sandbox.createCodeContext({ language, cwd: '/tmp' });
    assert.equal(await output(code, { context }), '/tmp\n');
    await sandbox.removeCodeContext(context);
  });
}

test('a cwd that does not exist is refused, and leaves no context', async () => {
  const sandbox = await box();
  assert.ok(await caught(sandbox.createCodeContext({ cwd: '/no/such/directory' })) instanceof SandboxError);
  assert.equal((await sandbox.listCodeContexts()).length, 2);
});

test('short and odd names of languages', async () => {
  const sandbox = await common();
  for (const [asked, language] of [['js', 'javascript'], ['ts', 'typescript'], [' Python ', 'python'], ['BASH', 'bash']]) {
    const context = await sandbox.createCodeContext({ language: asked });
    assert.equal(context.language, language);
    await sandbox.removeCodeContext(context);
  }
});

test('a language that does not exist', async () => {
  const sandbox = await common();
  await rejects(sandbox.createCodeContext({ language: 'klingon' }), SandboxError);
  await rejects(sandbox.runCode('1', { language: 'klingon' }), SandboxError);
});

test('restart: the variables are gone, the rest stays', async () => {
  const sandbox = await box();
  const context = await sandbox.createCodeContext({ cwd: '/tmp' });
  await run('x = 1', { context }, sandbox);
  await sandbox.restartCodeContext(context);
  await fails('x', 'NameError', { context }, sandbox);
  assert.equal((await run('1', { context }, sandbox)).executionCount, 2);
  assert.equal(await value('import os\nos.getcwd()', { context }, sandbox), '/tmp');
  assert.deepEqual(ids(await sandbox.listCodeContexts()).slice(2), [context.id]);
});

test('restart of the default context', async () => {
  const sandbox = await box();
  await run('x = 1', {}, sandbox);
  const [context] = await sandbox.listCodeContexts();
  await sandbox.restartCodeContext(context.id);
  await fails('x', 'NameError', {}, sandbox);
});

test('restart while a cell runs: the cell says so', async () => {
  const sandbox = await box();
  const context = await sandbox.createCodeContext();
  const { running } = await begun('import time\ntime.sleep(60)', { context }, sandbox);
  await sandbox.restartCodeContext(context);
  const execution = await running;
  assert.equal(execution.error.name, 'ContextRestarting');
  assert.deepEqual(execution.logs.stdout, ['started\n']);
  assert.equal(await value('1', { context }, sandbox), '1');
});

test('remove: by object and by id', async () => {
  const sandbox = await box();
  const [one, two] = [await sandbox.createCodeContext(), await sandbox.createCodeContext()];
  await sandbox.removeCodeContext(one);
  assert.deepEqual(ids(await sandbox.listCodeContexts()).slice(2), [two.id]);
  await sandbox.removeCodeContext(two.id);
  assert.deepEqual(ids(await sandbox.listCodeContexts()).slice(2), []);
  await rejects(sandbox.runCode('1', { context: one }), NotFoundError, new RegExp(`^Context ${one.id} not found$`));
});

test('a removed context\'s process is gone', async () => {
  const sandbox = await box();
  const context = await sandbox.createCodeContext();
  const pid = await value('import os\nos.getpid()', { context }, sandbox);
  await sandbox.removeCodeContext(context);
  const there = `kill -0 ${pid} 2>/dev/null && echo there || echo gone`;
  await until(async () => (await sandbox.commands.run(there)).stdout === 'gone\n', 'it is gone');
});

test('one that does not exist', async () => {
  const sandbox = await common();
  const nobody = { id: 'nobody', language: 'python', cwd: '/home/user' };
  await rejects(sandbox.runCode('1', { context: nobody }), NotFoundError, /^Context nobody not found$/);
  await rejects(sandbox.restartCodeContext(nobody), NotFoundError, /^Context nobody not found$/);
  await rejects(sandbox.removeCodeContext('nobody'), NotFoundError, /^Context nobody not found$/);
});

test('a context and a language at once', async () => {
  const sandbox = await common();
  const [context] = await sandbox.listCodeContexts();
  await rejects(sandbox.runCode('1', { context, language: 'python' }), InvalidArgumentError);
});

test('contexts run beside each other', async () => {
  const sandbox = await box();
  const contexts = await Promise.all([1, 2, 3, 4].map(() => sandbox.createCodeContext()));
  // Each waits for all the others.
  const meet = (i) => `import os, time\nopen("/tmp/met-${i}", "w").close()\n` +
    'while not all(os.path.exists(f"/tmp/met-{j}") for j in range(4)): time.sleep(0.02)';
  await Promise.all(contexts.map((context, i) => run(meet(i), { context }, sandbox)));
});

test('50 at once, each with its own state', async () => {
  const sandbox = await box();
  const contexts = await Promise.all(Array.from({ length: 50 }, () => sandbox.createCodeContext()));
  assert.equal(new Set(ids(contexts)).size, 50);
  await Promise.all(contexts.map((context, i) => run(`import time\nx = ${i}\ntime.sleep(0.2)`, { context }, sandbox)));
  const values = await Promise.all(contexts.map((context) => value('x * 2', { context }, sandbox)));
  assert.deepEqual(values, contexts.map((_, i) => String(2 * i)));
  assert.equal((await sandbox.listCodeContexts()).length, 52);
});
