"""Three hubs, a Redis with a replica, clients of both kinds and a writer: what a fault run of a cluster consists of."""

import asyncio
import random
import threading
import time
import traceback

import psycopg

from support.cluster_check import complaints
from support.cluster_faults import Faults
from support.cluster_history import Absence, History, Row, Trouble
from support.cluster_people import KEPT, ROOM, TALK, Packaged, Person
from support.deadline import eventually
from support.hub import Hub
from support.proxy import Proxy
from support.redis import Redis
from support.tokens import token
from support.wsclient import Client

HUBS = 3


class Balancer(Proxy):
    """Sends each connection to one of the hubs that are there."""

    def __init__(self, run, chance):
        super().__init__(None)
        self.run, self.chance = run, chance
        self.chosen = 0
        self.cut_at = 0.0

    @property
    def target(self):
        self.chosen = self.chance.choice(self.run.available() or range(HUBS))
        return self.run.hubs[self.chosen].port

    @target.setter
    def target(self, value):
        pass

    def cut(self):
        self.cut_at = time.monotonic()
        super().cut()


class Items(threading.Thread):
    """Inserts rows and updates them, each in a transaction of its own; `committed` has them in order."""

    def __init__(self, url, seed, rate=20):
        super().__init__(daemon=True)
        self.url, self.chance, self.pause = url, random.Random(seed), 1 / rate
        self.committed, self.newest = [], []
        self.ended = threading.Event()
        self.failure = None

    def run(self):
        try:
            with psycopg.connect(self.url, autocommit=True) as connection:
                while not self.ended.wait(self.pause):
                    if self.newest and self.chance.random() < 0.5:
                        row = self.chance.choice(self.newest[-20:])
                        row.n += 1
                        connection.execute("update items set n = %s where id = %s", [row.n, row.id])
                    else:
                        row = Row(len(self.newest) + 1, 0)
                        connection.execute("insert into items (id, n) values (%s, 0)", [row.id])
                        self.newest.append(row)
                    self.committed.append(Row(row.id, row.n))
        except BaseException as failure:  # shown by the run
            self.failure = failure

    async def stop(self):
        self.ended.set()
        await asyncio.to_thread(self.join, 20)
        assert self.failure is None, self.failure
        return self.committed


