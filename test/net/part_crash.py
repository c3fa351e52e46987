# SPDX-License-Identifier: Apache-2.0
"""Rooms that are killed: the network of boxes comes back, the rules stay, and nothing is left (kill -9 each)."""
import contextlib
import os
import signal
import subprocess
import threading
import time

import places
import raw
import service


def hello(box, host="web.example"):
    return box.one(do="proxy", send=f"GET http://{host}/hello HTTP/1.1\r\nHost: {host}\r\n\r\n", wait=15)


def works(box):
    try:
        return hello(box).get("status") == 200
    except (OSError, AssertionError, raw.Closed):
        return False


def test_egress(world):
    """egress killed: a new one has the doors and the rules, and what was refused stays refused in between"""
    box, other = world.box("web.example"), world.box("api.example")
    assert works(box)
    for _ in range(3):
        before = world.egress_pid()
        os.kill(before, signal.SIGKILL)
        killed = time.monotonic()
        while not works(box):
            assert hello(box, "other.example").get("status", 0) != 200
            assert time.monotonic() - killed < service.PATIENCE, "the network does not come back"
            time.sleep(0.05)
        assert world.egress_pid() != before
        # It is told of one box after the other.
        assert service.wait_for(lambda: hello(other, "api.example").get("status") == 200)
        assert hello(other, "web.example")["status"] == 403
    assert not world.net.requests(host="other.example")
    assert box.command("env -u http_proxy curl -sSf -m 30 http://web.example/hello")[1] == "hello from web.example\n", "caught too"


def limit_descriptors(pid, soft):
    """As its own user: root alone may not do this everywhere."""
    status = dict(line.split(":\t", 1) for line in open(f"/proc/{pid}/status", encoding="ascii").read().splitlines() if ":\t" in line)
    subprocess.run(["prlimit", f"--pid={pid}", f"--nofile={soft}:"], check=True, timeout=20,
                   user=int(status["Uid"].split()[0]), group=int(status["Gid"].split()[0]), extra_groups=[])


def test_no_descriptors(world):
    """egress that can have no more descriptors: a new box has no network, those there are keep theirs, and it lives on"""
    box = world.box("web.example")
    assert works(box)
    pid = world.egress_pid()
    limit_descriptors(pid, 1)
    try:
        reply = box.client.ask("POST", "/sandboxes", {"templateID": "base", "network": {"allowOut": ["web.example"], "denyOut": ["0.0.0.0/0"]}})
    finally:
        limit_descriptors(pid, 4096)
    assert world.egress_pid() == pid, "it was started again"
    assert reply.status != 201, reply
    assert works(box) and works(world.box("web.example"))


def test_socket_lost(world):
    """a new egress while the server can have no more descriptors, so that their socket is lost: they meet all the same"""
    box = world.box("web.example")
    assert works(box)
    server, before = world.running.server_pid(), world.egress_pid()
    limits, lost = open(f"/proc/{server}/limits", encoding="ascii").read(), world.running.log().count("egress_lost")
    limit_descriptors(server, 1)
    try:
        os.kill(before, signal.SIGKILL)
        assert service.wait_for(lambda: world.egress_pid() not in (before, None))
        assert service.wait_for(lambda: world.running.log().count("egress_lost") > lost)
    finally:
        limit_descriptors(server, limits.partition("Max open files")[2].split()[0])
    assert service.wait_for(lambda: works(box)), "they do not meet again"
    assert world.running.server_pid() == server, "the server was started again"


def test_server(world):
    """the server killed: a download goes on, the rules stay, and the new one can change them"""
    box = world.box("web.example")
    pid, egress = world.running.server_pid(), world.egress_pid()
    box.command("nohup curl -sN http://web.example/drip/60 >/tmp/drip 2>&1 &")
    assert service.wait_for(lambda: "data: 2" in box.command("cat /tmp/drip")[1])
    os.kill(pid, signal.SIGKILL)
    assert service.wait_for(lambda: works(box), pause=0.2)
    assert world.running.server_pid() != pid and world.egress_pid() == egress
    assert hello(box, "other.example")["status"] == 403
    assert service.wait_for(lambda: box.command("grep -c data /tmp/drip")[1] == "60\n", pause=0.2), box.command("tail -n 3 /tmp/drip")
    assert box.update(allowOut=["other.example"], denyOut=["0.0.0.0/0"]).status in (200, 204)
    assert hello(box)["status"] == 403 and hello(box, "other.example")["status"] == 200


