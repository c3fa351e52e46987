# SPDX-License-Identifier: Apache-2.0
"""Many clients at once, most of them at the same few sandboxes: they are changed, used and killed at the same time.
What comes of each request does not matter here, as long as it is an answer that makes sense."""
import collections
import contextlib
import random
import threading
import time

import raw

SHARED = 3  # sandboxes that everybody uses
# What may be answered to somebody whose sandbox another one has paused or killed meanwhile.
# Nobody asks for the one name that is allowed, and others are refused without being looked up: nothing is sent.
NETWORKS = ({"allowOut": ["allowed.invalid"]}, {"allowOut": ["*.allowed.invalid:1-9"], "denyOut": ["0.0.0.0/0"]}, {})
ASK = "curl -s -o /dev/null -m 2 http://refused.invalid/"
EXPECTED = {200, 201, 204, 400, 404, 409, 410, 429, 502, 503}


class Load:
    def __init__(self, port, keys, seconds):
        self.clients = [raw.Client(port, key) for key in keys]
        self.until = time.monotonic() + seconds
        self.lock = threading.Lock()
        self.shared = []
        self.answers = collections.Counter()
        self.odd = []

    def note(self, what, status):
        with self.lock:
            self.answers[status] += 1
            if status not in EXPECTED:
                self.odd.append(f"{what}: {status}")

    def ask(self, client, method, path, body=None):
        reply = client.ask(method, path, body)
        self.note(f"{method} {path}", reply.status)
        return reply

    def box(self, rng, client):
        """One of the shared ones, made anew now and then."""
        with self.lock:
            if len(self.shared) >= SHARED:
                return rng.choice(self.shared)
        reply = self.ask(client, "POST", "/v2/sandboxes", {"templateID": "base", "timeout": rng.choice((1, 5, 60)),
                                                           "autoPause": rng.random() < 0.3, "network": rng.choice(NETWORKS)})
        if reply.status != 201:
            time.sleep(0.2)
            return None
        box = raw.Box(client, reply.json())
        with self.lock:
            self.shared.append(box)
        return box

    def forget(self, box):
        with self.lock:
            if box in self.shared:
                self.shared.remove(box)

    def command(self, rng, box):
        command = rng.choice(("echo hi", "head -c 300000 /dev/zero | tr '\\0' x", "sleep 0.3; exit 3", "yes | head -1000", "sleep 5", ASK, f"{ASK} & {ASK}"))
        with box.start(command) as connection:
            self.note("Start", connection.status)
            if connection.status == 200 and rng.random() < 0.8:
                raw.collect(raw.messages(connection))  # otherwise: gone without a word

    def files(self, rng, box):
        name = f"/files?path=/home/user/f{rng.randrange(4)}"
        body = b"x" * rng.choice((0, 10, 200000))
        self.note("upload", box.ask("POST", name, body, {"Content-Type": "application/octet-stream"}).status)
        self.note("download", box.ask("GET", name).status)
        self.note("ListDir", box.rpc("filesystem.Filesystem/ListDir", {"path": "/home/user", "depth": 1})[0])
        status, answer = box.rpc("filesystem.Filesystem/CreateWatcher", {"path": "/home/user"})
        self.note("CreateWatcher", status)
        if status == 200:
            self.note("GetWatcherEvents", box.rpc("filesystem.Filesystem/GetWatcherEvents", answer)[0])

    def visit(self, rng, box):
        """Programs at ports, some of which are not there; some visitors do not wait for the end."""
        if rng.random() < 0.3:
            with box.start("setsid python3 -m http.server 3000 >/dev/null 2>&1 </dev/null &") as connection:
                self.note("Start", connection.status)
        for _ in range(rng.randrange(1, 6)):
            headers = {"Host": f"{rng.choice((3000, 3000, 3001))}-{box.id}.localhost"}
            with box.client.connect() as connection:
                if rng.random() < 0.2:
                    connection.send(f"GET / HTTP/1.1\r\nHost: {headers['Host']}\r\n\r\n".encode())
                else:
                    self.note("port", connection.ask("GET", "/etc/hostname", headers).status)

    def change(self, rng, box):
        client, path = box.client, f"/sandboxes/{box.id}"
        what = rng.randrange(10)
        if what == 0:
            self.ask(client, "POST", f"{path}/pause", {"memory": rng.random() < 0.5})
            self.ask(client, "POST", f"/v2{path}/connect", {"timeout": 60})
        elif what == 1:
            self.ask(client, "POST", f"{path}/snapshots", {"name": f"n{rng.randrange(2)}"})
        elif what == 2:
            self.ask(client, "POST", f"{path}/fork", {"timeout": 1})
        elif what == 3:
            self.ask(client, "DELETE", path)
            self.forget(box)
        elif what == 4:
            self.ask(client, "POST", f"{path}/timeout", {"timeout": rng.choice((0, 2, 60))})
        elif what in (5, 6):
            self.ask(client, "PUT", f"{path}/network", rng.choice(NETWORKS))
        else:
            self.ask(client, "POST", f"/v2{path}/connect", {"timeout": 60})

    def look(self, rng, box):
        for path in ("/v2/sandboxes", f"/sandboxes/{box.id}", f"/sandboxes/{box.id}/metrics", f"/v2/sandboxes/{box.id}/logs",
                     f"/v1/sandboxes/{box.id}/connections",
                     "/snapshots", "/templates", "/events/sandboxes", "/metrics", "/capabilities"):
            if rng.random() < 0.5:
                self.ask(box.client, "GET", path)
        self.note("List", box.rpc("process.Process/List", {})[0])

    def once(self, rng, client):
        network = {"network": rng.choice(NETWORKS)} if rng.random() < 0.5 else {}
        reply = self.ask(client, "POST", "/v1/run", {"language": "bash", "code": f"echo {rng.random()}; {ASK}"} | network)
        if reply.status == 404:
            time.sleep(0.1)

    def work(self, number):
        rng = random.Random(number)
        client = self.clients[number % len(self.clients)]
        while time.monotonic() < self.until:
            try:
                box = self.box(rng, client)
                if box is None:
                    continue
                deed = rng.choice((self.command, self.command, self.files, self.visit, self.visit, self.change, self.look))
                deed(rng, box)
                if rng.random() < 0.05:
                    self.once(rng, client)
            except (raw.Closed, TimeoutError, KeyError, ValueError):
                with self.lock:
                    self.answers["broke off"] += 1  # as streams do when a sandbox is killed
            with self.lock:
                if len(self.shared) > SHARED:
                    self.shared.pop(0)

    def run(self, threads):
        workers = [threading.Thread(target=self.work, args=(number,), daemon=True) for number in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(90 + max(0, self.until - time.monotonic()))
        for client in self.clients:
            with contextlib.suppress(raw.Closed):
                for box in client.ask("GET", "/v2/sandboxes?limit=100").json():
                    client.ask("DELETE", f"/sandboxes/{box['sandboxID']}")
        return not any(worker.is_alive() for worker in workers)
