# SPDX-License-Identifier: Apache-2.0
"""Secrets: made, changed, found by id and name, listed, destroyed; never given back."""
import e2b
from e2b import Secret
from harness import raises

VALUE = "a value that nobody sees again"


def test_life():
    """create(), get_info(), update(), exists(), destroy()"""
    made = Secret.create("py-token", VALUE, metadata={"purpose": "test"})
    try:
        assert made.name == "py-token" and made.version == 1 and made.metadata == {"purpose": "test"}, made
        assert VALUE not in repr(made)
        assert Secret.get_info(made.secret_id) == made and Secret.get_info("PY-Token") == made
        assert Secret.update("py-token", "another").version == 2
        assert Secret.exists("py-token") is True
    finally:
        assert Secret.destroy(made.secret_id) is True
    assert Secret.exists("py-token") is False and Secret.destroy("py-token") is False


def test_list():
    """list() in pages"""
    names = ["py-a", "py-b", "py-c"]
    for name in names:
        Secret.create(name, VALUE)
    try:
        paginator, found = Secret.list(limit=2), []
        while paginator.has_next:
            found += paginator.next_items()
        assert [one.name for one in found if one.name in names] == names, found
    finally:
        for name in names:
            Secret.destroy(name)


def test_refused():
    """one that is not there, a name that is taken, a value that cannot be"""
    raises(e2b.SecretNotFoundException, Secret.get_info, "py-nothing")
    Secret.create("py-token", VALUE)
    try:
        raises(e2b.SecretException, Secret.create, "py-token", "x")
        raises(e2b.SecretException, Secret.create, "py-b", "a\nb", containing="control characters")
    finally:
        Secret.destroy("py-token")
