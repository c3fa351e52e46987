# SPDX-License-Identifier: Apache-2.0
"""The world outside, for one laboratory: a network namespace of its own in which every address there is leads to
the servers here. Started by lab.py, ends with it. Orders come as JSON lines over a unix socket; see Orders."""
import base64
import contextlib
import ctypes
import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import certs  # noqa: E402  pylint: disable=wrong-import-position
import places  # noqa: E402  pylint: disable=wrong-import-position
import world_capture  # noqa: E402  pylint: disable=wrong-import-position
import world_dns  # noqa: E402  pylint: disable=wrong-import-position
import world_http  # noqa: E402  pylint: disable=wrong-import-position

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET, PR_SET_PDEATHSIG = 0x40000000, 1
BANNER = b"SSH-2.0-lab_1.0\r\n"


def ip(*words):
    subprocess.run(["ip", *words], check=True, timeout=20)


def configure():
    """Every address is ours: a route to ourselves that only the cable's own network is excepted from."""
    for name, value in (("all/accept_ra", 0), ("all/accept_dad", 0), (f"{places.WORLD_LINK}/router_solicitations", 0)):
        with contextlib.suppress(OSError):
            pathlib.Path(f"/proc/sys/net/ipv6/conf/{name}").write_text(str(value))
    pathlib.Path("/proc/sys/net/ipv4/ip_nonlocal_bind").write_text("1")
    ip("link", "set", "lo", "up")
    ip("address", "add", f"{places.WORLD}/30", "dev", places.WORLD_LINK)
    ip("-6", "address", "add", f"{places.WORLD6}/126", "dev", places.WORLD_LINK, "nodad")
    ip("link", "set", places.WORLD_LINK, "up")
    ip("route", "add", "local", "0.0.0.0/0", "dev", "lo", "table", "main")
    ip("-6", "route", "add", "local", "::/0", "dev", "lo", "table", "main")
    ip("route", "add", "blackhole", places.NOBODY)


