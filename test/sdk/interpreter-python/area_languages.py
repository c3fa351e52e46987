# SPDX-License-Identifier: Apache-2.0
"""Languages other than Python: state, errors, programs that run once."""
from kit import common, fails, output, run, value


def state(language, first, second, bad):
    run(first, language=language)
    assert output(second, language=language) == "42\n"
    fails(bad, None, language=language)
    assert output(second, language=language) == "42\n"


def test_javascript():
    """javascript"""
    state("javascript", "let x = 41", "console.log(x + 1)", "nothing()")
    assert value("await Promise.resolve(6 * 7)", language="js") == "42"


def test_typescript():
    """typescript"""
    state("typescript", "let n: number = 41", "console.log(n + 1)", "throw new Error('x' as string)")


def test_bash():
    """bash"""
    state("bash", "x=41", "echo $((x + 1))", "false")


def test_r():
    """r"""
    state("r", "x <- 41", "cat(x + 1, '\\n', sep='')", "stop('x')")


def test_java():
    """java"""
    state("java", "int x = 41;", "System.out.println(x + 1);", "throw new RuntimeException();")


def test_contexts():
    """contexts of them"""
    for language, code in (("javascript", "console.log(process.cwd())"), ("bash", "pwd")):
        context = common().create_code_context(language=language, cwd="/tmp")
        assert context.language == language
        assert output(code, context=context) == "/tmp\n"
        common().remove_code_context(context)


def test_once():
    """programs that run once"""
    assert output("puts 6 * 7", language="ruby") == "42\n"
    assert output("#include <stdio.h>\nint main(void) { puts(\"42\"); }", language="c") == "42\n"
    fails("int main(void) { return no_such; }", None, language="c")
