// SPDX-License-Identifier: Apache-2.0
//
// Time-outs, pausing and waking.
import assert from 'node:assert/strict';
import { Sandbox, box, has, made_elsewhere, rejects, sdk, sleep, test, until } from './harness.mjs';

const { InvalidArgumentError, SandboxNotFoundError, TimeoutError } = sdk;
const gone = (sandbox) => until(async () => !await sandbox.isRunning(), 'it ends');
const state = async (sandbox) => (await sandbox.getInfo()).state;
const paused = (sandbox) => until(async () => await state(sandbox) === 'paused', 'it is paused');

// A process that counts: it shows whether anything runs. Each step is a byte more in a file; a number written anew
// would leave the file empty for ever when the process is ended between the emptying and the writing.
async function counter(sandbox) {
  const handle = await sandbox.commands.run('while :; do printf x >>count; sleep 0.02; done', { background: true, timeoutMs: 0 });
  await until(async () => await sandbox.files.exists('count') && await count(sandbox) > 0, 'the counter counts');
  await handle.disconnect();
  return handle.pid;
}

const count = async (sandbox) => (await sandbox.files.read('count')).length;

test('its time is over: it is gone, and what is asked of it fails', async () => {
  const sandbox = await box({ timeoutMs: 1000 });
  await gone(sandbox);
  await rejects(sandbox.getInfo(), SandboxNotFoundError, / not found$/);
  await rejects(sandbox.commands.run('true'), SandboxNotFoundError, /^Sandbox is probably not running anymore$/);
  await rejects(sandbox.files.read('f'), TimeoutError, /likely due to sandbox timeout/);
  await rejects(sandbox.files.exists('f'), TimeoutError, /likely due to sandbox timeout/);
  await rejects(sandbox.setTimeout(1000), SandboxNotFoundError);
  await rejects(Sandbox.connect(sandbox.sandboxId), SandboxNotFoundError);
});

test('setTimeout() makes it longer and shorter', async () => {
  const sandbox = await box({ timeoutMs: 60_000 });
  const at = async () => (await sandbox.getInfo()).endAt.getTime() - Date.now();
  await sandbox.setTimeout(600_000);
  assert.ok(Math.abs(await at() - 600_000) < 15_000);
  await Sandbox.setTimeout(sandbox.sandboxId, 30_000);
  assert.ok(Math.abs(await at() - 30_000) < 15_000);
  await sandbox.setTimeout(1000);
  await gone(sandbox);
});

test('setTimeout() of one that does not exist', async () => {
  await rejects(Sandbox.setTimeout('inosuchsandbox', 1000), SandboxNotFoundError, /^Sandbox inosuchsandbox not found$/);
});

test('connect() never shortens', async () => {
  const sandbox = await box({ timeoutMs: 600_000 });
  const before = (await sandbox.getInfo()).endAt.getTime();
  await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 10_000 });
  assert.equal((await sandbox.getInfo()).endAt.getTime(), before);
  await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 1_200_000 });
  assert.ok((await sandbox.getInfo()).endAt.getTime() > before + 500_000);
});

test('pause(): looks dead, and nothing runs', async () => {
  const sandbox = await box();
  await counter(sandbox);
  assert.equal(await sandbox.pause(), true);
  assert.equal(await sandbox.pause(), false);
  assert.equal(await Sandbox.pause(sandbox.sandboxId), false);
  assert.equal(await state(sandbox), 'paused');
  assert.equal(await sandbox.isRunning(), false);
  await rejects(sandbox.commands.run('true'), SandboxNotFoundError);
  await rejects(sandbox.files.read('count'), TimeoutError);
});

test('connect() after pause(): the same processes go on where they stood', async () => {
  const sandbox = await box({ envs: { KEPT: 'env' }, metadata: { kept: 'meta' } });
  const pid = await counter(sandbox);
  const before = await count(sandbox);
  await sandbox.pause();
  await sleep(4000);
  const again = await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 100_000 });
  const after = await count(again);
  // 4 s are 200 steps: while it was paused there were none.
  assert.ok(after >= before && after < before + 150, `${before}, then ${after}`);
  await until(async () => await count(again) > after, 'it counts on');
  assert.ok((await again.commands.list()).some((process) => process.pid === pid));
  assert.equal((await again.commands.run('echo $KEPT')).stdout, 'env\n');
  const info = await again.getInfo();
  assert.deepEqual(info.metadata, { kept: 'meta' });
  assert.equal(info.state, 'running');
  assert.ok(Math.abs(info.endAt - Date.now() - 100_000) < 30_000);
  // The old object has the same token.
  assert.equal((await sandbox.commands.run('echo old')).stdout, 'old\n');
});

test('a stream that is open while it is paused breaks off', async () => {
  const sandbox = await box();
  const handle = await sandbox.commands.run('sleep 60', { background: true, timeoutMs: 0 });
  const broken = handle.wait().catch((error) => error);
  await sandbox.pause();
  const error = await broken;
  assert.ok(error instanceof Error);
});

