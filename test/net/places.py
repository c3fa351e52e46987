# SPDX-License-Identifier: Apache-2.0
"""Names and addresses of the laboratory. The addresses look public, since boxes are kept from the others; they
are nobody's here, because the laboratory has no way out."""

MACHINE_LINK, WORLD_LINK = "lab0", "lab1"
MACHINE, WORLD = "45.67.89.2", "45.67.89.1"
MACHINE6, WORLD6 = "2a11:4567:89::2", "2a11:4567:89::1"
NOBODY = "45.67.99.0/24"  # packets to it are lost

HTTP_PORTS = (80, 8000, 8080)
HTTPS_PORTS = (443, 8443)
ECHO_PORTS = (7, 5432)
SSH_PORT, GIT_PORT, DEAF_PORT, PROXY_PORT = 22, 9418, 9, 3128
CLOSED_PORT = 1
UNREACHED = "45.67.90.99"  # by the proxy
PROXY_LOGIN = "lab:pass-word"

# What the DNS server knows from the start: name, address, perhaps an IPv6 one.
HOSTS = {
    "web.example": ("45.67.90.10", None),
    "www.web.example": ("45.67.90.11", None),
    "other.example": ("45.67.90.20", None),
    "api.example": ("45.67.90.30", None),
    "untrusted.example": ("45.67.90.31", None),
    "wrongname.example": ("45.67.90.32", None),
    "both.example": ("45.67.90.40", "2a11:4567:90::40"),
    "six.example": (None, "2a11:4567:90::41"),
    "git.example": ("45.67.90.50", None),
    "packages.example": ("45.67.90.60", None),
    "lost.example": ("45.67.99.1", None),
    "evil.example": ("45.67.91.66", None),
    "*.wild.example": ("45.67.90.70", None),
}


def records():
    return {name: {kind: [address] for kind, address in (("A", four), ("AAAA", six)) if address} for name, (four, six) in HOSTS.items()}
