// SPDX-License-Identifier: Apache-2.0
// A thread that listens for SIGINT while a cell awaits something. The cell's thread may be idle, then it is
// told and ends the cell; or it may be busy after an await, where Node itself cannot be interrupted: then
// what it runs is terminated from here.
'use strict';

const inspector = require('node:inspector');
const vm = require('node:vm');
const { parentPort, workerData: shared } = require('node:worker_threads');
const { takePending } = require('./sigint.cjs');
const { ARMED, ASKED, LISTENING, TERMINATING } = require('./watched.cjs');

// How long the cell's thread may take to answer before it counts as busy.
const GRACE_MS = 100;

let heard = false;

// Runs under the watch for SIGINT, so that there is no moment between looking back and listening.
globalThis.hear = (cell) => {
	heard = takePending();
	if (!heard)
		Atomics.wait(shared, ARMED, cell);
};

function waitUntilArmed() {
	for (;;) {
		const cell = Atomics.load(shared, ARMED);
		if (cell !== 0)
			return cell;
		Atomics.wait(shared, ARMED, 0);
	}
}

// Whether SIGINT came before the cell was over; perhaps already before this thread listened.
function listen(cell) {
	Atomics.store(shared, LISTENING, 1);
	try {
		vm.runInThisContext(`hear(${cell})`, { breakOnSigint: true });
		return heard;
	} catch {
		return true;
	} finally {
		Atomics.store(shared, LISTENING, 0);
		Atomics.notify(shared, LISTENING);
	}
}

// Whether the kernel answers in time.
function ask(cell) {
	Atomics.store(shared, ASKED, cell);
	parentPort.postMessage({ cell });
	return Atomics.wait(shared, ASKED, cell, GRACE_MS) !== 'timed-out';
}

// The question is repeated after each termination, which may have hit the answer.
function terminate(cell) {
	const session = new inspector.Session();
	session.connectToMainThread();
	Atomics.store(shared, TERMINATING, cell);
	while (Atomics.load(shared, ARMED) === cell) {
		session.post('Runtime.terminateExecution');
		ask(cell);
	}
	session.disconnect();
	Atomics.store(shared, TERMINATING, 0);
}

function interrupt(cell) {
	if (!ask(cell))
		terminate(cell);
	Atomics.store(shared, ASKED, 0);
}

for (;;) {
	const cell = waitUntilArmed();
	if (listen(cell))
		interrupt(cell);
}
