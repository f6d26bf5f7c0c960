"""Node's `ws`."""

import os
import subprocess

from peers.peer import HERE, Peer, Traffic, package_version


class Node(Peer):
    name = "ws"
    title = "ws (Node)"
    program = "node"
    package = "node-ws"

    @classmethod
    def packages(cls, options):
        return ["nodejs", "node-ws"]

    def missing(self):
        if reason := super().missing():
            return reason
        outcome = subprocess.run(["node", "-e", "require('ws')"], env=self.environment(), capture_output=True)
        return None if outcome.returncode == 0 else f"node finds no ws (apt-get install {self.package})"

    def version(self):
        return f"{package_version('nodejs')}, {package_version(self.package)}"

    def environment(self):
        # Where Debian puts modules; a Node that is not Debian's does not look there.
        return os.environ | {"NODE_PATH": "/usr/share/nodejs", "NODE_ENV": "production"}

    def command(self, port, window):
        return ["node", HERE / "node_server.js", port]

    def traffic(self, size):
        return Traffic()
