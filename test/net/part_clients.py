# SPDX-License-Identifier: Apache-2.0
"""The programs people use, each through the proxy variables and without them (it is caught then), to a host that is
allowed and to one that is not."""
import functools
import os
import shutil
import subprocess
import time

import lab
import places
import registry
import suite
import tap

NO_PROXY = "env " + " ".join(f"-u {name}" for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")) + " "
WAYS = {"by proxy": "", "caught": NO_PROXY}
ALLOWED = ("web.example", "git.example:80,443,9418", "packages.example", "six.example", "both.example", "api.example:22,5432,8080")
SLOWEST = 40  # seconds that a client may need to say no: a virtual machine has to start in it

URLLIB = "import sys, urllib.request as u; sys.stdout.write(u.urlopen(sys.argv[1], timeout=10).read().decode())"
# Debian's pip carries it; there need not be another.
REQUESTS = ("import sys; from pip._vendor import requests; r = requests.get(sys.argv[1], timeout=10); r.raise_for_status(); "
            "sys.stdout.write(r.text)")
NODE_FETCH = "fetch(process.argv[1]).then(async r => { process.stdout.write(await r.text()); process.exit(r.ok ? 0 : 1) }, e => { console.error(e); process.exit(1) })"
NODE_HTTP = ("require(process.argv[1].split(':')[0]).get(process.argv[1], r => { r.pipe(process.stdout); r.on('end', () => process.exit(r.statusCode == 200 ? 0 : 1)) })"
             ".on('error', e => { console.error(e); process.exit(1) })")
# A client's name, the program it needs, its command with the address at the end.
CLIENTS = (
    ("curl", "curl", ["curl", "-sSf", "-m", "10"]),
    ("wget", "wget", ["wget", "-nv", "-O-", "-T", "10", "-t", "1"]),
    ("Python's urllib", "python3", ["/usr/bin/python3", "-c", URLLIB]),
    ("Python's requests", "python3", ["/usr/bin/python3", "-c", REQUESTS]),
    ("Node's fetch", "node", ["node", "-e", NODE_FETCH]),
    ("Node's http", "node", ["node", "-e", NODE_HTTP]),
    ("Go's net/http", "go", ["/home/user/fetch-go"]),
)


@functools.cache
def go_program(directory):
    """Built outside: a box need not have a compiler. Without a C library: Go's own resolver."""
    path = os.path.join(directory, "fetch-go")
    go = "/usr/local/go/bin/go" if os.access("/usr/local/go/bin/go", os.X_OK) else shutil.which("go")
    if not go:
        raise tap.Skip("no go here")
    environment = os.environ | {"CGO_ENABLED": "0", "GOPROXY": "off", "GOFLAGS": "-mod=mod", "GO111MODULE": "off", "GOTOOLCHAIN": "local"}
    done = subprocess.run([go, "build", "-o", path, str(lab.HERE / "clients/fetch.go")], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise tap.Skip(f"go does not build here: {done.stderr[-200:]}")
    with open(path, "rb") as file:
        return file.read()


def open_box(world):
    return world.box(*ALLOWED)


def fetch(box, command, url, env=""):
    before = time.monotonic()
    status, out, err = box.command(f"cd /tmp; {env}{suite.quoted(*command, url)}")
    return status, out, err, time.monotonic() - before


def try_client(world, name, program, command):
    if not shutil.which(program):
        raise tap.Skip(f"no {program} here")
    box = open_box(world)
    if program == "go":
        box.put("/home/user/fetch-go", go_program(str(world.net.directory)))
        box.command("chmod 755 /home/user/fetch-go")
    for way, env in WAYS.items():
        for scheme in ("http", "https"):
            status, out, err, _ = fetch(box, command, f"{scheme}://web.example/hello", env)
            assert (status, out) == (0, "hello from web.example\n"), (name, way, scheme, status, out, err[-1500:])
            box.logged(name="web.example", verdict="allowed", port=80 if scheme == "http" else 443)
            status, out, err, seconds = fetch(box, command, f"{scheme}://other.example/hello", env)
            assert status != 0 and "hello" not in out, (name, way, scheme, status, out)
            assert seconds < SLOWEST, (name, way, scheme, seconds)
            box.logged(name="other.example", verdict="refused", reason="not_allowed")
    assert "other.example" not in world.net.asked(), world.net.asked()
    assert not world.net.requests(host="other.example")


def add_client(name, program, command):
    def test(world):
        try_client(world, name, program, command)

    test.__doc__ = f"{name}, http and https: allowed works, another host is refused and never looked up"
    globals()[f"test_{program}_{len(name)}_{name.lower().replace(chr(39), '')}"] = test


for _client in CLIENTS:
    add_client(*_client)


def test_java(world):
    """Java's two clients, http and https"""
    if not shutil.which("java"):
        raise tap.Skip("no java here")
    box = open_box(world)
    box.put("/home/user/Fetch.java", (lab.HERE / "clients/Fetch.java").read_bytes())
    for kind in ("new", "old"):
        for proxy in ("3128", ""):
            for scheme in ("http", "https"):
                status, out, err = box.command(f"java /home/user/Fetch.java {kind} {scheme}://web.example/hello {proxy}", 60)
                assert (status, out) == (0, "hello from web.example\n"), (kind, proxy, scheme, out, err[-1500:])
        status, out, err = box.command(f"java /home/user/Fetch.java {kind} https://other.example/hello", 60)
        assert status != 0 and "hello" not in out, (kind, out, err[-500:])
    assert not world.net.requests(host="other.example")


def test_git(world):
    """git clones over http, https and its own protocol"""
    box = open_box(world)
    for way, env in WAYS.items():
        for scheme, path in (("http", "git/thing.git"), ("https", "git/thing.git"), ("git", "thing.git")):
            if scheme == "git" and not env:
                continue  # git's own protocol knows of no proxy variable
            status, out, err = box.command(f"cd /tmp && rm -rf thing && {env}git clone -q {scheme}://git.example/{path} && cat thing/README")
            assert (status, out) == (0, "hello from a repository\n"), (way, scheme, out, err)
        status, out, err = box.command(f"cd /tmp && rm -rf thing && {env}git clone -q https://other.example/git/thing.git")
        assert status != 0, (way, out, err)


def test_ssh(world):
    """ssh hears the banner of a host that is allowed at port 22, and of no other"""
    if not shutil.which("ssh"):
        raise tap.Skip("no ssh here")
    box = open_box(world)
    options = "-v -o BatchMode=yes -o ConnectTimeout=5 -o StrictHostKeyChecking=no"
    _, _, err = box.command(f"timeout 10 ssh {options} user@api.example true")
    assert "remote software version lab_1.0" in err, err
    _, _, err = box.command(f"timeout 10 ssh {options} user@web.example true")  # allowed, but at 80 and 443
    assert "lab_1.0" not in err, err
    box.logged(verdict="refused", port=22)


def test_pip(world):
    """pip installs from an index that is allowed"""
    box = open_box(world)
    for way, env in WAYS.items():
        for scheme in ("http", "https"):
            index = f"{scheme}://packages.example/files/pip/"
            status, out, err = box.command(
                f"cd /tmp && rm -rf target && {env}/usr/bin/python3 -m pip install -q --no-cache-dir --trusted-host packages.example "
                f"--disable-pip-version-check --target target -i {index} labthing && PYTHONPATH=target /usr/bin/python3 -c 'import labthing; print(labthing.SAYS)'")
            assert (status, out) == (0, "hello from a wheel\n"), (way, scheme, out, err[-1500:])


def test_npm(world):
    """npm installs from a registry that is allowed"""
    if not shutil.which("npm"):
        raise tap.Skip("no npm here")
    box = open_box(world)
    for way, env in WAYS.items():
        for scheme in ("http", "https"):
            status, out, err = box.command(
                f"mkdir -p /tmp/n && cd /tmp/n && rm -rf * .npmrc && {env}npm install --no-audit --no-fund --no-update-notifier --cache /tmp/n/cache "
                f"--registry {scheme}://packages.example/files/npm-{scheme}/ labthing >&2 && node -p 'require(\"labthing\")'", 90)
            assert (status, out) == (0, "hello from a tarball\n"), (way, scheme, out, err[-1500:])


def test_apt(world):
    """apt-get reads lists and fetches a package from a repository that is allowed"""
    if not shutil.which("apt-get") or not (world.net.directory / "files/apt").is_dir():
        raise tap.Skip("no apt-get or no dpkg-deb here")
    box = open_box(world)
    apt = ("apt-get -q -o Dir::Etc::sourcelist=/tmp/a/sources -o Dir::Etc::sourceparts=/nonexistent -o Dir::State=/tmp/a -o Dir::Cache=/tmp/a/cache "
           "-o Dir::State::status=/tmp/a/status -o APT::Sandbox::User=user -o Debug::NoLocking=1 -o Acquire::Retries=0")
    for way, env in WAYS.items():
        for scheme in ("http", "https"):
            status, out, err = box.command(
                f"rm -rf /tmp/a && mkdir -p /tmp/a/lists/partial /tmp/a/cache/archives/partial && cd /tmp/a && : >status && "
                f"echo 'deb [trusted=yes] {scheme}://packages.example/files/apt lab main' >sources && {env}{apt} update >&2 && "
                f"{env}{apt} download labthing >&2 && dpkg-deb -f {registry.NAME}_*.deb Package")
            assert (status, out) == (0, "labthing\n"), (way, scheme, out, err[-2000:])


def test_ipv6(world):
    """hosts that have only IPv6, or both"""
    box = open_box(world)
    for way, env in WAYS.items():
        for host in ("six.example", "both.example"):
            status, out, err, _ = fetch(box, ["curl", "-sSf", "-m", "10"], f"https://{host}/hello", env)
            assert (status, out) == (0, f"hello from {host}\n"), (way, host, out, err)


def test_server_first(world):
    """a protocol in which the server speaks first, and any port that is allowed"""
    box = open_box(world)
    address = box.one(do="resolve", name="api.example")["addresses"][0]
    banner, echo, web = box.attempt({"do": "raw", "to": [address, 22], "until": "\n"}, {"do": "raw", "to": [address, 5432], "send": "ping\n", "until": "\n"},
                                    {"do": "raw", "to": [address, 8080], "send": "GET /hello HTTP/1.1\r\nHost: api.example:8080\r\nConnection: close\r\n\r\n"})
    assert banner["data"] == "SSH-2.0-lab_1.0\r\n", banner
    assert echo["data"] == "ping\n", echo
    assert web["data"].endswith("hello from api.example:8080\n"), web
    socks = box.one(do="socks", host="api.example", port=22, until="\n")
    assert socks["data"] == "SSH-2.0-lab_1.0\r\n", socks
    tunnel = box.one(do="connect", to="api.example:5432", send="\0pong", until="pong")
    assert tunnel["data"] == "\0pong", tunnel


def test_text_without_end(world):
    """text that could become a request is held until its line ends; if it does not, the log says why"""
    box = world.box("api.example:5432")
    result = box.one(do="connect", to="api.example:5432", send="ping", wait=20)
    assert not result["data"] and result["end"] == "ECONNRESET" and result["seconds"] < 19, result
    box.logged(name="api.example", reason="too_slow")
    assert not any(each["data"] for each in world.net.raw(5432)), world.net.raw()


def test_streaming(world):
    """large bodies both ways, slow answers, a WebSocket, and what an upload was"""
    box = open_box(world)
    for way, env in WAYS.items():
        for scheme in ("http", "https"):
            base = f"{scheme}://web.example"
            status, out, err = box.command(f"{env}curl -sSf -m 30 -o /dev/null -w '%{{size_download}}' {base}/bytes/50000000")
            assert (status, out) == (0, "50000000"), (way, scheme, out, err)
            status, out, err = box.command(f"head -c 20000000 /dev/zero | {env}curl -sSf -m 30 -T - {base}/upload")
            assert status == 0 and '"length": 20000000' in out, (way, scheme, out, err)
            status, out, err = box.command(f"head -c 3000000 /dev/zero >/tmp/z; {env}curl -sSf -m 30 --data-binary @/tmp/z -H 'Expect: 100-continue' {base}/upload")
            assert status == 0 and '"length": 3000000' in out, (way, scheme, out, err)
            status, out, err = box.command(f"{env}curl -sSfN -m 30 {base}/drip/5")
            assert out.count("data:") == 5, (way, scheme, out, err)
    upgrade = ("GET {} HTTP/1.1\r\nHost: web.example\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: "
               "dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n\x81\x02hi")
    address = places.HOSTS["web.example"][0]
    for result in box.attempt({"do": "proxy", "send": upgrade.format("http://web.example/socket"), "until": "\x81\x02hi"},
                              {"do": "connect", "to": "web.example:80", "send": upgrade.format("/socket"), "until": "\x81\x02hi"},
                              {"do": "raw", "to": [address, 80], "send": upgrade.format("/socket"), "until": "\x81\x02hi"}):
        assert result["data"].startswith("HTTP/1.1 101") and result["data"].endswith("\x81\x02hi"), result
