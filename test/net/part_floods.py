# SPDX-License-Identifier: Apache-2.0
"""Floods and nonsense from one box: egress stays the same process, the service hears what it can, and the box beside
it does not notice."""
import time

import part_limits
import raw
import suite

# Each kind as fast as it can for some seconds; prints how many.
FLOOD = """
import os, random, socket, struct, sys, time
kind, seconds = sys.argv[1], float(sys.argv[2])
ends, count = time.time() + seconds, 0
random.seed(7)
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while time.time() < ends or count < 25:
    count += 1
    try:
        if kind == "dns":
            name = b"".join(bytes([len(x)]) + x for x in (b"x%d" % count, b"evil", b"example")) + b"\\0"
            udp.sendto(struct.pack(">HHHHHH", count & 65535, 256, 1, 0, 0, 0) + name + b"\\0\\1\\0\\1", ("127.0.0.53", 53))
            continue
        if kind == "dns-noise":
            udp.sendto(os.urandom(random.randrange(1, 600)), ("127.0.0.53", 53))
            continue
        port = {"refused": 3128, "noise": 3128, "caught-noise": 3129, "dns-tcp-noise": 53}[kind]
        s = socket.create_connection(("127.0.0.53" if port == 53 else "127.0.0.1", port) if kind != "caught-noise" else ("45.67.90.10", random.choice((22, 80, 443, 8080))), 3)
        s.settimeout(0.05 if kind != "refused" else 3)
        if kind == "refused":
            s.sendall(b"CONNECT x%d.evil.example:443 HTTP/1.1\\r\\nHost: x%d.evil.example:443\\r\\n\\r\\n" % (count, count))
        else:
            start = random.choice((b"", b"\\x16\\x03\\x01", b"\\x05\\x01\\x00\\x05\\x01\\x00\\x03", b"GET http://web.example/", b"CONNECT ", b"\\x05\\x01\\x00\\x05\\x01\\x00\\x03\\x0bweb.example\\x00\\x50",
                                   b"CONNECT web.example:443 HTTP/1.1\\r\\nHost: web.example:443\\r\\n\\r\\n\\x16\\x03\\x01\\x02\\x00\\x01\\x00\\x01\\xfc\\x03\\x03",
                                   b"POST http://web.example/upload HTTP/1.1\\r\\nHost: web.example\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n"))
            s.sendall(start + os.urandom(random.randrange(0, 2000)))
        if random.random() < 0.5 or kind == "refused":
            s.recv(4096)
        s.close()
    except OSError:
        pass
print(count)
"""
KINDS = ("refused", "noise", "caught-noise", "dns", "dns-noise", "dns-tcp-noise")
SECONDS = 2


def test_floods(world):
    """refused connections, random bytes at every door, DNS questions: the neighbour keeps its speed"""
    box, other = world.box("web.example:*"), world.box("web.example")
    box.put("/home/user/flood.py", FLOOD.encode())
    assert part_limits.hello(other)["status"] == 200
    egress, server = world.egress_pid(), world.running.server_pid()
    world.net.capture_off()
    for kind in KINDS:
        with box.start(f"python3 -u /home/user/flood.py {kind} {SECONDS}", timeout=30) as connection:
            part_limits.goes_on(other)
            out, err, _, _ = raw.collect(raw.messages(connection))
        assert int(out or 0) > 20, (kind, out, err)
    assert (world.egress_pid(), world.running.server_pid()) == (egress, server), "somebody was started again"
    assert part_limits.memory(egress) < 64, part_limits.memory(egress)


def test_log_under_flood(world):
    """a box that is refused all the time has a log of bounded size, with the number of what is not in it"""
    box = world.box("web.example")
    box.put("/home/user/flood.py", FLOOD.encode())
    _, out, _ = box.command("python3 -u /home/user/flood.py refused 3")

    def told():
        """What could not be told is told with what comes next."""
        part_limits.hello(box)
        log = box.log()
        return log["totals"]["refused"] + log["totals"]["missed"] >= int(out) * 0.99

    assert suite.service.wait_for(told, pause=0.5), (out, box.log()["totals"])
    assert len(box.log()["connections"]) <= 1000, len(box.log()["connections"])
    before = time.monotonic()
    assert box.client.ask("GET", f"/sandboxes/{box.id}/logs").status == 200
    assert time.monotonic() - before < suite.FAST


def test_many_boxes(world):
    """many boxes at once, each with rules of its own: none has another's"""
    boxes = [world.box(f"n{number}.wild.example") for number in range(12)]
    for number, box in enumerate(boxes):
        own, next_one = f"n{number}.wild.example", f"n{(number + 1) % len(boxes)}.wild.example"
        good, bad = box.attempt({"do": "proxy", "send": f"GET http://{own}/hello HTTP/1.1\r\nHost: {own}\r\n\r\n", "wait": 15},
                                {"do": "proxy", "send": f"GET http://{next_one}/hello HTTP/1.1\r\nHost: {next_one}\r\n\r\n", "wait": 15})
        assert (good["status"], bad["status"]) == (200, 403), (own, good, bad)
