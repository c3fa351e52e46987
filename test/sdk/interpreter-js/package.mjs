// SPDX-License-Identifier: Apache-2.0
//
// The package is the one these tests were written for.
import assert from 'node:assert/strict';
import { Sandbox, test, version } from '../js/harness.mjs';

test('it is the version that was asked for', async () => {
  assert.equal(version, process.env.SDK_VERSION);
});

test('a sandbox has no method of its own that these tests do not know', async () => {
  const known = 'runCode createCodeContext removeCodeContext listCodeContexts restartCodeContext ' +
    'jupyterUrl getJupyterRequestUrl includeDiagnostics handleRequestError constructor';
  assert.deepEqual(Object.getOwnPropertyNames(Sandbox.prototype).filter((name) => !known.split(' ').includes(name)), []);
});
