# SPDX-License-Identifier: Apache-2.0
"""Certificates for the laboratory: one authority that boxes are told to trust, one that nobody trusts, and a
certificate for each name, made by openssl when it is first asked for."""
import pathlib
import ssl
import subprocess
import threading

CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def openssl(*argv):
    subprocess.run(["openssl", *argv], stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=60)


class Authority:
    """Its certificate is self.ca; leaf(name) gives a file with a key and a chain for that name."""

    def __init__(self, directory, title):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.ca, self.key = self.directory / "ca.pem", self.directory / "ca.key"
        self.lock = threading.Lock()
        if not self.ca.exists():
            openssl("req", "-x509", *CURVE, "-keyout", str(self.key), "-out", str(self.ca), "-days", "30", "-subj", f"/CN={title}",
                    "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def leaf(self, name):
        with self.lock:
            path = self.directory / f"{name}.pem"
            if not path.exists():
                self.make(name, path)
            return path

    def make(self, name, path):
        request, key, extensions = (self.directory / f"{name}.{end}" for end in ("csr", "key", "ext"))
        extensions.write_text(f"subjectAltName=DNS:{name}\nextendedKeyUsage=serverAuth\nbasicConstraints=CA:FALSE\n")
        openssl("req", *CURVE, "-keyout", str(key), "-out", str(request), "-subj", "/CN=lab")
        openssl("x509", "-req", "-in", str(request), "-CA", str(self.ca), "-CAkey", str(self.key), "-CAcreateserial", "-days", "30",
                "-extfile", str(extensions), "-out", str(path))
        path.write_bytes(path.read_bytes() + key.read_bytes())


class Certificates:
    """The TLS side of the world's servers. A name that begins with "untrusted." gets a certificate of the
    authority nobody trusts, one with "wrongname." a good certificate for somebody else."""

    def __init__(self, directory):
        self.trusted = Authority(pathlib.Path(directory) / "trusted", "glovebox test authority")
        self.strange = Authority(pathlib.Path(directory) / "strange", "somebody else's authority")
        self.contexts = {}

    def for_name(self, name):
        if name not in self.contexts:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.set_alpn_protocols(["http/1.1"])
            if name.startswith("untrusted."):
                context.load_cert_chain(self.strange.leaf(name))
            elif name.startswith("wrongname."):
                context.load_cert_chain(self.trusted.leaf("somebody-else.example"))
            else:
                context.load_cert_chain(self.trusted.leaf(name))
            self.contexts[name] = context
        return self.contexts[name]

    def server_context(self, seen):
        """seen(socket, name) hears which name a client asked for."""
        base = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        base.set_alpn_protocols(["http/1.1"])
        base.load_cert_chain(self.trusted.leaf("nameless.example"))

        def choose(sock, name, _):
            seen(sock, name)
            if name:
                sock.context = self.for_name(name)

        base.sni_callback = choose
        return base
