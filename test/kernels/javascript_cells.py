# SPDX-License-Identifier: Apache-2.0
"""Cells that are easy to read wrongly, in the order in which one context gets them: source and what must come of it.

A string is the text of the main result, NONE says that there is none, Out what was printed, Err the name and the
message of the error (a part of it)."""
from typing import NamedTuple

NONE = None


class Out(NamedTuple):
    """What the cell prints."""
    text: str


class Err(NamedTuple):
    """How the cell fails."""
    name: str
    value: str


DECLARED_AGAIN = [
    ("const a = 1", NONE), ("a", "1"), ("const a = 2; a", "2"), ("let a = 3; a", "3"), ("var a = 4; a", "4"),
    ("function a() { return 5 }\na()", "5"), ("class a { static v = 6 }\na.v", "6"), ("const a = 7; a", "7"),
    ("var v1 = 1; v1", "1"), ("let v1 = 2; v1", "2"), ("const v1 = 3; v1", "3"),
    ("v1 = 4", Err("TypeError", "constant")), ("v1", "3"), ("function f1() { return 1 }", NONE),
    ("const f1 = () => 2; f1()", "2"), ("class f1 {}; typeof f1", "function"),
    ("function f1() { return 3 }; f1()", "3"), ("f1.name", "f1"), ("async function a() { return 8 }\na()", "8"),
    ("function* a() { yield 9 }\n[...a()][0]", "9"), ("let a; a", NONE),
    ("let a = 1, b1 = 2\nvar b1b = 3; a + b1", "3"),
    ("const { a, b1, ...rest1 } = { a: 10, b1: 20, c: 30 }; [a, b1, rest1.c].join()", "10,20,30"),
    ("const [a, [b1], ...rest1] = [1, [2], 3, 4]; [a, b1, rest1].join()", "1,2,3,4"),
    ("var { a, x: { y: b1 = 5 } = {} } = { a: 9 }; a + b1", "14"), ("for (var a = 0; a < 3; a++);\na", "3"),
    ("for (var a of [7, 8]);\na", "8"), ("for (var a in { k: 1 });\na", "k"), ("if (true) var a = 'iffy'; a", "iffy"),
    ("if (false) var a = 1; else var a = 2; a", "2"), ("var a; var a = 5; a", "5"),
    ("function dup() { return 1 } function dup() { return 2 } dup()", "2"), ("let dup = 3\ndup", "3"),
    ("var one = 1, dup = 4, two = 2; one + dup + two", "7"), ("let g1, v1 = 5; [g1, v1].length + v1", "7"),
    ("const { v1: v1 } = { v1: 6 }; v1", "6"), ("{ let a = 'inner'; var lifted1 = a }\nlifted1", "inner"),
    ("let lifted1 = 1; lifted1", "1"), ("if (true) { function inBlock() { return 'b' } }\ninBlock()", "b"),
    ("const inBlock = 2; inBlock", "2"), ("let x1 = 1; let x1 = 2", Err("SyntaxError", "already been declared")),
    ("typeof x1", "undefined"), ("let x1 = 3; x1", "3"), ("let URL = 'shadow'; URL", "shadow"),
    ("typeof globalThis.URL", "function"), ("const process2 = process; process2 === globalThis.process", "true"),
    ("var undefined = 1; undefined", NONE),
    ("let fails = (() => { throw new Error('half') })()", Err("Error", "half")), ("let fails = 'now'; fails", "now"),
    ("class A1 { v = 1 }", NONE), ("class A1 { v = 2 }; new A1().v", "2"), ("const A1 = 5; A1", "5"),
    ("import { sep as a } from 'path'; a", "/"), ("let a = 'own again'; a", "own again"),
]

