# SPDX-License-Identifier: Apache-2.0
"""The network options of sandboxes, as a client sees them: what is kept, shown, told and logged. What really goes over
the cable is test/net's; the laboratory is the same, so that nothing leaves this machine."""
import contextlib
import json
import os
import pathlib
import signal
import sys
import tempfile
import threading
import time

import raw
import service
import tap

# Its parts are called like ours: nobody else is to find them.
BEFORE = list(sys.path)
sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "net"))
import lab  # noqa: E402  pylint: disable=wrong-import-position
sys.path[:] = BEFORE

ALL = "0.0.0.0/0"
VARIABLES = ("http_proxy", "HTTPS_PROXY", "ALL_PROXY", "no_proxy")
LINES_PER_SECOND, NETWORK_LINES = 20, 100  # src/server/sandbox/outlet.c, src/server/sandbox/sandbox.h


class Here:
    """The laboratory and its services, made when the first test needs them and ended by the last."""
    net = None
    services = {}

    @classmethod
    def service(cls, **settings):
        if cls.net is None:
            if why := lab.cannot():
                raise tap.Skip(why)
            cls.sets = tempfile.TemporaryDirectory(prefix="glovebox-sets.")
            (pathlib.Path(cls.sets.name) / "web.rules").write_text("# what the tests reach\nweb.example\n*.wild.example:80\n")
            cls.net = lab.Lab()
            cls.net.__enter__()
        key = json.dumps(settings, sort_keys=True)
        if key not in cls.services:
            cls.services[key] = cls.net.service(egress__sets=cls.sets.name, **settings)
        return cls.services[key]


@contextlib.contextmanager
def laboratory(**settings):
    """This thread in the laboratory, and a client of the service with these settings."""
    running = Here.service(**settings)
    with Here.net.inside():
        client = raw.Client(running.port, running.key)
        client.running = running
        yield client


def put(box, **network):
    return box.client.ask("PUT", f"/sandboxes/{box.id}/network", network)


def info(box):
    return box.client.ask("GET", f"/sandboxes/{box.id}").json()


def connections(box, query=""):
    reply = box.client.ask("GET", f"/v1/sandboxes/{box.id}/connections{query}")
    assert reply.status == 200, reply
    return reply.json()


def log(box):
    return box.client.ask("GET", f"/v2/sandboxes/{box.id}/logs").json()["logs"]


def fetch(box, url, options=""):
    """The status that curl saw, "000" for none, through whatever it finds in its environment."""
    out, err, _, _ = box.run(f"curl -s -o /dev/null -m 30 {options} -w '%{{http_code}}' {url}; exit 0")
    return out.decode() or err.decode()


def reaches(box, host="web.example"):
    return fetch(box, f"http://{host}/hello") == "200"


# --- what is given and shown ------------------------------------------------------------------------

def test_none(_):
    """a sandbox that names nothing has no network: no variable, no way out, nothing shown"""
    with laboratory() as client:
        for more in ({}, {"allow_internet_access": True}, {"network": {"allowOut": [], "denyOut": []}}, {"network": None}):
            box = client.create(**more)
            assert info(box)["allowInternetAccess"] is False, (more, info(box))
            assert connections(box)["network"] is False, more
        out, _, _, _ = box.run("env | grep -ci proxy; exit 0")
        assert out == b"0\n", out
        assert not reaches(box)
        # Nobody has been asked for network yet: there is not even the program.
        names = [service.program_of(pid) for pid in service.children(client.running.process.pid)]
        assert not [name for name in names if "egress" in name], names


def test_shown(_):
    """getInfo shows the lists as they were given, and whether anything can be reached"""
    with laboratory() as client:
        given = {"allowOut": ["web.example", "45.67.90.20:80", "*.Wild.example:443,80"], "denyOut": [ALL]}
        box = client.create(network=given)
        shown = info(box)
        assert shown["network"] == given and shown["allowInternetAccess"] is True, shown
        assert reaches(box) and not reaches(box, "other.example")
        none = client.create(network={"allowOut": ["web.example"]}, allow_internet_access=False)
        assert info(none)["allowInternetAccess"] is True and reaches(none)
        assert "allow_internet_access" not in info(none)["network"]


