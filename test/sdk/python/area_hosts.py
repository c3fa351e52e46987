# SPDX-License-Identifier: Apache-2.0
"""Over TLS, and with a name for every program in a sandbox: PORT-ID.DOMAIN. E2B_DOMAIN says where that is, SSL_CERT_FILE
whom to trust."""
import json
import socket
import ssl
import urllib.error
import urllib.request

from harness import box, until

LOOKUP = socket.getaddrinfo
SERVER = """
import http.server, json
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        text = json.dumps({"path": self.path, "body": body, "host": self.headers["Host"]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
http.server.HTTPServer(("127.0.0.1", 3000), Handler).serve_forever()
"""


def lookup(host, *args, **options):
    """Names below sbx.test are this machine; no name server is asked."""
    return LOOKUP("127.0.0.1" if str(host).endswith(".sbx.test") else host, *args, **options)


socket.getaddrinfo = lookup


def post(url, headers=None):
    request = urllib.request.Request(url, b"text", headers or {})
    try:
        with urllib.request.urlopen(request, context=ssl.create_default_context(), timeout=20) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def served(**options):
    sandbox = box(**options)
    sandbox.files.write("server.py", SERVER)
    sandbox.commands.run("python3 server.py", background=True, timeout=0)
    return sandbox


def test_over_tls():
    """over TLS: create, run, read, write"""
    sandbox = box()
    assert sandbox.commands.run("echo over TLS").stdout == "over TLS\n"
    sandbox.files.write("f", "content")
    assert sandbox.files.read("f") == "content"


def test_get_host():
    """get_host() leads to a program in the sandbox"""
    sandbox = served()
    url = f"https://{sandbox.get_host(3000)}/path?query=1"
    status, said = until(lambda: (reply := post(url))[0] == 200 and reply, "the program answers")
    assert status == 200 and said == {"path": "/path?query=1", "body": "text", "host": sandbox.get_host(3000)}, said


def test_closed_port():
    """a closed port"""
    sandbox = box()
    status, said = post(f"https://{sandbox.get_host(3999)}/")
    assert status == 502 and said["port"] == 3999, said


def test_traffic_token():
    """allow_public_traffic False: the token opens it"""
    sandbox = served(network={"allow_public_traffic": False})
    token = sandbox.traffic_access_token
    url = f"https://{sandbox.get_host(3000)}/"
    assert post(url)[0] == 403
    assert until(lambda: post(url, {"E2B-Traffic-Access-Token": token})[0] == 200, "the token opens it")
