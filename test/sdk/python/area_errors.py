# SPDX-License-Identifier: Apache-2.0
"""What goes wrong has a class."""
import os

import e2b
from e2b import Sandbox
from harness import box, raises


def test_wrong_key():
    """a wrong key"""
    raises(e2b.AuthenticationException, Sandbox.create, api_key="e2b_" + "0" * 40)


def test_other_key():
    """another key's sandbox is none"""
    sandbox, other = box(), {"api_key": os.environ["OTHER_KEY"]}
    raises(e2b.SandboxNotFoundException, Sandbox.connect, sandbox.sandbox_id, **other)
    raises(e2b.SandboxNotFoundException, Sandbox.get_info, sandbox.sandbox_id, **other)
    assert Sandbox.kill(sandbox.sandbox_id, **other) is False
    assert sandbox.is_running()


def test_room():
    """more sandboxes than there is room for"""
    limited = {"api_url": os.environ["LIMITED_URL"], "sandbox_url": os.environ["LIMITED_URL"], "api_key": os.environ["LIMITED_KEY"]}
    made = []
    try:
        while len(made) < 2:
            made.append(Sandbox.create(**limited))
        raises(e2b.RateLimitException, Sandbox.create, **limited)
    finally:
        for sandbox in made:
            Sandbox.kill(sandbox.sandbox_id, **limited)
