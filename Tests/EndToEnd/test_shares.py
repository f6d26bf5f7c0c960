"""What one user may take of everybody's room."""

import asyncio
import contextlib
import signal
import itertools
import statistics
import time

import pytest

from support.bounds import promptly
from support.deadline import eventually
from support.events import EventReader
from support.freezing import freeze
from support.greedy import Greedy
from support.http import HTTPConnection
from support.metrics import came_to, scrape
from support.streams import Stream, Upload, bearer, offset
from support.tokens import token
from support.wsclient import Client

pytestmark = pytest.mark.anyio

OWN = """
    create policy own on realtime.messages for insert to authenticated
        with check (starts_with(realtime.topic(), 'stream:' || (current_setting('request.jwt.claims')::json->>'sub') || '/'));
    create policy guests on realtime.messages for insert to anon with check (starts_with(realtime.topic(), 'stream:guests/'));
"""


@pytest.fixture
def small(own_hub, cluster):
    """A hub on which one user may have three streams, and there may be twelve."""
    own_hub.environment |= {"ROOST_STREAMS_COUNT_PER_USER": "3", "ROOST_STREAMS_COUNT": "12"}
    with cluster.connect(own_hub.database) as sql:
        sql.execute(OWN)
    return own_hub.start()


async def made(http, name, who, **headers):
    return (await Stream(http, name, **who).create(**headers)).status


async def test_one_users_streams_take_nothing_from_others(small):
    ann, bob = bearer("authenticated", sub="ann"), bearer("authenticated", sub="bob")
    guest = bearer("anon")
    ended = {"stream_closed": "true"}
    async with await HTTPConnection.open(small.port) as http:
        assert await made(http, "bob/1", bob, **ended) == 201
        assert await made(http, "reply/1", bearer(), **ended) == 201
        for number in range(30):
            assert await made(http, f"ann/{number}", ann, **ended) == 201
        for number in range(3):
            assert await made(http, f"ann/open/{number}", ann) == 201
        refused = await Stream(http, "ann/more", **ann).create()
        assert refused.status == 429 and b"streams.count_per_user" in refused.body and refused.headers["retry-after"]
        for stream in "bob/1", "reply/1":
            assert (await Stream(http, stream).head()).status == 200
        # Whose token names nobody counts with all of that role.
        for number in range(3):
            assert await made(http, f"guests/{number}", guest) == 201
        assert await made(http, "guests/3", bearer("anon", device="another")) == 429
        # A backend has no such bound, and finds room.
        for number in range(2, 6):
            assert await made(http, f"reply/{number}", bearer()) == 201
        assert await made(http, "bob/2", bob) == 201
        await came_to(small, **{'roost_stream_refused_total{reason="share"}': 2})


async def test_tickets_of_one_user(own_hub):
    own_hub.start()
    ann, bob = bearer("authenticated", sub="ann"), bearer("authenticated", sub="bob")
    async with await HTTPConnection.open(own_hub.port) as http:
        async def ticket(who):
            return await http.request("POST", "/api/sse/ticket", b"", **who)
        for _ in range(100):
            answer = await ticket(ann)
            assert answer.status == 200
        refused = await ticket(ann)
        assert refused.status == 429 and refused.headers["retry-after"]
        assert (await ticket(bob)).status == 200
        # A ticket that is used makes room for another.
        async with await EventReader.open(own_hub.port, f"/api/sse?channel=a&ticket={answer.json['ticket']}") as events:
            assert events.status == 200
            assert (await ticket(ann)).status == 200
            assert (await ticket(ann)).status == 429


@pytest.fixture
def held(own_hub, cluster):
    """A hub on which one user may have three requests open, and may write and read what is his."""
    own_hub.environment["ROOST_LIMITS_REQUESTS_PER_USER"] = "3"
    with cluster.connect(own_hub.database) as sql:
        sql.execute(OWN + "create policy readers on realtime.messages for select to authenticated using (true);")
    return own_hub.start()


