// SPDX-License-Identifier: Apache-2.0
//
// What becomes of contexts when their sandbox is found again, paused, killed.
import assert from 'node:assert/strict';
import { Sandbox, box, caught, made_elsewhere, rejects, sdk, test } from '../js/harness.mjs';
import { begun, output, run, stdout, value } from './kit.mjs';

const { SandboxError, TimeoutError } = sdk;

test('connect(): the same contexts, the same variables', async () => {
  const sandbox = await box();
  const context = await sandbox.createCodeContext({ cwd: '/tmp' });
  await run('x = "default"', {}, sandbox);
  await run('x = "made"', { context }, sandbox);
  const again = await Sandbox.connect(sandbox.sandboxId);
  assert.equal(await value('x', {}, again), 'default');
  assert.equal(await value('x', { context }, again), 'made');
  assert.deepEqual(await again.listCodeContexts(), await sandbox.listCodeContexts());
});

test('a cell goes on while another client looks', async () => {
  const sandbox = await box();
  const running = output('import time\nfor i in range(4):\n    print(i)\n    time.sleep(0.3)', {}, sandbox);
  const again = await Sandbox.connect(sandbox.sandboxId);
  assert.equal((await again.commands.run('echo here')).stdout, 'here\n');
  assert.equal(await running, '0\n1\n2\n3\n');
});

test('pause() and connect(): the variables are there', async () => {
  const sandbox = await box({ envs: { KEPT: 'env' } });
  await run('import os\nx = {"deep": [1, 2]}', {}, sandbox);
  await run('let y = 5', { language: 'javascript' }, sandbox);
  await sandbox.pause();
  const again = await Sandbox.connect(sandbox.sandboxId);
  assert.equal(await value('x["deep"], os.environ["KEPT"]', {}, again), '([1, 2], \'env\')');
  assert.equal(await output('console.log(y)', { language: 'javascript' }, again), '5\n');
});

test('paused without memory: the files stay, contexts start anew', async () => {
  const sandbox = await box();
  await run('x = 1; open("kept", "w").write("file");', {}, sandbox);
  await sandbox.pause({ keepMemory: false });
  const again = await Sandbox.connect(sandbox.sandboxId);
  const execution = await again.runCode('x');
  assert.equal(execution.error?.name, 'NameError');
  assert.equal(await value('open("kept").read()', {}, again), 'file');
});

test('traffic wakes a paused sandbox with its variables', async () => {
  const sandbox = await box({ timeoutMs: 60_000, lifecycle: { onTimeout: 'pause', autoResume: true } });
  await run('x = 41', {}, sandbox);
  await sandbox.pause();
  assert.equal(await value('x + 1', {}, sandbox), '42');
});

test('killed while a cell runs: the SDK says so', async () => {
  const sandbox = await box();
  const { running } = await begun('import time\ntime.sleep(60)', {}, sandbox);
  const ended = caught(running);
  await Sandbox.kill(sandbox.sandboxId);
  const error = await ended;
  assert.equal(error.constructor, TimeoutError, String(error));
  assert.match(error.message, /The sandbox was killed while the request was in progress/);
});

test('its time is over while a cell runs', async () => {
  const sandbox = await box({ timeoutMs: 6000 }); // the cell has to be there by then, however busy the machine is
  const error = await caught(sandbox.runCode('import time\ntime.sleep(60)'));
  assert.equal(error.constructor, TimeoutError, String(error));
});

test('one that is gone', async () => {
  const sandbox = await box();
  const [context] = await sandbox.listCodeContexts();
  await sandbox.kill();
  await rejects(sandbox.runCode('1'), TimeoutError, /sandbox timeout/);
  await rejects(sandbox.createCodeContext(), TimeoutError);
  await rejects(sandbox.listCodeContexts(), TimeoutError);
  await rejects(sandbox.restartCodeContext(context), TimeoutError);
  await rejects(sandbox.removeCodeContext(context), TimeoutError);
});

test('a sandbox of a snapshot has its files, and contexts of its own', async () => {
  const sandbox = await box();
  await run('x = 1; open("kept", "w").write("file");', {}, sandbox);
  const { snapshotId } = await sandbox.createSnapshot();
  try {
    const other = await box(snapshotId, {});
    assert.equal(await value('open("kept").read()', {}, other), 'file');
    assert.equal((await other.runCode('x')).error?.name, 'NameError');
  } finally {
    await Sandbox.deleteSnapshot(snapshotId);
  }
});

test('a client that is bound to its settings', async () => {
  const { E2B_API_KEY: apiKey, E2B_API_URL: apiUrl, E2B_SANDBOX_URL: sandboxUrl } = process.env;
  const sandbox = made_elsewhere(await new sdk.E2B({ apiKey, apiUrl, sandboxUrl }).Sandbox.create());
  assert.equal(await value('6 * 7', {}, sandbox), '42');
});

test('a source that is named in every address; it also shows what an error says', async () => {
  process.env.E2B_USER_AGENT_SOURCE = 'ci';
  try {
    const sandbox = await box();
    assert.equal(await value('6 * 7', {}, sandbox), '42');
    const context = await sandbox.createCodeContext();
    await sandbox.removeCodeContext(context);
    assert.match((await caught(sandbox.runCode('1', { language: 'klingon' }))).message, /klingon/);
  } finally {
    delete process.env.E2B_USER_AGENT_SOURCE;
  }
});

test('ten sandboxes at once, each with its own variables', async () => {
  const sandboxes = await Promise.all(Array.from({ length: 10 }, () => box()));
  await Promise.all(sandboxes.map((sandbox, i) => run(`x = ${i}`, {}, sandbox)));
  assert.deepEqual(await Promise.all(sandboxes.map((sandbox) => value('x', {}, sandbox))), sandboxes.map((_, i) => String(i)));
});

test('random numbers of two contexts differ', async () => {
  const [one, two] = [await box(), await box()];
  const code = 'import random, uuid, secrets\nimport numpy as np\n' +
    '(random.random(), np.random.rand(), uuid.uuid4().hex, secrets.token_hex(8))';
  const [first, second] = [await value(code, {}, one), await value(code, {}, two)];
  const parts = (text) => text.replace(/[()' ]/g, '').split(',');
  parts(first).forEach((each, i) => assert.notEqual(each, parts(second)[i]));
});

test('setTimeout() while a cell runs keeps it alive', async () => {
  const sandbox = await box({ timeoutMs: 15_000 });
  const { running } = await begun('import time\ntime.sleep(16)\nprint("through")', {}, sandbox);
  await sandbox.setTimeout(60_000);
  assert.equal(stdout(await running), 'started\nthrough\n');
});

test('without the sandbox\'s token no cell runs', async () => {
  const sandbox = await box();
  const other = await Sandbox.connect(sandbox.sandboxId);
  assert.equal(typeof other.envdAccessToken, 'string');
  for (const token of ['not-the-token', undefined]) {
    other.envdAccessToken = token;
    await rejects(other.runCode('open("harm", "w")'), SandboxError, /^401/);
  }
  assert.equal(await value('import os\nos.path.exists("harm")', {}, sandbox), 'False');
});
