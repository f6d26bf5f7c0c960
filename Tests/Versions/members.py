"""Clients of a hub whose Postgres is upgraded, the writer, and what each client lacks in the end."""

import contextlib
import threading
from dataclasses import dataclass, field

import psycopg

from support.deadline import eventually
from support.pypi import Listener, python_client
from support.returning import Returning

EACH = 3


class Writer(threading.Thread):
    """Inserts rows 1, 2, 3, … from the first `write` on, while there is a server and until it has to rest; what became
    of them, the table says."""

    def __init__(self, url, rate=200):
        super().__init__(daemon=True)
        self.url, self.pause, self.next = url, 1 / rate, 1
        self.may_write, self.ended = threading.Event(), threading.Event()
        self.is_idle = threading.Event()

    def run(self):
        while not self.ended.is_set():
            try:
                with psycopg.connect(self.url, autocommit=True, connect_timeout=5) as connection:
                    while not self.ended.is_set():
                        if not self.may_write.is_set():
                            self.is_idle.set()
                            self.may_write.wait(0.05)
                            continue
                        self.is_idle.clear()
                        connection.execute("insert into t (id) values (%s)", [self.next])
                        self.next += 1
                        self.ended.wait(self.pause)
            except psycopg.Error:
                # The row may have been committed.
                self.next += 1
                self.is_idle.set()
                self.ended.wait(0.05)

    async def rest(self):
        """Writers are stopped; nothing of theirs is on its way."""
        self.may_write.clear()
        self.is_idle.clear()
        await eventually(self.is_idle.is_set, 20, "the writer rests")

    async def write(self, count):
        """At least so many more rows."""
        self.may_write.set()
        end = self.next + count
        await eventually(lambda: self.next >= end, 60, f"{count} more rows")


@dataclass
class Count:
    """What the clients of one kind lack, in all."""
    silent: int = 0  # rows that a client lacks and was not told of
    told: int = 0  # rows that it lacks and was told of: it loads its data again
    answers: list = field(default_factory=list)


class Members:
    """Unmodified clients that stay or come back by themselves, unmodified ones that are cut off before and come back
    after, and such that come back with a cursor."""

    def __init__(self, hub):
        self.hub = hub
        self.stays, self.returns, self.resumes = [], [], []
        self.counts = {"stays": Count(), "returns": Count(), "resumes": Count()}
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self):
        for number in range(EACH):
            client = await self._stack.enter_async_context(python_client(self.hub))
            listener = Listener(client, f"realtime:stays{number}").on_changes(schema="public", table="t")
            self.stays.append(await listener.subscribe())
        for kind, members in (("returns", self.returns), ("resumes", self.resumes)):
            for number in range(EACH):
                member = Returning(self.hub, f"realtime:{kind}{number}", "t", sub=f"{kind}{number}")
                self._stack.push_async_callback(member.close)
                members.append(member)
                await member.enter()
        return self

    async def __aexit__(self, *_):
        await self._stack.aclose()

    def _ids(self, member):
        if isinstance(member, Listener):
            return {change["data"]["record"]["id"] for change in member.changes}
        return set(member.ids)

    async def have(self, row, within=90, members=None):
        for member in members or self.stays + self.returns + self.resumes:
            await eventually(
                lambda: row in self._ids(member), within,
                lambda: f"row {row} at {getattr(member, 'topic', 'a Python client')}: {len(self._ids(member))} rows came, "
                        f"{getattr(member, 'states', '')}; the hub says {self.hub.log[-1500:]}")

    async def level(self):
        """All have the same; while the writer rests that is all there is."""
        everyone = self.stays + self.returns + self.resumes
        await eventually(
            lambda: len({frozenset(self._ids(member)) for member in everyone}) == 1, 30,
            lambda: f"all have the same: {[len(self._ids(member)) for member in everyone]}")

    async def cut(self):
        for member in self.returns + self.resumes:
            await member.cut()

    async def come_back(self):
        """Those who were cut off. A client without cursors takes what it is sent; nobody tells it more."""
        for member in self.returns:
            await member.enter()
        for member in self.resumes:
            answer = await member.enter(resume={"cursor": member.frames[-1]["cursor"]})
            member.is_told = not answer["resumed"]
            self.counts["resumes"].answers.append(answer.get("reason", "resumed"))

    def count(self, truth):
        for kind, count in self.counts.items():
            for member in getattr(self, kind):
                missing = len(truth - self._ids(member))
                if getattr(member, "is_told", False):
                    count.told += missing
                else:
                    count.silent += missing
        return self.counts