CONSTANTS = [
    ("const c1 = 1; try { c1 = 2 } catch (e) { console.log(e.message) }", Out("Assignment to constant variable.\n")),
    ("c1", "1"), ("c1++", Err("TypeError", "constant")), ("c1 += 1", Err("TypeError", "constant")),
    ("[c1] = [5]", Err("TypeError", "constant")), ("({ c1 } = { c1: 5 })", Err("TypeError", "constant")),
    ("({ c1 = 4 } = {})", Err("TypeError", "constant")), ("({ z: c1 } = { z: 5 })", Err("TypeError", "constant")),
    ("for (c1 of [1]);", Err("TypeError", "constant")), ("for (c1 in { k: 1 });", Err("TypeError", "constant")),
    ("c1 ??= 5", "1"), ("c1 ||= 5", "1"), ("c1 &&= 5", Err("TypeError", "constant")),
    ("(function () { c1 = 3 })()", Err("TypeError", "constant")), ("(c1) = 2", Err("TypeError", "constant")),
    ("(function (c1) { c1 = 3; return c1 })()", "3"), ("(() => { let c1 = 1; c1 = 4; return c1 })()", "4"),
    ("(() => { if (true) { var c1 = 1 } c1 = 6; return c1 })()", "6"),
    ("{ let c1 = 0; c1 = 7; console.log(c1) }", Out("7\n")),
    ("try { throw 1 } catch (c1) { c1 = 8; console.log(c1) }", Out("8\n")), ("for (let c1 = 0; c1 < 2; c1++);", NONE),
    ("switch (1) { case 1: let c1 = 0; c1 = 9; console.log(c1) }", Out("9\n")), ("c1", "1"),
    ("(function c1() { c1 = 2; return typeof c1 })()", "function"), ("const o1 = { c1: 1 }; o1.c1 = 2; o1.c1", "2"),
    ("import fs1 from 'fs'; fs1 = 1", Err("TypeError", "constant")), ("let c1 = 5; c1 = 6", "6"),
    ("console.log(tdz); let tdz = 1", Err("ReferenceError", "tdz")),
    ("hoisted(); function hoisted() { console.log('up') }", Out("up\n")), ("hoistedVar; var hoistedVar = 1", NONE),
    ("class C2 { static s = C2.name }; C2.s", "C2"), ("const fn2 = function () {}; fn2.name", "fn2"),
    ("const arrow2 = () => {}; arrow2.name", "arrow2"),
]

TEXTS = [
    ("`a${1 + 1}b`", "a2b"), ("`x${`y${'z'}`}`", "xyz"), ("`import x from 'y'`", "import x from 'y'"),
    ("`${{ a: 1 }.a}`", "1"), ("'const a = 1; await x'", "const a = 1; await x"),
    ("`line\nconst b = 2\n`.split('\\n').length", "3"), ("String.raw`\\u{zz}\\n`", "\\u{zz}\\n"),
    ("`\\`${'`'}`", "``"), ("'a\\\nb'", "ab"), ('"it\'s"', "it's"), ("'\\''", "'"),
    ('/[/]\'"`/.test(\'/\\\'"`\')', "true"), ("4 / 2 / 1", "2"), ("let n4 = 8, g = 2; n4 / 2 / g", "2"),
    ("/a/g.flags", "g"), ("[/b/.test('b'), 1 / 1]", "[ true, 1 ]"), ("(1) / 2", "0.5"),
    ("if (true) /re/.exec('re')[0]", NONE), ("let i4 = 4; i4++ / 2", "2"), ("({}) / 1", "NaN"), ("+{}", "NaN"),
    ("x => /=>/\n;/=>/.source", "=>"), ("/* const c = 1 */ 1 // await import('x')", "1"),
    ("1 /* multi\nline */ + 1", "2"), ("<!-- html comment\n1", "1"), ("// only a comment", NONE),
    ("/* nothing */", NONE), (";;;", NONE), ("   \n\t\n", NONE), ("#!/usr/bin/env node\n'shebang'", "shebang"),
    ("'use strict'; (function () { return this === undefined })()", "true"),
    ("'use strict'\nnotDeclared1 = 1", Err("ReferenceError", "notDeclared1")), ("'use strict'", "use strict"),
    ("'use strict'; const { sep } = require('path'); sep", "/"), ("010 + 1", "9"), ("with ({ w1: 3 }) w1", NONE),
    ("'\\u00e9\\u{1F600}'", "é😀"), ("'é'.length", "1"), ("let ünïcode = 1; ünïcode", "1"),
    ("var \\u0061bc = 7; abc", "7"), ("0x1f + 0b11 + 0o7 + 1_000", "1041"), ("10n ** 20n", "100000000000000000000n"),
    (".5 + 5.", "5.5"), ("'x'\r\n+ 'y'\r\n", "xy"), ("\ufeff'mark'", "mark"), ("1\u2028+1", "2"),
    ("({ 'import': 1, await: 2, const: 3 }).const", "3"), ("({ class: 1 }).class", "1"),
]

