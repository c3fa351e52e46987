// SPDX-License-Identifier: Apache-2.0
// The two pipes to the agent (kernels/PROTOCOL.md). Requests are read as they come, by the event loop;
// events are written at once and completely, so that they stand in order with what a cell prints.
'use strict';

const fs = require('node:fs');
const net = require('node:net');

const REQUESTS_FD = 3;
const EVENTS_FD = 4;
const HEADER_MAX = 15 + 1 + 8 + 1;
const HEADER = /^([a-z]{1,15}) (0|[1-9][0-9]{0,7})$/;
const NEWLINE = 0x0a;
// How long to wait before writing again to a pipe that is full and does not block: a child of a cell
// may have made it so, for the flag is one for all who hold the pipe.
const FULL_PIPE_PAUSE_MS = 2;

const { writeSync } = fs;
const { from, concat } = Buffer;
const { stringify } = JSON;
const pauseCell = new Int32Array(new SharedArrayBuffer(4));

function writeAll(fd, bytes) {
	let written = 0;
	while (written < bytes.length) {
		try {
			written += writeSync(fd, bytes, written);
		} catch (error) {
			if (error.code !== 'EAGAIN')
				throw error;
			Atomics.wait(pauseCell, 0, 0, FULL_PIPE_PAUSE_MS);
		}
	}
}

// A kernel without its agent has nothing to live for. Node's own exit would wait for debuggers and run
// what cells left for it.
function die() {
	process.kill(process.pid, 'SIGKILL');
}

function say(word, text) {
	const bytes = from(text, 'utf8');
	try {
		writeAll(EVENTS_FD, concat([from(`${word} ${bytes.length}\n`), bytes]));
	} catch {
		die();
	}
}

// JSON in plain ASCII, which nothing on the way can take apart in the middle of a character.
function toJson(object) {
	const escape = (unit) => '\\u' + unit.charCodeAt(0).toString(16).padStart(4, '0');
	return stringify(object)?.replace(/[\u0080-\uffff]/g, escape);
}

// Cuts the byte stream into messages. Chunks are joined only when enough has come, so that a long message
// costs no more than its length.
class Messages {
	constructor(deliver) {
		this.deliver = deliver;
		this.chunks = [];
		this.held = 0;
		this.expectHeader();
	}

	expectHeader() {
		this.word = null;
		this.needed = 1;
	}

	push(chunk) {
		this.chunks.push(chunk);
		this.held += chunk.length;
		while (this.held >= this.needed) {
			const bytes = this.chunks.length === 1 ? this.chunks[0] : concat(this.chunks);
			const used = this.word === null ? this.takeHeader(bytes) : this.takeBody(bytes);
			this.chunks = [bytes.subarray(used)];
			this.held = bytes.length - used;
		}
	}

	// Both return how many bytes they used, and set what is needed next.
	takeHeader(bytes) {
		const end = bytes.subarray(0, HEADER_MAX).indexOf(NEWLINE);
		if (end < 0 && bytes.length < HEADER_MAX) {
			this.needed = bytes.length + 1;
			return 0;
		}
		const match = HEADER.exec(bytes.toString('latin1', 0, end));
		if (!match) {
			die();
			return bytes.length;
		}
		this.word = match[1];
		this.needed = Number(match[2]);
		return end + 1;
	}

	takeBody(bytes) {
		const { word, needed } = this;
		this.expectHeader();
		this.deliver(word, bytes.subarray(0, needed));
		return needed;
	}
}

function listen(deliver) {
	const messages = new Messages(deliver);
	const socket = new net.Socket({ fd: REQUESTS_FD, readable: true, writable: false });
	socket.on('data', (chunk) => messages.push(chunk));
	socket.on('end', die);
	socket.on('error', die);
}

module.exports = { listen, say, toJson, writeAll, die };