def test_variables(_):
    """commands, contexts and cells get the proxy's variables; a sandbox's or a caller's own win, in either spelling"""
    with laboratory() as client:
        box = client.create(network={"allowOut": ["web.example"]}, templateID="code-interpreter-v1")
        show = "for v in " + " ".join(VARIABLES) + "; do echo $v=${!v}; done"
        out, _, _, _ = box.run(show)
        got = dict(line.split("=", 1) for line in out.decode().split())
        assert got == {"http_proxy": "http://127.0.0.1:3128", "HTTPS_PROXY": "http://127.0.0.1:3128", "ALL_PROXY": "http://127.0.0.1:3128",
                       "no_proxy": "localhost,127.0.0.1,::1"}, got
        code = "import os\nprint(os.environ.get('https_proxy'), os.environ.get('NO_PROXY'))"
        reply = execute(box, code)
        assert "http://127.0.0.1:3128 localhost,127.0.0.1,::1" in reply, reply
        assert "http://127.0.0.1:3128" in execute(box, "echo $https_proxy", "bash")
        own = client.create(network={"allowOut": ["web.example"]}, envVars={"HTTPS_PROXY": "http://mine:1"})
        out, _, _, _ = own.run("echo $https_proxy,$HTTPS_PROXY,$http_proxy")
        assert out == b",http://mine:1,http://127.0.0.1:3128\n", out


def execute(box, code, language=None):
    headers = box.headers() | {"E2b-Sandbox-Port": "49999"}
    body = {"code": code} | ({"language": language} if language else {})
    with box.client.connect(60) as connection:
        reply = connection.ask("POST", "/execute", headers, body)
    assert reply.status == 200, reply
    return "".join(event.get("text", "") for event in map(json.loads, reply.body.decode().splitlines()) if event["type"] == "stdout")


# --- E2B's rules ------------------------------------------------------------------------------------

def test_base_all(_):
    """egress.internet = all: as E2B has it, with its words for names that nothing else is denied beside"""
    with laboratory(egress__internet="all") as client:
        reply = client.ask("POST", "/sandboxes", {"templateID": "base", "network": {"allowOut": ["web.example"]}})
        assert reply.status == 400, reply
        assert reply.message() == ("When specifying allowed domains in allow out, you must include 'ALL_TRAFFIC' in deny out "
                                   "to block all other traffic."), reply
        free = client.create()
        assert info(free)["allowInternetAccess"] is True and reaches(free) and reaches(free, "other.example")
        closed = client.create(allow_internet_access=False)
        assert info(closed)["allowInternetAccess"] is False and connections(closed)["network"] is False
        box = client.create(network={"denyOut": ["45.67.90.20"]})
        assert reaches(box) and not reaches(box, "other.example")
        assert put(box, allowOut=["45.67.90.20"], denyOut=[ALL]).status == 204
        assert not reaches(box) and reaches(box, "45.67.90.20")
        assert put(box, allow_internet_access=False).status == 204
        assert not reaches(box) and not reaches(box, "other.example") and info(box)["allowInternetAccess"] is False
        assert put(box).status == 204  # everything that is not given is cleared
        assert reaches(box) and reaches(box, "other.example") and "denyOut" not in info(box).get("network", {})


def test_default_sets(_):
    """egress.default: what a sandbox gets that names nothing; a list or no internet takes its place"""
    with laboratory(egress__default="web") as client:
        box = client.create(allow_internet_access=True)
        assert reaches(box) and reaches(box, "a.wild.example") and not reaches(box, "other.example")
        assert put(box, allowOut=["other.example"]).status == 204
        assert not reaches(box) and reaches(box, "other.example")
        assert put(box, allowOut=["set:web", "other.example"]).status == 204
        assert reaches(box) and reaches(box, "other.example")
        assert put(box).status == 204 and reaches(box) and not reaches(box, "other.example")
        assert info(client.create(allow_internet_access=False))["allowInternetAccess"] is False
        assert info(client.create(network={"allowOut": []}))["allowInternetAccess"] is False


