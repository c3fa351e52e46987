// SPDX-License-Identifier: Apache-2.0
//
// Commands: run, streamed, in the background, with input, with a time limit, killed, found again.
import assert from 'node:assert/strict';
import { Sandbox, box, caught, common, rejects, sdk, sleep, test, until } from './harness.mjs';

const { CommandExitError, InvalidArgumentError, NotFoundError, TimeoutError } = sdk;
const run = async (...args) => (await common()).commands.run(...args);
const output = async (...args) => (await run(...args)).stdout;

test('output, errors and status of a command', async () => {
  const result = await run('echo out; echo err >&2');
  assert.equal(result.stdout, 'out\n');
  assert.equal(result.stderr, 'err\n');
  assert.equal(result.exitCode, 0);
  assert.ok(!result.error);
});

for (const code of [1, 2, 42, 126, 127, 255]) {
  test(`exit status ${code}`, async () => {
    const error = await rejects(run(`echo out; echo err >&2; exit ${code}`), CommandExitError, new RegExp(`^exit status ${code}$`));
    assert.equal(error.exitCode, code);
    assert.equal(error.error, `exit status ${code}`);
    assert.equal(error.stdout, 'out\n');
    assert.equal(error.stderr, 'err\n');
  });
}

test('a command that ends by a signal', async () => {
  const error = await rejects(run('kill -9 $$'), CommandExitError);
  assert.equal(error.exitCode, -1);
  assert.equal(error.error, 'signal: killed');
});

test('a program that is not there', async () => {
  const error = await rejects(run('no-such-program'), CommandExitError);
  assert.equal(error.exitCode, 127);
  assert.match(error.stderr, /not found/);
});

test('a login shell in the home directory', async () => {
  assert.equal(await output('pwd; echo $HOME $USER $LOGNAME; id -u; shopt -q login_shell && echo login'),
    '/home/user\n/home/user user user\n1000\nlogin\n');
});

test('cwd: absolute, relative, with a tilde', async () => {
  await run('mkdir -p dir/sub');
  assert.equal(await output('pwd', { cwd: '/tmp' }), '/tmp\n');
  assert.equal(await output('pwd', { cwd: 'dir/sub' }), '/home/user/dir/sub\n');
  assert.equal(await output('pwd', { cwd: '~/dir' }), '/home/user/dir\n');
});

test('cwd that does not exist', async () => {
  await rejects(run('pwd', { cwd: '/no/such' }), InvalidArgumentError, /cwd '\/no\/such' does not exist/);
});

test('envs: of this command, over those of the sandbox', async () => {
  const sandbox = await box({ envs: { A: 'sandbox', B: 'sandbox' } });
  const { stdout } = await sandbox.commands.run('echo $A $B $C', { envs: { B: 'command', C: 'it\'s "new" $HOME' } });
  assert.equal(stdout, 'sandbox command it\'s "new" $HOME\n');
  assert.equal((await sandbox.commands.run('echo $A $B $C')).stdout, 'sandbox sandbox\n');
});

test('user root', async () => {
  assert.equal(await output('id -u; id -un; pwd; echo $HOME', { user: 'root' }), '0\nroot\n/root\n/root\n');
  assert.equal(await output('touch /etc/by-root && stat -c %U /etc/by-root', { user: 'root' }), 'root\n');
});

test('user by name', async () => {
  assert.equal(await output('id -un', { user: 'user' }), 'user\n');
});

test('a user that does not exist', async () => {
  await rejects(run('true', { user: 'nobody-of-that-name' }), sdk.AuthenticationError, /invalid username: 'nobody-of-that-name'/);
});

test('sudo, without a password', async () => {
  assert.equal(await output('sudo id -un'), 'root\n');
  assert.equal(await output('sudo sh -c "echo x >/etc/by-sudo"; stat -c %U /etc/by-sudo'), 'root\n');
  assert.equal(await output('echo through | sudo cat'), 'through\n');
  const error = await rejects(run('sudo sh -c "exit 7"'), CommandExitError);
  assert.equal(error.exitCode, 7);
});

