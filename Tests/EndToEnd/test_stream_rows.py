"""`streams.on_close`: a stream's end and a row of the application are committed together, or neither is."""

import asyncio
import json
import os
import random

import pytest

from support.deadline import eventually
from support.events import EventReader
from support.http import HTTPConnection
from support.streams import Stream, bearer, offset, stamp
from support.wsclient import Client
from support.tokens import token

pytestmark = pytest.mark.anyio

STATEMENT = """
    insert into reply (name, body, status, began, ended)
    values ($1, $2, $3, $4, $5) returning id, name, body"""

SCHEMA = """
    create table reply (id serial primary key, name text not null unique, body text check (body <> 'forbidden'),
        status text, began timestamptz, ended timestamptz, author text default current_setting('request.jwt.claims')::json->>'sub',
        role text default current_user);
    grant select, insert on reply to authenticated, service_role;
    grant usage on sequence reply_id_seq to authenticated, service_role;
    alter table reply enable row level security;
    create policy own on reply for insert to authenticated
        with check (current_setting('request.jwt.claims')::json->>'sub' = split_part(name, '/', 1));
    create policy shown on reply for select to authenticated using (true);
    create policy service on reply to service_role using (true) with check (true);
"""


@pytest.fixture
def committing(own_hub, cluster):
    """A hub whose streams become rows, and a connection to its database."""
    own_hub.environment["ROOST_STREAMS_ON_CLOSE"] = STATEMENT
    with cluster.connect(own_hub.database) as sql:
        sql.execute(SCHEMA)
        own_hub.start()
        yield sql


def rows(sql, columns="name, body"):
    return sql.execute(f"select {columns} from reply order by id").fetchall()


async def test_the_end_names_the_row(own_hub, committing):
    async with await HTTPConnection.open(own_hub.port) as http:
        stream = Stream(http, "reply/1")
        await stream.create()
        async with await EventReader.open(
                own_hub.port, f"{stream.path}?offset={offset(0)}&live=sse", **bearer()) as events:
            await stream.append(b"Hello")
            assert rows(committing) == []
            answer = await stream.append(", Grüße".encode(), stream_closed="true")
            assert answer.status == 204 and answer.headers["stream-closed"] == "true"
            assert rows(committing, "name, body, status, role, ended >= began") == [
                ("reply/1", "Hello, Grüße", "complete", "service_role", True)]
            control = {}
            while not control.get("streamClosed"):
                event = await events.next()
                control = json.loads(event.data) if event.name == "control" else {}
            assert control["row"]["body"] == "Hello, Grüße" and control["row"]["id"] == 1
        # A repeated close is no second row.
        assert (await stream.close()).status == 204
        assert len(rows(committing)) == 1


async def test_members_of_the_channel_are_told_of_the_row(own_hub, committing):
    async with await HTTPConnection.open(own_hub.port) as http:
        stream = Stream(http, "reply/2")
        await stream.create("application/json")
        client = await Client.connect(own_hub.port, 2, apikey=token("service_role"))
        await client.join("realtime:stream:reply/2", config={"private": True})
        await stream.append(b'[{"n": 1}, {"n": 2}]', "application/json")
        await stream.close()
        end = await client.next("broadcast", where=lambda message: b"complete" in bytes(message.payload.payload))
        assert json.loads(json.loads(bytes(end.payload.payload))["row"]["body"]) == [{"n": 1}, {"n": 2}]
        await client.close()


async def test_a_statement_that_fails_leaves_the_stream_open(own_hub, committing):
    async with await HTTPConnection.open(own_hub.port) as http:
        stream = Stream(http, "reply/3")
        await stream.create()
        producer = stamp(0)
        refused = await stream.append(b"forbidden", stream_closed="true", **producer)
        assert refused.status == 422 and "reply_body_check" in refused.body.decode()
        assert rows(committing) == []
        head = await http.request("HEAD", stream.path, None, **bearer())
        assert "stream-closed" not in head.headers and head.headers["stream-next-offset"] == offset(0)
        # Nothing of it was kept, so that the same number is taken again.
        again = await stream.append(b"allowed", stream_closed="true", **producer)
        assert again.status in (200, 204) and rows(committing) == [("reply/3", "allowed")]


