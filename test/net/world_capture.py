# SPDX-License-Identifier: Apache-2.0
"""Everything that passes the laboratory's only cable, by a packet socket."""
import collections
import ctypes
import ipaddress
import socket
import struct
import threading

ETH_P_ALL, PACKET_OUTGOING, SO_ATTACH_FILTER = 3, 4, 26
NOTHING = struct.pack("=HBBI", 6, 0, 0, 0)  # the filter program that takes no packet
BYTES_MAX = 64 << 20
ICMPV6_NOISE = (130, 131, 132, 133, 134, 135, 136, 143)  # neighbours, routers, memberships: the kernel's own
Packet = collections.namedtuple("Packet", "out protocol source source_port target target_port length payload")


def parse(frame, out):
    """What counts of a frame; None for the kernel's own noise."""
    kind = struct.unpack(">H", frame[12:14])[0]
    if kind == 0x0800:
        protocol, source, target = frame[23], frame[26:30], frame[30:34]
        at = 14 + (frame[14] & 15) * 4
    elif kind == 0x86DD:
        protocol, source, target, at = frame[20], frame[22:38], frame[38:54], 54
        if protocol == 0:  # a hop-by-hop header: memberships
            protocol, at = frame[54], 54 + (frame[55] + 1) * 8
        if protocol == 58 and frame[at] in ICMPV6_NOISE:
            return None
    elif kind == 0x0806:
        return None
    else:
        return Packet(out, f"ethernet {kind:04x}", "", 0, "", 0, len(frame), frame)
    ports = struct.unpack(">HH", frame[at:at + 4]) if protocol in (6, 17) else (0, 0)
    return Packet(out, {6: "tcp", 17: "udp", 1: "icmp", 58: "icmpv6"}.get(protocol, str(protocol)),
                  str(ipaddress.ip_address(source)), ports[0], str(ipaddress.ip_address(target)), ports[1], len(frame), frame[at:])


class Capture:
    """out: packets that the machine sent."""

    def __init__(self, interface):
        self.lock = threading.Lock()
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 32 << 20)  # SO_RCVBUFFORCE
        self.socket.bind((interface, ETH_P_ALL))
        self.packets, self.bytes, self.missed, self.on = [], 0, 0, False
        threading.Thread(target=self.read, daemon=True).start()

    def stop(self):
        """For good: not even looking costs a copy of every packet."""
        self.on = False
        code = ctypes.create_string_buffer(NOTHING, len(NOTHING))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("@HP", 1, ctypes.addressof(code)))

    def read(self):
        while True:
            frame, address = self.socket.recvfrom(1 << 17)
            if not self.on:
                continue
            packet = parse(frame, address[2] != PACKET_OUTGOING)
            if packet is None:
                continue
            with self.lock:
                self.bytes += len(frame)
                if self.bytes > BYTES_MAX:
                    self.missed += 1
                else:
                    self.packets.append(packet)

    def start(self):
        with self.lock:
            self.packets, self.bytes, self.missed, self.on = [], 0, 0, True

    def seen(self):
        """Packets as lists, without what they carry; and how many are missing."""
        with self.lock:
            return {"packets": [list(packet[:-1]) for packet in self.packets], "missed": self.missed}

    def carried(self, needle):
        """How many of the packets have these bytes in them."""
        with self.lock:
            return sum(needle in packet.payload for packet in self.packets)
