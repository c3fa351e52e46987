# SPDX-License-Identifier: Apache-2.0
"""What a sandbox may reach, with a service that gives every public address, as E2B's does. All of them are the
laboratory's own (test/net/lab.py)."""
import asyncio

import e2b
from e2b import AsyncSandbox, Sandbox
from harness import box, raises

ALL = "0.0.0.0/0"
WEB, OTHER = "45.67.90.10", "45.67.90.20"  # web.example and other.example
CURL = "curl -s -o /dev/null -m 10 -w '%{{http_code}}' http://{}/hello; exit 0"


def reaches(sandbox, *hosts):
    return [sandbox.commands.run(CURL.format(host)).stdout == "200" for host in hosts]


def both(sandbox):
    return reaches(sandbox, "web.example", "other.example")


def test_nothing_said():
    """nothing said: everything public is reached"""
    sandbox = box()
    assert both(sandbox) == [True, True]
    assert reaches(sandbox, "169.254.169.254", "10.0.0.1") == [False, False]
    assert sandbox.get_info().allow_internet_access is True


def test_no_internet():
    """allow_internet_access False: nothing is"""
    sandbox = box(allow_internet_access=False)
    assert both(sandbox) == [False, False]
    assert sandbox.get_info().allow_internet_access is False


def test_deny():
    """deny_out: all but these; allow_out beats it"""
    assert both(box(network={"deny_out": [OTHER]})) == [True, False]
    assert reaches(box(network={"allow_out": [WEB], "deny_out": [ALL]}), WEB, OTHER) == [True, False]


def test_names():
    """allow_out with names, which need all traffic to be denied"""
    sandbox = box(network={"allow_out": ["web.example", "*.wild.example"], "deny_out": [ALL]})
    assert both(sandbox) == [True, False] and reaches(sandbox, "a.wild.example", "wild.example") == [True, False]
    raises(e2b.SandboxException, box, network={"allow_out": ["web.example"]}, containing="'ALL_TRAFFIC' in deny out")
    assert sandbox.get_info().network["allow_out"] == ["web.example", "*.wild.example"]


def test_functions():
    """functions as lists"""
    sandbox = box(network={"allow_out": lambda ctx: list(ctx.rules.keys()), "deny_out": lambda ctx: [ctx.all_traffic],
                           "rules": {"api.example": [{"transform": {"headers": {"X-From-Rules": "yes it is"}}}]}})
    assert both(sandbox) == [False, False]
    assert "yes it is" in sandbox.commands.run("curl -s -m 10 http://api.example/seen").stdout


def test_malformed():
    """malformed entries are named"""
    for network, word in (({"allow_out": ["exa mple"]}, "exa mple"), ({"deny_out": ["web.example"]}, "web.example"),
                          ({"deny_out": ["1.2.3.4/99"]}, "1.2.3.4/99")):
        raises(e2b.SandboxException, box, network={"deny_out": [ALL]} | network, containing=word)


def test_update():
    """update_network() replaces everything while it runs"""
    sandbox = box(allow_internet_access=False)
    sandbox.update_network({"allow_out": ["web.example"], "deny_out": [ALL]})
    assert both(sandbox) == [True, False]
    Sandbox.update_network(sandbox.sandbox_id, {"deny_out": [WEB]})
    assert both(sandbox) == [False, True]
    raises(e2b.SandboxException, sandbox.update_network, {"deny_out": ["nonsense"]}, containing="nonsense")
    assert both(sandbox) == [False, True]
    sandbox.update_network({"allow_internet_access": False})
    assert both(sandbox) == [False, False]
    sandbox.update_network({})
    assert both(sandbox) == [True, True]


def test_async():
    """the same with AsyncSandbox"""
    async def run():
        sandbox = await AsyncSandbox.create(network={"allow_out": ["web.example"], "deny_out": [ALL]})
        try:
            first = (await sandbox.commands.run(CURL.format("web.example"))).stdout
            await sandbox.update_network({"deny_out": [ALL]})
            return first, (await sandbox.commands.run(CURL.format("web.example"))).stdout
        finally:
            await sandbox.kill()
    assert asyncio.run(run()) == ("200", "403")
