# SPDX-License-Identifier: Apache-2.0
"""Attacks from inside a context that was forked from a zygote, and on the zygote from inside a box (rows ZY-…).

    contexts.py DIRECTORY [ROW...]

One service for all rows. The verdict of each goes to DIRECTORY/ROW: `ok`, `breach` or `cannot` in the first line,
then why. The rows themselves are in rows/ZY.sh."""
import json
import os
import pathlib
import re
import sys
import threading
import time
import traceback

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))

# pylint: disable=wrong-import-position
import cells
import raw
import service
from service import wait_for

SECRET = "of-the-wardens-environment"
LOAD_SECONDS = 90
PACKAGES = "json"  # what matters here does not depend on how much is loaded
NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts")

# What both a cell and a command print about themselves.
LOOK = """
import json, os, resource, sys
status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines() if ":" in line)
print(json.dumps({
    "namespaces": {name: os.readlink("/proc/self/ns/" + name) for name in %r},
    "status": {name: " ".join(status[name].split()) for name in
               ("Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp",
                "Umask")},
    "limits": {name: resource.getrlimit(getattr(resource, name)) for name in dir(resource)
               if name.startswith("RLIMIT_")},
    "uid_map": open("/proc/self/uid_map").read().split(),
    "cgroup": open("/proc/self/cgroup").read().split(),
    "oom": open("/proc/self/oom_score_adj").read().strip(),
    "sid": os.getsid(0) == os.getpid(),
}))
""" % (NAMESPACES,)

CALLS = """
import ctypes, errno, json
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *args):
    ctypes.set_errno(0)
    return errno.errorcode.get(ctypes.get_errno() if libc.syscall(number, *args) < 0 else 0, "worked")
print(json.dumps({"setns": call(308, 3, 0x10000000), "unshare": call(272, 0x10000000),
                  "mount": call(165, 0, 0, 0, 0, 0), "keyctl": call(250, 1, 0), "clone3": call(435, 0, 0), "ptrace": call(101, 16, 1, 0, 0),
                  # A child for its own parent, the zygote. With CLONE_SIGHAND alone the kernel would make none.
                  "parent": call(56, 0x8000 | 0x800 | 17, 0, 0, 0, 0),
                  "bpf": call(321, 0, 0, 0), "core": call(157, 62, 0, 0, 0, 0), "tid": call(157, 40, 0, 0, 0, 0),
                  "process_vm_readv": call(310, 1, 0, 0, 0, 0, 0), "pidfd_getfd": call(438, 0, 0, 0)}))
"""
REFUSED = {"setns": "EPERM", "unshare": "EPERM", "mount": "EPERM", "keyctl": "ENOSYS", "clone3": "ENOSYS",
           "ptrace": "EPERM", "parent": "EPERM", "bpf": "EPERM", "core": "EPERM", "tid": "EPERM", "process_vm_readv": "EPERM",
           "pidfd_getfd": "EPERM"}

# Looks through every page that can be read. The text is nowhere in one piece but where it was before: its second
# half is compared where the first was found.
SEARCH = """
def count(data, first, second):
    found, at = 0, data.find(first)
    while at >= 0:
        found += data.startswith(second, at + len(first))
        at = data.find(first, at + 1)
    return found
def search(first, second):
    found = 0
    with open("/proc/self/mem", "rb", 0) as memory:
        for line in open("/proc/self/maps"):
            fields = line.split()
            if "r" not in fields[1] or fields[-1] in ("[vvar]", "[vvar_vclock]", "[vsyscall]"):
                continue
            start, end = (int(text, 16) for text in fields[0].split("-"))
            memory.seek(start)
            try:
                found += count(memory.read(end - start), first, second)
            except OSError:
                pass
    return found
"""


class Breach(Exception):
    """The outcome was not safe."""


class Cannot(Exception):
    """This machine cannot show it."""


def breach_if(bad, *why):
    if bad:
        raise Breach(" ".join(str(part) for part in why))