test('sudo -u, and sudo of nothing harmful: no way out', async () => {
  assert.equal(await output('sudo -u user id -un'), 'user\n');
  const error = await rejects(run('sudo mount -t tmpfs none /mnt'), CommandExitError);
  assert.notEqual(error.exitCode, 0);
});

test('standard input is empty unless asked for', async () => {
  assert.equal(await output('cat; echo end'), 'end\n');
});

test('callbacks: as it comes, in order', async () => {
  const seen = [];
  const result = await run('for i in 1 2 3; do echo $i; echo e$i >&2; sleep 1; done', {
    onStdout: (data) => { seen.push([data, Date.now()]); },
    onStderr: (data) => { seen.push([data, Date.now()]); },
  });
  assert.equal(seen.map(([data]) => data).filter((data) => !data.startsWith('e')).join(''), result.stdout);
  assert.equal(seen.map(([data]) => data).filter((data) => data.startsWith('e')).join(''), result.stderr);
  // It did not come all at once.
  assert.ok(seen.at(-1)[1] - seen[0][1] > 400, 'streamed');
});

test('in the background: wait()', async () => {
  const sandbox = await common();
  const handle = await sandbox.commands.run('read x; echo done; exit 3', { background: true, stdin: true });
  assert.ok(Number.isInteger(handle.pid) && handle.pid > 1);
  assert.equal(handle.exitCode, undefined);
  await sandbox.commands.sendStdin(handle.pid, '\n');
  const error = await rejects(handle.wait(), CommandExitError);
  assert.equal(error.exitCode, 3);
  assert.equal(handle.stdout, 'done\n');
  assert.equal(handle.exitCode, 3);
});

test('its process id is that of the command', async () => {
  const sandbox = await common();
  const handle = await sandbox.commands.run('echo $$; sleep 30', { background: true });
  await until(() => handle.stdout.includes('\n'), 'output');
  assert.equal(Number(handle.stdout), handle.pid);
  await run(`kill -0 ${handle.pid}`);
  await handle.kill();
});

test('kill(): once true, then false', async () => {
  const sandbox = await common();
  const handle = await sandbox.commands.run('sleep 100', { background: true, timeoutMs: 0 });
  assert.equal(await handle.kill(), true);
  const error = await rejects(handle.wait(), CommandExitError, /^signal: killed$/);
  assert.equal(error.exitCode, -1);
  await until(async () => !(await sandbox.commands.list()).some(({ pid }) => pid === handle.pid), 'it is off the list');
  assert.equal(await sandbox.commands.kill(handle.pid), false);
  assert.equal(await sandbox.commands.kill(4_000_000), false);
});

test('kill(): does not wait for what it left behind', async () => {
  const sandbox = await common();
  const handle = await sandbox.commands.run('sleep 50 & sleep 60', { background: true, timeoutMs: 0 });
  await sleep(200);
  const before = Date.now();
  assert.equal(await handle.kill(), true);
  await caught(handle.wait());
  assert.ok(Date.now() - before < 30_000);
});

test('list(): what runs, as it was started', async () => {
  const sandbox = await box();
  assert.deepEqual(await sandbox.commands.list(), []);
  const handle = await sandbox.commands.run('sleep 100', { background: true, timeoutMs: 0, cwd: '/tmp', envs: { X: 'y' } });
  const [info, ...others] = await sandbox.commands.list();
  assert.deepEqual(others, []);
  assert.equal(info.pid, handle.pid);
  assert.equal(info.cmd, '/bin/bash');
  assert.deepEqual(info.args, ['-l', '-c', 'sleep 100']);
  assert.equal(info.cwd, '/tmp');
  assert.deepEqual(info.envs, { X: 'y' });
  await handle.kill();
  await until(async () => (await sandbox.commands.list()).length === 0, 'the list is empty');
});

