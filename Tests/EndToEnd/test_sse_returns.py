"""Readers of events that are cut off and come back (docs/sse.md): nothing is missing and nothing comes twice."""

import asyncio
import base64
import contextlib
import json
import os
import random

import pytest

from support.cluster import Cluster
from support.deadline import eventually
from support.events import Broken
from support.http import HTTPConnection
from support.hub import Hub
from support.proxy import Proxy
from support.reverse_proxy import ReverseProxy
from support.subscriptions import Subscription, channel, query
from support.tokens import token
from test_sse import both_formats, say

pytestmark = pytest.mark.anyio
#: Messages of which none may be so old that it is not kept any more (`limits.history_messages`).
AHEAD = 50
#: How often all readers together are cut off.
CUTS = int(os.environ.get("ROOST_SSE_RECONNECTS", 120))
#: How often two come at once whose ids are of different epochs.
PAIRS = int(os.environ.get("ROOST_SSE_PAIRS", 150))


class Reader:
    """Reads two channels over any number of connections, and cuts itself off at random."""

    def __init__(self, port, channels, lines, seed):
        self.port, self.channels, self.lines, self.random = port, channels, lines, random.Random(seed)
        self.id, self.cuts = None, 0
        self.rows, self.messages = [], []

    async def begin(self):
        """From here on it is owed everything: it knows where it is in both channels."""
        async with await Subscription.to(self.port, *self.channels, lines=self.lines) as events:
            await events.known(lambda position: "!r" in position and "!h" in position)
            self.id = events.id

    async def read(self, cuts, is_over):
        while True:
            lasts = self.random.randint(0, 12) if self.cuts < cuts else None
            events = await Subscription.to(self.port, *self.channels, lines=self.lines, last_id=self.id)
            assert events.status == 200, events.first
            if self.id:
                assert events.first["resumed"] is True, events.first
            try:
                while lasts is None or lasts > 0:
                    if lasts is None and is_over(self):
                        return
                    message = await events.message(within=30)
                    assert message is not None
                    if message.name == "postgres_changes":
                        self.rows.append(message.payload["data"]["record"]["id"])
                    elif message.name == "n":
                        self.messages.append(message.payload["n"])
                    # As a browser has it: until an answer says another, the last id stands.
                    self.id = events.id or self.id
                    lasts = lasts and lasts - 1
            finally:
                events.writer.transport.abort()
            self.cuts += 1


@pytest.fixture
def busy(own_hub, cluster):
    with cluster.connect(own_hub.database) as sql:
        sql.execute("create table t (id int primary key)")
        own_hub.watch("t")
        own_hub.start()
        yield sql


async def write(hub, sql, count, readers):
    """Rows and messages in turn, as fast as the reader that is cut off most comes after: the hub keeps so many messages."""
    async with await HTTPConnection.open(hub.port) as http:
        for number in range(count):
            while min(len(reader.messages) for reader in readers) < number - AHEAD:
                await asyncio.sleep(0.001)
            sql.execute(f"insert into t values ({number})")
            await say(http, "talk", "n", {"n": number})
            await asyncio.sleep(0.002)


