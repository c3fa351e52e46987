# SPDX-License-Identifier: Apache-2.0
"""A network laboratory: one network namespace for the machine under test, one for the world, a cable between
them and no other way out of either. In the world every address leads to the same servers (world.py), which remember
all that reaches them, and everything on the cable is captured.

    with lab.Lab() as net:
        net.records({"moving.example": {"A": ["45.67.90.1"], "ttl": 0}})
        with net.inside():                       # this thread is in the machine's namespace: services, clients
            ...
        net.run(["curl", "http://web.example/hello"])   # a command there
        net.requests(), net.queries(), net.sent()

    lab.py COMMAND [ARGUMENT]...    runs a command in the machine's namespace, with LAB_CA, LAB_DNS, LAB_CONTROL set

The namespaces have no names and the world ends with its starter, so that nothing stays, whatever happens. Only root
can make them."""
import base64
import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "lib")]
import places  # noqa: E402  pylint: disable=wrong-import-position
import registry  # noqa: E402  pylint: disable=wrong-import-position
import service  # noqa: E402  pylint: disable=wrong-import-position
import tap  # noqa: E402  pylint: disable=wrong-import-position

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET, PR_SET_PDEATHSIG = 0x40000000, 1
PYTHON = "/usr/bin/python3"
NEEDED = ("ip", "openssl", "git")


class LabError(Exception):
    """The laboratory itself does not work."""


def check(result, what):
    if result != 0:
        raise LabError(f"{what}: {os.strerror(ctypes.get_errno())}")


def cannot():
    """Why there can be no laboratory here; empty when there can."""
    if os.getuid() != 0:
        return "needs root, for network namespaces of its own"
    missing = [name for name in NEEDED if not shutil.which(name)]
    return f"needs {' and '.join(missing)}" if missing else ""


def end_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def own_namespace():
    return os.open(f"/proc/self/task/{threading.get_native_id()}/ns/net", os.O_RDONLY | os.O_CLOEXEC)


