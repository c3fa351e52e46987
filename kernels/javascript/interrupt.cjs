// SPDX-License-Identifier: Apache-2.0
// SIGINT interrupts the cell that runs and means nothing between cells.
//
// While a cell runs without having awaited anything, vm's breakOnSigint does it (evaluate.cjs). For a cell
// that awaits, a thread listens (watcher.cjs), started when the first such cell comes, since it costs 8 MB.
'use strict';

const path = require('node:path');
const { setTimeout, clearTimeout } = require('node:timers');
const { Worker } = require('node:worker_threads');
const sigint = require('./sigint.cjs');
const { ARMED, ASKED, LISTENING, TERMINATING, WORDS } = require('./watched.cjs');

// How long to wait for the watcher to stop listening to the cell before. It takes microseconds.
const LEAVE_MS = 1;
const LEAVE_TRIES = 50;

// After a termination: how often to look whether it is over, at most and at least. One may come late and hit
// whatever runs then, so something of no importance runs a few times.
const QUIET_MS = 5;
const QUIET_LOOKS = 40;
const QUIET_ENOUGH = 3;

const shared = new Int32Array(new SharedArrayBuffer(WORDS * Int32Array.BYTES_PER_ELEMENT));

let watcher = null;
let interrupted = null;

function set(word, value) {
	Atomics.store(shared, word, value);
	Atomics.notify(shared, word);
}

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

// callback(number) is called when the cell of that number is interrupted while it awaits. Node's handler for
// SIGINT between cells would be the one that ends the process, so one watch is held from here on.
function install(callback) {
	interrupted = callback;
	sigint.hold();
	shieldSigint();
}

// Forgets every signal that came before the cell.
function begin() {
	for (let i = 0; Atomics.load(shared, LISTENING) === 1 && i < LEAVE_TRIES; i++)
		Atomics.wait(shared, LISTENING, 1, LEAVE_MS);
	sigint.settle();
	sigint.takePending();
}

const onMessage = ({ cell }) => interrupted(cell);

// The cell is about to await something.
function arm(cell) {
	if (watcher === null) {
		const options = { workerData: shared, env: {}, execArgv: ['--expose-internals'] };
		watcher = new Worker(path.join(__dirname, 'watcher.cjs'), options);
		watcher.on('message', onMessage);
		watcher.on('error', () => {
			watcher = null;
		});
		watcher.unref();
	}
	set(ARMED, cell);
}

// The cell is over: from now on nothing interrupts it, and nothing that interrupted it can hit what comes after
// act(). While the watcher is at work this code may itself be terminated, so what completes it is set up
// before the watcher is told to stop.
function release(cell, act) {
	if (Atomics.load(shared, ASKED) === 0) {
		set(ARMED, 0);
		act();
		return;
	}
	const timers = whenQuiet(cell, act);
	set(ARMED, 0);
	set(ASKED, 0);
	if (Atomics.load(shared, TERMINATING) !== cell) {
		timers.forEach(clearTimeout);
		act();
	}
}

// Many timers, since each may be the one that is terminated. act() must bear to be called again.
function whenQuiet(cell, act) {
	let quiet = 0;
	const look = () => {
		if (Atomics.load(shared, TERMINATING) !== cell && ++quiet >= QUIET_ENOUGH)
			act();
	};
	return Array.from({ length: QUIET_LOOKS }, (_, i) => setTimeout(look, (i + 1) * QUIET_MS));
}

module.exports = { install, begin, arm, release };
