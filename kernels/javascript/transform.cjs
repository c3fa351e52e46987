// SPDX-License-Identifier: Apache-2.0
// Makes a cell's source into a script for V8's REPL mode, which knows top-level await and lets a later
// script declare `let` and `class` anew. What it does not know is changed here, line by line in place:
//
// - `const` becomes `let`, since V8 never lets a constant become anything else. Assignments to it are
//   found by their scope and throw, as they would have;
// - a name that changes between `var` or `function` and `let`, `const`, `class` or `import` is assigned
//   instead of declared;
// - import declarations, import(), import.meta and export have no meaning in a script;
// - the value of the last expression is handed over, and every await asks afterwards whether its cell has
//   been interrupted.
'use strict';

const acorn = require('internal/deps/acorn/acorn/dist/acorn');
const { Edits } = require('./edits.cjs');
const { walk, lifted, declaredNames, meansOutermost, isInFunction, assigned } = require('./syntax.cjs');

// The global by which the changed source calls the kernel (helpers.cjs).
const HELPER = '__glovebox__';
const OPTIONS = {
	ecmaVersion: 'latest',
	sourceType: 'script',
	allowAwaitOutsideFunction: true,
	allowImportExportEverywhere: true,
	allowHashBang: true,
};

// Import attributes for the acorn of Node 18, which does not know them. A newer one has read them when it comes to the
// end of the declaration.
const Parser = acorn.Parser.extend((Base) => class extends Base {
	parseImport(node) {
		this.importing = node;
		return super.parseImport(node);
	}

	semicolon() {
		const node = this.importing;
		this.importing = undefined;
		if (node && this.eat(acorn.tokTypes._with)) {
			node.attributes = this.parseObj(false).properties;
			if (node.attributes.some(({ value }) => typeof value?.value !== 'string'))
				this.unexpected(node.start);
		}
		super.semicolon();
	}
});

function parse(source) {
	try {
		return Parser.parse(source, OPTIONS);
	} catch {
		return null;
	}
}

// A global property that cannot be redefined, as `var` and `function` make them, forbids a lexical
// declaration of its name.
function isFixedGlobal(name) {
	return Object.getOwnPropertyDescriptor(globalThis, name)?.configurable === false;
}

class Cell {
	// known: for each name declared lexically by an earlier cell, whether it is constant.
	constructor(source, tree, number, known) {
		this.source = source;
		this.tree = tree;
		this.number = number;
		this.known = known;
		this.edits = new Edits(source);
		this.lexical = new Map();
		this.declaredFirst = new Set();
		this.prologue = [];
		this.imports = [];
		this.closings = [];
		this.asynchronous = false;
	}

	transform() {
		this.handOverValue();
		for (const statement of this.tree.body)
			this.statement(statement);
		for (const declaration of lifted(this.tree))
			this.variables(declaration);
		walk(this.tree, (place) => this.expression(place));
		for (const { at, text } of this.closings)
			this.edits.insert(at, text);
		this.insertPrologue();
		return {
			code: this.edits.apply(),
			shifts: this.edits.shifts(),
			lexical: this.lexical,
			asynchronous: this.asynchronous,
		};
	}

	handOverValue() {
		const last = this.tree.body.filter((statement) => statement.type !== 'EmptyStatement').at(-1);
		if (last?.type !== 'ExpressionStatement')
			return;
		this.edits.insert(last.expression.start, `${HELPER}.value(${this.number}, (`);
		this.edits.insert(last.expression.end, '))');
	}

	statement(node) {
		switch (node.type) {
		case 'ImportDeclaration':
			this.importDeclaration(node);
			break;
		case 'ExportNamedDeclaration':
		case 'ExportDefaultDeclaration':
		case 'ExportAllDeclaration':
			this.exportDeclaration(node);
			break;
		case 'VariableDeclaration':
			if (node.kind !== 'var')
				this.lexicalVariables(node);
			break;
		case 'ClassDeclaration':
			this.classDeclaration(node);
			break;
		case 'FunctionDeclaration':
			this.functionDeclaration(node);
			break;
		}
	}

	lexicalVariables(node) {
		const names = declaredNames(node);
		for (const name of names)
			this.lexical.set(name, node.kind === 'const');
		if (names.some(isFixedGlobal))
			this.assignInstead(node, names);
		else if (node.kind === 'const')
			this.edits.replace(node.start, node.start + 'const'.length, 'let  ');
	}

	// `void` begins a statement wherever a declaration may, and cannot continue the line before.
	assignInstead(node, names) {
		this.declareFirst(names);
		this.edits.replace(node.start, node.start + node.kind.length, 'void(');
		for (const declarator of node.declarations)
			if (declarator.init === null && node.kind !== 'var')
				this.edits.insert(declarator.end, ' = void 0');
		this.edits.insert(node.declarations.at(-1).end, ')');
	}

	declareFirst(names) {
		for (const name of names)
			if (!isFixedGlobal(name))
				this.declaredFirst.add(name);
	}

	classDeclaration(node) {
		const { name } = node.id;
		this.lexical.set(name, false);
		if (!isFixedGlobal(name))
			return;
		this.edits.insert(node.start, `void(${name} = `);
		this.closings.push({ at: node.end, text: ');' });
	}

	// V8 lifts the function under another name; the lexical name gets it before anything else runs.
	functionDeclaration(node) {
		const { name } = node.id;
		if (!this.known.has(name))
			return;
		this.lexical.set(name, false);
		this.edits.replace(node.id.start, node.id.end, `${HELPER}${name}`);
		this.declareFirst([name]);
		this.prologue.push(`${name} = ${HELPER}.named(${HELPER}${name}, '${name}');`);
	}

