# SPDX-License-Identifier: Apache-2.0
"""Bodies: AP-05, AP-09, AP-10, AP-11, AP-12, and chunks."""
import json

import raw

CREATE = "/v2/sandboxes"
# Nothing of the machine may be in an error.
HOST_WORDS = ("/tmp/", "/var/lib", "/root", "/work/", "/proc/", "0x7f", "/usr/", "sqlite", "errno")


def refused(world, body, *words, path=CREATE, status=(400,), headers=None):
    """Refused with a reason that has these words; nothing was made."""
    reply = world.client.ask("POST", path, body, headers or {"Content-Type": "application/json"})
    assert reply.status in status, (body if len(repr(body)) < 300 else repr(body)[:300], reply)
    assert reply.json()["code"] == reply.status and reply.message(), reply
    for word in words:
        assert word in reply.message(), f"{word!r} is not in {reply.message()!r}"
    for word in HOST_WORDS:
        assert word not in reply.body.decode(), f"{word!r} is in {reply.body!r}"


def count(world):
    return len(world.client.ask("GET", "/v2/sandboxes?limit=100").json())


def test_broken_json(world):
    """AP-05: what is no JSON"""
    before = count(world)
    for body in (b"", b"{", b"}", b"nothing", b'{"templateID":}', b'{"templateID":"base"', b'{"templateID":"base"} x',
                 b'{"templateID":"base",}', b"{'templateID':'base'}", b'\xef\xbb\xbf{"templateID":"base"}', b"\0", b'"base"',
                 b"[]", b"null", b"5", b'{"templateID":"base"}{"templateID":"base"}'):
        refused(world, body)
    assert count(world) == before


def test_depth(world):
    """AP-05: 100,000 brackets"""
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        refused(world, b'{"templateID":"base","metadata":' + opening * 100_000 + b"1" + closing * 100_000 + b"}")
        refused(world, opening * 100_000)


def test_duplicates(world):
    """AP-05: a name twice"""
    refused(world, b'{"templateID":"base","templateID":"other"}')
    refused(world, b'{"templateID":"base","metadata":{"a":"1","a":"2"}}')


def test_numbers(world):
    """AP-05, AP-10: numbers that are none, or too big"""
    for number in (b"1e400", b"1" * 400, b"-1" + b"0" * 400, b"NaN", b"Infinity", b"-Infinity", b"1.5", b"01", b"+1",
                   b"9223372036854775808", b"18446744073709551616", b"-1", b"0", b'"60"', b"true", b"null", b"[]", b"2592000001"):
        refused(world, b'{"templateID":"base","timeout":' + number + b"}")


def test_text(world):
    """AP-05: text that is none"""
    for text in (rb'"\ud800"', rb'"\udc00x"', b'"\xff\xfe"', b'"\xc0\x80"', b'"\xed\xa0\x80"', rb'"a\u0000b"', b'"a\nb"', rb'"\x41"'):
        refused(world, b'{"templateID":"base","metadata":{"a":' + text + b"}}")


def test_size(world):
    """a body of 2 MB, with its length, in chunks, and announced but never sent"""
    body = json.dumps({"templateID": "base", "metadata": {"a": "x" * 2_000_000}}).encode()
    for chunked in (False, True):
        with world.client.connect() as connection:
            try:
                reply = connection.ask("POST", CREATE, {"X-API-KEY": world.client.key, "Content-Type": "application/json"},
                                       body, chunked)
                assert reply.status == 413, reply
            except raw.Closed:
                pass
    with world.client.connect() as connection:
        connection.send(f"POST {CREATE} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-KEY: {world.client.key}\r\n"
                        "Content-Type: application/json\r\nContent-Length: 1000000000000\r\n\r\n".encode())
        assert connection.reply().status == 413


