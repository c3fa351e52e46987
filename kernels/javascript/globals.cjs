// SPDX-License-Identifier: Apache-2.0
// What cells find beside Node's own globals, and what becomes of errors that no cell waits for.
'use strict';

const channel = require('./channel.cjs');
const display = require('./display.cjs');
const errors = require('./errors.cjs');

// Between cells nobody takes results: the text goes where prints go.
function emit(result, isRunning) {
	if (isRunning())
		channel.say('result', display.encode(result, false));
	else
		process.stdout.write(`${result.text ?? ''}\n`);
}

// display(value), display(bundle, { raw: true }) for MIME types, and display.html(text) and so on. Returns a
// promise where the value promises to say how it is shown.
function makeDisplay(isRunning) {
	const showNow = (result) =>
		display.isPromise(result) ? result.then((described) => emit(described, isRunning)) : emit(result, isRunning);
	const show = (value, options) => showNow(options?.raw ? display.fromBundle(value) : display.describe(value));
	for (const [type, field] of display.FIELDS)
		show[field] = (content) => showNow(display.fromBundle({ [type]: content }));
	return show;
}

// Node's list of immediates is broken when one of several was terminated: then it fails in every turn of the
// event loop from now on.
const isNodeBroken = (trace) => /^[^\n]*\n\s+at process\.processImmediate \(node:/.test(trace);

function report(prefix, thrown) {
	const trace = errors.trace(thrown);
	if (isNodeBroken(trace))
		channel.die();
	if (!(thrown instanceof errors.Interrupted))
		process.stderr.write(`${prefix}${trace}\n`);
}

// They are told and change nothing, unless cells listen for them.
function surviveBackground() {
	const told = { uncaughtException: 'Uncaught ', unhandledRejection: 'Uncaught (in promise) ' };
	for (const [event, prefix] of Object.entries(told)) {
		process.on(event, (thrown) => {
			if (process.listenerCount(event) === 1)
				report(prefix, thrown);
		});
	}
}

function install(helperName, helpers, isRunning) {
	Object.defineProperty(globalThis, helperName, { value: Object.freeze(helpers) });
	Object.defineProperty(globalThis, 'display', { configurable: true, writable: true, value: makeDisplay(isRunning) });
	surviveBackground();
	// For child_process.fork: these options are the kernel's, not the cell's.
	process.execArgv.length = 0;
	process.argv.length = 1;
}

module.exports = { install };
