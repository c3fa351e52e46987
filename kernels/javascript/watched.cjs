// SPDX-License-Identifier: Apache-2.0
// The words of memory that the kernel and its watcher share. Each holds the number of a cell, or 0.
'use strict';

module.exports = {
	// The cell that SIGINT is meant for. Written by the kernel.
	ARMED: 0,
	// 1 while SIGINT is the watcher's. Written by the watcher.
	LISTENING: 1,
	// The cell that the watcher has asked the kernel to end; 0 again when it is answered.
	ASKED: 2,
	// The cell that the watcher terminates. It writes this before it looks at ARMED for the last time, and the
	// kernel clears ARMED before it looks at this: so one of both knows of the other.
	TERMINATING: 3,
	WORDS: 4,
};
