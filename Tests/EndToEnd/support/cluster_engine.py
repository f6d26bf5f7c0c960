"""Faults of the Redis that several hubs share, and of their links with it."""

import asyncio
import glob
import os
import shutil
import time

from support.deadline import eventually
from support.tokens import token
from support.wsclient import Client


class EngineFaults:
    """Each leaves a Redis behind that all hubs can reach. `run` is the run that they belong to."""

    #: Bytes that Redis keeps for a hub that does not read, and those of a broadcast of a flood.
    OUTPUT_BUFFER, FLOOD = 1 << 20, 32 << 10

    async def _redis_kill(self, fault, chance):
        """What it has written down is there again."""
        await self._restart(fault)

    async def _redis_wipe(self, fault, chance):
        await self._restart(fault, lambda folder: shutil.rmtree(f"{folder}/appendonlydir", ignore_errors=True))

    async def _redis_torn(self, fault, chance):
        """As after a power cut: the end of what it had written down is lost."""
        def tear(folder):
            path = max(glob.glob(f"{folder}/appendonlydir/*.incr.aof"), key=os.path.getmtime)
            size = os.path.getsize(path)
            os.truncate(path, max(0, size - chance.randrange(200, 40_000)))
        await self._restart(fault, tear)

    async def _restart(self, fault, meanwhile=None, seconds=None):
        primary = self.run.primary
        await asyncio.to_thread(primary.kill)
        if meanwhile:
            meanwhile(primary.folder)
        await asyncio.sleep(seconds or fault.seconds / 2)
        await asyncio.to_thread(primary.start)

    async def _redis_long(self, fault, chance):
        """Longer than hubs keep what they cannot say."""
        await self._restart(fault, seconds=9 + fault.seconds)

    async def _redis_freeze(self, fault, chance):
        await asyncio.to_thread(self.run.primary.freeze)
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            self.run.primary.thaw()

    async def _redis_cut_commands(self, fault, chance):
        await asyncio.to_thread(self.run.primary.kill_clients, "normal")

    async def _redis_cut_listeners(self, fault, chance):
        await asyncio.to_thread(self.run.primary.kill_clients, "pubsub")

    async def _redis_overflow(self, fault, chance):
        """A hub reads nothing while so much is said that Redis cuts it off."""
        hubs, primary = self.run.hubs, self.run.primary
        await asyncio.to_thread(primary.ask, "CONFIG", "SET", "client-output-buffer-limit", f"pubsub {self.OUTPUT_BUFFER} 0 0")
        others = [number for number in hubs.available() if number != fault.hub]
        if fault.hub in hubs.away or not others or hubs[fault.hub].process.poll() is not None:
            return self.run.note("redis-overflow: no hub is there that could be flooded")
        before = self._overflows(primary)
        body = {"type": "broadcast", "event": "e", "payload": {"filling": "x" * self.FLOOD}}
        async with self._frozen(fault.hub), await Client.connect(hubs[others[0]].address, 2, apikey=token(sub="flood")) as client:
            await client.join("realtime:flood")

            async def flood():
                # A part of it may be in the kernel's buffers.
                for _ in range(400):
                    client.push("realtime:flood", "broadcast", body)
                    await client.socket.writer.drain()
                    await asyncio.sleep(0.01)
            flooding = asyncio.create_task(flood())
            try:
                await eventually(lambda: self._overflows(primary) > before, every=0.05)
                self.overflows += 1
            except AssertionError:
                self.run.note("redis-overflow: it did not come to that")
            finally:
                flooding.cancel()

    @staticmethod
    def _overflows(redis):
        with open(f"{redis.folder}/log") as file:
            return file.read().count("for overcoming of output buffer limits")

    # The primary

    async def _redis_promote(self, fault, chance):
        await self._promote(0.2 + fault.seconds / 8, ())

    async def _redis_split(self, fault, chance):
        """One hub goes on with the former primary for a while."""
        await self._promote(0.2 + fault.seconds / 8, (fault.hub,), fault.seconds / 2)

    async def _promote(self, tail, stay, seconds=0.0):
        """The replica takes over, and lacks what came in the last `tail` seconds."""
        run = self.run
        old, new = run.primary, run.replica
        await asyncio.to_thread(new.cut_off)
        await asyncio.sleep(tail)
        await asyncio.to_thread(new.promote)
        run.primary, run.replica = new, old
        for number, link in enumerate(run.hubs.links):
            link.target = new.port if number not in stay else old.port
            if number not in stay:
                link.cut()
        await asyncio.sleep(seconds)
        for number in stay:
            run.hubs.links[number].target = new.port
            run.hubs.links[number].cut()
        await asyncio.to_thread(old.kill)
        await asyncio.to_thread(old.start)
        await asyncio.to_thread(old.follow, new)

    # Links between a hub and Redis

    async def _link_cut(self, fault, chance):
        self.run.hubs.links[fault.hub].cut()

    async def _link_stall(self, fault, chance):
        self.run.hubs.links[fault.hub].stall()
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            self.run.hubs.links[fault.hub].flow()

    async def _link_away(self, fault, chance):
        await self._without_link(fault.hub, fault.seconds)

    async def _link_long(self, fault, chance):
        """The others take it for dead, and its members' windows are over."""
        began = time.monotonic()
        await self._without_link(fault.hub, 7 + fault.seconds)
        self._was_out_of_reach(fault.hub, began, time.monotonic())

    async def _without_link(self, hub, seconds):
        await self.run.hubs.links[hub].close()
        await asyncio.sleep(seconds)
        await self.run.hubs.links[hub].open()