class World:
    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.certificates = certs.Certificates(self.directory / "certs")
        self.dns = world_dns.Dns()
        self.web = world_http.Web(self.directory, self.certificates)
        self.capture = world_capture.Capture(places.WORLD_LINK)
        self.raw = []

    # --- listening --------------------------------------------------------------------------------

    def listen(self, port, function):
        sock = socket.socket(socket.AF_INET6)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind(("::", port))
        sock.listen(4096)

        def accept():
            while True:
                try:
                    connection, peer = sock.accept()
                except OSError:
                    time.sleep(0.05)
                    continue
                threading.Thread(target=function, args=(connection, port, peer), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()

    def start(self):
        udp = world_dns.udp_socket()
        threading.Thread(target=self.dns.serve_udp, args=(udp,), daemon=True).start()
        self.listen(53, lambda sock, port, peer: self.dns.serve_tcp(sock))
        for port in places.HTTP_PORTS:
            self.listen(port, lambda sock, port, peer: self.web.serve(sock, False))
        for port in places.HTTPS_PORTS:
            self.listen(port, lambda sock, port, peer: self.web.serve(sock, True))
        for port in places.ECHO_PORTS:
            self.listen(port, self.echo)
        self.listen(places.SSH_PORT, self.server_first)
        self.listen(places.GIT_PORT, self.git)
        self.listen(places.DEAF_PORT, self.deaf)
        self.listen(places.PROXY_PORT, self.proxy)

    def note(self, sock, port, **more):
        self.raw.append({"at": sock.getsockname()[0].removeprefix("::ffff:"), "port": port, "time": time.time(), **more})

    # --- servers that are not for HTTP --------------------------------------------------------------

    def echo(self, sock, port, _):
        self.note(sock, port)
        entry = self.raw[-1]
        entry["data"] = ""
        with contextlib.suppress(OSError), sock:
            while piece := sock.recv(1 << 16):
                entry["data"] = (entry["data"] + piece.decode("latin-1"))[:4096]
                sock.sendall(piece)

    def server_first(self, sock, port, peer):
        with contextlib.suppress(OSError):
            sock.sendall(BANNER)
        self.echo(sock, port, peer)

    def deaf(self, sock, port, _):
        self.note(sock, port)
        time.sleep(600)
        sock.close()

    def git(self, sock, port, _):
        self.note(sock, port)
        with sock:
            subprocess.run(["git", "-c", "safe.directory=*", "daemon", "--inetd", "--export-all", f"--base-path={self.directory / 'git'}"],
                           stdin=sock.fileno(), stdout=sock.fileno(), stderr=subprocess.DEVNULL, check=False)

    def proxy(self, sock, port, _):
        """Another machine's proxy: CONNECT and absolute form, with a password. Everything it can reach is here."""
        with contextlib.suppress(OSError, ValueError), sock:
            head = b""
            while b"\r\n\r\n" not in head:
                if not (piece := sock.recv(4096)):
                    return
                head += piece
            lines = head.split(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
            self.note(sock, port, head=lines)
            expected = "Basic " + base64.b64encode(places.PROXY_LOGIN.encode()).decode()
            if not any(line.lower().startswith("proxy-authorization:") and line.split(":", 1)[1].strip() == expected for line in lines):
                sock.sendall(b"HTTP/1.1 407 Lab\r\nContent-Length: 0\r\nProxy-Authenticate: Basic\r\n\r\n")
                return
            method, target, _ = lines[0].split(" ")
            if places.UNREACHED in target:
                sock.sendall(b"HTTP/1.1 503 Lab\r\nContent-Length: 0\r\n\r\n")
                return
            port = int(target.rpartition(":")[2]) if method == "CONNECT" else int((re.findall(r"^http://[^/]*:(\d+)", target) or ["80"])[0])
            with socket.create_connection(("127.0.0.1", port)) as upstream:
                if method == "CONNECT":
                    sock.sendall(b"HTTP/1.1 200 Lab\r\n\r\n")
                    upstream.sendall(head.split(b"\r\n\r\n", 1)[1])
                else:
                    upstream.sendall(head)
                relay(sock, upstream)


def relay(one, other):
    while True:
        for ready in select.select([one, other], [], [], 60)[0] or [None]:
            piece = ready.recv(1 << 16) if ready else b""
            if not piece:
                return
            (other if ready is one else one).sendall(piece)


class Orders:
    """What lab.py may ask for; each method is one order, its arguments are the order's."""

    def __init__(self, world):
        self.world = world

    def records(self, records):
        self.world.dns.set(records)

    def queries(self):
        return self.world.dns.queries[:]

    def requests(self):
        return self.world.web.requests[:]

    def connections(self):
        return self.world.web.connections[:]

    def raw(self):
        return self.world.raw[:]

    def forget(self):
        """All that was seen up to now; begins a new capture."""
        self.world.dns.queries.clear()
        self.world.web.requests.clear()
        self.world.web.connections.clear()
        self.world.raw.clear()
        self.world.capture.start()

    def capture_off(self):
        self.world.capture.stop()

    def packets(self):
        time.sleep(0.05)  # what is on the cable arrives
        return self.world.capture.seen()

    def carried(self, needle):
        return self.world.capture.carried(base64.b64decode(needle))


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            order = json.loads(line)
            name = order.pop("do")
            try:
                value = {"value": getattr(self.server.orders, name)(**order)}
            except Exception as error:  # pylint: disable=broad-except
                value = {"error": f"{type(error).__name__}: {error}"}
            self.wfile.write(json.dumps(value).encode() + b"\n")


class Control(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


def main():
    directory, parent = sys.argv[1], int(sys.argv[2])
    # Whoever started it may be killed at any time: then this is all that is left to tidy up.
    signal.signal(signal.SIGTERM, lambda *_: (shutil.rmtree(directory, ignore_errors=True), os._exit(0)))
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        return 1
    threading.stack_size(256 << 10)
    if LIBC.unshare(CLONE_NEWNET) != 0:
        print(os.strerror(ctypes.get_errno()), file=sys.stderr)
        return 1
    print("unshared", flush=True)
    sys.stdin.readline()  # the cable is in
    configure()
    world = World(directory)
    world.start()
    with Control(str(pathlib.Path(directory) / "control"), Handler) as control:
        control.orders = Orders(world)
        print("ready", flush=True)
        control.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
