"""The servers that are compared."""

import shutil
import subprocess

from peers.limit import Limit
from peers.mosquitto import Mosquitto
from peers.nats import Nats
from peers.nchan import Nchan
from peers.node import Node
from peers.python import Python
from peers.roost import Roost

#: The first is what the others are held against.
KINDS = (Limit, Roost, Nchan, Nats, Mosquitto, Node, Python)
NAMES = [kind.name for kind in KINDS]


def chosen(options):
    return [kind for kind in KINDS if kind.name in options.peers]


def missing_packages(options):
    if options.tables or not shutil.which("dpkg-query"):
        return []
    wanted = {package for kind in chosen(options) for package in kind.packages(options)}
    # Fails when it does not know one of them, which is what we are asking.
    outcome = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *wanted],
                             capture_output=True, text=True)
    return sorted(wanted - {line.split()[0] for line in outcome.stdout.splitlines() if line.endswith(" installed")})


def available(options, tools):
    """Those that can be measured here, and a sentence for each that cannot."""
    found, sentences = [], list(tools.remarks)
    for kind in chosen(options):
        peer = kind(tools)
        if reason := peer.missing():
            sentences.append(f"{peer.title} is left out: {reason}.")
        else:
            found.append(peer)
    return found, sentences
