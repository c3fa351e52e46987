// SPDX-License-Identifier: Apache-2.0
//
// Over TLS and with a name for every sandbox: api.DOMAIN, PORT-ID.DOMAIN. Only E2B_DOMAIN says where.
import assert from 'node:assert/strict';
import https from 'node:https';
import { Sandbox, box, caught, has, sdk, test } from './harness.mjs';

test('only the domain is known: create, run, read, write', async () => {
  const sandbox = await box();
  assert.equal((await sandbox.commands.run('echo over TLS')).stdout, 'over TLS\n');
  await sandbox.files.write('f', 'content');
  assert.equal(await sandbox.files.read('f'), 'content');
  assert.equal(await sandbox.isRunning(), true);
  await Sandbox.kill(sandbox.sandboxId);
  assert.equal(await sandbox.isRunning(), false);
});

test('getHost() is a name below the domain', async () => {
  const sandbox = await box();
  assert.equal(sandbox.getHost(8000), `8000-${sandbox.sandboxId}.${process.env.E2B_DOMAIN}`);
});

const SERVER = `
const http = require('http'), crypto = require('crypto');
http.createServer((request, response) => {
  let body = '';
  request.on('data', (piece) => { body += piece; });
  request.on('end', () => {
    if (request.url === '/events') {
      response.setHeader('Content-Type', 'text/event-stream');
      response.write('data: 1\\n\\n');
      setTimeout(() => response.end('data: 2\\n\\n'), 2000);
    } else {
      response.setHeader('Content-Type', 'application/json');
      response.end(JSON.stringify({ method: request.method, url: request.url, headers: request.headers, body }));
    }
  });
}).on('upgrade', (request, socket) => {
  const accept = crypto.createHash('sha1').update(request.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11');
  socket.write('HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n' +
    'Sec-WebSocket-Accept: ' + accept.digest('base64') + '\\r\\n\\r\\n');
  socket.pipe(socket);
}).listen(3000, '127.0.0.1', () => console.log('up'));
`;

/** A sandbox with a web server at port 3000. */
async function served(options) {
  const sandbox = await box(options);
  await sandbox.files.write('server.js', SERVER);
  await new Promise((up, failed) => {
    sandbox.commands.run('node server.js', { background: true, timeoutMs: 0, onStdout: up }).catch(failed);
  });
  return sandbox;
}

test('getHost() leads to a program in the sandbox', async () => {
  const sandbox = await served();
  const url = `https://${sandbox.getHost(3000)}`;
  const said = await (await fetch(`${url}/path?query=1`, { method: 'POST', body: 'text' })).json();
  assert.equal(said.method, 'POST');
  assert.equal(said.url, '/path?query=1');
  assert.equal(said.body, 'text');
  assert.equal(said.headers['x-forwarded-proto'], 'https');
  const pieces = [];
  for await (const piece of (await fetch(`${url}/events`)).body) pieces.push(Buffer.from(piece).toString());
  assert.deepEqual(pieces, ['data: 1\n\n', 'data: 2\n\n']);
});

test('a WebSocket to a program in the sandbox', async () => {
  const sandbox = await served();
  const [hostname, port] = sandbox.getHost(3000).split(':');
  const echoed = await new Promise((done, failed) => {
    https.get({
      hostname, port, path: '/socket',
      headers: { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA==', 'Sec-WebSocket-Version': '13' },
    }).on('upgrade', (response, socket) => {
      socket.once('data', (data) => { socket.destroy(); done(data.toString()); });
      socket.write('there and back');
    }).on('response', (response) => failed(new Error(`status ${response.statusCode}`))).on('error', failed);
  });
  assert.equal(echoed, 'there and back');
});

test('a closed port, and a sandbox that is gone', async () => {
  const sandbox = await box();
  const url = `https://${sandbox.getHost(3999)}`;
  const closed = await fetch(url);
  assert.equal(closed.status, 502);
  assert.equal((await closed.json()).port, 3999);
  await sandbox.kill();
  assert.equal((await (await fetch(url)).json()).message, 'The sandbox was not found');
});

test('allowPublicTraffic: false, maskRequestHost', async () => {
  const sandbox = await served({ network: { allowPublicTraffic: false, maskRequestHost: 'localhost:${PORT}' } });
  if (!sandbox.trafficAccessToken) return; // this version does not know of them
  const url = `https://${sandbox.getHost(3000)}`;
  assert.equal((await fetch(url)).status, 403);
  const said = await (await fetch(url, { headers: { 'e2b-traffic-access-token': sandbox.trafficAccessToken } })).json();
  assert.equal(said.headers.host, 'localhost:3000');
  assert.equal(said.headers['e2b-traffic-access-token'], undefined);
});

test('URLs have the sandbox in their name', async () => {
  const sandbox = await box();
  await sandbox.files.write('f', 'content');
  const url = await sandbox.downloadUrl('f');
  assert.ok(url.includes(`49983-${sandbox.sandboxId}.`), url);
  assert.equal(await (await fetch(url)).text(), 'content');
});

test('a stream and a terminal', async () => {
  const sandbox = await box();
  const handle = await sandbox.commands.run('read x; echo got $x', { background: true, stdin: true });
  await sandbox.commands.sendStdin(handle.pid, 'it\n');
  assert.equal((await handle.wait()).stdout, 'got it\n');
  const terminal = await sandbox.pty.create({ cols: 80, rows: 24, onData: () => {} });
  await sandbox.pty.sendInput(terminal.pid, new TextEncoder().encode('exit\n'));
  assert.equal((await terminal.wait()).exitCode, 0);
});

test('killed under a running command', async () => {
  const sandbox = await box();
  const handle = await sandbox.commands.run('sleep 60', { background: true, timeoutMs: 0 });
  const waiting = caught(handle.wait());
  await Sandbox.kill(sandbox.sandboxId);
  const error = await waiting;
  assert.ok(error instanceof sdk.SandboxError, String(error));
  if (has('healthCheck')) assert.match(error.message, /The sandbox was killed or reached its end of life/);
});

test('20 MiB there and back', async () => {
  const sandbox = await box();
  const bytes = new Uint8Array(20 * 1_048_576).map((_, i) => i * 7);
  await sandbox.files.write('big', new Blob([bytes]));
  const read = await sandbox.files.read('big', { format: 'bytes' });
  assert.ok(Buffer.compare(Buffer.from(read), Buffer.from(bytes)) === 0);
});
