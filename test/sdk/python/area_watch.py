# SPDX-License-Identifier: Apache-2.0
"""Watching directories, with polling watchers."""
import e2b
from harness import box, raises, until


def saw(handle, kind, name):
    seen = []

    def look():
        seen.extend((event.type, event.name) for event in handle.get_new_events())
        return (kind, name) in seen
    until(look, f"{kind} of {name} among {seen}")


def test_watch():
    """watch_dir(): polled"""
    sandbox = box()
    sandbox.files.make_dir("w")
    handle = sandbox.files.watch_dir("w")
    sandbox.files.write("w/f", "x")
    saw(handle, e2b.FilesystemEventType.WRITE, "f")
    sandbox.commands.run("mv w/f w/g")
    saw(handle, e2b.FilesystemEventType.RENAME, "f")
    sandbox.files.remove("w/g")
    saw(handle, e2b.FilesystemEventType.REMOVE, "g")
    assert handle.get_new_events() == []
    handle.stop()
    raises(e2b.SandboxException, handle.get_new_events)


def test_watch_recursive():
    """watch_dir(recursive, include_entry)"""
    sandbox = box()
    sandbox.files.make_dir("w/sub")
    handle = sandbox.files.watch_dir("w", recursive=True, include_entry=True)
    sandbox.files.write("w/sub/f", "x")
    events = until(lambda: [event for event in handle.get_new_events() if event.entry], "an entry")
    assert events[0].entry.path.startswith("/home/user/w/sub/")
    handle.stop()


def test_watch_errors():
    """what cannot be watched"""
    files = box().files
    raises(e2b.FileNotFoundException, files.watch_dir, "/no/such")
    raises(e2b.InvalidArgumentException, files.watch_dir, "/etc/passwd")
