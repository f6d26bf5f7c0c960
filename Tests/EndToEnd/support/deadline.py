"""Waiting for a condition, never for a length of time."""

import asyncio
import time


def until(condition, within=10.0, what="the condition", every=0.02):
    """The first truthy value of `condition()`; fails after `within` seconds."""
    end = time.monotonic() + within
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"{what() if callable(what) else what}: not within {within} s")
        time.sleep(every)


async def eventually(condition, within=10.0, what="the condition", every=0.01):
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
