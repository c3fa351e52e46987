# SPDX-License-Identifier: Apache-2.0
"""Every limit a client can reach is reached, with a service that has small ones."""
import concurrent.futures
import contextlib
import json
import pathlib
import re
import subprocess

import raw
import service
from cells import cell, error


@contextlib.contextmanager
def small(**settings):
    """A service of its own with these settings: small(limits_sandboxes=2)."""
    running = service.Service({name.replace("_", ".", 1): value for name, value in settings.items()})
    try:
        running.start()
        yield running, raw.Client(running.port, running.key)
    finally:
        running.stop()


def at_once(count, ask):
    """Many requests from eight threads: where each takes its time, one after the other would stay below a rate."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return [done.result() for done in [pool.submit(ask) for _ in range(count)]]


def test_sandboxes_of_key(_):
    """RX-27: sandboxes of one key: 429, and room for another key"""
    with small(limits_sandboxes_per_key=2) as (running, client):
        boxes = [client.create(), client.create()]
        reply = client.ask("POST", "/v2/sandboxes", {"templateID": "base"})
        assert reply.status == 429 and reply.json()["code"] == 429, reply
        raw.Client(running.port, running.new_key()).create()
        # A paused one still counts; a killed one does not.
        assert client.ask("POST", f"/sandboxes/{boxes[0].id}/pause", {}).status == 204
        assert client.ask("POST", "/v2/sandboxes", {"templateID": "base"}).status == 429
        boxes[1].kill()
        client.create()


def test_sandboxes(_):
    """RX-27: sandboxes of all keys: 429 or 503"""
    with small(limits_sandboxes=2, pool_size=0) as (running, client):
        other = raw.Client(running.port, running.new_key())
        client.create()
        other.create()
        reply = other.ask("POST", "/v2/sandboxes", {"templateID": "base"})
        assert reply.status in (429, 503) and reply.message(), reply


def test_time(_):
    """the longest time-out"""
    with small(limits_timeout="60s") as (_, client):
        box = client.create(timeout=60)
        for method, path, body in (("POST", "/v2/sandboxes", {"templateID": "base", "timeout": 61}),
                                   ("POST", "/sandboxes", {"templateID": "base", "timeout": 61}),
                                   ("POST", f"/sandboxes/{box.id}/timeout", {"timeout": 61}),
                                   ("POST", f"/sandboxes/{box.id}/connect", {"timeout": 61}),
                                   ("POST", f"/v2/sandboxes/{box.id}/connect", {"timeout": 61})):
            reply = client.ask(method, path, body)
            assert reply.status == 400 and "imeout" in reply.message(), (path, reply)
        # What asks for nothing gets what there is.
        client.create(version=1)
        client.create()


def test_requests(_):
    """requests of one key per second: 429 with Retry-After; another key does not notice"""
    with small(limits_requests_per_second=5) as (running, client):
        other = raw.Client(running.port, running.new_key())
        replies = [client.ask("GET", "/v2/sandboxes")] + at_once(200, lambda: client.ask("GET", "/v2/sandboxes"))
        late = [reply for reply in replies if reply.status == 429]
        assert late and replies[0].status == 200, [reply.status for reply in replies]
        assert re.fullmatch(r"[1-9]\d*", late[0].headers.get("retry-after", "")), late[0]
        assert other.ask("GET", "/v2/sandboxes").status == 200


def test_exec_input(_):
    """glovebox exec -i: input that comes too often is sent again later, and so is its end"""
    with small(limits_requests_per_second=1) as (running, client):
        box = client.create()
        with subprocess.Popen([service.GLOVEBOX, "exec", "-i", box.id, "--", "sh", "-c", "echo ready; cat"],
                              env=service.CLEAN | {"E2B_API_URL": running.url, "E2B_API_KEY": running.key},
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as session:
            try:
                assert session.stdout.readline() == b"ready\n"
                while client.ask("GET", "/v2/sandboxes").status != 429:
                    pass
                out, err = session.communicate(b"all of it", timeout=60)
            finally:
                session.kill()
        assert (session.returncode, out, err) == (0, b"all of it", b""), (session.returncode, out, err)


def test_creates(_):
    """RX-27: sandboxes created by one key per second: 429 with Retry-After"""
    with small(limits_creates_per_second=1) as (_, client):
        replies = at_once(40, lambda: client.ask("POST", "/v2/sandboxes", {"templateID": "base"}))
        assert {reply.status for reply in replies} == {201, 429}, replies
        for reply in replies:
            assert reply.status == 201 or re.fullmatch(r"[1-9]\d*", reply.headers.get("retry-after", "")), reply
        assert client.ask("GET", "/v2/sandboxes").status == 200


def test_connections(_):
    """connections at once from one address"""
    with small(limits_connections_per_address=10) as (running, _):
        crowd = []
        try:
            for _ in range(40):
                with contextlib.suppress(OSError):
                    crowd.append(raw.Connection(running.port, 20, "127.0.3.1"))
            served = 0
            for connection in crowd:
                with contextlib.suppress(raw.Closed, OSError):
                    served += connection.ask("GET", "/health").status in (200, 204)
            assert 1 <= served <= 10, served
            # Somebody from elsewhere is served meanwhile, and this address again when it is done.
            assert raw.Client(running.port, None, "127.0.3.2").ask("GET", "/health").status in (200, 204)
        finally:
            for connection in crowd:
                connection.close()
        assert service.wait_for(lambda: again(running)), "the address is served again"


def again(running):
    with contextlib.suppress(raw.Closed, OSError):
        return raw.Client(running.port, None, "127.0.3.1").ask("GET", "/health").status in (200, 204)
    return False


def test_snapshots_of_key(_):
    """snapshots of one key: 429, and room for another key"""
    with small(limits_snapshots_per_key=2) as (running, client):
        box = client.create()

        def keep(box, body):
            return box.client.ask("POST", f"/sandboxes/{box.id}/snapshots", body).status

        assert [keep(box, {}), keep(box, {"name": "a"})] == [201, 201]
        assert keep(box, {}) == 429
        assert keep(box, {"name": "a"}) == 201  # in the place of the other
        other = raw.Client(running.port, running.new_key()).create()
        assert keep(other, {}) == 201
        assert client.ask("DELETE", "/templates/a").status == 204
        assert {keep(each, {}) for each in [box] * 2} == {201, 429}


def test_metadata(world):
    """metadata of a sandbox in all, which each of its events carries"""
    for metadata, status in (({f"k{i:03}": "x" * 4092 for i in range(4)}, 201), ({f"k{i:03}": "x" * 4093 for i in range(4)}, 400),
                             ({f"{i:0256}": "" for i in range(64)}, 201), ({f"{i:0256}": "x" for i in range(64)}, 400)):
        reply = world.client.ask("POST", "/v2/sandboxes", {"templateID": "base", "metadata": metadata})
        assert reply.status == status, (len(metadata), reply)
        assert status == 201 or "metadata: must have at most 16384 bytes" in reply.message(), reply


def test_events_kept(_):
    """events of a key that never ends a sandbox are forgotten too; those of another stay"""
    with small(limits_events_kept=20) as (running, client):
        quiet = raw.Client(running.port, running.new_key())
        bystander, box = quiet.create(), client.create()
        for _ in range(2):  # each server forgets what is too much when it starts: that is the first time
            at_once(100, lambda: client.ask("POST", f"/sandboxes/{box.id}/timeout", {"timeout": 100}))
            assert service.wait_for(lambda: len(client.ask("GET", "/events/sandboxes?limit=100").json()) < 20, 20), "they are kept"
        assert [event["sandboxId"] for event in quiet.ask("GET", "/events/sandboxes").json()] == [bystander.id]


def test_box_limits(_):
    """memory, files and processes of a sandbox"""
    with small(sandbox_memory="64M", sandbox_disk="16M", sandbox_pids=30) as (_, client):
        box = client.create()
        info = client.ask("GET", f"/sandboxes/{box.id}").json()
        assert info["memoryMB"] == 64 and info["diskSizeMB"] == 16, info
        _, _, end, _ = box.run("head -c 32M /dev/zero >f")
        assert end["exitCode"] == 1 and end["error"] == \
            "exit status 1; the sandbox wrote more than its limit, 16 MiB; raise sandbox.disk in glovebox.toml if it needs more", end
        assert box.run("rm -f f; for i in $(seq 60); do sleep 5 & done 2>/dev/null; jobs -r | wc -l")[0] != b"60\n"
        _, _, end, _ = box.run("x=$(head -c 200M /dev/zero | tr '\\0' x); echo ${#x}")
        assert end["status"] == "signal: killed" and end["error"] == "signal: killed; the sandbox used more memory than " \
            "its limit, 64 MiB; raise sandbox.memory in glovebox.toml if it needs more", end
        _, _, end, _ = box.run("kill -9 $$")
        assert end["error"] == "signal: killed", end  # not for memory, this time
        found = cell(box, "x = 'x' * 200_000_000; sleep 30", language="ruby", limits={"wall_ms": 20_000})
        assert error(found)["name"] == "CellMemoryLimit" and "64 MiB" in error(found)["value"], found


def test_run_words(_):
    """which limit ended a run, with its value"""
    with small() as (_, client):
        for limit, value, code, says in (
                ("timeout_ms", 300, "sleep 9", "timeout: it ran longer than its limit, 300 ms; raise limits.timeout_ms if"),
                ("cpu_time_ms", 200, "while :; do :; done", "cpu_limit: it used more CPU time than its limit, 200 ms; raise"),
                ("memory_bytes", 32 << 20, "x=$(head -c 200M /dev/zero | tr '\\0' x); sleep 9",
                 "memory_limit: it used more memory than its limit, 32 MiB; raise limits.memory_bytes"),
                ("disk_bytes", 1 << 20, "cat /dev/zero >a; sleep 9", "disk_limit: it wrote more than its limit, 1 MiB; raise limits.disk"),
                ("files", 200, "for i in $(seq 900); do : >$i; done; sleep 9", "disk_limit: it made more files than its limit, 200; raise"),
                ("pids", 8, "for i in $(seq 40); do sleep 9 & done; wait", "pids_limit: it started more processes than its limit, 8"),
                ("output_bytes", 1000, "yes", "output_limit: it printed more than its limit, 1000 bytes; raise limits.output_bytes")):
            got = run(client, "bash", "-c", code, limits={limit: value}).json()
            assert f"{got['status']}: {got['message']}".startswith(says), got


def test_no_root(_):
    """no root in the sandbox where the administrator wants none"""
    with small(sandbox_root="false") as (_, client):
        box = client.create()
        assert box.run("sudo -n id")[2]["exitCode"] != 0
        with box.start("id", {"Authorization": "Basic cm9vdDo="}) as connection:
            if connection.status == 200:
                _, last = list(raw.messages(connection))[-1]
                assert "error" in last, last
            else:
                assert connection.status in (401, 403), connection.status


def run(client, *command, **more):
    return client.ask("POST", "/v1/run", {"command": list(command)} | more)


def test_run_time(_):
    """a run may take as long as the longest time-out, and no longer"""
    with small(limits_timeout="40s") as (_, client):
        assert run(client, "echo", "hi").json()["stdout"] == "hi\n"
        assert run(client, "true", limits={"timeout_ms": 40_000}).json()["status"] == "ok"
        assert run(client, "true", limits={"timeout_ms": 40_001}).status == 400


def test_run_share(_):
    """a key has as many runs at once as it may have sandboxes; who hangs up ends his"""
    with small(limits_sandboxes_per_key=1) as (running, client):
        with client.connect() as connection:
            body = json.dumps({"command": ["sh", "-c", "echo up; sleep 60"], "limits": {"timeout_ms": 70_000}})
            connection.send((f"POST /v1/run HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-KEY: {client.key}\r\nContent-Type: application/json"
                             f"\r\nAccept: application/x-ndjson\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode())
            while b"stdout_base64" not in connection.buffer:
                assert connection.more()
            assert run(client, "true").status == 429
            assert raw.Client(running.port, running.new_key()).ask("POST", "/v1/run", {"command": ["true"]}).status == 200
        assert service.wait_for(lambda: run(client, "true").status == 200, 10, 0.1), "it goes on without its client"


def test_run_results(_):
    """results that are kept are bounded all together; those that are passed on as they come are not"""
    with small() as (_, client):
        def large():
            # Four at a time fill it; each byte is six as text.
            return run(client, "sh", "-c", r"head -c 50000000 /dev/zero | tr '\0' '\1'", limits={"output_bytes": 60_000_000}).json()
        results = at_once(4, large)
        assert {each["status"] for each in results} <= {"ok", "setup_error"}, [each["status"] for each in results]
        refused = [each for each in results if each["status"] == "setup_error"]
        assert refused and all("holds as many results" in each["message"] for each in refused), len(refused)
        whole = [each for each in results if each["status"] == "ok"]
        assert all(each["stdout"] == "\1" * 50_000_000 for each in whole)
        assert large()["status"] == "ok"  # there is room again


def prints(client, size):
    """How a run ends that prints so much."""
    return run(client, "head", "-c", str(size), "/dev/zero", limits={"output_bytes": size}).json()["status"]


def is_running(*words):
    """A program with these words, in whichever box."""
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes().split(b"\0")[:-1] == [word.encode() for word in words]:
                return True
    return False


def test_run_unread(_):
    """a run whose output nobody reads reaches its limit all the same, and the result says which"""
    word = "nobody-reads-this"
    with small() as (_, client), client.connect(receive_buffer=4096) as connection:
        body = json.dumps({"command": ["yes", word], "limits": {"timeout_ms": 2000, "output_bytes": 60_000_000}})
        connection.send((f"POST /v1/run HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-KEY: {client.key}\r\nContent-Type: application/json"
                         f"\r\nAccept: application/x-ndjson\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode())
        assert service.wait_for(lambda: is_running("yes", word)), "it did not start"
        assert service.wait_for(lambda: not is_running("yes", word)), "it goes on"
        lines = [json.loads(line) for line in connection.reply("POST").body.splitlines()]
        assert lines[-1]["result"]["status"] == "timeout", lines[-1]
        assert all("stdout_base64" in line for line in lines[:-1])


@contextlib.contextmanager
def large_run(client, name):
    """A run that has printed as much as one may, and goes on."""
    size, time = 64 << 20, f"300.{client.port}{name}"
    body = json.dumps({"command": ["sh", "-c", f"head -c {size} /dev/zero; sleep {time}"], "limits": {"output_bytes": size, "timeout_ms": 400_000}})
    with client.connect() as connection:
        connection.send((f"POST /v1/run HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-KEY: {client.key}\r\nContent-Type: application/json"
                         f"\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode())
        assert service.wait_for(lambda: is_running("sleep", time), pause=0.1)
        yield


@contextlib.contextmanager
def full_share(client, name):
    """Runs that have printed as much as their key may have kept."""
    with large_run(client, f"{name}1"), large_run(client, f"{name}2"):
        yield


def test_run_results_of_key(_):
    """a key has half of what may be kept of results, and when all of it is taken small ones still pass"""
    with small() as (running, client):
        second, third = (raw.Client(running.port, running.new_key()) for _ in range(2))
        with full_share(client, 1):
            assert prints(second, 30_000_000) == "ok"
            assert prints(client, 2_000_000) == "setup_error"
            assert run(client, "echo", "hi").json()["stdout"] == "hi\n"
            with full_share(second, 2):
                assert run(third, "echo", "hi").json()["stdout"] == "hi\n"
                assert prints(third, 2_000_000) == "setup_error"
        assert service.wait_for(lambda: prints(third, 2_000_000) == "ok"), "it is given back"


def test_run_files(_):
    """what does not fit into a run's own box is said to be that"""
    with small() as (_, client):
        files = [{"path": f"f{i}", "content": "x"} for i in range(250)]
        reply = run(client, "true", files=files, limits={"files": 1})
        assert reply.status == 200 and reply.json()["status"] == "setup_error", reply
        assert "limits.files" in reply.json()["message"], reply