async def test_requests_of_one_user_that_stay_open(held):
    ann, bob = bearer("authenticated", sub="ann"), bearer("authenticated", sub="bob")
    async with contextlib.AsyncExitStack() as open_, await HTTPConnection.open(held.port) as http:
        async def connection():
            return await open_.enter_async_context(await HTTPConnection.open(held.port))
        stream = Stream(http, "ann/1", **ann)
        assert (await stream.create()).status == 201
        upload = Upload(await connection(), stream, **ann)
        upload.write(b"a")
        assert (await stream.read(f"?offset={offset(0)}&live=long-poll")).body == b"a"
        events = await EventReader.open(held.port, "/api/sse?channel=a", **ann)

        async def statuses(who):
            """What one more of each is answered."""
            long_poll = await Stream(http, "ann/1", **who).read("?offset=now&live=long-poll", within=40)
            async with await EventReader.open(held.port, "/api/sse?channel=a", **who) as more:
                of_events = more.status
            async with await EventReader.open(held.port, "/streams/ann/1?offset=-1&live=sse", **who) as more:
                return long_poll.status, of_events, more.status
        await came_to(held, roost_event_subscriptions=1)
        poll = asyncio.create_task(Stream(await connection(), "ann/1", **ann).read("?offset=now&live=long-poll", within=30))
        await came_to(held, **{'roost_stream_watchers{transport="long_poll"}': 1})
        assert await statuses(ann) == (429, 429, 429)
        another = Upload(await connection(), stream, **ann)
        assert (await another.answer()).status == 429
        async with await EventReader.open(held.port, "/api/sse?channel=a", **bob) as more:
            assert more.status == 200
        async with await EventReader.open(held.port, "/api/sse?channel=a", authorization=f"Bearer {token('anon')}") as more:
            assert more.status == 200
        # Each that ends makes room.
        events.close()
        upload.end()
        assert (await upload.answer()).status == 204
        await came_to(held, roost_event_subscriptions=0)
        again = Upload(await connection(), stream, **ann)
        again.write(b"b")
        assert (await poll).status == 200
        async with await EventReader.open(held.port, "/api/sse?channel=a", **ann) as more:
            assert more.status == 200
        assert scrape(held)['roost_refused_total{limit="requests_per_user"}'] == 4


@pytest.fixture
def slow(own_hub, cluster):
    """A hub on which one user may have one request open, and whose policies think about who reads for as long as somebody holds a lock."""
    own_hub.environment |= {"ROOST_LOOPS": "1", "ROOST_LIMITS_REQUESTS_PER_USER": "1"}
    with cluster.connect(own_hub.database) as sql:
        sql.execute(OWN + """
            create policy slow on realtime.messages for select to authenticated
                using (pg_advisory_xact_lock_shared(77) is not null);""")
    return own_hub.start()


async def test_readers_who_hang_up_before_the_policies_answer_take_nothing(slow, cluster):
    ann = bearer("authenticated", sub="ann")
    thinking = "select count(*) from pg_locks where locktype = 'advisory' and objid = 77 and not granted"
    with cluster.connect(slow.database) as sql:
        async with await HTTPConnection.open(slow.port) as http:
            stream = Stream(http, "ann/1", **ann)
            assert (await stream.create()).status == 201
            fields = "".join(f"{name}: {value}\r\n" for name, value in ann.items())
            # More in all than what may wait of one user. A body that nobody needs is a body.
            for _ in range(6):
                sql.execute("select pg_advisory_lock(77)")
                async with await HTTPConnection.open(slow.port) as gone:
                    gone.write(f"GET {stream.path}?offset=now&live=long-poll HTTP/1.1\r\nhost: a\r\n{fields}"
                               f"content-length: 1000000\r\n\r\n".encode() + b"x" * 1_000_000)
                    await eventually(lambda: sql.execute(thinking).fetchone()[0] > 0, what="policies that think")
                # The hub hears of the end before their answer, if it is quick enough.
                await asyncio.sleep(0.5)
                sql.execute("select pg_advisory_unlock(77)")
                await eventually(lambda: sql.execute(thinking).fetchone()[0] == 0)
            answer = await http.request("GET", stream.path + "?offset=-1", b"x" * 1_000_000, **ann)
            assert answer.status == 200
            # Their ends may be on their way yet, behind bodies of a megabyte.
            await came_to(slow, **{'roost_stream_watchers{transport="long_poll"}': 0})
            poll = asyncio.create_task(stream.read("?offset=now&live=long-poll", within=30))
            await came_to(slow, **{'roost_stream_watchers{transport="long_poll"}': 1})
            async with await HTTPConnection.open(slow.port) as other:
                assert (await Stream(other, "ann/1", **ann).append(b"a")).status == 204
            assert (await poll).status == 200


