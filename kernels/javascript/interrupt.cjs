// SPDX-License-Identifier: Apache-2.0
// SIGINT interrupts the cell that runs and means nothing between cells.
//
// While a cell runs without having awaited anything, vm's breakOnSigint does it (evaluate.cjs). For a cell
// that awaits, a thread listens (watcher.cjs), started when the first such cell comes, since it costs 8 MB.
'use strict';

const path = require('node:path');
const { Worker } = require('node:worker_threads');
const { startSigintWatchdog, stopSigintWatchdog, watchdogHasPendingSigint } = require('./sigint.cjs');

// The words of the memory shared with the watcher.
const ASKED = 1;
const CELL = 2;
const WORDS = 3;
const NOTHING = 0;

const shared = new Int32Array(new SharedArrayBuffer(WORDS * 4));

let watcher = null;
let interrupted = null;

// Cells that listen for SIGINT would take it away from us, and give it back as the signal that kills.
// Their listeners are kept, but not attached to the signal.
function shieldSigint() {
	for (const event of ['newListener', 'removeListener']) {
		for (const listener of process.listeners(event)) {
			process.removeListener(event, listener);
			process.on(event, (type) => {
				if (type !== 'SIGINT')
					listener(type);
			});
		}
	}
}

// callback(number) is called when the cell of that number is interrupted while it awaits, or with 0 when
// no cell was running. Node's handler for SIGINT between cells would be the one that ends the process:
// holding its watch for as long as the kernel lives means that there is no moment without it.
function install(callback) {
	interrupted = callback;
	startSigintWatchdog();
	shieldSigint();
}

// Which cell a signal from now on is meant for; 0 for none. One that came before is forgotten.
function setCell(number) {
	startSigintWatchdog();
	stopSigintWatchdog();
	Atomics.store(shared, CELL, number);
}

// Whether a signal has come that nobody was there to hear.
const isPending = () => watchdogHasPendingSigint();

function onMessage({ cell }) {
	Atomics.store(shared, ASKED, NOTHING);
	Atomics.notify(shared, ASKED);
	interrupted(cell);
}

function watch() {
	if (watcher !== null)
		return;
	watcher = new Worker(path.join(__dirname, 'watcher.cjs'), { workerData: shared, env: {} });
	watcher.on('message', onMessage);
	watcher.on('error', () => {
		watcher = null;
	});
	watcher.unref();
}

module.exports = { install, setCell, isPending, watch };
