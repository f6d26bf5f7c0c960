"""Clients that lose their socket and come back, and writers that do not wait for them."""

import asyncio
import threading

import psycopg

from support.deadline import PATIENCE, eventually
from support.tokens import token
from support.wsclient import Client


class Returning:
    """A raw client with one channel for row changes. It remembers what came, over all of its sockets.

    Its refs go on counting over reconnects, as those of all clients do, and every socket brings a fresh token.
    """

    def __init__(self, hub, topic, table, version=2, sub="someone", role="authenticated", filter=None, event="*"):
        self.hub, self.topic, self.version, self.sub, self.role = hub, topic, version, sub, role
        self.binding = {"event": event, "schema": "public", "table": table, **({"filter": filter} if filter else {})}
        self.frames = []  # payloads of postgres_changes, in order
        self.early = []  # those that came before the reply
        self.sockets = 0
        self.client = None
        self._refs = 0

    async def connect(self):
        self.sockets += 1
        claims = {"sub": self.sub} if self.sub else {}
        self.client = await Client.connect(
            self.hub.port, self.version, apikey=token(self.role, lifetime=3600 + self.sockets, **claims),
            tls=self.hub.trust)
        self.client._refs = self._refs
        self.client.on_message = self._take
        self.is_joined = False
        return self

    def _take(self, message):
        # What comes before the reply is lost on a client: it has no ids yet. The reply may be here and not be taken yet.
        if not self.is_joined and not any(m.event == "phx_reply" for m in self.client.messages):
            self.early.append(message.payload)
        self.frames.append(message.payload)

    async def join(self, within=PATIENCE, **config):
        """The reply's response."""
        _, response = await self.client.join(self.topic, [self.binding], config, within=within)
        self._refs = self.client._refs
        self.is_joined = True
        assert not self.early, "changes came before the reply"
        return response

    async def enter(self, **config):
        await self.connect()
        return await self.join(**config)

    async def cut(self, unread=0.0):
        """An RST; what came in the last `unread` seconds lies in the kernel, acknowledged and not seen."""
        transport = self.client.socket.writer.transport
        if unread:
            transport.pause_reading()
            await asyncio.sleep(unread)
        self.client._task.cancel()
        self.client.on_message = lambda message: None
        self.client.socket.abort()

    def go_deaf(self):
        """The socket stays open, and nothing is read from it or answered any more. The old client is returned."""
        self.client.socket.writer.transport.pause_reading()
        self.client._task.cancel()
        self.client.on_message = lambda message: None
        return self.client

    async def close(self):
        if self.client:
            await self.client.close()

    @property
    def records(self):
        return [frame["data"].get("record") or frame["data"]["old_record"] for frame in self.frames]

    @property
    def ids(self):
        return [record["id"] for record in self.records]

    async def has(self, ids, within=PATIENCE):
        wanted = set(ids)

        def what():
            missing = sorted(wanted - set(self.ids))
            return f"{len(missing)} of {len(wanted)} rows: {missing[:20]}"
        await eventually(lambda: wanted <= set(self.ids), within, what)

    async def settled(self):
        """All that the hub had to say before this call is in `frames`."""
        await self.client.settled()


class Rows(threading.Thread):
    """Inserts rows 1, 2, 3, … into a table by its `id`, each in its own transaction, until it is told to stop."""

    def __init__(self, url, table, rate, first=1):
        super().__init__(daemon=True)
        self.url, self.table, self.pause, self.next = url, table, 1 / rate, first
        self.committed = []
        self.ended = threading.Event()
        self.failure = None

    def run(self):
        try:
            with psycopg.connect(self.url, autocommit=True) as connection:
                while not self.ended.is_set():
                    connection.execute(f"insert into {self.table} (id) values (%s)", [self.next])
                    self.committed.append(self.next)
                    self.next += 1
                    self.ended.wait(self.pause)
        except BaseException as failure:  # shown by the test
            self.failure = failure

    async def stop(self):
        self.ended.set()
        await asyncio.to_thread(self.join, 20)
        assert self.failure is None, self.failure
        return self.committed


def in_order(ids):
    """Whether numbers that were committed one after the other first came in that order."""
    highest = 0
    for number in dict.fromkeys(ids):
        if number < highest:
            return False
        highest = number
    return True
