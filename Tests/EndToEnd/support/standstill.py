"""Whether the machine stood still for longer than tests have to bear.

A virtual machine that is paused goes on with its clock: all timers of all hubs are over at once, and no deadline helps. What failed
meanwhile says nothing, and is run once more (conftest.py).
"""

import threading
import time

#: Seconds between two looks at the clock.
EVERY = 0.25
#: Tests bear that a process stands still for so many seconds.
BORNE = 5.0


class Standstills:
    """A thread that sleeps, and notes when it was woken far too late. It is this process that did not run, or all of them."""

    def __init__(self):
        self._all = []  # (until, seconds)
        threading.Thread(target=self._look, name="standstills", daemon=True).start()

    def _look(self):
        before = time.monotonic()
        while True:
            time.sleep(EVERY)
            now = time.monotonic()
            if now - before - EVERY > BORNE:
                self._all.append((now, now - before - EVERY))
            before = now

    def since(self, time_of):
        """Seconds of those that ended after this time of time.monotonic()."""
        # One that is over just now is not noted yet.
        time.sleep(2 * EVERY)
        return sum(seconds for until, seconds in self._all if until > time_of)
