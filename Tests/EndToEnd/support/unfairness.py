"""A scheduler that is unfair on purpose, to find tests that race: `make test-unfair`.

While tests run, one process after another of those they started (hubs, Postgres and its sessions, Redis) stands still for a moment, or
one thread of a hub alone, or the tests themselves. On a busy machine any of them may, seldom; here each does, all the time. What a test
may not take for granted shows: that what one observer has seen another has, that a command took effect when it was given, that two loops
or two hubs are equally fast, that its next step comes before a timer of the hub ends.
"""

import contextlib
import ctypes
import os
import pathlib
import random
import signal
import threading
import time
import weakref

from support import freezing, threads

#: Seconds for which a process stands still, on average and at most, and seconds between two.
STILL, LONGEST, BETWEEN = 0.15, 0.8, (0.05, 0.25)

#: Threads of a hub that stand still alone.
THREADS = [f"roost-{name}" for name in (
    "loop-0", "loop-1", "feed", "policies", "filters", "authority", "presence", "sessions", "streams", "rows", "push", "apns", "listen",
    "capture", "cluster")]

#: Holds the interpreter's lock, so that no thread of this process gets on.
_stand_still = ctypes.PyDLL(None).usleep

#: Every support.cluster.Cluster of this process of tests: its Postgres is nobody's child.
clusters = weakref.WeakSet()
_stops = []  # (since, until) of time.monotonic()


def begin(seed):
    # Hubs are what is tested: one of them stands still half of the time.
    for name, turn in (("hubs", _stop_hub), ("others", _stop_other)):
        threading.Thread(target=_repeat, args=(turn, random.Random(f"{seed} {name}")), name=f"unfairness {name}", daemon=True).start()


def stood_still(since, until):
    """Seconds of this time in which some process stood still."""
    return sum(max(0.0, min(until, end) - max(since, begin)) for begin, end in list(_stops))


def _repeat(turn, chance):
    while True:
        time.sleep(chance.uniform(*BETWEEN))
        began = time.monotonic()
        turn(chance, min(chance.expovariate(1 / STILL), LONGEST))
        _stops.append((began, time.monotonic()))


def _stop_hub(chance, seconds):
    hubs = [pid for name, pid in _processes() if name == "roost"]
    if not hubs:
        return
    # The newest are those of the test at hand.
    pid = chance.choice(hubs[-3:] if chance.random() < 0.8 else hubs)
    alone = threads.threads(pid, *THREADS) if chance.random() < 0.5 else []
    if alone:
        _stop_thread(chance.choice(alone), seconds)
    else:
        _stop_process(pid, seconds)


def _stop_other(chance, seconds):
    others = [(name, pid) for name, pid in _processes() if name != "roost"]
    # Redis is one of them as often as all sessions of Postgres.
    kind = chance.choice(sorted({name for name, _ in others} | {"tests"}))
    if kind == "tests":
        _stand_still(int(seconds * 1_000_000))
    else:
        _stop_process(chance.choice([pid for name, pid in others if name == kind]), seconds)


def _stop_process(pid, seconds):
    try:
        if not freezing.is_running(pid):
            return
        os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        if pid not in freezing.frozen:
            os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        pass


def _stop_thread(thread, seconds):
    if threads.stop(thread):
        until = time.monotonic() + seconds
        while time.monotonic() < until and not threads.is_wanted(thread):
            time.sleep(0.01)
        threads.let_go_on(thread)


def _processes():
    """(name, pid) of what these tests started and that runs, in the order in which it was started."""
    processes = {}
    for folder in pathlib.Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                name, rest = (folder / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
                fields = rest.split()
                # Its parent, and when it was started (proc(5)).
                processes[int(folder.name)] = (name, int(fields[1]), int(fields[19]))
    servers = {pid for cluster in list(clusters) if (pid := cluster.pid)} | {os.getpid()}
    spared = freezing.frozen | freezing.spared
    found = []
    for pid, (name, parent, started) in processes.items():
        if name not in ("roost", "redis-server", "postgres") or pid in spared:
            continue
        while parent > 1 and parent not in servers and pid not in servers:
            parent = processes.get(parent, ("", 0, 0))[1]
        if parent in servers or pid in servers:
            found.append((started, name, pid))
    return [(name, pid) for _, name, pid in sorted(found)]
