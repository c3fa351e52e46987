// SPDX-License-Identifier: Apache-2.0
//
// Secrets: made, changed, found by id and name, listed, destroyed; never given back. What they do in requests is
// tested where there are hosts to ask (test/net).
import assert from 'node:assert/strict';
import { rejects, sdk, test } from './harness.mjs';

const { Secret } = sdk;
const VALUE = 'a value that nobody sees again';

// Runs f with a secret that is destroyed behind it.
async function withSecret(f, name = 'sdk-token') {
  const made = await Secret.create(name, VALUE, { metadata: { purpose: 'test' } });
  try {
    await f(made);
  } finally {
    await Secret.destroy(made.secretId);
  }
}

test('create() and getInfo(), by id and by name', 'secrets', async () => {
  await withSecret(async (made) => {
    assert.equal(made.name, 'sdk-token');
    assert.equal(made.version, 1);
    assert.deepEqual(made.metadata, { purpose: 'test' });
    assert.ok(made.createdAt instanceof Date && Math.abs(Date.now() - made.createdAt) < 60_000);
    assert.deepEqual(await Secret.getInfo(made.secretId), made);
    assert.deepEqual(await Secret.getInfo('SDK-Token'), made);
    assert.ok(!JSON.stringify(made).includes(VALUE));
  });
});

test('update() makes a new version', 'secrets', async () => {
  await withSecret(async (made) => {
    const second = await Secret.update('sdk-token', 'another value');
    assert.equal(second.version, 2);
    assert.equal(second.secretId, made.secretId);
    assert.deepEqual(second.metadata, { purpose: 'test' });
    const third = await Secret.update(made.secretId, 'a third', { metadata: {} });
    assert.equal(third.version, 3);
    assert.deepEqual(third.metadata, {});
  });
});

test('exists() and destroy()', 'secrets', async () => {
  await withSecret(async (made) => {
    assert.equal(await Secret.exists('sdk-token'), true);
    assert.equal(await Secret.destroy('sdk-token'), true);
    assert.equal(await Secret.exists(made.secretId), false);
    assert.equal(await Secret.destroy('sdk-token'), false);
    await rejects(Secret.getInfo('sdk-token'), sdk.SecretNotFoundError);
    await rejects(Secret.update('sdk-token', 'x'), sdk.SecretNotFoundError);
  });
});

test('list() in pages', 'secrets', async () => {
  const names = ['sdk-a', 'sdk-b', 'sdk-c'];
  for (const name of names) await Secret.create(name, VALUE);
  try {
    const paginator = Secret.list({ limit: 2 });
    const found = [];
    while (paginator.hasNext) found.push(...await paginator.nextItems());
    assert.deepEqual(found.map(({ name }) => name).filter((name) => names.includes(name)), names);
    assert.ok(!JSON.stringify(found).includes(VALUE));
  } finally {
    for (const name of names) await Secret.destroy(name);
  }
});

test('a name that is taken, and one that cannot be', 'secrets', async () => {
  await withSecret(async () => {
    await rejects(Secret.create('SDK-TOKEN', 'x'), sdk.SecretError, /already/);
    await rejects(Secret.create('sec_x', 'x'), sdk.SecretError, /name/);
    await rejects(Secret.create('sdk-b', 'a\nb'), sdk.SecretError, /control characters/);
  });
});

test('Secret.fill() is what network rules take', 'secrets', async () => {
  await withSecret(async ({ name }) => {
    assert.equal(Secret.fill(name), '${e2b.secrets.sdk-token}');
  });
});
