// SPDX-License-Identifier: Apache-2.0
// The kernel for JavaScript and, with --typescript, for TypeScript: see kernels/PROTOCOL.md.
//
// node --expose-internals --no-force-async-hooks-checks kernel.cjs [--typescript]
//
// The first option is for Node's own parser, acorn; the second lets Node live on when a cell is terminated in
// the middle of a callback.
'use strict';

if (!process.execArgv.includes('--expose-internals')) {
	process.stderr.write('this kernel must be started with node --expose-internals\n');
	process.exit(2);
}

const cell = require('./cell.cjs');
const channel = require('./channel.cjs');
const { evaluate } = require('./evaluate.cjs');
const globals = require('./globals.cjs');
const { later } = require('./later.cjs');
const modules = require('./modules.cjs');
const output = require('./output.cjs');
const stack = require('./stack.cjs');
const { HELPER } = require('./transform.cjs');

const waiting = [];
let request = newRequest();

function newRequest() {
	return { base: [], env: [], cwd: null, code: [] };
}

function receive(word, bytes) {
	switch (word) {
	case 'base':
	case 'env':
	case 'code':
		request[word].push(bytes);
		break;
	case 'cwd':
		request.cwd = bytes.toString();
		break;
	case 'run':
		waiting.push(request);
		request = newRequest();
		startSoon();
		break;
	}
}

// From the event loop, with nothing of ours on the stack that the end of a cell could take down.
function startSoon() {
	later(() => {
		if (!cell.isRunning() && waiting.length > 0)
			cell.start(waiting.shift());
	});
}

output.install();
stack.install();
cell.install(() => {
	if (waiting.length > 0)
		startSoon();
});
globals.install(HELPER, cell.helpers, cell.isRunning);
modules.install();
// The first evaluation is the slow one.
evaluate('0', () => {
	channel.listen(receive);
	channel.say('ready', String(process.pid));
});
