// SPDX-License-Identifier: Apache-2.0
//
// Making sandboxes with every option, finding them again, ending them.
import assert from 'node:assert/strict';
import { Sandbox, box, caught, common, has, made_elsewhere, rejects, sdk, test, until } from './harness.mjs';

const { SandboxError, SandboxNotFoundError } = sdk;
const near = (got, want, slack, what) =>
  assert.ok(Math.abs(got - want) <= slack, `${what}: ${got} should be near ${want}`);

test('create() with nothing: a sandbox that runs', async () => {
  const sandbox = await box();
  assert.match(sandbox.sandboxId, /^[a-z0-9]+$/);
  assert.equal(await sandbox.isRunning(), true);
  assert.equal((await sandbox.commands.run('echo hello')).stdout, 'hello\n');
});

test('getInfo() of it: everything that was left to us', async () => {
  const before = Date.now();
  const sandbox = await box();
  const info = await sandbox.getInfo();
  assert.equal(info.sandboxId, sandbox.sandboxId);
  assert.equal(info.templateId, 'base');
  assert.equal(info.state, 'running');
  assert.deepEqual(info.metadata, {});
  assert.ok(Number.isInteger(info.cpuCount) && info.cpuCount >= 1);
  assert.ok(Number.isInteger(info.memoryMB) && info.memoryMB >= 16);
  assert.match(info.envdVersion, /^\d+\.\d+\.\d+$/);
  near(info.startedAt.getTime(), before, 30_000, 'startedAt');
  near(info.endAt - info.startedAt, 300_000, 2000, 'time-out');
  assert.deepEqual(await Sandbox.getInfo(sandbox.sandboxId), info);
});

test('getInfo(): lifecycle and network', 'fullInfo', async () => {
  const info = await (await common()).getInfo();
  assert.deepEqual(info.lifecycle, { onTimeout: 'kill', autoResume: false });
  assert.deepEqual(info.volumeMounts, []);
});

test('getFullInfo() agrees with getInfo()', async () => {
  const sandbox = await common();
  const [full, info] = [await Sandbox.getFullInfo(sandbox.sandboxId), await sandbox.getInfo()];
  for (const [name, value] of Object.entries(info)) assert.deepEqual(full[name], value, name);
});

for (const template of ['base', 'code-interpreter-v1', 'base:default']) {
  test(`create('${template}')`, async () => {
    const sandbox = await box(template);
    assert.equal((await sandbox.commands.run('id -un')).stdout, 'user\n');
    const { templateId, name } = await sandbox.getInfo();
    assert.ok([templateId, name].includes(template.split(':')[0]), `${templateId}, ${name}`);
  });
}

test('create({ template })', 'templateOption', async () => {
  const sandbox = await box({ template: 'code-interpreter-v1' });
  const { templateId, name } = await sandbox.getInfo();
  assert.ok([templateId, name].includes('code-interpreter-v1'));
});

test('envs reach every command, metadata comes back', async () => {
  const metadata = { user: 'u-1', 'k 1': 'v/é&=+%?#', emoji: '🚀', empty: '' };
  const envs = { PLAIN: 'x', SPACED: 'a  b', QUOTED: `'"$HOME\``, UTF8: 'é🚀', EMPTY: '' };
  const sandbox = await box({ metadata, envs });
  const { stdout } = await sandbox.commands.run('env -0');
  const seen = Object.fromEntries(stdout.split('\0').map((pair) => pair.split(/=(.*)/s, 2)));
  for (const [name, value] of Object.entries(envs)) assert.equal(seen[name], value, name);
  assert.equal(seen.E2B_SANDBOX, 'true');
  assert.equal(seen.E2B_SANDBOX_ID, sandbox.sandboxId);
  assert.equal(seen.E2B_TEMPLATE_ID, (await sandbox.getInfo()).templateId);
  assert.deepEqual((await sandbox.getInfo()).metadata, metadata);
});

test('timeoutMs: seconds, rounded up', async () => {
  const info = await (await box({ timeoutMs: 61_500 })).getInfo();
  near(info.endAt - info.startedAt, 62_000, 1000, 'time-out');
});

