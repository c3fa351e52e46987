# SPDX-License-Identifier: Apache-2.0
"""The laboratory's web server: HTTP/1.1 by hand, so that it sees every byte and serves whatever it is sent, also a
second request that nobody should have let through. The same for every name and address.

    /hello          "hello from HOST"                 /seen         the request as JSON
    /bytes/N        N bytes                           /upload       what was sent: length and SHA-256, as JSON
    /slow/S         answers after S seconds           /drip/N       N lines, one each tenth of a second
    /stall          never answers                     /half         a part of its answer, then silence
    /burst/N        N bytes of an answer of more, then silence
    /reset          resets the connection             /moved/URL    a redirect
    /socket         a WebSocket that sends back       /git/…        git's own HTTP backend
    /files/…        files of a directory: package registries
"""
import base64
import contextlib
import hashlib
import json
import os
import pathlib
import socket
import struct
import subprocess
import threading
import time
import urllib.parse

HEAD_MAX = 1 << 16
BLOCK = bytes(1 << 20)


class Request:
    def __init__(self, line, headers):
        self.method, self.target, self.version = (line.split(" ") + ["", "", ""])[:3]
        self.headers = headers
        self.path = urllib.parse.urlsplit(self.target).path if not self.target.startswith("/") else self.target.partition("?")[0]
        self.body = b""

    def header(self, name, default=""):
        return next((value for key, value in self.headers if key.lower() == name), default)