	// `var` of a name that an earlier cell declared lexically.
	variables(node) {
		const names = declaredNames(node);
		if (node.type !== 'VariableDeclaration' || !names.some((name) => this.known.has(name)))
			return;
		this.declareFirst(names);
		for (const name of names)
			this.lexical.set(name, false);
		const place = this.loopHeads().get(node);
		if (place)
			this.edits.replace(node.start, node.start + 'var'.length, '');
		else
			this.assignInstead(node, []);
	}

	loopHeads() {
		if (!this.heads) {
			this.heads = new Map();
			walk(this.tree, ({ node }) => {
				if (/^For(In|Of)?Statement$/.test(node.type))
					this.heads.set(node.init ?? node.left, node);
			});
		}
		return this.heads;
	}

	importDeclaration(node) {
		const local = node.specifiers.map((specifier) => specifier.local.name);
		const wanted = node.specifiers.map((specifier) => {
			if (specifier.type === 'ImportDefaultSpecifier')
				return 'default';
			return specifier.type === 'ImportNamespaceSpecifier' ? '*' : (specifier.imported.name ?? specifier.imported.value);
		});
		const attributes = (node.attributes ?? []).map((attribute) => this.source.slice(attribute.start, attribute.end));
		const request = `${this.text(node.source)}, ${JSON.stringify(wanted)}, {${attributes.join(', ')}}`;
		for (const name of local)
			this.lexical.set(name, true);
		this.declareFirst(local);
		this.imports.push(`void([${local.join(', ')}] = await ${HELPER}.load(${request}));`);
		this.asynchronous = true;
		this.edits.remove(node.start, node.end);
	}

	text(node) {
		return this.source.slice(node.start, node.end);
	}

	exportDeclaration(node) {
		const { declaration } = node;
		if (!declaration) {
			this.edits.remove(node.start, node.end);
		} else if (/Declaration$/.test(declaration.type) && declaration.id !== null) {
			this.edits.remove(node.start, declaration.start);
			this.statement(declaration);
		} else {
			this.exportedExpression(node);
		}
	}

	exportedExpression(node) {
		const tokens = acorn.tokenizer(this.text(node), OPTIONS);
		tokens.getToken(); // export
		this.edits.replace(node.start, node.start + tokens.getToken().end, 'void(');
		const isTerminated = this.source[node.end - 1] === ';';
		this.closings.push({ at: isTerminated ? node.end - 1 : node.end, text: isTerminated ? ')' : ');' });
	}

	expression(place) {
		const { node } = place;
		switch (node.type) {
		case 'ImportExpression':
			this.edits.replace(node.start, node.start + 'import'.length, `${HELPER}.dynamic`);
			this.asynchronous = true;
			break;
		case 'MetaProperty':
			if (node.meta.name === 'import')
				this.edits.replace(node.start, node.end, `${HELPER}.meta()`);
			break;
		case 'AwaitExpression':
			this.awaitExpression(place);
			break;
		case 'ForOfStatement':
			if (node.await)
				this.awaitEach(place);
			break;
		}
		for (const target of assigned(node))
			if (this.isConstant(target.name) && meansOutermost(place, target.name))
				this.refuseAssignment(target);
	}

	// V8 does not hold what a script awaits (evaluate.cjs), so what is awaited outside functions is held by us.
	awaitExpression(place) {
		const { node } = place;
		const held = isInFunction(place) ? '' : ` ${HELPER}.held(${this.number}, `;
		this.edits.insert(node.start, `${HELPER}.resumed(${this.number}, `);
		this.edits.insert(node.start + 'await'.length, held);
		this.edits.insert(node.end, held === '' ? ')' : '))');
		this.asynchronous = true;
	}

	awaitEach(place) {
		const { right, body } = place.node;
		if (body.type === 'BlockStatement')
			this.edits.insert(body.start + 1, `${HELPER}.resumed(${this.number});`);
		if (!isInFunction(place)) {
			this.edits.insert(right.start, `${HELPER}.heldEach(${this.number}, (`);
			this.edits.insert(right.end, '))');
		}
		this.asynchronous = true;
	}

	isConstant(name) {
		return this.lexical.get(name) ?? (this.known.get(name) === true && !this.declaredHere(name));
	}

	declaredHere(name) {
		this.liftedNames ??= new Set(lifted(this.tree).flatMap(declaredNames));
		return this.liftedNames.has(name);
	}

	refuseAssignment({ name, node, shorthand }) {
		const target = `${HELPER}.constant(() => ${name}).value`;
		this.edits.replace(node.start, node.end, shorthand ? `${name}: ${target}` : target);
	}

	// After the directives, which count only where nothing stands before them.
	insertPrologue() {
		const first = this.tree.body.find((statement) => !statement.directive);
		if (!first)
			return;
		const names = [...this.declaredFirst].join(', ');
		const declaration = names === '' ? [] : [`let ${names};`];
		const text = [`${HELPER}.began();`, ...declaration, ...this.prologue, ...this.imports].join(' ') + ' ';
		this.edits.list.unshift({ start: first.start, end: first.start, text });
	}
}

// A cell that is one object, `{a: 1}`, is meant as its value, though it reads as a block or not at all.
function asObject(source) {
	const wrapped = `(${source}\n)`;
	const tree = /^\s*\{/.test(source) ? parse(wrapped) : null;
	const isObject = tree?.body.length === 1 && tree.body[0].expression?.type === 'ObjectExpression';
	return isObject ? { source: wrapped, tree } : null;
}

// null where the source is not understood here: then V8 reads it as it is, and tells what is wrong.
function transform(source, number, known) {
	const read = asObject(source) ?? { source, tree: parse(source) };
	return read.tree === null ? null : new Cell(read.source, read.tree, number, known).transform();
}

module.exports = { transform, HELPER };
