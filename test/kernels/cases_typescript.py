# SPDX-License-Identifier: Apache-2.0
"""The same kernel with --typescript: types are taken out, everything else is as in JavaScript."""
import os
import shutil
import tempfile

import tap
from cases_javascript import check, fails, language_command


def command():
    argv = language_command("typescript")
    if shutil.which("esbuild") is None:
        raise tap.Skip("no esbuild")
    return argv


def test_types(world):
    """types, interfaces, generics, enums, namespaces, parameter properties, decorators"""
    for code, text in (
            ("const x: number = 5; x", "5"), ("x + 1", "6"), ("let x: string = 'again'; x", "again"),
            ("interface P { a: number }\ntype Q = P | null\nconst p = { a: 1 } as P; p.a", "1"),
            ("p satisfies P; (<P>p).a", "1"), ("const id = <T,>(v: T): T => v; id<string>('generic')", "generic"),
            ("enum Color { Red, Green = 'g' }; Color.Green", "g"), ("Color.Red", "0"),
            ("enum Color { Blue = 7 }; Color.Blue", "7"), ("namespace N { export const z = 3 }; N.z", "3"),
            ("class A { constructor(private n: number, public m?: string) {} get v(): number { return this.n! } }\n"
             "new A(3).v", "3"),
            ("abstract class B { abstract m(): void }; class C extends B { m() {} }; new C() instanceof B", "true"),
            ("function dec(t: any, k: string) {}; class D { @dec m() { return 1 } }; new D().m()", "1"),
            ("function over(a: string): string; function over(a: number): number; function over(a: any) { return a }\n"
             "over(2)", "2"),
            ("const q = await Promise.resolve<number>(4); q", "4"), ("(x!).length", "5"),
            ("let u: unknown = 'é'; u", "é"),
            ("declare const nothing: number; typeof nothing", "undefined"), ("{ a: 1 }", "{ a: 1 }"),
            ("{ a: 1, b: x }", "{ a: 1, b: 'again' }"), ("'use strict'; const s: string = `t${1}`; s", "t1"),
            ("import fs, { type Stats, readFileSync } from 'fs'; typeof readFileSync", "function"),
            ("typeof fs.statSync", "function"),
            ("import type { Foo } from './nowhere'; import { Dirent, NoType } from 'fs'; typeof Dirent", "function")):
        answer = world.kernel.cell(code)
        check((code, answer.error, answer.text, answer.stderr), (code, None, text, ""))
    check(world.kernel.cell("type Only = string").parts[1:], [])
    check(world.kernel.cell("{ const inner: number = 1; console.log(inner) }").stdout, "1\n")


def test_later_use(world):
    """a name imported by one cell is there for the next"""
    world.kernel.cell("import { basename, type ParsedPath } from 'path'")
    check(world.kernel.cell("basename('/a/b')").text, "b")


def test_lines(world):
    """errors name the lines of the cell, not of what the compiler made of it"""
    with world.new() as kernel:
        kernel.cell("interface P { a: number }\n\n// a comment\n\n"
                    "function f(p: P): never {\n  throw new Error('boom ' + p.a)\n}")
        answer = kernel.cell("\n\nconst v: number = 1\nf({ a: v })")
        check(answer.error["traceback"], "Error: boom 1\n    at f (cell-1.ts:6:9)\n    at cell-2.ts:4:1")
        check(kernel.cell("try { f({ a: 2 }) } catch (e: any) { console.log(e.stack.split('\\n')[1].trim()) }").stdout,
              "at f (cell-1.ts:6:9)\n")


def test_syntax_error(world):
    """an error of syntax names the place"""
    answer = world.kernel.cell("let fine: number = 1\nlet y: = 3")
    fails(answer, "SyntaxError", 'Unexpected "="')
    assert ".ts:2:7" in answer.error["traceback"] and "let y: = 3" in answer.error["traceback"], answer
    fails(world.kernel.cell("const constant: number = 1; constant = 2"), "TypeError", "constant")


def test_interrupt(world):
    """an endless cell is interrupted"""
    world.kernel.begin("let n: number = 0; console.log('on'); for (;;) n++")
    world.kernel.wait_output("on")
    world.kernel.interrupt()
    check(world.kernel.end().error["name"], "KeyboardInterrupt")


def test_without_compiler(world):
    """without esbuild it says what is missing, or Node does it"""
    with tempfile.TemporaryDirectory() as place:
        os.symlink(shutil.which("bash"), f"{place}/bash")
        argv = [shutil.which(world.argv[0])] + world.argv[1:]
        with world.new(env={"PATH": place}, argv=argv) as kernel:
            answer = kernel.cell("const x: number = 1; x")
    if answer.error is None:
        check(answer.text, "1")
    else:
        fails(answer, "Error", "needs esbuild")