def test_refused(_):
    """what is malformed is refused by its name, changes nothing, and makes no sandbox"""
    bad = ({"allowOut": ["exa mple.com"]}, {"allowOut": ["good.example", "http://x.example"]}, {"allowOut": ["*"]},
           {"allowOut": ["web.example:0"]}, {"denyOut": ["web.example"]}, {"denyOut": ["set:web"]}, {"allowOut": ["set:none-such"]},
           {"allowOut": ["set:../etc"]}, {"egressProxy": {"address": "x:1"}}, {"rules": {"*": []}},
           {"rules": {f"h{number}.example": [] for number in range(11)}},
           {"rules": {"web.example": [{"transform": {"headers": {f"X-{number}": "y" for number in range(21)}}}]}},
           {"rules": {"web.example": [{"transform": {"headers": {"A": "b"}}}, {}]}},
           {"rules": {"web.example": [{"transform": {"headers": {"Content-Length": "7"}}}]}},
           {"rules": {"web.example": [{"tls": False, "transform": {"headers": {"A": "${secrets.x}"}}}]}},
           {"rules": {"web.example": [{"transform": {"headers": {"A": "${secrets.none_such}"}}}]}},
           {"rules": {"web.example": [{"transform": {"headers": {"A": "${HOME}"}}}]}},
           {"allowOut": ["web.example"],
            "rules": {f"h{host}.example": [{"transform": {"headers": {f"X-{number}": f"{host} {number}".ljust(2000, "y") for number in range(20)}}}]
                      for host in range(2)}})
    with laboratory() as client:
        box = client.create(network={"allowOut": ["web.example"]})
        before = info(box)["network"]
        count = len(client.ask("GET", "/v2/sandboxes?limit=100").json())
        for network in bad:
            for reply in (put(box, **network), client.ask("POST", "/v2/sandboxes", {"templateID": "base", "network": network}),
                          client.ask("POST", "/v1/run", {"command": ["true"], "network": network})):
                assert reply.status == 400 and reply.message(), (network, reply)
        assert info(box)["network"] == before and reaches(box)
        assert len(client.ask("GET", "/v2/sandboxes?limit=100").json()) == count


def test_switched_off(_):
    """egress.enabled = false: who names something is told, who does not gets a sandbox without"""
    with laboratory(egress__enabled="false", egress__internet="all") as client:
        reply = client.ask("POST", "/v2/sandboxes", {"templateID": "base", "network": {"allowOut": ["45.67.90.20"], "denyOut": [ALL]}})
        assert reply.status == 400 and "egress.enabled" in reply.message(), reply
        assert info(client.create())["allowInternetAccess"] is False


# --- what is told -----------------------------------------------------------------------------------

