// SPDX-License-Identifier: Apache-2.0
// A thread that waits for SIGINT while a cell awaits something. The cell's thread may be idle, then it is
// told and ends the cell; or it may be busy after an await, where Node itself cannot be interrupted: then
// what it runs is terminated from here.
'use strict';

const inspector = require('node:inspector');
const vm = require('node:vm');
const { parentPort, workerData } = require('node:worker_threads');
const { startSigintWatchdog, stopSigintWatchdog, watchdogHasPendingSigint } = require('./sigint.cjs');

const GRACE_MS = 100;
const NEVER = 0;
const ASKED = 1;
const CELL = 2;
const QUESTION = 1;
const TERMINATED = 2;

globalThis.wait = () => Atomics.wait(workerData, NEVER, 0);
const untilSigint = new vm.Script('wait()');

function terminateOther() {
	const session = new inspector.Session();
	session.connectToMainThread();
	session.post('Runtime.terminateExecution');
	Atomics.wait(workerData, ASKED, TERMINATED);
	session.disconnect();
}

function interruptOther() {
	Atomics.store(workerData, ASKED, QUESTION);
	parentPort.postMessage({ cell: Atomics.load(workerData, CELL) });
	if (Atomics.wait(workerData, ASKED, QUESTION, GRACE_MS) !== 'timed-out')
		return;
	if (Atomics.compareExchange(workerData, ASKED, QUESTION, TERMINATED) === QUESTION)
		terminateOther();
}

// A signal that came while nobody listened: before this thread was there, or while it was busy with another.
function takePending() {
	if (!watchdogHasPendingSigint())
		return false;
	startSigintWatchdog();
	stopSigintWatchdog();
	return true;
}

for (;;) {
	try {
		if (!takePending())
			untilSigint.runInThisContext({ breakOnSigint: true });
	} catch {
		// That was the signal.
	}
	interruptOther();
}