class Web:
    """directory: what /files and /git show. certificates: see certs.py."""

    def __init__(self, directory, certificates):
        self.directory = pathlib.Path(directory)
        self.lock = threading.Lock()
        self.requests, self.connections, self.names = [], [], {}
        self.tls = certificates.server_context(self.heard)
        self.block = os.memfd_create("block")
        os.write(self.block, BLOCK)

    def heard(self, sock, name):
        self.names[id(sock)] = name

    def note(self, **what):
        with self.lock:
            self.requests.append(what)

    # --- connections ------------------------------------------------------------------------------

    def serve(self, sock, tls):
        at, peer = sock.getsockname(), sock.getpeername()
        self.connections.append({"at": at[0].removeprefix("::ffff:"), "port": at[1], "peer": peer[0], "tls": tls})
        name = None
        with contextlib.suppress(OSError, ValueError, IndexError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls:
                sock = self.tls.wrap_socket(sock, server_side=True)
                name = self.names.pop(id(sock), None)
            with sock.makefile("rb") as reader:
                number = 0
                while (request := self.read_request(reader, sock)) is not None:
                    number += 1
                    self.note(at=at[0].removeprefix("::ffff:"), port=at[1], tls=tls, sni=name, method=request.method, target=request.target,
                              host=request.header("host"), headers=request.headers, nth=number, body=len(request.body))
                    if not self.respond(request, sock) or "close" in request.header("connection").lower():
                        break
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
        sock.close()

    def read_request(self, reader, sock):
        line = reader.readline(HEAD_MAX)
        if not line:
            return None
        headers = []
        while (more := reader.readline(HEAD_MAX)) not in (b"\r\n", b"\n", b""):
            name, _, value = more.decode("latin-1").partition(":")
            headers.append([name, value.strip()])
        request = Request(line.decode("latin-1").rstrip("\r\n"), headers)
        if request.header("expect").lower() == "100-continue":
            sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.body = self.read_body(reader, request)
        return request

    def read_body(self, reader, request):
        if "chunked" in request.header("transfer-encoding").lower():
            body = b""
            while size := int(reader.readline().split(b";")[0], 16):
                body += reader.read(size)
                reader.readline()
            while reader.readline() not in (b"\r\n", b"\n", b""):
                pass
            return body
        return reader.read(int(request.header("content-length", "0")))

    # --- answers ----------------------------------------------------------------------------------

    def respond(self, request, sock):
        """Whether the connection goes on."""
        first, _, rest = request.path.lstrip("/").partition("/")
        handler = getattr(self, f"do_{first}", None)
        if handler is None:
            return self.answer(sock, b"nothing here\n", 404)
        return handler(request, sock, rest)

    def answer(self, sock, body, status=200, kind="text/plain", more="", head=False):
        sock.sendall(f"HTTP/1.1 {status} Lab\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() +
                     (b"" if head else body))
        return True

    def do_hello(self, request, sock, _):
        return self.answer(sock, f"hello from {request.header('host')}\n".encode(), head=request.method == "HEAD")

    def do_seen(self, request, sock, _):
        seen = {"method": request.method, "target": request.target, "headers": request.headers, "body": len(request.body)}
        return self.answer(sock, json.dumps(seen).encode(), kind="application/json")

    def do_upload(self, request, sock, _):
        found = {"length": len(request.body), "sha256": hashlib.sha256(request.body).hexdigest()}
        return self.answer(sock, json.dumps(found).encode(), kind="application/json")

    def do_bytes(self, _, sock, rest):
        return self.send_bytes(sock, int(rest), int(rest))

    def do_burst(self, _, sock, rest):
        self.send_bytes(sock, 2 * int(rest), int(rest))
        time.sleep(600)
        return False

    def send_bytes(self, sock, length, left):
        sock.sendall(f"HTTP/1.1 200 Lab\r\nContent-Length: {length}\r\n\r\n".encode())
        while left:
            piece = min(left, len(BLOCK))
            # Without a copy where there is no TLS: what is measured is not this server.
            left -= sock.send(BLOCK[:piece]) if hasattr(sock, "version") else os.sendfile(sock.fileno(), self.block, 0, piece)
        return True

    def do_slow(self, _, sock, rest):
        time.sleep(float(rest))
        return self.answer(sock, b"at last\n")

    def do_drip(self, _, sock, rest):
        sock.sendall(b"HTTP/1.1 200 Lab\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for number in range(int(rest)):
            sock.sendall(b"data: %d\n\n" % number)
            time.sleep(0.1)
        return False

    def do_stall(self, _, sock, __):
        time.sleep(600)
        return False

    def do_half(self, _, sock, __):
        sock.sendall(b"HTTP/1.1 200 Lab\r\nContent-Length: 1000\r\n\r\nhalf")
        time.sleep(600)
        return False

    def do_reset(self, _, sock, __):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False

    def do_moved(self, _, sock, rest):
        return self.answer(sock, b"", 302, more=f"Location: {urllib.parse.unquote(rest)}\r\n")

    def do_socket(self, request, sock, _):
        key = request.header("sec-websocket-key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        sock.sendall(f"HTTP/1.1 101 Lab\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n".encode())
        while piece := sock.recv(1 << 16):
            sock.sendall(piece)
        return False

    # --- files and git ----------------------------------------------------------------------------

    def do_files(self, request, sock, rest):
        root = (self.directory / "files").resolve()
        path = (root / urllib.parse.unquote(rest)).resolve()
        if not path.is_relative_to(root):
            return self.answer(sock, b"no\n", 403)
        path = path / "index.html" if path.is_dir() else path
        if not path.is_file():
            return self.answer(sock, b"nothing here\n", 404)
        kind = {".html": "text/html", ".json": "application/json"}.get(path.suffix, "application/octet-stream")
        return self.answer(sock, path.read_bytes(), kind=kind, head=request.method == "HEAD")

    def do_git(self, request, sock, rest):
        environment = {"PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": str(self.directory / "git"), "GIT_HTTP_EXPORT_ALL": "1",
                       "PATH_INFO": "/" + rest, "REQUEST_METHOD": request.method, "QUERY_STRING": request.target.partition("?")[2],
                       "CONTENT_TYPE": request.header("content-type"), "CONTENT_LENGTH": str(len(request.body)),
                       "HTTP_CONTENT_ENCODING": request.header("content-encoding"), "HTTP_GIT_PROTOCOL": request.header("git-protocol"),
                       "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
        done = subprocess.run(["git", "http-backend"], input=request.body, capture_output=True, env=environment, check=False)
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        lines = [line for line in head.decode("latin-1").split("\r\n") if not line.lower().startswith("status:")]
        status = next((line.split()[1] for line in head.decode("latin-1").split("\r\n") if line.lower().startswith("status:")), "200")
        sock.sendall("\r\n".join([f"HTTP/1.1 {status} Lab", *lines, f"Content-Length: {len(body)}", "", ""]).encode() + body)
        return True


