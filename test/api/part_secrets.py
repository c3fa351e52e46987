# SPDX-License-Identifier: Apache-2.0
"""Secrets: kept encrypted, never shown again, each its key's own; and what becomes of them without their key."""
import os
import pathlib
import subprocess
import threading

import raw
import service
from part_limits import small

VALUE = "a value that nobody sees again 7f3a91"


def make(client, name="token", value=VALUE, **more):
    return client.ask("POST", "/secrets", {"name": name, "value": value} | more)


def forget_all(client):
    for secret in client.ask("GET", "/secrets?limit=100").json():
        assert client.ask("DELETE", f"/secrets/{secret['secretID']}").status == 204


def test_life(world):
    """made, shown by id and name, listed, changed, deleted: as E2B's clients know it"""
    reply = make(world.client, "OpenAI-Key", metadata={"a": "b"})
    made = reply.json()
    assert reply.status == 201 and made["name"] == "openai-key" and made["currentVersion"] == 1, made
    assert made["secretID"].startswith("sec_") and made["metadata"] == {"a": "b"} and made["createdAt"] == made["updatedAt"], made
    assert set(made) == {"secretID", "name", "currentVersion", "metadata", "createdAt", "updatedAt"}, made
    for who in (made["secretID"], "openai-key", "OPENAI-KEY"):
        assert world.client.ask("GET", f"/secrets/{who}").json() == made, who
    assert make(world.client, "openai-KEY").status == 409
    changed = world.client.ask("POST", "/secrets/openai-key", {"value": "other"}).json()
    assert changed["currentVersion"] == 2 and changed["metadata"] == {"a": "b"} and changed["createdAt"] == made["createdAt"], changed
    changed = world.client.ask("POST", f"/secrets/{made['secretID']}", {"value": "third", "metadata": {}}).json()
    assert changed["currentVersion"] == 3 and changed["metadata"] == {}, changed
    assert world.client.ask("GET", "/secrets").json() == [changed]
    assert world.client.ask("DELETE", "/secrets/openai-key").status == 204
    for method in ("GET", "DELETE"):
        assert world.client.ask(method, "/secrets/openai-key").status == 404
    assert world.client.ask("POST", "/secrets/openai-key", {"value": "x"}).status == 404


def test_refused(world):
    """names, values and metadata that cannot be"""
    for name in ("", "1a", "-a", "a.b", "a b", "a}", "ä", "sec_x", "a\n", "a" * 65, 7, None):
        assert make(world.client, name).status == 400, name
    for value in ("", "a\nb", "a\r", "\x00", "\x7f", "x" * 8001, "ä" * 4001, 7, None):
        reply = make(world.client, value=value)
        assert reply.status == 400, (value, reply)
        assert not value or str(value) not in reply.message(), reply
    for metadata in ({"k" * 129: "v"}, {"k": "v" * 1025}, {f"{i}": "v" for i in range(33)}, {f"{i}": "v" * 1000 for i in range(9)},
                     {"a": 1}, [], "x"):
        assert make(world.client, metadata=metadata).status == 400, metadata
    assert make(world.client, more=1).status == 400
    assert world.client.ask("GET", "/secrets").json() == []
    for value in ("x" * 8000, "ä" * 4000, " ", "${secrets.token}"):
        assert make(world.client, value=value).status == 201
        forget_all(world.client)


def test_own(world):
    """another key does not see them, and may use the same name"""
    made = make(world.client).json()
    assert make(world.other, value="theirs").status == 201
    for method, body in (("GET", None), ("POST", {"value": "x"}), ("DELETE", None)):
        assert world.other.ask(method, f"/secrets/{made['secretID']}", body).status == 404, method
    assert [one["secretID"] for one in world.client.ask("GET", "/secrets").json()] == [made["secretID"]]
    forget_all(world.client)
    assert len(world.other.ask("GET", "/secrets").json()) == 1
    forget_all(world.other)
    reader = raw.Client(world.port, world.service.new_key("--scope", "read"))
    assert reader.ask("GET", "/secrets").status == 200 and make(reader).status == 403
    assert raw.Client(world.port, "e2b_" + "0" * 40).ask("GET", "/secrets").status == 401


def test_pages(world):
    """in pages; a key has at most 256"""
    for number in range(256):
        assert make(world.other, f"s{number}", "x").status == 201
    assert make(world.other, "more", "x").status == 429
    names, path = [], "/secrets?limit=100"
    while path:
        reply = world.other.ask("GET", path)
        names += [one["name"] for one in reply.json()]
        token = reply.headers.get("x-next-token")
        path = f"/secrets?limit=100&nextToken={token}" if token else None
    assert names == [f"s{number}" for number in range(256)], names
    for name in names:
        assert world.other.ask("DELETE", f"/secrets/{name}").status == 204