def printed(box, code, **body):
    found = cells.cell(box, code, **body)
    breach_if(any(event["type"] == "error" for event in found), "the cell failed:", found)
    return cells.text(found)


def look(box):
    return json.loads(printed(box, LOOK))


def new_context(box):
    reply = cells.ask(box, "POST", "/contexts", {"language": "python"})
    breach_if(reply.status != 200, "no context:", reply)
    return reply.json()["id"]


class World:
    def __init__(self):
        settings = {"pool.size": 2, "interpreter.preload": PACKAGES, "limits.creates_per_second": 1000}
        os.environ["ZY_SECRET"] = SECRET
        service.CLEAN["ZY_SECRET"] = SECRET
        for name in ("GLOVEBOX_BREAK",):
            if name in os.environ:
                service.CLEAN[name] = os.environ[name]
        self.service = service.Service(settings)
        self.service.start()
        self.client = raw.Client(self.service.port, self.service.key)

    def zygotes(self):
        """Process ids, by whether it has packages: grandchildren of the warden, under their keepers."""
        found = {}
        for keeper in service.children(self.service.process.pid):
            for pid in service.children(keeper):
                try:
                    words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                    inner = pathlib.Path(f"/proc/{pid}/status").read_text().split("NSpid:")[1].splitlines()[0].split()
                except OSError:
                    continue
                if len(inner) == 1 and any(word.endswith(b"/zygote.py") for word in words):
                    found[PACKAGES.encode() in words] = pid
        return found

    def is_loaded(self):
        """Both wait in their loops, with all signals blocked."""
        def blocked(pid):
            try:
                text = pathlib.Path(f"/proc/{pid}/status").read_text()
            except OSError:
                return False
            return "SigBlk:\tfffffffe7ffbfeff" in text
        found = self.zygotes()
        return len(found) == 2 and all(blocked(pid) for pid in found.values())

    def loaded(self):
        if not wait_for(self.is_loaded, LOAD_SECONDS, 0.1):
            raise Cannot(f"no zygote is loaded here: {self.service.log_tail(5)}")

    def box(self, **body):
        """A sandbox whose context surely was forked from a zygote."""
        self.loaded()
        box = self.client.create(**body)
        forked = "zygote.py" in printed(box, "print(open('/proc/self/cmdline').read())")
        breach_if(not forked, "the context is no fork of a zygote")
        return box


def host_pids(box_uid):
    """Everything that runs as that user of the host."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and entry.stat().st_uid == box_uid:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def host_uid(box):
    """Of the box's user."""
    return int(look(box)["uid_map"][1]) + 1000


def zy_01(world):
    box = world.box()
    mine = look(box)["namespaces"]
    of_command = json.loads(box.run("python3 - <<'END'\n" + LOOK + "\nEND")[0])["namespaces"]
    breach_if(mine != of_command, mine, "but a command has", of_command)
    for pid in list(world.zygotes().values()) + [world.service.process.pid]:
        for name in NAMESPACES:
            theirs = os.readlink(f"/proc/{pid}/ns/{name}")
            breach_if(theirs == mine[name], "shares", name, "with process", pid)


def zy_02(world):
    box = world.box()
    mine, of_command = look(box), json.loads(box.run("python3 - <<'END'\n" + LOOK + "\nEND")[0])
    for name in ("status", "limits", "uid_map", "cgroup", "oom"):
        breach_if(mine[name] != of_command[name], name, mine[name], "but a command has", of_command[name])
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        breach_if(int(mine["status"][name], 16), name, mine["status"][name])
    breach_if(mine["status"]["Groups"] or mine["status"]["Uid"] != "1000 1000 1000 1000", mine["status"])
    breach_if(mine["status"]["Seccomp"] != "2" or mine["status"]["NoNewPrivs"] != "1", mine["status"])
    breach_if(not mine["sid"], "it leads no session of its own")


