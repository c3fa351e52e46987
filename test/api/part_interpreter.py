# SPDX-License-Identifier: Apache-2.0
"""The interpreter's port by hand: what is refused, what a cell's stream looks like, how cells and contexts end."""
import concurrent.futures
import json
import os
import signal
import time

import cells
import tap
from cells import ask, cell, error, refused, text
from part_limits import small
from service import wait_for

DEFAULTS = [{"id": "python", "language": "python", "cwd": "/home/user"},
            {"id": "javascript", "language": "javascript", "cwd": "/home/user"}]


def alive(box):
    """A cell works, and so does a command."""
    found = cell(box, "print('alive')")
    assert text(found) == "alive\n", found
    assert box.run("echo fine")[0] == b"fine\n"


def test_health(world):
    """/health: "OK" while the sandbox is there, 502 when it is not"""
    box = world.client.create()
    reply = ask(box, "GET", "/health")
    assert (reply.status, reply.body) == (200, b'"OK"'), reply
    assert ask(box, "GET", "/health?source=ci").status == 200
    assert ask(box, "POST", "/health", {}).status == 405
    box.kill()
    for method, path in (("GET", "/health"), ("GET", "/contexts"), ("POST", "/execute")):
        assert ask(box, method, path, None if method == "GET" else {"code": "1"}).status == 502, path


def test_tokens(world):
    """the token is needed for cells, and for cells only"""
    box = world.client.create()
    for more in ({}, {"X-Access-Token": "wrong"}, {"X-Access-Token": world.bystander.token}):
        reply = ask(box, "POST", "/execute", {"code": "1"}, more=more)
        assert reply.status == 401 and reply.headers["content-type"].startswith("text/plain"), reply
    assert ask(box, "GET", "/contexts").json() == DEFAULTS


def test_browsers(world):
    """a web page may ask, after it has asked whether it may"""
    box = world.client.create()
    asks = {"Origin": "http://page.test", "Access-Control-Request-Method": "POST"}
    for path in ("/execute", "/contexts", "/contexts/x/restart"):
        reply = world.client.ask("OPTIONS", path, headers=asks)
        assert reply.status == 204 and reply.headers["access-control-allow-origin"] == "*", (path, reply)
    assert ask(box, "GET", "/contexts").headers["access-control-allow-origin"] == "*"


def test_private_traffic(world):
    """a sandbox whose traffic is private wants its token on every path"""
    box = world.client.create(network={"allowPublicTraffic": False})
    token = {"E2B-Traffic-Access-Token": box.created["trafficAccessToken"]}
    for method, path, body in (("GET", "/health", None), ("GET", "/contexts", None), ("POST", "/contexts", {}),
                               ("POST", "/execute", {"code": "1"}), ("DELETE", "/contexts/python", None)):
        assert ask(box, method, path, body, token=True).status == 403, path
        assert ask(box, method, path, body, token=True, more={"E2B-Traffic-Access-Token": "no"}).status == 403, path
        assert ask(box, method, path, body, token=True, more=token).status == 200, path


def test_bodies(world):
    """what is wrong with a body is a 4xx and a text that says what"""
    box = world.client.create()
    for body, word in (({}, "code"), ({"code": 5}, "code"), ({"code": None}, "code"), ([], "object"),
                       ({"code": "1", "context_id": 5}, "context_id"), ({"code": "1", "language": []}, "language"),
                       ({"code": "1", "env_vars": {"A": 5}}, "env_vars"), ({"code": "1", "env_vars": {"A=B": "c"}}, "A=B"),
                       ({"code": "1", "env_vars": {"": "c"}}, "env_vars"), ({"code": "1", "limits": {"wall": 1}}, "wall"),
                       ({"code": "1", "limits": {"wall_ms": 0}}, "wall_ms"), ({"code": "1", "limits": {"cpu_ms": "1"}}, "cpu_ms"),
                       ({"code": "1", "nonsense": 1}, "nonsense"), ({"code": "a\0b"}, "JSON"),
                       ({"code": "1", "language": "python", "context_id": "python"}, "Only one of")):
        message = refused(box, 400, body)
        assert word in message, (body, message)
    kind = {"Content-Type": "application/json"}
    for body in (b"", b"{", b'{"code": "1"', b'{"code": "\xff"}', b'{"code": "1"} x', b'{"code": "1", "code": "2"}', b"\0"):
        assert refused(box, 400, body, more=kind), body
    assert refused(box, 415, b'{"code": "1"}', more={"Content-Type": "text/plain"})
    alive(box)


