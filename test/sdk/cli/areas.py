# SPDX-License-Identifier: Apache-2.0
"""@e2b/cli as its users run it:  SDK_DIR=… areas.py AREA NODE. Prints TAP."""
import json
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../lib"))
import tap  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = [sys.argv[2], os.path.join(os.environ["SDK_DIR"], "node_modules/@e2b/cli/dist/index.js")]
MADE = []
T = tap.Tap()


def e2b(*args, status=0, text=None, seconds=60):
    """Runs the program; its output and errors together."""
    done = subprocess.run(PROGRAM + list(args), input=text, stdin=subprocess.DEVNULL if text is None else None,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds, check=False)
    output = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", done.stdout)
    assert done.returncode == status, f"e2b {' '.join(args)}: status {done.returncode}, {status} expected:\n{output}"
    return output


def create(*args):
    output = e2b("sandbox", "create", "--detach", *args)
    sandbox = re.search(r"\b(i[a-z0-9]{15,})\b", output).group(1)
    MADE.append(sandbox)
    return sandbox


def test_create_info_kill():
    sandbox = create("base")
    info = json.loads(e2b("sandbox", "info", "--format", "json", sandbox))
    assert info["sandboxId"] == sandbox and info["state"] == "running", info
    assert sandbox in e2b("sandbox", "info", sandbox)
    e2b("sandbox", "kill", sandbox)
    assert sandbox not in e2b("sandbox", "list")


def test_list():
    first, second = create("base"), create("code-interpreter-v1")
    listed = json.loads(e2b("sandbox", "list", "--format", "json"))
    assert {first, second} <= {item["sandboxId"] for item in listed}, listed
    assert first in e2b("sandbox", "list")
    only = e2b("sandbox", "list", "--template", "code-interpreter-v1", "--order", "asc", "--limit", "100")
    assert second in only and first not in only, only
    assert first not in e2b("sandbox", "list", "--metadata", "nobody=has-this")


def test_exec():
    sandbox = create()
    assert "out\n" in e2b("sandbox", "exec", sandbox, "--", "echo", "out")
    assert "root" in e2b("sandbox", "exec", "-u", "root", sandbox, "id", "-un")
    assert "/tmp" in e2b("sandbox", "exec", "-c", "/tmp", sandbox, "pwd")
    assert "val" in e2b("sandbox", "exec", "-e", "K=val", sandbox, "printenv", "K")


def test_exec_status():
    e2b("sandbox", "exec", create(), "exit", "7", status=7)


def test_exec_input():
    assert "piped" in e2b("sandbox", "exec", create(), "cat", text="piped\n")


def test_exec_background():
    sandbox = create()
    e2b("sandbox", "exec", "-b", sandbox, "touch /tmp/made; sleep 50")
    e2b("sandbox", "exec", sandbox, "until test -e /tmp/made; do sleep 0.1; done")


def test_pause_resume():
    sandbox = create()
    e2b("sandbox", "exec", sandbox, "echo kept >f")
    e2b("sandbox", "pause", sandbox)
    assert sandbox in e2b("sandbox", "list", "--state", "paused")
    e2b("sandbox", "resume", sandbox)
    assert "kept" in e2b("sandbox", "exec", sandbox, "cat f")


def test_metrics():
    sandbox = create()
    deadline = time.monotonic() + 60
    while "CPU" not in (output := e2b("sandbox", "metrics", sandbox)) and time.monotonic() < deadline:
        time.sleep(1)
    assert "CPU" in output, output


def test_logs():
    sandbox = create()
    e2b("sandbox", "exec", sandbox, "echo for-the-log")
    e2b("sandbox", "logs", sandbox)
    e2b("sandbox", "logs", "--format", "json", sandbox)


def test_snapshots():
    sandbox = create()
    output = e2b("sandbox", "snapshot", "create", sandbox)
    snapshots = e2b("sandbox", "snapshot", "list")
    name = re.search(r"snapshot (\S+:\S+)", output).group(1)
    assert name in snapshots, f"{output}\n{snapshots}"
    e2b("sandbox", "snapshot", "delete", name)
    assert name not in e2b("sandbox", "snapshot", "list")


def test_lifecycle_options():
    sandbox = create("--timeout", "60", "--lifecycle.ontimeout", "pause", "--lifecycle.autoresume")
    info = json.loads(e2b("sandbox", "info", "--format", "json", sandbox))
    assert info["lifecycle"] == {"onTimeout": "pause", "autoResume": True}, info


def test_terminal():
    """The terminal that `create` opens, on a terminal of its own."""
    command = f"stty cols 80 rows 24; exec {' '.join(PROGRAM)} sandbox create base"
    # `script` gives it a terminal; the shell in the sandbox gets the rest.
    done = subprocess.run(["script", "-qec", f"sh -c '{command}'", "/dev/null"], text=True, timeout=60, check=False,
                          input="echo $((6*7)); exit\n", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    MADE.extend(re.findall(r"\b(i[a-z0-9]{18,20})\b", done.stdout))
    assert "42" in done.stdout, done.stdout[-1500:]


def test_templates():
    output = e2b("template", "list")
    assert "base" in output and "code-interpreter-v1" in output, output


def test_errors():
    e2b("sandbox", "info", "inosuchsandbox", status=1)
    assert "wasn't found" in e2b("sandbox", "kill", "inosuchsandbox")


def test_kill_all():
    create()
    e2b("sandbox", "kill", "--all", "--metadata", "nobody=has-this")


AREAS = {
    "create": (test_create_info_kill, test_kill_all),
    "list": (test_list,),
    "lifecycle": (test_pause_resume, test_lifecycle_options),
    "snapshots": (test_snapshots,),
    "commands": (test_exec, test_exec_status, test_exec_input, test_exec_background),
    "pty": (test_terminal,),
    "errors": (test_errors,),
    "logs": (test_metrics, test_logs, test_templates),
}

for function in AREAS[sys.argv[1]]:
    T.attempt(function.__name__[5:].replace("_", " "), function)
    for left in MADE:
        subprocess.run(PROGRAM + ["sandbox", "kill", left], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=60, check=False)
    MADE.clear()
sys.exit(T.finish())
