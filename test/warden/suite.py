# SPDX-License-Identifier: Apache-2.0
"""The warden with a stub in the server's place: what boxes do, what happens when somebody dies, and what a
server that was taken over can do (AP-18). Prints TAP. Root only.

run [TEST]... runs only those.  Environment: GLOVEBOX (the program), WARDEN_CYCLES=1000, WARDEN_KILLS=20."""

import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../lib"), HERE]

import contextlib
import ctypes
import glob
import random
import re
import shutil
import subprocess
import tempfile
import threading
import traceback

import tap
from talk import *

GLOVEBOX = os.environ.get("GLOVEBOX", os.path.join(HERE, "../../build/src/cli/glovebox"))
STUB = os.path.join(os.path.dirname(GLOVEBOX), "../../test/warden/warden-stub")
KILLS = int(os.environ.get("WARDEN_KILLS", "20"))
CYCLES = int(os.environ.get("WARDEN_CYCLES", "1000"))
TMP = tempfile.mkdtemp(prefix="glovebox-warden.")
STATE = TMP + "/state"
LOG = TMP + "/log"
SYS_PIDFD_GETFD = 438  # of every architecture
MOUNTS_BEFORE = open("/proc/self/mountinfo").readlines()


def warden(*options, pool=0, zygote=False):
    options += () if zygote else ("--no-zygote",)
    return Warden(GLOVEBOX, STUB, STATE, "--pool-size", str(pool), *options, stderr=LOG)


def stale_boxes():
    """Cgroups of boxes whose number nobody holds; see test/left.sh."""
    script = f". {HERE}/../left.sh; left_behind"
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True).stdout.split()


def children_named(warden_pid, name):
    """Children of this warden that run a program of that name."""
    out = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            text = open(path).read()
        except OSError:
            continue
        pid, rest = text.split(" ", 1)
        if rest.rpartition(")")[2].split()[1] == str(warden_pid) and f"({name})" in rest:
            out.append(int(pid))
    return out


def agents(warden_pid):
    """The agents of this warden: its children in other pid namespaces."""
    return children_named(warden_pid, "glovebox-agent")


