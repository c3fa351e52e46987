# SPDX-License-Identifier: Apache-2.0
"""Small package registries and a git repository for the laboratory's web server, made from nothing: a pip index, an
npm registry and an apt repository, each with one package "labthing", below files/ and git/ of a directory."""
import base64
import hashlib
import io
import json
import pathlib
import shutil
import subprocess
import tarfile
import zipfile

NAME, VERSION = "labthing", "1.0.0"
HOST = "packages.example"


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())


def pip_index(files):
    wheel = f"{NAME}-{VERSION}-py3-none-any.whl"
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr(f"{NAME}.py", "SAYS = 'hello from a wheel'\n")
        archive.writestr(f"{NAME}-{VERSION}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\n")
        archive.writestr(f"{NAME}-{VERSION}.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: lab\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{NAME}-{VERSION}.dist-info/RECORD", f"{NAME}.py,,\n")
    write(files / "pip" / NAME / wheel, data.getvalue())
    digest = hashlib.sha256(data.getvalue()).hexdigest()
    write(files / "pip" / NAME / "index.html", f'<!DOCTYPE html><html><body><a href="{wheel}#sha256={digest}">{wheel}</a></body></html>\n')


def npm_registry(files):
    """One document for each scheme, since the document has the whole address of the package in it."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for name, text in (("package.json", json.dumps({"name": NAME, "version": VERSION, "main": "index.js"})),
                           ("index.js", "module.exports = 'hello from a tarball'\n")):
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    packed = data.getvalue()
    for scheme in ("http", "https"):
        write(files / f"npm-{scheme}" / f"{NAME}-{VERSION}.tgz", packed)
        about = {"name": NAME, "version": VERSION, "main": "index.js", "dist": {
            "tarball": f"{scheme}://{HOST}/files/npm-{scheme}/{NAME}-{VERSION}.tgz", "shasum": hashlib.sha1(packed).hexdigest(),
            "integrity": "sha512-" + base64.b64encode(hashlib.sha512(packed).digest()).decode()}}
        write(files / f"npm-{scheme}" / NAME, json.dumps({"name": NAME, "dist-tags": {"latest": VERSION}, "versions": {VERSION: about}}))


def apt_repository(files, scratch):
    """A repository of one package; nothing where there is no dpkg-deb."""
    if not shutil.which("dpkg-deb"):
        return
    root = scratch / NAME
    write(root / "DEBIAN/control", f"Package: {NAME}\nVersion: {VERSION}\nArchitecture: all\nMaintainer: Lab <lab@web.example>\n"
          "Description: a package of the laboratory\n")
    write(root / f"usr/share/{NAME}/says", "hello from a package\n")
    for path in (scratch, root, root / "DEBIAN"):
        path.chmod(0o755)
    package = files / "apt/pool" / f"{NAME}_{VERSION}_all.deb"
    package.parent.mkdir(parents=True)
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", str(root), str(package)], check=True, capture_output=True)
    data = package.read_bytes()
    index = (f"Package: {NAME}\nVersion: {VERSION}\nArchitecture: all\nMaintainer: Lab <lab@web.example>\nFilename: pool/{package.name}\n"
             f"Size: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\nDescription: a package of the laboratory\n")
    write(files / "apt/dists/lab/main/binary-amd64/Packages", index)
    write(files / "apt/dists/lab/main/binary-arm64/Packages", index)
    lines = "".join(f" {hashlib.sha256(index.encode()).hexdigest()} {len(index)} main/binary-{machine}/Packages\n" for machine in ("amd64", "arm64"))
    write(files / "apt/dists/lab/Release", "Suite: lab\nCodename: lab\nArchitectures: amd64 arm64\nComponents: main\nDate: Thu, 01 Jan 2026 00:00:00 UTC\n"
          f"SHA256:\n{lines}")


def git_repository(git, scratch):
    work = scratch / "work"
    write(work / "README", "hello from a repository\n")
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(scratch), "GIT_AUTHOR_NAME": "Lab", "GIT_AUTHOR_EMAIL": "lab@web.example",
                   "GIT_COMMITTER_NAME": "Lab", "GIT_COMMITTER_EMAIL": "lab@web.example", "GIT_CONFIG_NOSYSTEM": "1"}
    for words in (("init", "-q", "-b", "main", "."), ("add", "README"), ("commit", "-q", "-m", "one"),
                  ("clone", "-q", "--bare", ".", str(git / "thing.git"))):
        subprocess.run(["git", *words], cwd=work, env=environment, check=True, capture_output=True)


def make(directory):
    directory = pathlib.Path(directory)
    files, git, scratch = directory / "files", directory / "git", directory / "scratch"
    for path in (files, git, scratch):
        path.mkdir()
    pip_index(files)
    npm_registry(files)
    apt_repository(files, scratch)
    git_repository(git, scratch)
    shutil.rmtree(scratch)
