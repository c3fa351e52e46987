# SPDX-License-Identifier: Apache-2.0
"""Speaks with the warden in the server's place, and with agents in boxes. See src/wire/warden.def."""

import array
import errno
import itertools
import os
import select
import signal
import socket
import struct
import subprocess
import time

VERSION = 3
HELLO, CREATE, KILL, DEADLINE, PAUSE, RESUME, USAGE, SNAPSHOT, DROP_LAYER, NEXT_LAYER, CONTEXT, NET, SOCKET, MEET = range(1, 15)
REPLY, BOX, ENDED, PAUSED, EGRESS = range(20, 25)
CATCHES = 1
ROOT_FLAG, PAUSE_FLAG, SCRIPT_FLAG = 1, 2, 4
KILLED, TIMEOUT, MEMORY, CRASHED, STOPPED = range(1, 6)
RUNNING, IS_PAUSED = 1, 2
PYTHON, SCIENCE = 1, 2

EXEC, LEAF = 1, 4
CWD, ARG, ENV, GO = 10, 11, 12, 13
STARTED, FAILED, OUT, ERR, EXIT = 20, 21, 22, 23, 24
CELL, CODE, CELL_END = 62, 66, 70

MIB = 1 << 20
PATIENCE = 60  # seconds: what does not come until then never comes, however busy the machine is
LIMITS = dict(memory=512 * MIB, disk=2048 * MIB, files=200000, pids=512, cpu=2000)


def c_id(text):
    return text.encode() if isinstance(text, str) else text


def create_payload(id, template=1, flags=0, timeout_ms=60000, layers=(), n_layers=None, **limits):
    l = {**LIMITS, **limits}
    out = struct.pack("<32sII", c_id(id), template, flags)
    out += struct.pack("<QQQII", l["memory"], l["disk"], l["files"], l["pids"], l["cpu"])
    out += struct.pack("<QII", timeout_ms, len(layers) if n_layers is None else n_layers, 0)
    for i in range(8):
        out += struct.pack("<32s", c_id(layers[i]) if i < len(layers) else b"")
    return out


class Reply:
    USAGE_KEYS = ("cpu_us", "cpu_user_us", "cpu_system_us", "memory_now", "memory_shmem", "memory_cache",
                  "memory_peak", "disk_used", "disk_size", "disk_free", "files_free", "oom_kills",
                  "pids_denied", "read_bytes", "written_bytes", "pids_now", "pids_peak")

    def __init__(self, data, fds):
        self.err, self.flags, where, msg = struct.unpack_from("<iI32s168s", data)
        self.where, self.msg = where.rstrip(b"\0").decode(), msg.rstrip(b"\0").decode()
        self.box = Box(data[208:280])
        self.usage = dict(zip(self.USAGE_KEYS, struct.unpack_from("<15Q2I", data, 280)))
        self.layer = struct.unpack_from("<32s", data, 408)[0].rstrip(b"\0").decode()
        self.fd = fds[0] if fds else None


class Box:
    def __init__(self, data):
        id, self.state, self.flags = struct.unpack_from("<32sII", data)
        self.id = id.rstrip(b"\0").decode()
        self.features = struct.unpack_from("<I", data, 40)[0]
        self.cgroup_features = struct.unpack_from("<I", data, 60)[0]
        self.left_ms = struct.unpack_from("<Q", data, 64)[0]


