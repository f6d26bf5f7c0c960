"""Three hubs, a Redis with a replica, clients of both kinds and a writer: what a fault run of a cluster consists of."""

import asyncio
import contextlib
import random
import time
import traceback

from support.cluster_bounds import PRESENCE
from support.cluster_check import complaints, present
from support.cluster_faults import Faults
from support.cluster_history import HUBS, History, Return, Trouble
from support.cluster_hubs import Hubs
from support.cluster_packaged import Packaged
from support.cluster_people import KEPT, ROOM, TALK, Person
from support.cluster_rows import Items
from support.deadline import eventually
from support.proxy import Proxy
from support.redis import Redis
from support.tokens import token
from support.watchdog import Watchdog
from support.wsclient import Client


class Balancer(Proxy):
    """Sends each connection to one of the hubs that are there."""

    def __init__(self, run, chance, first):
        super().__init__(None)
        self.run, self.chance = run, chance
        self.chosen, self._is_first = first, True
        self.cut_at = 0.0

    @property
    def target(self):
        if not self._is_first:
            self.chosen = self.chance.choice(self.run.hubs.available() or range(HUBS))
        self._is_first = False
        return self.run.hubs[self.chosen].address

    @target.setter
    def target(self, value):
        pass

    def cut(self):
        self.cut_at = time.monotonic()
        super().cut()


