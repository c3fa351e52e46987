// SPDX-License-Identifier: Apache-2.0
// Calls a function from the event loop, when what runs now and its ticks, microtasks and rejections are done.
// setImmediate() would do the same, but Node loses its list when a function in it is terminated.
'use strict';

const { MessageChannel } = require('node:worker_threads');

const { port1: caller, port2: callee } = new MessageChannel();
const waiting = [];

callee.on('message', () => waiting.shift()?.());

function later(act) {
	waiting.push(act);
	caller.postMessage(null);
}

module.exports = { later };
