# SPDX-License-Identifier: Apache-2.0
"""The laboratory's DNS server, over UDP and TCP, for every address. Records are set while it runs:

    {"A": ["45.67.90.1"], "AAAA": [...], "CNAME": "other.example", "ttl": 60, "mode": "...", "turns": [{...}, {...}]}

mode: ok, nxdomain, servfail, refused, silent, garbage, truncated, or a number of seconds to wait. turns: what the
first question for it gets, the second …; the last stays. A name "*.example" holds for everything below it that has
no record of its own. What has no record does not exist. Every question is remembered."""
import ipaddress
import socket
import struct
import threading
import time

TYPES = {1: "A", 28: "AAAA", 5: "CNAME"}
RCODES = {"ok": 0, "servfail": 2, "nxdomain": 3, "refused": 5}
IP_PKTINFO = 8


def read_name(data, at):
    labels = []
    while data[at]:
        if data[at] & 0xC0:
            raise ValueError("a pointer in a question")
        labels.append(data[at + 1:at + 1 + data[at]].decode("latin-1"))
        at += 1 + data[at]
    return ".".join(labels), at + 1


def write_name(name):
    return b"".join(bytes([len(label)]) + label.encode("latin-1") for label in name.split(".") if label) + b"\0"


def resource(name, kind, ttl, data):
    return write_name(name) + struct.pack(">HHIH", kind, 1, ttl, len(data)) + data


class Dns:
    def __init__(self):
        self.lock = threading.Lock()
        self.records, self.asked, self.queries = {}, {}, []

    def set(self, records):
        with self.lock:
            for name, record in records.items():
                self.records[name.lower()] = record
                self.asked.pop(name.lower(), None)

    def find(self, name):
        """The record of a name now, and None when there is none."""
        name = name.lower()
        found = name
        while found not in self.records:
            head, _, rest = found.removeprefix("*.").partition(".")
            if not rest or not head:
                return None
            found = "*." + rest
        record = self.records[found]
        if "turns" in record:
            turn = self.asked.get(name, 0)
            self.asked[name] = turn + 1
            record = record["turns"][min(turn, len(record["turns"]) - 1)]
        return record

    def addresses(self, name, kind):
        record = self.find(name) or {}
        return record.get(kind, [])

    def answer(self, name, kind, record, depth=0):
        """The resource records: those of aliases first."""
        ttl = record.get("ttl", 60)
        if "CNAME" in record and depth < 20:
            target = record["CNAME"]
            behind = self.find(target) or {}
            return [resource(name, 5, ttl, write_name(target)), *self.answer(target, kind, behind, depth + 1)]
        return [resource(name, kind, ttl, ipaddress.ip_address(address).packed) for address in record.get(TYPES.get(kind, ""), [])]

    def reply(self, query, over):
        """The bytes to answer with, or None."""
        number, flags = struct.unpack(">HH", query[:4])
        name, at = read_name(query, 12)
        kind, _ = struct.unpack(">HH", query[at:at + 4])
        with self.lock:
            self.queries.append({"name": name, "type": TYPES.get(kind, kind), "over": over, "at": time.time()})
            record = self.find(name)
            records = self.answer(name, kind, record) if record else []
        mode = (record or {"mode": "nxdomain"}).get("mode", "ok")
        if isinstance(mode, (int, float)):
            time.sleep(mode)
            mode = "ok"
        if mode == "silent":
            return None
        if mode == "garbage":
            return query[:2] + b"\xff" * 30
        cut = mode == "truncated" and over == "udp"
        bits = 0x8480 | (flags & 0x0100) | (0x0200 if cut else 0) | RCODES.get(mode, 0)
        records = [] if cut or RCODES.get(mode) else records
        return struct.pack(">HHHHHH", number, bits, 1, len(records), 0, 0) + query[12:at + 4] + b"".join(records)

    # --- the servers ------------------------------------------------------------------------------

    def serve_udp(self, sock):
        """One thread for each question: a slow one keeps nobody waiting. Answers come from the address asked."""
        while True:
            query, control, _, peer = sock.recvmsg(4096, 256)
            threading.Thread(target=self.one_udp, args=(sock, query, control, peer), daemon=True).start()

    def one_udp(self, sock, query, control, peer):
        try:
            answer = self.reply(query, "udp")
        except (ValueError, IndexError, struct.error):
            return
        if answer:
            # The answer leaves from the address that was asked: in_pktinfo with its third member as the source.
            info = [(socket.IPPROTO_IP, IP_PKTINFO, struct.pack("=I4s4s", 0, data[8:12], b"\0" * 4))
                    for level, kind, data in control if (level, kind) == (socket.IPPROTO_IP, IP_PKTINFO)]
            sock.sendmsg([answer], info, 0, peer)

    def serve_tcp(self, sock):
        try:
            with sock, sock.makefile("rb") as reader:
                while len(head := reader.read(2)) == 2:
                    answer = self.reply(reader.read(struct.unpack(">H", head)[0]), "tcp")
                    if answer is None:
                        time.sleep(60)
                        return
                    sock.sendall(struct.pack(">H", len(answer)) + answer)
        except (OSError, ValueError, IndexError, struct.error):
            pass


def udp_socket(port=53):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
    sock.bind(("0.0.0.0", port))
    return sock
