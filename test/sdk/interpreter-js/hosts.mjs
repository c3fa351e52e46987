// SPDX-License-Identifier: Apache-2.0
//
// Over TLS and with names: the interpreter is 49999-ID.DOMAIN. Only E2B_DOMAIN says where.
import assert from 'node:assert/strict';
import { Sandbox, box, caught, sdk, test } from '../js/harness.mjs';
import { begun, output, run, value } from './kit.mjs';

test('cells, contexts and their state', async () => {
  const sandbox = await box();
  await run('x = 41', {}, sandbox);
  assert.equal(await value('x + 1', {}, sandbox), '42');
  const context = await sandbox.createCodeContext({ cwd: '/tmp' });
  assert.equal(await output('!pwd', { context }, sandbox), '/tmp\n');
  await sandbox.restartCodeContext(context);
  await sandbox.removeCodeContext(context);
  assert.equal((await sandbox.listCodeContexts()).length, 2);
});

test('streamed as it happens, characters whole', async () => {
  const sandbox = await box();
  const seen = [];
  const code = 'import time\nfor i in range(3):\n    print("漢🚀", i)\n    time.sleep(1)';
  await run(code, { onStdout: ({ line }) => { seen.push([line, Date.now()]); } }, sandbox);
  assert.deepEqual(seen.map(([line]) => line), ['漢🚀 0\n', '漢🚀 1\n', '漢🚀 2\n']);
  assert.ok(seen[2][1] - seen[0][1] > 400);
  assert.ok(await output('print("漢🚀" * 200_000)', {}, sandbox) === `${'漢🚀'.repeat(200_000)}\n`);
});

test('given up after a second, the next cell runs', async () => {
  const sandbox = await box();
  await run('kept = 1', {}, sandbox);
  const error = await caught(sandbox.runCode('import time\ntime.sleep(60)', { timeoutMs: 1000 }));
  assert.equal(error.constructor, sdk.TimeoutError);
  assert.equal(await value('kept', {}, sandbox), '1');
});

test('killed while a cell runs', async () => {
  const sandbox = await box();
  const { running } = await begun('import time\ntime.sleep(60)', {}, sandbox);
  const ended = caught(running);
  await Sandbox.kill(sandbox.sandboxId);
  assert.equal((await ended).constructor, sdk.TimeoutError);
});