class Server:
    """One life of the stub: the conversation with the warden over the descriptors it was given."""

    def __init__(self, conn):
        text, fds, _, _ = socket.recv_fds(conn, 64, 8)
        self.conn, self.pid = conn, int(text)
        self.sock = socket.socket(fileno=fds[0])
        self.listen_fd, self.state_fd = fds[1], fds[2]
        self.sock.settimeout(PATIENCE)
        self.numbers = itertools.count(1)
        self.events = []

    def send(self, type, payload, request=None, fds=()):
        request = next(self.numbers) if request is None else request
        data = struct.pack("<IIQ", type, 16 + len(payload), request) + payload
        self.send_raw(data, fds)
        return request

    def send_raw(self, data, fds=()):
        if fds:
            socket.send_fds(self.sock, [data], list(fds))
        else:
            self.sock.send(data)

    def recv(self):
        data, fds, flags, _ = socket.recv_fds(self.sock, 4096, 4)
        if not data:
            raise EOFError("the warden hung up")
        type, length, request = struct.unpack_from("<IIQ", data)
        assert length == len(data), (type, length, len(data))
        return type, request, data[16:], fds

    def wait_reply(self, request):
        while True:
            for event in self.events:
                if event[0] == REPLY and event[1] == request:
                    self.events.remove(event)
                    return Reply(event[2], event[3])
            self.events.append(self.recv())

    def ask(self, type, payload):
        return self.wait_reply(self.send(type, payload))

    def hello(self, version=VERSION):
        """Boxes by id (with the control socket), and what ended, as the warden tells them."""
        r = self.ask(HELLO, struct.pack("<II", version, 0))
        assert r.err == 0
        boxes, ended = {}, {}
        for type, _, data, fds in self.events:
            if type == BOX:
                box = Box(data)
                box.fd = fds[0]
                boxes[box.id] = box
            elif type == ENDED:
                id, reason = struct.unpack_from("<32sI", data)
                ended[id.rstrip(b"\0").decode()] = reason
        self.events = []
        return boxes, ended

    def create(self, id, **wish):
        return self.ask(CREATE, create_payload(id, **wish))

    def target(self, type, id):
        return self.ask(type, struct.pack("<32s", c_id(id)))

    def deadline(self, type, id, ms):
        return self.ask(type, struct.pack("<32sQ", c_id(id), ms))

    def snapshot(self, id, layer):
        return self.ask(SNAPSHOT, struct.pack("<32s32s", c_id(id), c_id(layer)))

    def send_context(self, id, name="python", zygote=PYTHON, language="python"):
        return self.send(CONTEXT, struct.pack("<32s40s24sII", c_id(id), c_id(name), c_id(language), zygote, 0))

    def context(self, id, **more):
        return self.wait_reply(self.send_context(id, **more))

    def net(self, id):
        """Gives a box network."""
        return self.target(NET, id)

    def egress(self, timeout=PATIENCE):
        """The socket to egress that the warden passes."""
        until = time.monotonic() + timeout
        while True:
            for event in self.events:
                if event[0] == EGRESS:
                    self.events.remove(event)
                    return Egress(event[3][0])
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.sock], [], [], left)[0]:
                raise TimeoutError("no socket to egress")
            self.events.append(self.recv())

    def wait_event(self, want, timeout=PATIENCE):
        """The next event of that type: its id and, for ENDED, the reason."""
        until = time.monotonic() + timeout
        while True:
            for event in self.events:
                if event[0] == want:
                    self.events.remove(event)
                    id, reason = struct.unpack_from("<32sI", event[2] + bytes(4))
                    return id.rstrip(b"\0").decode(), reason
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.sock], [], [], left)[0]:
                raise TimeoutError(f"no event {want}")
            self.events.append(self.recv())

    def order(self, text):
        self.conn.send(text.encode())
        return self.conn.recv(8192).decode()

    def gone(self, timeout=PATIENCE):
        """Waits for the end of the process."""
        self.conn.settimeout(timeout)
        return self.conn.recv(1) == b""

    def close(self):
        for fd in (self.listen_fd, self.state_fd):
            os.close(fd)
        self.sock.close()
        self.conn.close()