@tap.slow
def test_sizes(world):
    """code that is too large: 413"""
    box = world.client.create()
    assert "larger" in refused(box, 413, {"code": "#" * (2 * 1024 * 1024 + 1)})
    assert "larger" in refused(box, 413, {"code": "#" * (9 * 1024 * 1024)})
    assert "larger" in refused(box, 413, json.dumps({"code": "#" * (9 * 1024 * 1024)}).encode(), chunked=True,
                               more={"Content-Type": "application/json"})
    found = cell(box, "x = 5 #" + "é" * (1024 * 1024 - 100) + "\nprint(x)")
    assert text(found) == "5\n", found[:5]


def test_names(world):
    """languages and contexts that are not there"""
    box = world.client.create()
    for name in ("klingon", "", "  ", "x" * 200, "../python", "pythön"):
        message = refused(box, 400, {"code": "1", "language": name})
        assert "python" in message and "ruby" in message, message
    for name in ("nothing", "", "../python", "PYTHON", "x" * 200, "bash"):
        assert refused(box, 404, {"code": "1", "context_id": name}) == f"Context {name} not found"
    for method, path in (("DELETE", "/contexts/nothing"), ("POST", "/contexts/nothing/restart")):
        reply = ask(box, method, path)
        assert (reply.status, reply.body) == (404, b"Context nothing not found"), reply
    for path in ("/", "/execute/x", "/contexts/a/b", "/files"):
        assert ask(box, "GET", path).status == 404, path
    assert ask(box, "GET", "/execute").status == 405
    assert "keeps no state" in ask(box, "POST", "/contexts", {"language": "ruby"}).body.decode()
    assert text(cell(box, "print(7)", language=" PyThOn ")) == "7\n"


def test_stream(world):
    """number, output, results, error, usage, end: in this order, each as it happens"""
    box = world.client.create()
    # What comes after the first line waits until that has arrived.
    code = f"import sys\nprint('one')\n{until_exists('/tmp/arrived')}\ntime.sleep(1)\nprint('two', file=sys.stderr)\n1/0"
    with cells.opened(box, code) as connection:
        stream = cells.events(connection)
        assert next(stream) == {"type": "number_of_executions", "execution_count": 1}
        first = next(stream)
        box.run("touch /tmp/arrived")
        rest = list(stream)
    assert (first["type"], first["text"]) == ("stdout", "one\n") and isinstance(first["timestamp"], str), first
    assert [event["type"] for event in rest] == ["stderr", "error", "usage", "end_of_execution"], rest
    assert (rest[1]["name"], rest[1]["value"]) == ("ZeroDivisionError", "division by zero"), rest[1]
    assert rest[2]["reason"] == "done" and rest[2]["wall_ms"] >= 1000 and rest[2]["stdout_bytes"] == 4, rest[2]
    found = cell(box, "y = 5\ny * 2")
    assert found[0] == {"type": "number_of_executions", "execution_count": 2}, found
    assert found[1] == {"type": "result", "is_main_result": True, "text": "10", "extra": {}}, found
    assert text(cell(box, "print(y)")) == "5\n"
    assert [event["type"] for event in cell(box, "")][-1] == "end_of_execution"


@tap.slow
def test_silence(world):
    """keepalives where there is nothing else to say"""
    box = world.client.create()
    found = cell(box, "import time; time.sleep(7.5); print('late')")  # between the first and the second
    most = cells.of(found, "usage")[0]["wall_ms"] // 5000  # it may have waited for a CPU
    said = cells.of(found, "keepalive")
    assert 1 <= len(said) <= most and {"type": "keepalive"} == said[0] and text(found) == "late\n", found


def test_characters(world):
    """characters of every length, wherever the pieces are cut; bytes that are none"""
    box = world.client.create()
    line = "aé€😀" * 40_000
    assert text(cell(box, "print('aé€😀' * 40_000)")) == line + "\n"
    code = "import os\nfor b in 'é€😀'.encode() + b'|\\xff\\xfe|' + '€'.encode()[:2]:\n    os.write(1, bytes([b]))"
    assert text(cell(box, code)) == "é€😀|��|�"


