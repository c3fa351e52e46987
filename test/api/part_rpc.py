# SPDX-License-Identifier: Apache-2.0
"""The RPC of a box by hand: envelopes, half-closed streams, errors as the protocol wants them."""
import base64
import concurrent.futures
import json
import socket
import threading
import time

import raw
import tap
from service import wait_for

START = "process.Process/Start"


def last(connection):
    """The last envelope of a stream, with its head checked."""
    assert connection.status == 200, (connection.status, connection.reply_headers)
    assert connection.reply_headers["content-type"] == "application/connect+json", connection.reply_headers
    with connection:
        return list(raw.messages(connection))[-1][1]


def running(box):
    return box.rpc("process.Process/List", {})[1].get("processes", [])


def test_order(world):
    """start, data, end, and one last envelope"""
    box = world.client.create()
    with box.start("echo out; echo err >&2; exit 3") as connection:
        got = list(raw.messages(connection))
    events = [message["event"] for flags, message in got if not flags]
    assert list(events[0]) == ["start"] and events[0]["start"]["pid"] > 1, events
    assert events[-1]["end"] == {"exitCode": 3, "exited": True, "status": "exit status 3", "error": "exit status 3"}, events[-1]
    assert {next(iter(event)) for event in events[1:-1]} == {"data"}, events
    assert got[-1] == (2, {}), got[-1]


def test_zero(world):
    """the end of a command that succeeded has no error"""
    box = world.client.create()
    end = box.run("true")[2]
    assert "error" not in end and end["status"] == "exit status 0" and end.get("exitCode", 0) == 0, end


def test_stream_errors(world):
    """what is wrong with a stream is told in its last envelope"""
    box = world.client.create()
    for method, message, code in ((START, {"process": {"cmd": "/bin/true", "cwd": "/no/such"}}, "invalid_argument"),
                                  (START, {}, "invalid_argument"),
                                  ("process.Process/Connect", {"process": {"pid": 4_000_000}}, "not_found"),
                                  ("process.Process/Connect", {"process": {"tag": "none"}}, "not_found"),
                                  ("filesystem.Filesystem/WatchDir", {"path": "/no/such"}, "not_found"),
                                  ("filesystem.Filesystem/WatchDir", {"path": "/etc/passwd"}, "invalid_argument")):
        answer = last(box.stream(method, message))
        assert answer["error"]["code"] == code and answer["error"]["message"], (method, message, answer)
    answer = last(box.start("true", {"Authorization": "Basic " + base64.b64encode(b"nobody-here:").decode()}))
    assert answer["error"] == {"code": "unauthenticated", "message": "invalid username: 'nobody-here'"}, answer


def test_unary_errors(world):
    """what is wrong with a call is its status and a code"""
    box = world.client.create()
    for method, message, status, code in (
            ("filesystem.Filesystem/Stat", {"path": "/no/such"}, 404, "not_found"),
            ("filesystem.Filesystem/MakeDir", {"path": "/tmp"}, 409, "already_exists"),
            ("filesystem.Filesystem/MakeDir", {"path": "/etc/passwd"}, 400, "invalid_argument"),
            ("filesystem.Filesystem/ListDir", {"path": "/etc/passwd"}, 400, "invalid_argument"),
            ("filesystem.Filesystem/Move", {"source": "/no/such", "destination": "/tmp/x"}, 404, "not_found"),
            ("filesystem.Filesystem/GetWatcherEvents", {"watcherId": "none"}, 404, "not_found"),
            ("process.Process/SendSignal", {"process": {"pid": 4_000_000}, "signal": "SIGNAL_SIGKILL"}, 404, "not_found"),
            ("process.Process/SendInput", {"process": {"pid": 4_000_000}, "input": {"stdin": "eA=="}}, 404, "not_found"),
            ("process.Process/SendInput", {"process": {"pid": 1}, "input": {"stdin": "***"}}, 400, "invalid_argument"),
            ("process.Process/SendSignal", {"process": {"pid": "x"}, "signal": "SIGNAL_SIGKILL"}, 400, "invalid_argument"),
            ("filesystem.Filesystem/Stat", {"path": 5}, 400, "invalid_argument")):
        got, answer = box.rpc(method, message)
        assert (got, answer["code"]) == (status, code) and answer["message"], (method, message, got, answer)


