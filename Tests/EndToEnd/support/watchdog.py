"""How long the machine itself stood still: processes of their own, one for each core, that do nothing but look at the clock.

What is late by more than that is late by somebody's fault, or because others had the cores meanwhile: the first of these processes
notes that, too. A process that sleeps most of the time is let run at once on a busy machine, and would not notice it by itself.
"""

import bisect
import os
import subprocess
import sys
import tempfile
import time

#: Seconds between two looks, and from which delay on a look counts as a stall.
EVERY, LATE = 0.005, 0.02
#: Seconds between two notes of what was waited for a core.
NOTE = 0.1
#: Linux' pressure stall information: microseconds in which something that could run had no core to run on
#: (Documentation/accounting/psi.rst).
PRESSURE = "/proc/pressure/cpu"


class Watchdog:
    def __init__(self):
        self._file = tempfile.NamedTemporaryFile(mode="r", prefix="roost-watchdog-")
        cores = sorted(os.sched_getaffinity(0))
        self._cores = len(cores)
        self._processes = [
            subprocess.Popen([sys.executable, __file__, str(core), self._file.name, *(["waits"] if core == cores[0] else [])],
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            for core in cores]
        self._stalls = {}  # core: [(since, until)]
        self._waits = []  # (since, until, seconds in which something waited for a core)

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

    def starved(self, since, until):
        """Seconds of this time in which something had to wait for a core. Whatever is made of steps one after the other has waited for
        no longer than that; 0 where the kernel does not tell."""
        self._read()
        waited = 0.0
        for begin, end, seconds in self._of(self._waits, since, until):
            overlap = min(until, end) - max(since, begin)
            # The kernel's figure is the average over the cores.
            waited += max(0.0, min(overlap, seconds * self._cores))
        return waited

    @staticmethod
    def _of(times, since, until):
        # Those of one core come one after the other.
        first = bisect.bisect_left(times, since, key=lambda each: each[1])
        return times[first:bisect.bisect_right(times, until, key=lambda each: each[0])]

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
            core, begin, end, *waited = line.split()
            if waited:
                self._waits.append((float(begin), float(end), float(waited[0])))
            else:
                self._stalls.setdefault(core, []).append((float(begin), float(end)))


def waited():
    """Seconds in all."""
    try:
        with open(PRESSURE) as file:
            return int(file.readline().rpartition("total=")[2]) / 1e6
    except OSError:
        return 0.0


def watch(core, path, *notes_waits):
    os.sched_setaffinity(0, {int(core)})
    parent = os.getppid()
    noted, before_that = time.monotonic(), waited()
    with open(path, "a") as file:
        def write(line):
            # A line at a time: several write to this file.
            file.write(line)
            file.flush()

        while os.getppid() == parent:
            before = time.monotonic()
            time.sleep(EVERY)
            after = time.monotonic()
            if after - before - EVERY > LATE:
                write(f"{core} {before + EVERY:.4f} {after:.4f}\n")
            if notes_waits and after - noted > NOTE:
                total = waited()
                if total - before_that > 0.001:
                    write(f"{core} {noted:.4f} {after:.4f} {total - before_that:.6f}\n")
                noted, before_that = after, total


if __name__ == "__main__":
    watch(*sys.argv[1:])