def zy_03(world):
    box = world.box()
    found = json.loads(printed(box, """
import json, os
names = {}
for name in os.listdir("/proc/self/fd"):
    try: names[int(name)] = os.readlink("/proc/self/fd/" + name)
    except OSError: pass
print(json.dumps(names))"""))
    kinds = sorted(text.split(":")[0] for text in found.values())
    breach_if(kinds != ["/dev/null", "pipe", "pipe", "pipe", "pipe"], "descriptors:", found)
    breach_if(len(set(found.values())) != 5, "one of them twice:", found)


def zy_04(world):
    box = world.box()
    text = printed(box, "import os\nprint(dict(os.environ))\n"
                        "print(open('/proc/self/environ').read(), open('/proc/self/cmdline').read())")
    for word in (SECRET, "GLOVEBOX", "local.key", world.service.key, world.service.state):
        breach_if(word in text, "sees", word, "in", text)
    half = len(SECRET) // 2
    count = printed(box, SEARCH + f"print(search({SECRET[:half].encode()!r}, {SECRET[half:].encode()!r}))")
    breach_if(count.strip() != "0", "has the warden's environment in its memory")


def zy_05(world):
    box = world.box()
    pids = list(world.zygotes().values()) + [world.service.process.pid]
    found = json.loads(printed(box, f"""
import json, os, errno
result = {{}}
def attempt(name, function):
    try: result[name] = str(function())
    except OSError as error: result[name] = errno.errorcode[error.errno]
for pid in {pids!r}:
    attempt("kill %d" % pid, lambda: os.kill(pid, 0))
    attempt("proc %d" % pid, lambda: os.listdir("/proc/%d" % pid))
    attempt("pidfd %d" % pid, lambda: os.pidfd_open(pid))
attempt("parent", os.getppid)
attempt("exe", lambda: open("/proc/self/exe", "r+b"))
for name in os.listdir("/proc/self/map_files")[:50]:
    attempt("map " + name, lambda: os.open("/proc/self/map_files/" + name, os.O_RDONLY))
print(json.dumps(result))"""))
    breach_if(found.pop("parent") != "0", "it sees its parent")
    for name, outcome in found.items():
        breach_if(outcome not in ("ESRCH", "ENOENT", "EPERM", "EACCES", "EROFS", "ETXTBSY"), name, outcome)


def zy_06(world):
    marker = os.urandom(16).hex()
    first, second = world.box(), world.box()
    half = len(marker) // 2
    ask = SEARCH + f"print(search({marker[:half].encode()!r}, {marker[half:].encode()!r}))"
    printed(first, f"kept = [({marker[:half]!r} + {marker[half:]!r}) * 1000 for _ in range(100)]")
    breach_if(printed(first, ask).strip() == "0", "the search does not find what is there")
    for _ in range(3):
        breach_if(printed(second, ask).strip() != "0", "another sandbox's text is in its memory")
        breach_if(printed(second, ask, context_id=new_context(second)).strip() != "0", "in a new context's memory")


def zy_07(world):
    box = world.box()
    found = json.loads(printed(box, CALLS))
    breach_if(found != REFUSED, {name: found[name] for name in found if found[name] != REFUSED[name]})


def zy_08(world):
    box = world.box()
    found = json.loads(printed(box, """
import errno, json, os, stat
def attempt(function, *args):
    try: function(*args)
    except OSError as error: return errno.errorcode[error.errno]
    return "worked"
print(json.dumps({
    "home": attempt(lambda: open("/home/user/x", "w").close()),
    "etc": attempt(lambda: open("/etc/passwd", "a").close()),
    "usr": attempt(lambda: open("/usr/bin/x", "w").close()),
    "opt": attempt(lambda: open("/opt/glovebox/kernels/python/zygote.py", "a").close()),
    "sysrq": attempt(lambda: open("/proc/sysrq-trigger", "w").close()),
    "node": attempt(os.mknod, "/tmp/node", stat.S_IFCHR | 0o666, os.makedev(1, 3)),
    "above": attempt(lambda: open("/proc/1/root/etc/shadow").close()),
}))"""))
    breach_if(found.pop("home") != "worked", "it cannot write its home")
    for name, outcome in found.items():
        breach_if(outcome == "worked", name, "worked")


