// SPDX-License-Identifier: Apache-2.0
// Questions about a syntax tree: which names a piece of it declares, and which it assigns to.
'use strict';

const NOT_CHILDREN = new Set(['type', 'start', 'end', 'loc', 'range', 'raw', 'regex', 'bigint']);

function* children(node) {
	for (const key of Object.keys(node)) {
		if (NOT_CHILDREN.has(key))
			continue;
		const value = node[key];
		if (Array.isArray(value))
			yield* value.filter((item) => item && typeof item.type === 'string');
		else if (value && typeof value.type === 'string')
			yield value;
	}
}

// Calls visit(place) for root and all below it, outermost first; a place is a node and the place above it.
// The stack is our own, because the depth of a cell's source is the cell's choice.
function walk(root, visit) {
	const pending = [{ node: root, parent: null }];
	while (pending.length > 0) {
		const place = pending.pop();
		visit(place);
		const below = [...children(place.node)];
		for (let i = below.length - 1; i >= 0; i--)
			pending.push({ node: below[i], parent: place });
	}
}

const isFunction = (node) => /^(Function(Declaration|Expression)|ArrowFunctionExpression)$/.test(node.type);

// The identifiers that a pattern binds or assigns to. A shorthand property is given as the property,
// since its text stands for key and target at once.
function targets(pattern, found = []) {
	switch (pattern?.type) {
	case 'Identifier':
		found.push({ name: pattern.name, node: pattern, shorthand: false });
		break;
	case 'ObjectPattern':
		for (const property of pattern.properties)
			propertyTargets(property, found);
		break;
	case 'ArrayPattern':
		for (const element of pattern.elements)
			targets(element, found);
		break;
	case 'AssignmentPattern':
		targets(pattern.left, found);
		break;
	case 'RestElement':
		targets(pattern.argument, found);
		break;
	}
	return found;
}

function propertyTargets(property, found) {
	if (!property.shorthand)
		targets(property.type === 'RestElement' ? property.argument : property.value, found);
	else
		found.push({ name: property.key.name, node: property.key, shorthand: true });
}

const names = (pattern) => targets(pattern).map((target) => target.name);

function declaredNames(declaration) {
	if (declaration.type === 'VariableDeclaration')
		return declaration.declarations.flatMap((declarator) => names(declarator.id));
	return declaration.id ? [declaration.id.name] : [];
}

// The declarations below root whose names belong to root's function: `var`, and functions in blocks, which
// sloppy code also lifts.
function lifted(root) {
	const found = [];
	const pending = [...children(root)];
	while (pending.length > 0) {
		const node = pending.pop();
		const liftable = node.type === 'FunctionDeclaration' || (node.type === 'VariableDeclaration' && node.kind === 'var');
		if (liftable)
			found.push(node);
		if (!isFunction(node) && node.type !== 'StaticBlock')
			pending.push(...children(node));
	}
	return found;
}

const isLexical = (node) => node.type === 'ClassDeclaration' || node.type === 'FunctionDeclaration' ||
	(node.type === 'VariableDeclaration' && node.kind !== 'var');

const anyDeclares = (nodes, name) => nodes.some((node) => isLexical(node) && declaredNames(node).includes(name));

// Whether the scope that this node opens has a binding of its own for the name.
function declares(node, name) {
	if (isFunction(node))
		return node.params.some((param) => names(param).includes(name)) ||
			(node.type === 'FunctionExpression' && node.id?.name === name) ||
			lifted(node.body).some((declaration) => declaredNames(declaration).includes(name));
	switch (node.type) {
	case 'StaticBlock':
		return anyDeclares(node.body, name) || lifted(node).some((declaration) => declaredNames(declaration).includes(name));
	case 'BlockStatement':
		return anyDeclares(node.body, name);
	case 'SwitchStatement':
		return node.cases.some((branch) => anyDeclares(branch.consequent, name));
	case 'ForStatement':
		return node.init !== null && anyDeclares([node.init], name);
	case 'ForInStatement':
	case 'ForOfStatement':
		return anyDeclares([node.left], name);
	case 'CatchClause':
		return node.param !== null && names(node.param).includes(name);
	case 'ClassDeclaration':
	case 'ClassExpression':
		return node.id?.name === name;
	default:
		return false;
	}
}

// Whether a name used at this place means the outermost binding.
function meansOutermost(place, name) {
	for (let scope = place; scope !== null && scope.parent !== null; scope = scope.parent)
		if (declares(scope.node, name))
			return false;
	return true;
}

// Whether the place runs when some function is called, and not with the cell itself.
function isInFunction(place) {
	for (let above = place.parent; above !== null; above = above.parent)
		if (isFunction(above.node) || above.node.type === 'StaticBlock')
			return true;
	return false;
}

// What the node assigns to, apart from declarations.
function assigned(node) {
	switch (node.type) {
	case 'AssignmentExpression':
		return targets(node.left);
	case 'UpdateExpression':
		return targets(node.argument);
	case 'ForInStatement':
	case 'ForOfStatement':
		return node.left.type === 'VariableDeclaration' ? [] : targets(node.left);
	default:
		return [];
	}
}

module.exports = { walk, lifted, declaredNames, meansOutermost, isInFunction, assigned };
