// SPDX-License-Identifier: Apache-2.0
//
// Over TLS and with a name for every sandbox: api.DOMAIN, PORT-ID.DOMAIN. Only E2B_DOMAIN says where.
import assert from 'node:assert/strict';
import { Sandbox, box, caught, has, sdk, test } from './harness.mjs';

test('only the domain is known: create, run, read, write', async () => {
  const sandbox = await box();
  assert.equal((await sandbox.commands.run('echo over TLS')).stdout, 'over TLS\n');
  await sandbox.files.write('f', 'content');
  assert.equal(await sandbox.files.read('f'), 'content');
  assert.equal(await sandbox.isRunning(), true);
  await Sandbox.kill(sandbox.sandboxId);
  assert.equal(await sandbox.isRunning(), false);
});

test('getHost() is a name below the domain', async () => {
  const sandbox = await box();
  assert.equal(sandbox.getHost(8000), `8000-${sandbox.sandboxId}.${process.env.E2B_DOMAIN}`);
});

test('URLs have the sandbox in their name', async () => {
  const sandbox = await box();
  await sandbox.files.write('f', 'content');
  const url = await sandbox.downloadUrl('f');
  assert.ok(url.includes(`49983-${sandbox.sandboxId}.`), url);
  assert.equal(await (await fetch(url)).text(), 'content');
});

test('a stream and a terminal', async () => {
  const sandbox = await box();
  const handle = await sandbox.commands.run('read x; echo got $x', { background: true, stdin: true });
  await sandbox.commands.sendStdin(handle.pid, 'it\n');
  assert.equal((await handle.wait()).stdout, 'got it\n');
  const terminal = await sandbox.pty.create({ cols: 80, rows: 24, onData: () => {} });
  await sandbox.pty.sendInput(terminal.pid, new TextEncoder().encode('exit\n'));
  assert.equal((await terminal.wait()).exitCode, 0);
});

test('killed under a running command', async () => {
  const sandbox = await box();
  const handle = await sandbox.commands.run('sleep 60', { background: true, timeoutMs: 0 });
  const waiting = caught(handle.wait());
  await Sandbox.kill(sandbox.sandboxId);
  const error = await waiting;
  assert.ok(error instanceof sdk.SandboxError, String(error));
  if (has('healthCheck')) assert.match(error.message, /The sandbox was killed or reached its end of life/);
});

test('20 MiB there and back', async () => {
  const sandbox = await box();
  const bytes = new Uint8Array(20 * 1_048_576).map((_, i) => i * 7);
  await sandbox.files.write('big', new Blob([bytes]));
  const read = await sandbox.files.read('big', { format: 'bytes' });
  assert.ok(Buffer.compare(Buffer.from(read), Buffer.from(bytes)) === 0);
});
