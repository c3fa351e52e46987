// SPDX-License-Identifier: Apache-2.0
//
// The package is what features.mjs says it is.
import assert from 'node:assert/strict';
import { FEATURES } from './features.mjs';
import { Sandbox, has, sdk, test, version } from './harness.mjs';

test('it is the version that was asked for', async () => {
  assert.equal(version, process.env.SDK_VERSION);
});

for (const [name, feature] of Object.entries(FEATURES)) {
  if (!feature.has) continue;
  test(`${name}: the table of features is right`, async () => {
    assert.equal(feature.has(sdk), has(name));
  });
}

// Every method there is: one that a version adds must not go by untested without notice.
const KNOWN = {
  static: 'betaCreate betaPause connect connectSandbox create createSandbox createSnapshot defaultMcpTemplate ' +
    'defaultSandboxTimeoutMs defaultTemplate deleteSnapshot fork forkSandbox getFullInfo getInfo getMetrics kill ' +
    'list listSnapshots pause resolveOpts setTimeout updateNetwork',
  sandbox: 'betaPause connect createSnapshot fileUrl fork getHost getInfo getMcpToken getMcpUrl getMetrics ' +
    'isRunning kill listSnapshots downloadUrl pause resolveApiOpts setTimeout updateNetwork uploadUrl',
};

function methods(object) {
  return Object.getOwnPropertyNames(object).filter((name) => !['length', 'name', 'prototype', 'constructor'].includes(name));
}

test('Sandbox has no method that these tests do not know', async () => {
  const found = [...methods(Sandbox), ...methods(Object.getPrototypeOf(Sandbox))];
  const known = KNOWN.static.split(' ');
  assert.deepEqual(found.filter((name) => !known.includes(name)), []);
});

test('a sandbox has no method that these tests do not know', async () => {
  const known = KNOWN.sandbox.split(' ');
  assert.deepEqual(methods(Sandbox.prototype).filter((name) => !known.includes(name)), []);
});
