# SPDX-License-Identifier: Apache-2.0
"""Starting and stopping: CR-05, CR-06, CR-09, and what must not be started at all."""
import os
import subprocess
import tempfile
import threading
import time

import raw
import service
from helpers import machine, running
from tap import Skip


def serve(*options, state, seconds=service.PATIENCE):
    """Runs `glovebox serve` that is expected to refuse: its status (None: it served and was ended) and what it said."""
    with subprocess.Popen([service.GLOVEBOX, "serve", "--state", state, *options], env=service.CLEAN, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            said, _ = process.communicate(timeout=seconds)
            return process.returncode, said
        except subprocess.TimeoutExpired:
            process.terminate()
            return None, process.communicate(timeout=service.STOP_SECONDS)[0]


def test_two(_):
    """CR-06: a second service on the same state is refused, and the first goes on"""
    with running() as (each, client):
        status, said = serve("--listen", f"127.0.0.1:{service.free_port()}", state=each.state)
        assert status not in (0, None) and said.strip(), (status, said)
        assert client.create().run("echo fine")[0] == b"fine\n"


def test_port_taken(_):
    """a port that is taken"""
    with running() as (each, _), tempfile.TemporaryDirectory() as state:
        status, said = serve("--listen", f"127.0.0.1:{each.port}", state=state)
        assert status not in (0, None) and str(each.port) in said, (status, said)


def test_public(_):
    """a public address: only with a key, which the first start makes"""
    with tempfile.TemporaryDirectory() as state:
        key = os.path.join(state, "local.key")
        with subprocess.Popen([service.GLOVEBOX, "serve", "--state", state, "--listen", f"0.0.0.0:{service.free_port()}"],
                              env=service.CLEAN, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            made = service.wait_for(lambda: os.path.exists(key) or process.poll() is not None) and os.path.exists(key)
            process.terminate()
            assert process.wait(service.STOP_SECONDS) == 0 and made, (process.returncode, made)


def test_bad_settings(_):
    """settings that cannot be are named"""
    with tempfile.TemporaryDirectory() as state:
        for options in (("--listen", "nonsense"), ("--listen", "127.0.0.1:99999"), ("--limits-sandboxes", "0"), ("--no-such", "1"),
                        ("--tls-cert", "/no/such"), ("--config", "/no/such")):
            status, said = serve(*options, state=state)
            assert status not in (0, None) and said.strip(), (options, status, said)


def test_term_under_load(verdicts):
    """CR-09: SIGTERM under load ends everything in time"""
    each = service.Service().start()
    client = raw.Client(each.port, each.key)
    stop = threading.Event()

    def load():
        while not stop.is_set():
            try:
                client.create().run("echo x; sleep 0.2")
            except (raw.Closed, OSError, AssertionError, ValueError):
                time.sleep(0.01)
    threads = [threading.Thread(target=load, daemon=True) for _ in range(6)]
    for thread in threads:
        thread.start()
    time.sleep(2)
    started = time.monotonic()
    try:
        verdicts.equal(each.stop(), 0, "ends: the status is 0")
    finally:
        stop.set()
    verdicts.ok(time.monotonic() - started < 15, "ends: it took less than 15 s")
    for thread in threads:
        thread.join(10)
    assert machine() == {"orphans": "", "mounts": 0}, machine()


def test_full_state(_):
    """CR-05: no room for the state: new work is refused, running work goes on"""
    with tempfile.TemporaryDirectory() as place:
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "none", place], check=False).returncode != 0:
            raise Skip("cannot mount a tmpfs here")
        try:
            each = service.Service(state=place).start()
            try:
                full_state(each)
            finally:
                each.stop()
        finally:
            subprocess.run(["umount", place], check=True)


def full_state(each):
    client = raw.Client(each.port, each.key)
    box = client.create(timeout=600)
    filler = os.path.join(each.state, "filler")
    with open(filler, "wb", buffering=0) as stream:
        try:
            while stream.write(bytes(4096)):
                pass
        except OSError:
            pass
    large = {f"k{i}": "y" * 4000 for i in range(4)}
    refused = [client.ask("POST", "/v2/sandboxes", {"templateID": "base", "metadata": large}) for _ in range(7)]
    assert refused[-1].status in (500, 503, 507), refused[-1]
    assert box.run("echo fine")[0] == b"fine\n"
    os.unlink(filler)
    assert service.wait_for(lambda: client.ask("POST", "/v2/sandboxes", {"templateID": "base"}).status == 201)


def test_no_descriptors(_):
    """CR-10: more connections than descriptors: it serves again when they are gone"""
    with running(limits_connections=64, limits_connections_per_address=65536) as (each, client):
        crowd = []
        for i in range(300):
            try:
                crowd.append(raw.Connection(each.port, 2, f"127.0.7.{i % 250 + 1}"))
            except OSError:
                break
        for connection in crowd:
            connection.close()
        assert service.wait_for(each.ready)
        assert client.create().run("echo fine")[0] == b"fine\n"
