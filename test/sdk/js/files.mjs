// SPDX-License-Identifier: Apache-2.0
//
// Files: written and read in every form, listed, moved, removed.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { box, common, has, rejects, sdk, test } from './harness.mjs';

const { AuthenticationError, FileNotFoundError, FileType, InvalidArgumentError } = sdk;
const MIB = 1_048_576;
const files = async () => (await common()).files;
const shell = async (command, opts) => (await (await common()).commands.run(command, opts)).stdout;
const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');
let unique = 0;

// A fresh directory for one test.
async function directory() {
  const path = `/home/user/t${process.pid}-${unique++}`;
  await (await files()).makeDir(path);
  return path;
}

function streamOf(...pieces) {
  return new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(typeof piece === 'string' ? new TextEncoder().encode(piece) : piece);
      controller.close();
    },
  });
}

async function collect(stream) {
  const pieces = [];
  for await (const piece of stream) pieces.push(Buffer.from(piece));
  return Buffer.concat(pieces);
}

test('write() and read() text', async () => {
  const [fs, dir] = [await files(), await directory()];
  const info = await fs.write(`${dir}/a.txt`, 'text é🚀\n');
  assert.equal(info.path, `${dir}/a.txt`);
  assert.equal(info.name, 'a.txt');
  assert.equal(info.type, 'file');
  assert.equal(await fs.read(`${dir}/a.txt`), 'text é🚀\n');
  assert.equal(await shell(`cat ${dir}/a.txt; stat -c '%a %U %G' ${dir}/a.txt`), 'text é🚀\n644 user user\n');
});

test('every form goes in, every form comes out', async () => {
  const [fs, dir] = [await files(), await directory()];
  const bytes = randomBytes(300_000);
  const inputs = {
    buffer: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length),
    blob: new Blob([bytes]),
    stream: streamOf(bytes.subarray(0, 100_000), bytes.subarray(100_000)),
  };
  for (const [name, data] of Object.entries(inputs)) {
    await fs.write(`${dir}/${name}`, data);
    const read = await fs.read(`${dir}/${name}`, { format: 'bytes' });
    assert.ok(read instanceof Uint8Array);
    assert.equal(sha256(read), sha256(bytes), name);
    const blob = await fs.read(`${dir}/${name}`, { format: 'blob' });
    assert.equal(sha256(Buffer.from(await blob.arrayBuffer())), sha256(bytes), name);
    assert.equal(sha256(await collect(await fs.read(`${dir}/${name}`, { format: 'stream' }))), sha256(bytes), name);
  }
});

test('an empty file', async () => {
  const [fs, dir] = [await files(), await directory()];
  await fs.write(`${dir}/empty`, '');
  assert.equal(await fs.read(`${dir}/empty`), '');
  assert.equal((await fs.read(`${dir}/empty`, { format: 'bytes' })).length, 0);
  assert.equal((await fs.getInfo(`${dir}/empty`)).size, 0);
});

test('several files at once', async () => {
  const [fs, dir] = [await files(), await directory()];
  const entries = [
    { path: `${dir}/one`, data: '1' },
    { path: `${dir}/deep/er/two`, data: new Blob(['zwei']) },
    { path: `${dir}/sp ace é+%&`, data: 'odd name' },
    { path: `${dir.replace('/home/user/', '')}/relative`, data: 'r' },
  ];
  const infos = await fs.write(entries);
  assert.deepEqual(infos.map(({ path }) => path), [`${dir}/one`, `${dir}/deep/er/two`, `${dir}/sp ace é+%&`, `${dir}/relative`]);
  assert.deepEqual(infos.map(({ name }) => name), ['one', 'two', 'sp ace é+%&', 'relative']);
  for (const [i, text] of ['1', 'zwei', 'odd name', 'r'].entries()) assert.equal(await fs.read(infos[i].path), text);
  assert.deepEqual(await fs.write([]), []);
  const [info, ...others] = await fs.writeFiles([{ path: `${dir}/single`, data: 'x' }]);
  assert.equal(info.path, `${dir}/single`);
  assert.deepEqual(others, []);
});

test('twice the same file in one request', async () => {
  const [fs, dir] = [await files(), await directory()];
  const twice = [{ path: `${dir}/a`, data: '1' }, { path: `${dir}/a`, data: '2' }];
  await rejects(fs.write(twice), InvalidArgumentError);
});

