"""The time of an emulated client: what it merely waits for goes by quickly, what races against the hub does not."""

import asyncio

#: Seconds of a real clock for one of a client's.
PACE = 0.04


class Clock:
    def __init__(self, pace=PACE):
        self.pace = pace

    async def wait(self, seconds):
        """A pause between two things that the client does: heartbeats, attempts to reconnect, rejoins. Nothing of the hub's runs out
        meanwhile, so it may be short."""
        await asyncio.sleep(seconds * self.pace)

    @staticmethod
    async def race(seconds):
        """A deadline of the client's that the hub has to keep, such as that of a join: real seconds."""
        await asyncio.sleep(seconds)
