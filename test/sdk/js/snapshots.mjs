// SPDX-License-Identifier: Apache-2.0
//
// Snapshots and forks: of the files.
import assert from 'node:assert/strict';
import { Sandbox, box, caught, made_elsewhere, rejects, sdk, test } from './harness.mjs';

const { SandboxNotFoundError } = sdk;

async function everything(opts, paginator = Sandbox.listSnapshots(opts)) {
  const found = [];
  while (paginator.hasNext) found.push(...await paginator.nextItems());
  return found.map(({ snapshotId }) => snapshotId);
}

async function source() {
  const sandbox = await box({ timeoutMs: 120_000 });
  await sandbox.files.write('/home/user/app/state.json', '{"step":1}');
  await sandbox.commands.run('chmod 600 app/state.json; ln -s state.json app/link; mkdir app/empty; rm -f /etc/motd; ' +
    'sudo sh -c "echo root >/etc/of-root; mkdir -p /opt/x; echo 1 >/opt/x/y"; printf "\\0\\377" >app/bytes');
  return sandbox;
}

test('createSnapshot(): what it was is in every sandbox made from it', async () => {
  const sandbox = await source();
  const { snapshotId } = await sandbox.createSnapshot();
  try {
    assert.ok(snapshotId);
    await sandbox.files.write('app/state.json', 'changed later');
    const one = await box(snapshotId);
    assert.equal(await one.files.read('app/link'), '{"step":1}');
    const { stdout } = await one.commands.run('stat -c "%a %U" app/state.json /etc/of-root; cat /opt/x/y; od -An -tx1 app/bytes; ls -d app/empty');
    assert.equal(stdout, '600 user\n644 root\n1\n 00 ff\napp/empty\n');
    // It can be written, and the others do not see that.
    await one.files.write('app/state.json', 'mine');
    const two = await box(snapshotId);
    assert.equal(await two.files.read('app/state.json'), '{"step":1}');
    // What it was made from runs on.
    assert.equal(await sandbox.files.read('app/state.json'), 'changed later');
  } finally {
    await Sandbox.deleteSnapshot(snapshotId);
  }
});

test('a snapshot survives its sandbox, and a snapshot of it too', async () => {
  const sandbox = await source();
  const first = await sandbox.createSnapshot();
  await sandbox.kill();
  const child = await box(first.snapshotId);
  await child.commands.run('rm app/state.json; echo second >app/second');
  const second = await child.createSnapshot();
  const grandchild = await box(second.snapshotId);
  assert.equal((await grandchild.commands.run('ls app; cat app/second')).stdout, 'bytes\nempty\nlink\nsecond\nsecond\n');
  await grandchild.kill();
  await child.kill();
  for (const { snapshotId } of [second, first]) assert.equal(await Sandbox.deleteSnapshot(snapshotId), true);
});

test('deleteSnapshot(): once true, then false; it is good for nothing then', async () => {
  const sandbox = await box();
  const { snapshotId } = await sandbox.createSnapshot();
  assert.equal(await Sandbox.deleteSnapshot(snapshotId), true);
  assert.equal(await Sandbox.deleteSnapshot(snapshotId), false);
  assert.ok(!(await everything()).includes(snapshotId));
  const error = await caught(box(snapshotId));
  assert.match(error.message, /^404: /);
});

test('what is built in cannot be deleted', async () => {
  const result = await Sandbox.deleteSnapshot('base').catch((error) => error);
  assert.ok(result === false || /^40[034]/.test(result.message), String(result));
  assert.equal(await (await box('base')).isRunning(), true);
});

test('listSnapshots(): of all, of one sandbox, page by page', async () => {
  const [sandbox, other] = [await box(), await box()];
  const made = [];
  for (let i = 0; i < 3; i++) made.unshift((await sandbox.createSnapshot()).snapshotId);
  const foreign = (await other.createSnapshot()).snapshotId;
  try {
    assert.deepEqual(await everything({ sandboxId: sandbox.sandboxId }), made);
    assert.deepEqual(await everything({ sandboxId: sandbox.sandboxId, limit: 1 }), made);
    assert.deepEqual(await everything(undefined, sandbox.listSnapshots({ limit: 2 })), made);
    const all = await everything();
    for (const id of [...made, foreign]) assert.ok(all.includes(id), id);
  } finally {
    for (const id of [...made, foreign]) await Sandbox.deleteSnapshot(id);
  }
});

test('with a name', 'snapshotNames', async () => {
  const sandbox = await source();
  const name = `shot-${process.pid}-${Date.now()}`;
  const snapshot = await sandbox.createSnapshot({ name });
  try {
    assert.ok(snapshot.names.some((each) => each.endsWith(name)), JSON.stringify(snapshot));
    assert.ok((await everything({ sandboxId: sandbox.sandboxId })).includes(snapshot.snapshotId));
    for (const ref of [snapshot.snapshotId, name]) {
      assert.equal(await (await box(ref)).files.read('app/link'), '{"step":1}', ref);
    }
  } finally {
    await Sandbox.deleteSnapshot(snapshot.snapshotId);
  }
});

test('listSnapshots({ name })', 'snapshotFilter', async () => {
  const sandbox = await box();
  const name = `shot-${process.pid}-${Date.now()}-f`;
  const { snapshotId } = await sandbox.createSnapshot({ name });
  const { snapshotId: other } = await sandbox.createSnapshot();
  try {
    assert.deepEqual(await everything({ name }), [snapshotId]);
    assert.deepEqual(await everything({ name: 'nobody-has-this' }), []);
  } finally {
    for (const id of [snapshotId, other]) await Sandbox.deleteSnapshot(id);
  }
});

test('createSnapshot() of one that does not exist', async () => {
  const error = await caught(Sandbox.createSnapshot('inosuchsandbox'));
  assert.ok(error instanceof SandboxNotFoundError || /^404/.test(error.message), error.message);
});

test('fork(): others with the same files, while it runs on', 'fork', async () => {
  const sandbox = await source();
  const handle = await sandbox.commands.run('sleep 100', { background: true, timeoutMs: 0 });
  const forks = (await sandbox.fork({ count: 3, timeoutMs: 60_000 })).map(made_elsewhere);
  assert.equal(forks.length, 3);
  assert.equal(new Set([sandbox, ...forks].map(({ sandboxId }) => sandboxId)).size, 4);
  for (const fork of forks) {
    assert.equal(await fork.files.read('app/link'), '{"step":1}');
    await fork.files.write('app/state.json', fork.sandboxId);
  }
  for (const fork of forks) assert.equal(await fork.files.read('app/state.json'), fork.sandboxId);
  assert.equal(await sandbox.files.read('app/state.json'), '{"step":1}');
  assert.ok((await sandbox.commands.list()).some(({ pid }) => pid === handle.pid));
  await handle.disconnect();
});

test('fork() of one that does not exist, or too often', 'fork', async () => {
  await rejects(Sandbox.fork('inosuchsandbox'), SandboxNotFoundError);
  const sandbox = await box();
  await rejects(sandbox.fork({ count: 101 }), sdk.SandboxError, /^400: .*count/);
});
