"""Bounds of time that hold on a busy machine: what the machine took from everybody does not count.

That is the time in which it stood still, and the time in which something had to wait for a core while others had them: alone on the
machine there is next to none of either, and a bound is what it says (`@pytest.mark.clock`, CONTRIBUTING.md).
"""

import atexit
import contextlib
import os
import time

from support import unfairness
from support.watchdog import NOTE, Watchdog

#: Of the waits for a core so many times the bound count, and some seconds: beside others everything runs at a fifth of its pace at
#: worst, and a process may stand still for some seconds. What takes longer than that is late.
PACE, STANDSTILL = 4, 5

_watchdog = None


def _started():
    """One for this process of tests; it runs until the process ends."""
    global _watchdog
    if _watchdog is None:
        _watchdog = Watchdog()
        atexit.register(_watchdog.stop)
    return _watchdog


def watch_the_machine():
    """From now on it is known what the machine takes from everybody."""
    _started()


def taken(since, until, allowed):
    """Seconds between two times of time.monotonic() that do not count for who may take `allowed`. The machine must have been watched."""
    watchdog = _started()
    # What was last noted.
    if time.monotonic() - until < 2 * NOTE:
        time.sleep(2 * NOTE)
    return unfairness.stood_still(since, until) + watchdog.stalled(since, until) + min(watchdog.starved(since, until), PACE * allowed + STANDSTILL)


class Elapsed:
    """A time that runs from its making on."""

    def __init__(self):
        _started()
        self.since = time.monotonic()

    @property
    def seconds(self):
        return time.monotonic() - self.since

    def assert_at_most(self, seconds, what="it", until=None):
        """Fails if more time has gone by than that, without what the machine took from everybody; `until`: of time.monotonic(), when
        it was over."""
        until = time.monotonic() if until is None else until
        took = until - self.since
        if took <= seconds:
            return
        lost = taken(self.since, until, seconds)
        assert took - lost <= seconds, (
            f"{what} took {took:.2f} s, of which the machine took {lost:.2f} s; {seconds} s are allowed")


@contextlib.contextmanager
def at_most(seconds, what="it"):
    """What is done inside takes no longer than that. Yields the `Elapsed`."""
    elapsed = Elapsed()
    yield elapsed
    elapsed.assert_at_most(seconds, what)


@contextlib.contextmanager
def promptly():
    """This thread runs as soon as it wakes, where it may (as root): what it measures then is the hub's time and not its own wait for a
    core. What it starts does not."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


async def in_time(seconds, attempt, times=5):
    """`attempt(number)`, in which something has to happen before a timer of the hub ends, which has so many seconds. A failure of one
    that took longer may be the timer's, for the machine was too slow for it: then it is tried anew, under another number."""
    for number in range(times):
        began = time.monotonic()
        try:
            return await attempt(number)
        except Exception:  # whatever of what it expected is missing
            if time.monotonic() - began < seconds or number == times - 1:
                raise
