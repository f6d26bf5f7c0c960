"""The socket by which a service tells systemd how it fares (sd_notify(3)), and what came by it."""

import itertools
import os
import socket

from support.deadline import PATIENCE, until

_numbers = itertools.count(1)


class NotifySocket:
    def __init__(self):
        # Abstract, so that nothing is left behind.
        self.name = f"roost-test-{os.getpid()}-{next(_numbers)}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + self.name)
        self._socket.setblocking(False)
        self.lines = []

    @property
    def variable(self):
        """What NOTIFY_SOCKET is."""
        return "@" + self.name

    def close(self):
        self._socket.close()

    def take(self):
        """All lines so far."""
        while True:
            try:
                self.lines += self._socket.recv(4096).decode().split("\n")
            except BlockingIOError:
                return self.lines

    def has(self, line, within=PATIENCE, after=0):
        until(lambda: line in self.take()[after:], within, f"{line} from the hub, which said {self.lines}")

    @property
    def status(self):
        return next((line.removeprefix("STATUS=") for line in reversed(self.take()) if line.startswith("STATUS=")), None)
