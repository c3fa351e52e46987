// SPDX-License-Identifier: Apache-2.0
// Stack traces that speak of cells: without the kernel's own frames, and with the lines and columns that the
// cell had before the kernel changed it. They are made when an error's stack is first asked for, so they are
// the same wherever a cell prints it.
'use strict';

const { SourceMap } = require('node:module');
const path = require('node:path');
const { originalColumn } = require('./edits.cjs');

const CELL_FILE = /^cell-(\d+)\.(?:js|ts)$/;
const OURS = __dirname + path.sep;
// Below these is how the kernel came to run the cell, or Node to go on with it.
const ENTRIES = new Set(['node:inspector', 'node:internal/process/task_queues']);
const SOURCE_MAP = /\n\/\/# sourceMappingURL=data:application\/json;base64,([A-Za-z0-9+/=]+)\s*$/;
// How many cells' changes are remembered.
const REMEMBERED = 1000;

const { toString } = Error.prototype;
const changes = new Map();

// shifts: of the columns (edits.cjs). typed: what TypeScript's compiler wrote, with its map, or null.
function remember(cell, shifts, typed) {
	const encoded = typed === null ? null : SOURCE_MAP.exec(typed);
	const map = encoded ? new SourceMap(JSON.parse(Buffer.from(encoded[1], 'base64').toString())) : null;
	changes.set(cell, { shifts, map });
	changes.delete(cell - REMEMBERED);
}

// Where a place of the script was in the cell. Both count from 1.
function original(cell, line, scriptColumn) {
	const change = changes.get(cell);
	const column = originalColumn(change?.shifts, line, scriptColumn);
	const entry = change?.map?.findEntry(line - 1, column - 1);
	if (entry?.originalLine === undefined)
		return { line, column };
	return { line: entry.originalLine + 1, column: entry.originalColumn + 1 };
}

function describeFrame(frame, file) {
	const match = CELL_FILE.exec(file);
	if (match === null)
		return frame.toString();
	const [line, column] = [frame.getLineNumber(), frame.getColumnNumber()];
	const place = original(Number(match[1]), line, column);
	return frame.toString().replace(`${file}:${line}:${column}`, `${file}:${place.line}:${place.column}`);
}

function header(error) {
	try {
		return toString.call(error);
	} catch {
		return 'Error';
	}
}

function prepareStackTrace(error, frames) {
	let text = header(error);
	for (const frame of frames) {
		const file = frame.getFileName() || frame.getScriptNameOrSourceURL() || '';
		if (ENTRIES.has(file))
			break;
		if (!file.startsWith(OURS))
			text += `\n    at ${describeFrame(frame, file)}`;
	}
	return text;
}

function install() {
	Error.prepareStackTrace = prepareStackTrace;
}

module.exports = { install, remember, original };