def zy_09(world):
    box = world.box()
    uid = host_uid(box)
    printed(box, "import subprocess\nfor _ in range(3): subprocess.Popen(['sleep', '1000'], start_new_session=True)")
    breach_if(len(host_pids(uid)) < 4, "the processes are not there")
    box.kill()
    left = wait_for(lambda: not host_pids(uid))
    breach_if(not left, "they outlive their box:", host_pids(uid))
    zombies = [pid for pid in service.children(world.zygotes()[True]) if not service.alive(pid)]
    breach_if(zombies, "the zygote did not wait for", zombies)


def zy_10(world):
    box = world.box()
    printed(box, "import threading, time\nticks = 0\ndef tick():\n    global ticks\n    while True:\n"
                 "        ticks += 1\n        time.sleep(0.01)\nthreading.Thread(target=tick, daemon=True).start()")
    pids = host_pids(host_uid(box))
    breach_if(not pids, "there is no process of the box")
    running = [switches(pid) for pid in pids]
    time.sleep(0.5)
    breach_if(running == [switches(pid) for pid in pids], "it does not run at all")
    reply = world.client.ask("POST", f"/sandboxes/{box.id}/pause")
    if reply.status not in (200, 204):
        raise Cannot(f"sandboxes cannot be paused here: {reply}")
    paused = [switches(pid) for pid in pids]
    time.sleep(1)
    breach_if(paused != [switches(pid) for pid in pids], "it runs on while its box is paused")
    world.client.ask("POST", f"/sandboxes/{box.id}/connect", {"timeout": 60})
    breach_if(int(printed(box, "print(ticks)")) < 1, "it did not come back")


def switches(pid):
    """How often its threads were switched, all together."""
    count = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        count += sum(int(line.split()[1]) for line in (task / "status").read_text().splitlines() if "ctxt_switches" in line)
    return count


def zy_11(world):
    box = world.box()
    uid, zygotes = host_uid(box), world.zygotes()
    before = charged(uid)
    printed(box, "block = bytearray(200 << 20)")
    grown = charged(uid) - before
    breach_if(grown < 190 << 20, "of 200 MiB", grown >> 20, "are charged to its box")
    found = cells.cell(box, "more = bytearray(4 << 30)\nfor i in range(0, len(more), 4096): more[i] = 1")
    breach_if(any(event["type"] == "stdout" for event in found), found)
    breach_if("fine" not in printed(box, "print('fine')"), "the sandbox did not survive it")
    breach_if(world.zygotes() != zygotes, "a zygote was killed for it")


def charged(uid):
    """Bytes in the memory cgroup of a process of that user."""
    for pid in host_pids(uid):
        for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            for place in (f"/sys/fs/cgroup/memory{path}/memory.usage_in_bytes",
                          f"/sys/fs/cgroup{path}/memory.current"):
                if controllers in ("memory", "") and os.path.exists(place):
                    return int(pathlib.Path(place).read_text())
    raise Cannot("there is no memory cgroup")


def freezer(uid):
    """The file that stops the box of that user, beside the warden."""
    for pid in host_pids(uid):
        for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
            for top in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
                place = pathlib.Path(f"{top}{line[3:]}/cgroup.freeze")
                if line.startswith("0::/") and place.exists():
                    return place
    raise Cannot("there is no cgroup that can be frozen")


FILL = """
import ctypes
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
for size in [16 << 20] * 400 + [1 << 20] * 64 + [1 << 16] * 64:
    key = libc.shmget(0, ctypes.c_size_t(size), 0o1600)
    at = libc.shmat(key, None, 0)
    ctypes.memset(at, 1, size)
"""