class Egress:
    """The server's side of the conversation with egress; see src/wire/egress.def."""

    POLICY, USE, RULE, HEADER, COMMIT = range(10, 15)
    APPLIED, EVENT = 20, 21

    def __init__(self, fd):
        self.sock = socket.socket(fileno=fd)
        self.sock.settimeout(PATIENCE)

    def send(self, type, payload):
        self.sock.send(struct.pack("<IIQ", type, 16 + len(payload), 0) + payload)

    def allow(self, id, *addresses):
        """A policy that allows these IPv4 addresses ("192.0.2.1:80") and nothing else: errno of APPLIED."""
        self.send(self.POLICY, struct.pack("<32sIIIIQQQQ", c_id(id), 0, 0, 0, 0, 0, 0, 0, 0))
        for text in addresses:
            host, port = text.split(":")
            address = bytes(10) + b"\xff\xff" + socket.inet_aton(host)
            self.send(self.RULE, struct.pack("<32s4B8H16s256s", c_id(id), 3, 0, 128, 1, int(port), int(port), 0, 0, 0, 0, 0, 0,
                                             address, b""))
        self.send(self.COMMIT, struct.pack("<32s", c_id(id)))
        while True:
            data = self.sock.recv(16384)
            if not data:
                raise EOFError("egress hung up")
            if struct.unpack_from("<I", data)[0] == self.APPLIED:
                return struct.unpack_from("<i", data, 48)[0]

    def close(self):
        self.sock.close()


def frame(type, data=b""):
    return struct.pack("<HHI", type, 0, 8 + len(data)) + data


def run(control_fd, argv, timeout=PATIENCE, uid=1000):
    """Runs a command in a box through its agent: exit code, output."""
    control = socket.socket(fileno=os.dup(control_fd))
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    request = struct.pack("<IIIiQQQQQQHHI", uid, uid, 0, 800, 1 << 40, 0, 0, 0, 1024, 0, 0, 0, 0)
    with control, ours:
        with theirs:
            socket.send_fds(control, [frame(EXEC, request)], [theirs.fileno()])
        ours.settimeout(timeout)
        ours.send(frame(CWD, b"/"))
        for arg in argv:
            ours.send(frame(ARG, arg.encode()))
        ours.send(frame(ENV, b"PATH=/usr/bin:/bin"))
        ours.send(frame(GO))
        out = b""
        while True:
            data = ours.recv(65536)
            if not data:
                raise EOFError("the agent hung up")
            type = struct.unpack_from("<H", data)[0]
            if type in (OUT, ERR):
                out += data[8:]
            elif type == EXIT:
                return struct.unpack_from("<i", data, 8)[0], out.decode(errors="replace")
            elif type == FAILED:
                raise OSError(struct.unpack_from("<Ii", data, 8)[1], f"step {data[8]}")


def cell(control_fd, code, context="python", timeout=PATIENCE):
    """Runs a cell in a context of a box through its agent: its output."""
    control = socket.socket(fileno=os.dup(control_fd))
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with control, ours:
        with theirs:
            request = frame(CELL, struct.pack("<40sQQQQ", c_id(context), 0, 0, 0, 0))
            socket.send_fds(control, [request], [theirs.fileno()])
        ours.settimeout(timeout)
        ours.send(frame(CODE, code.encode()))
        ours.send(frame(GO))
        out = b""
        while True:
            data = ours.recv(65536)
            if not data:
                raise EOFError("the agent hung up")
            type = struct.unpack_from("<H", data)[0]
            if type in (OUT, ERR):
                out += data[8:]
            elif type == CELL_END:
                return out.decode(errors="replace")
            elif type == FAILED:
                raise OSError(struct.unpack_from("<Ii", data, 8)[1], f"step {data[8]}")


class Warden:
    """`glovebox serve` with the stub as its server."""

    all = []

    def __init__(self, glovebox, stub, state, *options, env=None, stderr=None):
        self.name = f"t{os.getpid()}.{time.monotonic_ns()}.test"
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind("\0" + self.name)
        self.listener.listen(64)
        self.listener.settimeout(PATIENCE)
        self.log = open(stderr, "a") if stderr else subprocess.DEVNULL
        self.process = subprocess.Popen(
            [glovebox, "serve", "--listen", "127.0.0.1:0", "--state", state, "--server", stub,
             "--client", "/bin/true", "--domain", self.name, *options], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            env=env)
        self.all.append(self)

    def server(self):
        """The stub that is started next."""
        conn, _ = self.listener.accept()
        return Server(conn)

    def stop(self, timeout=PATIENCE):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)

    def kill(self):
        self.process.kill()
        self.process.wait()
