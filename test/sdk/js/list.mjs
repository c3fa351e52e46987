// SPDX-License-Identifier: Apache-2.0
//
// Listing: filters, order, pages, metadata in three layers of encoding.
import assert from 'node:assert/strict';
import { Sandbox, box, has, rejects, sdk, test } from './harness.mjs';

const mark = `list-${process.pid}-${Date.now()}`;
const ids = (items) => items.map(({ sandboxId }) => sandboxId);

async function everything(opts) {
  const found = [];
  for (const paginator = Sandbox.list(opts); paginator.hasNext;) found.push(...await paginator.nextItems());
  return found;
}

const marked = (more = {}, opts = {}) => everything({ query: { metadata: { mark, ...more } }, ...opts });

test('all of them, with what is known of each', async () => {
  const sandbox = await box({ metadata: { mark: `${mark}-one` }, timeoutMs: 120_000 });
  const [item, ...others] = await everything({ query: { metadata: { mark: `${mark}-one` } } });
  assert.deepEqual(others, []);
  const info = await sandbox.getInfo();
  for (const [name, value] of Object.entries(item)) assert.deepEqual(info[name], value, name);
  assert.equal(item.state, 'running');
  assert.ok(ids(await everything()).includes(sandbox.sandboxId));
});

test('page by page', async () => {
  const made = [];
  for (let i = 0; i < 5; i++) made.push(await box({ metadata: { mark, n: String(i) } }));
  const paginator = Sandbox.list({ query: { metadata: { mark } }, limit: 2 });
  assert.equal(paginator.hasNext, true);
  const pages = [];
  while (paginator.hasNext) pages.push(await paginator.nextItems());
  assert.deepEqual(pages.map((page) => page.length), [2, 2, 1]);
  // The newest first, and each once.
  assert.deepEqual(ids(pages.flat()), ids(made).reverse());
  assert.equal(paginator.nextToken, undefined);
  await rejects(paginator.nextItems(), Error, /No more items/);
});

test('a page that is just full is the last', async () => {
  for (let i = 0; i < 2; i++) await box({ metadata: { mark: `${mark}-full` } });
  const paginator = Sandbox.list({ query: { metadata: { mark: `${mark}-full` } }, limit: 2 });
  assert.equal((await paginator.nextItems()).length, 2);
  assert.equal(paginator.hasNext, false);
});

test('going on from a token', async () => {
  for (let i = 0; i < 3; i++) await box({ metadata: { mark, n: String(i) } });
  const query = { metadata: { mark } };
  const first = Sandbox.list({ query, limit: 2 });
  const before = await first.nextItems();
  const second = Sandbox.list({ query, limit: 2, nextToken: first.nextToken });
  const after = await second.nextItems();
  assert.deepEqual(ids([...before, ...after]), ids(await marked()));
});

test('a token of nobody', async () => {
  await rejects(Sandbox.list({ nextToken: 'what is this?' }).nextItems(), sdk.SandboxError, /^400: /);
});

test('odd characters in metadata', async () => {
  const odd = { 'k 1': 'v/é', b: 'c', 'a&b': 'x=y', plus: '1+1', percent: '100%25 %', emoji: '🚀', hash: '#?&=/\\"\'', empty: '' };
  const sandbox = await box({ metadata: { mark, ...odd } });
  await box({ metadata: { mark, 'k 1': 'other' } });
  assert.deepEqual(ids(await marked(odd)), [sandbox.sandboxId]);
  for (const [key, value] of Object.entries(odd)) {
    assert.deepEqual(ids(await marked({ [key]: value })), [sandbox.sandboxId], key);
    assert.deepEqual(await marked({ [key]: `${value}x` }), [], key);
  }
});

test('metadata: every pair has to match', async () => {
  const both = await box({ metadata: { mark, a: '1', b: '2' } });
  await box({ metadata: { mark, a: '1' } });
  assert.deepEqual(ids(await marked({ a: '1', b: '2' })), [both.sandboxId]);
  assert.equal((await marked({ a: '1' })).length, 2);
  assert.deepEqual(await marked({ a: '2' }), []);
});

test('by state', async () => {
  const running = await box({ metadata: { mark } });
  const paused = await box({ metadata: { mark } });
  await paused.pause();
  const of = async (...state) => ids(await everything({ query: { metadata: { mark }, state } }));
  assert.deepEqual(await of('running'), [running.sandboxId]);
  assert.deepEqual(await of('paused'), [paused.sandboxId]);
  assert.deepEqual(await of('running', 'paused'), [paused.sandboxId, running.sandboxId]);
  assert.deepEqual(ids(await marked()), [paused.sandboxId, running.sandboxId]);
});

test('in either order, over pages', 'listFilters', async () => {
  const made = [];
  for (let i = 0; i < 3; i++) made.push(await box({ metadata: { mark } }));
  assert.deepEqual(ids(await marked({}, { order: 'asc', limit: 1 })), ids(made));
  assert.deepEqual(ids(await marked({}, { order: 'desc', limit: 1 })), ids(made).reverse());
});

test('started after', 'listFilters', async () => {
  await box({ metadata: { mark } });
  const second = await box({ metadata: { mark } });
  const { startedAt } = await second.getInfo();
  const after = async (date) => ids(await everything({ query: { metadata: { mark }, startedAfter: date } }));
  assert.deepEqual(await after(startedAt), [second.sandboxId]);
  assert.deepEqual(await after(new Date(startedAt.getTime() + 60_000)), []);
});

test('by template', 'listFilters', async () => {
  const base = await box({ metadata: { mark } });
  const other = await box('code-interpreter-v1', { metadata: { mark } });
  const of = async (template) => ids(await everything({ query: { metadata: { mark }, template } }));
  assert.deepEqual(await of('base'), [base.sandboxId]);
  assert.deepEqual(await of('code-interpreter-v1'), [other.sandboxId]);
  assert.deepEqual(await of('unknown'), []);
});

test('the time-out that a list shows moves with setTimeout()', async () => {
  const sandbox = await box({ metadata: { mark } });
  await sandbox.setTimeout(1_000_000);
  const [item] = await marked();
  assert.equal(item.endAt.getTime(), (await sandbox.getInfo()).endAt.getTime());
  assert.ok(item.endAt - item.startedAt > 900_000);
});

test(`a limit that cannot be (${has('listFilters') ? 'and an order' : 'only'})`, async () => {
  await rejects(Sandbox.list({ limit: 1001 }).nextItems(), sdk.SandboxError, /^400: .*limit/);
  if (has('listFilters')) {
    await rejects(Sandbox.list({ order: 'sideways' }).nextItems(), sdk.SandboxError, /^400: .*order/);
  }
});
