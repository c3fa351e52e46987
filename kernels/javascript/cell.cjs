// SPDX-License-Identifier: Apache-2.0
// One cell after the other: from a request to its end.
//
// A cell can be stopped at any moment by termination (evaluate.cjs, watcher.cjs), which takes all JavaScript
// down that is on the stack and all microtasks that wait. So nothing here relies on code after the
// evaluation to run, nor on promises: whoever stops a cell also sees to its end.
'use strict';

const { TextDecoder } = require('node:util');
const channel = require('./channel.cjs');
const display = require('./display.cjs');
const errors = require('./errors.cjs');
const { evaluate, abandon, terminate, hooks } = require('./evaluate.cjs');
const interrupt = require('./interrupt.cjs');
const { later } = require('./later.cjs');
const modules = require('./modules.cjs');
const stack = require('./stack.cjs');
const { transform } = require('./transform.cjs');

const isTypeScript = process.argv.includes('--typescript');
const EXTENSION = isTypeScript ? 'ts' : 'js';

let running = null;
let count = 0;
let isFirst = true;
let afterEnd = () => {};
// Names declared lexically so far, and whether they are constant.
const known = new Map();
// Numbers of cells that must not go on.
const stopped = new Set();
// What each cell awaits.
const awaited = new Map();

const isRunning = () => running !== null;

// request: base, env and code as lists of bytes, cwd. Never called from within a cell.
function start(request) {
	const cell = {
		number: 0, restore: [], lexical: null, isEvaluating: false, isStarted: false, value: undefined, exitCode: undefined,
	};
	running = cell;
	later(() => {
		if (!cell.isStarted)
			finish(cell, describeStop(cell));
	});
	try {
		prepare(cell, request);
		if (request.code.length > 0)
			run(cell, decode(request.code));
		else
			finish(cell, null);
	} catch (error) {
		finish(cell, errors.describe(error));
	}
	cell.isStarted = true;
}

function prepare(cell, { base, env, cwd, code }) {
	const wasFirst = isFirst;
	isFirst = false;
	if (code.length > 0) {
		cell.number = ++count;
		interrupt.begin();
		channel.say('count', String(cell.number));
	}
	if (wasFirst)
		for (const [name, value] of base.map(assignment))
			process.env[name] = value;
	for (const [name, value] of env.map(assignment)) {
		cell.restore.unshift([name, process.env[name]]);
		process.env[name] = value;
	}
	if (wasFirst && cwd !== null)
		process.chdir(cwd);
	process.argv[1] = modules.cellFile();
}

function assignment(bytes) {
	const text = bytes.toString();
	const at = text.indexOf('=');
	return [text.slice(0, at), text.slice(at + 1)];
}

function decode(pieces) {
	try {
		return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(pieces));
	} catch {
		throw new errors.Described('SyntaxError', 'the code is not UTF-8');
	}
}

function run(cell, source) {
	const file = `cell-${cell.number}.${EXTENSION}`;
	const { code, asynchronous } = toScript(cell, source, file);
	if (asynchronous)
		interrupt.arm(cell.number);
	cell.isEvaluating = true;
	evaluate(code, (failure) => {
		if (running !== cell)
			return;
		cell.isEvaluating = false;
		if (failure === null)
			showValue(cell);
		else if (failure.isStopped)
			finishSoon(cell, describeStop(cell));
		else
			finishSoon(cell, errors.describeFailure(failure.thrown, failure.details, cell.number, file, source));
	});
}

function toScript(cell, source, file) {
	const typed = isTypeScript ? require('./typescript.cjs').removeTypes(source, file) : null;
	const script = transform(typed ?? source, cell.number, known);
	stack.remember(cell.number, script?.shifts, typed);
	cell.lexical = script?.lexical ?? null;
	const code = `${script?.code ?? typed ?? source}\n//# sourceURL=${file}`;
	return { code, asynchronous: script?.asynchronous ?? false };
}

