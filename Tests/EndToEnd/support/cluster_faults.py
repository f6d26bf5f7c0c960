"""Faults of several hubs and of the Redis that they share: which come when is decided by a seed, before anything runs."""

import asyncio
import os
import random
import shutil
import signal
import time
from dataclasses import dataclass

from support.cluster_history import Absence

HUB = ("hub-kill", "hub-freeze", "hub-drain")
#: While these last, hubs cannot act as one.
ENGINE = ("redis-kill", "redis-wipe", "redis-freeze", "redis-cut-commands", "redis-cut-listeners", "redis-promote", "redis-split",
          "link-cut", "link-stall", "link-away")
CLIENTS = ("clients-move", "clients-away")
KINDS = HUB + ENGINE + CLIENTS


@dataclass
class Fault:
    kind: str
    pause: float  # before it, in seconds
    seconds: float  # how long it lasts
    hub: int
    joins: bool  # it comes while the one before lasts, if that is of another group
    seed: int

    @property
    def group(self):
        return next(group for group in (HUB, ENGINE, CLIENTS) if self.kind in group)

    def __str__(self):
        return f"{self.kind} {self.seconds:.1f} s, hub{self.hub}{', at once' if self.joins else ''}"


def plan(seed, count, kinds=KINDS):
    """Each kind as often as the others: the deck is dealt anew when it is used up."""
    chance, deck, faults = random.Random(seed), [], []
    while len(faults) < count:
        deck = deck or chance.sample(kinds, len(kinds))
        faults.append(Fault(deck.pop(), chance.uniform(0.3, 1.5), chance.uniform(1, 4), chance.randrange(3),
                            chance.random() < 0.25, chance.randrange(1 << 31)))
    return faults


class Faults:
    """Does to hubs, Redis and clients what the plan says."""

    def __init__(self, run):
        self.run = run
        self.done = []
        self.frozen = set()

    async def play(self, faults):
        running = []
        for fault in faults:
            if running and not (fault.joins and all(other.group != fault.group for other, _ in running)):
                await asyncio.gather(*(task for _, task in running))
                running = []
                await self.run.whole(60)
            await asyncio.sleep(fault.pause)
            running.append((fault, asyncio.create_task(self._inject(fault))))
        await asyncio.gather(*(task for _, task in running))

    async def _inject(self, fault):
        self.run.note(f"fault {fault}")
        trouble = self.run.trouble(fault.kind) if fault.group == ENGINE else None
        try:
            await getattr(self, "_" + fault.kind.replace("-", "_"))(fault, random.Random(fault.seed))
        finally:
            self.run.note(f"fault {fault.kind} is over")
            if trouble:
                self.run.passes(trouble)
        self.done.append(fault.kind)

    # Hubs

    async def _hub_kill(self, fault, chance):
        self.run.ends(fault.hub)
        await asyncio.to_thread(self.run.hubs[fault.hub].kill)
        await asyncio.sleep(min(fault.seconds, 2))
        await self.run.start(fault.hub)

    async def _hub_drain(self, fault, chance):
        self.run.drains(fault.hub)
        status = await asyncio.to_thread(self.run.hubs[fault.hub].stop, 30)
        assert status == 0, f"after SIGTERM hub{fault.hub} ended with {status}: {self.run.hubs[fault.hub].log[-2000:]}"
        await self.run.start(fault.hub)

    async def _hub_freeze(self, fault, chance):
        pid, began = self.run.hubs[fault.hub].process.pid, time.monotonic()
        self.frozen.add(fault.hub)
        os.kill(pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            os.kill(pid, signal.SIGCONT)
            self.frozen.discard(fault.hub)
        # Its lease is over after three seconds, and then its members' windows begin.
        now = time.monotonic()
        if now - began > 3 + self.run.WINDOW - 1:
            self.run.history.absences += [
                Absence(person.name, began, now + 10, "its hub was frozen")
                for person in self.run.everybody if person.sitting and person.sitting.hub == fault.hub]

    # Redis

    async def _redis_kill(self, fault, chance):
        """What it has written down is there again."""
        await asyncio.to_thread(self.run.primary.kill)
        await asyncio.sleep(fault.seconds / 2)
        await asyncio.to_thread(self.run.primary.start)

    async def _redis_wipe(self, fault, chance):
        await asyncio.to_thread(self.run.primary.kill)
        shutil.rmtree(f"{self.run.primary.folder}/appendonlydir", ignore_errors=True)
        await asyncio.sleep(fault.seconds / 2)
        await asyncio.to_thread(self.run.primary.start)

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
        for number, link in enumerate(run.links):
            link.target = new.port if number not in stay else old.port
            if number not in stay:
                link.cut()
        await asyncio.sleep(seconds)
        for number in stay:
            run.links[number].target = new.port
            run.links[number].cut()
        await asyncio.to_thread(old.kill)
        await asyncio.to_thread(old.start)
        await asyncio.to_thread(old.follow, new)

    # Links between a hub and Redis

    async def _link_cut(self, fault, chance):
        self.run.links[fault.hub].cut()

    async def _link_stall(self, fault, chance):
        self.run.links[fault.hub].stall()
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            self.run.links[fault.hub].flow()

    async def _link_away(self, fault, chance):
        await self.run.links[fault.hub].close()
        await asyncio.sleep(fault.seconds)
        await self.run.links[fault.hub].open()

    # Clients

    async def _clients_move(self, fault, chance):
        """They are back at once, on any hub."""
        for person in chance.sample(self.run.everybody, 4):
            person.cut(chance.uniform(0, 0.5))

    async def _clients_away(self, fault, chance):
        """They are back when the others know that they are gone."""
        for person in chance.sample(self.run.people, 2):
            person.cut(self.run.WINDOW + fault.seconds)

