# SPDX-License-Identifier: Apache-2.0
"""A lean client for bench/interpreter: raw HTTP/1.1 on kept-alive connections, one process, one request at a
time on each connection. It shares two processors with what it measures, so it parses no more than it must."""
import json
import selectors
import socket
import time

PRINTED = b'"stdout"'
RECEIVE = 1 << 16


class Unexpected(Exception):
    """An answer that is not the one that is measured."""


def request(method, path, headers, body=None):
    """The bytes of a request: made once, sent many times."""
    payload = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *(f"{name}: {value}" for name, value in headers.items())]
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(payload)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + payload


def whole(answer):
    """Whether this is all of an answer. A chunk with these bytes at its end would fool it; ours are JSON lines."""
    end = answer.find(b"\r\n\r\n")
    if end < 0:
        return False
    head = bytes(answer[:end]).lower()
    if b"\r\ntransfer-encoding: chunked" in head:
        return answer.endswith(b"\r\n0\r\n\r\n")
    at = head.find(b"\r\ncontent-length:")
    length = int(head[at + 17:].split(b"\r\n", 1)[0]) if at >= 0 else 0
    return len(answer) >= end + 4 + length


def status_of(answer):
    return int(answer[9:12])


def body_of(answer):
    return bytes(answer[answer.find(b"\r\n\r\n") + 4:])


class Sandbox:
    """One that was created, and its requests."""

    def __init__(self, key, created):
        self.id = created["sandboxID"]
        self.headers = {"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": "49999"}
        if created.get("envdAccessToken"):
            self.headers["X-Access-Token"] = created["envdAccessToken"]
        self.remove = request("DELETE", f"/sandboxes/{self.id}", {"X-API-KEY": key})

    def execute(self, code, context=None):
        return request("POST", "/execute", self.headers, {"code": code} | ({"context_id": context} if context else {}))


def create(key):
    return request("POST", "/v2/sandboxes", {"X-API-KEY": key}, {"templateID": "code-interpreter-v1", "timeout": 3600})


def check_cell(answer, printed=b"1\\n"):
    if status_of(answer) != 200 or printed not in answer or b'"error"' in answer:
        raise Unexpected(f"a cell answered {bytes(answer)[:2000]!r}")


def check_status(answer, want):
    if status_of(answer) != want:
        raise Unexpected(f"{want} was expected: {bytes(answer)[:1000]!r}")
    return answer


class Connection:
    def __init__(self, port, timeout=60):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, data):
        """The whole answer, and when its first printed line was there (None when it printed nothing)."""
        self.socket.sendall(data)
        answer, printed = bytearray(), None
        while not whole(answer):
            piece = self.socket.recv(RECEIVE)
            if not piece:
                raise Unexpected(f"the connection was closed after {bytes(answer)[:500]!r}")
            answer += piece
            if printed is None and PRINTED in answer:
                printed = time.perf_counter()
        return answer, printed

    def create(self, key):
        answer, _ = self.ask(create(key))
        return Sandbox(key, json.loads(body_of(check_status(answer, 201))))

    def context(self, sandbox):
        """The id of a new Python context."""
        answer, _ = self.ask(request("POST", "/contexts", sandbox.headers, {}))
        return json.loads(body_of(check_status(answer, 200)))["id"]

    def remove(self, sandbox):
        check_status(self.ask(sandbox.remove)[0], 204)

    def close(self):
        self.socket.close()


def drive(port, conversations):
    """Many conversations at once, each on a connection of its own. A conversation is a generator: it yields a
    request and is sent the whole answer; it ends when it has had enough."""
    selector = selectors.DefaultSelector()
    for conversation in conversations:
        connection = socket.create_connection(("127.0.0.1", port), 60)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        selector.register(connection, selectors.EVENT_READ, [conversation, bytearray()])
        connection.sendall(next(conversation))
    while selector.get_map():
        ready = selector.select(60)
        if not ready:
            raise Unexpected("no answer for a minute")
        for key, _ in ready:
            listen(selector, key.fileobj, key.data)


def listen(selector, connection, state):
    conversation, answer = state
    piece = connection.recv(RECEIVE)
    if not piece:
        raise Unexpected(f"the connection was closed after {bytes(answer)[:500]!r}")
    answer += piece
    if not whole(answer):
        return
    state[1] = bytearray()
    try:
        connection.sendall(conversation.send(answer))
    except StopIteration:
        selector.unregister(connection)
        connection.close()