def test_change_without_record(world):
    """the server killed between a change and its record: with the next one the record holds, and a box without network has none"""
    box, said = world.box(), []

    def change():
        with contextlib.suppress(raw.Closed, OSError):
            said.append(box.update(allowOut=["web.example"], denyOut=["0.0.0.0/0"]).status)

    asking = threading.Thread(target=change)
    with world.running.store_locked():
        asking.start()
        assert service.wait_for(lambda: works(box)), said
        os.kill(world.running.server_pid(), signal.SIGKILL)
        asking.join()
    assert not said, "it was answered before the server was killed"
    assert service.wait_for(world.running.ready)
    assert service.wait_for(lambda: hello(box).get("status") == 403), hello(box)
    assert box.client.ask("GET", f"/sandboxes/{box.id}").json()["allowInternetAccess"] is False


def test_denied_before_taken_up(world):
    """the server killed, and egress silent: that all is denied from now on is said to nobody before egress knows it"""
    boxes, said = [world.box("web.example") for _ in range(3)], []
    assert all(works(box) for box in boxes)
    egress, server = world.egress_pid(), world.running.server_pid()

    def deny(box):
        said.append(box.update(denyOut=["0.0.0.0/0"]).status)

    os.kill(egress, signal.SIGSTOP)
    try:
        os.kill(server, signal.SIGKILL)
        assert service.wait_for(lambda: world.running.server_pid() not in (None, server) and world.running.ready())
        # One of them may be waiting for egress already; its turn comes before that of the others.
        asking = [threading.Thread(target=deny, args=[box]) for box in boxes]
        for each in asking:
            each.start()
        for each in asking:
            each.join()
    finally:
        os.kill(egress, signal.SIGCONT)
    assert len(said) == 3 and not {200, 204} & set(said), said
    for box in boxes:
        assert service.wait_for(lambda box=box: box.update(denyOut=["0.0.0.0/0"]).status in (200, 204))
        assert hello(box)["status"] == 403


def test_warden(world):
    """the warden killed: egress, server and boxes end with it"""
    running = world.service(server__domain="crash.example")
    box = world.box("web.example", running=running)
    assert works(box)
    pids = service.children(running.process.pid)
    egress = world.egress_pid(running)
    assert egress in pids, pids
    running.kill(signal.SIGKILL)
    assert service.wait_for(lambda: not any(service.alive(pid) for pid in pids)), [service.program_of(pid) for pid in pids if service.alive(pid)]
    running.start()  # the next start removes what is left
    again = world.box("web.example", running=running)
    assert works(again)
    world.end_service(server__domain="crash.example")


def test_confined(world):
    """egress is nobody: its own user, no capability, no new privileges, a filter, and no file open"""
    assert works(world.box("web.example"))
    pid = world.egress_pid()
    status = dict(line.split(":\t", 1) for line in open(f"/proc/{pid}/status", encoding="ascii").read().splitlines() if ":\t" in line)
    server = dict(line.split(":\t", 1) for line in open(f"/proc/{world.running.server_pid()}/status", encoding="ascii").read().splitlines() if ":\t" in line)
    assert "0" not in status["Uid"].split() and status["Uid"] != server["Uid"], status["Uid"]
    assert all(int(status[name], 16) == 0 for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")), status
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2" and status["Threads"] == "1", status
    links = [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]
    # Its log is where the service's goes.
    files = [link for link in links if link.startswith("/") and link not in ("/dev/null", world.running.log_path)]
    assert not files, files


def test_local_run(world):
    """`glovebox run` killed: its egress and its box end with it"""
    argv = [service.GLOVEBOX, "run", "--allow", "web.example", "--", "sh", "-c", "curl -s http://web.example/hello; sleep 60"]
    environment = service.CLEAN | {"GLOVEBOX_EGRESS_RESOLVER": places.WORLD}
    with subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as child:
        assert child.stdout.readline() == b"hello from web.example\n"
        pids = service.children(child.pid)
        assert [pid for pid in pids if service.program_of(pid).startswith("glovebox-egress")], pids
        child.kill()
        assert service.wait_for(lambda: not any(service.alive(pid) for pid in pids)), [service.program_of(pid) for pid in pids]
    subprocess.run([service.GLOVEBOX, "run", "--", "/bin/true"], check=True, env=service.CLEAN)  # removes what is left