def test_connections(_):
    """every decision is in the list, the sums and the log, with the reason"""
    with laboratory() as client:
        box = client.create(network={"allowOut": ["web.example"]})
        assert reaches(box) and not reaches(box, "other.example")
        # Egress tells of a connection when it has ended it, which curl does not wait for.
        def told():
            now = connections(box)
            return now["totals"]["allowed"] + now["totals"]["refused"] >= 2 and not [each for each in now["connections"] if each["open"]] and now
        seen = service.wait_for(told)
        assert seen, connections(box)
        assert seen["network"] is True and isinstance(seen["catches"], bool), seen
        web = [each for each in seen["connections"] if each["name"] == "web.example" and each["how"] != "dns"][-1]
        other = [each for each in seen["connections"] if each["name"] == "other.example"][-1]
        assert (web["verdict"], web["reason"], web["port"], web["address"]) == ("allowed", "allowed", 80, "45.67.90.10"), web
        assert web["bytes_down"] > 0 and web["bytes_up"] > 0 and abs(web["at_ms"] / 1000 - time.time()) < 60, web
        assert (other["verdict"], other["reason"], other["address"], other["open"]) == ("refused", "not_allowed", None, False), other
        assert seen["totals"]["allowed"] == 1 and seen["totals"]["refused"] == 1, seen["totals"]
        assert seen["totals"]["bytes_down"] == web["bytes_down"], seen["totals"]
        assert len(connections(box, "?limit=1")["connections"]) == 1
        lines = {entry["message"]: entry for entry in log(box) if entry["fields"].get("logger") == "network"}
        assert lines["network: allowed web.example:80 (http)"]["level"] == "info", lines
        assert lines["network: refused other.example:80 (no rule allows it)"]["level"] == "warn", lines
        assert client.ask("GET", "/v1/sandboxes/nosuchsandbox/connections").status == 404
        other_key = raw.Client(client.port, client.running.new_key())
        assert other_key.ask("GET", f"/v1/sandboxes/{box.id}/connections").status == 404
        assert other_key.ask("PUT", f"/sandboxes/{box.id}/network", {}).status == 404


def test_flood(_):
    """a box that asks for the forbidden all the time fills neither the log nor the list"""
    with laboratory() as client:
        box = client.create(network={"allowOut": ["web.example"]})
        code = ("import socket\nfor n in range(1500):\n s=socket.create_connection(('127.0.0.1',3128))\n"
                " s.sendall(b'CONNECT h%d.example:443 HTTP/1.1\\r\\nHost: h%d.example:443\\r\\n\\r\\n'%(n,n))\n s.recv(100)\n s.close()\n")
        begun = time.monotonic()
        _, err, end, _ = box.run(f'python3 -c "{code}"')
        took = time.monotonic() - begun
        assert end.get("exited") and not err, err
        seen = service.wait_for(lambda: (now := connections(box, "?limit=500")) and now["totals"]["refused"] + now["totals"]["missed"] >= 1500 and now)
        assert seen and len(seen["connections"]) == 500, seen and seen["totals"]
        entries = log(box)
        lines = [entry for entry in entries if entry["fields"].get("logger") == "network"]
        assert len(lines) <= min(NETWORK_LINES, (took + 2) * 2 * LINES_PER_SECOND), len(lines)
        assert [entry for entry in entries if "sandbox started" in entry["message"]], "its beginning was pushed out"
        assert reaches(box)


def test_secrets_untold(_):
    """values of headers are not in events, logs or what the service says; getInfo shows the placeholder"""
    with laboratory() as client:
        assert client.ask("POST", "/secrets", {"name": "part_network", "value": "quiet-4711"}).status == 201
        rules = {"api.example": [{"transform": {"headers": {"X-Key": "k ${secrets.part_network}", "X-Plain": "plain-0815"}}}]}
        box = client.create(network={"allowOut": ["api.example"]})
        assert put(box, allowOut=["api.example"], rules=rules).status == 204
        assert fetch(box, "http://api.example/hello") == "200"
        request = Here.net.requests(host="api.example")[-1]
        assert {name.lower(): value for name, value in request["headers"]}["x-key"] == "k quiet-4711", request
        assert info(box)["network"]["rules"] == rules
        events = client.ask("GET", f"/events/sandboxes/{box.id}").body.decode()
        told = events + json.dumps(log(box)) + json.dumps(connections(box)) + client.running.log()
        assert "set_network" in events and "quiet-4711" not in told and "plain-0815" not in told, told[-2000:]
        assert client.ask("DELETE", "/secrets/part_network").status == 204
        gone = "their secret is gone"
        assert service.wait_for(lambda: [entry for entry in log(box) if gone in entry["message"]]), log(box)


# --- runs --------------------------------------------------------------------------------------------

