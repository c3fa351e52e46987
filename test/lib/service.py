# SPDX-License-Identifier: Apache-2.0
"""A glovebox service for tests: started on a free port of loopback with a state directory of its own,
ended by its process id."""
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import tempfile
import time

TEST = pathlib.Path(__file__).resolve().parent.parent
ROOT = TEST.parent
BUILD = pathlib.Path(os.environ.get("GLOVEBOX_BUILD") or os.environ.get("BUILD") or ROOT / "build")
GLOVEBOX = os.environ.get("GLOVEBOX") or str(BUILD / "src/cli/glovebox")
# What is not there after so long never comes, however busy the machine is.
START_SECONDS = STOP_SECONDS = PATIENCE = 60
# Nothing of the caller's environment may change what is tested.
CLEAN = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8",
         "GLOVEBOX_LANGUAGES": str(ROOT / "languages")}


class ServiceError(Exception):
    """The service does not do what every test needs of it."""


HELD = []  # sockets that keep ports for us


def free_port():
    """A port of loopback that nobody else is given as long as we live. A service, which does not mind a socket there
    that does not listen (SO_REUSEADDR), can have it, and after its end the next one."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    HELD.append(held)
    return held.getsockname()[1]


def children(pid):
    """The process ids of a process's children, whichever thread started them."""
    found = []
    with contextlib.suppress(OSError):
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


def program_of(pid):
    """The name of a process's program; empty when it is gone or is only being started."""
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


def wait_for(condition, seconds=PATIENCE, pause=0.02):
    """What condition() gave at last: the first true value, or the last one when the time is over. Give it seconds only
    where something must not happen."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > deadline:
            return value
        time.sleep(pause)


def left_behind():
    """Boxes whose owner is gone: see left.sh."""
    done = subprocess.run(["bash", "-c", f". '{TEST}/left.sh'; left_behind"], capture_output=True,
                          text=True, check=False)
    return done.stdout.strip()


class Service:
    """settings: {"limits.sandboxes": 3}; keep: a state directory that outlives it; ca: who signed its certificate, if it
    did not itself."""

    def __init__(self, settings=None, state=None, port=None, ca=None):
        self.settings = dict(settings or {})
        self.own_state = state is None
        self.state = state or tempfile.mkdtemp(prefix="glovebox-test.")
        self.tls = ssl.create_default_context(cafile=ca or self.settings["server.tls_cert"]) if "server.tls_cert" in self.settings else None
        self.port = port or free_port()
        self.url = f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"
        self.log_path = os.path.join(tempfile.gettempdir(), f"glovebox-test-{os.getpid()}-{self.port}.log")
        self.process = None
        self.key = None

    def environment(self):
        return CLEAN | {"GLOVEBOX_" + name.replace(".", "_").upper(): str(value)
                        for name, value in self.settings.items()}

    def start(self):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [GLOVEBOX, "serve", "--state", self.state, "--listen", f"127.0.0.1:{self.port}"],
                env=self.environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                # As who starts it in the background of a script: nothing in a sandbox may come to know of it.
                preexec_fn=lambda: signal.signal(signal.SIGQUIT, signal.SIG_IGN))  # pylint: disable=subprocess-popen-preexec-fn
        if not wait_for(lambda: self.ready() or self.process.poll() is not None, START_SECONDS) or \
                self.process.poll() is not None:
            self.kill()
            raise ServiceError(f"the service did not start:\n{self.log_tail()}")
        if self.key is None:
            self.key = self.new_key()
        return self

    def new_key(self, *options):
        done = subprocess.run([GLOVEBOX, "key", "create", "--state", self.state, *options],
                              env=CLEAN, capture_output=True, text=True, timeout=PATIENCE, check=False)
        if done.returncode != 0:
            raise ServiceError(f"glovebox key create: status {done.returncode}: {done.stderr}")
        return done.stdout.strip()

    def ready(self):
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.ask("GET", "/health")[0] in (200, 204)
        return False

    def ask(self, method, path, body=None, headers=None, timeout=PATIENCE):
        """One request on a connection of its own: status, decoded JSON (or text), headers."""
        if self.tls:
            self.tls.check_hostname = False  # the certificate is for the domain
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=self.tls)
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        headers = {"X-API-KEY": self.key or ""} | (headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers = {"Content-Type": "application/json"} | headers
        try:
            connection.request(method, path, body, headers)
            reply = connection.getresponse()
            data = reply.read()
        finally:
            connection.close()
        try:
            value = json.loads(data)
        except ValueError:
            value = data.decode(errors="replace")
        return reply.status, value, {name.lower(): text for name, text in reply.getheaders()}

    def log(self):
        with contextlib.suppress(OSError):
            return pathlib.Path(self.log_path).read_text(errors="replace")
        return ""

    def log_tail(self, lines=15):
        """The last it said, requests aside, and whether the warden is still there."""
        status = self.process.poll() if self.process else None
        said = [line for line in self.log().splitlines() if '"event":"request"' not in line][-lines:]
        return "\n".join([*said, "the warden runs" if status is None else f"the warden ended with status {status}"])

    def server_pid(self):
        """The server room's process, which the warden starts again when it dies."""
        for pid in children(self.process.pid):
            if program_of(pid).startswith("glovebox-server"):
                return pid
        return None

    @contextlib.contextmanager
    def store_locked(self):
        """Nothing can be saved meanwhile: whoever wants to waits for some seconds, and fails."""
        with contextlib.closing(sqlite3.connect(f"{self.state}/db/glovebox.db", isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")
            yield
            db.execute("ROLLBACK")

    def agents(self):
        """Process ids (seen from here) of what runs as pid 1 in the service's boxes."""
        found = []
        for pid in children(self.process.pid):
            with contextlib.suppress(OSError):
                status = pathlib.Path(f"/proc/{pid}/status").read_text()
                inner = [line for line in status.splitlines() if line.startswith("NSpid:")][0].split()[1:]
                if len(inner) > 1 and inner[-1] == "1":
                    found.append(pid)
        return found

    def kill(self, how=signal.SIGKILL):
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
        if self.process:
            try:
                return self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise ServiceError(f"the service did not end:\n{self.log_tail()}") from None
        return None

    def stop(self):
        """Ends it as an administrator would. Returns its status; removes what it kept for the test."""
        status = None
        try:
            status = self.kill(signal.SIGTERM)
        finally:
            if self.own_state:
                shutil.rmtree(self.state, ignore_errors=True)
            with contextlib.suppress(OSError):
                os.unlink(self.log_path)
        return status
