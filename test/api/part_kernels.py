# SPDX-License-Identifier: Apache-2.0
"""The interpreter's port with an interpreter of the test's own, which says whatever its cells tell it to: what of it
reaches the client, and what becomes of the cell."""
import contextlib
import json
import pathlib
import shutil
import tempfile

import cells
import raw
import service
from cells import ask, cell, error, text

# Cells are Python, run by a kernel that knows nothing but the protocol: kernels/PROTOCOL.md.
KERNEL = '''
import os, sys, time

def read(n):
    data = b""
    while len(data) < n:
        piece = os.read(3, n - len(data))
        if not piece:
            sys.exit(0)
        data += piece
    return data

def say(word, data=b""):
    data = data if isinstance(data, bytes) else data.encode()
    data = b"%s %d\\n%s" % (word.encode(), len(data), data)
    while data:
        data = data[os.write(4, data):]

BEFORE
say("ready", str(os.getpid()))
code, n = b"", 0
while True:
    line = b""
    while not line.endswith(b"\\n"):
        line += read(1)
    word, length = line.split()
    data = read(int(length))
    if word == b"code":
        code += data
    if word == b"run":
        if code:
            exec(code, globals())
        say("end")
        code = b""
'''
LANGUAGE = """# SPDX-License-Identifier: Apache-2.0
name = {name}
title = {title}
file = main.txt
run = true
kernel = {kernel}
version = true
"""


class Service(service.Service):
    """One with languages of the test's own."""

    def __init__(self):
        super().__init__({"pool.size": 1})
        self.languages = pathlib.Path(tempfile.mkdtemp(prefix="glovebox-languages."))
        self.languages.chmod(0o755)  # the server has a user of its own
        for path in (service.ROOT / "languages").glob("*.lang"):
            shutil.copy(path, self.languages)
        for name, kernel in (("told", "python3 -S /home/user/told.py"), ("absent", "no-such-program"),
                             ("failing", "false"), ("slow", "python3 -S /home/user/slow.py")):
            (self.languages / f"{name}.lang").write_text(LANGUAGE.format(name=name, title=name.title(), kernel=kernel))

    def environment(self):
        return super().environment() | {"GLOVEBOX_LANGUAGES": str(self.languages)}

    def stop(self):
        shutil.rmtree(self.languages, ignore_errors=True)
        return super().stop()


@contextlib.contextmanager
def told():
    """A sandbox in which the languages "told" and "slow" are."""
    running = Service()
    try:
        running.start()
        box = raw.Client(running.port, running.key).create()
        for name, before in (("told", ""), ("slow", "time.sleep(1)")):
            path = f"/files?path=/home/user/{name}.py&username=user"
            reply = box.ask("POST", path, KERNEL.replace("BEFORE", before).encode(), {"Content-Type": "application/octet-stream"})
            assert reply.status == 200, reply
        yield box
        assert text(tell(box, "os.write(1, b'alive')")) == "alive"
    finally:
        running.stop()


def tell(box, code, **body):
    return cell(box, code, language="told", **body)


def results(found):
    return [{name: value for name, value in event.items() if name != "type"} for event in cells.of(found, "result")]


def check_fields(box):
    """known fields of the right type, the rest in extra"""
    shown = {"text": "t", "png": "aGk=", "json": [1], "data": {"a": [1]}, "chart": {}, "is_main_result": True,
             "application/x-own": {"b": 1}, "extra": {"text/x": "y"}}
    found = results(tell(box, f"say('result', {json.dumps(shown)!r})"))
    expected = {name: shown[name] for name in ("is_main_result", "text", "png", "json", "data", "chart")}
    assert found == [expected | {"extra": {"application/x-own": {"b": 1}, "text/x": "y"}}], found
    wrong = {"text": 5, "html": None, "json": "x", "data": [], "chart": [], "is_main_result": 1, "type": "end_of_execution"}
    found = results(tell(box, f"say('result', {json.dumps(wrong)!r})"))
    assert found == [{"is_main_result": False, "extra": {}}], found


