"""The unmodified client of PyPI, while several hubs fail."""

import asyncio
import contextlib
import logging
import time

from realtime import AsyncRealtimeClient
from realtime.types import RealtimeSubscribeStates

from support.cluster_history import Gone, Row, Sitting
from support.cluster_people import TALK
from support.pypi import Listener
from support.tokens import token

# What it says about lost connections is what this is about.
for _name in ("realtime", "websockets"):
    logging.getLogger(_name).setLevel(logging.CRITICAL + 1)


class Packaged:
    """The unmodified client of PyPI behind a load balancer, with its own reconnecting."""

    def __init__(self, name, run, balancer):
        self.name, self.run, self.balancer = name, run, balancer
        self.sitting, self.is_present, self.is_subscribed = None, False, False
        self.client = AsyncRealtimeClient(f"ws://127.0.0.1:{balancer.port}/realtime/v1", token(sub=name),
                                          initial_backoff=0.1, max_retries=1000)
        self._connection = None
        self._lost = None
        self._shown = set()
        self._tasks = set()
        run.history.rows[name] = []

    async def enter(self):
        talk = Listener(self.client, "talk")
        talk.channel.on_broadcast("e", lambda message: self._now().hears(TALK, message["payload"]))
        talk.channel.on_system(lambda message: self._now().is_told(TALK, message.message))
        rows = Listener(self.client, "rows")
        rows.channel.on_system(self._row_system)
        rows.channel.on_postgres_changes("*", callback=self._row, schema="public", table="items")
        self.room = Listener(self.client, "room", presence_key=self.name, presence=True)
        self.room.channel.on_presence_sync(self._synced)
        await talk.channel.subscribe(self._talks)
        await rows.channel.subscribe(lambda state, error: None)
        await self.room.channel.subscribe(self._rooms)
        self._listeners = talk, rows, self.room

    def _synced(self):
        """What its application is shown, over all of its connections."""
        shown = self.shows
        self._now().gone += [Gone(time.monotonic(), key) for key in self._shown - shown]
        self._shown = shown

    def _row_system(self, message):
        self.is_subscribed = self.is_subscribed or message.extension == "postgres_changes"

    def _row(self, change):
        record = change["data"]["record"]
        self.run.history.rows[self.name].append(Row(record["id"], record["n"]))

    def _now(self):
        """What is noted of its present connection."""
        connection = self.client._ws_connection
        if connection is not self._connection or self.sitting is None or self.sitting.ended is not None:
            if self.sitting and self.sitting.ended is None:
                self.sitting.ended = time.monotonic()
            self._connection = connection
            self.sitting = Sitting(self.name, self.sitting.number + 1 if self.sitting else 1, self.balancer.chosen)
            self.run.history.sittings.append(self.sitting)
        return self.sitting

    def _talks(self, state, error):
        if state == RealtimeSubscribeStates.SUBSCRIBED:
            self._now().joined[TALK] = time.monotonic()
        elif self.sitting and self.sitting.ended is None:
            self.sitting.ended = time.monotonic()

    def _rooms(self, state, error):
        """It tracks whenever it is subscribed, as applications are told to."""
        if state == RealtimeSubscribeStates.SUBSCRIBED:
            task = asyncio.create_task(self._track())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif self.is_present:
            cut_at = self.balancer.cut_at
            self._lost = min(self.run.lost(self.sitting), cut_at if cut_at > self.sitting.began else float("inf"))
            self.is_present = False

    async def _track(self):
        with contextlib.suppress(Exception):  # it says so if it is cut off meanwhile, and comes back
            await self.room.channel.track({"who": self.name})
            if self._lost is not None:
                self.run.is_back(self.name, self._lost, self._now())
                self._lost = None
            self.is_present = True

    def cut(self, away):
        self.balancer.cut()

    @property
    def is_settled(self):
        return self.client.is_connected and all(listener.channel.is_joined for listener in self._listeners)

    @property
    def shows(self):
        """The keys that its own list has."""
        return set(self.room.channel.presence_state())

    async def end(self):
        await self.client.close()
