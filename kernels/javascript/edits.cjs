// SPDX-License-Identifier: Apache-2.0
// Changes to a text that leave every line where it is, and the way back from a changed column.
'use strict';

class Edits {
	constructor(text) {
		this.text = text;
		this.list = [];
	}

	insert(at, text) {
		this.list.push({ start: at, end: at, text });
	}

	replace(start, end, text) {
		this.list.push({ start, end, text });
	}

	// Takes a statement away. The semicolon keeps its neighbours from becoming one expression.
	remove(start, end) {
		const lines = this.text.slice(start, end).split('\n').length - 1;
		this.replace(start, end, ';' + '\n'.repeat(lines));
	}

	// Of changes at one place, the first asked for comes first.
	apply() {
		let result = '';
		let done = 0;
		this.list.sort((a, b) => a.start - b.start);
		for (const edit of this.list) {
			result += this.text.slice(done, edit.start) + edit.text;
			done = edit.end;
		}
		return result + this.text.slice(done);
	}

	// For each changed line: at which columns it was changed and by how many characters.
	shifts() {
		const byLine = new Map();
		let line = 1;
		let lineStart = 0;
		let next = 0;
		for (const edit of this.list) {
			while ((next = this.text.indexOf('\n', lineStart)) >= 0 && next < edit.start) {
				line++;
				lineStart = next + 1;
			}
			const shift = { column: edit.start - lineStart, by: edit.text.length - (edit.end - edit.start) };
			byLine.set(line, [...(byLine.get(line) ?? []), shift]);
		}
		return byLine;
	}
}

// The column, counted from 1, that a column of the changed text had before.
function originalColumn(shifts, line, column) {
	let moved = 0;
	for (const shift of shifts?.get(line) ?? [])
		if (column - 1 - moved > shift.column)
			moved += Math.min(shift.by, column - 1 - moved - shift.column);
	return column - moved;
}

module.exports = { Edits, originalColumn };
