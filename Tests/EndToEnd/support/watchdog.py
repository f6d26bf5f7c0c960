"""How long the machine itself stood still: processes of their own, one for each core, that do nothing but look at the clock.

What is late by more than that is late by somebody's fault.
"""

import bisect
import os
import subprocess
import sys
import tempfile
import time

#: Seconds between two looks, and from which delay on a look counts as a stall.
EVERY, LATE = 0.005, 0.02


class Watchdog:
    def __init__(self):
        self._file = tempfile.NamedTemporaryFile(mode="r", prefix="roost-watchdog-")
        self._processes = [
            subprocess.Popen([sys.executable, __file__, str(core), self._file.name], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            for core in sorted(os.sched_getaffinity(0))]
        self._stalls = {}  # core: [(since, until)]

    def stop(self):
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait(10)

    def stalled(self, since, until):
        """Seconds of this time in which a core did not get to run anything new, of the core that had most of them."""
        self._read()
        return max((sum(max(0.0, min(until, end) - max(since, begin)) for begin, end in self._of(stalls, since, until))
                    for stalls in self._stalls.values()), default=0.0)

    @staticmethod
    def _of(stalls, since, until):
        # Those of one core come one after the other.
        first = bisect.bisect_left(stalls, since, key=lambda stall: stall[1])
        return stalls[first:bisect.bisect_right(stalls, until, key=lambda stall: stall[0])]

    def long_stalls(self, seconds=0.5):
        self._read()
        return sorted(stall for stalls in self._stalls.values() for stall in stalls if stall[1] - stall[0] > seconds)

    @property
    def longest(self):
        self._read()
        return max((end - begin for stalls in self._stalls.values() for begin, end in stalls), default=0.0)

    def total(self, since):
        return self.stalled(since, time.monotonic())

    def _read(self):
        for line in self._file:
            core, begin, end = line.split()
            self._stalls.setdefault(core, []).append((float(begin), float(end)))


def watch(core, path):
    os.sched_setaffinity(0, {int(core)})
    parent = os.getppid()
    with open(path, "a") as file:
        while os.getppid() == parent:
            before = time.monotonic()
            time.sleep(EVERY)
            after = time.monotonic()
            if after - before - EVERY > LATE:
                # A line at a time: several write to this file.
                file.write(f"{core} {before + EVERY:.4f} {after:.4f}\n")
                file.flush()


if __name__ == "__main__":
    watch(*sys.argv[1:])
