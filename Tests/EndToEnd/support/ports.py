"""Free ports of 127.0.0.1."""

import socket

_given = set()


def free_port():
    """A port that nobody listens on, and that this run has not given away yet."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        if port not in _given:
            _given.add(port)
            return port