def test_chunked(world):
    """the SDK's way: JSON in chunks, also byte by byte"""
    for size in (1, 7, 1000):
        body = json.dumps({"templateID": "base", "metadata": {"k": "é" * 50}}).encode()
        with world.client.connect() as connection:
            connection.send(f"POST {CREATE} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-KEY: {world.client.key}\r\n"
                            "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
            connection.send_chunks(body, size)
            reply = connection.reply()
        assert reply.status == 201, reply


def test_types(world):
    """AP-10: a wrong type is refused by name"""
    for body, word in (({"templateID": 5}, "templateID"), ({}, "templateID"), ({"templateID": "base", "metadata": []}, "metadata"),
                       ({"templateID": "base", "metadata": {"a": 1}}, "metadata"), ({"templateID": "base", "envVars": "x"}, "envVars"),
                       ({"templateID": "base", "envVars": {"A": None}}, "envVars"), ({"templateID": "base", "timeout": "60"}, "timeout"),
                       ({"templateID": "base", "autoPause": "yes"}, "autoPause"), ({"templateID": "base", "network": 1}, "network"),
                       ({"templateID": "base", "autoResume": True}, "autoResume")):
        refused(world, body, word)


def test_unknown_options(world):
    """an option that is not there is refused by name, never ignored"""
    for name in ("memory", "cpu", "Timeout", "template", "privileged", "mounts", "__proto__"):
        refused(world, {"templateID": "base", name: {"x": 1}}, name)


def test_unsupported_options(world):
    """an option that we do not support is refused by name"""
    for more, word in (({"mcp": {"x": {}}}, "mcp"), ({"iam": {"tokens": {"a": {"audience": "a", "tokenType": "b"}}}}, "iam"),
                       ({"volumeMounts": [{"name": "a", "path": "/a"}]}, "volumeMounts"),
                       ({"network": {"egressProxy": {"address": "a:1"}}}, "egressProxy"),
                       ({"network": {"rules": {"a b": [{}]}}}, "rules")):
        refused(world, {"templateID": "base"} | more, word)


def test_combinations(world):
    """options that contradict each other"""
    refused(world, {"templateID": "base", "autoPauseMemory": False})
    refused(world, {"templateID": "base", "autoPause": True, "autoPauseMemory": False, "autoResume": {"enabled": True}})


def test_environment(world):
    """AP-09: variables that cannot be"""
    for env in ({"A=B": "x"}, {"": "x"}, {"A\0": "x"}, {"A": "x\0y"}, {f"V{i}": "x" for i in range(100_000)}, {"A": "x" * 900_000}):
        body = {"templateID": "base", "envVars": env}
        reply = world.client.ask("POST", CREATE, body)
        assert reply.status in (400, 413), (str(env)[:60], reply)


def test_shell(world):
    """AP-09: nothing is given to a shell that is not meant for one"""
    box = world.client.create(envVars={"X": "$(touch /tmp/pwned)`touch /tmp/pwned`;touch /tmp/pwned"})
    connection = box.stream("process.Process/Start", {"process": {"cmd": "/bin/echo", "args": ["$(id)", "`id`", "; id", "a b", "", "é"]}})
    with connection:
        out, _, end, _ = raw.collect(raw.messages(connection))
    assert out == "$(id) `id` ; id a b  é\n".encode() and end["status"] == "exit status 0", (out, end)
    assert box.run("ls /tmp/pwned")[2]["exitCode"] == 2


def test_arguments(world):
    """AP-09: NUL in arguments, too many, too long"""
    box = world.client.create()
    for process in ({"cmd": "/bin/echo", "args": ["a\0b"]}, {"cmd": "/bin/ec\0ho"}, {"cmd": ""},
                    {"cmd": "/bin/echo", "envs": {"A=B": "c"}}, {"cmd": "/bin/echo", "cwd": "/\0"}):
        with box.stream("process.Process/Start", {"process": process}) as connection:
            if connection.status == 200:
                _, last = list(raw.messages(connection))[-1]
                assert last["error"]["code"] in ("invalid_argument", "not_found", "internal", "unknown"), (process, last)
            else:
                assert connection.status in (400, 404), (process, connection.status)
    big = {"cmd": "/bin/echo", "args": ["x"] * 200_000}
    with box.stream("process.Process/Start", {"process": big}) as connection:
        if connection.status == 200:
            _, last = list(raw.messages(connection))[-1]
            assert "error" in last, last
        else:
            assert connection.status in (400, 413), connection.status


def test_content_types(world):
    """a body that is not said to be JSON"""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/xml"):
        refused(world, b'{"templateID":"base"}', status=(400, 415), headers={"Content-Type": kind})


def test_log_injection(world):
    """AP-12: one request, one line of the log, whatever is in it"""
    evil = "a\x1b[2Jb\u2028c\u202ed\r\nfake log line"
    world.client.ask("POST", CREATE, {"templateID": evil}, {"User-Agent": "x\x1b[31m\x7f\x80"})
    box = world.client.create(metadata={"k": evil})
    box.run(f"echo '{evil}'")
    box.ask("GET", "/files?path=/%1b%5b2J%0afake")
    log = world.service.log()
    assert "\x1b" not in log and "\u2028" not in log and "\u202e" not in log and "\x7f" not in log
    assert "\nfake" not in log
    for line in log.splitlines():
        if line.startswith("{"):
            json.loads(line)


def test_messages_escape(world):
    """AP-11: what is quoted in an error is JSON, and short"""
    reply = world.client.ask("POST", CREATE, {"templateID": "x\"\\\n\x1b" + "y" * 5000})
    assert reply.status in (400, 404) and len(reply.body) < 2000, reply
    reply.json()
