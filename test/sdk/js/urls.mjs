// SPDX-License-Identifier: Apache-2.0
//
// Upload and download URLs, which other programs use without the package.
import assert from 'node:assert/strict';
import { box, caught, common, sdk, sleep, test } from './harness.mjs';

async function answer(url, opts) {
  const reply = await fetch(url, opts);
  return { status: reply.status, text: await reply.text(), headers: reply.headers };
}

const form = (text, name = 'named.txt') => {
  const body = new FormData();
  body.append('file', new Blob([text]), name);
  return { method: 'POST', body };
};

test('downloadUrl(): signed, and good without anything else', async () => {
  const { files } = await common();
  const sandbox = await common();
  await files.write('down é.txt', 'content');
  const { status, text } = await answer(await sandbox.downloadUrl('down é.txt'));
  assert.equal(status, 200);
  assert.equal(text, 'content');
});

test('uploadUrl(): a form', async () => {
  const sandbox = await common();
  const { status, text } = await answer(await sandbox.uploadUrl('up.txt'), form('uploaded'));
  assert.equal(status, 200, text);
  assert.equal(JSON.parse(text)[0].path, '/home/user/up.txt');
  assert.equal(await sandbox.files.read('up.txt'), 'uploaded');
});

test('uploadUrl() without a path: the name of the file decides', async () => {
  const sandbox = await common();
  const { status, text } = await answer(await sandbox.uploadUrl(), form('uploaded', 'decides.txt'));
  assert.equal(status, 200, text);
  assert.equal(await sandbox.files.read('decides.txt'), 'uploaded');
});

test('for another user', async () => {
  const sandbox = await common();
  await answer(await sandbox.uploadUrl('of-root.txt', { user: 'root' }), form('root'));
  assert.equal((await answer(await sandbox.downloadUrl('/root/of-root.txt', { user: 'root' }))).text, 'root');
});

test('with an end: before, and after', async () => {
  const sandbox = await common();
  await sandbox.files.write('soon', 'x');
  const [long, short] = [await sandbox.downloadUrl('soon', { useSignatureExpiration: 60 }),
    await sandbox.downloadUrl('soon', { useSignatureExpiration: 1 })];
  assert.match(long, /signature_expiration=\d+/);
  assert.equal((await answer(long)).status, 200);
  await sleep(2500);
  const late = await answer(short);
  assert.equal(late.status, 401);
  assert.match(late.text, /signature is already expired/);
  const upload = await answer(await sandbox.uploadUrl('soon', { useSignatureExpiration: 60 }), form('new'));
  assert.equal(upload.status, 200);
});

test('a signature is good for one path, one direction, one user', async () => {
  const sandbox = await common();
  await sandbox.files.write('mine', 'x');
  await sandbox.files.write('other', 'y');
  const url = new URL(await sandbox.downloadUrl('mine', { useSignatureExpiration: 60 }));
  const changed = (name, value) => {
    const copy = new URL(url);
    copy.searchParams.set(name, value);
    return answer(copy);
  };
  assert.equal((await answer(url)).status, 200);
  assert.notEqual((await changed('path', 'other')).status, 200);
  assert.notEqual((await changed('username', 'root')).status, 200);
  assert.notEqual((await changed('signature', 'v1_AAAA')).status, 200);
  assert.notEqual((await changed('signature_expiration', '99999999999')).status, 200);
  assert.notEqual((await answer(url, form('no'))).status, 200);
  assert.equal(await sandbox.files.read('mine'), 'x');
});

test('without a signature: refused', async () => {
  const sandbox = await common();
  const url = new URL(await sandbox.downloadUrl('mine'));
  url.searchParams.delete('signature');
  const headers = { 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': '49983' };
  const { status, text } = await answer(url, { headers });
  assert.equal(status, 401);
  assert.match(text, /missing signature query parameter/);
});

test('a download cannot attack a page', async () => {
  const sandbox = await common();
  await sandbox.files.write('page.html', '<script>alert(1)</script>');
  const { headers } = await answer(await sandbox.downloadUrl('page.html'));
  assert.equal(headers.get('x-content-type-options'), 'nosniff');
  assert.match(headers.get('content-disposition') ?? '', /filename/);
});

test('a part of a file', async () => {
  const sandbox = await common();
  await sandbox.files.write('range', '0123456789');
  const { status, text, headers } = await answer(await sandbox.downloadUrl('range'), { headers: { Range: 'bytes=2-4' } });
  assert.equal(status, 206);
  assert.equal(text, '234');
  assert.equal(headers.get('content-range'), 'bytes 2-4/10');
});

test('unsecured: plain URLs, and no end to them', 'insecure', async () => {
  const sandbox = await box({ secure: false });
  assert.match((await caught(sandbox.downloadUrl('f', { useSignatureExpiration: 5 }))).message, /only when sandbox is created as secured/);
  await sandbox.files.write('f', 'plain');
  const headers = { 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': '49983' };
  assert.equal((await answer(await sandbox.downloadUrl('f'), { headers })).text, 'plain');
});

test('getSignature(): as it is written down', async () => {
  const { signature } = await sdk.getSignature({ path: 'hello.txt', operation: 'read', user: 'user',
    envdAccessToken: '0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0' });
  assert.equal(signature, 'v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E');
});