def test_spellings(world):
    """names in either spelling, numbers as text, enums as numbers"""
    box = world.client.create()
    box.rpc("filesystem.Filesystem/MakeDir", {"path": "/tmp/w"})
    status, answer = box.rpc("filesystem.Filesystem/CreateWatcher", {"path": "/tmp/w", "include_entry": True})
    assert status == 200, answer
    watcher = answer["watcherId"]
    assert box.rpc("filesystem.Filesystem/GetWatcherEvents", {"watcher_id": watcher})[0] == 200
    assert box.rpc("filesystem.Filesystem/RemoveWatcher", {"watcherId": watcher})[0] == 200
    with box.start("sleep 60") as connection:
        pid = next(raw.messages(connection))[1]["event"]["start"]["pid"]
        assert box.rpc("process.Process/SendSignal", {"process": {"pid": pid}, "signal": 15})[0] == 200
    assert wait_for(lambda: not running(box))


def test_envelopes(world):
    """AG-16: broken envelopes are refused, and nothing is started"""
    box = world.client.create()
    message = json.dumps({"process": {"cmd": "/bin/sleep", "args": ["50"]}}).encode()
    for payload in (b"", b"\0", raw.envelope(b""), raw.envelope(b"{"), raw.envelope(b"[]"), raw.envelope(message, 1),
                    raw.envelope(message)[:-3], b"\0\xff\xff\xff\xff" + message, raw.envelope(message) + raw.envelope(message),
                    raw.envelope(message, 2), message, raw.envelope(b"\0" * 100)):
        with box.stream(START, payload) as connection:
            if connection.status == 200:
                answer = list(raw.messages(connection))[-1][1]
                assert "error" in answer, (payload[:30], answer)
            else:
                assert 400 <= connection.status < 500, (payload[:30], connection.status)
    assert not running(box), running(box)


def test_content_types(world):
    """other encodings of the protocol are refused"""
    box = world.client.create()
    for kind in ("application/proto", "application/connect+proto", "application/grpc", "text/plain", ""):
        reply = box.ask("POST", f"/{START}", b"\0\0\0\0\2{}", {"Content-Type": kind})
        assert reply.status in (400, 415), (kind, reply)
    assert box.ask("GET", f"/{START}").status in (404, 405)


def test_timeouts(world):
    """Connect-Timeout-Ms: the command is killed, and the stream says so"""
    box = world.client.create()
    answer = last(box.start("sleep 60", {"Connect-Timeout-Ms": "700"}))
    assert answer["error"]["code"] == "deadline_exceeded", answer
    assert answer["error"]["message"] == "the command ran longer than its limit, 700 ms; raise its time-out if it needs more", answer
    assert wait_for(lambda: not running(box))
    for bad in ("-1", "x", "99999999999", "1.5", ""):
        with box.start("true", {"Connect-Timeout-Ms": bad}) as connection:
            assert connection.status in (200, 400), bad


@tap.slow
def test_keepalive(world):
    """Keepalive-Ping-Interval: something is said in the silence"""
    box = world.client.create()
    with box.start("sleep 5", {"Keepalive-Ping-Interval": "1"}) as connection:
        events = [message.get("event", {}) for flags, message in raw.messages(connection) if not flags]
    assert sum("keepalive" in event for event in events) >= 1, events


def test_gone_client(world):
    """a client that goes away does not end its command, however it goes"""
    box = world.client.create()
    for end in ("reset", "close"):
        connection = box.start("sleep 100")
        next(raw.messages(connection))
        getattr(connection, end)()
    time.sleep(0.5)
    assert len(running(box)) == 2, running(box)


def test_half_closed(world):
    """a client that says it has nothing more to say still gets the answer, or a clean refusal"""
    box = world.client.create()
    with box.start("sleep 0.5; echo late") as connection:
        connection.socket.shutdown(socket.SHUT_WR)
        try:
            out, _, end, _ = raw.collect(raw.messages(connection))
            assert out == b"late\n" and end, (out, end)
        except raw.Closed:
            pass
    assert wait_for(lambda: not running(box))


def test_kill_resets(world):
    """killed under a stream: the connection is reset, not ended"""
    box = world.client.create()
    with box.start("sleep 100") as connection:
        stream = raw.messages(connection)
        next(stream)
        box.kill()
        try:
            rest = list(stream)
        except raw.Closed as error:
            assert "reset" in str(error).lower(), error
        else:
            raise AssertionError(f"it ended as if nothing had happened: {rest}")


@tap.slow
def test_flood_of_output(world):
    """output faster than it is read: back-pressure, not memory"""
    box = world.client.create()
    pid = world.service.server_pid()

    def memory():
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            return int([line for line in status if line.startswith("VmRSS")][0].split()[1])
    before = memory()
    with box.start("yes | head -c 2G") as connection:
        next(raw.messages(connection))
        time.sleep(2)
        assert memory() - before < 32 * 1024, f"{memory() - before} kB"
    box.kill()


