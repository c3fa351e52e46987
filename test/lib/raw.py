# SPDX-License-Identifier: Apache-2.0
"""HTTP by hand, for requests that no library would send. Every answer is remembered, so that a suite can hold
all of them against the service's own description (see openapi.py)."""
import base64
import collections
import json
import socket
import struct

Seen = collections.namedtuple("Seen", "method path headers reply")
SEEN = []
HEAD_MAX = 1 << 20
PATIENCE = 60  # seconds: a service that says nothing for so long hangs


class Closed(Exception):
    """The service closed the connection, or reset it, where an answer was to come."""


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def message(self):
        """What an error says; empty when it is not in the form of one."""
        try:
            return str(self.json().get("message", ""))
        except (ValueError, AttributeError):
            return ""

    def __repr__(self):
        return f"{self.status} {self.headers} {self.body[:500]!r}"


class Connection:
    """source: an address of loopback to come from, for tests that are not to be taken for one another."""

    def __init__(self, port, timeout=PATIENCE, source="127.0.0.1", receive_buffer=None):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout)
        self.socket.bind((source, 0))
        self.socket.connect(("127.0.0.1", port))
        self.port = port
        self.buffer = bytearray()  # grows and shrinks in place: answers of 100 MB come in thousands of pieces

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def reset(self):
        """Goes away without a word: a reset instead of an end."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def send(self, data):
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Closed(str(error)) from None

    def send_some(self, data):
        """What can be sent until the other side closes: it may refuse without reading everything."""
        try:
            self.socket.sendall(data)
        except OSError:
            pass

    def more(self):
        try:
            piece = self.socket.recv(1 << 16)
        except ConnectionResetError as error:
            raise Closed(str(error)) from None
        self.buffer += piece
        return piece

    def ended(self):
        """Whether the other side closes, with or without a reset; waits for the connection's time-out."""
        try:
            while self.more():
                pass
        except Closed:
            return True
        except TimeoutError:
            return False
        return True

    def take(self, count):
        while len(self.buffer) < count:
            if not self.more():
                raise Closed(f"ended after {len(self.buffer)} of {count} bytes")
        taken = bytes(self.buffer[:count])
        del self.buffer[:count]
        return taken

    def take_line(self):
        while b"\r\n" not in self.buffer:
            if len(self.buffer) > HEAD_MAX or not self.more():
                raise Closed(f"ended in a line: {self.buffer[:200]!r}")
        line = self.take(self.buffer.index(b"\r\n"))
        del self.buffer[:2]
        return line

    def head(self):
        """Status and headers of the next answer."""
        first = self.take_line()
        if not first:
            raise Closed("an empty line instead of an answer")
        status, headers = int(first.split()[1]), {}
        while line := self.take_line():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        return status, headers

    def chunk(self):
        """The next piece of a chunked body; empty at its end."""
        size = int(self.take_line().split(b";")[0], 16)
        data = self.take(size)
        self.take_line()
        return data

    def reply(self, method="GET"):
        status, headers = self.head()
        if status == 100:
            return self.reply(method)
        body = b""
        if method == "HEAD" or status in (204, 304):
            pass
        elif headers.get("transfer-encoding") == "chunked":
            body = b"".join(iter(self.chunk, b""))
        elif "content-length" in headers:
            body = self.take(int(headers["content-length"]))
        else:
            while self.more():
                pass
            body = self.take(len(self.buffer))
        return Reply(status, headers, body)

    def ask(self, method, path, headers=None, body=None, chunked=False):
        """A well-formed request and its answer, on this connection."""
        headers = {"Host": f"127.0.0.1:{self.port}"} | (headers or {})
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        if body is not None and chunked:
            headers["Transfer-Encoding"] = "chunked"
        elif body is not None:
            headers.setdefault("Content-Length", str(len(body)))
        head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self.send(head.encode("utf-8") + b"\r\n")
        if chunked:
            self.send_chunks(body or b"")
        elif body:
            self.send(body)
        reply = self.reply(method)
        SEEN.append(Seen(method, path, headers, reply))
        return reply

    def send_chunks(self, body, size=1000):
        for at in range(0, len(body), size):
            piece = body[at:at + size]
            self.send(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.send(b"0\r\n\r\n")


class Client:
    """One service and one key; every request on a connection of its own."""

    def __init__(self, port, key, source="127.0.0.1"):
        self.port, self.key, self.source = port, key, source

    def connect(self, timeout=PATIENCE, **options):
        return Connection(self.port, timeout, self.source, **options)

    def ask(self, method, path, body=None, headers=None, chunked=False, timeout=PATIENCE):
        headers = ({"X-API-KEY": self.key} if self.key else {}) | (headers or {})
        with self.connect(timeout) as connection:
            return connection.ask(method, path, headers, body, chunked)

    def create(self, version=2, headers=None, **body):
        path = "/v2/sandboxes" if version == 2 else "/sandboxes"
        reply = self.ask("POST", path, {"templateID": "base"} | body, headers)
        assert reply.status == 201, repr(reply)
        return Box(self, reply.json())


class Box:
    """The data plane of a sandbox."""

    def __init__(self, client, created):
        self.client, self.created = client, created
        self.id, self.token = created["sandboxID"], created.get("envdAccessToken")

    def headers(self, token=True):
        headers = {"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": "49983"}
        if token and self.token:
            headers["X-Access-Token"] = self.token
        return headers

    def ask(self, method, path, body=None, headers=None, token=True, **options):
        with self.client.connect() as connection:
            return connection.ask(method, path, self.headers(token) | (headers or {}), body, **options)

    def rpc(self, method, message, headers=None):
        """A unary call: status and decoded answer."""
        reply = self.ask("POST", "/" + method, message, {"Connect-Protocol-Version": "1"} | (headers or {}))
        return reply.status, reply.json() if reply.body else None

    def stream(self, method, message, headers=None, timeout=PATIENCE):
        """Opens a stream. Returns the connection behind its head; messages() reads it."""
        connection = self.client.connect(timeout)
        payload = message if isinstance(message, bytes) else envelope(json.dumps(message).encode())
        headers = self.headers() | {"Host": f"127.0.0.1:{self.client.port}", "Content-Length": str(len(payload)),
                                    "Content-Type": "application/connect+json", "Connect-Protocol-Version": "1",
                                    **(headers or {})}
        connection.send(f"POST /{method} HTTP/1.1\r\n".encode() +
                        "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode() + b"\r\n" + payload)
        connection.status, connection.reply_headers = connection.head()
        return connection

    def start(self, command, headers=None, timeout=PATIENCE, **more):
        message = {"process": {"cmd": "/bin/bash", "args": ["-l", "-c", command]}, "stdin": False} | more
        return self.stream("process.Process/Start", message, headers, timeout)

    def run(self, command, headers=None):
        """Output, errors and the end event of a command."""
        with self.start(command, headers) as connection:
            return collect(messages(connection))

    def kill(self):
        return self.client.ask("DELETE", f"/sandboxes/{self.id}")


def envelope(payload, flags=0):
    return struct.pack(">BI", flags, len(payload)) + payload


def messages(connection):
    """The envelopes of a stream, (flags, decoded JSON); ends behind the one with flag 2."""
    data = b""
    while True:
        while len(data) < 5 or len(data) < 5 + struct.unpack(">I", data[1:5])[0]:
            piece = connection.chunk()
            if not piece:
                raise Closed(f"the stream ended without its last envelope, {len(data)} bytes over")
            data += piece
        flags, length = struct.unpack(">BI", data[:5])
        yield flags, json.loads(data[5:5 + length])
        data = data[5 + length:]
        if flags & 2:
            return


def collect(stream):
    """Everything of a command's stream: (stdout, stderr, end event, last envelope)."""
    out, err, end, last = b"", b"", None, None
    for flags, message in stream:
        if flags & 2:
            last = message
            continue
        event = message["event"]
        data = event.get("data", {})
        out += base64.b64decode(data.get("stdout", ""))
        err += base64.b64decode(data.get("stderr", ""))
        end = event.get("end", end)
    return out, err, end, last