test('octet-stream and gzip', 'uploadModes', async () => {
  const [fs, dir] = [await files(), await directory()];
  const text = 'compress me '.repeat(50_000);
  const modes = { octet: { useOctetStream: true }, gzip: { gzip: true }, form: { useOctetStream: false } };
  for (const [name, opts] of Object.entries(modes)) {
    const info = await fs.write(`${dir}/${name}`, text, opts);
    assert.equal(info.path, `${dir}/${name}`);
    assert.ok(await fs.read(`${dir}/${name}`) === text, name);
    assert.ok(await fs.read(`${dir}/${name}`, { gzip: true }) === text, `${name}, read with gzip`);
  }
  const infos = await fs.write([{ path: `${dir}/x`, data: 'x' }, { path: `${dir}/y`, data: 'y' }], { gzip: true });
  assert.deepEqual(infos.map(({ path }) => path), [`${dir}/x`, `${dir}/y`]);
  assert.equal(await shell(`cat ${dir}/x ${dir}/y`), 'xy');
});

// The service ends the connection after such a one: the next must not notice.
test('large octet-streams, one after the other', 'uploadModes', async () => {
  const [fs, dir] = [await files(), await directory()];
  for (const letter of ['a', 'b', 'c']) {
    const text = letter.repeat(4_000_000);
    await fs.write(`${dir}/large`, text, { useOctetStream: true });
    assert.ok(await fs.read(`${dir}/large`) === text, letter);
  }
});

test('a stream of unknown length', 'uploadModes', async () => {
  const [fs, dir] = [await files(), await directory()];
  await fs.write(`${dir}/streamed`, streamOf('one ', 'two ', 'three'));
  assert.equal(await fs.read(`${dir}/streamed`), 'one two three');
});

test('write() replaces, and makes directories on the way', async () => {
  const [fs, dir] = [await files(), await directory()];
  await fs.write(`${dir}/a/b/c`, 'a long first text');
  await fs.write(`${dir}/a/b/c`, 'short');
  assert.equal(await fs.read(`${dir}/a/b/c`), 'short');
  assert.equal(await shell(`stat -c '%a %U' ${dir}/a ${dir}/a/b`), '755 user\n755 user\n');
});

test('relative paths, tilde, and whose home it is', async () => {
  const fs = await files();
  await fs.write('rel.txt', 'relative');
  await fs.write('~/tilde.txt', 'tilde');
  assert.equal(await shell('cat /home/user/rel.txt /home/user/tilde.txt'), 'relativetilde');
  await fs.write('of-root', 'root', { user: 'root' });
  assert.equal(await shell('sudo cat /root/of-root; sudo stat -c %U /root/of-root'), 'rootroot\n');
  assert.equal(await fs.read('of-root', { user: 'root' }), 'root');
  await rejects(fs.read('of-root'), FileNotFoundError);
});

test('a user may write what it may write', async () => {
  const fs = await files();
  await fs.write('/etc/by-root', 'x', { user: 'root' });
  const error = await fs.write('/etc/by-root', 'y').then(() => null, (e) => e);
  assert.ok(error instanceof sdk.SandboxError || error instanceof AuthenticationError, String(error));
  assert.equal(await fs.read('/etc/by-root'), 'x');
  await rejects(fs.read('f', { user: 'nobody-of-that-name' }), AuthenticationError, /invalid username/);
});

test('100 MiB there and back', async () => {
  const [fs, dir] = [await files(), await directory()];
  const bytes = randomBytes(MIB);
  const whole = new Blob(Array.from({ length: 100 }, () => bytes));
  const want = createHash('sha256');
  for (let i = 0; i < 100; i++) want.update(bytes);
  await fs.write(`${dir}/big`, whole, { requestTimeoutMs: 80_000 });
  assert.equal((await fs.getInfo(`${dir}/big`)).size, 100 * MIB);
  const got = createHash('sha256');
  for await (const piece of await fs.read(`${dir}/big`, { format: 'stream', requestTimeoutMs: 80_000 })) got.update(piece);
  assert.equal(got.digest('hex'), want.digest('hex'));
  await fs.remove(`${dir}/big`);
});

test('read() of what is not there, or is no file', async () => {
  const [fs, dir] = [await files(), await directory()];
  await rejects(fs.read(`${dir}/none`), FileNotFoundError);
  await rejects(fs.read(dir), InvalidArgumentError);
  await rejects(fs.read(`${dir}/none`, { format: 'stream' }), FileNotFoundError);
});

