# SPDX-License-Identifier: Apache-2.0
"""What a hostile program in a box tries. Runs inside: python3 inside.py FILE, with a JSON list of attempts; prints a
list with what came of each. Bytes travel as latin-1 text. Every result has "seconds"; "error" is an errno's name.

    {"do": "connect", "to": "web.example:443", "send": "...", "hello": {...}}   CONNECT through the proxy
    {"do": "socks", "kind": 3, "host": "...", "port": 80, "send": "..."}        SOCKS5
    {"do": "proxy", "send": "GET http://..."}                                   bytes to the proxy's port
    {"do": "raw", "to": ["1.2.3.4", 80], "send": "...", "hello": {...}}         a connection that knows of no proxy
    {"do": "udp", "to": [...], "send": "..."}     {"do": "resolve", "name": "..."}
    {"do": "dns", "name": "...", "type": 1, "server": "127.0.0.53", "over": "udp", "bytes": "..."}
"""
import contextlib
import errno
import json
import socket
import struct
import sys
import time

PROXY = ("127.0.0.1", 3128)
READ_MAX = 1 << 16
WAIT = 30


# --- a ClientHello by hand ------------------------------------------------------------------------

def extension(kind, data):
    return struct.pack(">HH", kind, len(data)) + data


def name_list(names):
    entries = b"".join(b"\0" + struct.pack(">H", len(name)) + name for name in names)
    return struct.pack(">H", len(entries)) + entries


def client_hello(names=(), ech=False, split=0, grease=False, twice=False):
    """names: host names in the SNI; none: no SNI. split: bytes in the first record of several."""
    names = [name.encode("latin-1") for name in names]
    extensions = b""
    if grease:
        extensions += extension(0x0A0A, b"")
    if names:
        extensions += extension(0, name_list(names))
    if twice:
        extensions += extension(0, name_list(names))
    extensions += extension(10, struct.pack(">HHH", 4, 29, 23)) + extension(13, struct.pack(">HHH", 4, 0x0403, 0x0804))
    extensions += extension(43, b"\x02\x03\x04") + extension(51, struct.pack(">HHH", 36, 29, 32) + bytes(range(32)))
    if ech:  # outer, one cipher, a configuration's number, a key and a payload
        extensions += extension(0xFE0D, b"\0" + struct.pack(">HHBH", 1, 1, 7, 32) + bytes(32) + struct.pack(">H", 144) + bytes(144))
    body = b"\x03\x03" + bytes(32) + b"\0" + struct.pack(">HHH", 4, 0x1301, 0x1302) + b"\x01\0"
    body += struct.pack(">H", len(extensions)) + extensions
    message = b"\x01" + struct.pack(">I", len(body))[1:] + body
    pieces = [message[:split], message[split:]] if split else [message]
    return b"".join(b"\x16\x03\x01" + struct.pack(">H", len(piece)) + piece for piece in pieces)


# --- attempts -------------------------------------------------------------------------------------

def opened(to, wait=WAIT):
    family = socket.AF_INET6 if ":" in to[0] else socket.AF_INET
    sock = socket.socket(family)
    sock.settimeout(wait)
    sock.connect(tuple(to))
    return sock


def read_head(sock):
    head = b""
    while b"\r\n\r\n" not in head and len(head) < READ_MAX:
        piece = sock.recv(1)
        if not piece:
            break
        head += piece
    return head


def read_all(sock, limit=READ_MAX, until=None):
    """Until the end, a reset, silence or what is waited for: (data, how it ended)."""
    data = b""
    try:
        while len(data) < limit and not (until and data.endswith(until)):
            piece = sock.recv(limit)
            if not piece:
                return data, "end"
            data += piece
    except TimeoutError:
        return data, "silence"
    except OSError as error:
        return data, errno.errorcode.get(error.errno, str(error))
    return data, "limit"


def described(head):
    lines = head.decode("latin-1").split("\r\n")
    found = {"status": int(lines[0].split()[1]) if lines[0].startswith("HTTP/1.") else 0}
    for line in lines[1:]:
        if line.lower().startswith("x-glovebox-reason:"):
            found["reason"] = line.split(":", 1)[1].strip()
    return found


def payload(what):
    data = what.get("send", "").encode("latin-1")
    if "hello" in what:
        data = client_hello(**what["hello"]) + data
    return data


