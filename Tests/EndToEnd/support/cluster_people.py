"""Clients that live on several hubs while these fail: they talk, are present, listen for rows, are cut off and come back."""

import asyncio
import contextlib
import json
import time

from support.cluster_history import Absence, Row, Sent, Sitting
from support.tokens import token
from support.websocket import Closed, Refused
from support.wsclient import Client

TALK, KEPT, ROOM, ROWS = "realtime:talk", "realtime:kept", "realtime:room", "realtime:rows"

#: Of one who connects and joins while hubs end.
FAILURES = (OSError, Closed, Refused, AssertionError, TimeoutError, asyncio.IncompleteReadError)


class Socket(Client):
    """Hands what comes to its person at once, but for the answers to joins, which `join` waits for."""

    person = None

    async def _read(self):
        try:
            while True:
                message = self._decoded(*await self.socket.receive())
                if not self.person.takes(self, message):
                    self.messages.append(message)
                    self._news.set()
        except Closed as end:
            self.closed = end
            self._news.set()


class Person:
    """A raw client, which behaves as unmodified ones do, and comes back to whichever hub is there.

    `restless` ones leave the list of who is present now and then, and come into it again.
    """

    #: Seconds between two messages to the one topic and the other.
    PACE = {TALK: 0.12, KEPT: 0.25}

    def __init__(self, name, run, chance, first, restless=False):
        self.first = first  # the hub that it comes to first
        self.name, self.run, self.chance, self.restless = name, run, chance, restless
        self.sitting = None
        self.socket = None
        self.sittings = 0
        self.away = 0.0  # seconds before it comes back after the next cut
        self._called = asyncio.Event()
        self.hub = None
        self.is_talking = True
        self._refs = 0
        self._waiting = {}  # ref: what is to be done with its answer
        self._last_id = None
        self._lost = None  # when the last socket ended; it was present then
        self.is_present = False
        self._absence = None  # one that it began by itself
        self.is_subscribed = False  # to rows, ever
        run.history.rows[name] = []

    # Life

    async def live(self):
        """Until it is cancelled."""
        while True:
            try:
                await self._enter()
                tasks = [asyncio.create_task(self._talk(topic)) for topic in self.PACE]
                if self.restless:
                    tasks.append(asyncio.create_task(self._come_and_go()))
                try:
                    await asyncio.wait([self.socket._task])
                finally:
                    for task in tasks:
                        task.cancel()
                    await asyncio.gather(*tasks, return_exceptions=True)
            except FAILURES as failure:
                self.run.note(f"{self.name}: {type(failure).__name__} {str(failure)[:120]}")
                await asyncio.sleep(self.chance.uniform(0.05, 0.2))
            finally:
                self._leave_socket()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._called.wait(), self.away)
            self._called.clear()
            self.away = 0.0

    async def _enter(self):
        self.hub = await self.run.choose(self.chance) if self.sittings else self.first
        self.sittings += 1
        # A hub that says nothing is left for another one.
        self.socket = await Socket.connect(self.run.hubs[self.hub].address, 2, within=5,
                                           apikey=token(sub=self.name, lifetime=3600 + self.sittings))
        self.socket.person, self.socket._refs = self, self._refs
        self.sitting = Sitting(self.name, self.sittings, self.hub)
        self.run.history.sittings.append(self.sitting)
        kept = {"history": {"after": self._last_id} if self._last_id else True, "self": True, "ack": True}
        await self._join(ROOM, {"presence": {"key": self.name, "enabled": True}})
        await self._track()
        await self._join(ROWS, None, [{"event": "*", "schema": "public", "table": "items"}])
        await self._join(TALK, {"broadcast": {"ack": True}})
        answer = (await self._join(KEPT, {"broadcast": kept}))["history"]
        self.sitting.complete = answer.get("complete") if self._last_id else None
        self._last_id = self._last_id if answer.get("complete") and self._last_id else answer["id"]

    async def _join(self, topic, config, changes=None):
        _, response = await self.socket.join(topic, changes, config, within=15)
        self.sitting.joined[topic] = time.monotonic()
        return response

    async def _track(self):
        await self._ask(ROOM, "presence", {"type": "presence", "event": "track", "payload": {"who": self.name}})
        if self._lost is not None:
            self.run.is_back(self.name, self._lost, self.sitting)
            self._lost = None
        if self._absence is not None:
            self._absence.until, self._absence = time.monotonic(), None
        self.is_present = True

    async def _ask(self, topic, event, payload):
        reply = await self.socket.ask(topic, event, payload, within=15)
        assert reply.payload["status"] == "ok", reply.payload

    def _leave_socket(self):
        if self.sitting and self.sitting.ended is None:
            self.sitting.ended = time.monotonic()
            if self.is_present:
                self._lost = self.run.lost(self.sitting)
            self.is_present = False
        if self.socket:
            self._refs = self.socket._refs
            self.socket.closed = self.socket.closed or Closed(None)
            self.socket._news.set()
            self.socket._task.cancel()
            with contextlib.suppress(OSError):  # it is closed already
                self.socket.socket.abort()
        self._waiting.clear()

    def cut(self, away):
        """An RST; it comes back after so many seconds."""
        if self.socket and self.sitting and self.sitting.ended is None:
            self.away = away
            self._called.clear()
            self._leave_socket()

    def call_back(self):
        """Whoever was cut for long is back now."""
        self._called.set()

    @property
    def is_coming_or_going(self):
        return self._absence is not None or self.sitting is not None and self.sitting.ended is None and not self.is_present

    # What it does

    async def _talk(self, topic):
        sent = self.sitting.sent.setdefault(topic, {})
        sitting, socket = self.sitting, self.socket
        while True:
            await asyncio.sleep(self.PACE[topic] * self.chance.uniform(0.5, 1.5))
            if not self.is_talking or socket.closed:
                continue
            n = len(sent) + 1
            ref = socket.ref()
            sent[n] = Sent(time.monotonic())
            self._waiting[ref] = sent[n]
            payload = {"person": self.name, "sitting": sitting.number, "n": n}
            socket.push(topic, "broadcast", {"type": "broadcast", "event": "e", "payload": payload}, ref)

    async def _come_and_go(self):
        while True:
            await asyncio.sleep(self.chance.uniform(2, 5))
            if not self.is_talking or self.run.is_calm:
                continue
            absence = Absence(self.name, time.monotonic(), None, "untracked", frozenset([self.hub]))
            self.run.history.absences.append(absence)
            self.is_present = False
            try:
                await self._ask(ROOM, "presence", {"type": "presence", "event": "untrack"})
                await asyncio.sleep(self.chance.uniform(0.3, 1))
                await self._track()
            except FAILURES as failure:
                self.run.note(f"{self.name}: {type(failure).__name__} {str(failure)[:120]}")
                return self.socket.socket.abort()
            finally:
                # Where it is cut off before it is back, that is one absence.
                self._absence = absence if not self.is_present else None
                absence.until = time.monotonic()

    # What it hears

    def takes(self, socket, message):
        """Whether that is all; else it is an answer that somebody waits for."""
        sitting, payload = self.sitting, message.payload
        if socket is not self.socket or sitting.ended is not None:
            return True
        match message.event:
            case "phx_reply":
                sent = self._waiting.pop(message.ref, None)
                if sent is None:
                    return False
                if payload["status"] == "ok":
                    sent.accepted = time.monotonic()
            case "broadcast":
                self._hears(sitting, message)
            case "postgres_changes":
                record = payload["data"]["record"]
                self.run.history.rows[self.name].append(Row(record["id"], record["n"]))
            case "presence_state":
                sitting.shows(payload)
            case "presence_diff":
                sitting.changes(payload)
            case "system":
                if message.topic == ROWS and payload["status"] == "ok":
                    self.is_subscribed = True
                sitting.is_told(message.topic, payload.get("message") or "")
            case "phx_error" | "phx_close":
                self.run.note(f"{self.name}: {message.event} {message.topic} {payload}")
                socket.socket.abort()
        return True

    def _hears(self, sitting, message):
        if message.is_binary:
            body, meta = json.loads(message.payload.payload), json.loads(message.payload.metadata or b"{}")
        else:
            body, meta = message.payload["payload"], message.payload.get("meta") or {}
        id = meta.get("history")
        sitting.hears(message.topic, body, id)
        if message.topic == KEPT:
            self._last_id = id
