"""What a hub of a later version might say to the hubs of today, through the Redis that they share."""

import asyncio
import random

from support.deadline import eventually
from support.hub import ROOT
from support.redis import RedisError

PREFIX = "{roost:roost}:"
SCRIPT = (ROOT / "Sources/Redis/Lua/Publish.lua").read_text()
#: A batch, a beat and a message to one hub of version 9, and a kind of message that has no name yet.
BATCH, BEAT, DIRECT, OTHER = b"\x09batch", b"beat\n\x09beat", b"direct\n\x09direct", b"rumour 5\nof another kind"


class NewerHub:
    """Writes such entries to the log and publishes such messages, for as long as it lives."""

    def __init__(self, redis, receivers):
        self.redis, self.receivers = redis, receivers
        self.said = 0
        self._random = random.Random(9)

    async def __aenter__(self):
        self._task = asyncio.create_task(self._live())
        return self

    async def __aexit__(self, *error):
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _live(self):
        while True:
            await asyncio.to_thread(self._speak)
            self.said += 1
            await asyncio.sleep(0.02)

    def _speak(self):
        epoch = self.redis.ask("GET", PREFIX + "m").split()[0]
        try:
            self.redis.ask("EVAL", SCRIPT, 2, PREFIX + "r", PREFIX + "m", PREFIX + "c", epoch, self._random.randrange(1, 1 << 60),
                           60_000, BATCH)
        except RedisError as error:
            assert "EPOCH" in str(error), error
        for message in (BEAT, OTHER):
            self.redis.ask("PUBLISH", PREFIX + "c", message)
        for name in self.receivers:
            self.redis.ask("PUBLISH", f"{PREFIX}n:{name}", DIRECT)

    async def has_spoken(self, times):
        count = self.said + times
        await eventually(lambda: self._task.done() or self.said >= count, 30, "a newer hub that speaks")
        assert not self._task.done(), self._task.exception()
