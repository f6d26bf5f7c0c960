"""`streams.on_close` as a list: each kind of stream and each kind of end has a statement of its own."""

import asyncio
import json
import os
import random

import pytest

from support.deadline import eventually
from support.http import HTTPConnection
from support.streams import Stream, bearer, stamp

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
    assert 'reply/*: invalid input syntax for type integer: "seven"' in refused.body.decode()
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


KILLS = int(os.environ.get("ROOST_STREAM_ROW_KILLS", 20))


async def test_kills_among_kinds_that_end_at_once(own_hub, committing):
    """Of each kind and each end: whenever the hub is killed, row and end are both there or both are not, and to end the stream again
    makes no second row, and none of another kind."""
    chance = random.Random(7)
    committing.execute("""
        create function dawdle() returns trigger language plpgsql as $$
            begin perform pg_sleep(random() * 0.03); return new; end $$;
        create trigger dawdle before insert on reply for each row execute function dawdle();
        create trigger dawdle before insert on voice for each row execute function dawdle();
        create trigger dawdle before insert on stopped for each row execute function dawdle();""")
    own_hub.start()
    kinds = {
        "reply": "select body from reply where conversation = {number}",
        "voice": "select convert_from(sound, 'utf8') from voice where name = 'voice/{number}'",
        "stop": "select body from stopped where name = 'reply/{number}'",
    }
    before_restart = dict.fromkeys(kinds, 0)

    def found(number):
        return {kind: [body for body, in rows(committing, query.format(number=number))] for kind, query in kinds.items()}

    async def end(stream, kind):
        if kind == "stop":
            return await stream.cancel()
        return await stream.append(b"two", "audio/mpeg" if kind == "voice" else "text/plain", stream_closed="true", **stamp(1))

    for kill in range(KILLS):
        # Three at once, one of each kind, whose ends are in all stages when the hub is killed.
        ends = {kind: 10 * kill + place for place, kind in enumerate(kinds)}
        connections = [await HTTPConnection.open(own_hub.port) for _ in kinds]
        streams = {}
        for http, (kind, number) in zip(connections, ends.items()):
            stream = streams[kind] = Stream(http, f"{'voice' if kind == 'voice' else 'reply'}/{number}")
            content_type = "audio/mpeg" if kind == "voice" else "text/plain"
            await stream.create(content_type)
            await stream.append(b"one ", content_type, **stamp(0))
        tasks = [asyncio.create_task(end(stream, kind)) for kind, stream in streams.items()]
        await asyncio.sleep(chance.uniform(0, 0.09))
        own_hub.kill()
        answered = dict(zip(kinds, await asyncio.gather(*tasks, return_exceptions=True)))
        for connection in connections:
            connection.writer.close()
        own_hub.start()
        async with await HTTPConnection.open(own_hub.port) as http:
            for kind, number in ends.items():
                stream = Stream(http, streams[kind].name)
                was_there = len(found(number)[kind])
                if not isinstance(answered[kind], BaseException):
                    assert was_there == 1, f"kill {kill}: {kind} was answered {answered[kind]}"

                async def is_settled():
                    # As after a network error: the same request again.
                    answer = await end(stream, kind)
                    assert answer.status in (200, 204, 422, 503), answer
                    return answer.status in (200, 204)
                await eventually(is_settled, what="the end", every=0.1)
                content = "one " if kind == "stop" else "one two"
                assert (await stream.read("?offset=-1")).body == content.encode()
                assert await ended(stream) == ("cancelled" if kind == "stop" else "complete")
                # As many rows as ends, and none of another kind.
                assert found(number) == {one: [content] if one == kind else [] for one in kinds}, f"kill {kill}: {kind}"
                before_restart[kind] += was_there
    print(f"of {KILLS} each, committed before the restart: {before_restart}")
