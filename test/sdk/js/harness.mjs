// SPDX-License-Identifier: Apache-2.0
//
// The tests of one area, with the package in $SDK_DIR: prints TAP. A test is a function; it passes by
// returning and fails by throwing. What a test makes with box() is killed behind it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { hasFeature } from './features.mjs';

const LIMIT_MS = 90_000;
const base = join(process.env.SDK_DIR, 'node_modules', process.env.SDK_PACKAGE);

export const version = JSON.parse(readFileSync(join(base, 'package.json'), 'utf8')).version;
export const sdk = await import(pathToFileURL(join(base, 'dist', 'index.mjs')).href);
export const { Sandbox } = sdk;

const cases = [];
const made = new Set(); // by the running test
let shared;

// test(name, function) or test(name, 'feature', function).
export function test(name, ...rest) {
  const run = rest.pop();
  cases.push({ name, needs: rest, run });
}

export const has = (feature) => hasFeature(feature, version);

// A sandbox for this test alone.
export async function box(template, opts) {
  const sandbox = typeof template === 'string'
    ? await Sandbox.create(template, opts) : await Sandbox.create(template);
  made.add(sandbox.sandboxId);
  return sandbox;
}

export function made_elsewhere(sandbox) {
  made.add(sandbox.sandboxId);
  return sandbox;
}

// One for all tests of the area that do no harm to it.
export async function common() {
  shared ??= Sandbox.create({ timeoutMs: 600_000 });
  return shared;
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// The first true value of condition(), which may be asynchronous.
export async function until(condition, what, ms = 60_000) {
  const deadline = Date.now() + ms;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > deadline) throw new Error(`not within ${ms} ms: ${what}`);
    await sleep(25);
  }
}

// What a promise is rejected with. A promise that is kept is a failure.
export async function caught(promise) {
  let value;
  try {
    value = await promise;
  } catch (error) {
    return error;
  }
  throw new Error(`no error; instead ${JSON.stringify(value)?.slice(0, 200)}`);
}

// Rejected with exactly this class (no subclass), and a message that matches.
export async function rejects(promise, type, pattern) {
  const error = await caught(promise);
  if (error?.constructor !== type) {
    throw new Error(`a ${type.name} was expected, it is a ${error?.constructor?.name}: ${error?.message}`);
  }
  if (pattern && !pattern.test(error.message)) {
    throw new Error(`the message should match ${pattern}, it is: ${error.message}`);
  }
  return error;
}

function limited(promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${LIMIT_MS} ms`)), LIMIT_MS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

const quietly = (promise) => promise.catch(() => {});
const plain = (text) => String(text).replace(/[\n#]+/g, ' ');

function failed(name, error) {
  console.log(`not ok - ${plain(name)}`);
  const text = error?.stack ?? String(error);
  for (const line of text.split('\n').slice(0, 12)) console.log(`# ${line}`);
  if (error?.cause) console.log(`# cause: ${error.cause}`);
}

async function runCase({ name, needs, run }) {
  const missing = needs.filter((feature) => !has(feature));
  if (missing.length > 0) {
    console.log(`ok - ${plain(name)} # SKIP e2b ${version} has no ${missing.join(', ')}`);
    return;
  }
  try {
    await limited(run());
    console.log(`ok - ${plain(name)}`);
  } catch (error) {
    failed(name, error);
  }
  await Promise.all([...made].map((id) => quietly(limited(Sandbox.kill(id)))));
  made.clear();
}

export async function runAll() {
  // A rejected promise that nobody waits for is a defect of the test or of the package: say so.
  process.on('unhandledRejection', (error) => failed('no rejection is left alone', error));
  for (const each of cases) await runCase(each);
  if (shared) await quietly(shared.then((sandbox) => sandbox.kill()));
  console.log(`1..${cases.length}`);
  process.exit(0);
}
