"""Waiting for a condition, never for a length of time.

What is to come is waited for as long as no machine takes, however busy it is: a deadline costs something only where the test fails
anyway. How soon something has to come is another question, which `at_most` and `Elapsed` of support/bounds.py ask.
"""

import asyncio
import contextlib
import time

#: Seconds. A process that is one of many on a busy machine may stand still for several of them, and run at a fifth of its pace.
PATIENCE = 30.0


#: Seconds. A step of a wait counts for no more than that: it takes milliseconds, unless the machine stands still.
STEP = 2.0

#: Seconds between two looks at most. A look costs the hub and its Postgres work, for which all other tests wait: what is looked at costs no
#: more than a third of the time, and the longer something takes, the less it matters to know it at once.
LONGEST_PAUSE = 0.25


class _Left:
    """What is left of a wait, by the steps that were taken in it."""

    def __init__(self, within):
        self.seconds = within
        self._began = self._before = time.monotonic()
        self._pause = self._look = 0.0

    def step(self):
        """False when nothing is left."""
        now = time.monotonic()
        self._look = now - self._before - self._pause
        self.seconds -= min(now - self._before, STEP)
        self._before = now
        return self.seconds > 0

    def pause(self, every):
        """Seconds until the next look."""
        self._pause = max(every, min(2 * self._look, LONGEST_PAUSE), min(0.05 * (self._before - self._began), LONGEST_PAUSE))
        return self._pause


def until(condition, within=PATIENCE, what="the condition", every=0.02):
    """The first truthy value of `condition()`; fails after `within` seconds."""
    left = _Left(within)
    while True:
        value = condition()
        if value:
            return value
        if not left.step():
            raise AssertionError(f"{what() if callable(what) else what}: not within {within} s")
        time.sleep(left.pause(every))


async def eventually(condition, within=PATIENCE, what="the condition", every=0.01):
    """`until` for coroutines: the event loop goes on meanwhile. `condition` may be async."""
    left = _Left(within)
    while True:
        value = condition()
        if asyncio.iscoroutine(value):
            value = await value
        if value:
            return value
        if not left.step():
            raise AssertionError(f"{what() if callable(what) else what}: not within {within} s")
        await asyncio.sleep(left.pause(every))


@contextlib.asynccontextmanager
async def patience(within=PATIENCE):
    """asyncio.timeout for what is to come, in which a machine that stands still costs nothing."""
    loop, left = asyncio.get_running_loop(), _Left(within)
    async with asyncio.timeout(None) as timeout:
        def tick():
            nonlocal handle
            if left.step():
                handle = loop.call_later(min(left.seconds, STEP / 2), tick)
            else:
                timeout.reschedule(loop.time())

        handle = loop.call_later(min(within, STEP / 2), tick)
        try:
            yield timeout
        finally:
            handle.cancel()
