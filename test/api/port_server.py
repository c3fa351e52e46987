# SPDX-License-Identifier: Apache-2.0
"""The program in the box for part_ports.py: a web server made by hand, so that it can answer what no library would.
port_server.py PORT [ADDRESS]. The path says what to do."""
import base64
import hashlib
import json
import socket
import sys
import threading
import time
import urllib.parse


class Gone(Exception):
    """The other side has ended the connection."""


class Peer:
    def __init__(self, sock):
        self.socket, self.buffer = sock, b""

    def more(self):
        piece = self.socket.recv(1 << 16)
        if not piece:
            raise Gone
        self.buffer += piece

    def line(self):
        while b"\r\n" not in self.buffer:
            self.more()
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line.decode("latin-1")

    def pieces(self, count):
        while count > 0:
            if not self.buffer:
                self.more()
            piece, self.buffer = self.buffer[:count], self.buffer[count:]
            count -= len(piece)
            yield piece

    def take(self, count):
        return b"".join(self.pieces(count))

    def send(self, data):
        self.socket.sendall(data)


class Request:
    """lines: as they came, for tests that look at every byte of the head."""

    def __init__(self, peer):
        first = peer.line()
        self.method, self.target, self.version = first.split(" ")
        self.lines = [first]
        while line := peer.line():
            self.lines.append(line)
        self.fields = [line.split(": ", 1) for line in self.lines[1:]]
        self.peer = peer

    def get(self, name):
        return next((value for key, value in self.fields if key.lower() == name.lower()), None)

    def body(self):
        if self.get("Transfer-Encoding") == "chunked":
            while size := int(self.peer.line(), 16):
                yield from self.peer.pieces(size)
                self.peer.line()
            self.peer.line()
        else:
            yield from self.peer.pieces(int(self.get("Content-Length") or 0))


def answer(peer, body, status="200 OK", fields=()):
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *fields]
    peer.send("\r\n".join(head).encode() + b"\r\n\r\n" + body)
    return True


def do_echo(peer, request, _):
    digest, count = hashlib.sha256(), 0
    for piece in request.body():
        digest.update(piece)
        count += len(piece)
    body = json.dumps({"lines": request.lines, "bytes": count, "sha256": digest.hexdigest(),
                       "connection": id(peer)}).encode()
    return answer(peer, b"" if request.method == "HEAD" else body, fields=("Content-Type: application/json",))


def do_raw(peer, request, query):
    """Exactly these bytes, or those of the body, and the end of the connection."""
    body = b"".join(request.body())
    peer.send(base64.urlsafe_b64decode(query["bytes"]) if "bytes" in query else body)
    return "keep" in query


def do_big(peer, _, query):
    count = int(query["bytes"])
    peer.send(f"HTTP/1.1 200 OK\r\nContent-Length: {count}\r\n\r\n".encode())
    piece = bytes(range(256)) * 256
    while count:
        peer.send(piece[:count])
        count -= min(count, len(piece))
    return True


NEXT = threading.Semaphore(0)


def do_next(peer, _, __):
    """Lets the next event happen."""
    NEXT.release()
    return answer(peer, b"")


def do_events(peer, _, query):
    """Server-sent events, one each time somebody asks for the next."""
    peer.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    for number in range(int(query["events"])):
        data = f"data: {number}\n\n".encode()
        peer.send(b"%x\r\n%s\r\n" % (len(data), data))
        NEXT.acquire()  # pylint: disable=consider-using-with
    peer.send(b"0\r\n\r\n")
    return True


def do_early(peer, _, query):
    """An answer before the body was read, which is then never read, or (keep) taken for the next request."""
    answer(peer, b"enough", "413 Content Too Large", () if "keep" in query else ("Connection: close",))
    time.sleep(0.3)
    return "keep" in query


def do_hang(_, __, query):
    time.sleep(float(query["seconds"]))
    return False


def do_half(peer, _, query):
    """Less than was promised, by length, by chunks, or (end) with nothing that says so; then it waits or goes."""
    framing = {"length": "Content-Length: 1000", "chunks": "Transfer-Encoding: chunked", "end": "X-Nothing: said"}[query["by"]]
    peer.send(f"HTTP/1.1 200 OK\r\n{framing}\r\n\r\n".encode() + (b"5\r\nhello\r\n" if query["by"] == "chunks" else b"hello"))
    time.sleep(float(query["seconds"]))
    return False


def do_socket(peer, request, query):
    """A WebSocket of which every frame comes back as it was sent, mask and all: bytes are bytes here."""
    key = (request.get("Sec-WebSocket-Key") or "") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
    greeting = query.get("greeting", "").encode()
    peer.send(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
              f"Sec-WebSocket-Accept: {accept}\r\nX-Lines: {len(request.lines)}\r\n\r\n".encode() + greeting)
    while True:
        if not peer.buffer:
            peer.more()
        data, peer.buffer = peer.buffer, b""
        peer.send(data)
        if data.endswith(b"BYE"):
            return False


def serve(sock):
    peer = Peer(sock)
    try:
        while True:
            request = Request(peer)
            path, _, query = request.target.partition("?")
            words = dict(urllib.parse.parse_qsl(query))
            do = globals().get("do_" + path.strip("/").partition("/")[0], do_echo)
            if not do(peer, request, words) or request.get("Connection") == "close":
                return
    except (Gone, OSError):
        pass
    finally:
        sock.close()


def main():
    address = sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1"
    with socket.create_server((address, int(sys.argv[1])), backlog=256,
                              family=socket.AF_INET6 if ":" in address else socket.AF_INET) as server:
        while True:
            sock, _ = server.accept()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=serve, args=(sock,), daemon=True).start()


main()