def test_variables(world):
    """the sandbox's variables, and those of one cell"""
    box = world.client.create(envVars={"KEPT": "sandbox", "BOTH": "sandbox"})
    code = "import os; print([os.environ.get(n) for n in ('KEPT', 'BOTH', 'ONCE', 'E2B_SANDBOX_ID')])"
    assert text(cell(box, code, env_vars={"BOTH": "cell", "ONCE": "é=1"})) == f"['sandbox', 'cell', 'é=1', '{box.id}']\n"
    assert text(cell(box, code, env_vars=None)) == f"['sandbox', 'sandbox', None, '{box.id}']\n"
    many = {f"V{i}": "x" * 2000 for i in range(500)}
    assert text(cell(box, "import os; print(len([n for n in os.environ if n[0] == 'V' and n[1:].isdigit()]))", env_vars=many)) == "500\n"


def test_contexts(world):
    """contexts are made, listed in their order, restarted and removed"""
    box = world.client.create()
    assert cells.contexts(box) == DEFAULTS
    one, two = cells.create(box, cwd="/tmp"), cells.create(box, language="python")
    assert one["cwd"] == "/tmp" and two["cwd"] == "/home/user" and one["language"] == "python", (one, two)
    assert cells.contexts(box) == DEFAULTS + [one, two]
    assert text(cell(box, "import os; x = 1; print(os.getcwd())", context_id=one["id"])) == "/tmp\n"
    assert error(cell(box, "x", context_id=two["id"]))["name"] == "NameError"
    reply = ask(box, "POST", f"/contexts/{one['id']}/restart")
    assert (reply.status, reply.body) == (200, b"null"), reply
    found = cell(box, "print(os.getcwd())", context_id=one["id"])
    assert error(found)["name"] == "NameError" and found[0]["execution_count"] == 1, found
    assert text(cell(box, "import os; print(os.getcwd())", context_id=one["id"])) == "/tmp\n"
    reply = ask(box, "DELETE", f"/contexts/{one['id']}")
    assert (reply.status, reply.body) == (200, b"null"), reply
    assert refused(box, 404, {"code": "1", "context_id": one["id"]}) == f"Context {one['id']} not found"
    assert cells.contexts(box) == DEFAULTS + [two]
    # A default one comes back.
    cell(box, "x = 5")
    assert ask(box, "DELETE", "/contexts/python").status == 200
    assert error(cell(box, "x"))["name"] == "NameError" and cells.contexts(box) == DEFAULTS + [two]


def test_bad_directory(world):
    """a context in a directory that is not there is refused and leaves nothing"""
    box = world.client.create()
    for cwd in ("/no/such", "/etc/passwd", "tmp", "~", "/root/x"):
        reply = ask(box, "POST", "/contexts", {"cwd": cwd})
        assert reply.status == 400 and reply.body, (cwd, reply)
    assert ask(box, "POST", "/contexts", {"cwd": 5}).status == 400
    assert cells.contexts(box) == DEFAULTS


@tap.slow
def test_many_contexts(_):
    """as many contexts as there may be: 429, and room again when one is removed"""
    with small(interpreter_contexts=2) as (_running, client):
        box = client.create()
        made = [cells.create(box), cells.create(box)]
        assert ask(box, "POST", "/contexts", {}).status == 429
        assert "remove" in refused(box, 429, {"code": "1"})
        ask(box, "DELETE", f"/contexts/{made[0]['id']}")
        assert text(cell(box, "print(1)")) == "1\n"


def until_exists(path):
    """A cell that waits for a file."""
    return f"import os, time\nwhile not os.path.exists('{path}'): time.sleep(0.02)"


def test_order(world):
    """cells of one context run one after the other, those of two at the same time"""
    box = world.client.create()
    other = cells.create(box)["id"]
    cell(box, "order = []")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        code = "import time; order.append(1); time.sleep(0.05); order.append(2)"
        list(pool.map(lambda _: cell(box, code), range(8)))
        assert text(cell(box, "print(order)")) == f"{[1, 2] * 8}\n"
        # Each waits for the other.
        slow = pool.submit(cell, box, "open('/tmp/begun', 'w').close()\n" + until_exists("/tmp/go"))
        assert text(cell(box, until_exists("/tmp/begun") + "\nprint(1)", context_id=other)) == "1\n"
        assert not slow.done()
        box.run("touch /tmp/go")
        slow.result()


def test_waiting(world):
    """a cell that waits has its head at once, also with code that no socket can hold"""
    box = world.client.create()
    cell(box, "x = 0")
    with cells.opened(box, until_exists("/tmp/go") + "\nx = 1") as first:
        next(cells.events(first))
        with cells.opened(box, "print(x)\n#" + "y" * 1_500_000) as connection:  # which has its head
            box.run("touch /tmp/go")
            stream = cells.events(connection)
            assert text(list(stream)) == "1\n"


