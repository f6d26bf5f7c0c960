"""Two clients that talk to each other while others misbehave, and notice every pause."""

import asyncio
import time

from support.bounds import taken, watch_the_machine
from support.deadline import eventually
from support.wsclient import Client


class Bystander:
    """Sends a broadcast every 20 ms and remembers how long the slowest took."""

    def __init__(self, hub, topic="realtime:bystander"):
        self.hub, self.topic = hub, topic
        #: Seconds of the slowest, and when it was under way.
        self.slowest, self.then, self.count = 0.0, None, 0
        watch_the_machine()
        #: Seconds in which this process did not come round to anything: a test that sends much, a machine that is busy.
        self.stalled = 0.0

    async def __aenter__(self):
        self.sender, self.receiver = await Client.connect(self.hub.port), await Client.connect(self.hub.port, 1)
        await self.sender.join(self.topic)
        await self.receiver.join(self.topic)
        self.task, self.watch = asyncio.create_task(self._talk()), asyncio.create_task(self._watch_ourselves())
        return self

    async def _watch_ourselves(self):
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            self.stalled += max(0, time.monotonic() - before - 0.02)

    async def _talk(self):
        while True:
            began, stalled = time.monotonic(), self.stalled
            self.sender.push(self.topic, "broadcast", {"event": "n", "payload": {"n": self.count}})
            message = await self.receiver.next("broadcast")
            assert message.payload["payload"] == {"n": self.count}
            self.count += 1
            if self.count % 20 == 0:
                # As all clients do now and then, or the hub takes it for gone.
                self.receiver.push("phoenix", "heartbeat", {})
                self.receiver.messages.clear()
            await asyncio.sleep(0.02)
            # Our own process is slow at times, too: when the bytes came in, not when we looked.
            took = message.at - began - (self.stalled - stalled)
            if took > self.slowest:
                self.slowest, self.then = took, (began, message.at)

    def assert_at_most(self, seconds):
        """No message took longer, without what the machine took from everybody."""
        if self.slowest > seconds:
            lost = taken(*self.then, seconds)
            assert self.slowest - lost <= seconds, (
                f"a bystander's message took {self.slowest:.2f} s, of which the machine took {lost:.2f} s")

    async def __aexit__(self, kind, *_):
        if kind is None:
            # The others may have been done before this one said anything.
            await eventually(lambda: self.count > 3 or self.task.done(), what="a few words of the bystander")
        failed = self.task.done()
        self.task.cancel()
        self.watch.cancel()
        for client in (self.sender, self.receiver):
            await client.close()
        if kind is None:
            if failed:
                await self.task
            self.assert_at_most(1)
