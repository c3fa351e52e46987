// SPDX-License-Identifier: Apache-2.0
// What is said of an error that ended a cell: its name, its message, and where it happened.
'use strict';

const { inspect } = require('node:util');
const stack = require('./stack.cjs');

const TRACEBACK_MAX = 64 * 1024;

// An error whose description is complete as it is, without frames.
class Described extends Error {
	constructor(name, message, traceback = `${name}: ${message}`) {
		super(message);
		this.name = name;
		this.stack = traceback;
	}
}

class Interrupted extends Described {
	constructor() {
		super('KeyboardInterrupt', 'the cell was interrupted');
	}
}

function stringOr(get, otherwise) {
	try {
		const value = get();
		return typeof value === 'string' && value !== '' ? value : otherwise;
	} catch {
		return otherwise;
	}
}

const isError = (thrown) => typeof thrown === 'object' && thrown !== null && stringOr(() => thrown.stack, '') !== '';

// As console.error would print it: with its causes and properties.
function trace(thrown) {
	const text = thrown instanceof Described ? thrown.stack : stringOr(() => inspect(thrown), 'the error cannot be shown');
	const isBracketed = isError(thrown) && /^\[[^\n]*\]$/.test(text);
	return (isBracketed ? text.slice(1, -1) : text).slice(0, TRACEBACK_MAX);
}

function describe(thrown) {
	const traceback = trace(thrown);
	if (!isError(thrown))
		return { name: 'Error', value: traceback, traceback: `Uncaught ${traceback}` };
	const name = stringOr(() => thrown.name, stringOr(() => thrown.constructor.name, 'Error'));
	return { name, value: stringOr(() => thrown.message, ''), traceback };
}

// The same for what a whole cell threw. An error of syntax has no frame in the cell; the line and a mark take
// its place. details: the inspector's, which count from 0.
function describeFailure(thrown, details, number, file, source) {
	const said = describe(thrown);
	if (!(thrown instanceof SyntaxError) || details === null || said.traceback.includes(`${file}:`))
		return said;
	const place = stack.original(number, details.lineNumber + 1, details.columnNumber + 1);
	const lines = source.split('\n');
	const row = Math.min(place.line, lines.length);
	const line = lines[row - 1];
	const mark = (row < place.line ? line : line.slice(0, place.column - 1)).replace(/[^\t]/g, ' ') + '^';
	return { ...said, traceback: `${file}:${row}\n${line}\n${mark}\n\n${said.name}: ${said.value}` };
}

module.exports = { Described, Interrupted, trace, describe, describeFailure };