def alive(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def what_is(pid):
    try:
        return [open(f"/proc/{pid}/{f}").read() for f in ("stat", "wchan", "cgroup")]
    except OSError as e:
        return str(e)


def status_of(pid):
    return dict(line.split(":\t", 1) for line in open(f"/proc/{pid}/status").read().splitlines() if ":\t" in line)


def wait_for(condition, timeout=PATIENCE):
    until = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def same_for(seconds, measure):
    """What measure() gives when it has given the same for so long."""
    value, since, until = measure(), time.monotonic(), time.monotonic() + PATIENCE
    while time.monotonic() - since < seconds and time.monotonic() < until:
        time.sleep(0.05)
        if (now := measure()) != value:
            value, since = now, time.monotonic()
    return value


def cpu_seconds(pid):
    """What a process has computed, whoever else does beside it."""
    fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def our_mounts():
    """Mounts of ours on this machine. Others mount as well, elsewhere."""
    return [line for line in open("/proc/self/mountinfo") if "glovebox" in line and line not in MOUNTS_BEFORE]


def n_fds(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def rss_kib(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{pid}/status").read())[1])


MEMORY_CGROUP, FREEZER = 1, 32  # enum cgroup_feature


def need(feature, what):
    """Skips the test where this host's cgroups do not have it."""
    global cgroup_features
    if cgroup_features is None:
        w = warden()
        s = w.server()
        s.hello()
        cgroup_features = s.create("look").box.cgroup_features
        w.stop()
    if not cgroup_features & feature:
        raise tap.Skip(f"the cgroups here have no {what}")


cgroup_features = None


def sh(fd, text, **more):
    return run(fd, ["/bin/sh", "-c", text], **more)


def goes_on(control):
    """A box that adds lines to /tmp/beat adds more."""
    lines = lambda: int(sh(control, "wc -l </tmp/beat")[1])
    before = lines()
    assert wait_for(lambda: lines() > before), "it stands still"


# --- life -----------------------------------------------------------------------------------------


def test_create_list_kill():
    w = warden()
    s = w.server()
    assert s.hello() == ({}, {})
    r = s.create("one")
    assert r.err == 0 and r.box.id == "one" and r.box.state == RUNNING and r.fd is not None
    assert 50000 < r.box.left_ms <= 60000
    assert sh(r.fd, "echo $((6 * 7))") == (0, "42\n")
    assert s.create("one").err == errno.EEXIST
    u = s.target(USAGE, "one").usage
    assert u["cpu_us"] > 0 and u["disk_size"] == LIMITS["disk"] and (u["memory_peak"] > 0 or not r.box.cgroup_features & MEMORY_CGROUP), u
    assert s.target(KILL, "one").err == 0
    assert s.target(KILL, "one").err == errno.ENOENT
    assert s.target(USAGE, "one").err == errno.ENOENT
    try:
        sh(r.fd, "true", timeout=5)
        assert False, "a killed box answered"
    except (OSError, EOFError):
        pass
    assert s.create("one").err == 0, "a name can be used again"
    assert w.stop() == 0
    assert stale_boxes() == []


def test_pool():
    w = warden(pool=3)
    s = w.server()
    s.hello()
    assert wait_for(lambda: len(agents(w.process.pid)) == 3), agents(w.process.pid)
    time.sleep(0.1)
    before = set(agents(w.process.pid))
    r = s.create("pooled", flags=ROOT_FLAG)
    assert r.err == 0 and sh(r.fd, "echo hi") == (0, "hi\n")
    assert before <= set(agents(w.process.pid)), "it was made anew"
    assert wait_for(lambda: len(agents(w.process.pid)) == 4), "the pool is filled again"
    # Other limits: not one of those.
    assert s.create("small", flags=ROOT_FLAG, pids=100).err == 0
    assert [b.id for b in restart(w, s)[1].values()] != []
    assert w.stop() == 0 and stale_boxes() == []


@tap.slow
def test_pool_box_dies():
    """A box that dies in the pool is replaced, without anybody asking for one."""
    w = warden(pool=1)
    s = w.server()
    s.hello()
    assert wait_for(lambda: agents(w.process.pid))
    (first,) = agents(w.process.pid)
    assert s.target(USAGE, "none").err == errno.ENOENT  # by now it waits
    os.kill(first, signal.SIGKILL)
    assert wait_for(lambda: set(agents(w.process.pid)) - {first}), "the pool stays empty"
    assert w.stop() == 0 and stale_boxes() == []


@tap.slow
def test_deadlines():
    w = warden()
    s = w.server()
    s.hello()
    for i, ms in enumerate((7000, 4000, 6000)):
        assert s.create(f"d{i}", timeout_ms=ms).err == 0
    assert s.deadline(DEADLINE, "d1", 60000).err == 0
    assert s.deadline(DEADLINE, "d2", 50).err == 0
    assert s.wait_event(ENDED) == ("d2", TIMEOUT)
    assert s.wait_event(ENDED) == ("d0", TIMEOUT)
    assert s.deadline(DEADLINE, "none", 60000).err == errno.ENOENT
    assert s.deadline(DEADLINE, "d1", 1 << 62).err == errno.EINVAL
    assert s.target(USAGE, "d1").err == 0
    w.stop()


@tap.slow
def test_pause_resume():
    need(FREEZER, "freezer")
    w = warden()
    s = w.server()
    s.hello()
    r = s.create("p", timeout_ms=60000)
    control = r.fd
    beat = "(while :; do echo x >>/tmp/beat; sleep 0.01; done) >/dev/null 2>&1 </dev/null & until [ -s /tmp/beat ]; do sleep 0.01; done"
    assert sh(control, beat)[0] == 0
    assert s.target(PAUSE, "p").box.state == IS_PAUSED
    cpu = s.target(USAGE, "p").usage["cpu_us"]
    time.sleep(0.5)
    assert s.target(USAGE, "p").usage["cpu_us"] == cpu, "it runs on"
    assert s.target(PAUSE, "p").err == 0, "twice is no mistake"
    r = s.deadline(RESUME, "p", 50000)
    assert r.err == 0 and r.box.state == RUNNING and r.box.left_ms <= 50000
    goes_on(control)
    # A paused box can be killed, and its deadline does not count.
    assert s.deadline(DEADLINE, "p", 3000).err == 0
    assert s.target(PAUSE, "p").err == 0
    time.sleep(3.5)
    assert s.target(USAGE, "p").err == 0
    agent = agents(w.process.pid)
    assert s.target(KILL, "p").err == 0
    assert wait_for(lambda: not any(map(alive, agent)))
    # When its time is over: paused where that was asked for.
    r = s.create("q", timeout_ms=200, flags=PAUSE_FLAG)
    assert s.wait_event(PAUSED)[0] == "q"
    assert s.deadline(RESUME, "q", 60000).err == 0 and sh(r.fd, "echo hi") == (0, "hi\n")
    assert s.target(PAUSE, "none").err == errno.ENOENT
    assert w.stop() == 0 and stale_boxes() == []


def at_its_deadline(w, s, id, type, payload):
    """Asks for something in the moment in which the time of this box is over and it is to be paused: the warden sees the
    time first, then the request, and not all of the box stands still yet. The reply, and the control socket."""
    control = s.create(id, timeout_ms=60000, flags=PAUSE_FLAG).fd
    assert s.deadline(DEADLINE, id, 2000).err == 0
    os.kill(w.process.pid, signal.SIGSTOP)
    time.sleep(2.1)
    request = s.send(type, payload)
    os.kill(w.process.pid, signal.SIGCONT)
    return s.wait_reply(request), control


@tap.slow
def test_asked_at_the_deadline():
    need(FREEZER, "freezer")
    w = warden()
    s = w.server()
    s.hello()
    # Whoever gives it more time then is believed: it goes on.
    for id, type in (("d", DEADLINE), ("r", RESUME)):
        r, control = at_its_deadline(w, s, id, type, struct.pack("<32sQ", c_id(id), 50000))
        assert r.err == 0 and r.box.state == RUNNING and 0 < r.box.left_ms <= 50000, (id, r.err, r.box.left_ms)
        assert sh(control, "echo hi") == (0, "hi\n")
        assert not [event for event in s.events if event[0] == PAUSED], id
    # Whoever asks for a pause then is answered when it is paused.
    r, _ = at_its_deadline(w, s, "p", PAUSE, struct.pack("<32s", b"p"))
    assert r.err == 0 and r.box.state == IS_PAUSED, (r.err, r.box.state)
    # One that is paused has no deadline to set.
    assert s.deadline(DEADLINE, "p", 60000).err == errno.EBUSY
    assert s.deadline(RESUME, "p", 60000).err == 0
    assert w.stop() == 0 and stale_boxes() == []


def test_box_ends_itself():
    w = warden()
    s = w.server()
    s.hello()
    s.create("crash")
    assert wait_for(lambda: agents(w.process.pid))  # a box is given away while its agent is still starting
    os.kill(agents(w.process.pid)[0], signal.SIGKILL)
    assert s.wait_event(ENDED) == ("crash", CRASHED)
    r = s.create("hangup")
    socket.socket(fileno=r.fd).shutdown(socket.SHUT_RDWR)
    assert s.wait_event(ENDED)[0] == "hangup"
    w.stop()


@tap.slow
def test_memory():
    """Programs stay within their memory; files have room of their own; the box lives on."""
    need(MEMORY_CGROUP, "memory controller")
    w = warden()
    s = w.server()
    s.hello()
    control = s.create("m", memory=128 * MIB, disk=1024 * MIB).fd
    assert sh(control, "head -c 600M /dev/zero > /home/user/f && echo ok") == (0, "ok\n"), "files are not memory"
    time.sleep(1.5)
    assert sh(control, "head -c 100M /dev/zero | tail -c 90M | wc -c") == (0, "94371840\n")
    hog = "import time; x = bytearray(300 << 20); x[::4096] = bytes(len(x[::4096])); print(1, flush=True); time.sleep(1000)"
    code, out = run(control, ["/usr/bin/python3", "-c", hog])
    assert code == -1, (code, out)
    assert s.target(USAGE, "m").usage["oom_kills"] > 0
    assert sh(control, "echo alive") == (0, "alive\n")
    assert w.stop() == 0


def test_memory_one_at_a_time():
    """While a large process is dying, nobody else in the box is killed for what it still has."""
    need(MEMORY_CGROUP, "memory controller")
    w = warden()
    s = w.server()
    s.hello()
    control = s.create("m", memory=128 * MIB, disk=2048 * MIB).fd
    assert sh(control, "for i in $(seq 20); do setsid sleep 1000 >/dev/null 2>&1 & done") == (0, "")
    hog = "import time; x = bytearray(1800 << 20); x[::4096] = bytes(len(x[::4096])); time.sleep(1000)"
    assert run(control, ["/usr/bin/python3", "-c", hog])[0] == -1
    time.sleep(0.5)
    usage = s.target(USAGE, "m").usage
    assert usage["pids_now"] == 20 and usage["oom_kills"] == 1, usage
    assert w.stop() == 0


def test_memory_without_end():
    """A box that has a next process for each that is killed for its memory is ended."""
    need(MEMORY_CGROUP, "memory controller")
    w = warden()
    s = w.server()
    s.hello()
    control = s.create("m", memory=64 * MIB, disk=1024 * MIB).fd
    crowd = """if 1:
        import os, signal
        def eat():
            if os.fork() == 0:
                x = bytearray(8 << 20)
                x[::4096] = bytes(len(x[::4096]))
                signal.pause()
        for i in range(40):
            eat()
        while os.wait():
            eat()"""
    try:
        run(control, ["/usr/bin/python3", "-c", crowd])
    except (EOFError, OSError):
        pass
    assert s.wait_event(ENDED) == ("m", MEMORY)
    assert s.create("m").err == 0 and w.stop() == 0 and stale_boxes() == []


@tap.slow
def test_memory_nobody_to_kill():
    """A box above its limit in which no process is found that could be killed for it is ended too."""
    need(MEMORY_CGROUP, "memory controller")
    w = warden()
    s = w.server()
    s.hello()
    control = s.create("m", memory=64 * MIB, disk=1024 * MIB).fd
    # Of a process whose first thread has ended the kernel does not tell how large it is.
    headless = """if 1:
        import ctypes, threading, time
        def eat():
            while ") Z " not in open("/proc/self/stat").read():
                time.sleep(0.01)
            x = bytearray(100 << 20)
            x[::4096] = bytes(len(x[::4096]))
            time.sleep(1000)
        threading.Thread(target=eat).start()
        ctypes.CDLL(None).pthread_exit(None)"""
    try:
        run(control, ["/usr/bin/python3", "-c", headless])
    except (EOFError, OSError):
        pass
    assert s.wait_event(ENDED) == ("m", MEMORY)
    assert w.stop() == 0 and stale_boxes() == []


@tap.slow
def test_memory_near_the_limit():
    """Boxes that stay just below their limit do not keep the warden busy."""
    need(MEMORY_CGROUP, "memory controller")
    w = warden()
    s = w.server()
    s.hello()
    hold = "head -c 30M /dev/zero > f; python3 -c 'import time; x = bytearray(45 << 20); x[::4096] = bytes(len(x[::4096])); " \
        "print(1, flush=True); time.sleep(1000)' > out & until [ -s out ]; do sleep 0.1; done"
    for i in range(24):
        assert sh(s.create(f"n{i}", memory=64 * MIB, disk=256 * MIB, timeout_ms=600000).fd, f"cd /home/user; {hold}")[0] == 0
        usage = s.target(USAGE, f"n{i}").usage
        assert 48 * MIB < usage["memory_now"] - usage["disk_used"] < 64 * MIB, usage

    def rests():
        before = cpu_seconds(w.process.pid)
        time.sleep(2)
        return cpu_seconds(w.process.pid) - before < 0.04

    assert wait_for(rests)
    assert w.stop() == 0


def confined(pid):
    """Whether a helper has given up what it does not need: from then on it also ends with the warden."""
    return "asan" in GLOVEBOX or status_of(pid)["Seccomp"] == "2"


def stopped_helper(w, layer):
    """Whoever copies for a snapshot, confined already, and kept from going on: a copy does not take long."""
    def helper():
        for pid in map(int, open(f"/proc/{w.process.pid}/task/{w.process.pid}/children").read().split()):
            try:
                if open(f"/proc/{pid}/comm").read() == "glovebox\n":
                    return pid
            except OSError:
                pass
        return None

    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if pid := helper():
            os.kill(pid, signal.SIGSTOP)
            if os.path.exists(f"{STATE}/layers/{layer}.tmp") and confined(pid):
                return pid
            os.kill(pid, signal.SIGCONT)
        time.sleep(0.001)
    raise AssertionError("nobody copies")


# --- snapshots ------------------------------------------------------------------------------------


def test_snapshot():
    need(FREEZER, "freezer")
    w = warden()
    s = w.server()
    s.hello()
    control = s.create("src", flags=ROOT_FLAG).fd
    assert sh(control, """
        cd /home/user && echo one > a && ln a b && ln -s /etc/passwd link && mkdir -p d/e && echo x > d/e/f
        chmod 0640 a && chmod 0700 d && truncate -s 100M sparse && mkfifo pipe && printf 'q' > "n
l"
        echo tmp > /tmp/t; echo vt > /var/tmp/v; chmod 0750 /home/user
        python3 -c 'import os, socket; os.setxattr("a", "user.k", b"v"); socket.socket(1).bind("sock")'
    """)[0] == 0
    rm = "rm /etc/hosts && rm -r /etc/ssl && mkdir /etc/ssl && echo r > /root/r && mkdir -p /usr/local/x && " \
        "echo u > /usr/local/x/u && rm /usr/bin/yes && chown 33:44 /usr/local/x/u && cp /bin/true /suid && " \
        "chmod 4755 /suid && touch /run/gone && mkdir /dev/shm/d"
    assert sh(control, rm, uid=0) == (0, "")
    r = s.snapshot("src", "snap1")
    assert r.err == 0 and r.box.state == RUNNING, (r.err, r.msg)
    assert sh(control, "echo later > /home/user/later; echo alive") == (0, "alive\n"), "it goes on"
    layer = STATE + "/layers/snap1"
    assert sorted(os.listdir(layer)) == ["root", "usr"]
    st = os.lstat(layer + "/root/home/user/a")
    assert (st.st_uid, st.st_gid, st.st_mode & 0o7777, st.st_nlink) == (1000, 1000, 0o640, 2), st
    assert os.getxattr(layer + "/root/home/user/a", "user.k") == b"v"
    assert os.lstat(layer + "/root/home/user/sparse").st_blocks < 1000
    assert os.lstat(layer + "/usr/local/x/u").st_uid == 33
    assert os.lstat(layer + "/root/suid").st_mode & 0o7777 == 0o755, "set-uid bits are not kept"
    assert not os.path.lexists(layer + "/root/home/user/pipe")
    assert not os.path.lexists(layer + "/root/home/user/sock")
    for gone in ("dev", "proc", "sys", "run", "usr"):
        assert not os.path.lexists(f"{layer}/root/{gone}"), gone
    for dir, _, files in os.walk(layer):
        for name in files:
            attrs = os.listxattr(os.path.join(dir, name), follow_symlinks=False)
            assert all(a.startswith("user.") for a in attrs), (name, attrs)

    copy = s.create("copy", layers=["snap1"], flags=ROOT_FLAG)
    assert copy.err == 0, (copy.err, copy.where, copy.msg)
    code, out = sh(copy.fd, """
        cd /home/user && cat a b link | head -2 && stat -c '%a %U %h' a && stat -c '%a %U' . && cat d/e/f /tmp/t /var/tmp/v
        ls /etc/hosts /etc/ssl /usr/bin/yes later /run/gone 2>&1 | sed 's/.*: //' ; ls -A /etc/ssl | wc -l
        cat /usr/local/x/u; stat -c %u /usr/local/x/u; getfattr -n user.k --only-values a 2>/dev/null || echo v
        echo new > a && cat b; touch /home/user/w && echo w""")
    expected = ["one", "one", "640 user 2", "750 user", "x", "tmp", "vt"]
    assert out.split("\n")[:7] == expected, out
    assert out.count("No such file or directory") == 4, out
    assert "\nu\n33\nv\n" in out, out
    assert sh(copy.fd, "cat /root/r; echo r2 > /root/r", uid=0) == (0, "r\n")
    # A snapshot of that, with two layers.
    assert s.snapshot("copy", "snap2").err == 0
    two = s.create("two", layers=["snap1", "snap2"], flags=ROOT_FLAG)
    assert two.err == 0 and sh(two.fd, "cat /root/r /home/user/a /home/user/d/e/f", uid=0) == (0, "r2\nnew\nx\n")
    assert open(layer + "/root/root/r").read() == "r\n", "the lower layer is as it was"
    # Names and use.
    assert s.snapshot("src", "snap1").err == errno.EEXIST
    assert s.snapshot("none", "snapx").err == errno.ENOENT
    assert s.create("x", layers=["nosuch"]).err == errno.ENOENT
    drop = lambda name: s.ask(DROP_LAYER, struct.pack("<32s", name.encode())).err
    assert drop("snap1") == errno.EBUSY and drop("nosuch") == errno.ENOENT
    for id in ("copy", "two"):
        assert s.target(KILL, id).err == 0
    assert wait_for(lambda: drop("snap1") == 0) and drop("snap2") == 0
    assert wait_for(lambda: os.listdir(STATE + "/layers") == []), os.listdir(STATE + "/layers")
    # Of a paused box: it stays so.
    assert s.target(PAUSE, "src").err == 0
    r = s.snapshot("src", "snap3")
    assert r.err == 0 and r.box.state == IS_PAUSED
    assert s.deadline(RESUME, "src", 60000).err == 0
    assert sh(control, "cat /home/user/later") == (0, "later\n")
    assert drop("snap3") == 0
    assert w.stop() == 0 and stale_boxes() == []


@tap.slow
def test_snapshot_limits():
    need(FREEZER, "freezer")
    w = warden()
    s = w.server()
    s.hello()
    control = s.create("deep").fd
    deep = "import os\nfor i in range(1200):\n os.mkdir('d'); os.chdir('d')"
    assert run(control, ["/usr/bin/env", "-C", "/home/user", "python3", "-c", deep])[0] == 0
    r = s.snapshot("deep", "snapd")
    assert r.err == errno.ELOOP, (r.err, r.msg)
    assert sh(control, "echo ok") == (0, "ok\n"), "the box goes on"
    assert wait_for(lambda: os.listdir(STATE + "/layers") == []), os.listdir(STATE + "/layers")
    # Killed in the middle: nothing is left of it.
    control = s.create("big").fd
    assert sh(control, "head -c 1500M /dev/zero > /home/user/f")[0] == 0
    number = s.send(SNAPSHOT, struct.pack("<32s32s", b"big", b"snapb"))
    # Whoever copies is nobody outside the box, and can do nothing but files.
    helper = stopped_helper(w, "snapb")
    told = status_of(helper)
    assert all(int(uid) >= 524288 for uid in told["Uid"].split()[:3] + told["Gid"].split()[:3]), told
    assert told["NoNewPrivs"] == "1" and int(told["CapEff"], 16) == 0xce, told
    held = [os.readlink(f) for f in glob.glob(f"/proc/{helper}/fd/*") if os.path.islink(f)]
    assert len(held) < 32 and not any(re.match("socket|anon_inode", h) for h in held), held
    assert s.target(KILL, "big").err == 0
    r = [e for e in s.events if e[0] == REPLY and e[1] == number]
    assert len(r) == 1 and Reply(r[0][2], []).err == errno.ECANCELED
    assert wait_for(lambda: os.listdir(STATE + "/layers") == []), os.listdir(STATE + "/layers")
    assert w.stop() == 0 and stale_boxes() == []


@contextlib.contextmanager
def small_disk(mib):
    """The state on a file system of its own."""
    image = TMP + "/disk"
    with open(image, "wb") as f:
        f.truncate(mib * MIB)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    os.makedirs(STATE, exist_ok=True)
    if subprocess.run(["mount", "-o", "loop", image, STATE], capture_output=True).returncode:
        raise tap.Skip("no loop devices")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", STATE], check=True)
        os.unlink(image)


def test_snapshot_room():
    """What a snapshot leaves free on the state's disk it leaves free, however many are made at once and of whatever."""
    need(FREEZER, "freezer")
    with small_disk(220):
        w = warden()
        s = w.server()
        s.hello()
        # Directories take no room in a box, and a block each on a disk.
        control = s.create("dirs").fd
        dirs = "import os\nfor i in range(40000):\n os.mkdir(f'/home/user/{i}')"
        assert run(control, ["/usr/bin/python3", "-c", dirs])[0] == 0
        assert s.snapshot("dirs", "snapd").err == errno.ENOSPC
        assert os.listdir(STATE + "/layers") == []
        # There is room for either of them.
        for id in ("a", "b"):
            assert sh(s.create(id).fd, "head -c 70M /dev/urandom > /home/user/f")[0] == 0
        numbers = [s.send(SNAPSHOT, struct.pack("<32s32s", id, b"snap" + id)) for id in (b"a", b"b")]
        errors = [s.wait_reply(n).err for n in numbers]
        assert errors.count(0) == 1 and set(errors) & {errno.EAGAIN, errno.ENOSPC}, errors
        made = "snap" + "ab"[errors.index(0)]
        assert wait_for(lambda: os.listdir(STATE + "/layers") == [made]), os.listdir(STATE + "/layers")
        assert os.statvfs(STATE).f_bavail * os.statvfs(STATE).f_frsize >= 48 * MIB
        assert s.ask(DROP_LAYER, struct.pack("<32s", made.encode())).err == 0
        assert wait_for(lambda: os.listdir(STATE + "/layers") == [])
        assert s.snapshot("b", "snapb").err == 0
        assert w.stop() == 0


@contextlib.contextmanager
def slow_disk(pid):
    """Whoever waits for what lies in a directory to be on the disk waits long."""
    if not shutil.which("strace"):
        raise tap.Skip("no strace")
    tracer = subprocess.Popen(["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync",
                               "-e", "inject=fsync:delay_enter=3000000", "-p", str(pid)])
    try:
        assert wait_for(lambda: status_of(pid)["TracerPid"] != "0" or tracer.poll() is not None)
        if tracer.poll() is not None:
            raise tap.Skip("nobody can be traced")
        yield
    finally:
        tracer.terminate()
        tracer.wait()


@tap.slow
def test_snapshot_disk():
    """The warden waits for no disk: it answers others before the snapshot is there for good."""
    need(FREEZER, "freezer")
    w = warden()
    s = w.server()
    s.hello()
    assert sh(s.create("a").fd, "echo a > /home/user/f")[0] == 0
    with slow_disk(w.process.pid):
        number = s.send(SNAPSHOT, struct.pack("<32s32s", b"a", b"snapa"))
        assert wait_for(lambda: os.path.exists(STATE + "/layers/snapa"))
        assert s.target(USAGE, "a").err == 0
        assert not [e for e in s.events if e[:2] == (REPLY, number)], "it was answered first"
        assert s.wait_reply(number).err == 0
        # Nobody waits for it any more: it is not kept.
        number = s.send(SNAPSHOT, struct.pack("<32s32s", b"a", b"snapb"))
        assert wait_for(lambda: os.path.exists(STATE + "/layers/snapb"))
        s, _, _ = restart(w, s)
        assert wait_for(lambda: os.listdir(STATE + "/layers") == ["snapa"]), os.listdir(STATE + "/layers")
    assert w.stop() == 0 and stale_boxes() == []


@tap.slow
def test_next_layer():
    w = warden()
    s = w.server()
    s.hello()
    layers = STATE + "/layers/"
    for i in range(2):
        open(f"{TMP}/file{i}", "w").close()
    ask = lambda after: s.ask(NEXT_LAYER, struct.pack("<32s", c_id(after)))

    def walk(limit=100):
        found, name = [], ""
        while (r := ask(name)).err == 0 and len(found) < limit:
            assert r.fd is None and r.box.id == "", r
            found.append(name := r.layer)
        assert r.err == errno.ENOENT and r.layer == "", (r.err, r.layer)
        return found

    assert walk() == []
    names = ["0", "9z", "a", "a0", "aa", "l" * 31, "z9"]
    # Nothing else that lies there is named: halves, trash, and what no message could say.
    others = [".trash-77", "half.tmp", "Caps", "sp ace", "l" * 32, "new\nline", "\xe4"]
    try:
        for name in reversed(names + others):
            os.mkdir(layers + name)
        assert walk() == names, walk()
        assert ask("a1").layer == "aa" and ask("zzz").err == errno.ENOENT
        os.rmdir(layers + "a0")
        assert walk() == [n for n in names if n != "a0"]
        # No request reads more than so much, and none takes long.
        for i in range(65536):  # links, which are quick to make; a file has not so many
            os.link(f"{TMP}/file{i % 2}", f"{layers}m{i}")
        began = cpu_seconds(w.process.pid)
        assert ask("").err == errno.EOVERFLOW
        assert cpu_seconds(w.process.pid) - began < 1, "it took long"
    finally:
        subprocess.run(["find", layers, "-mindepth", "1", "-delete"], check=True)
    assert walk() == []
    assert w.stop() == 0


# --- deaths ---------------------------------------------------------------------------------------


def ask_until(s, id, **more):
    """A context; a zygote takes its time to load."""
    deadline = time.monotonic() + 60
    while True:
        r = s.context(id, **more)
        if r.err != errno.EAGAIN or time.monotonic() > deadline:
            return r
        time.sleep(0.1)


def zygotes(warden_pid):
    """Process ids, by whether they have packages: under their keepers."""
    found = {}
    for keeper in open(f"/proc/{warden_pid}/task/{warden_pid}/children").read().split():
        try:
            for pid in open(f"/proc/{keeper}/task/{keeper}/children").read().split():
                words = open(f"/proc/{pid}/cmdline").read().split("\0")
                inner = open(f"/proc/{pid}/status").read().split("NSpid:")[1].split("\n")[0].split()
                if any(word.endswith("/zygote.py") for word in words) and len(inner) == 1:
                    found["json" in words] = int(pid)
        except OSError:
            pass
    return found


def test_no_zygote():
    """Without one, whoever asks is told to start an interpreter in the box."""
    w = warden()
    s = w.server()
    s.hello()
    box = s.create("one")
    assert box.err == 0
    assert s.context("one").err == errno.EOPNOTSUPP
    assert s.context("two").err == errno.ENOENT
    assert zygotes(w.process.pid) == {}
    assert w.stop() == 0


def test_contexts():
    w = warden("--interpreter-preload", "json", zygote=True)
    s = w.server()
    s.hello()
    box = s.create("one")
    assert ask_until(s, "one").err == 0
    assert cell(box.fd, "x = 6 * 7\nprint(x)") == "42\n"
    assert ask_until(s, "one", name="two", zygote=SCIENCE).err == 0
    assert cell(box.fd, "import os; print(os.getuid(), 'x' in globals())", context="two") == "1000 False\n"
    # A name that is taken: the second one finds nobody who wants it, and ends.
    assert s.context("one").err == 0
    assert cell(box.fd, "print(x)") == "42\n"
    # A box that is paused takes none, one from a snapshot has none.
    if s.target(PAUSE, "one").err == 0:
        assert s.context("one", name="three").err == errno.EBUSY
        assert s.deadline(RESUME, "one", 60000).err == 0
        assert s.snapshot("one", "layer").err == 0
        assert s.create("three", layers=["layer"]).err == 0
        assert s.context("three").err == errno.EOPNOTSUPP
    assert s.target(KILL, "one").err == 0
    assert s.context("one").err == errno.ENOENT
    assert w.stop() == 0 and stale_boxes() == []


def test_zygote_dies():
    """Contexts go on without it, the box ends as always, and there is another one."""
    w = warden("--interpreter-preload", "json", zygote=True)
    s = w.server()
    s.hello()
    box = s.create("one")
    assert ask_until(s, "one").err == 0
    assert cell(box.fd, "x = 1\nprint(x)") == "1\n"
    before = zygotes(w.process.pid)
    # Asked for while the warden stands still: when it goes on, there is no other one yet.
    os.kill(w.process.pid, signal.SIGSTOP)
    os.kill(before[False], signal.SIGKILL)
    assert wait_for(lambda: not alive(before[False]))
    asked = [s.send_context("one", name=f"two{i}") for i in range(20)]
    os.kill(w.process.pid, signal.SIGCONT)
    errors = {s.wait_reply(number).err for number in asked}
    assert errno.EAGAIN in errors, errors
    assert cell(box.fd, "print(x + 1)") == "2\n"
    assert ask_until(s, "one", name="three").err == 0
    assert cell(box.fd, "print(3)", context="three") == "3\n"
    assert zygotes(w.process.pid)[False] != before[False]
    assert s.target(KILL, "one").err == 0
    assert wait_for(lambda: agents(w.process.pid) == []), agents(w.process.pid)
    assert w.stop() == 0 and stale_boxes() == []


@tap.slow
def test_zygote_does_not_read():
    """One that stands still is asked until its socket is full, and nobody waits for it."""
    w = warden("--interpreter-preload", "json", zygote=True)
    s = w.server()
    s.hello()
    s.create("one")
    assert ask_until(s, "one").err == 0
    stopped = zygotes(w.process.pid)[False]
    os.kill(stopped, signal.SIGSTOP)
    began, errors = time.monotonic(), set()
    for i in range(600):
        errors.add(s.context("one", name=f"c{i}").err)
    assert errors == {0, errno.EAGAIN}, errors
    assert time.monotonic() - began < 30  # a twentieth of a second each, were it waited for
    assert s.create("two").err == 0 and s.target(KILL, "two").err == 0
    os.kill(stopped, signal.SIGKILL)
    assert ask_until(s, "one", name="last").err == 0
    assert w.stop() == 0 and stale_boxes() == []


def limit_numbers(pid, soft):
    """As the process's own user, who may without any capability."""
    status = open(f"/proc/{pid}/status").read()
    uid, gid = (int(re.search(rf"^{word}:\t(\d+)", status, re.M)[1]) for word in ("Uid", "Gid"))
    subprocess.run(["prlimit", f"--pid={pid}", f"--nofile={soft}:"], user=uid, group=gid, extra_groups=[], check=True)


def test_zygote_without_numbers():
    """One that has no descriptor free for an order says so, and lives on."""
    w = warden("--interpreter-preload", "json", zygote=True)
    s = w.server()
    s.hello()
    box = s.create("one")
    assert ask_until(s, "one").err == 0
    before = zygotes(w.process.pid)[False]
    limit_numbers(before, "2")  # what it polls is not more than that
    assert s.context("one", name="two").err == 0
    assert wait_for(lambda: os.strerror(errno.EMFILE) in open(LOG).read())
    limit_numbers(before, "1024")
    assert ask_until(s, "one", name="three").err == 0
    assert cell(box.fd, "print(3)", context="three") == "3\n"
    assert zygotes(w.process.pid)[False] == before
    assert w.stop() == 0 and stale_boxes() == []


def with_own_etc():
    """A program that is glovebox with a copy of /etc in the place of the host's, and a place for roots made from it."""
    roots = "/var/lib/glovebox/roots"
    subprocess.run(["cp", "-aT", "/etc", TMP + "/etc"], check=True)
    subprocess.run(["mkdir", "-p", TMP + "/roots", roots], check=True)
    with open(TMP + "/glovebox", "w") as f:
        f.write("#!/bin/sh\nexec unshare --mount "
                f"sh -c 'mount --bind {TMP}/etc /etc && mount --bind {TMP}/roots {roots} && exec \"$@\"' sh {GLOVEBOX} \"$@\"\n")
    os.chmod(TMP + "/glovebox", 0o755)
    return TMP + "/glovebox"


def test_zygote_of_another_root():
    """What it has loaded is not what is there now: another is loaded, and those of the old one go on."""
    w = Warden(with_own_etc(), STUB, STATE, "--pool-size", "0", "--interpreter-preload", "json", stderr=LOG)
    s = w.server()
    s.hello()
    box = s.create("one")
    assert ask_until(s, "one").err == 0
    assert cell(box.fd, "x = 1\nprint(x)") == "1\n"
    before = zygotes(w.process.pid)[False]
    os.utime(TMP + "/etc")  # as a package that was installed would
    other = s.create("two")
    assert other.err == 0
    assert ask_until(s, "two").err == 0
    assert cell(other.fd, "print(2)") == "2\n"
    assert zygotes(w.process.pid)[False] != before
    assert s.context("one", name="new").err == errno.EAGAIN  # that box stands on the old root
    assert cell(box.fd, "print(x + 1)") == "2\n"
    assert s.target(KILL, "one").err == 0
    assert wait_for(lambda: not alive(before)), "the old one did not go with its last context"
    assert w.stop() == 0 and stale_boxes() == []


def test_many_roots():
    """However many states of the host's /etc boxes stand on, there is one for the next box."""
    w = Warden(with_own_etc(), STUB, STATE, "--pool-size", "0", "--no-zygote", stderr=LOG)
    s = w.server()
    s.hello()
    said = lambda: open(LOG).read().count("too many states")
    number = itertools.count()

    def create_on_another():
        i = next(number)
        open(f"{TMP}/etc/new{i}", "w").close()
        box = s.create(f"box{i}")
        assert box.err == 0 and sh(box.fd, "echo fine") == (0, "fine\n"), (i, box.msg)

    for _ in range(20):
        create_on_another()
    assert said() == 1
    # When nobody stands on one of them any more, there is room for one again.
    assert s.target(KILL, "box3").err == 0
    assert wait_for(lambda: create_on_another() or said() == 2)
    assert w.stop() == 0 and stale_boxes() == []


def restart(w, s):
    os.kill(s.pid, signal.SIGKILL)
    s.close()
    s = w.server()
    return s, *s.hello()


@tap.slow
def test_server_dies():
    need(FREEZER, "freezer")
    w = warden()
    s = w.server()
    s.hello()
    for i in range(20):
        assert s.create(f"box{i}").err == 0
    control = s.create("talk").fd
    loop = "(while :; do echo x >> /tmp/beat; sleep 0.02; done) >/dev/null 2>&1 & until [ -s /tmp/beat ]; do sleep 0.01; done; echo started"
    assert sh(control, loop) == (0, "started\n")
    assert s.target(PAUSE, "box3").err == 0
    # A box that was made anew under its id lives: of the end of the old one nobody is told.
    assert s.target(KILL, "box5").err == 0 and s.create("box5").err == 0
    s, boxes, ended = restart(w, s)
    assert len(boxes) == 21 and ended == {}, (boxes, ended)
    assert boxes["box3"].state == IS_PAUSED and boxes["box4"].state == RUNNING
    goes_on(boxes["talk"].fd)
    assert s.deadline(RESUME, "box3", 60000).err == 0
    # A deadline holds while there is no server, and the next one is told.
    assert s.create("alone", timeout_ms=3000).err == 0
    os.kill(w.process.pid, signal.SIGSTOP)  # so that no new server comes too soon
    os.kill(s.pid, signal.SIGKILL)
    time.sleep(3.2)
    os.kill(w.process.pid, signal.SIGCONT)
    s.close()
    s = w.server()
    boxes, ended = s.hello()
    assert "alone" not in boxes and ended["alone"] == TIMEOUT, ended
    # SIGHUP: another server, the same boxes.
    old = s.pid
    w.process.send_signal(signal.SIGHUP)
    s.close()
    s = w.server()
    boxes, _ = s.hello()
    assert s.pid != old and "talk" in boxes and sh(boxes["talk"].fd, "echo hi") == (0, "hi\n")
    assert w.stop() == 0 and stale_boxes() == []


def test_hang_up_at_once():
    """SIGHUP before the first server has said a word: there is another one, and the service comes up."""
    w = warden()
    first = w.server()
    w.process.send_signal(signal.SIGHUP)
    s = w.server()
    assert s.pid != first.pid and s.hello() == ({}, {}) and s.create("a").err == 0
    assert w.stop() == 0


def test_newer_server():
    """SIGHUP finds a server that speaks otherwise: the one before goes on, and so do the boxes."""
    with tempfile.TemporaryDirectory() as directory:
        program, next_one = f"{directory}/server", f"{directory}/next"
        os.chmod(directory, 0o755)
        for path in (program, next_one):
            shutil.copy(STUB, path)
        first = os.stat(program).st_ino
        w = Warden(GLOVEBOX, program, STATE, "--pool-size", "0", "--no-zygote", stderr=LOG)
        s = w.server()
        s.hello()
        assert s.create("a").err == 0
        os.rename(next_one, program)
        w.process.send_signal(signal.SIGHUP)
        s = w.server()
        assert os.stat(f"/proc/{s.pid}/exe").st_ino != first
        s.send(HELLO, struct.pack("<II", VERSION + 1, 0))
        s = w.server()
        assert os.stat(f"/proc/{s.pid}/exe").st_ino == first
        assert list(s.hello()[0]) == ["a"]
        assert w.stop() == 0 and stale_boxes() == []


def test_server_dies_waiting():
    """A server that dies while it waits: what it asked for does not linger."""
    w = warden()
    s = w.server()
    s.hello()
    for i in range(30):
        s.send(CREATE, create_payload(f"w{i}"))
    s, boxes, ended = restart(w, s)
    assert wait_for(lambda: len(agents(w.process.pid)) == len(boxes)), (agents(w.process.pid), boxes)
    for id in boxes:
        assert s.target(KILL, id).err == 0
    assert wait_for(lambda: not agents(w.process.pid))
    assert w.stop() == 0 and stale_boxes() == []


def test_warden_dies():
    need(FREEZER, "freezer")
    w = warden(pool=2)
    s = w.server()
    s.hello()
    for i in range(10):
        r = s.create(f"box{i}")
        assert r.err == 0 and sh(r.fd, "true")[0] == 0
    assert s.target(PAUSE, "box1").err == 0
    control = s.create("big").fd
    assert sh(control, "head -c 500M /dev/zero > /home/user/f")[0] == 0
    s.send(SNAPSHOT, struct.pack("<32s32s", b"big", b"snapk"))
    helper = stopped_helper(w, "snapk")  # half done it stays
    # Even a server that wants to live on and holds every control socket.
    assert s.order("outlive") == "0\n"
    pids = agents(w.process.pid)
    assert len(pids) >= 11
    w.kill()
    pids.append(helper)
    assert wait_for(lambda: not any(map(alive, pids))), [what_is(p) for p in pids if alive(p)]
    os.kill(s.pid, signal.SIGKILL)
    w = warden()
    s = w.server()
    assert s.hello()[0] == {}
    assert wait_for(lambda: os.listdir(STATE + "/layers") == []), os.listdir(STATE + "/layers")
    assert stale_boxes() == [] and our_mounts() == [], our_mounts()
    assert w.stop() == 0


def random_requests(s, rng, until):
    """Asks for this and that without waiting for answers; the boxes that were asked for."""
    live, asked, n = set(), set(), 0
    s.sock.setblocking(False)
    while time.monotonic() < until:
        try:
            what = rng.choice("cccckkpprssd")
            n += 1
            some = rng.choice(sorted(live)) if live else "none"
            if what == "c" and len(live) < 12:
                s.send(CREATE, create_payload(f"r{n}", flags=rng.choice((0, ROOT_FLAG))))
                live.add(f"r{n}")
                asked.add(f"r{n}")
            elif what == "k":
                s.send(KILL, struct.pack("<32s", c_id(some)))
                live.discard(some)
            elif what == "p":
                s.send(PAUSE, struct.pack("<32s", c_id(some)))
            elif what == "r":
                s.send(RESUME, struct.pack("<32sQ", c_id(some), 60000))
            elif what == "s":
                s.send(SNAPSHOT, struct.pack("<32s32s", c_id(some), f"l{n}".encode()))
            elif what == "d":
                s.send(DEADLINE, struct.pack("<32sQ", c_id(some), 60000))
            time.sleep(rng.random() * 0.004)
            while True:
                for fd in s.recv()[3]:
                    os.close(fd)
        except BlockingIOError:
            pass
    s.sock.settimeout(20)
    return asked


@tap.slow
def test_random_kills():
    rng = random.Random(7)
    for i in range(KILLS):
        w = warden(pool=2)
        s = w.server()
        s.hello()
        asked = random_requests(s, rng, time.monotonic() + rng.random() * 0.3)
        pids = agents(w.process.pid)
        victim = rng.choice(("warden", "server", "agent"))
        if victim == "agent" and pids:
            try:
                os.kill(rng.choice(pids), signal.SIGKILL)
            except ProcessLookupError:
                pass
            assert s.create("after").err == 0, i
        if victim == "server":
            s, boxes, _ = restart(w, s)
            assert set(boxes) <= asked, (i, boxes, asked)
            assert s.create("after").err == 0, i
        if victim == "warden":
            w.kill()
            assert wait_for(lambda: not any(map(alive, pids))), (i, [what_is(p) for p in pids if alive(p)])
        else:
            assert w.stop() == 0, i
        s.close()
    w = warden()
    s = w.server()
    s.hello()
    layers = STATE + "/layers"
    assert wait_for(lambda: all(re.fullmatch("l[0-9]+", name) for name in os.listdir(layers))), os.listdir(layers)
    assert stale_boxes() == []
    assert w.stop() == 0


def test_second_service():
    w = warden()
    w.server().hello()
    second = subprocess.run([GLOVEBOX, "serve", "--listen", "127.0.0.1:0", "--state", STATE, "--server", STUB,
                             "--client", "/bin/true"], capture_output=True, text=True, timeout=PATIENCE)
    assert second.returncode == 1 and "running already" in second.stderr, second
    assert w.stop() == 0


def test_refused():
    """A server that says that it will not run like this is not started again."""
    w = warden()
    s = w.server()
    s.conn.send(b"refuse")
    assert w.process.wait(PATIENCE) == 1
    # One that does not start at all neither.
    r = subprocess.run([GLOVEBOX, "serve", "--listen", "127.0.0.1:0", "--state", STATE, "--server", "/bin/false",
                        "--client", "/bin/true"], capture_output=True, text=True, timeout=PATIENCE)
    assert r.returncode == 1 and "did not start" in r.stderr, r


def test_notify():
    path = TMP + "/notify"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listener.bind(path)
    listener.settimeout(PATIENCE)
    w = Warden(GLOVEBOX, STUB, STATE, env={**os.environ, "NOTIFY_SOCKET": path}, stderr=LOG)
    s = w.server()
    s.hello()
    assert listener.recv(100) == b"READY=1"
    assert w.stop() == 0 and listener.recv(100) == b"STOPPING=1"


# --- a server that was taken over (AP-18) ----------------------------------------------------------


def test_what_it_is():
    w = warden()
    s = w.server()
    s.hello()
    open(STATE + "/local.key", "w").close()
    os.chmod(STATE + "/local.key", 0o600)
    told = dict(line.split(":\t", 1) for line in s.order("probe " + STATE).splitlines())
    assert set(told["Uid"].split()) == {told["Uid"].split()[0]} and told["Uid"].split()[0] != "0", told
    assert told["Groups"].strip() == "" and told["NoNewPrivs"] == "1", told
    for set_name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(told[set_name], 16) == 0, told
    assert told["Fds"] == "8", told  # 0 to 5, the language files' directory, and the one to this test
    for what in ("layers", "make", "key", "list", "escape", "run", "mem", "environ", "fds", "ptrace", "kill",
                 "root", "mount", "memory", "cgroup"):
        assert int(told[what]) in (errno.EACCES, errno.EPERM, errno.ENOENT), (what, told)
    assert told["db"] == "0", told
    os.unlink(STATE + "/db/stub")
    assert s.target(USAGE, "none").err == errno.ENOENT, "the warden goes on"
    assert w.stop() == 0


def test_limits_hold():
    w = warden("--limits-sandboxes", "3", "--limits-memory", "1G", "--limits-disk", "3G", "--limits-files",
               "300000", "--limits-pids", "600", "--limits-cpus", "3")
    s = w.server()
    s.hello()
    for wish in ({"memory": 1024 * MIB + 1}, {"memory": 0}, {"memory": 1 << 63}, {"disk": 3072 * MIB + 1},
                 {"disk": 0}, {"files": 0}, {"files": 300001}, {"pids": 601}, {"cpu": 3001}, {"cpu": 0}, {"template": 0}, {"template": 3}, {"flags": 8}, {"flags": SCRIPT_FLAG | ROOT_FLAG},
                 {"timeout_ms": 1 << 63}):
        r = s.create("bad", **wish)
        assert r.err == errno.EINVAL and r.fd is None, (wish, r.err)
    for i in range(3):
        assert s.create(f"b{i}", pids=100).err == 0
    for i in range(2000):
        s.send(CREATE, create_payload(f"over{i}"), request=10_000 + i)
        if i % 50 == 49:
            for _ in range(50):
                type, number, data, fds = s.recv()
                assert type == REPLY and Reply(data, fds).err == errno.EUSERS
    assert len(agents(w.process.pid)) == 3
    w.stop()
    w = warden("--sandbox-root", "false")
    s = w.server()
    s.hello()
    assert s.create("r", flags=ROOT_FLAG).err == errno.EINVAL
    w.stop()


def hostile_messages():
    good = create_payload("h")
    target = lambda id: struct.pack("<32s", id)
    head = lambda type, n, request=1: struct.pack("<IIQ", type, n, request)
    message = lambda type, payload: head(type, 16 + len(payload)) + payload
    rng = random.Random(3)
    yield "empty head", b"\0"
    yield "half a head", b"\1\0\0\0"
    yield "unknown type", message(19, b"")
    yield "type without its payload", message(NEXT_LAYER, b"")
    yield "type of the other direction", message(ENDED, bytes(168))
    yield "short", message(CREATE, good[:-1])
    yield "long", message(CREATE, good + b"\0")
    yield "length that lies", head(CREATE, 16) + good
    yield "huge", bytes(60000)
    yield "no hello twice", message(HELLO, struct.pack("<II", VERSION, 0))
    yield "unended id", message(KILL, b"a" * 32)
    yield "empty id", message(KILL, target(b""))
    yield "id with a path", message(KILL, target(b"../../etc"))
    yield "id with more behind its end", message(KILL, b"abc\0def" + bytes(25))
    yield "id in capitals", message(KILL, target(b"ABC"))
    yield "layer with a path", message(CREATE, create_payload("h", layers=[b"../db"]))
    yield "layer with a slash", message(DROP_LAYER, target(b"a/b"))
    yield "layer .tmp", message(DROP_LAYER, target(b"a.tmp"))
    yield "after a path", message(NEXT_LAYER, target(b"../db"))
    yield "after capitals", message(NEXT_LAYER, target(b"A"))
    yield "after nothing, with more behind its end", message(NEXT_LAYER, b"\0a" + bytes(30))
    yield "after what has no end", message(NEXT_LAYER, b"a" * 32)
    yield "nine layers", message(CREATE, create_payload("h", n_layers=9))
    yield "4 billion layers", message(CREATE, create_payload("h", n_layers=0xffffffff))
    yield "layer that is not counted", message(CREATE, create_payload("h", layers=["a"], n_layers=0))
    yield "reserved field", message(CREATE, good[:84] + b"\1" + good[85:])
    for i in range(20):
        yield f"random {i}", rng.randbytes(rng.randrange(1, 400))
    for i in range(20):
        n = rng.randrange(0, 400)
        yield f"random of type {i % 16}", message(i % 16, rng.randbytes(n))
    yield "a box without a name gets network", message(NET, target(b""))
    yield "network, with more behind the name's end", message(NET, b"keep\0a" + bytes(26))
    for family in (0, 1, 2, 5, 10, 0xffffffff):
        yield f"a socket of family {family}", message(SOCKET, struct.pack("<32sII", b"keep", family, 0))
    yield "a socket with a reserved field", message(SOCKET, struct.pack("<32sII", b"keep", 4, 1))
    yield "a socket to egress for the warden", message(EGRESS, bytes(8))
    yield "a meeting with a reserved field", message(MEET, b"\1" + bytes(7))


@tap.slow
def test_hostile_messages():
    for what, data in hostile_messages():
        w = warden()
        s = w.server()
        s.hello()
        control = s.create("keep").fd
        s.send_raw(data)
        assert s.gone(), f"{what}: the server lives on"
        s = w.server()
        boxes, _ = s.hello()
        assert list(boxes) == ["keep"], (what, boxes)
        assert sh(control, "echo hi") == (0, "hi\n"), what
        assert w.stop() == 0, what
    assert stale_boxes() == []


def test_hostile_descriptors():
    w = warden()
    s = w.server()
    s.hello()
    before = n_fds(w.process.pid)
    s.send(USAGE, struct.pack("<32s", b"keep"), fds=[0, 1])
    assert s.gone(), "it took descriptors"
    s = w.server()
    s.hello()
    assert n_fds(w.process.pid) <= before
    # Something else before the greeting, or the greeting twice.
    s.send(HELLO, struct.pack("<II", VERSION, 0))
    assert s.gone()
    s = w.server()
    s.send(USAGE, struct.pack("<32s", b"keep"))
    assert s.gone()
    assert w.stop() == 0


def test_reads_nothing():
    """A server that sends and never reads does not hold up the warden, nor fill it."""
    w = warden()
    s = w.server()
    s.hello()
    s.create("short", timeout_ms=800)
    s.sock.setblocking(False)
    sent = 0
    try:
        for i in range(100000):
            s.send(USAGE, struct.pack("<32s", b"short"))
            sent += 1
    except BlockingIOError:
        pass
    rss = rss_kib(w.process.pid)
    assert wait_for(lambda: agents(w.process.pid) == []), "the deadline did not hold"
    assert rss < 64 * 1024, rss
    s.sock.setblocking(True)
    s.sock.settimeout(PATIENCE)
    replies = 0
    while replies < sent:
        replies += s.recv()[0] == REPLY
    assert w.stop() == 0


# --- leaks ----------------------------------------------------------------------------------------


@tap.slow
def test_cycles():
    w = warden(pool=2)
    s = w.server()
    s.hello()

    def cycle(i):
        r = s.create(f"c{i}", flags=ROOT_FLAG if i % 2 else 0)
        assert r.err == 0, (i, r.err, r.where, r.msg)
        if i % 50 == 0:
            assert sh(r.fd, "echo hi") == (0, "hi\n")
        os.close(r.fd)
        assert s.target(KILL, f"c{i}").err == 0

    def settled():
        """The stub, the pool and nobody else: how many descriptors then."""
        children = lambda: open(f"/proc/{w.process.pid}/task/{w.process.pid}/children").read().split()
        assert wait_for(lambda: len(agents(w.process.pid)) == 2 and len(children()) == 3), children()
        return same_for(0.5, lambda: n_fds(w.process.pid))

    for i in range(100):
        cycle(i)
    fds, rss = settled(), rss_kib(w.process.pid)
    for i in range(CYCLES):
        cycle(100 + i)
    after_fds, after_rss = settled(), rss_kib(w.process.pid)
    print(f"# descriptors {fds} -> {after_fds}, memory {rss} -> {after_rss} KiB")
    assert after_fds <= fds + 12 and after_rss <= rss + 512
    assert our_mounts() == [], our_mounts()
    assert w.stop() == 0 and stale_boxes() == []


# --- network --------------------------------------------------------------------------------------


def egresses(warden_pid):
    return children_named(warden_pid, "glovebox-egress")


def egress_of(warden_pid):
    """The one there is. NET is answered when it has been told of the doors, which may be before it is executed."""
    assert wait_for(lambda: egresses(warden_pid)), "there is no egress"
    pids = egresses(warden_pid)
    assert len(pids) == 1, pids
    return pids[0]


class Web:
    """A server on a loopback address of ours that counts who came; egress lets boxes there when the operator opens it."""

    PRIVATE = ("--egress-private", "127.0.0.9/32")

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.9", 0))
        self.at = "127.0.0.9:%d" % self.listener.getsockname()[1]
        self.seen = 0
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            self.seen += 1
            threading.Thread(target=self.answer, args=(conn,), daemon=True).start()

    @staticmethod
    def answer(conn):
        with conn:
            head = conn.recv(4096)
            if b"/hold" in head:
                conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbegun")
                try:
                    conn.recv(4096)
                except ConnectionResetError:
                    pass
            else:
                conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


# Asks through the proxy door for a URL: the first line of the answer, or the error.
ASK = """
import socket, sys
try:
    s = socket.create_connection(("127.0.0.1", 3128), 50)
    host = sys.argv[1].split("/")[2]
    s.sendall(f"GET {sys.argv[1]} HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n".encode())
    print(s.recv(4096).split(b"\\r")[0].decode())
except OSError as e:
    print(type(e).__name__)
"""


def ask(control, web, path="/"):
    return run(control, ["/usr/bin/python3", "-c", ASK, f"http://{web.at}{path}"])[1].strip()


def test_net():
    web = Web()
    w = warden(*Web.PRIVATE)
    s = w.server()
    s.hello()
    a, b = s.create("a").fd, s.create("b").fd
    assert egresses(w.process.pid) == [], "nobody needs it yet"
    assert ask(a, web) == "ConnectionRefusedError"
    assert s.net("none").err == errno.ENOENT
    fds = n_fds(w.process.pid)
    r = s.net("a")
    assert r.err == 0 and r.box.id == "a", (r.err, r.msg)
    egress = egress_of(w.process.pid)
    status = status_of(egress)
    assert set(status["Uid"].split()) != {"0"} and status["NoNewPrivs"] == "1", status
    assert status["Uid"].split() != status_of(s.pid)["Uid"].split(), "it is not the server's user"
    assert all(int(status[c], 16) == 0 for c in ("CapPrm", "CapEff", "CapBnd", "CapAmb")), status
    link = s.egress()
    answer = ask(a, web)
    assert " 403 " in answer or " 5" in answer, (answer, "without a policy nothing is let out")
    assert link.allow("a", web.at) == 0
    assert ask(a, web) == "HTTP/1.1 200 OK" and web.seen == 1
    assert ask(b, web) == "ConnectionRefusedError", "doors are one box's"
    # Twice is no mistake, and no other doors.
    again = s.net("a")
    assert again.err == 0 and again.flags == r.flags
    assert ask(a, web) == "HTTP/1.1 200 OK"
    assert link.allow("b", web.at) == errno.ENOENT
    assert s.net("b").err == 0 and link.allow("b", web.at) == 0 and ask(b, web) == "HTTP/1.1 200 OK"
    if r.flags & CATCHES:
        direct = f"exec 3<>/dev/tcp/{web.at.replace(':', '/')} && printf 'GET / HTTP/1.1\\r\\nHost: {web.at}\\r\\n\\r\\n' >&3 && head -1 <&3"
        assert run(a, ["/bin/bash", "-c", direct])[0] != 0, "loopback of the box is the box's own"
    assert s.target(KILL, "a").err == 0 and s.target(KILL, "b").err == 0
    # What it keeps is its egress: a process, a socket to it; and one to the server is not ours.
    assert wait_for(lambda: n_fds(w.process.pid) <= fds), (fds, n_fds(w.process.pid))
    assert w.stop() == 0 and stale_boxes() == []
    assert wait_for(lambda: not alive(egress))
    web.close()


def test_net_off():
    w = warden("--egress-enabled", "false")
    s = w.server()
    s.hello()
    s.create("a")
    assert s.net("a").err == errno.EOPNOTSUPP
    assert egresses(w.process.pid) == [] and w.stop() == 0


def test_net_bad_rules():
    """Rules that cannot be understood keep the service from starting, and a running one from taking them."""
    sets = TMP + "/sets"
    os.makedirs(sets, exist_ok=True)
    with open(sets + "/web.rules", "w") as f:
        f.write("exa mple.com\n")
    w = warden("--egress-sets", sets)
    assert w.process.wait(PATIENCE) != 0
    with open(sets + "/web.rules", "w") as f:
        f.write("example.com\n")
    w = warden("--egress-sets", sets)
    s = w.server()
    s.hello()
    with open(sets + "/web.rules", "w") as f:
        f.write("*\n")
    w.process.send_signal(signal.SIGHUP)
    s.gone()
    s = w.server()
    s.hello()
    s.create("a")
    assert s.net("a").err == 0 and w.stop() == 0
    os.unlink(sets + "/web.rules")


def test_net_box_end():
    """NW-25: a box that ends takes its connections with it."""
    web = Web()
    w = warden(*Web.PRIVATE)
    s = w.server()
    s.hello()
    control = s.create("a").fd
    assert s.net("a").err == 0
    link = s.egress()
    assert link.allow("a", web.at) == 0
    egress = egress_of(w.process.pid)
    before = n_fds(egress)
    hold = ASK.replace("print(s.recv", "print(s.recv(4096)); print(s.recv")
    thread = threading.Thread(target=lambda: try_run(control, ["/usr/bin/python3", "-c", hold, f"http://{web.at}/hold"]))
    thread.start()
    assert wait_for(lambda: web.seen == 1 and n_fds(egress) > before)
    assert s.target(KILL, "a").err == 0
    assert wait_for(lambda: n_fds(egress) <= before - 5), (before, n_fds(egress))
    thread.join(PATIENCE)
    # The name may come back, and is another box.
    control = s.create("a").fd
    assert ask(control, web) == "ConnectionRefusedError"
    assert s.net("a").err == 0
    assert ask(control, web) != "HTTP/1.1 200 OK", "the old one's policy is gone"
    assert w.stop() == 0 and stale_boxes() == []
    web.close()


def try_run(*args):
    try:
        run(*args)
    except (OSError, EOFError):
        pass


def test_net_egress_killed():
    """A new one gets the doors of all boxes, and lets nothing through before it has their policies."""
    web = Web()
    w = warden(*Web.PRIVATE)
    s = w.server()
    s.hello()
    controls = [s.create(f"b{i}").fd for i in range(5)]
    for i in range(5):
        assert s.net(f"b{i}").err == 0
    link = s.egress()
    for _ in range(3):
        for i in range(5):
            assert link.allow(f"b{i}", web.at) == 0
        assert all(ask(c, web) == "HTTP/1.1 200 OK" for c in controls)
        old = egress_of(w.process.pid)
        os.kill(old, signal.SIGKILL)
        link.close()
        link = s.egress()
        assert egress_of(w.process.pid) != old
        assert ask(controls[0], web) != "HTTP/1.1 200 OK", "it knows no policy"
    # Somebody who ended meanwhile is not told of; somebody new is.
    os.kill(egress_of(w.process.pid), signal.SIGKILL)
    assert s.target(KILL, "b0").err == 0
    s.create("late")
    assert wait_for(lambda: s.net("late").err != errno.EAGAIN)
    r = s.net("late")
    assert r.err == 0, r.msg
    link = s.egress()
    assert link.allow("b0", web.at) == errno.ENOENT and link.allow("late", web.at) == 0
    assert link.allow("b1", web.at) == 0 and ask(controls[1], web) == "HTTP/1.1 200 OK"
    assert w.stop() == 0 and stale_boxes() == []
    web.close()


def hang_up(pid):
    """Ends the sockets of a process as if it had closed them: here those between rooms, which keep messages apart."""
    pidfd = os.pidfd_open(pid)
    fds = [int(fd) for fd in os.listdir(f"/proc/{pid}/fd") if os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:")]
    sockets = [socket.socket(fileno=ctypes.CDLL(None).syscall(SYS_PIDFD_GETFD, pidfd, fd, 0)) for fd in fds]
    for s in sockets:
        if s.type == socket.SOCK_SEQPACKET:
            s.shutdown(socket.SHUT_RDWR)
        s.close()
    os.close(pidfd)


def test_net_egress_hangs_up():
    """One that hears nobody any more but does not end is ended, and a new one started."""
    w = warden()
    s = w.server()
    s.hello()
    assert s.create("b").err == 0 and s.net("b").err == 0
    s.egress().close()
    old = egress_of(w.process.pid)
    os.kill(old, signal.SIGSTOP)
    hang_up(old)
    assert wait_for(lambda: not alive(old)), "it was left as it was"
    s.egress().close()
    assert egress_of(w.process.pid) != old
    assert w.stop() == 0 and stale_boxes() == []


def test_net_server_killed():
    """Policies outlive a server; the next one gets a socket of its own."""
    web = Web()
    w = warden(*Web.PRIVATE)
    s = w.server()
    s.hello()
    control = s.create("a").fd
    assert s.create("none").err == 0 and s.net("a").err == 0
    link = s.egress()
    assert link.allow("a", web.at) == 0
    os.kill(s.pid, signal.SIGKILL)
    assert s.gone()
    link.close()
    assert ask(control, web) == "HTTP/1.1 200 OK", "nobody else is needed for it"
    s = w.server()
    r = s.ask(HELLO, struct.pack("<II", VERSION, 0))
    assert r.err == 0
    doors = {box.id: box.flags for box in (Box(data) for type, _, data, _ in s.events if type == BOX)}
    assert doors == {"a": 1, "none": 0}, doors
    s.egress().close()  # this one is lost: another can be had
    assert s.ask(MEET, bytes(8)).err == 0
    link = s.egress()
    assert s.net("a").err == 0 and link.allow("a", web.at) == 0
    assert ask(control, web) == "HTTP/1.1 200 OK"
    assert link.allow("a") == 0 and ask(control, web) != "HTTP/1.1 200 OK", "an empty list is a denial"
    assert w.stop() == 0
    web.close()


def test_net_paused_and_dying():
    need(FREEZER, "freezer")
    web = Web()
    w = warden(*Web.PRIVATE)
    s = w.server()
    s.hello()
    control = s.create("p").fd
    assert s.target(PAUSE, "p").err == 0
    assert s.ask(SOCKET, struct.pack("<32sII", b"p", 4, 0)).err == errno.EBUSY
    assert s.net("p").err == 0, "nobody in it has to do anything for it"
    assert s.deadline(RESUME, "p", 60000).err == 0
    link = s.egress()
    assert link.allow("p", web.at) == 0 and ask(control, web) == "HTTP/1.1 200 OK"
    # Doors that are being opened when their box ends.
    for i in range(20):
        s.create(f"d{i}")
        one, two = s.send(NET, struct.pack("<32s", b"d%d" % i)), s.send(KILL, struct.pack("<32s", b"d%d" % i))
        assert s.wait_reply(two).err == 0
        assert s.wait_reply(one).err in (0, errno.ECANCELED)
        # A request that comes while another waits is answered too; more than a few are not kept.
    s.create("q")
    asked = [s.send(NET, struct.pack("<32s", b"q")) for _ in range(8)]
    errs = [s.wait_reply(number).err for number in asked]
    assert errs.count(0) >= 4 and set(errs) <= {0, errno.EAGAIN}, errs
    assert w.stop() == 0 and stale_boxes() == []
    web.close()


def test_net_port_taken():
    w = warden()
    s = w.server()
    s.hello()
    control = s.create("a").fd
    listen = "import socket,time; s=socket.create_server((%r,3128)); print('up',flush=True); time.sleep(1000)"
    code = f"nohup python3 -c \"{listen % '0.0.0.0'}\" >/tmp/o 2>&1 & until grep -qsx up /tmp/o; do sleep 0.01; done; echo $!"
    pid = sh(control, code.replace("\"('", "\"('"))[1].strip()
    r = s.net("a")
    assert r.err == errno.EADDRINUSE and "3128" in r.msg, (r.err, r.msg)
    assert sh(control, f"kill {pid}")[0] == 0
    assert wait_for(lambda: s.net("a").err == 0)
    assert w.stop() == 0


def test_net_hundred_boxes():
    web = Web()
    w = warden(*Web.PRIVATE)
    s = w.server()
    s.hello()
    for i in range(100):
        assert s.create(f"h{i}", pids=32, memory=64 * MIB, disk=16 * MIB).err == 0
    began = time.monotonic()
    asked = [s.send(NET, struct.pack("<32s", b"h%d" % i)) for i in range(100)]
    assert all(s.wait_reply(number).err == 0 for number in asked)
    print(f"# 100 boxes got doors in {(time.monotonic() - began) * 1000:.0f} ms")
    link = s.egress()
    assert all(link.allow(f"h{i}", web.at) == 0 for i in range(100))
    os.kill(egress_of(w.process.pid), signal.SIGKILL)
    link.close()
    link = s.egress()
    assert all(link.allow(f"h{i}", web.at) == 0 for i in range(100)), "the new one knows them all"
    boxes = restart(w, s)[1]
    assert len(boxes) == 100
    assert w.stop() == 0 and stale_boxes() == []
    web.close()


def test_net_warden_killed():
    w = warden()
    s = w.server()
    s.hello()
    s.create("a")
    assert s.net("a").err == 0
    pid = egress_of(w.process.pid)
    w.kill()
    assert wait_for(lambda: not alive(pid)), "egress outlived the warden"


def test_socket():
    """A socket in a box's network, for connections inward."""
    w = warden()
    s = w.server()
    s.hello()
    control = s.create("a").fd
    serve = "nohup python3 -m http.server -b 127.0.0.1 8123 >/dev/null 2>&1 & until exec 3<>/dev/tcp/127.0.0.1/8123; do sleep 0.05; done 2>/dev/null"
    assert run(control, ["/bin/bash", "-c", serve])[0] == 0
    ask_for = lambda id, family: s.ask(SOCKET, struct.pack("<32sII", id, family, 0))
    r = ask_for(b"a", 4)
    assert r.err == 0 and r.fd is not None, r.msg
    with socket.socket(fileno=r.fd) as conn:
        assert conn.family == socket.AF_INET and conn.type & socket.SOCK_STREAM
        conn.settimeout(PATIENCE)
        conn.connect(("127.0.0.1", 8123))
        conn.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert conn.recv(100).startswith(b"HTTP/1.0 200")
    with socket.socket(fileno=ask_for(b"a", 6).fd) as conn:
        assert conn.family == socket.AF_INET6
        try:
            conn.connect(("::1", 8123))
            assert False
        except ConnectionRefusedError:
            pass
    with socket.socket(fileno=ask_for(b"a", 4).fd) as conn:
        try:
            conn.connect(("192.0.2.1", 80))
            assert False, "a box without network reached something"
        except OSError as e:
            assert e.errno == errno.ENETUNREACH
    assert ask_for(b"none", 4).err == errno.ENOENT
    home = os.readlink(f"/proc/{w.process.pid}/ns/net")
    began = time.monotonic()
    for _ in range(200):
        os.close(ask_for(b"a", 4).fd)
    print(f"# a socket: {(time.monotonic() - began) / 200 * 1e6:.0f} us, with the messages")
    assert os.readlink(f"/proc/{w.process.pid}/ns/net") == home
    assert s.target(KILL, "a").err == 0 and ask_for(b"a", 4).err == errno.ENOENT
    assert w.stop() == 0


# --------------------------------------------------------------------------------------------------


def main():
    if os.geteuid() != 0:
        print("1..0 # SKIP needs root")
        return 0
    for program in (GLOVEBOX, STUB):
        if not os.access(program, os.X_OK):
            print(f"Bail out! there is no {program}")
            return 1
    tests = [(n[5:], f) for n, f in globals().items() if n.startswith("test_") and (n[5:] in sys.argv[1:] or len(sys.argv) == 1)
             and not (tap.QUICK and hasattr(f, "slow"))]
    failed = 0
    print(f"1..{len(tests)}", flush=True)
    for number, (name, test) in enumerate(tests, 1):
        began = time.monotonic()
        try:
            subprocess.run(["rm", "-rf", STATE], check=True)
            test()
            print(f"ok {number} - {name.replace('_', ' ')} # {time.monotonic() - began:.1f} s", flush=True)
        except tap.Skip as skip:
            print(f"ok {number} - {name} # SKIP {skip}", flush=True)
        except BaseException:
            failed += 1
            print(f"not ok {number} - {name.replace('_', ' ')}")
            for line in traceback.format_exc().splitlines():
                print("# " + line)
            for w in Warden.all[-1:]:
                print("# warden:", w.process.poll(), what_is(w.process.pid))
            print("# log: " + " / ".join(open(LOG).read().splitlines()[-int(os.environ.get("WARDEN_LOG", "3")):]) if os.path.exists(LOG) else "# no log",
                  flush=True)
        finally:
            for w in Warden.all:
                if w.process.poll() is None:
                    w.kill()
            Warden.all.clear()
    subprocess.run(["rm", "-rf", TMP], check=True)
    return failed > 0


sys.exit(main())
