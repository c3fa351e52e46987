# SPDX-License-Identifier: Apache-2.0
"""What script/demo-service.sh does not do in bash.

    demo-service.py web ADDRESS         a web server, in a network namespace of its own that has nothing yet
    demo-service.py ask CELL...         what `glovebox repl --json` reads
    demo-service.py show DIM PLAIN CELL...  its events on standard input: each cell with what came of it
"""
import fcntl
import http.server
import json
import socket
import struct
import sys

SIOCSIFFLAGS, SIOCSIFADDR = 0x8914, 0x8916
UP_AND_RUNNING = 0x41
TEXT = b"hello from outside\n"


class Handler(http.server.BaseHTTPRequestHandler):
    """The same answer to everything."""

    def do_GET(self):  # pylint: disable=invalid-name
        self.send_response(200)
        self.send_header("Content-Length", str(len(TEXT)))
        self.end_headers()
        self.wfile.write(TEXT)

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


def web(address):
    """Gives the loopback device that address too, says so, and serves."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", UP_AND_RUNNING))
        fcntl.ioctl(any_socket, SIOCSIFADDR, struct.pack("=16sHH4s16x", b"lo:1", socket.AF_INET, 0, socket.inet_aton(address)))
    server = http.server.ThreadingHTTPServer((address, 80), Handler)
    print("ready", flush=True)
    server.serve_forever()


def ask(*cells):
    for code in cells:
        print(json.dumps({"code": code}))


def show(dim, plain, *cells):
    number, said = 0, []
    for event in map(json.loads, sys.stdin):
        if event["type"] in ("stdout", "stderr", "result"):
            said.append(event["text"].strip())
        elif event["type"] == "error":
            said.append(f"{event['name']}: {event['value']}")
        elif event["type"] == "usage":
            print(f"  {dim}[{number + 1}]{plain} {cells[number]}  {dim}({event['wall_ms']} ms){plain}")
            for text in said:
                print("     ", text)
            number, said = number + 1, []


if __name__ == "__main__":
    {"web": web, "ask": ask, "show": show}[sys.argv[1]](*sys.argv[2:])
