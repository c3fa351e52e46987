# SPDX-License-Identifier: Apache-2.0
"""Port 49999 by hand: cells and contexts."""
import contextlib
import json

import raw


def headers(box, token=True):
    found = {"E2b-Sandbox-Id": box.id, "E2b-Sandbox-Port": "49999"}
    if token and box.token:
        found["X-Access-Token"] = box.token
    return found


def ask(box, method, path, body=None, token=False, more=None, chunked=False, timeout=60):
    """One request to the interpreter's port; like clients, only cells show the token."""
    with box.client.connect(timeout) as connection:
        return connection.ask(method, path, headers(box, token) | (more or {}), body, chunked)


def parse(line):
    """An event, if the line is as clients need it: ASCII, not empty, its type first."""
    assert line and all(byte < 0x80 for byte in line), line[:200]
    assert line.startswith(b'{"type":"'), line[:200]
    return json.loads(line)


def cell(box, code, timeout=60, **body):
    """All events of a cell."""
    reply = ask(box, "POST", "/execute", {"code": code} | body, token=True, timeout=timeout)
    assert reply.status == 200, repr(reply)
    assert reply.headers["content-type"] == "application/x-ndjson", reply.headers
    assert reply.body.endswith(b"\n"), reply.body[-100:]
    found = [parse(line) for line in reply.body[:-1].split(b"\n")]
    assert found[-1] == {"type": "end_of_execution"}, found[-3:]
    return found


@contextlib.contextmanager
def opened(box, code, timeout=raw.PATIENCE, **body):
    """A cell whose head has come; read it with events()."""
    payload = json.dumps({"code": code} | body).encode()
    lines = headers(box) | {"Host": f"127.0.0.1:{box.client.port}", "Content-Type": "application/json",
                            "Content-Length": str(len(payload))}
    with box.client.connect(timeout) as connection:
        connection.send(b"POST /execute HTTP/1.1\r\n" +
                        "".join(f"{name}: {value}\r\n" for name, value in lines.items()).encode() + b"\r\n" + payload)
        status, _ = connection.head()
        assert status == 200, (status, connection.buffer)
        yield connection


def events(connection):
    """The events as they come, until the reply ends."""
    data = b""
    while piece := connection.chunk():
        data += piece
        while b"\n" in data:
            line, data = data.split(b"\n", 1)
            yield parse(line)
    assert not data, data


def until(stream, kind):
    """Reads up to and with the first event of this type."""
    for event in stream:
        if event["type"] == kind:
            return event
    raise AssertionError(f"there was no {kind}")


def text(found, stream="stdout"):
    return "".join(event["text"] for event in found if event["type"] == stream)


def of(found, kind):
    return [event for event in found if event["type"] == kind]


def error(found):
    """The only error; None when there is none."""
    errors = of(found, "error")
    assert len(errors) <= 1, errors
    assert all(set(each) == {"type", "name", "value", "traceback"} for each in errors), errors
    return errors[0] if errors else None


def refused(box, status, body, **options):
    """The text of a refusal."""
    reply = ask(box, "POST", "/execute", body, token=True, **options)
    assert reply.status == status, (body if len(str(body)) < 300 else "…", reply)
    assert reply.headers["content-type"].startswith("text/plain"), reply
    return reply.body.decode()


def create(box, **body):
    reply = ask(box, "POST", "/contexts", body)
    assert reply.status == 200, reply
    return reply.json()


def contexts(box):
    return ask(box, "GET", "/contexts").json()


Closed = raw.Closed
