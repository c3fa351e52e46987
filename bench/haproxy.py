# SPDX-License-Identifier: Apache-2.0
"""HAProxy, where it is installed, as a peer: what a relay that everybody knows gets between the same client and the
same server. One thread, no log, connections kept; it splices where it passes bytes on unread."""
import contextlib
import os
import shutil
import subprocess
import tempfile

import service

PORT = 3990
PROGRAM = shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin")
CONFIG = """
global
    nbthread 1
    maxconn 1024
defaults
    mode {mode}
    option {option}
    timeout connect 5s
    timeout client 60s
    timeout server 60s
listen relay
    bind 127.0.0.1:{port}
    server origin {origin}
"""
OPTIONS = {"http": "http-keep-alive\n    http-reuse always", "tcp": "splice-response"}


@contextlib.contextmanager
def relay(mode, origin, *within):
    """Listens at 127.0.0.1:PORT, in the network that `within` enters. Gives False where there is no HAProxy."""
    if not PROGRAM:
        yield False
        return
    with tempfile.NamedTemporaryFile("w", suffix=".cfg", encoding="ascii") as config:
        config.write(CONFIG.format(mode=mode, option=OPTIONS[mode], port=PORT, origin=origin))
        config.flush()
        process = subprocess.Popen([*within, PROGRAM, "-db", "-f", config.name], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            listens = lambda: f":{PORT:04X} " in open(f"/proc/{process.pid}/net/tcp", encoding="ascii").read()
            if not service.wait_for(lambda: process.poll() is not None or listens()) or process.poll() is not None:
                raise SystemExit(f"bench: {PROGRAM} does not start")
            yield True
        finally:
            process.terminate()
            process.wait()