def talk(sock, what):
    """Sends what is to be sent and reads what comes."""
    data = payload(what)
    sock.settimeout(what.get("wait", WAIT))
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        if data:
            sock.sendall(data)
        if what.get("shut"):
            sock.shutdown(socket.SHUT_WR)
    got, how = read_all(sock, what.get("limit", READ_MAX), what.get("until", "").encode("latin-1"))
    return {"data": got.decode("latin-1"), "end": how}


def do_connect(what):
    with opened(what.get("proxy", PROXY), max(WAIT, what.get("wait", 0))) as sock:
        extra = what.get("headers", "")
        sock.sendall(f"CONNECT {what['to']} HTTP/1.1\r\nHost: {what.get('host', what['to'])}\r\n{extra}\r\n".encode("latin-1"))
        head = read_head(sock)
        found = described(head) if head else {"status": 0}
        if found["status"] != 200:
            return found | {"data": read_all(sock)[0].decode("latin-1")}
        return found | talk(sock, what)


def do_socks(what):
    with opened(PROXY) as sock:
        sock.sendall(what.get("greeting", "\x05\x01\x00").encode("latin-1"))
        if sock.recv(2) != b"\x05\x00":
            return {"reply": -1}
        host = what["host"].encode("latin-1")
        if what.get("kind", 3) == 3:
            host = bytes([what.get("length", len(host))]) + host
        sock.sendall(bytes([5, what.get("command", 1), 0, what.get("kind", 3)]) + host + struct.pack(">H", what["port"]))
        answer = sock.recv(10)
        if len(answer) < 2:
            return {"reply": -2}
        return {"reply": answer[1]} if answer[1] else {"reply": 0} | talk(sock, what)


def do_proxy(what):
    with opened(PROXY) as sock:
        found = talk(sock, what)
        return described(found["data"].split("\r\n\r\n")[0].encode("latin-1")) | found


def do_raw(what):
    with opened(what["to"], what.get("wait", WAIT)) as sock:
        return talk(sock, what)


def do_udp(what):
    family = socket.AF_INET6 if ":" in what["to"][0] else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.settimeout(what.get("wait", 1))
        sock.connect(tuple(what["to"]))
        sock.send(what.get("send", "x").encode("latin-1"))
        return {"data": sock.recv(READ_MAX).decode("latin-1")}


def do_resolve(what):
    try:
        found = socket.getaddrinfo(what["name"], what.get("port", 80), type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        return {"error": {-2: "EAI_NONAME", -3: "EAI_AGAIN", -4: "EAI_FAIL", -5: "EAI_NODATA"}.get(error.errno, str(error.errno))}
    except UnicodeError as error:
        return {"error": f"UnicodeError: {error}"}
    return {"addresses": sorted({address[4][0] for address in found})}


def question(name, kind):
    labels = b"".join(bytes([len(label)]) + label for label in name.encode("latin-1").split(b".") if label)
    return struct.pack(">HHHHHH", 0x4242, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", kind, 1)


def do_dns(what):
    query = what["bytes"].encode("latin-1") if "bytes" in what else question(what["name"], what.get("type", 1))
    to = (what.get("server", "127.0.0.53"), what.get("port", 53))
    if what.get("over", "udp") == "tcp":
        with opened(to) as sock:
            sock.sendall(struct.pack(">H", len(query)) + query)
            answer = sock.recv(READ_MAX)[2:]
    else:
        with socket.socket(socket.AF_INET6 if ":" in to[0] else socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.settimeout(what.get("wait", 7))
            sock.connect(to)
            sock.send(query)
            answer = sock.recv(READ_MAX)
    if len(answer) < 12:
        return {"error": "end"}
    number, flags, _, answers, _, _ = struct.unpack(">HHHHHH", answer[:12])
    return {"rcode": flags & 15, "answers": answers, "bytes": answer.decode("latin-1"), "same": number == 0x4242}


def attempt(what):
    before = time.monotonic()
    try:
        found = globals()["do_" + what["do"]](what)
    except TimeoutError:
        found = {"error": "silence"}
    except OSError as error:
        found = {"error": errno.errorcode.get(error.errno, str(error))}
    return found | {"seconds": round(time.monotonic() - before, 3)}


if __name__ == "__main__":
    with open(sys.argv[1], encoding="ascii") as attempts:
        print(json.dumps([attempt(each) for each in json.load(attempts)]))