@pytest.fixture
def thoughtful(own_hub, cluster):
    """A hub whose policies think for a second and a half about who writes."""
    own_hub.environment["ROOST_LOOPS"] = "1"
    with cluster.connect(own_hub.database) as sql:
        sql.execute("""
            create policy slow on realtime.messages for insert to authenticated with check (pg_sleep(1.5) is not null)""")
    return own_hub.start()


#: No right to a stream is known yet.
_new = itertools.count()


async def without_room(hub, **bodies):
    """How many of each user's bodies of a megabyte, all sent at once, had no room to wait for the policies."""
    async def is_refused(user):
        async with await HTTPConnection.open(hub.port) as http:
            who = bearer("authenticated", sub=user)
            answer = await http.request(
                "POST", f"/streams/{user}/{next(_new)}", b"x" * 1_000_000, within=60, content_type="text/plain", **who)
            return answer.status == 503 and b"wait for the policies" in answer.body
    refused = await asyncio.gather(*(
        asyncio.gather(*(is_refused(user) for _ in range(count))) for user, count in bodies.items()))
    return {user: sum(of_user) for user, of_user in zip(bodies, refused)}


async def test_bodies_of_one_user_that_wait_for_the_policies(thoughtful):
    assert await without_room(thoughtful, ann=4) == {"ann": 0}

    async def is_bounded():
        refused = await without_room(thoughtful, ann=6, bob=1)
        assert refused["bob"] == 0 and refused["ann"] <= 2, refused
        return refused["ann"] == 2
    # Where the machine is busy, some come when others have been decided.
    await eventually(is_bounded, 60, "a quarter of the room for one user")
    assert await without_room(thoughtful, ann=4) == {"ann": 0}, "what was decided made room"


async def test_bodies_of_all_that_wait_for_the_policies(thoughtful):
    users = {f"user{number}": 4 for number in range(4)}
    assert set((await without_room(thoughtful, **users)).values()) == {0}

    async def is_bounded():
        refused = sum((await without_room(thoughtful, another=4, **users)).values())
        assert refused <= 4, refused
        return refused == 4
    await eventually(is_bounded, 60, "a bound for all")
    assert set((await without_room(thoughtful, **users)).values()) == {0}


@pytest.fixture
def filled(own_hub, cluster):
    """A hub on which one user has soon all that one may have; its table."""
    own_hub.environment |= {
        "ROOST_LOOPS": "1", "ROOST_STREAMS_COUNT_PER_USER": "50", "ROOST_STREAMS_BYTES_PER_USER": "2000000",
        "ROOST_LIMITS_REQUESTS_PER_USER": "20", "ROOST_LIMITS_CONNECTIONS_PER_USER": "20", "ROOST_FEED_SESSIONS_PER_USER": "20"}
    with cluster.connect(own_hub.database) as sql:
        sql.execute(OWN + """
            create policy readers on realtime.messages for select to authenticated using (true);
            create table note (id int8 primary key);
            grant select on note to authenticated;""")
    own_hub.start()
    own_hub.watch("public.note")
    return own_hub