@tap.slow
def test_hang_up(world):
    """a client that goes away interrupts its cell, however it goes"""
    box = world.client.create()
    cell(box, "x = 5")
    for end in ("reset", "close"):
        with cells.opened(box, "import time\nwhile True: time.sleep(0.1)") as connection:
            next(cells.events(connection))
            getattr(connection, end)()
        assert text(cell(box, "print(x)")) == "5\n"
    # One that goes while it waits never runs.
    with cells.opened(box, until_exists("/tmp/gone")) as first:
        next(cells.events(first))
        with cells.opened(box, "x = 'ran'") as connection:
            connection.reset()
        time.sleep(3)  # until the service knows
        box.run("touch /tmp/gone")
        assert text(cell(box, "print(x)")) == "5\n"


def test_endless_output(world):
    """output without end: back-pressure and a file, not memory"""
    box = world.client.create()
    pid = world.service.server_pid()

    def memory():
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            return int([line for line in status if line.startswith("VmRSS")][0].split()[1])
    before = memory()
    with cells.opened(box, "while True: print('x' * 1000)", limits={"output_bytes": 1 << 30}) as connection:
        next(cells.events(connection))
        time.sleep(1)
        assert memory() - before < 32 * 1024, f"{memory() - before} kB"
    alive(box)


def test_kill_resets(world):
    """killed under a cell: the connection is reset, not ended, and /health is 502"""
    box = world.client.create()
    with cells.opened(box, "import time; print(1); time.sleep(60)") as connection:
        stream = cells.events(connection)
        cells.until(stream, "stdout")
        box.kill()
        try:
            rest = list(stream)
        except cells.Closed as reason:
            assert "reset" in str(reason).lower(), reason
        else:
            raise AssertionError(f"it ended as if nothing had happened: {rest}")
    assert ask(box, "GET", "/health").status == 502


def test_pause(world):
    """paused and resumed, a context knows what it knew"""
    box = world.client.create()
    cell(box, "x = 7")
    assert world.client.ask("POST", f"/sandboxes/{box.id}/pause", {}).status == 204
    assert ask(box, "GET", "/health").status == 502
    assert world.client.ask("POST", f"/sandboxes/{box.id}/connect", {"timeout": 60}).status == 201
    assert text(cell(box, "print(x)")) == "7\n"


def test_death(world):
    """an interpreter that is ended by its cell: said so, and a new one for the next"""
    box = world.client.create()
    for code, how in (("import os; os._exit(3)", "exit status 3"), ("import os; os.kill(os.getpid(), 9)", "killed"),
                      ("import ctypes; ctypes.string_at(0)", "segmentation fault")):
        cell(box, "x = 1")
        found = cell(box, "print('before')\n" + code)
        assert error(found)["name"] == "ContextDied" and how in error(found)["value"], found
        assert "variables are gone" in error(found)["value"], found
        assert [event["type"] for event in found[-3:]] == ["usage", "unexpected_end_of_execution", "end_of_execution"], found
        assert cells.of(found, "usage")[0]["reason"] == "died" and text(found) in ("before\n", ""), found
        assert error(cell(box, "x"))["name"] == "NameError"
    alive(box)


@tap.slow
def test_violence(world):
    """cells that break their interpreter on purpose: some answer, and the sandbox lives"""
    box = world.client.create()
    for code in ("import os\nfor fd in range(100):\n    try: os.close(fd)\n    except OSError: pass",
                 "import os\nos.write(4, b'nonsense')", "import os\nos.write(4, b'end 0\\n' * 3)",
                 "import sys; sys.setrecursionlimit(10**9)\ndef f(): f()\nf()", "import sys; sys.exit(3)", "quit()",
                 "import os\nif os.fork() == 0:\n    import time; time.sleep(3)\n    os._exit(0)"):
        found = cell(box, code)
        assert found[-1]["type"] == "end_of_execution", (code, found)
        # One that lives on without its standard output is what the cell asked for.
        assert ask(box, "POST", "/contexts/python/restart").status == 200
        alive(box)


