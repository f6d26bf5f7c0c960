"""Bounds of time that hold on a busy machine: the time in which the machine itself stood still does not count."""

import atexit
import contextlib
import time

from support.watchdog import Watchdog

_watchdog = None


def _started():
    """One for this process of tests; it runs until the process ends."""
    global _watchdog
    if _watchdog is None:
        _watchdog = Watchdog()
        atexit.register(_watchdog.stop)
    return _watchdog


class Elapsed:
    """A time that runs from its making on."""

    def __init__(self):
        self._watchdog = _started()
        self.since = time.monotonic()

    @property
    def seconds(self):
        return time.monotonic() - self.since

    def assert_at_most(self, seconds, what="it"):
        """Fails if more time has gone by than that, without what a core of the machine took from everybody."""
        now = time.monotonic()
        took = now - self.since
        if took <= seconds:
            return
        stalled = self._watchdog.stalled(self.since, now)
        assert took - stalled <= seconds, (
            f"{what} took {took:.2f} s, of which the machine stood still for {stalled:.2f} s; {seconds} s are allowed")


@contextlib.contextmanager
def at_most(seconds, what="it"):
    """What is done inside takes no longer than that. Yields the `Elapsed`."""
    elapsed = Elapsed()
    yield elapsed
    elapsed.assert_at_most(seconds, what)
