"""nats-server on its WebSocket port."""

import os

from peers.peer import Peer, Traffic

HELLO = b'CONNECT {"verbose":false}\r\n'


class Nats(Peer):
    name = "nats"
    title = "nats-server"
    program = package = "nats-server"

    def command(self, port, window):
        return ["nats-server", "-c", self.configuration("nats.conf", port=port)]

    def environment(self):
        # One thread that runs Go, as the others have one loop; it also needs a little less CPU per delivery so.
        return os.environ | {"GOMAXPROCS": "1"}

    def traffic(self, size):
        # The server greets with INFO; the answer to PING tells that what came before it is done.
        return Traffic(subscribe=(HELLO + b"SUB bench 1\r\nPING\r\n",), answers=2, publisher=(HELLO + b"PING\r\n",),
                       publisher_answers=2, prefix=b"PUB bench %d\r\n" % size, suffix=b"\r\n")
