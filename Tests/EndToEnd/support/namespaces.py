"""Networks of their own for hubs, whose packets can be lost in silence: namespaces of the kernel, which end with who made them.

Whoever uses them is in a network of its own first (`become_private`), so that their addresses are nobody else's and nothing of them is
left behind.
"""

import os
import shutil
import subprocess
import sys

from support.deadline import until

_MARK = "ROOST_PRIVATE_NETWORK"
#: Nobody's address of Ethernet: what is sent to it is lost, and nobody is told.
_NOBODY = "02:00:00:00:00:01"


def are_possible():
    """Whether this process may make them."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "nsenter", "ip"))):
        return False
    return subprocess.run(["unshare", "--net", "ip", "link", "add", "roost0", "type", "veth", "peer", "name", "roost1"],
                          stdin=subprocess.DEVNULL, capture_output=True).returncode == 0


def is_private():
    return _MARK in os.environ


def become_private():
    """Starts this program anew, in a network where nothing is but its own loopback."""
    if not is_private():
        script = 'ip link set lo up && exec "$@"'
        os.environ[_MARK] = "1"
        os.execvp("unshare", ["unshare", "--net", "sh", "-c", script, "sh", sys.executable, *sys.argv])


def _ip(*words, within=()):
    result = subprocess.run([*within, "ip", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert result.returncode == 0, f"ip {' '.join(words)}: {result.stderr}"
    return result.stdout


class Wire:
    """A pair of network cards: one here, `here`, and one in a namespace, `there`. Each way can be cut by itself."""

    def __init__(self, network, name, subnet):
        self.network, self.name = network, name
        self.here, self.there = f"10.{subnet}.{network.number}.1", f"10.{subnet}.{network.number}.2"
        self._card = f"{name}{network.number}"
        _ip("link", "add", self._card, "type", "veth", "peer", "name", name, "netns", str(network.process.pid))
        for card, address, within in ((self._card, self.here, ()), (name, self.there, network.within)):
            _ip("address", "add", f"{address}/24", "dev", card, within=within)
            _ip("link", "set", card, "up", within=within)
        self._macs = [_ip("-o", "link", "show", card, within=within).split("link/ether ")[1].split()[0]
                      for card, within in ((self._card, ()), (name, network.within))]
        self.mend()

    def cut(self, outward=True, inward=True):
        """What the namespace sends (`outward`) or is sent is lost. Connections stay as they are."""
        if outward:
            self._neighbour(self.name, self.here, _NOBODY, self.network.within)
        if inward:
            self._neighbour(self._card, self.there, _NOBODY, ())

    def mend(self):
        self._neighbour(self.name, self.here, self._macs[0], self.network.within)
        self._neighbour(self._card, self.there, self._macs[1], ())

    def _neighbour(self, card, address, mac, within):
        _ip("neighbour", "replace", address, "lladdr", mac, "dev", card, "nud", "permanent", within=within)


class Network:
    """A namespace; `within` is the command that hands another one to it."""

    def __init__(self, number):
        self.number = number
        # Ends with its input, so with this process, however that ends.
        self.process = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        path = f"/proc/{self.process.pid}/ns/net"
        until(lambda: os.readlink(path) != os.readlink("/proc/self/ns/net"), what="a network of its own")
        self.within = ["nsenter", f"--net={path}"]
        _ip("link", "set", "lo", "up", within=self.within)

    def wire(self, name, subnet):
        return Wire(self, name, subnet)

    def remove(self):
        self.process.stdin.close()
        self.process.wait(30)
