"""Clients of the model check: the raw client of this folder with several subscriptions in a channel, cursors, and an
application that loads its data."""

import asyncio
import re
import time

import psycopg

from channel import Channel
from model_truth import Snapshot
from raw import RawClient

#: What tells that changes are missing, besides a `resumed` that is false (docs/recovery.md, docs/errors.md).
LOSS = re.compile(r"ChangesLost: |Changes of \S+ are missing|Direct writes to a new partition of \S+ reach nobody")

#: What tells of a table that something is missing from now on, until the word comes that it is subscribed.
FAULT = re.compile(r"Direct writes to a new partition of \S+ reach nobody")


class Feed:
    """The `subscription` of a channel: its folds, and whether they are loaded."""

    def __init__(self, folds):
        self.folds = folds
        self.lives = 0

    @property
    def bindings(self):
        return [fold.binding for fold in self.folds]

    def begin_anew(self):
        self.lives += 1
        for fold in self.folds:
            fold.begin_anew()


class ModelChannel(Channel):
    """An application with data: it loads it when it is first subscribed and whenever it is told that changes are missing,
    and keeps what comes meanwhile for afterwards."""

    REJOIN_DELAYS = (0.1, 0.3, 1, 2)

    def __init__(self, client, topic, folds, has_cursor, load):
        super().__init__(client, topic, Feed(folds), lambda _: None)
        self.has_cursor, self._load = has_cursor, load
        self.cursor = None
        #: Times without a live subscription, each from when until when.
        self.absences = [[time.monotonic(), float("inf")]]
        self._life = -1
        self._by_id = {}
        self._loading = None
        self._why = None  # of a load that is still to come
        self._kept = []
        self._is_faulty = False

    @property
    def folds(self):
        return self.subscription.folds

    @property
    def is_settled(self):
        return self.state == "joined" and self._loading is None

    def config(self):
        config = super().config()
        if self._life != self.subscription.lives:
            # Another client: it has nothing to come back to.
            self.cursor = None
        if self.has_cursor:
            config["resume"] = {"cursor": self.cursor} if self.cursor else {}
        return config

    def disconnected(self):
        super().disconnected()
        self._is_away()

    def leave(self):
        """As an application that closes a view and opens it again: it starts with the data that it loads."""
        if self.state != "joined":
            return
        self.client.push(self.topic, "phx_leave", {}, self.client.ref(), self.join_ref)
        self.client.journal.note("left", self.topic)
        self.subscription.begin_anew()
        self.state, self.join_ref = "errored", None
        self._is_away()
        self._rejoin()

    def _is_away(self):
        if self.absences[-1][1] < float("inf"):
            self.absences.append([time.monotonic(), float("inf")])

    def took(self, event, payload, ref, join_ref):
        if event == "system" and self.state == "joined":
            message = payload.get("message", "")
            self.client.journal.note("system", f"{self.topic} {payload.get('status')}: {message}")
            if LOSS.match(message) or self._is_faulty and message.startswith("Subscribed"):
                # What was written to a table until it was put right has to be loaded as well.
                self._reload(message)
            self._is_faulty = bool(FAULT.match(message)) or self._is_faulty and not message.startswith("Subscribed")
            if message.startswith("Subscribed") and payload.get("cursor") and self.cursor is None:
                self.cursor = payload["cursor"]
        super().took(event, payload, ref, join_ref)

    def fold_of(self, payload):
        return next(self._by_id[identity] for identity in payload["ids"] if identity in self._by_id)

    def take(self, payload):
        if payload.get("cursor"):
            self.cursor = payload["cursor"]
        at = time.monotonic()
        for identity in payload["ids"]:
            if identity in self._by_id:
                self._kept.append((self._by_id[identity], payload["data"], at))
        if self._loading is None:
            self._fold()

    def _fold(self):
        for fold, data, at in self._kept:
            fold.take(data, at)
        self._kept = []

    def _answered(self, payload):
        super()._answered(payload)
        if self.state != "joined":
            return
        self.absences[-1][1] = time.monotonic()
        response = payload["response"]
        self._by_id = {binding["id"]: fold for binding, fold in zip(response["postgres_changes"], self.folds)}
        if self._life != self.subscription.lives:
            self._life = self.subscription.lives
            self._kept = []
            self._reload("")
        elif response.get("resumed") is False:
            self.client.journal.note("refused", response.get("reason"))
            self.cursor = None
            self._reload(f"resumed: false, {response.get('reason')}")

    def _failed(self, why):
        super()._failed(why)
        self._is_away()

    # Loading

    def _reload(self, why):
        self._why = why
        if self._loading is None:
            self._loading = asyncio.ensure_future(self._load_all())

    async def _load_all(self):
        while self._why is not None:
            why, life, self._why = self._why, self.subscription.lives, None
            # What has come by now is in what is loaded.
            for fold, data, at in self._kept:
                fold.note(data, at)
            self._kept = []
            try:
                snapshot, tables = await asyncio.to_thread(self._load, self.client.user, self.folds)
            except (psycopg.OperationalError, psycopg.errors.LockNotAvailable) as error:
                # The database is away; the application tries again.
                self.client.journal.note("cannot load", str(error)[:100])
                self._why = why if self._why is None else self._why
                await asyncio.sleep(0.1)
                continue
            if life == self.subscription.lives:
                for fold, rows in zip(self.folds, tables):
                    fold.load(snapshot, rows, why)
            elif self._why is None:
                # It is another client by now; its own load comes when it is subscribed.
                self._kept = []
        self._loading = None
        self._fold()


def loader(cluster, database):
    """What an application does: SELECT as its user, all in one snapshot."""
    def load(user, folds):
        with cluster.connect(database, connect_timeout=5) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            with user.acting(connection):
                snapshot = Snapshot(connection.execute("select pg_current_snapshot()::text").fetchone()[0])
                return snapshot, [[row for row, in connection.execute(fold.query)] for fold in folds]
    return load


class ModelClient(RawClient):
    """Comes to any hub that listens. `user` is a principal."""

    RECONNECT_DELAYS = (0.05, 0.2, 0.5, 1)

    def __init__(self, name, version, user, habit, hubs, chance):
        super().__init__(name, version, hubs[0].port, user.token(), habit)
        self.user, self._hubs, self._chance = user, hubs, chance
        self._away_until = 0.0

    def open(self, topic, folds, has_cursor, load):
        self.channels[topic] = ModelChannel(self, topic, folds, has_cursor, load)

    def abandon(self):
        """The hub asks a user's other sockets whether they live; of clients without a user and a cursor each socket is its own
        client until it is closed (docs/recovery.md)."""
        if self.user.is_known or all(channel.has_cursor for channel in self.channels.values()):
            super().abandon()
        else:
            self.cut()

    def go_away(self, seconds):
        """Its network is gone for so long."""
        self._away_until = time.monotonic() + seconds
        self.cut()

    async def _reconnect(self, delay):
        await super()._reconnect(max(delay, self._away_until - time.monotonic()))

    async def _connect(self):
        there = [hub for hub in self._hubs if hub.is_listening and hub.process.poll() is None]
        self.port = self._chance.choice(there or self._hubs).port
        await super()._connect()

    @property
    def is_settled(self):
        return self.is_open and all(channel.is_settled for channel in self.channels.values())

    def leave(self):
        if self.is_open:
            for channel in self.channels.values():
                channel.leave()
