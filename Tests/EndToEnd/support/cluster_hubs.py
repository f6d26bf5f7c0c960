"""The hubs of a fault run, each with a link to Redis that can be cut, and on a network of its own where that can be."""

import asyncio
import time

import psycopg

from support import namespaces
from support.cluster_history import HUBS, Trouble
from support.deadline import eventually
from support.hub import BINARY, Hub
from support.proxy import Proxy

#: The second number of the addresses between a hub and Redis, and between it and everybody else.
REDIS_SUBNET, FRONT_SUBNET = 77, 78


class Hubs:
    """`all` of them by number. Who they are is noted in the run's history: when they were killed and when they were there again."""

    def __init__(self, run, cluster, database, redis, **settings):
        self.run, self.cluster, self.database, self.redis, self.settings = run, cluster, database, redis, settings
        self.all, self.links, self.networks, self.wires = [], [], [], []
        #: What the hubs are at first.
        self.binary = BINARY
        #: When each was killed, and when it was last told to drain.
        self.ended, self.drained = {}, {}
        #: Those that a load balancer does not choose: frozen, draining, or out of reach.
        self.away = set()
        self._whole, self._asked = [False] * HUBS, [0.0] * HUBS
        #: Seconds until all acted as one again, after each fault.
        self.healed = []

    async def open(self):
        for number in range(HUBS):
            host, within, database, here = "127.0.0.1", (), self.cluster.url(self.database), "127.0.0.1"
            if namespaces.is_private():
                network = await asyncio.to_thread(namespaces.Network, number)
                self.networks.append(network)
                redis, front = network.wire("redis", REDIS_SUBNET), network.wire("front", FRONT_SUBNET)
                self.wires.append((redis, front))
                host, within, here = front.there, network.within, redis.here
                database = database.replace("127.0.0.1", front.here)
            link = Proxy(self.redis.port, here)
            link.receive_buffer = 65536
            await link.open()
            self.links.append(link)
            self.all.append(Hub(
                database, host, within, ROOST_LOOPS="2", ROOST_NODE_NAME=f"hub{number}", ROOST_FEED_SAFETY_POLL_SECONDS="1",
                ROOST_CLUSTER_URL=f"redis://{here}:{link.port}", ROOST_LOG_LEVEL="info", **self.settings))
            self.all[-1].binary = self.binary
        await asyncio.to_thread(self.all[0].run, "migrate")
        with psycopg.connect(self.cluster.url(self.database), autocommit=True) as connection:
            connection.execute("create table items (id int8 primary key, n int4)")
        await asyncio.to_thread(self.all[0].watch, "public.items")
        await asyncio.gather(*map(self.start, range(HUBS)))

    async def close(self):
        for link in self.links:
            link.flow()
            await link.close()
        for hub in self.all:
            await asyncio.to_thread(hub.remove)
        for network in self.networks:
            await asyncio.to_thread(network.remove)

    def __getitem__(self, number):
        return self.all[number]

    def available(self):
        """Those that a load balancer would choose: one that does not reach Redis is among them."""
        return [number for number, hub in enumerate(self.all)
                if hub.is_listening and hub.process.poll() is None and number not in self.away]

    async def choose(self, chance):
        await eventually(self.available, 60, "a hub that is there")
        return chance.choice(self.available())

    # Ends and beginnings

    async def start(self, number):
        self._whole[number] = False
        self.all[number].start(wait=False)
        self.away.discard(number)
        await eventually(lambda: self.all[number].is_listening or self.all[number].process.poll() is not None, 60)
        assert self.all[number].is_listening, self.all[number].log[-2000:]

    async def kill(self, number):
        """The trouble lasts until it is started again, or until it is known to be dead."""
        now = time.monotonic()
        trouble = Trouble(now, None, f"hub{number} killed", frozenset([number]), is_death=True)
        self.run.history.troubles.append(trouble)
        self.ended[number], self._whole[number] = now, False
        await asyncio.to_thread(self.all[number].kill)
        return trouble

    async def drain(self, number):
        now = time.monotonic()
        trouble = Trouble(now, None, f"hub{number} drained", frozenset([number]))
        self.run.history.troubles.append(trouble)
        self.drained[number] = now
        self.away.add(number)
        status = await asyncio.to_thread(self.all[number].stop, 30)
        log = self.all[number].log
        assert status == 0, f"after SIGTERM hub{number} ended with {status}: {log[-2000:]}"
        if log.rfind("The other hubs cannot be reached") > log.rfind("[Clustering] Connected to Redis"):
            trouble.unheard = time.monotonic()
        return trouble

    async def replace(self, number, binary):
        """As an upgrade does: it is stopped in order, and another program is started in its place."""
        trouble = await self.drain(number)
        self.all[number].binary = binary
        await self.start(number)
        trouble.until = time.monotonic()

    # Whether they act as one

    async def whole(self, within):
        """All hubs act as one, as of now: what was so before a fault says nothing."""
        now = time.monotonic()
        await eventually(lambda: all(self._whole) and min(self._asked) > now, within, lambda: (
            f"hubs act as one: {self._whole}\n" + "\n".join(self.run.notes[-20:] + [hub.log[-1500:] for hub in self.all])))

    async def watch(self, number):
        """Asks a hub all the time whether it reaches the others."""
        while True:
            await asyncio.sleep(0.2)
            if number in self.away:
                continue
            asked = time.monotonic()
            self._whole[number] = await self._figures(number) == (1, HUBS - 1)
            self._asked[number] = asked

    async def _figures(self, number):
        """Whether it reaches Redis, and how many others are there; nothing if it does not answer."""
        try:
            async with asyncio.timeout(5):
                reader, writer = await asyncio.open_connection(self.all[number].host, self.all[number].ops_port)
                try:
                    writer.write(f"GET /metrics HTTP/1.1\r\nHost: {self.all[number].host}\r\nConnection: close\r\n\r\n".encode())
                    text = (await reader.read()).decode()
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return None
        values = dict(line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("roost_cluster_") and "{" not in line)
        return (int(float(values.get("roost_cluster_reached", 0))), int(float(values.get("roost_cluster_hubs", 0))))