test('secure: false has no token, and URLs without a signature', 'insecure', async () => {
  const sandbox = await box({ secure: false });
  await sandbox.files.write('f', 'open');
  assert.doesNotMatch(await sandbox.downloadUrl('f'), /signature/);
  assert.equal(await sandbox.files.read('f'), 'open');
  assert.equal((await sandbox.commands.run('echo works')).stdout, 'works\n');
});

test('allowInternetAccess: both are taken', async () => {
  for (const allowInternetAccess of [true, false]) {
    const sandbox = await box({ allowInternetAccess });
    assert.equal(await sandbox.isRunning(), true);
  }
});

test('allowInternetAccess: false is told by getInfo()', 'fullInfo', async () => {
  const sandbox = await box({ allowInternetAccess: false });
  assert.equal((await sandbox.getInfo()).allowInternetAccess, false);
});

test('network.allowPublicTraffic: false comes with a token, also later', async () => {
  const sandbox = await box({ network: { allowPublicTraffic: false } });
  assert.ok(sandbox.trafficAccessToken);
  const again = await Sandbox.connect(sandbox.sandboxId);
  assert.equal(again.trafficAccessToken, sandbox.trafficAccessToken);
  assert.equal((await again.commands.run('echo still')).stdout, 'still\n');
});

// What the service cannot do is refused by name.
async function refused(opts, word) {
  const error = await caught(box(opts));
  assert.equal(error.constructor, SandboxError);
  assert.match(error.message, /^400: /);
  assert.ok(error.message.includes(word), `'${word}' is not named: ${error.message}`);
}

test('volumeMounts: refused by name', 'volumes', async () => {
  await refused({ volumeMounts: { '/mnt': 'volume' } }, 'volumeMounts');
});

test('iam: refused by name', 'iam', async () => {
  await refused({ iam: { tokens: { a: { audience: 'x', tokenType: 'JWT-SVID' } } } }, 'iam');
});

test('network.egressProxy: refused by name', 'iam', async () => {
  await refused({ network: { egressProxy: { address: '127.0.0.1:1080' } } }, 'egressProxy');
});

test('mcp: refused, and nothing is left running', async () => {
  const count = async () => (await Sandbox.list({ limit: 100 }).nextItems()).filter((s) => s.templateId === 'mcp-gateway').length;
  const before = await count();
  const error = await caught(box({ mcp: { duckduckgo: {} } }));
  assert.match(error.message, /mcp|not found/);
  assert.equal(await count(), before);
});

test('a template that does not exist', async () => {
  await rejects(box('no-such-template'), SandboxError, /^404: .*no-such-template.*not found/);
});

test('templates with impossible names', async () => {
  for (const name of ['UPPER CASE', '../base', 'base:', 'a/b/c/d', 'x'.repeat(300)]) {
    const error = await caught(box(name));
    assert.match(error.message, /^40[04]: /, name);
  }
});

test('time-outs that cannot be', async () => {
  await rejects(box({ timeoutMs: -1000 }), SandboxError, /^400: .*timeout/i);
  await rejects(box({ timeoutMs: 1000 * 3600 * 24 * 365 }), SandboxError, /^400: .*timeout/i);
});

test('connect() gives the same sandbox', async () => {
  const sandbox = await box({ envs: { A: 'b' } });
  await sandbox.files.write('here', 'yes');
  const again = await Sandbox.connect(sandbox.sandboxId);
  assert.equal(again.sandboxId, sandbox.sandboxId);
  assert.equal(await again.files.read('here'), 'yes');
  assert.equal((await again.commands.run('echo $A')).stdout, 'b\n');
  assert.equal(await sandbox.connect(), sandbox);
});

test('connect() to one that does not exist', async () => {
  await rejects(Sandbox.connect('inosuchsandbox'), SandboxNotFoundError, /^Paused sandbox inosuchsandbox not found$/);
});

test('kill: once true, then false', async () => {
  const sandbox = await box();
  assert.equal(await Sandbox.kill(sandbox.sandboxId), true);
  assert.equal(await Sandbox.kill(sandbox.sandboxId), false);
  assert.equal(await Sandbox.kill('inosuchsandbox'), false);
  assert.equal(await sandbox.isRunning(), false);
  await rejects(Sandbox.getInfo(sandbox.sandboxId), SandboxNotFoundError, / not found$/);
});