LINE_ENDS = [
    ("let l1 = 1\nlet l2 = 2\nl1 + l2", "3"), ("const l3 = [1]\n;[l3[0]] = [5]\nl3", "[ 5 ]"), ("1\n;(2)", "2"),
    ("const l5 = 1\nvar l6 = l5\n+ 1\nl6", "2"), ("let l7 = 1\nl7\n++\nl7", "2"),
    ("let l8 = function () { return 'called' }\n(1)", NONE),
    ("const p1 = 'no semicolon'\nimport os1 from 'os'\ntypeof os1.EOL", "string"),
    ("foo1 = 1\nimport path1 from 'path'\n;(foo1)", "1"), ("do var d1 = 1; while (0) d1", "1"),
    ("outer: for (const i of [1, 2]) { for (;;) { continue outer } }\n'left'", "left"),
    ("label1: { break label1 }\n1", "1"), ("if (1) ; else ;\n2", "2"), ("switch (1) { default: }\n3", "3"),
    ("try { } finally { }\n4", "4"), ("{ a: 1 }", "{ a: 1 }"), ("{}", "{}"),
    ("{ a1: 1, b: [2] }", "{ a1: 1, b: [ 2 ] }"), ("{ l1 }", "{ l1: 1 }"),
    ("{ console.log('block') }", Out("block\n")), ("{ 1; 2 }", NONE), ("({ a: 1 })", "{ a: 1 }"),
    ("[1, 2]\n", "[ 1, 2 ]"), ("1, 2", "2"), ("(1, 2)", "2"), ("void 0", NONE), ("null", "null"), ("5;", "5"),
    ("5; ;", "5"), ("5; // five", "5"), ("5; let after1 = 1", NONE), ("for (let i = 0; i < 3; i++) i", NONE),
    ("x2 = 5", "5"), ("let y2 = 5", NONE), ("if (1) 5", NONE), ("delete globalThis.x2", "true"),
    ("typeof x2", "undefined"), ("a => a", "[Function (anonymous)]"),
    ("(function named1() {})", "[Function: named1]"), ("async () => {}", "[AsyncFunction (anonymous)]"),
    ("new class { x = 1 }", "{ x: 1 }"), ("return 1", Err("SyntaxError", "Illegal return")),
    ("break", Err("SyntaxError", "break")), ("yield 1", Err("SyntaxError", "")), ("let await1 = 1; await1", "1"),
    ("let 1x", Err("SyntaxError", "")), ("'unfinished", Err("SyntaxError", "")),
    ("`unfinished", Err("SyntaxError", "")), ("(1", Err("SyntaxError", "")), ("/unfinished", Err("SyntaxError", "")),
    ("/* unfinished", Err("SyntaxError", "")), ("}", Err("SyntaxError", "")), ("@", Err("SyntaxError", "")),
]

ASYNCHRONOUS = [
    ("await 5", "5"), ("await Promise.resolve(6)", "6"), ("Promise.resolve(7)", "7"), ("(await 8) + (await 9)", "17"),
    ("await await 3", "3"), ("-await 4", "-4"),
    ("const r1 = await Promise.all([1, Promise.resolve(2)]); r1", "[ 1, 2 ]"),
    ("[await 1, await (2, 3)]", "[ 1, 3 ]"), ("`${await 'in text'}`", "in text"),
    ("await { then(ok) { ok('thenable') } }", "thenable"), ("await (async () => 'now')()", "now"),
    ("for await (const z of [1, Promise.resolve(2)]) console.log(z)", Out("1\n2\n")),
    ("async function* gen1() { yield 1; yield* [2, 3] }\n"
     "let s1 = 0; for await (const z of gen1()) { s1 += z }\ns1", "6"),
    ("for await (const z of (0, gen1())) { if (z === 2) break; console.log(z) }", Out("1\n")), ("await null", "null"),
    ("await undefined", NONE),
    ("const later1 = new Promise((done) => setTimeout(done, 5, 'later')); await later1", "later"),
    ("new Promise((ok, no) => no(new TypeError('refused')))", Err("TypeError", "refused")),
    ("await Promise.reject(new RangeError('r'))", Err("RangeError", "r")),
    ("try { await Promise.reject(1) } catch (e) { e + 1 }\n'caught'", "caught"),
    ("if (await true) { var t1 = await 'yes' }\nt1", "yes"), ("const f7 = async (x = 1) => await x; await f7()", "1"),
    ("let k7 = 1; k7 += await 2; k7", "3"), ("while (await false);\n'out'", "out"),
    ("class K7 { static async s() { return await 'static' } async *g() { yield await 1 } }\nawait K7.s()", "static"),
    ("({ async m() { return await 2 } }).m()", "2"),
    ("switch (await 1) { case await 1: console.log('one') }", Out("one\n")),
    ("await (await import('fs')).promises.stat('/').then((s) => s.isDirectory())", "true"),
    ("throw await new Error('thrown')", Err("Error", "thrown")), ("await 1; let afterAwait = 2; afterAwait", "2"),
    ("afterAwait", "2"), ("process.nextTick(() => console.log('tick'))", Out("tick\n")),
    ("Promise.resolve().then(() => console.log('micro')); console.log('first')", Out("first\nmicro\n")),
    ("export default await 5", NONE),
]

