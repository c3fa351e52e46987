// SPDX-License-Identifier: Apache-2.0
// Standard output and error that are written at once. Node's own streams make a pipe non-blocking, which
// children that inherit it would suffer from, and hold back what does not fit.
'use strict';

const { Console } = require('node:console');
const { Writable } = require('node:stream');
const { writeAll } = require('./channel.cjs');

class Descriptor extends Writable {
	constructor(fd) {
		super({ autoDestroy: false, emitClose: false });
		this.fd = fd;
		this._type = 'pipe';
		this._isStdio = true;
	}

	_write(chunk, _encoding, done) {
		try {
			writeAll(this.fd, chunk);
			done();
		} catch (error) {
			done(error);
		}
	}

	// As with Node's own: a cell cannot end the output of the cells after it.
	end(chunk, encoding, done) {
		if (chunk !== undefined && chunk !== null && typeof chunk !== 'function')
			this.write(chunk, encoding);
		for (const callback of [chunk, encoding, done])
			if (typeof callback === 'function')
				process.nextTick(callback);
		return this;
	}

	destroy() {
		return this;
	}
}

function replaceStream(name, stream) {
	Object.defineProperty(process, name, { configurable: true, enumerable: true, get: () => stream });
}

// The global console also reports to the inspector, which keeps the last thousand values printed alive
// and takes a stack trace for each. The kernel's cells run through an inspector session, but nobody
// reads that report: plain methods take the place of the reporting ones.
function install() {
	const stdout = new Descriptor(1);
	const stderr = new Descriptor(2);
	replaceStream('stdout', stdout);
	replaceStream('stderr', stderr);
	const plain = new Console({ stdout, stderr });
	for (const name of Object.keys(plain))
		if (typeof plain[name] === 'function' && name !== 'Console')
			console[name] = plain[name];
}

module.exports = { install };