test('a killed sandbox is out of the list at once', async () => {
  const sandbox = await box();
  await sandbox.kill();
  const items = await Sandbox.list({ limit: 100 }).nextItems();
  assert.ok(!items.some(({ sandboxId }) => sandboxId === sandbox.sandboxId));
});

test('sandbox.kill() says whether it was there', 'killSaysWhether', async () => {
  const sandbox = await box();
  assert.equal(await sandbox.kill(), true);
  assert.equal(await sandbox.kill(), false);
});

test('getHost(): the port, the id and the domain', async () => {
  const sandbox = await common();
  assert.equal(sandbox.getHost(3000), `3000-${sandbox.sandboxId}.${sandbox.sandboxDomain}`);
  assert.match(sandbox.getMcpUrl(), /^https:\/\/50005-/);
});

test('getMcpToken() is what root keeps in a file', async () => {
  const sandbox = await box();
  await sandbox.files.write('/etc/mcp-gateway/.token', 'the token', { user: 'root' });
  assert.equal(await sandbox.getMcpToken(), 'the token');
});

test('betaCreate() with autoPause', 'betaCreate', async () => {
  const sandbox = made_elsewhere(await Sandbox.betaCreate({ autoPause: true, timeoutMs: 60_000 }));
  assert.equal((await sandbox.commands.run('echo beta')).stdout, 'beta\n');
});

test('new E2B(…): a client with options of its own', 'client', async () => {
  const client = new sdk.E2B({ apiKey: process.env.E2B_API_KEY, apiUrl: process.env.E2B_API_URL });
  const sandbox = made_elsewhere(await client.Sandbox.create());
  assert.equal((await sandbox.commands.run('echo bound')).stdout, 'bound\n');
});

test('getMetrics(): what programs and files take now', async () => {
  const sandbox = await box();
  await sandbox.commands.run('head -c 20000000 /dev/zero >zeros');
  const eater = await sandbox.commands.run('exec python3 -c "import time; x = b\'x\' * 50_000_000; time.sleep(60)"',
    { background: true });
  const last = await until(async () => {
    const newest = (await sandbox.getMetrics()).at(-1);
    return newest?.memUsed > 40_000_000 && newest;
  }, 'a metric with the memory', 30_000);
  near(last.timestamp.getTime(), Date.now(), 30_000, 'timestamp');
  assert.ok(last.cpuUsedPct >= 0 && last.cpuUsedPct <= 100 * last.cpuCount + 100, `${last.cpuUsedPct} %`);
  assert.ok(last.cpuCount >= 1);
  assert.ok(last.memUsed <= last.memTotal);
  assert.ok(last.diskUsed >= 20_000_000 && last.diskUsed <= last.diskTotal, `${last.diskUsed}`);
  if (has('memoryCache')) assert.ok(last.memCache >= 0);
  await eater.kill();
});

test('getMetrics(): of a time when it was not there', 'metricsRange', async () => {
  const sandbox = await common();
  const [start, end] = [new Date(Date.now() - 7_200_000), new Date(Date.now() - 3_600_000)];
  assert.deepEqual(await sandbox.getMetrics({ start, end }), []);
});

test('getMetrics(): of a sandbox that does not exist', async () => {
  const error = await caught(Sandbox.getMetrics('inosuchsandbox'));
  assert.ok(error instanceof SandboxError, error.constructor.name);
  assert.match(error.message, /not found|404/);
});

test('updateNetwork(): nothing is allowed out', 'updateNetwork', async () => {
  const sandbox = await box();
  await sandbox.updateNetwork({ allowInternetAccess: false });
  assert.equal((await sandbox.getInfo()).allowInternetAccess, false);
  await rejects(Sandbox.updateNetwork('inosuchsandbox', {}), SandboxNotFoundError, / not found$/);
});

test('twenty at once', async () => {
  const sandboxes = await Promise.all(Array.from({ length: 20 }, () => box()));
  assert.equal(new Set(sandboxes.map(({ sandboxId }) => sandboxId)).size, 20);
  const outputs = await Promise.all(sandboxes.map((sandbox, i) => sandbox.commands.run(`echo ${i}`)));
  assert.deepEqual(outputs.map(({ stdout }) => stdout), outputs.map((_, i) => `${i}\n`));
});
