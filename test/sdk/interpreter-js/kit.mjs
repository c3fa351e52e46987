// SPDX-License-Identifier: Apache-2.0
//
// What the areas have in common: a cell, what it printed, what it gave.
import assert from 'node:assert/strict';
import { common } from '../js/harness.mjs';

// Runs a cell that must do without an error: in the area's own sandbox, or in the given one.
export async function run(code, opts, sandbox) {
  const execution = await (sandbox ?? await common()).runCode(code, opts);
  assert.equal(execution.error, undefined, `${execution.error?.name}: ${execution.error?.value}`);
  return execution;
}

export const stdout = ({ logs }) => logs.stdout.join('');
export const stderr = ({ logs }) => logs.stderr.join('');
export const output = async (...args) => stdout(await run(...args));
export const value = async (...args) => (await run(...args)).text;

// The error of a cell that must end with one.
export async function fails(code, name, opts, sandbox) {
  const { error } = await (sandbox ?? await common()).runCode(code, opts);
  assert.ok(error, 'the cell ends with an error');
  if (name) assert.equal(error.name, name, `${error.name}: ${error.value}`);
  for (const part of ['name', 'value', 'traceback']) assert.equal(typeof error[part], 'string', part);
  return error;
}

// The only result of a cell.
export async function result(code, opts, sandbox) {
  const { results } = await run(code, opts, sandbox);
  assert.equal(results.length, 1, JSON.stringify(results).slice(0, 400));
  return results[0];
}

// A cell that has begun, which it says by printing something: the promise of its end.
export async function begun(code, opts, sandbox) {
  let running;
  await new Promise((started, failed) => {
    running = sandbox.runCode(`print("started", flush=True)\n${code}`, { ...opts, onStdout: started });
    running.catch(failed);
  });
  return { running };
}

export async function elapsed(work) {
  const before = Date.now();
  await work();
  return Date.now() - before;
}