class Lab:
    def __init__(self):
        if why := cannot():
            raise tap.Skip(why)
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="glovebox-lab."))
        self.directory.chmod(0o755)
        self.world = self.machine = None
        self.lock = threading.Lock()
        self.control = None

    # --- beginning and end ------------------------------------------------------------------------

    def __enter__(self):
        try:
            registry.make(self.directory)
            self.make_machine()
            self.start_world()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.control:
            self.control.close()
        if self.world:
            self.world.kill()
            self.world.wait()
        if self.machine is not None:
            os.close(self.machine)
        self.world = self.machine = self.control = None
        shutil.rmtree(self.directory, ignore_errors=True)

    def make_machine(self):
        before = own_namespace()
        try:
            check(LIBC.unshare(CLONE_NEWNET), "unshare")
            self.machine = own_namespace()
        finally:
            check(LIBC.setns(before, CLONE_NEWNET), "setns")
            os.close(before)

    def start_world(self):
        self.world = subprocess.Popen([PYTHON, str(HERE / "world.py"), str(self.directory), str(os.getpid())],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.expect("unshared")
        with self.inside():
            self.lay_cable()
        self.world.stdin.write("go\n")
        self.world.stdin.flush()
        self.expect("ready")
        self.control = socket.socket(socket.AF_UNIX)
        self.control.connect(str(self.directory / "control"))
        self.reader = self.control.makefile("rb")
        self.records(places.records())
        self.neighbours()
        self.forget()

    def expect(self, word):
        if self.world.stdout.readline().strip() != word:
            raise LabError("the world does not start")

    def lay_cable(self):
        def ip(*words):
            subprocess.run(["ip", *words], check=True, timeout=20)

        ip("link", "set", "lo", "up")
        ip("link", "add", places.MACHINE_LINK, "type", "veth", "peer", "name", places.WORLD_LINK, "netns", str(self.world.pid))
        for name in ("accept_ra", "accept_dad", "router_solicitations"):
            with contextlib.suppress(OSError):
                pathlib.Path(f"/proc/sys/net/ipv6/conf/{places.MACHINE_LINK}/{name}").write_text("0")
        ip("address", "add", f"{places.MACHINE}/30", "dev", places.MACHINE_LINK)
        ip("-6", "address", "add", f"{places.MACHINE6}/126", "dev", places.MACHINE_LINK, "nodad")
        ip("link", "set", places.MACHINE_LINK, "up")
        ip("route", "add", "default", "via", places.WORLD)
        ip("-6", "route", "add", "default", "via", places.WORLD6)

    def neighbours(self):
        """One packet each way, before anything is looked at, so that both ends know each other."""
        for address in (places.WORLD, places.WORLD6):
            with self.inside(), socket.create_connection((address, places.ECHO_PORTS[0]), 10) as echo:
                echo.sendall(b"x")
                echo.recv(1)

    # --- in the machine's namespace ------------------------------------------------------------------

    @contextlib.contextmanager
    def inside(self):
        """This thread, and what it starts: threads, processes, sockets."""
        before = own_namespace()
        check(LIBC.setns(self.machine, CLONE_NEWNET), "setns")
        try:
            yield self
        finally:
            check(LIBC.setns(before, CLONE_NEWNET), "setns")
            os.close(before)

    def popen(self, argv, **options):
        with self.inside():
            return subprocess.Popen(argv, **options)

    def run(self, argv, timeout=60, **options):
        """A command's (status, stdout, stderr)."""
        with self.inside():
            done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=timeout, check=False,
                                  stdin=subprocess.DEVNULL, **options)
        return done.returncode, done.stdout, done.stderr

    def settings(self, **more):
        """What a service needs to find this world: with "__" for the dot of a setting, as egress__internet="all"."""
        found = {"egress.resolver": places.WORLD, "egress.ca_bundle": str(self.ca)}
        return found | {name.replace("__", "."): value for name, value in more.items()}

    def service(self, **settings):
        """A service that was started in the machine's namespace. Speak to it inside()."""
        with self.inside():  # where its port has to be free too
            running = service.Service(self.settings(**settings))
            try:
                running.start()
            except BaseException:
                running.stop()
                raise
        return running

    @property
    def ca(self):
        return self.directory / "certs/trusted/ca.pem"

    # --- the world -----------------------------------------------------------------------------------

    def order(self, do, **arguments):
        with self.lock:
            self.control.sendall(json.dumps({"do": do, **arguments}).encode() + b"\n")
            answer = json.loads(self.reader.readline())
        if "error" in answer:
            raise LabError(f"{do}: {answer['error']}")
        return answer["value"]

    def records(self, records):
        """Sets names of its DNS; see world_dns.py."""
        self.order("records", records=records)

    def forget(self):
        """All that was seen up to now."""
        self.order("forget")

    def queries(self):
        return self.order("queries")

    def asked(self):
        """The names that DNS questions came for."""
        return sorted({query["name"].lower() for query in self.queries()})

    def requests(self, **wanted):
        """HTTP requests, those where all of wanted holds: host="web.example"."""
        return [each for each in self.order("requests") if all(each[key] == value for key, value in wanted.items())]

    def connections(self):
        return self.order("connections")

    def raw(self, port=None):
        """Connections to the servers that speak no HTTP."""
        return [each for each in self.order("raw") if port in (None, each["port"])]

    def sent(self):
        """Packets that the machine sent: (protocol, target, port)."""
        seen = self.order("packets")
        if seen["missed"]:
            raise LabError(f"{seen['missed']} packets were not kept")
        return [(packet[1], packet[4], packet[5]) for packet in seen["packets"] if packet[0]]

    def carried(self, data):
        """How many packets, either way, had these bytes in them."""
        return self.order("carried", needle=base64.b64encode(data).decode())

    def capture_off(self):
        """Until forget(): for what is too much to keep."""
        self.order("capture_off")

    def wait_for(self, condition):
        return service.wait_for(condition, pause=0.05)


def main():
    if why := cannot():
        print(f"lab.py: {why}", file=sys.stderr)
        return 77
    with Lab() as net:
        environment = os.environ | {"LAB_CA": str(net.ca), "LAB_DNS": places.WORLD, "LAB_CONTROL": str(net.directory / "control")}
        with net.inside():
            return subprocess.run(sys.argv[1:], env=environment, preexec_fn=end_with_parent, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
