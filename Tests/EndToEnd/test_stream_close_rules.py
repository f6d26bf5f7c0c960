"""`streams.on_close` as a list: each kind of stream and each kind of end has a statement of its own."""

import asyncio
import json
import os
import random

import pytest

from support.deadline import eventually
from support.http import HTTPConnection
from support.redis import Redis
from support.streams import Stream, bearer, stamp
from test_cluster import Hubs
from test_stream_hubs import wait_until_shared

pytestmark = pytest.mark.anyio

SCHEMA = """
    create table reply (id serial primary key, conversation int not null, body text check (body <> 'forbidden'), status text);
    create table voice (id serial primary key, name text not null, sound bytea);
    create table stopped (id serial primary key, name text not null, body text, status text, role text default current_user,
        claims json default current_setting('request.jwt.claims')::json);
    grant select, insert on reply, voice, stopped to authenticated, service_role;
    grant usage on all sequences in schema public to authenticated, service_role;
    create policy everyone on realtime.messages to authenticated using (true) with check (true);
"""

#: The cast of a reply's name fails for all other streams, and that of a voice's content for texts with a backslash.
RULES = [
    {"stream": "reply/*", "statement": """
        insert into reply (conversation, body, status) values (split_part($1, '/', 2)::int, $2, $3) returning id, body"""},
    {"stream": "voice/*", "statement": "insert into voice (name, sound) values ($1, $2::bytea) returning id"},
    {"stream": "reply/*", "when": "cancelled",
     "statement": "insert into stopped (name, body, status) values ($1, $2, $3) returning id, body, status"},
    {"stream": "*", "when": ["aborted"], "role": "service_role",
     "statement": "insert into stopped (name, body, status) values ($1, $2, $3) returning id"},
]


@pytest.fixture
def committing(own_hub, cluster):
    """A hub whose streams become rows, each kind in a table of its own, and a connection to its database."""
    own_hub.environment["ROOST_STREAMS_ON_CLOSE"] = json.dumps(RULES)
    with cluster.connect(own_hub.database) as sql:
        sql.execute(SCHEMA)
        yield sql


@pytest.fixture
async def http(own_hub, committing):
    own_hub.start()
    async with await HTTPConnection.open(own_hub.port) as connection:
        yield connection


def rows(sql, query):
    return sql.execute(query).fetchall()


async def ended(stream):
    """How a stream has ended; None while it has not."""
    head = await stream.head()
    return head.headers.get("stream-status") if "stream-closed" in head.headers else None


async def test_two_kinds_each_with_its_row(http, committing):
    reply, voice, other = Stream(http, "reply/7"), Stream(http, "voice/d1"), Stream(http, "notes/1")
    await reply.create()
    await voice.create("audio/mpeg")
    await other.create()
    assert (await reply.append(b"Hello", stream_closed="true")).status == 204
    assert (await voice.append(b"\x00\xff\x01", "audio/mpeg", stream_closed="true")).status == 204
    assert (await other.append(b"x", stream_closed="true")).status == 204
    assert rows(committing, "select conversation, body, status from reply") == [(7, "Hello", "complete")]
    assert rows(committing, "select name, sound from voice") == [("voice/d1", b"\x00\xff\x01")]
    assert rows(committing, "select * from stopped") == []


async def test_a_failing_statement_is_named_and_is_its_own_kinds(http, committing):
    wrong, right, voice = Stream(http, "reply/seven"), Stream(http, "reply/8"), Stream(http, "voice/d2")
    for stream in wrong, right, voice:
        await stream.create()
        await stream.append(b"Hello")
    refused = await wrong.close()
    assert refused.status == 422, refused.body
    assert 'on_close failed: reply/*: invalid input syntax for type integer: "seven"' in refused.json["error"]
    assert (await right.close()).status == 204 and (await voice.close()).status == 204
    assert await ended(wrong) is None and await ended(right) == await ended(voice) == "complete"
    assert (await wrong.append(b", and more")).status == 204


async def test_a_cancel_has_its_row_with_the_rights_of_whoever_cancels(own_hub, http, committing):
    stream = Stream(http, "reply/9")
    await stream.create()
    await stream.append(b"so far")
    reader = Stream(http, stream.name, **bearer("authenticated", sub="ann"))
    assert (await reader.cancel()).status == 200
    assert rows(committing, "select name, body, status, role, claims->>'sub' from stopped") == [
        ("reply/9", "so far", "cancelled", "authenticated", "ann")]
    assert (await stream.append(b"x")).headers["stream-cancelled"] == "true"
    # Again is no second row.
    assert (await reader.cancel()).status == 200 and len(rows(committing, "select from stopped")) == 1
    assert rows(committing, "select from reply") == []


