// SPDX-License-Identifier: Apache-2.0
// Runs a cell's code in V8's REPL mode, which only the inspector offers.
'use strict';

const inspector = require('node:inspector');
const vm = require('node:vm');
const { HELPER } = require('./transform.cjs');
const { takePending } = require('./sigint.cjs');

const GROUP = 'cell';

let session = connect();
let taken;
let toRun = null;

function connect() {
	const made = new inspector.Session();
	made.connect();
	return made;
}

// For the scripts below, which can name only globals.
const hooks = {
	take: (value) => {
		taken = value;
	},
	run: () => toRun(),
};

// Code that runs in here is broken off by SIGINT.
const interruptible = new vm.Script(`${HELPER}.hooks.run()`, { filename: 'kernel' });

// The value that the inspector speaks of.
function realValue(remote) {
	if (remote.objectId === undefined)
		return 'unserializableValue' in remote ? (0, eval)(remote.unserializableValue) : remote.value;
	const functionDeclaration = `function () { 'use strict'; ${HELPER}.hooks.take(this) }`;
	taken = undefined;
	session.post('Runtime.callFunctionOn', { functionDeclaration, objectId: remote.objectId, silent: true });
	session.post('Runtime.releaseObjectGroup', { objectGroup: GROUP });
	return taken;
}

// done(null), or done({ thrown, details }) or done({ isStopped: true }), when the code and everything it awaits is
// over. After a stop it may be called never, or late.
function evaluate(code, done) {
	const stopped = { isStopped: true };
	const request = { expression: code, replMode: true, objectGroup: GROUP, silent: true };
	const settle = (error, answer) => {
		if (error)
			done(stopped);
		else if (answer.exceptionDetails)
			done({ thrown: realValue(answer.exceptionDetails.exception), details: answer.exceptionDetails });
		else
			done(null);
	};
	// Under the watch for SIGINT there is no moment between looking back and listening.
	toRun = () => (takePending() ? done(stopped) : session.post('Runtime.evaluate', request, settle));
	try {
		interruptible.runInThisContext({ breakOnSigint: true });
	} catch (error) {
		if (error?.code !== 'ERR_SCRIPT_EXECUTION_INTERRUPTED')
			throw error;
		done(stopped);
	}
}

// Forgets what is still being evaluated. Node 22 and later crash when the garbage collector finds that a
// session waits for something that can never come; a session that is gone does not wait.
function abandon() {
	session.disconnect();
	session = connect();
}

// Ends whatever JavaScript runs now, so that nothing can catch it. Does not return.
function terminate() {
	session.post('Runtime.terminateExecution');
	for (;;)
		;
}

module.exports = { evaluate, abandon, terminate, hooks };