def test_at_once(world):
    """changed from many sides at once, each change is a version"""
    assert make(world.client).status == 201
    statuses = []

    def change():
        statuses.append(world.client.ask("POST", "/secrets/token", {"value": "x"}).status)

    threads = [threading.Thread(target=change) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 4, statuses
    assert world.client.ask("GET", "/secrets/token").json()["currentVersion"] == 5
    forget_all(world.client)


def files_with(state, text):
    return [str(path) for path in pathlib.Path(state).rglob("*") if path.is_file() and text in path.read_bytes()]


def test_at_rest(_):
    """not on the disk, not in the log; the key is 32 bytes that only the server's user can read"""
    with small() as (running, client):
        assert make(client).status == 201
        assert make(client, "bad name", VALUE).status == 400
        assert not files_with(running.state, VALUE.encode()), files_with(running.state, VALUE.encode())
        assert VALUE not in running.log()
        info = os.stat(f"{running.state}/db/secrets.key")
        assert info.st_size == 32 and info.st_mode & 0o777 == 0o600 and info.st_uid == os.stat(f"{running.state}/db").st_uid, info


def uses(client, name):
    """A sandbox whose requests need it: refused when it cannot be read."""
    return client.ask("POST", "/sandboxes", {"templateID": "base", "network": {
        "allowOut": ["api.example.test"], "denyOut": ["0.0.0.0/0"],
        "rules": {"api.example.test": [{"transform": {"headers": {"Authorization": "Bearer ${secrets." + name + "}"}}}]}}})


def test_key_lost(_):
    """with another key: what was kept cannot be read and says so; set again, it can"""
    with small() as (running, client):
        assert make(client).status == 201 and uses(client, "token").status == 201
        os.unlink(f"{running.state}/db/secrets.key")
        running.kill()
        running.start()
        reply = uses(client, "token")
        assert reply.status == 400 and "set it again" in reply.message(), reply
        assert uses(client, "nothing").status == 400
        assert client.ask("POST", "/secrets/token", {"value": "new"}).status == 200
        reply = uses(client, "token")
        assert reply.status == 201 and "new" not in str(reply.json().get("network")), reply


def test_key_wrong(_):
    """a key file of another size, or that others can read: the service does not start, and says which file"""
    for damage in (lambda path: os.truncate(path, 31), lambda path: os.chmod(path, 0o644)):
        with small() as (running, _client):
            damage(f"{running.state}/db/secrets.key")
            running.kill()
            try:
                running.start()
                assert False, "it started"
            except service.ServiceError as error:
                assert "secrets.key" in str(error), error
            finally:
                os.unlink(f"{running.state}/db/secrets.key")
                running.start()


def verb(world, *words, text=None):
    return subprocess.run([service.GLOVEBOX, "secret", *words], input=text, capture_output=True, text=True, timeout=30, check=False,
                          env=service.CLEAN | {"E2B_API_URL": world.service.url, "E2B_API_KEY": world.service.key})


def test_verb(world):
    """glovebox secret set, ls, rm; never a value among the arguments"""
    assert verb(world, "set", "token", text=VALUE + "\n").returncode == 0
    listed = verb(world, "ls")
    assert listed.returncode == 0 and "token" in listed.stdout and VALUE not in listed.stdout, listed
    assert verb(world, "ls", "-q").stdout == "token\n"
    assert verb(world, "set", "token", text="two").returncode == 0
    assert world.client.ask("GET", "/secrets/token").json()["currentVersion"] == 2
    for words, text in ((("set",), "x"), (("set", "token", "value"), "x"), (("set", "token"), ""), (("set", "token"), "\n"),
                        (("rm",), None), (("frob",), None), (("set", "t", "--from"), None), (("set", "t"), "x" * 8003)):
        done = verb(world, *words, text=text)
        assert done.returncode == 2 and done.stderr.startswith("glovebox: ") and not done.stdout, done
    for words, text in ((("set", "bad name"), "x"), (("set", "t"), "a\nb"), (("rm", "nothing"), None),
                        (("set", "t", "--from-file", "/nonexistent"), None)):
        done = verb(world, *words, text=text)
        assert done.returncode == 1 and done.stderr.startswith("glovebox: "), done
    assert verb(world, "rm", "token").returncode == 0
    assert verb(world, "ls", "-o", "json").stdout == "[]\n"