function showValue(cell) {
	const { value } = cell;
	if (!display.isPromise(value)) {
		show(cell, value);
		return;
	}
	interrupt.arm(cell.number);
	value.then((result) => show(cell, result), (error) => finishSoon(cell, errors.describe(error)));
}

function show(cell, value) {
	if (running !== cell)
		return;
	if (value === undefined) {
		finishSoon(cell, null);
		return;
	}
	const result = display.describe(value);
	const say = (described) => {
		if (running === cell)
			channel.say('result', display.encode(described, true));
		finishSoon(cell, null);
	};
	if (display.isPromise(result)) {
		interrupt.arm(cell.number);
		result.then(say);
	} else {
		say(result);
	}
}

// After what the cell has left for this turn of the event loop: its ticks, and the rejections that nobody
// handles, are told as part of the cell.
function finishSoon(cell, error) {
	later(() => finish(cell, error));
}

// The end of a cell, whichever comes first; for a cell that is not the running one it does nothing.
function finish(cell, error) {
	if (running !== cell)
		return;
	interrupt.release(cell.number, () => {
		if (running === cell)
			conclude(cell, error);
	});
}

function conclude(cell, error) {
	running = null;
	awaited.delete(cell.number);
	if (cell.isEvaluating)
		abandon();
	for (const [name, value] of cell.restore) {
		if (value === undefined)
			delete process.env[name];
		else
			process.env[name] = value;
	}
	if (error !== null)
		channel.say('error', channel.toJson(error));
	channel.say('end', '');
	afterEnd();
}

// --- how a cell is stopped -------------------------------------------------------------------------------

function onInterrupt(number) {
	if (running === null || running.number !== number)
		return;
	stopped.add(number);
	finish(running, describeStop(running));
}

// process.exit() ends the cell, not the context: silently with 0, as an error with anything else.
function exit(code = process.exitCode ?? 0) {
	const cell = running;
	process.exitCode = undefined;
	if (cell !== null) {
		cell.exitCode = code;
		stopped.add(cell.number);
		later(() => finish(cell, describeStop(cell)));
	}
	terminate();
}

function describeStop({ exitCode }) {
	if (exitCode === undefined)
		return errors.describe(new errors.Interrupted());
	if (Number(exitCode) === 0)
		return null;
	const traceback = `ProcessExit: the cell called process.exit(${exitCode})`;
	return { name: 'ProcessExit', value: String(exitCode), traceback };
}

// --- what the changed source calls (transform.cjs) -------------------------------------------------------

const helpers = {
	hooks,
	load: (specifier, names, attributes) => modules.load(specifier, names, attributes, isTypeScript),
	dynamic: modules.dynamic,
	meta: modules.meta,

	// V8 has accepted the script: what it declares exists from now on.
	began() {
		for (const [name, constant] of running?.lexical ?? [])
			known.set(name, constant);
	},

	value(number, value) {
		if (running?.number === number)
			running.value = value;
	},

	resumed(number, value) {
		if (stopped.has(number))
			throw new errors.Interrupted();
		return value;
	},

	held(number, value) {
		const promise = typeof value === 'object' && value !== null ? Promise.resolve(value) : value;
		awaited.set(number, promise);
		return promise;
	},

	heldEach(number, iterable) {
		const values = (async function* each() {
			yield* iterable;
		})();
		const hold = (promise) => helpers.held(number, promise);
		return { [Symbol.asyncIterator]: () => ({ next: () => hold(values.next()), return: () => hold(values.return()) }) };
	},

	// A target for assignments to a constant.
	constant(read) {
		return {
			get value() {
				return read();
			},
			set value(_) {
				throw new TypeError('Assignment to constant variable.');
			},
		};
	},

	named(lifted, name) {
		return Object.defineProperty(lifted, 'name', { value: name });
	},
};

function install(callback) {
	afterEnd = callback;
	interrupt.install(onInterrupt);
	process.exit = exit;
}

module.exports = { install, start, isRunning, helpers };