test('a full disk', async () => {
  const sandbox = await box();
  const total = Number((await sandbox.commands.run('df --output=avail -k . | tail -n 1')).stdout);
  await sandbox.commands.run(`fallocate -l $((${total} - 2048))K filler || head -c $((${total} - 2048))K /dev/zero >filler`, { timeoutMs: 80_000 });
  await rejects(sandbox.files.write('more', new Blob([new Uint8Array(8 * MIB)])), sdk.NotEnoughSpaceError);
  assert.equal(await sandbox.files.exists('more'), false);
});

test('list(): in order, with everything about each', async () => {
  const [fs, dir] = [await files(), await directory()];
  await shell(`cd ${dir}; mkdir sub; echo 12345 >file; chmod 640 file; ln -s file link; ln -s /nowhere broken; touch .hidden`);
  const entries = await fs.list(dir);
  assert.deepEqual(entries.map(({ name }) => name).filter((name) => name !== 'broken'), ['.hidden', 'file', 'link', 'sub']);
  const of = (name) => entries.find((entry) => entry.name === name);
  const file = of('file');
  assert.equal(file.type, FileType.FILE);
  assert.equal(file.path, `${dir}/file`);
  assert.equal(file.size, 6);
  assert.equal(file.mode, 0o640);
  assert.equal(file.permissions, '-rw-r-----');
  assert.equal(file.owner, 'user');
  assert.equal(file.group, 'user');
  assert.ok(Math.abs(file.modifiedTime - Date.now()) < 60_000);
  assert.equal(of('sub').type, FileType.DIR);
  assert.equal(of('sub').permissions, 'drwxr-xr-x');
  assert.equal(of('link').symlinkTarget, `${dir}/file`);
  assert.equal(of('link').type, FileType.FILE);
});

test('list(): depth', async () => {
  const [fs, dir] = [await files(), await directory()];
  await shell(`cd ${dir}; mkdir -p a/b/c; touch a/1 a/b/2 a/b/c/3 z`);
  const at = async (depth) => (await fs.list(dir, { depth })).map(({ path }) => path.slice(dir.length + 1));
  assert.deepEqual(await at(1), ['a', 'z']);
  assert.deepEqual(await at(2), ['a', 'a/1', 'a/b', 'z']);
  assert.deepEqual(await at(10), ['a', 'a/1', 'a/b', 'a/b/2', 'a/b/c', 'a/b/c/3', 'z']);
  await rejects(fs.list(dir, { depth: 0 }), InvalidArgumentError);
});

test('list(): a thousand, an empty directory, and none', async () => {
  const [fs, dir] = [await files(), await directory()];
  assert.deepEqual(await fs.list(dir), []);
  await shell(`cd ${dir}; touch $(seq -f f%04g 1000)`);
  assert.equal((await fs.list(dir)).length, 1000);
  await rejects(fs.list(`${dir}/none`), FileNotFoundError);
  await rejects(fs.list(`${dir}/f0001`), InvalidArgumentError);
});

test('list(): through a link it is the link\'s path', async () => {
  const [fs, dir] = [await files(), await directory()];
  await shell(`cd ${dir}; mkdir real; touch real/x; ln -s real link`);
  assert.deepEqual((await fs.list(`${dir}/link`)).map(({ path }) => path), [`${dir}/link/x`]);
});

test('exists() and getInfo()', async () => {
  const [fs, dir] = [await files(), await directory()];
  await fs.write(`${dir}/f`, 'abc');
  assert.equal(await fs.exists(`${dir}/f`), true);
  assert.equal(await fs.exists(dir), true);
  assert.equal(await fs.exists(`${dir}/none`), false);
  const info = await fs.getInfo(`${dir}/f`);
  assert.equal(info.name, 'f');
  assert.equal(info.size, 3);
  assert.equal((await fs.getInfo(dir)).type, FileType.DIR);
  await rejects(fs.getInfo(`${dir}/none`), FileNotFoundError);
});

test('makeDir(): true when it was made, false when it was there', async () => {
  const [fs, dir] = [await files(), await directory()];
  assert.equal(await fs.makeDir(`${dir}/a/b`), true);
  assert.equal(await fs.makeDir(`${dir}/a/b`), false);
  assert.equal(await shell(`stat -c '%a %U' ${dir}/a/b`), '755 user\n');
  await fs.write(`${dir}/file`, '');
  await rejects(fs.makeDir(`${dir}/file`), InvalidArgumentError);
});

