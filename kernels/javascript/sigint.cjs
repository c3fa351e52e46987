// SPDX-License-Identifier: Apache-2.0
// Node's watch for SIGINT, on which vm's breakOnSigint is built. As long as one watch is held the signal does not
// end the process; when it comes while no script listens it is pending. Ending one of several watches makes
// Node forget what is pending.
'use strict';

const { quietly } = require('./quiet.cjs');

const { internalBinding } = quietly(() => require('internal/test/binding'));

module.exports = internalBinding('contextify');