def test_run(_):
    """POST /v1/run: none without being asked for, and with it what the run did"""
    with laboratory() as client:
        command = ["/bin/sh", "-c", "curl -s -m 20 http://web.example/hello; curl -s -o /dev/null -m 20 http://other.example/; env | grep -c proxy"]
        reply = client.ask("POST", "/v1/run", {"command": command}).json()
        assert reply["network"] is None and reply["isolation"]["network"] == "none" and reply["stdout"] == "0\n", reply
        reply = client.ask("POST", "/v1/run", {"command": command, "network": {"allowOut": ["set:web"]}}).json()
        network = reply["network"]
        assert reply["status"] == "ok" and reply["isolation"]["network"] == "listed", reply
        assert (network["allowed"], network["refused"]) == (1, 1) and network["bytes_down"] > 0, network
        assert [(each["name"], each["verdict"]) for each in network["connections"] if each["how"] != "dns"] == \
            [("web.example", "allowed"), ("other.example", "refused")], network
        reply = client.ask("POST", "/v1/run", {"command": ["true"], "network": {}}).json()
        assert reply["network"] is None, reply


# --- what outlives what -------------------------------------------------------------------------------

def test_kept(_):
    """settings outlive a pause with and without memory, and a fork has them too"""
    with laboratory() as client:
        box = client.create(network={"allowOut": ["web.example"]}, timeout=600)
        for memory in (True, False):
            assert client.ask("POST", f"/sandboxes/{box.id}/pause", {"memory": memory}).status == 204
            if not memory:  # nobody is there to be told; it holds when it is resumed
                assert put(box, allowOut=["other.example"]).status == 204
            assert client.ask("POST", f"/sandboxes/{box.id}/connect", {"timeout": 600}).status == 201
            assert reaches(box) is memory and reaches(box, "other.example") is not memory
        fork = client.ask("POST", f"/sandboxes/{box.id}/fork", {"timeout": 60}).json()[0]
        copy = raw.Box(client, fork["sandbox"])
        assert put(box, allow_internet_access=False).status == 204
        assert client.ask("POST", f"/sandboxes/{box.id}/pause", {"memory": False}).status == 204
        assert client.ask("POST", f"/sandboxes/{box.id}/connect", {"timeout": 600}).status == 201
        assert not reaches(box, "other.example") and info(box)["allowInternetAccess"] is False
        assert put(box, allowOut=["other.example"]).status == 204 and reaches(box, "other.example")
        assert info(copy)["network"] == info(box)["network"]
        assert reaches(copy, "other.example") and not reaches(copy)


def test_server_dies(_):
    """a new server takes the rules up, and what it is told then holds"""
    with laboratory() as client:
        box = client.create(network={"allowOut": ["web.example"]}, timeout=600)
        pid = client.running.server_pid()
        os.kill(pid, signal.SIGKILL)
        assert service.wait_for(lambda: client.running.server_pid() not in (None, pid) and client.running.ready())
        assert reaches(box) and not reaches(box, "other.example")
        assert service.wait_for(lambda: connections(box)["network"])
        assert put(box, allowOut=["other.example"]).status == 204
        assert reaches(box, "other.example") and not reaches(box)


def test_many_at_once(_):
    """several change the same sandbox: one of them wins, as a whole"""
    with laboratory() as client:
        box = client.create(network={"allowOut": ["web.example"]})
        states = []

        def change(host):
            with Here.net.inside():
                states.append(put(box, allowOut=[host]).status)

        threads = [threading.Thread(target=change, args=(host,)) for host in ("web.example", "other.example") * 8]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert states == [204] * 16, states
        kept = info(box)["network"]["allowOut"]
        assert reaches(box, kept[0]) and not reaches(box, "web.example" if kept == ["other.example"] else "other.example"), kept


def test_end(_):
    """the laboratory's services end when asked"""
    if Here.net is None:
        raise tap.Skip("there was no laboratory")
    try:
        status = [running.stop() for running in Here.services.values()]
        assert set(status) == {0}, status
    finally:
        Here.net.close()
        Here.sets.cleanup()
        Here.net, Here.services = None, {}