def test_restart_in_a_cell(world):
    """restarted or removed under a cell: its stream says which"""
    box = world.client.create()
    context = cells.create(box)["id"]
    for method, path, name in (("POST", f"/contexts/{context}/restart", "ContextRestarting"),
                               ("POST", "/contexts/python/restart", "ContextRestarting"),
                               ("DELETE", f"/contexts/{context}", "ContextRemoved")):
        target = {} if "python" in path else {"context_id": context}
        with cells.opened(box, "import time; print(1); time.sleep(60)", **target) as connection:
            stream = cells.events(connection)
            cells.until(stream, "stdout")
            assert ask(box, method, path).status == 200
            found = list(stream)
        assert error(found)["name"] == name and found[-1]["type"] == "end_of_execution", found
    alive(box)


def test_limits_of_a_cell(world):
    """time, CPU and memory of a cell, by name; and its output, the rest of which is in a file"""
    box = world.client.create()
    cell(box, "x = 5")
    for code, limits, name, reason in (
            ("import time; time.sleep(60)", {"wall_ms": 400}, "CellTimeout", "wall"),
            ("while True: pass", {"cpu_ms": 300}, "CellCpuLimit", "cpu"),
            ("import time\ny = bytearray(200 << 20)\ntime.sleep(30)", {"memory_mb": 60}, "CellMemoryLimit", "memory")):
        found = cell(box, code, limits=limits)
        assert error(found)["name"] == name, found
        assert cells.of(found, "usage")[0]["reason"] == reason, found
    assert text(cell(box, "print(x)")) == "5\n"
    found = cell(box, "print('z' * 5000)", limits={"output_bytes": 1000})
    spilled = cells.of(found, "output_spilled")[0]
    assert text(found) == "z" * 1000 and spilled["stream"] == "stdout" and spilled["path"] in text(found, "stderr"), found
    assert text(cell(box, f"print(len(open({spilled['path']!r}).read()))")) == "4001\n"
    assert cells.of(found, "usage")[0]["stdout_bytes"] == 5001


@tap.slow
def test_limits_of_the_service(_):
    """a cell may not have more than the service gives"""
    with small(interpreter_cell_timeout="1s", interpreter_cell_output="2K") as (_running, client):
        box = client.create()
        found = cell(box, "import time; time.sleep(60)", limits={"wall_ms": 60000})
        assert error(found)["name"] == "CellTimeout", found
        assert len(text(cell(box, "print('z' * 5000)", limits={"output_bytes": 4000}))) == 2048


def test_one_run(world):
    """languages that keep no state: compiled and run, with typed errors"""
    box = world.client.create()
    found = cell(box, "import java", language="c")
    assert error(found)["name"] == "CompilationError" and "main.c" in error(found)["value"], found
    found = cell(box, '#include <stdio.h>\nint main(void) { puts("héllo"); return 3; }', language="C")
    assert found[0] == {"type": "number_of_executions", "execution_count": 1}, found
    assert text(found) == "héllo\n" and (error(found)["name"], error(found)["value"]) == ("ExitStatus", "3"), found
    found = cell(box, "puts ENV['A'], Dir.pwd; STDOUT.flush; Process.kill(9, $$)", language="rb", env_vars={"A": "b"})
    assert text(found) == "b\n/home/user\n" and "killed" in error(found)["value"], found
    assert error(cell(box, "sleep 60", language="ruby", limits={"wall_ms": 300}))["name"] == "CellTimeout"
    found = cell(box, "print 'z' * 5000", language="ruby", limits={"output_bytes": 1000})
    assert text(found) == "z" * 1000 and "dropped" in text(found, "stderr"), found
    with cells.opened(box, "sleep 77", language="ruby") as connection:
        next(cells.events(connection))
        connection.reset()
    assert wait_for(lambda: b"77" not in box.run("ps ax -o args || true")[0])
    assert wait_for(lambda: not box.run("ls -d /tmp/cell-* 2>/dev/null || true")[0])


@tap.slow
def test_new_server(_):
    """the server dies: contexts are still there, with all they know"""
    with small() as (running, client):
        box = client.create()
        context = cells.create(box, cwd="/tmp")
        cell(box, "x = 1")
        cell(box, "x = 2", context_id=context["id"])
        pid = running.server_pid()
        os.kill(pid, signal.SIGKILL)
        assert wait_for(lambda: running.server_pid() not in (None, pid) and running.ready())
        assert text(cell(box, "print(x)", context_id=context["id"])) == "2\n"
        assert text(cell(box, "print(x)")) == "1\n"
        assert cells.contexts(box) == DEFAULTS + [context]
