"""What processes use of the machine."""

import pathlib
import time


def cpu_us(pid):
    """CPU µs since a process began, by the kernel's clock of it (clock_getcpuclockid), which is exact and keeps what ended threads
    used."""
    return time.clock_gettime_ns(~pid << 3 | 2) / 1000


def resident(pid):
    """Bytes of a process that are in memory."""
    return _kilobytes(pid, "smaps_rollup", "Rss:")


def most_resident(pid):
    """The most of them since clear_refs was written."""
    return _kilobytes(pid, "status", "VmHWM:")


def _kilobytes(pid, file, name):
    lines = pathlib.Path(f"/proc/{pid}/{file}").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024


class Threads:
    """The schedulers' counts of a process, by thread; what ended threads used is not in them."""

    def __init__(self, pid):
        self.pid = pid
        self.start = self._now()

    def _now(self):
        found = {}
        for path in pathlib.Path(f"/proc/{self.pid}/task").glob("*/schedstat"):
            ran, waited, _ = map(int, path.read_text().split())
            found[int(path.parent.name)] = (ran, waited)
        return found

    def _since(self, index):
        return {thread: counts[index] - self.start.get(thread, (0, 0))[index] for thread, counts in self._now().items()}

    def ran_us(self):
        """CPU µs by thread since this was made."""
        return {thread: count / 1000 for thread, count in self._since(0).items()}

    def waited_seconds(self):
        """How long they could have run and got no core, all together; on a quiet machine nearly 0."""
        return sum(self._since(1).values()) / 1e9