class ClusterRun:
    #: Seconds for which a member counts that was cut off, and one whose hub drains or starts anew.
    WINDOW, RESTART = 3.0, 6.0

    def __init__(self, database_url, seed):
        self.history = History()
        self.failures = []  # of the run itself, which then proves nothing
        self.seed, self.notes, self.began = seed, [], time.monotonic()
        self.chance = random.Random(seed)
        # What is written is there again after a kill; a replica takes all of it at once.
        self.primary, self.replica = (Redis("appendonly yes") for _ in range(2))
        self.links = [Proxy(self.primary.port) for _ in range(HUBS)]
        self.url = database_url
        self.hubs, self.people, self.packaged, self.balancers, self._tasks = [], [], [], [], []
        self._ended, self._drained, self._draining, self._starting = {}, {}, set(), set()
        self._starts = {}  # those of hubs that are not whole yet
        self._whole, self._asked = [False] * HUBS, [0.0] * HUBS
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
            await asyncio.to_thread(self._start_redis)
            self.note("Redis is there")
            for number, link in enumerate(self.links):
                await link.open()
                self.hubs.append(Hub(
                    self.url, ROOST_LOOPS="2", ROOST_NODE_NAME=f"hub{number}", ROOST_FEED_SAFETY_POLL_SECONDS="1",
                    ROOST_CLUSTER_URL=f"redis://127.0.0.1:{link.port}", ROOST_PRESENCE_RESTART_SECONDS=f"{self.RESTART:g}",
                    ROOST_PRESENCE_GRACE_ACTIVE_SECONDS=f"{self.WINDOW:g}", ROOST_LOG_LEVEL="info"))
            await asyncio.to_thread(self.hubs[0].run, "migrate")
            with psycopg.connect(self.url, autocommit=True) as connection:
                connection.execute("create table items (id int8 primary key, n int4)")
            await asyncio.to_thread(self.hubs[0].watch, "public.items")
            await asyncio.gather(*map(self.start, range(HUBS)))
            for number in range(HUBS):
                self._go(self._watch(number))
            self._go(self._measure_lag())
            self.note("hubs are there")
            await self.whole(60)
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
            person = Person(f"p{number}", self, random.Random(f"{self.seed} {number}"), restless=number % 3 == 2)
            self.people.append(person)
            self._go(person.live())
        for number in range(HUBS):
            balancer = Balancer(self, random.Random(f"{self.seed} balancer {number}"))
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
        for proxy in [*self.balancers, *self.links]:
            proxy.flow()
            await proxy.close()
        for hub in self.hubs:
            await asyncio.to_thread(hub.remove)
        for redis in (self.primary, self.replica):
            await asyncio.to_thread(redis.remove)

    @property
    def everybody(self):
        return [*self.people, *self.packaged]

    # Hubs

    def available(self):
        """Those that a load balancer would choose."""
        return [number for number, hub in enumerate(self.hubs)
                if hub.is_listening and hub.process.poll() is None and number not in self._draining | self.faults.frozen]

    async def choose(self, chance):
        """One of them; where it can be, mostly one that acts as one with the others."""
        await eventually(self.available, 60, "a hub that is there")
        available = self.available()
        whole = [number for number in available if self._whole[number]]
        return chance.choice(whole if whole and chance.random() < 0.9 else available)

    def ends(self, hub):
        """It is about to be killed."""
        self._ended[hub] = time.monotonic()
        self._whole[hub] = False
        self._starting.add(hub)

    def drains(self, hub):
        self._draining.add(hub)
        self._drained[hub] = time.monotonic()
        self._starting.add(hub)

    async def start(self, hub):
        self._starting.add(hub)
        self._whole[hub] = False
        self.history.starts.append(Trouble(time.monotonic(), None, f"hub{hub} starts"))
        self._starts[hub] = self.history.starts[-1]
        self.hubs[hub].start(wait=False)
        self._draining.discard(hub)
        await eventually(lambda: self.hubs[hub].is_listening or self.hubs[hub].process.poll() is not None, 60)
        assert self.hubs[hub].is_listening, self.hubs[hub].log[-2000:]

    async def whole(self, within):
        """All hubs act as one."""
        # As of now: what was so before a fault says nothing.
        now = time.monotonic()
        await eventually(lambda: all(self._whole) and min(self._asked) > now, within, lambda: (
            f"hubs act as one: {self._whole}\n" + "\n".join(self.notes[-20:] + [hub.log[-1500:] for hub in self.hubs])))

    async def _watch(self, number):
        """Asks a hub all the time whether it reaches the others. One that did and does not any more is in trouble."""
        trouble = None
        while True:
            await asyncio.sleep(0.2)
            if number in self.faults.frozen:
                continue
            asked = time.monotonic()
            figures = await self._figures(number)
            self._asked[number] = asked
            self._whole[number] = figures == (1, HUBS - 1)
            if self._whole[number]:
                self._starting.discard(number)
                if number in self._starts:
                    self._starts.pop(number).until = time.monotonic()
                if trouble:
                    trouble.until, trouble = time.monotonic(), None
            elif figures and figures[0] == 0 and number not in self._starting and not trouble:
                trouble = self.trouble(f"hub{number} is alone", asked - 1)

    async def _figures(self, number):
        """Whether it reaches Redis, and how many others are there; nothing if it does not answer."""
        try:
            async with asyncio.timeout(5):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.hubs[number].ops_port)
                try:
                    writer.write(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                    text = (await reader.read()).decode()
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return None
        values = dict(line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("roost_cluster_") and "{" not in line)
        return (int(float(values.get("roost_cluster_reached", 0))), int(float(values.get("roost_cluster_hubs", 0))))

    async def _measure_lag(self):
        """How long this process may have looked away: times of clients are as exact as that."""
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.05)
            self.lag = max(self.lag, time.monotonic() - before - 0.05)

    # What clients may be taken for

    def trouble(self, why, since=None):
        trouble = Trouble(since or time.monotonic(), None, why)
        self.history.troubles.append(trouble)
        return trouble

    def passes(self, trouble):
        """Trouble ends when all hubs act as one again, which the run waits for before the next fault of the kind."""
        async def end():
            await self.whole(60)
            trouble.until = time.monotonic()
        self._go(end())

    def lost(self, sitting):
        """From when on a hub may count the end of this socket."""
        ended = self._ended.get(sitting.hub, 0)
        return ended if ended >= sitting.began else time.monotonic()

    def is_back(self, name, lost, sitting):
        """Whether others may have been told that it left is decided by how long it was away, and where it came back."""
        now = time.monotonic()
        drained = self._drained.get(self._hub_at(name, lost), 0)
        window = self.RESTART if lost - 3 < drained <= now else self.WINDOW
        if now - lost > window - 1 - self.lag:
            self.history.absences.append(Absence(name, lost, now, "away for long"))
        elif self.history.is_trouble(lost - 1, now + 1) or not self._whole[sitting.hub]:
            # The hub that it left may not hear of its return in time.
            self.history.absences.append(Absence(name, lost, now + window + 1, "back where hubs do not act as one"))

    def _hub_at(self, name, moment):
        return next((sitting.hub for sitting in reversed(self.history.sittings)
                     if sitting.person == name and sitting.began <= moment), None)

    # End

    async def settle(self, within=30):
        """Stops what goes on, and waits until everything is where it belongs. What is not by then, the verdict says."""
        await self.whole(60)
        healed = time.monotonic()
        for person in self.people:
            person.is_talking = False
        self.history.committed = await self.items.stop()
        await eventually(lambda: self.failures or all(person.is_present for person in self.everybody), 60, lambda: (
            f"everybody is back but {[person.name for person in self.everybody if not person.is_present]}"))
        assert not self.failures, self.failures[0]
        self.history.truth = {person.name for person in self.everybody}
        while True:
            await self._look()
            found = self.verdict()
            took = time.monotonic() - healed
            if not found or took > within:
                return found, took
            await asyncio.sleep(0.5)

    async def _look(self):
        """What a newcomer is shown on each hub."""
        for number, hub in enumerate(self.hubs):
            async with await Client.connect(hub.port, 2, apikey=token(sub="newcomer")) as client:
                await client.join(ROOM, config={"presence": {"enabled": True}})
                state = await client.next("presence_state", ROOM, within=15)
                self.history.shown[number] = {key: {meta["phx_ref"] for meta in entry["metas"]}
                                              for key, entry in state.payload.items()}

    def verdict(self):
        found = list(complaints(self.history, TALK, KEPT))
        for client in self.packaged:
            if client.shows != self.history.truth:
                found.append(f"{client.name} shows {sorted(client.shows)}")
        return found

    @property
    def story(self):
        """Who was where, for those who look into a complaint."""
        def at(moment):
            return "-" if moment is None else f"{moment - self.began:.2f}"
        return "\n".join([
            *(f"{sitting.person}/{sitting.number} on hub{sitting.hub} from {at(sitting.began)} to {at(sitting.ended)}, joined "
              f"{[at(joined) for joined in sitting.joined.values()]}, told of gaps at {[at(told) for told in sitting.gaps.get(TALK, [])]}"
              for sitting in self.history.sittings),
            *(f"absence {absence.key} from {at(absence.since)} to {at(absence.until)}: {absence.why}"
              for absence in self.history.absences),
            *(f"trouble from {at(trouble.since)} to {at(trouble.until)}: {trouble.why}" for trouble in self.history.troubles),
            *(f"hub{hub} shows {refs}" for hub, refs in self.history.shown.items())])

    @property
    def summary(self):
        sittings = self.history.sittings
        sent = [message for sitting in sittings for topic in sitting.sent.values() for message in topic.values()]
        return (f"seed {self.seed}: {len(self.faults.done)} faults, {len(sittings)} sockets, "
                f"{sum(message.accepted is not None for message in sent)} of {len(sent)} messages accepted, "
                f"{sum(len(heard) for sitting in sittings for heard in sitting.heard.values())} heard, "
                f"{sum(len(told) for sitting in sittings for told in sitting.gaps.values())} gaps told, "
                f"{len(self.history.committed)} rows, {sum(map(len, self.history.rows.values()))} of them received, "
                f"{sum(len(sitting.gone) for sitting in sittings)} leaves seen, {len(self.history.troubles)} times of trouble, "
                f"this process looked away for {self.lag:.2f} s at most")
