"""nchan, a module of nginx."""

import os
import pathlib
import signal

from peers.peer import Peer, Traffic, package_version

MODULE = pathlib.Path("/usr/lib/nginx/modules/ngx_nchan_module.so")


class Nchan(Peer):
    name = "nchan"
    title = "nchan (nginx)"
    program = "nginx"
    package = "libnginx-mod-nchan"
    #: A master and a worker.
    processes = 2
    #: Killed, its master would leave the worker behind.
    ending = signal.SIGTERM

    def missing(self):
        return super().missing() or (None if MODULE.exists() else f"its module is missing (apt-get install {self.package})")

    def version(self):
        return f"{package_version('nginx')}, {package_version(self.package)}"

    def command(self, port, window):
        # nginx changes to another user only when it is root, and warns otherwise.
        user = "user root;" if os.geteuid() == 0 else ""
        settings = self.configuration("nchan.conf", port=port, user=user, connections=self.tools.files - 100)
        return ["nginx", "-p", self.folder, "-e", "stderr", "-c", settings]

    def traffic(self, size):
        return Traffic(path="/bench")
