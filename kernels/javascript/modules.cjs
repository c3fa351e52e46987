// SPDX-License-Identifier: Apache-2.0
// import and require for cells, which resolve names as a file in the current directory would.
'use strict';

const { createRequire } = require('node:module');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const vm = require('node:vm');
const { quietly } = require('./quiet.cjs');

// The file that a cell pretends to be. It need not exist.
const cellFile = () => path.join(process.cwd(), 'cell.js');

const byFile = new Map();

// What is made once for each directory that cells have been in.
function here() {
	const file = cellFile();
	if (!byFile.has(file))
		byFile.set(file, { require: createRequire(file), load: makeImport(file) });
	return byFile.get(file);
}

// An import() of its own for each directory, since it resolves relative to the script it stands in.
function makeImport(file) {
	const loader = vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER;
	if (loader === undefined)
		return olderImport(file);
	const source = '(specifier, options) => import(specifier, options)';
	const load = new vm.Script(source, { filename: file, importModuleDynamically: loader }).runInThisContext();
	return (specifier, options) => quietly(() => load(specifier, options));
}

// Node before 20.10 has no such loader for scripts: names are resolved as require does.
function olderImport(file) {
	const resolver = createRequire(file);
	// It warns once, in the middle of an import.
	quietly(() => require('internal/util').emitExperimentalWarning('Importing JSON modules'));
	return async (specifier, options) => {
		const found = /^(data|file|node|https?):/.test(specifier) ? specifier : resolver.resolve(specifier);
		return import(path.isAbsolute(found) ? pathToFileURL(found).href : found, options);
	};
}

async function dynamic(specifier, options) {
	return here().load(specifier, options);
}

// The values of an import declaration, in the order of the names; '*' is the module itself. A name that is
// missing is an error, except in TypeScript, where it may have been a type.
async function load(specifier, names, attributes, lenient) {
	const options = Object.keys(attributes).length > 0 ? { with: attributes, assert: attributes } : undefined;
	const module = await here().load(specifier, options);
	const values = [];
	for (const name of names) {
		if (name !== '*' && !lenient && !(name in module))
			throw new SyntaxError(`The requested module '${specifier}' does not provide an export named '${name}'`);
		values.push(name === '*' ? module : module[name]);
	}
	return values;
}

function meta() {
	const filename = cellFile();
	return {
		dirname: path.dirname(filename),
		filename,
		url: pathToFileURL(filename).href,
		resolve: (specifier) => {
			const found = here().require.resolve(specifier);
			return path.isAbsolute(found) ? pathToFileURL(found).href : found;
		},
	};
}

// require, module, exports, __dirname and __filename as a script file has them. They may be declared anew.
function install() {
	const require = (id) => here().require(id);
	require.resolve = (id, options) => here().require.resolve(id, options);
	require.resolve.paths = (id) => here().require.resolve.paths(id);
	Object.defineProperty(require, 'cache', { get: () => here().require.cache });
	const module = { exports: {}, id: '.', children: [], loaded: false, require };
	// So that `if (require.main === module)` holds, as in a script that is run.
	require.main = module;
	const define = (name, attributes) =>
		Object.defineProperty(globalThis, name, { configurable: true, enumerable: false, ...attributes });
	define('require', { value: require, writable: true });
	define('module', { value: module, writable: true });
	define('exports', { value: module.exports, writable: true });
	define('__dirname', { get: () => process.cwd(), set: replace('__dirname') });
	define('__filename', { get: cellFile, set: replace('__filename') });
}

function replace(name) {
	return (value) => Object.defineProperty(globalThis, name, { configurable: true, writable: true, value });
}

module.exports = { install, dynamic, load, meta, cellFile };