test('disconnect() leaves it running; connect() reads on', async () => {
  const sandbox = await common();
  const handle = await sandbox.commands.run('while :; do echo tick; sleep 0.05; done', { background: true, timeoutMs: 0 });
  await until(() => handle.stdout.length > 10, 'ticks');
  await handle.disconnect();
  await sleep(300);
  assert.ok((await sandbox.commands.list()).some(({ pid }) => pid === handle.pid));
  let seen = '';
  const again = await sandbox.commands.connect(handle.pid, { onStdout: (data) => { seen += data; } });
  assert.equal(again.pid, handle.pid);
  await until(() => seen.length > 20, 'ticks again');
  assert.match(seen, /^(tick\n)+$/);
  await again.kill();
  await rejects(again.wait(), CommandExitError);
});

test('connect(): several at once see the same', async () => {
  const sandbox = await common();
  const handle = await sandbox.commands.run('read; echo answer; exit 5', { background: true, stdin: true });
  const others = await Promise.all([1, 2, 3].map(() => sandbox.commands.connect(handle.pid)));
  await sandbox.commands.sendStdin(handle.pid, 'go\n');
  for (const each of [handle, ...others]) {
    const error = await rejects(each.wait(), CommandExitError);
    assert.equal(error.exitCode, 5);
    assert.equal(each.stdout, 'answer\n');
  }
});

test('connect(): a moment after the end there is still the status', async () => {
  const sandbox = await common();
  const handle = await sandbox.commands.run('exit 9', { background: true });
  await caught(handle.wait());
  const late = await sandbox.commands.connect(handle.pid);
  assert.equal((await rejects(late.wait(), CommandExitError)).exitCode, 9);
});

test('connect() to a process that is not there', async () => {
  const sandbox = await common();
  await rejects(sandbox.commands.connect(4_000_000), NotFoundError, /process with pid 4000000 not found/);
});

test('stdin: sendStdin() and closeStdin()', async () => {
  const sandbox = await common();
  const handle = await sandbox.commands.run('cat; echo end', { background: true, stdin: true });
  await sandbox.commands.sendStdin(handle.pid, 'one\n');
  await until(() => handle.stdout === 'one\n', 'the echo');
  await sandbox.commands.sendStdin(handle.pid, 'zwei é🚀\n');
  await sandbox.commands.closeStdin(handle.pid);
  assert.equal((await handle.wait()).stdout, 'one\nzwei é🚀\nend\n');
});

test('stdin: bytes, and many of them', async () => {
  const sandbox = await common();
  const handle = await sandbox.commands.run('wc -c; ', { background: true, stdin: true });
  const piece = new Uint8Array(200_000).fill(255);
  for (let i = 0; i < 10; i++) await sandbox.commands.sendStdin(handle.pid, piece);
  await sandbox.commands.closeStdin(handle.pid);
  assert.equal((await handle.wait()).stdout.trim(), '2000000');
});

test('stdin: through the handle', 'handleStdin', async () => {
  const sandbox = await common();
  const handle = await sandbox.commands.run('read x; echo got $x; cat', { background: true, stdin: true });
  await handle.sendStdin('this\n');
  await handle.closeStdin();
  assert.equal((await handle.wait()).stdout, 'got this\n');
});

test('stdin: of a command that has none, and of no command', async () => {
  const sandbox = await common();
  const handle = await sandbox.commands.run('sleep 20', { background: true });
  assert.ok(await caught(sandbox.commands.sendStdin(handle.pid, 'x')) instanceof sdk.SandboxError);
  await handle.kill();
  await rejects(sandbox.commands.sendStdin(4_000_000, 'x'), NotFoundError);
  await rejects(sandbox.commands.closeStdin(4_000_000), NotFoundError);
});

test('timeoutMs: the command is killed', async () => {
  const sandbox = await box();
  const before = Date.now();
  await rejects(sandbox.commands.run('sleep 100', { timeoutMs: 1000 }), TimeoutError, /deadline_exceeded|timed out|'timeoutMs'/);
  assert.ok(Date.now() - before < 30_000);
  await until(async () => (await sandbox.commands.list()).length === 0, 'nothing runs any more');
});

test('timeoutMs: holds also when nobody listens', async () => {
  const sandbox = await box();
  const handle = await sandbox.commands.run('sleep 100', { background: true, timeoutMs: 5000 });
  await handle.disconnect();
  assert.equal((await sandbox.commands.list()).length, 1);
  await until(async () => (await sandbox.commands.list()).length === 0, 'it is over');
});

