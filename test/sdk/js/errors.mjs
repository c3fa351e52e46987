// SPDX-License-Identifier: Apache-2.0
//
// What goes wrong has a class. $LIMITED_URL and $LIMITED_KEY are a second service with room for two
// sandboxes of a key; $OTHER_KEY is another key of the first.
import assert from 'node:assert/strict';
import { Sandbox, box, caught, common, rejects, sdk, test, version } from './harness.mjs';

const { AuthenticationError, RateLimitError, SandboxError, SandboxNotFoundError } = sdk;
const limited = { apiUrl: process.env.LIMITED_URL, sandboxUrl: process.env.LIMITED_URL, apiKey: process.env.LIMITED_KEY };
const other = { apiKey: process.env.OTHER_KEY };

test('no key', async () => {
  const saved = process.env.E2B_API_KEY;
  delete process.env.E2B_API_KEY;
  try {
    await rejects(Sandbox.create(), AuthenticationError, /API key/);
  } finally {
    process.env.E2B_API_KEY = saved;
  }
});

test('a wrong key', async () => {
  await rejects(Sandbox.create({ apiKey: `e2b_${'0'.repeat(40)}` }), AuthenticationError, /^Unauthorized/);
});

test('another key\'s sandbox is none', async () => {
  const { sandboxId } = await common();
  await rejects(Sandbox.getInfo(sandboxId, other), SandboxNotFoundError);
  await rejects(Sandbox.connect(sandboxId, other), SandboxNotFoundError);
  await rejects(Sandbox.setTimeout(sandboxId, 1000, other), SandboxNotFoundError);
  await rejects(Sandbox.pause(sandboxId, other), SandboxNotFoundError);
  assert.equal(await Sandbox.kill(sandboxId, other), false);
  const listed = await Sandbox.list({ ...other, limit: 100 }).nextItems();
  assert.ok(!listed.some((item) => item.sandboxId === sandboxId));
  assert.equal(await (await common()).isRunning(), true);
});

test('a sandbox with a wrong token', async () => {
  const { sandboxId } = await common();
  const impostor = new Sandbox({ sandboxId, envdVersion: '0.6.13', envdAccessToken: 'wrong' });
  await rejects(impostor.commands.run('id'), AuthenticationError);
  await rejects(impostor.files.list('/'), AuthenticationError);
  await rejects(impostor.files.read('/etc/passwd'), AuthenticationError);
  await rejects(impostor.files.write('/tmp/x', 'x'), AuthenticationError);
});

test('a sandbox without a token', async () => {
  const { sandboxId } = await common();
  const impostor = new Sandbox({ sandboxId, envdVersion: '0.6.13' });
  await rejects(impostor.commands.run('id'), AuthenticationError);
  await rejects(impostor.files.list('/'), AuthenticationError);
  await rejects(impostor.files.read('/etc/passwd'), AuthenticationError, /signature/);
});

test('more sandboxes than there is room for', async () => {
  const made = [];
  try {
    for (let i = 0; i < 2; i++) made.push(await Sandbox.create(limited));
    await rejects(Sandbox.create({ ...limited, retries: 0 }), RateLimitError, /^Rate limit exceeded/);
    await made.pop().kill();
    made.push(await Sandbox.create({ ...limited, retries: 0 }));
  } finally {
    for (const sandbox of made) await Sandbox.kill(sandbox.sandboxId, limited);
  }
});

test('nobody there', async () => {
  const error = await caught(Sandbox.create({ apiUrl: 'http://127.0.0.1:9', sandboxUrl: 'http://127.0.0.1:9' }));
  assert.ok(error instanceof Error);
});

test('a request that takes too long', async () => {
  const error = await caught(Sandbox.list({ requestTimeoutMs: 1 }).nextItems().then(async () => {
    throw new DOMException('quick enough', 'TimeoutError');
  }));
  assert.match(error.name, /TimeoutError|AbortError/, `${version}: ${error}`);
});

test('the message of a 4xx is for people, without a path of the host', async () => {
  const error = await caught(box({ timeoutMs: -5000 }));
  assert.equal(error.constructor, SandboxError);
  assert.doesNotMatch(error.message, /\/(tmp|var|home|root|proc|work)\//);
});