def check_nonsense(box):
    """results that are none are left out, and the cell goes on"""
    for bad in ('{"text":', "xx", "[]", "55", '{"text":"\\ud800"}', '{"a":NaN}', '{"text":1}x'):
        found = tell(box, f"say('result', {bad!r}); say('result', '{{\"text\":\"next\"}}')")
        assert [each["text"] for each in results(found)] == ["next"] and error(found) is None, (bad, found)
    deep = '{"json":' + "[" * 100 + "]" * 100 + "}"
    assert error(tell(box, f"say('result', {deep!r})"))["name"] == "ResultTooLarge"
    found = tell(box, "say('result', '{\"json\":[' + '1,' * 1_500_000 + '1]}')")
    assert error(found)["name"] == "ResultTooLarge" and not results(found), str(found)[:300]


def check_large(box):
    """a large result comes whole; one that is too large is an error"""
    found = results(tell(box, "say('result', '{\"png\":\"' + 'x' * (20 << 20) + '\"}')"))
    assert len(found[0]["png"]) == 20 << 20
    found = tell(box, "say('result', '{\"png\":\"' + 'x' * (33 << 20) + '\"}')")
    assert error(found)["name"] in ("ResultTooLarge", "ContextDied") and not results(found), str(found)[:300]


def check_many(box):
    """many results, each of them"""
    found = results(tell(box, "for i in range(20000): say('result', '{\"text\":\"%d\"}' % i)"))
    assert [each["text"] for each in found] == [str(i) for i in range(20000)], len(found)


def check_order(box):
    """the number first, output before what was said after it, the error last"""
    code = ("os.write(1, b'a'); say('count', '7'); say('error', '{\"name\":\"E\"}')\nwhile not os.path.exists('/tmp/stdout'): time.sleep(0.01)\n"
            "os.write(2, b'b')\nwhile not os.path.exists('/tmp/stderr'): time.sleep(0.01)\n"
            "say('result', '{\"text\":\"r\"}')\nwhile not os.path.exists('/tmp/result'): time.sleep(0.01)\nos.write(1, b'c')")
    found = []
    with cells.opened(box, code, language="told") as connection:
        for event in cells.events(connection):
            found.append(event)
            box.run(f"touch /tmp/{event['type']}")  # each waits for what was before it
    assert [event["type"] for event in found[:-2]] == ["number_of_executions", "stdout", "stderr", "result", "stdout", "error"], found
    assert found[0]["execution_count"] == 7 and found[-3]["value"] == found[-3]["traceback"] == "", found


def check_broken(box):
    """an interpreter that breaks the protocol is ended, and the client is told"""
    for code in ("os.write(4, b'hello\\n')", "say('what', 'x')", "say('result')", "say('ready', '5')", "os.write(4, b'result 99999999999\\n')",
                 "os.write(4, b'result 5\\n'); os._exit(0)", "os.close(4); time.sleep(9)", "sys.exit(4)", "os.kill(0, 9)"):
        found = tell(box, "os.write(1, b'x')\n" + code)
        assert error(found)["name"] == "ContextDied" and text(found) == "x", (code, found)
        assert text(tell(box, "os.write(1, b'y')")) == "y", code


def check_endless(box):
    """nonsense without end is the end of its cell; of many errors the first is told"""
    found = tell(box, "os.write(1, b'x'); say('count', '1')\nwhile True: say('result', '{\"text\":')")
    assert error(found)["name"] == "ContextFailed" and text(found) == "x", found
    assert text(tell(box, "os.write(1, b'y')")) == "y"
    found = tell(box, "for i in range(1000): say('error', '{\"name\":\"%d\"}' % i)")
    assert error(found)["name"] == "0", found


def check_missing(box):
    """interpreters that do not start: a 500 that says so"""
    for name, word in (("absent", "not installed"), ("failing", "before it was ready")):
        for path, body in (("/execute", {"code": "1", "language": name}), ("/contexts", {"language": name})):
            reply = ask(box, "POST", path, body, token=True)
            assert reply.status == 500 and word in reply.body.decode() and name.title() in reply.body.decode(), reply
    assert [each["id"] for each in cells.contexts(box)] == ["python", "javascript", "told"]


def check_slow(box):
    """one that takes its time to be ready is waited for"""
    assert text(cell(box, "os.write(1, b'z')", language="slow")) == "z"


def test_kernels(_):
    """an interpreter may say anything: what is told of it, and what is not"""
    with told() as box:
        for check in (check_fields, check_nonsense, check_large, check_many, check_order, check_broken, check_endless, check_missing, check_slow):
            try:
                check(box)
            except AssertionError as reason:
                raise AssertionError(f"{check.__doc__}: {reason}") from reason