class ClusterRun:
    #: Seconds for which a member counts that was cut off, and one whose hub drains or starts anew.
    WINDOW, RESTART = 3.0, 6.0

    def __init__(self, cluster, database, seed, restless=True):
        """`restless`: some clients come and go by themselves."""
        self.history = History()
        self.failures = []  # of the run itself, which then proves nothing
        self.restless = restless
        self.seed, self.notes, self.began = seed, [], time.monotonic()
        self.chance = random.Random(seed)
        # What is written is there again after a kill; a replica takes all of it at once.
        self.primary, self.replica = (Redis("appendonly yes") for _ in range(2))
        self.hubs = Hubs(self, cluster, database, self.primary, ROOST_PRESENCE_RESTART_SECONDS=f"{self.RESTART:g}",
                         ROOST_PRESENCE_GRACE_ACTIVE_SECONDS=f"{self.WINDOW:g}")
        self.url = cluster.url(database)
        self.people, self.packaged, self.balancers, self._tasks = [], [], [], []
        #: While it is looked who is present, nobody comes or goes by himself.
        self.is_calm = False
        self.looks = []  # seconds until all hubs showed who is there
        self.lag = 0.0
        self.faults = Faults(self)

    def _go(self, work):
        """A task for as long as the run lasts. One that fails makes the run fail."""
        task = asyncio.create_task(work)
        self._tasks.append(task)
        task.add_done_callback(lambda task: task.cancelled() or task.exception() and self.failures.append(
            "".join(traceback.format_exception(task.exception()))))
        return task

    def note(self, text):
        self.notes.append(f"{time.monotonic() - self.began:8.2f} s  {text}")

    # Begin

    async def __aenter__(self):
        try:
            self.watchdog = Watchdog()
            self.history.began, self.history.stalled = self.began, self.watchdog.stalled
            await asyncio.to_thread(self._start_redis)
            self.note("Redis is there")
            await self.hubs.open()
            for number in range(HUBS):
                self._go(self.hubs.watch(number))
            self._go(self._measure_lag())
            self.note("hubs are there")
            await self.hubs.whole(60)
            self.note("hubs act as one")
            await self._populate()
            self.note("all clients are there")
            return self
        except BaseException:
            await self.__aexit__()
            raise

    def _start_redis(self):
        self.primary.start()
        self.replica.start()
        self.replica.follow(self.primary)

    async def _populate(self):
        for number in range(2 * HUBS):
            person = Person(f"p{number}", self, random.Random(f"{self.seed} {number}"), number % HUBS,
                            restless=self.restless and number % 3 == 2)
            self.people.append(person)
            self._go(person.live())
        for number in range(HUBS):
            balancer = Balancer(self, random.Random(f"{self.seed} balancer {number}"), number)
            await balancer.open()
            self.balancers.append(balancer)
            self.packaged.append(Packaged(f"py{number}", self, balancer))
            await self.packaged[-1].enter()
        await eventually(lambda: all(person.is_subscribed and KEPT in person.sitting.joined for person in self.people), 30)
        await eventually(lambda: all(client.is_settled and client.is_subscribed for client in self.packaged), 30)
        self.items = Items(self.url, self.seed)
        self.items.start()

    async def __aexit__(self, *_):
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if hasattr(self, "items"):
            self.items.ended.set()
        for client in self.packaged:
            await client.end()
        for balancer in self.balancers:
            await balancer.close()
        await self.hubs.close()
        for redis in (self.primary, self.replica):
            await asyncio.to_thread(redis.remove)
        self.watchdog.stop()

    @property
    def everybody(self):
        return [*self.people, *self.packaged]

    async def choose(self, chance):
        return await self.hubs.choose(chance)

    async def _measure_lag(self):
        """How long this process may have looked away, for those who look into a complaint."""
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.05)
            self.lag = max(self.lag, time.monotonic() - before - 0.05)

    # What clients may be taken for

    def trouble(self, why, hubs=None):
        trouble = Trouble(time.monotonic(), None, why, hubs)
        self.history.troubles.append(trouble)
        return trouble

    def lost(self, sitting):
        """From when on a hub may count the end of this socket."""
        ended = self.hubs.ended.get(sitting.hub, 0)
        return ended if ended >= sitting.began else time.monotonic()

    def is_back(self, name, lost, sitting):
        before = self._hub_at(name, lost)
        drained, killed = self.hubs.drained.get(before, 0), self.hubs.ended.get(before)
        window = self.RESTART if lost - 3 < drained else self.WINDOW
        if killed == lost:
            # Its window begins when its hub is known to be dead, which is when the last lease is over, renewed each half second.
            window += 2.5
        hubs = frozenset({before, sitting.hub} - {None})
        self.history.returns.append(Return(name, lost, time.monotonic(), window, hubs))

    def _hub_at(self, name, moment):
        return next((sitting.hub for sitting in reversed(self.history.sittings)
                     if sitting.person == name and sitting.began <= moment), None)

    # Who is present

    async def look(self, away=2):
        """Some are gone, and each hub has to show exactly who is there, in time."""
        self.is_calm = True
        await eventually(lambda: self.failures or all(person.is_present for person in self.everybody), 60, lambda: (
            f"everybody is back but {[person.name for person in self.everybody if not person.is_present]}"))
        assert not self.failures, self.failures[0]
        gone = self.chance.sample(self.people, away)
        for person in gone:
            person.cut(600)
        self.history.truth = {person.name for person in self.everybody if person not in gone}
        began = time.monotonic()
        # Of some faults the network hears later.
        delay = max([began, *(trouble.until for trouble in self.history.troubles)]) - began
        # Those whom a drain sent away count for longer.
        window = max(self.WINDOW, self.RESTART if began - max(self.hubs.drained.values(), default=0) < self.RESTART + PRESENCE else 0)
        while True:
            await self._see()
            found = self._seen()
            took = time.monotonic() - began
            if not found or took > 30:
                break
            await asyncio.sleep(0.2)
        self.looks.append(took)
        stalled = self.watchdog.stalled(began, began + took)
        if took > delay + PRESENCE + window + stalled:
            self.note(f"presence was right after {took:.2f} s")
            self.history.late.append(f"at {began - self.began:.2f} s it took {took:.2f} s until all hubs showed who is there "
                                     f"(the machine stood still for {stalled:.2f} s): {found[:3]}")
        for person in gone:
            person.call_back()
        self.is_calm = False

    async def _see(self):
        """What a newcomer is shown on each hub."""
        for number, hub in enumerate(self.hubs.all):
            async with await Client.connect(hub.address, 2, apikey=token(sub="newcomer")) as client:
                await client.join(ROOM, config={"presence": {"enabled": True}})
                state = await client.next("presence_state", ROOM)
                self.history.shown[number] = {key: {meta["phx_ref"] for meta in entry["metas"]}
                                              for key, entry in state.payload.items()}

    def _seen(self):
        found = list(present(self.history))
        return found + [f"{client.name} shows {sorted(client.shows)}" for client in self.packaged
                        if client.name in self.history.truth and client.shows != self.history.truth]

    # End

    async def settle(self, within=30):
        """Stops what goes on, and waits until everything is where it belongs. What is not by then, the verdict says."""
        await self.look(away=0)
        self.is_calm = True
        for person in self.people:
            person.is_talking = False
        self.history.committed = await self.items.stop()
        end = time.monotonic() + within
        wanted = {(row.id, row.n) for row in self.history.committed}
        with contextlib.suppress(AssertionError):  # the verdict says who lacks what
            await eventually(lambda: all(wanted <= {(row.id, row.n) for row in rows} for rows in self.history.rows.values()),
                             end - time.monotonic(), every=0.3)
        # All that was accepted is due by then.
        await asyncio.sleep(2.5)
        await self._see()
        assert not self.failures, self.failures[0]
        return await asyncio.to_thread(self.verdict)

    def verdict(self):
        self.history.stalls = self.watchdog.long_stalls()
        return [*complaints(self.history, TALK, KEPT), *self._seen()]
