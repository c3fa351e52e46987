# SPDX-License-Identifier: Apache-2.0
"""Making, finding, ending sandboxes."""
import datetime

import e2b
from e2b import Sandbox
from harness import box, needs, raises, until


def test_defaults():
    """create() with nothing, and what is known of it"""
    sandbox = box()
    assert sandbox.is_running()
    info = sandbox.get_info()
    assert info.sandbox_id == sandbox.sandbox_id
    assert info.template_id == "base"
    assert info.state == e2b.SandboxState.RUNNING
    assert info.metadata == {}
    assert info.cpu_count >= 1 and info.memory_mb >= 16
    assert 295 <= (info.end_at - info.started_at).total_seconds() <= 305
    assert info.started_at.tzinfo is not None
    assert sandbox.commands.run("echo hello").stdout == "hello\n"


def test_options():
    """template, timeout, metadata and envs"""
    metadata = {"k 1": "v/é&=+%", "emoji": "🚀"}
    sandbox = box("code-interpreter-v1", timeout=60, metadata=metadata, envs={"A": "it's \"b\""})
    info = sandbox.get_info()
    assert info.metadata == metadata
    assert 58 <= (info.end_at - info.started_at).total_seconds() <= 62
    assert sandbox.commands.run("echo $A $E2B_SANDBOX_ID").stdout == f"it's \"b\" {sandbox.sandbox_id}\n"


def test_internet():
    """allow_internet_access: both are taken, and told"""
    assert box(allow_internet_access=True).is_running()
    assert box(allow_internet_access=False).get_info().allow_internet_access is False


def test_network_token():
    """network.allow_public_traffic False comes with a token"""
    sandbox = box(network={"allow_public_traffic": False})
    assert sandbox.traffic_access_token
    assert Sandbox.connect(sandbox.sandbox_id).traffic_access_token == sandbox.traffic_access_token


def test_unsupported():
    """what the service cannot do is refused by name"""
    raises(e2b.SandboxException, box, volume_mounts={"/mnt": "volume"}, containing="volumeMounts")


def test_unknown_template():
    """a template that does not exist"""
    raises(e2b.SandboxException, box, "no-such-template", containing="404")


def test_bad_timeout():
    """time-outs that cannot be"""
    raises(e2b.SandboxException, box, timeout=-1, containing="400")
    raises(e2b.SandboxException, box, timeout=10**8, containing="400")


def test_connect():
    """connect() gives the same sandbox"""
    sandbox = box()
    sandbox.files.write("here", "yes")
    again = Sandbox.connect(sandbox.sandbox_id)
    assert again.files.read("here") == "yes"
    assert sandbox.connect().sandbox_id == sandbox.sandbox_id
    raises(e2b.SandboxNotFoundException, Sandbox.connect, "inosuchsandbox")


def test_kill():
    """kill(): once True, then False"""
    sandbox = box()
    assert sandbox.kill() is True
    assert sandbox.kill() is False
    assert Sandbox.kill("inosuchsandbox") is False
    assert sandbox.is_running() is False
    raises(e2b.SandboxNotFoundException, sandbox.get_info)
    with Sandbox.create() as inner:
        assert inner.is_running()
    assert inner.is_running() is False


def test_metrics():
    """get_metrics(): what programs and files take now"""
    sandbox = box()
    sandbox.files.write("zeros", bytes(20_000_000))
    eater = sandbox.commands.run("exec python3 -c 'import time; x = b\"x\" * 50_000_000; time.sleep(60)'", background=True)

    def newest():
        metrics = sandbox.get_metrics()
        return metrics and metrics[-1].mem_used > 40_000_000 and metrics[-1]
    last = until(newest, "a metric with the memory")
    assert last.cpu_count >= 1 and last.mem_used <= last.mem_total
    assert 20_000_000 <= last.disk_used <= last.disk_total
    assert last.timestamp.tzinfo is not None
    eater.kill()
    raises(e2b.SandboxNotFoundException, Sandbox.get_metrics, "inosuchsandbox")


def test_network_update():
    """update_network()"""
    sandbox = box()
    sandbox.update_network({"allow_internet_access": False})
    assert sandbox.get_info().allow_internet_access is False


def test_idempotency():
    """idempotency_key: the same request gives the same sandbox"""
    needs("idempotency_key")
    key = f"key-{int(datetime.datetime.now().timestamp() * 1000)}"
    first = box(idempotency_key=key)
    second = box(idempotency_key=key)
    assert first.sandbox_id == second.sandbox_id
    assert box(idempotency_key=key + "-other").sandbox_id != first.sandbox_id


def test_host():
    """get_host()"""
    sandbox = box()
    assert sandbox.get_host(3000).startswith(f"3000-{sandbox.sandbox_id}.")