def zy_12(world):
    """A box that has no memory left, and one that stands still, are asked for contexts. Nobody else waits for that,
    and the zygotes live."""
    full, still, healthy = world.box(), world.box(), world.box()
    zygotes, stop, slowest = world.zygotes(), freezer(host_uid(still)), 0
    cells.cell(full, FILL)  # it is killed at last, but what it filled stays
    stop.write_text("1")
    try:
        for box in (full, still) * 4:
            threading.Thread(target=attempt_context, args=(box,), daemon=True).start()
        time.sleep(0.5)
        # Three seconds are not much for a machine that is busy with other things: not each time, then. One who is held
        # up by these boxes is so each time.
        for _ in range(3):
            slowest = max(seconds_of_a_context(healthy) for _ in range(10))
            if slowest <= 3:
                break
    finally:
        stop.write_text("0")
    full.kill()
    still.kill()
    breach_if(slowest > 3, f"another sandbox's context took {slowest:.1f} s")
    breach_if(world.zygotes() != zygotes, "a zygote was killed")


def seconds_of_a_context(box):
    begun = time.monotonic()
    printed(box, "print(1)", context_id=new_context(box))
    return time.monotonic() - begun


def attempt_context(box):
    try:
        cells.ask(box, "POST", "/contexts", {"language": "python"}, timeout=5)
    except (OSError, raw.Closed):
        pass  # whatever comes of it


def zy_13(world):
    """Whoever kills the zygotes, no client sees an error, and contexts keep what they know."""
    box = world.box()
    printed(box, "kept = 42")
    for pid in world.zygotes().values():
        os.kill(pid, 9)
    breach_if(printed(box, "print(kept)").strip() != "42", "a context was lost with its zygote")
    for _ in range(4):
        other = world.client.create()
        breach_if(printed(other, "print('fine')").strip() != "fine", "a new sandbox does not work")
        other.kill()
    uid = host_uid(box)
    box.kill()
    breach_if(not wait_for(lambda: not host_pids(uid)), "a context outlives its box when its zygote is gone")
    world.loaded()


def zy_14(world):
    code = """
import os, random, tempfile, uuid
print(random.random(), random.SystemRandom().random(), uuid.uuid4(), os.urandom(8).hex(),
      next(tempfile._get_candidate_names()))"""
    seen = []
    for _ in range(3):
        box = world.box()
        seen += [printed(box, code).split(), printed(box, code, context_id=new_context(box)).split()]
    for column in zip(*seen):
        breach_if(len(set(column)) != len(column), "the same in two contexts:", column)


# --- scripts, which become a command of their box ----------------------------------------------------------------


def script(world, code, zygote=True):
    """What a run printed that surely was, or was not, forked from a zygote."""
    def attempt():
        reply = world.client.ask("POST", "/v1/run", {"language": "python", "code": code, "zygote": zygote})
        breach_if(reply.status != 200 or reply.json()["status"] != "ok", "the run failed:", reply.status, reply.body[:2000])
        return reply.json() if reply.json()["isolation"]["zygote"] is zygote else None
    found = wait_for(attempt, LOAD_SECONDS, 0.1)
    if not found:
        raise Cannot(f"no script is forked here: {world.service.log_tail(5)}")
    breach_if(found["isolation"]["own_address_layout"] is zygote, "the result does not tell:", found["isolation"])
    return found["stdout"]


def script_zygotes(world):
    found = []
    for keeper in service.children(world.service.process.pid):
        for pid in service.children(keeper):
            try:
                if pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() == b"python3\0main.py\0":
                    found.append(pid)
            except OSError:
                continue
    return found