async def test_random_cuts(own_hub, busy):
    """Each reader gets every row and every message once and in order, however often it is cut off."""
    # A connection lasts for six events on average: there are enough for all cuts.
    count = max(150, CUTS)
    channels = channel("rows", postgres_changes=[{"event": "*", "schema": "public", "table": "t"}]), "talk"
    readers = [Reader(own_hub.port, channels, lines=bool(n % 2), seed=n) for n in range(4)]
    for reader in readers:
        await reader.begin()
    async with asyncio.timeout(120 + CUTS / 10):
        writing = asyncio.create_task(write(own_hub, busy, count, readers))
        await asyncio.gather(writing, *(
            reader.read(CUTS // 4, lambda it: len(it.rows) >= count and len(it.messages) >= count) for reader in readers))
    for reader in readers:
        assert reader.rows == list(range(count)), f"rows after {reader.cuts} cuts"
        assert reader.messages == list(range(count)), f"messages after {reader.cuts} cuts"
    assert [reader.cuts for reader in readers] == [CUTS // 4] * 4
    print(f"{CUTS // 4 * 4} cuts")


@pytest.fixture(scope="module", params=["plain nginx", "nginx", "haproxy", "caddy"])
def proxy(shared_hub, request):
    proxy = ReverseProxy(request.param, shared_hub.port)
    try:
        yield proxy.start()
    finally:
        proxy.remove()


@both_formats
async def test_through_proxies(proxy, http, name, lines):
    """Each event comes by itself, and whoever is cut off comes back to where it was."""
    path = f"/api/broadcast/{name}/events"
    last, came = None, 0
    for number in range(60):
        async with await Subscription.open(proxy.port, path, lines=lines, last_id=last, accept_encoding="gzip") as events:
            assert events.status == 200, events.first
            if number % 2 == 0:
                # It comes by this connection, or while there is none.
                await say(http, name, "n", {"n": number})
            else:
                assert events.first["resumed"] is True, events.first
            message = await events.message()
            assert message.payload == {"n": came}
            came, last = came + 1, events.id
        if number % 2 == 0:
            await say(http, name, "n", {"n": number + 1})


@both_formats
async def test_rows_outlive_the_hub(own_hub, busy, lines):
    """A hub that is killed forgets messages, and says so; rows are in the database."""
    channels = channel("rows", postgres_changes=[{"event": "*", "schema": "public", "table": "t"}]), "talk"
    reader = Reader(own_hub.port, channels, lines, seed=1)
    await reader.begin()
    busy.execute("insert into t values (1)")
    own_hub.kill()
    busy.execute("insert into t values (2)")
    own_hub.start()
    async with await Subscription.to(own_hub.port, *channels, lines=lines, last_id=reader.id) as events:
        assert events.first["resumed"] is False
        assert events.channels["rows"]["resumed"] is True, events.first
        assert events.channels["talk"]["reason"].startswith("The id is of another process of the hub")
        rows = [(await events.until("postgres_changes")).payload["data"]["record"]["id"] for _ in range(2)]
        assert rows == [1, 2]


async def test_ids_of_several_epochs_that_come_at_once_are_all_known(own_hub, busy):
    """What the database knows of an id's epoch is asked of it; others come while it is asked."""
    rows = channel("rows", postgres_changes=[{"event": "*", "schema": "public", "table": "t"}])
    ids = {}
    async with await Subscription.to(own_hub.port, rows) as events:
        await events.until("system")

        async def three_epochs():
            busy.execute("insert into t select coalesce(max(id), 0) + 1 from t")
            await events.until("postgres_changes")
            # A cursor begins with its version and its epoch (docs/recovery.md).
            cursor = events.id.split("!r")[1]
            ids.setdefault(base64.urlsafe_b64decode(cursor.split(".")[0] + "===")[1:5], events.id)
            return len(ids) == 3
        await eventually(three_epochs, 40, what="cursors of three epochs", every=0.1)

    async def come_back(last, after):
        await asyncio.sleep(after)
        async with await Subscription.to(own_hub.port, rows, last_id=last) as events:
            return events.first
    chance, (oldest, older, _) = random.Random(1), ids.values()
    for number in range(PAIRS):
        came = await asyncio.gather(come_back(oldest, 0), come_back(older, chance.uniform(0, 0.004)))
        assert all(first["resumed"] for first in came), (number, came)


async def test_a_quiet_channel_does_not_fall_behind(own_hub, busy):
    """Where a reader is goes on with what others are sent, on its loop or on another, so that it is never older than what is kept."""
    own_hub.environment["ROOST_LOOPS"] = "2"
    own_hub.stop()
    own_hub.start()
    busy.execute("create table other (id int primary key)")
    own_hub.watch("other")
    quiet = channel("quiet", postgres_changes=[{"event": "*", "schema": "public", "table": "t"}])
    loud = channel("loud", postgres_changes=[{"event": "*", "schema": "public", "table": "other"}])
    async with await Subscription.to(own_hub.port, loud) as others, contextlib.AsyncExitStack() as stack:
        # As many that some are on the loop of what is loud, and some are not.
        readers = [await stack.enter_async_context(await Subscription.to(own_hub.port, quiet)) for _ in range(8)]
        for events in readers:
            await events.known(lambda position: "!r" in position)
        before = [events.id for events in readers]
        await others.until("system")

        async def go_on():
            busy.execute("insert into other select coalesce(max(id), 0) + 1 from other")
            known = await asyncio.gather(*(
                events.knows(lambda position, was=was: position != was) for events, was in zip(readers, before)))
            return all(known)
        await eventually(go_on, 40, what="a new id without an event", every=0.2)


async def test_a_slow_reader_is_cut_off_and_comes_back(own_hub, busy):
    own_hub.environment["ROOST_LIMITS_PENDING_BYTES_PER_SOCKET"] = "262144"
    own_hub.stop()
    own_hub.start()
    channels = (
        channel("rows", postgres_changes=[{"event": "*", "schema": "public", "table": "t"}]),
        channel("flood", broadcast={"history": False}))
    events = await Subscription.to(own_hub.port, *channels, buffer=8192)
    await events.known(lambda position: "!r" in position)
    last, got = events.id, []
    # It does not read, and more comes than it may have waiting: nobody waits for it.
    async with await HTTPConnection.open(own_hub.port) as http:
        for number in range(200):
            busy.execute("insert into t values (%s)", [number])
            await say(http, "flood", "flood", {"x": "y" * 100_000})

    async def read():
        while len(got) < 200:
            message = await events.message(within=30)
            if message.name == "postgres_changes":
                got.append(message.payload["data"]["record"]["id"])
    with pytest.raises((Broken, ConnectionError)):
        try:
            await read()
        finally:
            last = events.id
    assert len(got) < 200
    events = await Subscription.to(own_hub.port, *channels, last_id=last)
    assert events.channels["rows"]["resumed"] is True
    await read()
    events.close()
    assert got == list(range(200))


async def test_a_drain_says_when_to_come_back(own_hub):
    own_hub.start()
    async with await Subscription.to(own_hub.port, "a") as events:
        stopping = asyncio.create_task(asyncio.to_thread(own_hub.stop))
        assert await events.message() is None, "the answer has an end"
        assert 2000 <= events.retry <= 5000
        await stopping


EVENTS = """
window.got = [], window.states = [];
window.source = new EventSource(%s);
for (const name of ["connected", "postgres_changes", "n"])
    source.addEventListener(name, event => got.push([name, JSON.parse(event.data), event.lastEventId]));
source.onerror = () => states.push(source.readyState);
"""


async def test_a_browser_comes_back_by_itself(own_hub, busy, browser):
    rows = channel("rows", postgres_changes=[{"event": "*", "schema": "public", "table": "t"}])
    page = await browser.page(f"http://127.0.0.1:{own_hub.port}/")
    async with Proxy(own_hub.port) as network, await HTTPConnection.open(own_hub.port) as http:
        url = f"http://127.0.0.1:{network.port}/api/sse{query([rows, 'talk'], apikey=token('anon'))}"
        await page.run(EVENTS % json.dumps(url))
        await page.until("got.length == 1 && got[0][0] == 'connected'")
        for number in range(6):
            busy.execute(f"insert into t values ({number})")
            await say(http, "talk", "n", {"n": number})
            await page.until(f"got.filter(one => one[0] == 'n').length == {number + 1}")
            await page.until(f"got.filter(one => one[0] == 'postgres_changes').length == {number + 1}")
            if number in (1, 3):
                await network.close()
                busy.execute(f"insert into t values ({number + 100})")
                await say(http, "talk", "n", {"n": number + 100})
                await network.open()
                await page.until(f"got.filter(one => one[0] == 'connected').length == {(number + 3) // 2}")
                await page.until(f"got.filter(one => one[0] == 'n').some(one => one[1].payload.n == {number + 100})")
                await page.run(f"got = got.filter(one => !(one[0] == 'n' && one[1].payload.n == {number + 100}))")
                await page.until(f"got.some(one => one[1].payload.data?.record.id == {number + 100})")
                await page.run(f"got = got.filter(one => one[1].payload.data?.record.id != {number + 100})")
        assert await page.run("got.filter(one => one[0] == 'connected').slice(1).every(one => one[1].payload.resumed)")
        assert await page.run("got.filter(one => one[0] == 'n').map(one => one[1].payload.n)") == list(range(6))
        ids = "got.filter(one => one[0] == 'postgres_changes').map(one => one[1].payload.data.record.id)"
        assert await page.run(ids) == list(range(6))
    await page.close()


async def test_a_browser_that_is_refused_does_not_come_back(hub, browser, name):
    page = await browser.page(f"http://127.0.0.1:{hub.port}/")
    url = f"http://127.0.0.1:{hub.port}/api/sse{query([channel(name, private=True)], apikey=token('anon'))}"
    await page.run(EVENTS % json.dumps(url))
    await page.until("states.length > 0 && states.at(-1) == EventSource.CLOSED")
    await page.close()


async def test_an_answer_that_began_while_postgres_was_away_ends_when_it_is_back():
    """Nobody else would tell its reader, who reads the other channel, that there are rows again."""
    cluster = Cluster().start()
    hub = Hub(cluster.create_database("own"))
    try:
        hub.run("migrate")
        with cluster.connect("own") as sql:
            sql.execute("create table t (id int primary key); grant select on t to anon")
        hub.watch("t")
        hub.start()
        rows = channel("rows", postgres_changes=[{"event": "*", "schema": "public", "table": "t"}])
        cluster.stop()
        await eventually(lambda: asyncio.to_thread(lambda: hub.metric("roost_feed_up") == 0), what="the feed to be down")
        async with await Subscription.to(hub.port, channel("talk"), rows) as events:
            assert events.status == 200, events.first
            assert events.channels["rows"]["code"] == 503 and events.channels["talk"]["status"] == "ok"
            cluster.start(roles=False)
            while await events.message(within=60) is not None:
                pass
        async with await Subscription.to(hub.port, channel("talk"), rows) as events:
            assert events.channels["rows"]["status"] == "ok", events.first
            with cluster.connect("own") as sql:
                sql.execute("insert into t values (1)")
            while (message := await events.message(within=30)).name != "postgres_changes":
                pass
            assert message.payload["data"]["record"] == {"id": 1}
    finally:
        hub.remove()
        cluster.remove()
