// SPDX-License-Identifier: Apache-2.0
// Takes the types out of a cell, without checking them: by esbuild where it is installed, otherwise by Node
// itself where it can (22.13 and later).
'use strict';

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const module_ = require('node:module');
const path = require('node:path');
const { Described, Interrupted } = require('./errors.cjs');
const { quietly } = require('./quiet.cjs');

const OUTPUT_MAX = 256 * 1024 * 1024;
// A name that only a later cell uses must stay imported, so nothing is left away for being unused.
const COMPILER_OPTIONS = {
	verbatimModuleSyntax: true,
	preserveValueImports: true,
	importsNotUsedAsValues: 'preserve',
	experimentalDecorators: true,
	useDefineForClassFields: true,
};

// Found once, before cells can change PATH.
function findEsbuild() {
	for (const directory of (process.env.PATH ?? '/usr/local/bin:/usr/bin:/bin').split(':')) {
		const file = path.join(directory, 'esbuild');
		if (path.isAbsolute(file) && fs.existsSync(file))
			return file;
	}
	return null;
}

const esbuild = findEsbuild();

function byEsbuild(source, file) {
	const args = ['--loader=ts', '--format=esm', `--target=node${process.versions.node}`, '--charset=utf8',
		'--sourcemap=inline', '--sources-content=false', `--sourcefile=${file}`, '--log-level=error', '--color=false',
		`--tsconfig-raw=${JSON.stringify({ compilerOptions: COMPILER_OPTIONS })}`];
	const run = spawnSync(esbuild, args, { input: source, cwd: '/', env: {}, encoding: 'utf8', maxBuffer: OUTPUT_MAX });
	if (run.signal === 'SIGINT')
		throw new Interrupted();
	if (run.error)
		throw run.error;
	if (run.status !== 0)
		throw syntaxError(run.stderr.trimEnd());
	return run.stdout;
}

// esbuild's report begins with the message and goes on with the place.
function syntaxError(report) {
	const [message, ...place] = report.replace(/^.*\[ERROR\] /, '').split('\n');
	return new Described('SyntaxError', message, [`SyntaxError: ${message}`, ...place].join('\n'));
}

function compile(source, file) {
	if (esbuild !== null)
		return byEsbuild(source, file);
	if (module_.stripTypeScriptTypes)
		return quietly(() => module_.stripTypeScriptTypes(source, { mode: 'transform', sourceMap: true, sourceUrl: file }));
	throw new Error('TypeScript needs esbuild in this template, or Node.js 22.13 or later: neither is there');
}

// JavaScript with an inline source map.
function removeTypes(source, file) {
	// As in JavaScript: a cell that is one object is meant as its value, though it reads as a block.
	if (/^\s*\{/.test(source)) {
		try {
			return compile(`(${source}\n)`, file);
		} catch {
			// A block, then, or wrong in a way that is told below.
		}
	}
	return compile(source, file);
}

module.exports = { removeTypes };
