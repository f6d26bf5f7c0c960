"""Waiting for a condition, never for a length of time.

What is to come is waited for as long as no machine takes, however busy it is: a deadline costs something only where the test fails
anyway. How soon something has to come is another question, which `at_most` and `Elapsed` of support/bounds.py ask.
"""

import asyncio
import time

#: Seconds. A process that is one of many on a busy machine may stand still for several of them, and run at a fifth of its pace.
PATIENCE = 30.0


def until(condition, within=PATIENCE, what="the condition", every=0.02):
    """The first truthy value of `condition()`; fails after `within` seconds."""
    end = time.monotonic() + within
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"{what() if callable(what) else what}: not within {within} s")
        time.sleep(every)


async def eventually(condition, within=PATIENCE, what="the condition", every=0.01):
    """`until` for coroutines: the event loop goes on meanwhile. `condition` may be async."""
    end = time.monotonic() + within
    while True:
        value = condition()
        if asyncio.iscoroutine(value):
            value = await value
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"{what() if callable(what) else what}: not within {within} s")
        await asyncio.sleep(every)
