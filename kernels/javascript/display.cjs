// SPDX-License-Identifier: Apache-2.0
// How a value is shown: a result of kernels/PROTOCOL.md.
//
// A value may say itself how: [Symbol.for('Jupyter.display')]() or toMime() returns an object of MIME types,
// and toHtml(), toMarkdown(), toSvg(), toPng(), toJpeg(), toPdf(), toLatex() one representation each. All of
// them may return promises.
'use strict';

const util = require('node:util');
const { toJson } = require('./channel.cjs');

const JUPYTER = Symbol.for('Jupyter.display');
const FIELDS = new Map([
	['text/plain', 'text'],
	['text/html', 'html'],
	['text/markdown', 'markdown'],
	['text/latex', 'latex'],
	['image/svg+xml', 'svg'],
	['image/png', 'png'],
	['image/jpeg', 'jpeg'],
	['application/pdf', 'pdf'],
	['application/javascript', 'javascript'],
	['application/json', 'json'],
	['e2b/data', 'data'],
	['e2b/chart', 'chart'],
]);
const OBJECT_FIELDS = new Set(['json', 'data', 'chart']);
const METHODS = {
	toHtml: 'text/html',
	toMarkdown: 'text/markdown',
	toSvg: 'image/svg+xml',
	toPng: 'image/png',
	toJpeg: 'image/jpeg',
	toPdf: 'application/pdf',
	toLatex: 'text/latex',
};
// What one result may be long, in JSON; and from where on a value's JSON is left away beside its text.
const RESULT_MAX = 24 * 1024 * 1024;
const JSON_MAX = 1024 * 1024;

const { inspect } = util;
const { stringify } = JSON;
const { from } = Buffer;

function text(value) {
	if (typeof value === 'string')
		return value;
	try {
		return inspect(value);
	} catch (error) {
		return `[the value cannot be shown: ${typeof error?.message === 'string' ? error.message : 'inspect failed'}]`;
	}
}

function isPlain(value) {
	if (Array.isArray(value))
		return true;
	if (typeof value !== 'object' || value === null || util.types.isProxy(value))
		return false;
	const prototype = Object.getPrototypeOf(value);
	return prototype === Object.prototype || prototype === null;
}

// JSON of arrays and plain objects, where it exists and is not long; undefined otherwise.
function plainJson(value) {
	try {
		const json = isPlain(value) ? stringify(value) : undefined;
		return json !== undefined && json.length <= JSON_MAX ? JSON.parse(json) : undefined;
	} catch {
		return undefined;
	}
}

function isBytes(value) {
	return ArrayBuffer.isView(value) || value instanceof ArrayBuffer;
}

// Bytes go as base64, except where the type is text.
function asString(field, value) {
	if (typeof value === 'string')
		return /^(png|jpeg|pdf)$/.test(field) ? value.replace(/^data:[^,]*;base64,/, '').replace(/\s+/g, '') : value;
	if (isBytes(value)) {
		const bytes = ArrayBuffer.isView(value) ? from(value.buffer, value.byteOffset, value.byteLength) : from(value);
		return bytes.toString(/^(png|jpeg|pdf|extra)$/.test(field) ? 'base64' : 'utf8');
	}
	return text(value);
}

function fromBundle(bundle) {
	const result = {};
	for (const [type, value] of Object.entries(bundle)) {
		const field = FIELDS.get(type);
		if (value === undefined || value === null)
			continue;
		if (field === undefined)
			(result.extra ??= {})[type] = isBytes(value) ? asString('extra', value) : value;
		else if (!OBJECT_FIELDS.has(field))
			result[field] = asString(field, value);
		else if (typeof value === 'object')
			result[field] = value;
	}
	return result;
}

const isPromise = (value) => util.types.isPromise(value);

// What the value says of itself: bundles of MIME types, or promises of them.
function ownBundles(value) {
	if ((typeof value !== 'object' && typeof value !== 'function') || value === null)
		return [];
	const bundles = [];
	for (const [name, type] of Object.entries(METHODS)) {
		const method = [name, `_${name}`].find((candidate) => typeof value[candidate] === 'function');
		const shown = method === undefined ? undefined : value[method]();
		if (isPromise(shown))
			bundles.push(shown.then((content) => ({ [type]: content })));
		else if (shown !== undefined)
			bundles.push({ [type]: shown });
	}
	for (const name of [JUPYTER, 'toMime', '_toMime'])
		if (typeof value[name] === 'function')
			bundles.push(value[name]());
	return bundles;
}

function fromBundles(value, bundles) {
	const result = fromBundle(Object.assign({}, ...bundles));
	result.text ??= text(value);
	return result;
}

// A method that fails is as good as none, but not silently.
function withoutMethods(value, error) {
	process.stderr.write(`display: ${text(error)}\n`);
	return { text: text(value) };
}

// The result for a value, or a promise of it where the value promises to say more.
function describe(value) {
	try {
		const bundles = ownBundles(value);
		if (bundles.length === 0)
			return { text: text(value), json: plainJson(value) };
		if (!bundles.some(isPromise))
			return fromBundles(value, bundles);
		return Promise.all(bundles).then((all) => fromBundles(value, all)).catch((error) => withoutMethods(value, error));
	} catch (error) {
		return withoutMethods(value, error);
	}
}

// The result as JSON. What has no JSON or is too long is replaced by its text, or by a note.
function encode(result, isMain) {
	const note = `[a result of more than ${RESULT_MAX} bytes, or one without JSON, is not shown]`;
	return tryEncode({ ...result, is_main_result: isMain }) ??
		tryEncode({ text: result.text, is_main_result: isMain }) ?? toJson({ text: note, is_main_result: isMain });
}

function tryEncode(result) {
	try {
		const json = toJson(result);
		return json.length <= RESULT_MAX ? json : null;
	} catch {
		return null;
	}
}

module.exports = { describe, encode, fromBundle, isPromise, text, FIELDS };