class Worker:
    """Somebody who works: he is told what he says, over and over."""

    def __init__(self, hub):
        self.hub, self.topic, self.count = hub, "realtime:bobs", 0

    async def __aenter__(self):
        self.client = await Client.connect(self.hub.port, apikey=token(sub="bob"))
        await self.client.join(self.topic, config={"broadcast": {"self": True}})
        return self

    async def __aexit__(self, *_):
        await self.client.close()

    async def p99(self, times):
        """Of so many broadcasts."""
        took = []
        with promptly():
            for _ in range(times):
                before = time.monotonic()
                self.client.push(self.topic, "broadcast", {"event": "n", "payload": {"n": self.count}})
                message = await self.client.next("broadcast")
                assert message.payload["payload"] == {"n": self.count}, "in order, and none is lost"
                self.count += 1
                took.append(message.at - before)
                await asyncio.sleep(0.005)
                if self.count % 20 == 0:
                    self.client.push("phoenix", "heartbeat", {})
                    self.client.messages.clear()
        return sorted(took)[times * 99 // 100]


ROUNDS = 5


async def compared(worker, greedy, hub):
    """The medians of his p99 while the greedy one rests and while he knocks, in rounds that take turns: what the machine does
    otherwise, it does to both."""
    calm, storm = [], []
    for _ in range(ROUNDS):
        with greedy.resting():
            calm.append(await worker.p99(400))
        before = refusals(hub)
        storm.append(await worker.p99(400))
        assert refusals(hub) > before, "he was refused nothing meanwhile"
    print("\np99 of a broadcast in ms, round by round:", *(f"{a * 1000:.2f} {b * 1000:.2f}," for a, b in zip(calm, storm)))
    calm, storm = statistics.median(calm), statistics.median(storm)
    print(f"medians: {calm * 1000:.2f} ms, and {storm * 1000:.2f} ms beside who takes all that he gets")
    return calm, storm


def refusals(hub):
    return sum(value for name, value in scrape(hub).items() if "refused" in name)


@pytest.mark.clock
async def test_who_has_all_that_he_may_have_takes_nothing_from_others(filled, cluster):
    changes = [{"event": "*", "schema": "public", "table": "note"}]
    bob = bearer("authenticated", sub="bob")
    with cluster.connect(filled.database) as sql:
        async with Worker(filled) as worker, await HTTPConnection.open(filled.port) as http:
            reply, own = Stream(http, "reply/1"), Stream(http, "bob/1", **bob)
            await reply.create(body=b"all of it", stream_closed="true")
            await own.create(body=b"mine", stream_closed="true")
            away = await Client.connect(filled.port, apikey=token(sub="bob"))
            await away.watch("realtime:notes", *changes)
            await away.close()
            async with Greedy(filled, "note") as greedy:
                sql.execute("insert into note select generate_series(1, 50)")
                calm, storm = await compared(worker, greedy, filled)
                assert scrape(filled)["roost_sessions_given_way_total"] > 0
                # Bob still has all: his streams, a ticket, an event stream, and what he missed.
                assert (await reply.read("?offset=-1")).body == b"all of it" and (await own.read("?offset=-1")).body == b"mine"
                assert (await Stream(http, "bob/2", **bob).create()).status == 201
                assert (await Stream(http, "reply/2").create()).status == 201
                assert (await http.request("POST", "/api/sse/ticket", b"", **bob)).status == 200
                async with await EventReader.open(filled.port, "/api/sse?channel=a", **bob) as events:
                    assert events.status == 200
                async with await Client.connect(filled.port, apikey=token(sub="bob")) as back:
                    await back.watch("realtime:notes", *changes)
                    missed = set()
                    while len(missed) < 50:
                        message = await back.next("postgres_changes")
                        missed.add(message.payload["data"]["record"]["id"])
                    assert missed == set(range(1, 51))
    # To be no more than twice: the threat model has the figures. This is what holds on two cores until then.
    assert storm <= max(2 * calm, 0.005)


async def test_a_message_waits_for_no_burst_of_requests(own_hub):
    """What one loop finds at once: 200 requests that came first, and a message."""
    own_hub.environment["ROOST_LOOPS"] = "1"
    own_hub.start()
    async with await Client.connect(own_hub.port) as client, contextlib.AsyncExitStack() as stack:
        await client.join("realtime:chat", config={"broadcast": {"self": True}})
        requests = [await stack.enter_async_context(await HTTPConnection.open(own_hub.port)) for _ in range(200)]
        headers = {"authorization": "Bearer " + token(), "content_type": "application/json"}
        for http in requests:
            assert (await http.request("POST", "/api/broadcast/other/events/e", b"{}", **headers)).status == 202
        freeze(own_hub.process.pid)
        try:
            answers = [asyncio.create_task(http.request("POST", "/api/broadcast/chat/events/request", b"{}", **headers))
                       for http in requests]
            # Each has written its own before it first waits.
            await asyncio.sleep(0)
            client.push("realtime:chat", "broadcast", {"event": "message", "payload": {}})
            await client.socket.writer.drain()
        finally:
            own_hub.process.send_signal(signal.SIGCONT)
        assert {answer.status for answer in await asyncio.gather(*answers)} == {202}
        events = [(await client.next("broadcast")).payload["event"] for _ in range(201)]
        assert events.index("message") <= 20, "only those wait before it that are read in the same turn"
