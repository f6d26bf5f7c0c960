"""The least a fan-out server can do."""

import shutil

from peers.peer import Peer, Traffic


class Limit(Peer):
    """The referee's `rawfan` where there is one, else loadtest/limit: one ready-made frame per socket with send(2)."""
    name = "limit"
    title = "The limit"

    @classmethod
    def packages(cls, options):
        compiler = [] if shutil.which("cc") or shutil.which("clang") else ["gcc"]
        has_rawfan = (options.referee / "rawfan.c").exists() and not options.own_limit
        return [*compiler, "libssl-dev", *(["liburing-dev"] if has_rawfan else [])]

    @property
    def binary(self):
        return self.tools.rawfan or self.tools.limit

    def missing(self):
        return None if self.binary else "it does not compile here"

    def version(self):
        return "rawfan, the referee's" if self.tools.rawfan else "loadtest/limit"

    def command(self, port, window):
        # It writes together what came in together, as much as a server ever could.
        return [self.binary, "-p", port, "-k", window]

    def traffic(self, size):
        return Traffic()
