// SPDX-License-Identifier: Apache-2.0
// Calls a function without the warnings by which Node says that what it uses may change: they are for
// whoever wrote the kernel, not for whoever runs a cell.
'use strict';

function quietly(act) {
	const { emitWarning } = process;
	process.emitWarning = () => {};
	try {
		return act();
	} finally {
		process.emitWarning = emitWarning;
	}
}

module.exports = { quietly };