async def test_a_cancel_without_the_right_to_its_row_leaves_the_stream_open(http, committing):
    committing.execute("revoke insert on stopped from authenticated")
    stream = Stream(http, "reply/10")
    await stream.create()
    refused = await Stream(http, stream.name, **bearer("authenticated", sub="ann")).cancel()
    assert refused.status == 422 and "reply/*: permission denied for table stopped" in refused.body.decode()
    assert await ended(stream) is None and (await stream.append(b"more")).status == 204


async def test_a_producer_that_is_gone_leaves_a_row_by_the_entrys_role(own_hub, committing):
    own_hub.environment |= {"ROOST_STREAMS_STALLED_AFTER": "1", "ROOST_STREAMS_ABORTED_AFTER": "1"}
    own_hub.start()
    async with await HTTPConnection.open(own_hub.port) as http:
        stream = Stream(http, "reply/11")
        await stream.create()
        await stream.append(b"so far", **stamp(0))

        async def is_aborted():
            return await ended(stream) == "aborted"
        await eventually(is_aborted, what="the end", every=0.1)
        assert rows(committing, "select name, body, status, role, claims->>'role', claims->>'sub' from stopped") == [
            ("reply/11", "so far", "aborted", "service_role", "service_role", None)]
        # Its producer is of the past.
        assert (await stream.append(b"x", **stamp(1))).status == 403


async def test_what_cannot_be_closed_is_not_kept_for_ever(own_hub, committing):
    own_hub.environment |= {"ROOST_STREAMS_CLOSE_WITHIN": "1"}
    own_hub.start()
    async with await HTTPConnection.open(own_hub.port) as http:
        stream = Stream(http, "reply/seven")
        await stream.create()
        await stream.append(b"so far")
        assert (await stream.close()).status == 422

        async def is_over():
            return await ended(stream) == "aborted"
        await eventually(is_over, what="the end", every=0.1)
        own_hub.wait_until_logged("The stream reply/seven has ended (aborted) without its row of streams.on_close: reply/*: invalid")
        await own_hub.settled()
        assert own_hub.metric("roost_streams_unclosed_total") == 1
        assert (await stream.read("?offset=-1")).body == b"so far", "its content can still be looked at"
    assert rows(committing, "select from reply") == rows(committing, "select from stopped") == []


async def test_statements_are_compared_with_the_database_at_the_start(own_hub, committing):
    committing.execute("drop table voice")
    own_hub.start()
    own_hub.wait_until_logged("streams.on_close for voice/* does not fit the database, so these ends of streams are refused: "
                              'relation "voice" does not exist')
    assert "streams.on_close for reply/*" not in own_hub.log


def test_entries_that_are_none_stop_the_start(own_hub):
    for entry, said in [
        ({"stream": "*", "statement": "select $1", "when": "aborted"}, "name the role"),
        ({"stream": "*", "statement": "select $1", "when": "over"}, "the word over in when"),
        ({"statement": "select $1"}, "entry 1 has no stream"),
    ]:
        settings = {"ROOST_STREAMS_ON_CLOSE": json.dumps([entry])}
        failed = own_hub.run("serve", check=False, **settings)
        assert failed.returncode == 78 and said in failed.stderr, failed.stderr
        report = json.loads(own_hub.run("doctor", "--json", check=False, **settings).stdout)
        assert [one["severity"] for one in report["findings"] if said in one["message"]] == ["error"]


DAWDLE = """
    create function dawdle() returns trigger language plpgsql as $$ begin perform pg_sleep(random() * 0.04); return new; end $$;
    create trigger dawdle before insert on reply for each row execute function dawdle();
    create trigger dawdle before insert on voice for each row execute function dawdle();
    create trigger dawdle before insert on stopped for each row execute function dawdle();
"""

#: Where each kind of end leaves its row: of replies that are closed, of voices, and of replies that are cancelled.
KINDS = {
    "reply": "select body from reply where conversation = {number}",
    "voice": "select convert_from(sound, 'utf8') from voice where name = 'voice/{number}'",
    "stop": "select body from stopped where name = 'reply/{number}'",
}


def kept(sql, number):
    """The rows of all kinds that a stream has."""
    return {kind: [body for body, in rows(sql, query.format(number=number))] for kind, query in KINDS.items()}


def stream_of(http, kind, number):
    return Stream(http, f"{'voice' if kind == 'voice' else 'reply'}/{number}")


async def begin(stream, kind):
    content_type = "audio/mpeg" if kind == "voice" else "text/plain"
    await stream.create(content_type)
    await stream.append(b"one ", content_type, **stamp(0))


