# SPDX-License-Identifier: Apache-2.0
"""Variables of the sandbox and of one cell."""
from kit import box, common, output, value

READ = "import os\nos.environ.get('{}', 'none')"


def test_reset():
    """of the sandbox, of one cell, reset afterwards"""
    sandbox = box(envs={"OF_BOX": "sandbox"})
    assert value(READ.format("OF_BOX"), sandbox) == "sandbox"
    assert value(READ.format("OF_BOX"), sandbox, envs={"OF_BOX": "cell"}) == "cell"
    assert value(READ.format("OF_BOX"), sandbox) == "sandbox"
    assert value(READ.format("OF_CELL"), sandbox, envs={"OF_CELL": "cell"}) == "cell"
    assert value(READ.format("OF_CELL"), sandbox) == "none"


def test_languages():
    """in other languages"""
    sandbox = box(envs={"OF_BOX": "sandbox"})
    for language, code in (("javascript", "console.log(process.env.OF_BOX, process.env.OF_CELL)"), ("bash", "echo $OF_BOX $OF_CELL"),
                           ("r", "cat(Sys.getenv('OF_BOX'), Sys.getenv('OF_CELL'), '\\n')")):
        assert output(code, sandbox, language=language, envs={"OF_CELL": "cell"}).split() == ["sandbox", "cell"], language


def test_contexts():
    """in every context, also after a restart"""
    sandbox = box(envs={"OF_BOX": "sandbox"})
    context = sandbox.create_code_context()
    assert value(READ.format("OF_BOX"), sandbox, context=context) == "sandbox"
    sandbox.restart_code_context(context)
    assert value(READ.format("OF_BOX"), sandbox, context=context) == "sandbox"


def test_after_error():
    """reset after an error too"""
    common().run_code("1 / 0", envs={"GONE": "yes"})
    assert value(READ.format("GONE")) == "none"
