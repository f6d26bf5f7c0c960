"""Ports of 127.0.0.1 for servers that a test starts."""

import random
import socket

import pytest

#: For tests of what is the same with and without TLS: they are given a hub of either kind.
over_both = pytest.mark.parametrize("hub", ["plain", "tls"], indirect=True)

_RANGE = "/proc/sys/net/ipv4/ip_local_port_range"
_claims = []


class SecurePort(int):
    """The port of a hub that speaks TLS: clients of `support` that are given it do so, too."""

    def __new__(cls, port, trust):
        made = super().__new__(cls, port)
        made.trust = trust
        return made


def trust_of(port):
    """The ssl.SSLContext of a port's clients; None where they speak plain."""
    return getattr(port, "trust", None)


def free_port():
    """A port that nobody listens on and that no other process of the tests is given while this one lives.

    It lies below the ports that the kernel gives to outgoing connections: between the pick and the `listen`, any client
    of a test beside this one would otherwise be handed it. A claim is an abstract Unix socket of the port's name, which
    goes when its process does.
    """
    with open(_RANGE) as range_of_clients:
        first = int(range_of_clients.read().split()[0])
    while True:
        port = random.randrange(10_000, max(first, 20_000))
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0roost-test-port-{port}")
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", port))
        except OSError:
            claim.close()
            continue
        _claims.append(claim)
        return port
