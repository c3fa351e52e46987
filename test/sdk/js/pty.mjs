// SPDX-License-Identifier: Apache-2.0
//
// Terminals.
import assert from 'node:assert/strict';
import { caught, common, rejects, sdk, test, until } from './harness.mjs';

const { CommandExitError } = sdk;
const bytes = (text) => new TextEncoder().encode(text);

async function terminal(opts = {}) {
  const sandbox = await common();
  let text = '';
  const decoder = new TextDecoder();
  const handle = await sandbox.pty.create({
    cols: 80, rows: 24, timeoutMs: 60_000, ...opts,
    onData: (data) => { text += decoder.decode(data, { stream: true }); },
  });
  const { pty } = sandbox;
  // Without what readline switches on and off around each line.
  const seen = () => text.replace(/\x1b\[\?2004[hl]\r?/g, '');
  return {
    sandbox, pty, handle, seen,
    type: (input) => pty.sendInput(handle.pid, bytes(input)),
    saw: (pattern) => until(() => pattern.exec(seen()), `${pattern} on the terminal`).catch((error) => {
      throw new Error(`${error.message}, which shows ${JSON.stringify(text.slice(-400))}`);
    }),
  };
}

test('a shell on a terminal: input, output, exit', async () => {
  const { handle, saw, type } = await terminal();
  await type('tty; echo $((6*7))\n');
  await saw(/\/dev\/pts\/\d+\r\n42\r\n/);
  await type('exit\n');
  assert.equal((await handle.wait()).exitCode, 0);
});

test('its exit status', async () => {
  const { handle, type } = await terminal();
  await type('exit 5\n');
  assert.equal((await rejects(handle.wait(), CommandExitError)).exitCode, 5);
});

test('size, and another size', async () => {
  const { handle, pty, saw, type } = await terminal({ cols: 100, rows: 30 });
  await type('stty size\n');
  await saw(/30 100\r\n/);
  await pty.resize(handle.pid, { cols: 132, rows: 50 });
  await type('stty size\n');
  await saw(/50 132\r\n/);
  await handle.kill();
});

test('a program is told of the new size', async () => {
  const { handle, pty, saw, type } = await terminal();
  await type("trap 'echo changed' WINCH; echo ready\n");
  await saw(/\nready\r\n/);
  await pty.resize(handle.pid, { cols: 90, rows: 20 });
  await type('\n');
  await saw(/[\n ]changed\r\n/);
  await handle.kill();
});

test('control-C interrupts, control-D ends', async () => {
  const { handle, saw, type } = await terminal();
  await type('echo be""gun; sleep 100; echo after\n');
  await saw(/\nbegun\r\n/);
  await type('\x03');
  await saw(/\^C[^]*\$ $/); // what is typed before the prompt is thrown away with the interrupt
  await type('echo $?\n');
  await saw(/\n130\r\n/);
  await type('\x04');
  await caught(handle.wait()).catch(() => {});
  assert.ok(handle.exitCode !== undefined);
});

test('environment, directory and user', async () => {
  const { handle, saw, type } = await terminal({ envs: { MINE: 'yes' }, cwd: '/tmp', user: 'root' });
  await type('echo "[$TERM|$LANG|$LC_ALL|$MINE|$PWD|$(id -un)]"\n');
  await saw(/\[xterm-256color\|C\.UTF-8\|C\.UTF-8\|yes\|\/tmp\|root\]/);
  await handle.kill();
});

test('TERM of one\'s own', async () => {
  const { handle, saw, type } = await terminal({ envs: { TERM: 'vt100' } });
  await type('echo "[$TERM]"\n');
  await saw(/\[vt100\]/);
  await handle.kill();
});

test('characters of many bytes', async () => {
  const { handle, saw, type } = await terminal();
  await type("printf '[%s]\\n' é🚀\n");
  await saw(/\n\[é🚀\]\r\n/);
  await handle.kill();
});

test('kill(): once true, then false', async () => {
  const { handle, pty } = await terminal();
  assert.equal(await pty.kill(handle.pid), true);
  assert.ok(await caught(handle.wait()) instanceof Error);
  await until(async () => !await pty.kill(handle.pid), 'it is gone');
});

test('it is in the list', async () => {
  const { sandbox, handle } = await terminal();
  const info = (await sandbox.commands.list()).find(({ pid }) => pid === handle.pid);
  assert.equal(info.cmd, '/bin/bash');
  assert.deepEqual(info.args, ['-i', '-l']);
  await handle.kill();
});

test('disconnect() and connect()', async () => {
  const { handle, pty, saw, type } = await terminal();
  await type('X=kept; echo set\n');
  await saw(/\nset\r\n/);
  await handle.disconnect();
  let text = '';
  const again = await pty.connect(handle.pid, { onData: (data) => { text += Buffer.from(data).toString(); } });
  await pty.sendInput(again.pid, bytes('echo "<$X>"\n'));
  await until(() => text.includes('<kept>'), 'the variable');
  await again.kill();
});

test('much output', async () => {
  const { handle, seen, saw, type } = await terminal();
  await type('seq 100000; echo the-end\n');
  await saw(/\nthe-end\r\n/);
  const got = seen().match(/\n\d+\r/g).length;
  assert.ok(got >= 100_000, `${got} lines`);
  await handle.kill();
});

test('timeoutMs ends it', async () => {
  const { handle } = await terminal({ timeoutMs: 4000 });
  assert.equal((await caught(handle.wait())).constructor, sdk.TimeoutError);
});

test('input and size of no terminal', async () => {
  const { commands, pty } = await common();
  await rejects(pty.sendInput(4_000_000, bytes('x')), sdk.NotFoundError);
  await rejects(pty.resize(4_000_000, { cols: 1, rows: 1 }), sdk.NotFoundError);
  const command = await commands.run('sleep 30', { background: true, stdin: true });
  assert.ok(await caught(pty.sendInput(command.pid, bytes('x'))) instanceof sdk.SandboxError);
  await command.kill();
});
