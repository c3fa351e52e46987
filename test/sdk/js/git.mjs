// SPDX-License-Identifier: Apache-2.0
//
// The git helper: nothing but commands on the wire.
import assert from 'node:assert/strict';
import { common, test } from './harness.mjs';

let unique = 0;

async function repository() {
  const sandbox = await common();
  const path = `/home/user/r${process.pid}-${unique++}`;
  await sandbox.git.init(path, { initialBranch: 'main' });
  await sandbox.git.configureUser('A B', 'a@b.test', { scope: 'local', path });
  return { git: sandbox.git, files: sandbox.files, path };
}

async function committed() {
  const all = await repository();
  await all.files.write(`${all.path}/file`, 'one\n');
  await all.git.add(all.path);
  await all.git.commit(all.path, 'first: it\'s "quoted"');
  return all;
}

test('init, add, commit, status', async () => {
  const { git, files, path } = await repository();
  await files.write(`${path}/file`, 'one\n');
  const before = await git.status(path);
  assert.equal(before.currentBranch, 'main');
  assert.deepEqual(before.fileStatus.map(({ name, status }) => [name, status]), [['file', 'untracked']]);
  await git.add(path);
  assert.equal((await git.status(path)).hasStaged, true);
  await git.commit(path, 'first');
  assert.equal((await git.status(path)).isClean, true);
});

test('branches', async () => {
  const { git, path } = await committed();
  await git.createBranch(path, 'topic');
  assert.deepEqual([...(await git.branches(path)).branches].sort(), ['main', 'topic']);
  assert.equal((await git.branches(path)).currentBranch, 'topic');
  await git.checkoutBranch(path, 'main');
  await git.deleteBranch(path, 'topic');
  assert.deepEqual((await git.branches(path)).branches, ['main']);
});

test('reset and restore', async () => {
  const { git, files, path } = await committed();
  await files.write(`${path}/file`, 'two\n');
  await git.restore(path, { paths: ['file'] });
  assert.equal(await files.read(`${path}/file`), 'one\n');
  await files.write(`${path}/file`, 'three\n');
  await git.reset(path, { mode: 'hard' });
  assert.equal(await files.read(`${path}/file`), 'one\n');
});

test('configuration and remotes', async () => {
  const { git, path } = await committed();
  await git.setConfig('some.key', 'a value', { scope: 'local', path });
  assert.equal(await git.getConfig('some.key', { scope: 'local', path }), 'a value');
  assert.equal(await git.getConfig('no.such', { scope: 'local', path }), undefined);
  await git.remoteAdd(path, 'origin', 'https://example.test/x.git');
  assert.equal(await git.remoteGet(path, 'origin'), 'https://example.test/x.git');
});

test('clone, push and pull in the sandbox', async () => {
  const { git, files, path } = await committed();
  await git.init(`${path}-bare`, { bare: true, initialBranch: 'main' });
  await git.remoteAdd(path, 'origin', `${path}-bare`);
  await git.push(path, { remote: 'origin', branch: 'main', setUpstream: true });
  await git.clone(`${path}-bare`, { path: `${path}-clone` });
  assert.equal(await files.read(`${path}-clone/file`), 'one\n');
  await files.write(`${path}/file`, 'two\n');
  await git.add(path);
  await git.commit(path, 'second');
  await git.push(path);
  await git.pull(`${path}-clone`);
  assert.equal(await files.read(`${path}-clone/file`), 'two\n');
});
