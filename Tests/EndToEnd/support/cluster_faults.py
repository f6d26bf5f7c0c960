"""Faults of several hubs and of the Redis that they share: which come when is decided by a seed, before anything runs."""

import asyncio
import contextlib
import os
import random
import signal
import time
from dataclasses import dataclass

from support import namespaces
from support.cluster_bounds import BEAT, INEXACT, LEASE
from support.cluster_engine import EngineFaults
from support.cluster_history import HUBS, Absence, Trouble

HUB = ("hub-kill", "hub-freeze", "hub-drain")
#: While these last, hubs cannot act as one: all of them, or one that is cut off. The long ones last longer than hubs keep what they
#: cannot say, and than they take each other for living.
ENGINE = ("redis-kill", "redis-wipe", "redis-torn", "redis-freeze", "redis-cut-commands", "redis-cut-listeners", "redis-overflow",
          "redis-promote", "redis-split", "redis-long", "link-cut", "link-stall", "link-away", "link-long")
#: Packets are lost in silence: between a hub and Redis, one way of it, between a hub and clients and Postgres, or all of these.
NETWORK = ("net-redis", "net-redis-out", "net-redis-in", "net-front", "net-host")
CLIENTS = ("clients-move", "clients-away")
KINDS = HUB + ENGINE + NETWORK + CLIENTS
#: Of the engine's, those that cut off one hub alone.
OF_ONE_HUB = ("redis-overflow", "link-cut", "link-stall", "link-away", "link-long")


@dataclass
class Fault:
    kind: str
    pause: float  # before it, in seconds
    seconds: float  # how long it lasts
    hub: int
    joins: bool  # it comes while the one before lasts, if that is of another group
    seed: int
    trouble: Trouble | None = None

    @property
    def group(self):
        return next(group for group in (HUB, ENGINE + NETWORK, CLIENTS) if self.kind in group)

    def __str__(self):
        return f"{self.kind} {self.seconds:.1f} s, hub{self.hub}{', at once' if self.joins else ''}"


def possible():
    """The kinds that can be had here: packets are lost where this process has networks of its own."""
    return tuple(kind for kind in KINDS if kind not in NETWORK or namespaces.is_private())


def plan(seed, count, kinds=KINDS):
    """Each kind as often as the others: the deck is dealt anew when it is used up."""
    chance, deck, faults = random.Random(seed), [], []
    while len(faults) < count:
        deck = deck or chance.sample(kinds, len(kinds))
        faults.append(Fault(deck.pop(), chance.uniform(0.3, 1.5), chance.uniform(1, 4), chance.randrange(HUBS),
                            chance.random() < 0.25, chance.randrange(1 << 31)))
    return faults


