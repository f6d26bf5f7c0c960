"""Python's `websockets`."""

import subprocess

from peers.peer import HERE, Peer, Traffic, package_version

#: Debian's own, which its packages belong to, whatever else is in PATH.
INTERPRETER = "/usr/bin/python3"


class Python(Peer):
    name = "websockets"
    title = "websockets (Python)"
    program = INTERPRETER
    package = "python3-websockets"
    #: Every so many messages are left out, for the self-test.
    lose = 0

    def missing(self):
        if reason := super().missing():
            return reason
        outcome = subprocess.run([INTERPRETER, "-c", "import websockets"], capture_output=True)
        return None if outcome.returncode == 0 else f"{INTERPRETER} finds no websockets (apt-get install {self.package})"

    def version(self):
        return f"{package_version('python3')}, {package_version(self.package)}"

    def command(self, port, window):
        return [INTERPRETER, HERE / "python_server.py", port, *([self.lose] if self.lose else [])]

    def traffic(self, size):
        return Traffic()
