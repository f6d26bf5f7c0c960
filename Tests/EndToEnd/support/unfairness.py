"""A scheduler that is unfair on purpose, to find tests that race: `make test-unfair`.

While tests run, one process after another of those they started (hubs, Postgres and its sessions, Redis) stands still for a moment. On a
busy machine any of them may, seldom; here each does, all the time. What a test may not take for granted shows: that what one observer
has seen another has, that a command took effect when it was given, that two loops or two hubs are equally fast.
"""

import os
import pathlib
import random
import signal
import threading
import time
import weakref

from support import freezing

#: Seconds for which a process stands still, on average and at most, and seconds between two.
STILL, LONGEST, BETWEEN = 0.15, 0.8, (0.05, 0.25)

#: Every support.cluster.Cluster of this process of tests: its Postgres is nobody's child.
clusters = weakref.WeakSet()
_stops = []  # (since, until) of time.monotonic()


def begin(seed):
    threading.Thread(target=_stop_one_after_another, args=(random.Random(seed),), name="unfairness", daemon=True).start()


def stood_still(since, until):
    """Seconds of this time in which some process stood still."""
    return sum(max(0.0, min(until, end) - max(since, begin)) for begin, end in list(_stops))


def _stop_one_after_another(chance):
    while True:
        time.sleep(chance.uniform(*BETWEEN))
        victims = _processes()
        # A hub is one of them as often as all of a server's sessions.
        kinds = sorted({name for name, _ in victims})
        if not kinds:
            continue
        kind = chance.choice(kinds)
        pid = chance.choice([pid for name, pid in victims if name == kind])
        began = time.monotonic()
        try:
            if not freezing.is_running(pid):
                continue
            os.kill(pid, signal.SIGSTOP)
            time.sleep(min(chance.expovariate(1 / STILL), LONGEST))
            if pid not in freezing.frozen:
                os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass
        _stops.append((began, time.monotonic()))


def _processes():
    """(name, pid) of what these tests started and that runs."""
    parents = {}
    for folder in pathlib.Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                name, rest = (folder / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
            except (FileNotFoundError, ProcessLookupError):
                continue
            parents[int(folder.name)] = (name, int(rest.split()[1]))
    servers = {pid for cluster in list(clusters) if (pid := cluster.pid)} | {os.getpid()}
    found = []
    for pid, (name, parent) in parents.items():
        while parent > 1 and parent not in servers and pid not in servers:
            parent = parents.get(parent, ("", 0))[1]
        if (parent in servers or pid in servers) and name in ("roost", "redis-server", "postgres") and pid not in freezing.frozen:
            found.append((name, pid))
    return sorted(found)
