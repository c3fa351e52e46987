# SPDX-License-Identifier: Apache-2.0
"""Snapshots and forks: of the files."""
import time

from e2b import Sandbox
from harness import box


def test_snapshot():
    """create_snapshot(), list_snapshots(), delete_snapshot()"""
    sandbox = box()
    sandbox.files.write("state", "one")
    snapshot = sandbox.create_snapshot()
    try:
        sandbox.files.write("state", "two")
        assert box(snapshot.snapshot_id).files.read("state") == "one"
        paginator = sandbox.list_snapshots()
        assert [item.snapshot_id for item in paginator.next_items()] == [snapshot.snapshot_id]
    finally:
        assert Sandbox.delete_snapshot(snapshot.snapshot_id) is True
    assert Sandbox.delete_snapshot(snapshot.snapshot_id) is False


def test_snapshot_name():
    """create_snapshot(name), found by it"""
    sandbox = box()
    name = f"shot-{int(time.time() * 1000)}"
    snapshot = sandbox.create_snapshot(name=name)
    try:
        assert any(each.endswith(name) for each in snapshot.names)
        assert [item.snapshot_id for item in Sandbox.list_snapshots(name=name).next_items()] == [snapshot.snapshot_id]
    finally:
        Sandbox.delete_snapshot(snapshot.snapshot_id)


def test_fork():
    """fork(): others with the same files"""
    sandbox = box()
    sandbox.files.write("state", "one")
    forks = sandbox.fork(count=2)
    try:
        assert [fork.files.read("state") for fork in forks] == ["one", "one"]
    finally:
        for fork in forks:
            fork.kill()
    assert sandbox.files.read("state") == "one"
