"""Roost itself."""

import contextlib
import signal
import subprocess

from cluster import Cluster
from hub import Hub
from peers.peer import Peer, Server, Traffic, end

JOIN = b'["1","1","realtime:bench","phx_join",{"config":{}}]'
PUBLISH = b'["1","2","realtime:bench","broadcast",{"type":"broadcast","event":"m","payload":{"t":"'


class Roost(Peer):
    """`roost serve` with one loop, on a private Postgres; the channel is public, as those of the others are."""
    name = "roost"
    title = "Roost"
    ending = signal.SIGTERM

    def missing(self):
        return None if self.tools.roost.exists() else f"{self.tools.roost.name} is not built (make build)"

    def version(self):
        return subprocess.run([self.tools.roost, "--version"], capture_output=True, text=True).stdout.strip()

    def open(self):
        self.stack = contextlib.ExitStack()
        try:
            cluster = self.stack.enter_context(Cluster())
            self.hub = self.stack.enter_context(Hub(self.tools, cluster, cluster.create("compare"), loops=1))
            end(self.hub.process, self.ending)
        except BaseException:
            self.stack.close()
            raise

    def close(self):
        self.stack.close()

    @contextlib.contextmanager
    def running(self, window):
        self.hub.start()
        try:
            yield Server(self.hub.port, self.hub.process)
        finally:
            end(self.hub.process, self.ending)

    def traffic(self, size):
        return Traffic(path=f"/realtime/v1/websocket?vsn=2.0.0&apikey={self.hub.token}", subscribe=(JOIN,), answers=1,
                       publisher=(JOIN,), publisher_answers=1, prefix=PUBLISH, suffix=b'"}}]')
