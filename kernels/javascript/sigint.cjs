// SPDX-License-Identifier: Apache-2.0
// Node's watch for SIGINT, on which vm's breakOnSigint is built. As long as one watch is held the signal does not
// end the process. A thread of Node's passes it on to the script that listens; when none does, it is pending.
'use strict';

const fs = require('node:fs');
const { quietly } = require('./quiet.cjs');

const TASKS = '/proc/self/task';
const SETTLE_MS = 1;
const SETTLE_TRIES = 50;

const { internalBinding } = quietly(() => require('internal/test/binding'));
const { startSigintWatchdog, stopSigintWatchdog, watchdogHasPendingSigint } = internalBinding('contextify');

const pause = new Int32Array(new SharedArrayBuffer(4));
const line = Buffer.alloc(256);
let threadState = null;

// The first watch starts Node's thread: the one that was not there before.
function hold() {
	const before = new Set(fs.readdirSync(TASKS));
	startSigintWatchdog();
	const made = fs.readdirSync(TASKS).filter((task) => !before.has(task));
	if (made.length === 1)
		threadState = fs.openSync(`${TASKS}/${made[0]}/stat`);
}

function isThreadAsleep() {
	const text = line.toString('latin1', 0, fs.readSync(threadState, line, 0, line.length, 0));
	return text[text.lastIndexOf(')') + 2] === 'S';
}

// Until Node's thread has passed on what came before now. A signal wakes it at once, but when it gets a
// processor is another question; when it sleeps again it has done its work.
function settle() {
	for (let i = 0; threadState !== null && i < SETTLE_TRIES && !isThreadAsleep(); i++)
		Atomics.wait(pause, 0, 0, SETTLE_MS);
}

// Whether a signal has come that nobody was there to hear. It is forgotten then: as the end of a watch does,
// when it is not the last.
function takePending() {
	const isPending = watchdogHasPendingSigint();
	if (isPending) {
		startSigintWatchdog();
		stopSigintWatchdog();
	}
	return isPending;
}

module.exports = { hold, settle, takePending };