MODULES = [
    ("import fs, { readFileSync as read, existsSync } from 'fs'; [typeof read, typeof "
     "existsSync, fs.readFileSync === read]", "[ 'function', 'function', true ]"),
    ("import * as path2 from 'node:path'; path2.basename('/a/b')", "b"),
    ("import\n{\n  sep,\n  // the delimiter\n  delimiter\n}\nfrom\n'path'\nsep + delimiter", "/:"),
    ("import{join}from'path';join('a','b')", "a/b"), ("import 'fs'", NONE), ("import {} from 'fs'", NONE),
    ("import {default as def1} from 'fs'; typeof def1", "object"),
    ("import { 'join' as quoted } from 'path'; quoted('x', 'y')", "x/y"),
    ("before1; import { EOL as before1 } from 'os'; before1.length", "1"), ("typeof join", "function"),
    ("import { nothing1 } from 'fs'", Err("SyntaxError", "does not provide an export named 'nothing1'")),
    ("import x9 from './not-here.js'", Err("Error", "Cannot find module")),
    ("if (1) { import 'fs' }", Err("SyntaxError", "")), ("(await import('path')).sep", "/"),
    ("import('path').then((m) => m.sep)", "/"), ("const { sep: dyn } = await import(`pa${'th'}`); dyn", "/"),
    ("import /* c */ ('os').then((m) => typeof m.EOL)", "string"),
    ("(() => import('path'))().then((m) => m.sep)", "/"),
    ("await import('data:text/javascript,export default 11').then((m) => m.default)", "11"),
    ('import data1 from \'data:application/json,{"k":1}\' with { type: \'json\' }; data1.k', "1"),
    ("require('path').sep", "/"), ("const { promisify } = require('util'); typeof promisify", "function"),
    ("require('./not-here')", Err("Error", "Cannot find module './not-here'")),
    ("import.meta.url.startsWith('file:///')", "true"), ("import.meta.dirname === process.cwd()", "true"),
    ("`file://${process.argv[1]}` === import.meta.url", "true"), ("require.main === module", "true"),
    ("module.exports = { x: 1 }; typeof exports", "object"), ("__dirname === process.cwd()", "true"),
    ("export const e1 = 1, e2 = 2; e1 + e2", "3"), ("export function e3() { return 3 }\ne3()", "3"),
    ("export default function e4() { return 4 }\ne4()", "4"), ("export class E5 { v = 5 }\nnew E5().v", "5"),
    ("export { e1, e2 as other }", NONE), ("export default class E6 {}\ntypeof E6", "function"),
    ("export default { a: 1 }", NONE), ("export default (1 + 2)", NONE), ("export default function () {}", NONE),
    ("export * from 'fs'\n6", "6"), ("export default () => 1\n7", "7"),
    ("const importNot = { import: 1 }; importNot.import", "1"),
    ("process.execArgv.length + process.argv.length", "2"),
]

CELLS = DECLARED_AGAIN + CONSTANTS + TEXTS + LINE_ENDS + ASYNCHRONOUS + MODULES