class Faults(EngineFaults):
    """Does to hubs, Redis, networks and clients what the plan says."""

    #: Faults between two looks at who is present.
    LOOK_EVERY = 5

    def __init__(self, run):
        self.run = run
        self.done = []
        self.overflows = 0

    async def play(self, faults):
        running, looked = [], 0
        for fault in faults:
            if running and not (fault.joins and all(other.group != fault.group for other, _ in running)):
                await asyncio.gather(*(task for _, task in running))
                running = []
                await self._whole()
                if len(self.done) - looked >= self.LOOK_EVERY:
                    looked = len(self.done)
                    await self.run.look()
            await asyncio.sleep(fault.pause)
            running.append((fault, asyncio.create_task(self._inject(fault))))
        await asyncio.gather(*(task for _, task in running))
        await self._whole()

    async def _whole(self):
        began = time.monotonic()
        await self.run.hubs.whole(60)
        self.run.hubs.healed.append(time.monotonic() - began)

    async def _inject(self, fault):
        self.run.note(f"fault {fault}")
        if fault.kind in ENGINE + NETWORK:
            alone = fault.kind in OF_ONE_HUB + NETWORK
            fault.trouble = self.run.trouble(fault.kind, frozenset([fault.hub]) if alone else None)
        try:
            await getattr(self, "_" + fault.kind.replace("-", "_"))(fault, random.Random(fault.seed))
        finally:
            self.run.note(f"fault {fault.kind} is over")
            if fault.trouble and fault.trouble.until is None:
                fault.trouble.until = time.monotonic()
        self.done.append(fault.kind)

    # Hubs

    async def _hub_kill(self, fault, chance):
        trouble = await self.run.hubs.kill(fault.hub)
        await asyncio.sleep(min(fault.seconds - 1, 2))
        await self.run.hubs.start(fault.hub)
        trouble.until = time.monotonic()

    async def _hub_drain(self, fault, chance):
        trouble = await self.run.hubs.drain(fault.hub)
        await self.run.hubs.start(fault.hub)
        trouble.until = time.monotonic()

    async def _hub_freeze(self, fault, chance):
        async with self._frozen(fault.hub):
            await asyncio.sleep(fault.seconds)

    @contextlib.asynccontextmanager
    async def _frozen(self, hub):
        pid, began = self.run.hubs[hub].process.pid, time.monotonic()
        trouble = self.run.trouble(f"hub{hub} frozen", frozenset([hub]))
        self.run.hubs.away.add(hub)
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
            self.run.hubs.away.discard(hub)
            trouble.until = time.monotonic()
        self._was_out_of_reach(hub, began, trouble.until)

    def _was_out_of_reach(self, hub, since, until):
        """Its lease is over after three seconds, renewed each half second, and then the windows of its members begin."""
        if until - since > LEASE - BEAT + self.run.WINDOW - INEXACT:
            self.run.history.absences += [
                Absence(name, since, until, "its hub was out of reach", frozenset([hub]))
                for name in {sitting.person for sitting in self.run.history.sittings
                             if sitting.hub == hub and (sitting.ended is None or sitting.ended >= since)}]

    # Networks

    async def _net_redis(self, fault, chance):
        await self._lose_packets(fault, [0])

    async def _net_redis_out(self, fault, chance):
        await self._lose_packets(fault, [0], inward=False)

    async def _net_redis_in(self, fault, chance):
        await self._lose_packets(fault, [0], outward=False)

    async def _net_front(self, fault, chance):
        await self._lose_packets(fault, [1], self._leave_in_silence(fault.hub, chance))

    async def _net_host(self, fault, chance):
        await self._lose_packets(fault, [0, 1], self._leave_in_silence(fault.hub, chance))

    async def _lose_packets(self, fault, wires, meanwhile=None, **ways):
        hubs = self.run.hubs
        wires = [hubs.wires[fault.hub][number] for number in wires]
        began = time.monotonic()
        if meanwhile:
            hubs.away.add(fault.hub)
        try:
            for wire in wires:
                await asyncio.to_thread(wire.cut, **ways)
            await asyncio.gather(asyncio.sleep(fault.seconds), *([meanwhile] if meanwhile else []))
        finally:
            for wire in wires:
                await asyncio.to_thread(wire.mend)
            hubs.away.discard(fault.hub)
        if meanwhile:
            # TCP tries again when as much time as it has waited is over once more.
            now = time.monotonic()
            fault.trouble.until = now + (now - began)

    async def _leave_in_silence(self, hub, chance):
        """Half of its clients notice and go to others; it hears nothing of that."""
        await asyncio.sleep(chance.uniform(0.2, 0.6))
        there = [person for person in self.run.people if person.sitting and person.sitting.hub == hub]
        for person in chance.sample(there, (len(there) + 1) // 2):
            person.cut(chance.uniform(0, 0.3))

    # Clients

    async def _clients_move(self, fault, chance):
        """They are back at once, on any hub."""
        for person in chance.sample(self.run.everybody, 4):
            person.cut(chance.uniform(0, 0.5))

    async def _clients_away(self, fault, chance):
        """They are back when the others know that they are gone."""
        for person in chance.sample(self.run.people, 2):
            person.cut(self.run.WINDOW + fault.seconds)