test('rename(): files and directories, over others, to new places', async () => {
  const [fs, dir] = [await files(), await directory()];
  await fs.write(`${dir}/a`, 'A');
  await fs.write(`${dir}/b`, 'B');
  const info = await fs.rename(`${dir}/a`, `${dir}/b`);
  assert.equal(info.path, `${dir}/b`);
  assert.equal(await fs.read(`${dir}/b`), 'A');
  assert.equal(await fs.exists(`${dir}/a`), false);
  assert.equal((await fs.rename(`${dir}/b`, `${dir}/new/place/c`)).name, 'c');
  assert.equal((await fs.rename(`${dir}/new`, `${dir}/newer`)).type, FileType.DIR);
  assert.equal(await fs.read(`${dir}/newer/place/c`), 'A');
  await rejects(fs.rename(`${dir}/none`, `${dir}/x`), FileNotFoundError);
});

test('remove(): files, whole trees, and what is not there', async () => {
  const [fs, dir] = [await files(), await directory()];
  await shell(`cd ${dir}; mkdir -p t/a/b; touch t/a/b/c; chmod 500 t/a; ln -s /etc t/link`);
  await fs.write(`${dir}/f`, 'x');
  await fs.remove(`${dir}/f`);
  await shell(`chmod 700 ${dir}/t/a`);
  await fs.remove(`${dir}/t`);
  await fs.remove(`${dir}/none`);
  assert.deepEqual(await fs.list(dir), []);
  assert.equal(await fs.exists('/etc/passwd'), true);
});

test('odd names go in and come out', async () => {
  const [fs, dir] = [await files(), await directory()];
  const names = ['sp ace', 'é🚀', '-n', "it's", '"', 'a&b=c+d%20', '*', '#?;', 'tab\there', 'new\nline'];
  for (const name of names) {
    await fs.write(`${dir}/${name}`, name);
    assert.equal(await fs.read(`${dir}/${name}`), name);
  }
  assert.deepEqual((await fs.list(dir)).map(({ name }) => name).sort(), [...names].sort());
});

test('paths lead nowhere else', async () => {
  const fs = await files();
  await shell('ln -sf /../../../../etc/passwd up');
  assert.match(await fs.read('up'), /^user:x:1000:/m);
  assert.match(await fs.read('../../../../../../etc/passwd'), /^user:x:1000:/m);
});

test('metadata of files', 'fileMetadata', async () => {
  const [fs, dir] = [await files(), await directory()];
  const metadata = { author: 'me', 'content-kind': 'a b; c="d"' };
  const info = await fs.write(`${dir}/f`, 'x', { metadata });
  assert.deepEqual(info.metadata, metadata);
  assert.deepEqual((await fs.getInfo(`${dir}/f`)).metadata, metadata);
  assert.deepEqual((await fs.list(dir))[0].metadata, metadata);
  await fs.write(`${dir}/f`, 'y', { metadata: { Other: '1' } });
  assert.deepEqual((await fs.getInfo(`${dir}/f`)).metadata, { other: '1' });
  await fs.write(`${dir}/f`, 'z');
  assert.equal((await fs.getInfo(`${dir}/f`)).metadata, undefined);
  await fs.write(`${dir}/o`, 'x', { metadata, useOctetStream: true });
  assert.deepEqual((await fs.getInfo(`${dir}/o`)).metadata, metadata);
});

test('twenty files at once', async () => {
  const [fs, dir] = [await files(), await directory()];
  await Promise.all(Array.from({ length: 20 }, (_, i) => fs.write(`${dir}/${i}`, `${i}`.repeat(10_000))));
  const texts = await Promise.all(Array.from({ length: 20 }, (_, i) => fs.read(`${dir}/${i}`)));
  texts.forEach((text, i) => assert.ok(text === `${i}`.repeat(10_000)));
});

test(`a stream that is left alone does not hold up the rest (${has('uploadModes') ? 'cancelled' : 'read'})`, async () => {
  const [fs, dir] = [await files(), await directory()];
  await fs.write(`${dir}/f`, new Blob([new Uint8Array(20 * MIB)]));
  const stream = await fs.read(`${dir}/f`, { format: 'stream' });
  const reader = stream.getReader();
  await reader.read();
  await reader.cancel();
  assert.equal((await fs.getInfo(`${dir}/f`)).size, 20 * MIB);
});