async def end(stream, kind, **options):
    if kind == "stop":
        return await stream.cancel()
    content_type = "audio/mpeg" if kind == "voice" else "text/plain"
    return await stream.append(b"two", content_type, stream_closed="true", **stamp(1), **options)


async def end_again(sql, stream, kind, number):
    """As after a network error: the same request, until it is answered. There are as many rows as ends, and none of another kind."""
    async def is_settled():
        answer = await end(stream, kind)
        assert answer.status in (200, 204, 422, 503), answer
        return answer.status in (200, 204)
    await eventually(is_settled, 40, what="the end", every=0.1)
    content = "one " if kind == "stop" else "one two"
    assert (await stream.read("?offset=-1")).body == content.encode()
    assert await ended(stream) == ("cancelled" if kind == "stop" else "complete")
    assert kept(sql, number) == {one: [content] if one == kind else [] for one in KINDS}


KILLS = int(os.environ.get("ROOST_STREAM_ROW_KILLS", 20))


async def test_kills_among_kinds_that_end_at_once(own_hub, committing):
    """Of each kind and each end: whenever the hub is killed, row and end are both there or both are not, and to end the stream again
    makes no second row, and none of another kind."""
    chance = random.Random(7)
    committing.execute(DAWDLE)
    own_hub.start()
    before_restart = dict.fromkeys(KINDS, 0)
    for kill in range(KILLS):
        # Three at once, one of each kind, whose ends are in all stages when the hub is killed.
        numbers = {kind: 10 * kill + place for place, kind in enumerate(KINDS)}
        ways = [await HTTPConnection.open(own_hub.port) for _ in KINDS]
        streams = {kind: stream_of(way, kind, number) for way, (kind, number) in zip(ways, numbers.items())}
        for kind, stream in streams.items():
            await begin(stream, kind)
        tasks = [asyncio.create_task(end(stream, kind)) for kind, stream in streams.items()]
        await asyncio.sleep(chance.uniform(0, 0.12))
        own_hub.kill()
        answers = dict(zip(KINDS, await asyncio.gather(*tasks, return_exceptions=True)))
        for way in ways:
            way.writer.close()
        own_hub.start()
        async with await HTTPConnection.open(own_hub.port) as http:
            for kind, number in numbers.items():
                was_there = len(kept(committing, number)[kind])
                if not isinstance(answers[kind], BaseException):
                    assert was_there == 1, f"kill {kill}: {kind} was answered {answers[kind]}"
                await end_again(committing, stream_of(http, kind, number), kind, number)
                before_restart[kind] += was_there
    print(f"of {KILLS} each, committed before the restart: {before_restart}")


async def test_a_hub_that_dies_over_ends_of_all_kinds_leaves_each_to_another_once(cluster):
    count = 24
    chance = random.Random(11)
    with Redis() as redis:
        hubs = Hubs(cluster.create_database("endings"), redis, count=2, ROOST_STREAMS_ON_CLOSE=json.dumps(RULES))
        try:
            with cluster.connect("endings") as sql:
                hubs.start()
                sql.execute(SCHEMA + DAWDLE)
                wait_until_shared(hubs.all)
                kinds = [list(KINDS)[number % 3] for number in range(count)]
                ways = [await HTTPConnection.open(hubs.all[0].port) for _ in kinds]
                for number, (way, kind) in enumerate(zip(ways, kinds)):
                    await begin(stream_of(way, kind, number), kind)
                is_dying = asyncio.Event()

                async def end_here(number, way, kind):
                    if number < count * 3 // 4:
                        await asyncio.sleep(chance.uniform(0, 0.5))
                    else:
                        # However busy the machine is, some are never begun there.
                        await is_dying.wait()
                    return await end(stream_of(way, kind, number), kind)

                tasks = [asyncio.create_task(end_here(number, way, kind)) for number, (way, kind) in enumerate(zip(ways, kinds))]
                await eventually(lambda: sum(task.done() for task in tasks) > count // 4, what="ends are under way")
                is_dying.set()
                hubs.all[0].kill()
                answers = await asyncio.gather(*tasks, return_exceptions=True)
                there = [len(kept(sql, number)[kind]) for number, kind in enumerate(kinds)]
                for answer, rows_there in zip(answers, there):
                    assert isinstance(answer, BaseException) or answer.status >= 300 or rows_there == 1
                assert 0 < sum(there) < count, "the kill came in the middle"

                async def finish(number, kind):
                    async with await HTTPConnection.open(hubs.all[1].port) as way:
                        await end_again(sql, stream_of(way, kind, number), kind, number)
                await asyncio.gather(*[finish(number, kind) for number, kind in enumerate(kinds)])
                assert len(rows(sql, "select from stopped")) == kinds.count("stop"), "nothing is aborted"
        finally:
            hubs.remove()