test('a paused sandbox can be killed', async () => {
  const sandbox = await box();
  await sandbox.pause();
  assert.equal(await Sandbox.kill(sandbox.sandboxId), true);
  assert.equal(await Sandbox.kill(sandbox.sandboxId), false);
  await rejects(Sandbox.connect(sandbox.sandboxId), SandboxNotFoundError);
});

test('a paused sandbox has no end', async () => {
  const sandbox = await box({ timeoutMs: 5000 });
  await sandbox.pause();
  await sleep(6000);
  assert.equal(await state(sandbox), 'paused');
});

test('betaPause() is pause()', async () => {
  const sandbox = await box();
  assert.equal(await sandbox.betaPause(), true);
  assert.equal(await Sandbox.betaPause(sandbox.sandboxId), false);
});

test('pause() of one that does not exist', async () => {
  await rejects(Sandbox.pause('inosuchsandbox'), SandboxNotFoundError, /^Sandbox inosuchsandbox not found$/);
});

test('pause({ keepMemory: false }): files stay, processes do not', 'keepMemory', async () => {
  const sandbox = await box({ envs: { KEPT: 'env' } });
  const pid = await counter(sandbox);
  await sandbox.files.write('/home/user/deep/file', 'stays');
  await sandbox.commands.run('chmod 640 deep/file; ln -s file deep/link; sudo touch /etc/made-by-root');
  assert.equal(await sandbox.pause({ keepMemory: false }), true);
  assert.equal(await state(sandbox), 'paused');
  assert.equal(await sandbox.isRunning(), false);
  const again = await Sandbox.connect(sandbox.sandboxId);
  assert.equal(await again.files.read('deep/link'), 'stays');
  assert.equal((await again.commands.run('stat -c "%a %U" deep/file /etc/made-by-root')).stdout, '640 user\n644 root\n');
  assert.ok(!(await again.commands.list()).some((process) => process.pid === pid));
  const before = await count(again);
  await sleep(200);
  assert.equal(await count(again), before);
  assert.equal((await again.commands.run('echo $KEPT')).stdout, 'env\n');
  assert.equal((await sandbox.commands.run('echo same token')).stdout, 'same token\n');
});

test('connect({ onResume: "reboot" }): files only', 'onResume', async () => {
  const sandbox = await box();
  await counter(sandbox);
  await sandbox.pause();
  const again = await Sandbox.connect(sandbox.sandboxId, { onResume: 'reboot' });
  assert.ok(await count(again) > 0);
  assert.deepEqual(await again.commands.list(), []);
});

test('lifecycle.onTimeout "pause": paused when its time is over', async () => {
  const sandbox = await box({ timeoutMs: 10_000, lifecycle: { onTimeout: 'pause' } });
  await sandbox.files.write('kept', 'yes');
  if (has('fullInfo')) {
    assert.deepEqual((await sandbox.getInfo()).lifecycle, { onTimeout: 'pause', autoResume: false });
  }
  await paused(sandbox);
  assert.equal(await sandbox.isRunning(), false);
  const again = await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 60_000 });
  assert.equal(await again.files.read('kept'), 'yes');
  assert.equal(await state(again), 'running');
});

test('lifecycle.onTimeout { keepMemory: false }', 'keepMemory', async () => {
  const sandbox = await box({ timeoutMs: 15_000, lifecycle: { onTimeout: { action: 'pause', keepMemory: false } } });
  await counter(sandbox);
  await paused(sandbox);
  const again = await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 60_000 });
  assert.deepEqual(await again.commands.list(), []);
  assert.ok(await count(again) > 0);
});

test('lifecycle.autoResume: traffic wakes it', async () => {
  const sandbox = await box({ timeoutMs: 1000, lifecycle: { onTimeout: 'pause', autoResume: true } });
  await sandbox.files.write('kept', 'yes');
  if (has('fullInfo')) assert.equal((await sandbox.getInfo()).lifecycle.autoResume, true);
  await paused(sandbox);
  assert.equal(await sandbox.files.read('kept'), 'yes');
  assert.equal(await state(sandbox), 'running');
  assert.equal((await sandbox.commands.run('echo awake')).stdout, 'awake\n');
});

test('lifecycle.autoResume: paused by hand, it wakes too', async () => {
  const sandbox = await box({ timeoutMs: 60_000, lifecycle: { onTimeout: 'pause', autoResume: true } });
  await sandbox.pause();
  assert.equal((await sandbox.commands.run('echo awake')).stdout, 'awake\n');
});

test('autoResume without pause is refused', 'keepMemory', async () => {
  await rejects(box({ lifecycle: { onTimeout: 'kill', autoResume: true } }), InvalidArgumentError, /autoResume/);
});

test('betaCreate({ autoPause: true }): paused when its time is over', 'betaCreate', async () => {
  const sandbox = made_elsewhere(await Sandbox.betaCreate({ autoPause: true, timeoutMs: 1000 }));
  await paused(sandbox);
});