test('timeoutMs of connect(): only the stream ends', async () => {
  const sandbox = await box();
  const handle = await sandbox.commands.run('sleep 100', { background: true, timeoutMs: 0 });
  const other = await sandbox.commands.connect(handle.pid, { timeoutMs: 4000 });
  await rejects(other.wait(), TimeoutError);
  assert.equal((await sandbox.commands.list()).length, 1);
  await handle.kill();
});

test('16 MiB of output, whole', async () => {
  const { stdout } = await run('yes 0123456789abcde | head -c 16777216', { timeoutMs: 80_000 });
  assert.equal(stdout.length, 16_777_216);
  assert.ok(stdout === '0123456789abcde\n'.repeat(1_048_576));
});

test('output that is no text does no harm', async () => {
  const { stdout } = await run('printf "a\\0b\\377\\376c\\n"; head -c 100000 /dev/urandom >/dev/stderr');
  assert.equal(stdout, 'a\0b��c\n');
});

test('characters are not cut between chunks', 'wholeCharacters', async () => {
  const { stdout } = await run('yes é🚀 | head -c 700000');
  assert.ok(!stdout.slice(0, -4).includes('�'));
});

test('one byte at a time, 2,000 times', async () => {
  const { stdout } = await run('for i in $(seq 2000); do printf x; done');
  assert.equal(stdout, 'x'.repeat(2000));
});

test('end comes after all output, also of children', async () => {
  const { stdout } = await run('(sleep 0.7; echo late) & echo early');
  assert.equal(stdout, 'early\nlate\n');
});

test('a long command line and many variables', async () => {
  const long = 'x'.repeat(100_000);
  assert.equal((await output(`echo ${long}`)).length, 100_001);
  const envs = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`V${i}`, String(i)]));
  assert.equal(await output('echo $V0 $V100 $V199', { envs }), '0 100 199\n');
});

test('quotes, new lines and odd characters arrive as they are', async () => {
  assert.equal(await output(`printf '%s' "it's" '"' '$HOME' '\\n' 'é🚀'`), `it's"$HOME\\né🚀`);
  assert.equal(await output('echo one\necho two'), 'one\ntwo\n');
});

test('thirty commands at once in one sandbox', async () => {
  const sandbox = await common();
  const results = await Promise.all(Array.from({ length: 30 }, (_, i) => sandbox.commands.run(`sleep 0.2; echo ${i}`)));
  assert.deepEqual(results.map(({ stdout }) => stdout), results.map((_, i) => `${i}\n`));
});

test('given up by its client, a command runs on', 'abortSignal', async () => {
  const sandbox = await box();
  const controller = new AbortController();
  const running = caught(sandbox.commands.run('sleep 60', { signal: controller.signal, timeoutMs: 0 }));
  await until(async () => (await sandbox.commands.list()).length === 1, 'it runs');
  controller.abort();
  assert.ok(await running instanceof Error);
  await sleep(300);
  assert.equal((await sandbox.commands.list()).length, 1);
});

test('killed under a running command: says so', 'healthCheck', async () => {
  const sandbox = await box();
  const handle = await sandbox.commands.run('sleep 60', { background: true, timeoutMs: 0 });
  const waiting = caught(handle.wait());
  await Sandbox.kill(sandbox.sandboxId);
  const error = await waiting;
  assert.equal(error.constructor, TimeoutError);
  assert.match(error.message, /terminated: The sandbox was killed or reached its end of life while the request was in flight\.$/);
});

test('killed under a running command: it ends at once', async () => {
  const sandbox = await box();
  const handle = await sandbox.commands.run('sleep 60', { background: true, timeoutMs: 0 });
  const waiting = caught(handle.wait());
  const before = Date.now();
  await Sandbox.kill(sandbox.sandboxId);
  assert.ok(await waiting instanceof sdk.SandboxError);
  assert.ok(Date.now() - before < 30_000);
});
