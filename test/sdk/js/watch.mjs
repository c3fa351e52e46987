// SPDX-License-Identifier: Apache-2.0
//
// Watching directories.
import assert from 'node:assert/strict';
import { Sandbox, box, caught, common, rejects, sdk, sleep, test, until } from './harness.mjs';

const { FilesystemEventType, FileNotFoundError, InvalidArgumentError } = sdk;
let unique = 0;

async function watched(opts) {
  const sandbox = await common();
  const dir = `/home/user/w${process.pid}-${unique++}`;
  await sandbox.files.makeDir(dir);
  const events = [];
  const handle = await sandbox.files.watchDir(dir, (event) => { events.push(event); }, opts);
  const saw = (type, name, ms) => until(() => events.find((event) => event.type === type && event.name === name),
    `${type} of ${name} among ${JSON.stringify(events)}`, ms);
  const shell = (command) => sandbox.commands.run(command, { cwd: dir });
  // A directory is watched a moment after it was made: what is written there before that is not seen.
  const writes = (name) => until(async () => {
    await shell(`echo 1 >${name}`);
    return events.some((event) => event.type === FilesystemEventType.WRITE && event.name === name);
  }, `a write of ${name}`);
  return { sandbox, files: sandbox.files, dir, events, handle, saw, shell, writes };
}

test('a file is made, written, changed, moved, removed', async () => {
  const { handle, saw, shell } = await watched();
  await shell('echo 1 >f');
  await saw(FilesystemEventType.CREATE, 'f');
  await saw(FilesystemEventType.WRITE, 'f');
  await shell('chmod 600 f');
  await saw(FilesystemEventType.CHMOD, 'f');
  await shell('mv f g');
  await saw(FilesystemEventType.RENAME, 'f');
  await saw(FilesystemEventType.CREATE, 'g');
  await shell('rm g');
  await saw(FilesystemEventType.REMOVE, 'g');
  await handle.stop();
});

test('what the files API writes is seen', async () => {
  const { files, dir, events, handle, saw } = await watched();
  await files.write(`${dir}/api`, 'one');
  await saw(FilesystemEventType.WRITE, 'api');
  events.length = 0;
  await files.write(`${dir}/api`, 'two');
  await saw(FilesystemEventType.WRITE, 'api');
  await handle.stop();
});

test('not recursive unless asked', async () => {
  const { events, handle, saw, shell } = await watched();
  await shell('mkdir sub; echo 1 >sub/inner; echo 1 >outer');
  await saw(FilesystemEventType.CREATE, 'outer');
  await sleep(200);
  assert.ok(!events.some(({ name }) => name.includes('inner')), JSON.stringify(events));
  await handle.stop();
});

test('recursive: also in directories made later', async () => {
  const { handle, saw, shell, writes } = await watched({ recursive: true });
  await shell('mkdir -p a/b');
  await saw(FilesystemEventType.CREATE, 'a');
  await writes('a/b/deep');
  await shell('mkdir a/b/c');
  await saw(FilesystemEventType.CREATE, 'a/b/c');
  await writes('a/b/c/deeper');
  await handle.stop();
});

test('with the entry', 'includeEntry', async () => {
  const { dir, events, handle, saw, shell } = await watched({ includeEntry: true });
  await shell('printf 12345 >f; chmod 640 f; rm f');
  await saw(FilesystemEventType.REMOVE, 'f');
  const write = events.find(({ type, entry }) => type === FilesystemEventType.WRITE && entry);
  const remove = events.find(({ type }) => type === FilesystemEventType.REMOVE);
  if (write) assert.equal(write.entry.path, `${dir}/f`);
  assert.equal(remove.entry, undefined);
  await shell('printf 12345 >stays');
  const made = await saw(FilesystemEventType.CREATE, 'stays');
  assert.equal(made.entry.name, 'stays');
  assert.equal(made.entry.owner, 'user');
  await handle.stop();
});

test('without the entry unless asked', async () => {
  const { handle, saw, shell } = await watched();
  await shell('touch f');
  assert.equal((await saw(FilesystemEventType.CREATE, 'f')).entry, undefined);
  await handle.stop();
});

test('allowNetworkMounts changes nothing here', 'includeEntry', async () => {
  const { handle, saw, shell } = await watched({ allowNetworkMounts: true });
  await shell('touch f');
  await saw(FilesystemEventType.CREATE, 'f');
  await handle.stop();
});

test('odd names', async () => {
  const { files, dir, handle, saw } = await watched();
  for (const name of ['sp ace', 'é🚀', "it's"]) {
    await files.write(`${dir}/${name}`, 'x');
    await saw(FilesystemEventType.WRITE, name);
  }
  await handle.stop();
});

test('stop(): nothing more comes', async () => {
  const { events, handle, saw, shell } = await watched();
  await shell('touch f');
  await saw(FilesystemEventType.CREATE, 'f');
  await handle.stop();
  await sleep(200);
  const before = events.length;
  await shell('touch g');
  await sleep(300);
  assert.equal(events.length, before);
});

test('onExit: called when it is over', async () => {
  let ended = false;
  const { handle } = await watched({ onExit: () => { ended = true; } });
  await handle.stop();
  await until(() => ended, 'onExit');
});

test('timeoutMs ends it, with a TimeoutError', async () => {
  let error;
  await watched({ timeoutMs: 4000, onExit: (why) => { error = why ?? 'nothing'; } });
  await until(() => error, 'onExit');
  assert.equal(error.constructor, sdk.TimeoutError);
});

test('what cannot be watched', async () => {
  const { files } = await common();
  await rejects(files.watchDir('/no/such', () => {}), FileNotFoundError);
  await files.write('a-file', '');
  await rejects(files.watchDir('a-file', () => {}), InvalidArgumentError);
});

test('ten thousand events: none is invented, the stream lives', async () => {
  const { dir, events, handle, saw, shell } = await watched();
  await shell('for i in $(seq 3000); do echo >f$i; done');
  await shell('touch last').catch(() => {});
  await saw(FilesystemEventType.CREATE, 'last', 8000).catch(() => {});
  assert.ok(events.length > 100, `${events.length} events`);
  assert.ok(events.every(({ name }) => /^(f\d+|last)$/.test(name)), dir);
  await handle.stop();
});

test('killed under it: onExit says so', 'healthCheck', async () => {
  const sandbox = await box();
  let error;
  await sandbox.files.watchDir('/home/user', () => {}, { timeoutMs: 0, onExit: (why) => { error = why ?? 'nothing'; } });
  await Sandbox.kill(sandbox.sandboxId);
  await until(() => error, 'onExit');
  assert.match(String(error.message), /The sandbox was killed or reached its end of life while the request was in flight\.$/);
});

test('watching in a sandbox that is gone', async () => {
  const sandbox = await box();
  await sandbox.kill();
  const error = await caught(sandbox.files.watchDir('/home/user', () => {}));
  assert.equal(error.constructor, sdk.SandboxNotFoundError);
});
