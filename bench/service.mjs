// SPDX-License-Identifier: Apache-2.0
//
// The client's side of bench/service: the npm package `e2b` from $SDK_DIR in one process, many times.
//	node service.mjs ROUNDS AT_ONCE      prints JSON: lists of milliseconds
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const { Sandbox } = await import(pathToFileURL(join(process.env.SDK_DIR, 'node_modules/e2b/dist/index.mjs')).href);
const [rounds, atOnce] = process.argv.slice(2).map(Number);
const WARM = 10;

async function timed(work) {
  const before = performance.now();
  const result = await work();
  return [performance.now() - before, result];
}

// A sandbox whose first command has given its output.
async function first() {
  const sandbox = await Sandbox.create();
  const { stdout } = await sandbox.commands.run('echo hello');
  if (stdout !== 'hello\n') throw new Error(`output: ${JSON.stringify(stdout)}`);
  return sandbox;
}

const result = { create: [], command: [], crowd: [] };
for (let i = 0; i < rounds + WARM; i++) {
  const [ms, sandbox] = await timed(first);
  if (i >= WARM) result.create.push(ms);
  await sandbox.kill();
}

const living = await first();
for (let i = 0; i < 2 * rounds + WARM; i++) {
  const [ms] = await timed(() => living.commands.run('echo hello'));
  if (i >= WARM) result.command.push(ms);
}
await living.kill();

for (let i = 0; i < 3; i++) {
  const [ms, sandboxes] = await timed(() => Promise.all(Array.from({ length: atOnce }, first)));
  result.crowd.push(ms);
  await Promise.all(sandboxes.map((sandbox) => sandbox.kill()));
}
console.log(JSON.stringify(result));
process.exit(0);