async def test_the_row_is_written_with_the_rights_of_whoever_closes(own_hub, committing, cluster):
    committing.execute("""
        create policy everyone on realtime.messages for insert to authenticated with check (true);
        create policy readers on realtime.messages for select to authenticated using (true);""")
    async with await HTTPConnection.open(own_hub.port) as http:
        async def close(name, who):
            stream = Stream(http, name, **bearer("authenticated", sub=who))
            await eventually(lambda: created(stream), what="the right")
            return await stream.append(b"x", stream_closed="true")

        async def created(stream):
            return (await stream.create()).status in (200, 201)
        assert (await close("ann/1", "ann")).status == 204
        refused = await close("ann/2", "bob")
        assert refused.status == 422 and "row-level security" in refused.body.decode()
    assert rows(committing, "name, author, role") == [("ann/1", "ann", "authenticated")]


async def test_bytes_and_texts_that_postgres_does_not_have(own_hub, committing):
    async with await HTTPConnection.open(own_hub.port) as http:
        stream = Stream(http, "reply/bytes")
        await stream.create("audio/ogg")
        await stream.append(b"\x00\xff", "audio/ogg", stream_closed="true")
        assert rows(committing) == [("reply/bytes", "\\x00ff")]
        stream = Stream(http, "reply/zero")
        await stream.create()
        refused = await stream.append(b"a\x00b", stream_closed="true")
        assert refused.status == 422 and "U+0000" in refused.body.decode()


async def test_others_wait_for_a_close_that_takes_long(own_hub, committing):
    committing.execute("""
        create function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(1); return new; end $$;
        create trigger slow before insert on reply for each row execute function slow();""")
    async with await HTTPConnection.open(own_hub.port) as one, await HTTPConnection.open(own_hub.port) as two:
        stream, other = Stream(one, "reply/slow"), Stream(two, "reply/slow")
        await stream.create()
        closing = asyncio.create_task(stream.append(b"last", stream_closed="true"))
        waits = "select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'"
        await eventually(lambda: closing.done() or committing.execute(waits).fetchone()[0], what="the row under way")
        assert (await other.append(b"late")).status == 409
        assert (await closing).status == 204
        # It is the row's, and not the cancel's.
        assert rows(committing) == [("reply/slow", "last")]


async def test_a_database_that_is_away(own_hub, committing, cluster):
    async with await HTTPConnection.open(own_hub.port) as http:
        stream = Stream(http, "reply/away")
        await stream.create()
        await stream.append(b"kept")
        committing.execute("""
            create function ends() returns trigger language plpgsql security definer as $$
                begin perform pg_terminate_backend(pg_backend_pid()); return new; end $$;
            create trigger ends before insert on reply for each row execute function ends();""")
        refused = await stream.append(b"!", stream_closed="true")
        assert refused.status == 503, refused.body
        committing.execute("drop trigger ends on reply")

        async def closed():
            return (await stream.append(b"!", stream_closed="true")).status == 204
        await eventually(closed, what="a close once the database is back", every=0.2)
    assert rows(committing) == [("reply/away", "kept!")]


KILLS = int(os.environ.get("ROOST_STREAM_ROW_KILLS", 12))


async def test_kills_in_the_middle_of_a_close(own_hub, committing):
    """Whenever the hub is killed, row and close are both there or both are not, and closing again makes no second row."""
    chance = random.Random(4)
    committing.execute("""
        create function dawdle() returns trigger language plpgsql as $$
            begin perform pg_sleep(random() * 0.03); return new; end $$;
        create trigger dawdle before insert on reply for each row execute function dawdle();""")
    committed = interrupted = 0
    for number in range(KILLS):
        name = f"reply/kill{number}"
        async with await HTTPConnection.open(own_hub.port) as http:
            stream = Stream(http, name)
            await stream.create()
            await stream.append(b"one ", **stamp(0))
            closing = asyncio.create_task(stream.append(b"two", stream_closed="true", **stamp(1)))
            await asyncio.sleep(chance.uniform(0, 0.06))
            own_hub.kill()
            was_answered = (await asyncio.gather(closing, return_exceptions=True))[0]
        own_hub.start()
        async with await HTTPConnection.open(own_hub.port) as http:
            stream = Stream(http, name)

            async def is_settled():
                # As its producer does after a network error: the same request again.
                answer = await stream.append(b"two", stream_closed="true", **stamp(1))
                assert answer.status in (200, 204, 422, 503), answer
                return answer.status in (200, 204)
            before = len([row for row in rows(committing) if row[0] == name])
            await eventually(is_settled, what="the close", every=0.1)
            assert (await stream.read("?offset=-1")).body == b"one two"
        found = [row for row in rows(committing) if row[0] == name]
        assert found == [(name, "one two")], f"kill {number}: {found}"
        if not isinstance(was_answered, BaseException):
            assert before == 1
        committed, interrupted = committed + before, interrupted + (1 - before)
    print(f"{committed} were committed before the restart, {interrupted} after it")