def test_slow_reader(world):
    """one slow reader does not slow another reader of the same command"""
    box = world.client.create()
    slow = box.start("until [ -e /tmp/go ]; do sleep 0.01; done; "
                     "for i in $(seq 20000); do echo 0123456789012345678901234567890123456789; done; sleep 0.2; echo done")
    pid = next(raw.messages(slow))[1]["event"]["start"]["pid"]
    with box.stream("process.Process/Connect", {"process": {"pid": pid}}) as fast:
        events = raw.messages(fast)
        next(events)
        box.run("touch /tmp/go")
        thread_result = []
        thread = threading.Thread(target=lambda: thread_result.append(raw.collect(events)))
        thread.start()
        thread.join(raw.PATIENCE)
        finished = bool(thread_result)
        slow.close()
    assert finished and thread_result[0][0].endswith(b"done\n"), thread_result


def test_stream_input(world):
    """StreamInput: start, data, data"""
    box = world.client.create()
    with box.start("wc -c", stdin=True) as connection:
        stream = raw.messages(connection)
        pid = next(stream)[1]["event"]["start"]["pid"]
        piece = base64.b64encode(b"x" * 30_000).decode()
        body = raw.envelope(json.dumps({"start": {"process": {"pid": pid}}}).encode())
        body += raw.envelope(json.dumps({"data": {"input": {"stdin": piece}}}).encode()) * 3
        body += raw.envelope(b'{"keepalive":{}}')
        with box.stream("process.Process/StreamInput", body) as sender:
            assert sender.status == 200
            assert list(raw.messages(sender))[-1][1] == {}
        assert box.rpc("process.Process/CloseStdin", {"process": {"pid": pid}})[0] == 200
        out, _, _, _ = raw.collect(stream)
    assert out.strip() == b"90000", out


def test_slow_stream_input(world):
    """StreamInput: the time for the answer begins when all has been sent"""
    box = world.client.create()
    with box.start("wc -c", stdin=True) as connection:
        stream = raw.messages(connection)
        pid = next(stream)[1]["event"]["start"]["pid"]
        first = raw.envelope(json.dumps({"start": {"process": {"pid": pid}}}).encode())
        rest = raw.envelope(json.dumps({"data": {"input": {"stdin": "aGkK"}}}).encode())
        headers = box.headers() | {"Host": f"127.0.0.1:{world.port}", "Content-Type": "application/connect+json",
                                   "Content-Length": str(len(first + rest)), "Connect-Timeout-Ms": "1000"}
        with world.client.connect() as sender:
            sender.send(b"POST /process.Process/StreamInput HTTP/1.1\r\n" +
                        "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode() + b"\r\n" + first)
            time.sleep(1.5)
            sender.send(rest)
            reply = sender.reply("POST")
        assert reply.status == 200 and reply.body.endswith(raw.envelope(b"{}", 2)), reply
        assert box.rpc("process.Process/CloseStdin", {"process": {"pid": pid}})[0] == 200
        out, _, _, _ = raw.collect(stream)
    assert out.strip() == b"3", out


@tap.slow
def test_last_input(world):
    """input upon which a command ends at once has arrived all the same"""
    box, wrong = world.client.create(), []

    def once(_):
        with box.start("exec sh -c 'read x'", stdin=True) as connection:
            stream = raw.messages(connection)
            pid = next(stream)[1]["event"]["start"]["pid"]
            time.sleep(0.015)
            status, answer = box.rpc("process.Process/SendInput", {"process": {"pid": pid}, "input": {"stdin": "aGkK"}})
            end = raw.collect(stream)[2]
        if status != 200 or end["status"] != "exit status 0":
            wrong.append((status, answer, end))
    # Many at once: what is looked for is a race.
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        list(pool.map(once, range(240)))
    assert not wrong, f"{len(wrong)} of 240: {wrong[0]}"


def test_tags(world):
    """a command by its tag"""
    box = world.client.create()
    with box.start("sleep 50", tag="mine") as connection:
        next(raw.messages(connection))
        assert running(box)[0]["tag"] == "mine", running(box)
        assert box.rpc("process.Process/SendSignal", {"process": {"tag": "mine"}, "signal": "SIGNAL_SIGTERM"})[0] == 200
        end = raw.collect(raw.messages(connection))[2]
    assert end["exitCode"] == -1 and end["status"] == "signal: terminated", end


def test_many_streams(world):
    """a hundred streams at once"""
    box = world.client.create()
    streams = [box.start(f"sleep 1; echo {i}") for i in range(100)]
    for i, connection in enumerate(streams):
        with connection:
            out, _, _, _ = raw.collect(raw.messages(connection))
        assert out == f"{i}\n".encode(), (i, out)
