# SPDX-License-Identifier: Apache-2.0
"""Output: much of it, odd characters, bytes that are no text."""
import re

from kit import box, common, output, result, run, value

MIB = 1 << 20


def test_characters():
    """characters of two, three and four bytes are never cut"""
    assert output("print('é漢字🚀\\n' * 150_000, end='')") == "é漢字🚀\n" * 150_000


def test_line():
    """one line of such characters, and a result of them"""
    assert output("print('漢🚀' * 300_000)") == "漢🚀" * 300_000 + "\n"
    assert result("from IPython.display import HTML\nHTML('漢🚀' * 100_000)").html == "漢🚀" * 100_000


def test_lines():
    """separators that only Python takes for ends of lines"""
    text = "a\\u2028b\\x85c\\x0bd\\x0ce\\x1cf"
    assert output(f"print('{text}')") == "a\u2028b\x85c\x0bd\x0ce\x1cf\n"


def test_no_text():
    """bytes that are no text"""
    assert output("import os\nos.write(1, b'a\\xffb\\n');") == "a\ufffdb\n"


def test_big():
    """5 MiB, whole, and 20,000 short lines"""
    assert output(f"print('0123456789abcde\\n' * {5 * MIB // 16}, end='')") == "0123456789abcde\n" * (5 * MIB // 16)
    assert output("for i in range(20_000): print(i)") == "".join(f"{i}\n" for i in range(20_000))


def test_spilled():
    """more than is sent goes into a file, which is named"""
    sandbox = box()
    execution = run("for i in range(768): print(('%5d' % i) + 'x' * 16_378)", sandbox)
    sent = "".join(execution.logs.stdout)
    assert 7 * MIB <= len(sent) <= 8 * MIB, len(sent)
    path = re.search(r"the rest is in (/\S+)\]", "".join(execution.logs.stderr)).group(1)
    assert len(sent) + int(sandbox.commands.run(f"stat -c %s '{path}'").stdout) == 12 * MIB
    assert value("1", sandbox) == "1"


def test_streams():
    """both streams, each whole"""
    execution = run("import sys\nfor i in range(3000):\n    print(i)\n    print(i, file=sys.stderr)")
    want = "".join(f"{i}\n" for i in range(3000))
    assert "".join(execution.logs.stdout) == want and "".join(execution.logs.stderr) == want


def test_error():
    """a long error"""
    assert common().run_code("raise ValueError('🚀' * 50_000)").error.value == "🚀" * 50_000