def zy_15(world):
    """As one that was executed: who it is, what it may, what it is limited by, what it may ask of the kernel."""
    mine, executed = (json.loads(script(world, LOOK, zygote)) for zygote in (True, False))
    for name in ("status", "limits", "oom", "sid"):
        breach_if(mine[name] != executed[name], name, mine[name], "but one that was executed has", executed[name])
    breach_if(len(mine["cgroup"]) != len(executed["cgroup"]), mine["cgroup"], executed["cgroup"])
    for one, other in zip(mine["cgroup"], executed["cgroup"]):
        breach_if(re.sub("box-[0-9]+", "box", one) != re.sub("box-[0-9]+", "box", other), one, "but", other)
    for pid in script_zygotes(world) + [world.service.process.pid]:
        for name in NAMESPACES:
            breach_if(os.readlink(f"/proc/{pid}/ns/{name}") == mine["namespaces"][name], "shares", name, "with process", pid)
    found = json.loads(script(world, CALLS))
    breach_if(found != REFUSED, {name: found[name] for name in found if found[name] != REFUSED[name]})


def zy_16(world):
    """Nothing has come with it: no descriptor, no variable, nothing in memory; and it can reach nobody outside."""
    script(world, "")
    text = script(world, f"""
import errno, os
print(sorted(os.listdir("/proc/self/fd")), [os.readlink("/proc/self/fd/%d" % fd).split(":")[0] for fd in range(3)])
print(dict(os.environ), open("/proc/self/environ").read(), open("/proc/self/cmdline").read())
print("parent", os.getppid())
for pid in {script_zygotes(world) + [world.service.process.pid]!r}:
    for attempt in (lambda: os.kill(pid, 0), lambda: os.listdir("/proc/%d" % pid), lambda: os.pidfd_open(pid)):
        try: print("REACHED", pid, attempt())
        except OSError as error: print(errno.errorcode[error.errno])
""")
    # The fourth is that of listdir itself.
    breach_if("['0', '1', '2', '3'] ['/dev/null', 'pipe', 'pipe']" not in text or "parent 1\n" not in text, text)
    for word in (SECRET, "GLOVEBOX", "LD_PRELOAD", "local.key", world.service.key, world.service.state, "REACHED"):
        breach_if(word in text, "sees", word, "in", text)
    half = len(SECRET) // 2
    count = script(world, SEARCH + f"print(search({SECRET[:half].encode()!r}, {SECRET[half:].encode()!r}))")
    breach_if(count.strip() != "0", "has the warden's environment in its memory")


def zy_17(world):
    """Two runs have nothing in common: no random number, no memory."""
    code = """
import os, random, ssl, tempfile, uuid
print(random.random(), random.SystemRandom().random(), uuid.uuid4(), os.urandom(8).hex(), ssl.RAND_bytes(8).hex(),
      next(tempfile._get_candidate_names()))"""
    for column in zip(*(script(world, code).split() for _ in range(4))):
        breach_if(len(set(column)) != len(column), "the same in two runs:", column)
    marker = os.urandom(16).hex()
    half = len(marker) // 2
    ask = SEARCH + f"print(search({marker[:half].encode()!r}, {marker[half:].encode()!r}))"
    keep = f"kept = [({marker[:half]!r} + {marker[half:]!r}) * 1000 for _ in range(100)]\n"
    breach_if(script(world, keep + ask).strip() == "0", "the search does not find what is there")
    for _ in range(3):
        breach_if(script(world, ask).strip() != "0", "another run's text is in its memory")


def rows():
    return {name.upper().replace("_", "-"): function for name, function in globals().items()
            if name.startswith("zy_")}


def run(world, function):
    try:
        function(world)
    except Cannot as why:
        return f"cannot\n{why}\n"
    except Exception as error:  # pylint: disable=broad-except
        return f"breach\n{error}\n{''.join(traceback.format_exception(error)[-3:])}\n{world.service.log_tail(5)}\n"
    return "ok\n"


def main():
    directory = pathlib.Path(sys.argv[1])
    wanted = [word.replace("_", "-") for word in sys.argv[2:]]
    directory.mkdir()
    world = World()
    try:
        for name, function in rows().items():
            if not wanted or name in wanted:
                (directory / name).write_text(run(world, function))
    finally:
        world.service.stop()


main()
