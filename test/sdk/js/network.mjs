// SPDX-License-Identifier: Apache-2.0
//
// What a sandbox may reach, with a service that gives every public address, as E2B's does. All of them are the
// laboratory's own (test/net/lab.py).
import assert from 'node:assert/strict';
import { Sandbox, box, rejects, sdk, test } from './harness.mjs';

const { SandboxError } = sdk;
const ALL = '0.0.0.0/0';
const WEB = '45.67.90.10', OTHER = '45.67.90.20'; // web.example and other.example

async function reaches(sandbox, host, options = '') {
  const { stdout } = await sandbox.commands.run(`curl -s -o /dev/null -m 10 -w '%{http_code}' ${options} http://${host}/hello; exit 0`);
  return stdout === '200';
}

async function expect(sandbox, web, other) {
  assert.equal(await reaches(sandbox, 'web.example'), web, 'web.example');
  assert.equal(await reaches(sandbox, 'other.example'), other, 'other.example');
}

test('nothing said: everything public is reached, with and without the proxy', async () => {
  const sandbox = await box();
  await expect(sandbox, true, true);
  assert.equal(await reaches(sandbox, 'web.example', "--noproxy '*'"), true);
  assert.equal(await reaches(sandbox, '169.254.169.254'), false);
});

test('allowInternetAccess: false: nothing is', async () => {
  const sandbox = await box({ allowInternetAccess: false });
  await expect(sandbox, false, false);
});

test('network.denyOut: all but these', 'updateNetwork', async () => {
  const sandbox = await box({ network: { denyOut: [OTHER] } });
  await expect(sandbox, true, false);
  assert.deepEqual((await sandbox.getInfo()).network.denyOut, [OTHER]);
});

test('network.allowOut beats denyOut', 'updateNetwork', async () => {
  const sandbox = await box({ network: { allowOut: [WEB], denyOut: [ALL] } });
  assert.equal(await reaches(sandbox, WEB), true);
  assert.equal(await reaches(sandbox, OTHER), false);
});

test('network.allowOut with names, which need all traffic to be denied', 'updateNetwork', async () => {
  const sandbox = await box({ network: { allowOut: ['web.example', '*.wild.example'], denyOut: [ALL] } });
  await expect(sandbox, true, false);
  assert.equal(await reaches(sandbox, 'a.wild.example'), true);
  await rejects(Sandbox.create({ network: { allowOut: ['web.example'] } }), SandboxError,
    /^400: When specifying allowed domains in allow out, you must include 'ALL_TRAFFIC' in deny out to block all other traffic\.$/);
});

test('ALL_TRAFFIC and functions as lists', 'updateNetwork', async () => {
  const sandbox = await box({ network: { allowOut: () => ['web.example'], denyOut: ({ allTraffic }) => [allTraffic] } });
  await expect(sandbox, true, false);
  assert.equal(sdk.ALL_TRAFFIC, ALL);
});

test('malformed entries are named', 'updateNetwork', async () => {
  for (const [network, word] of [[{ allowOut: ['exa mple'] }, 'exa mple'], [{ denyOut: ['web.example'] }, 'web.example'],
    [{ denyOut: ['1.2.3.4/99'] }, '1.2.3.4/99']]) {
    await rejects(Sandbox.create({ network: { denyOut: [ALL], ...network } }), SandboxError, new RegExp(`^400: .*${word}`));
  }
});

test('updateNetwork() replaces everything while it runs', 'updateNetwork', async () => {
  const sandbox = await box();
  await sandbox.updateNetwork({ allowOut: ['web.example'], denyOut: [ALL] });
  await expect(sandbox, true, false);
  await Sandbox.updateNetwork(sandbox.sandboxId, { denyOut: [WEB] });
  await expect(sandbox, false, true);
  await rejects(sandbox.updateNetwork({ denyOut: ['nonsense'] }), SandboxError, /^400: .*nonsense/);
  await expect(sandbox, false, true);
  await sandbox.updateNetwork({ allowInternetAccess: false });
  await expect(sandbox, false, false);
  await sandbox.updateNetwork({});
  await expect(sandbox, true, true);
});

test('updateNetwork() gives a sandbox network that had none', 'updateNetwork', async () => {
  const sandbox = await box({ allowInternetAccess: false });
  await sandbox.updateNetwork({ allowOut: ['web.example'], denyOut: [ALL] });
  await expect(sandbox, true, false);
});

test('network.rules: headers are put into requests to their host, and opens nothing', 'updateNetwork', async () => {
  const rules = { 'api.example': [{ transform: { headers: { 'X-From-Rules': 'yes it is' } } }] };
  const sandbox = await box({ network: { rules, allowOut: ({ rules: all }) => [...all.keys()], denyOut: [ALL] } });
  assert.deepEqual((await sandbox.getInfo()).network.rules, rules);
  const { stdout } = await sandbox.commands.run('curl -s -m 10 http://api.example/seen');
  assert.ok(stdout.toLowerCase().includes('x-from-rules') && stdout.includes('yes it is'), stdout);
  const closed = await box({ network: { rules, denyOut: [ALL] } });
  assert.equal(await reaches(closed, 'api.example'), false);
});

test('a secret in a header: the host gets it, the sandbox does not', 'secrets', async () => {
  const { Secret } = sdk;
  const name = `sdk-network-${process.pid}`; // several versions run at once
  await Secret.create(name, 'very-hidden-value');
  try {
    const headers = { Authorization: `Bearer ${Secret.fill(name)}` };
    const sandbox = await box({ network: { rules: { 'api.example': [{ transform: { headers } }] }, allowOut: ['api.example'], denyOut: [ALL] } });
    const { stdout } = await sandbox.commands.run('curl -s -m 10 http://api.example/seen');
    assert.ok(stdout.includes('Bearer very-hidden-value'), stdout);
    const info = JSON.stringify(await sandbox.getInfo());
    assert.ok(info.includes(`\${e2b.secrets.${name}}`) && !info.includes('very-hidden-value'), info);
    assert.equal((await sandbox.commands.run('env; cat /proc/*/environ 2>/dev/null; exit 0')).stdout.includes('very-hidden'), false);
  } finally {
    await Secret.destroy(name);
  }
});

test('rules outlive pausing, and a fork has them', 'fork', async () => {
  const sandbox = await box({ network: { allowOut: ['web.example'], denyOut: [ALL] }, timeoutMs: 120_000 });
  await sandbox.pause();
  await expect(await Sandbox.connect(sandbox.sandboxId), true, false);
  const forks = await sandbox.fork({ timeoutMs: 60_000 });
  for (const each of [forks].flat()) {
    const copy = each.sandbox ?? each;
    await expect(copy, true, false);
    await copy.kill();
  }
});
