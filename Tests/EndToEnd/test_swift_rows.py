"""RoostClient's lists of rows, on a real hub: each is what SELECT … ORDER BY … LIMIT shows as its user, whatever happens meanwhile."""

import asyncio
import base64
import json
import random

import pytest

from support.chat import A, ADA, install
from support.chat_server import ChatServer
from support.deadline import eventually
from support.proxy import Proxy
from support.tokens import token


@pytest.fixture
def table(own_hub, cluster):
    with cluster.connect(own_hub.database) as sql:
        sql.execute("create table t (id int primary key, room int not null, n int, body text)")
        own_hub.watch("t")
        own_hub.start()
        yield sql


def begin(probe, url, apikey=None):
    probe.do("client", url=url, tokens=[apikey or token(sub="someone")], backoff=0.1)


def newest(probe, name="list"):
    return next((line for line in reversed(probe.events) if line["event"] == "list" and line["name"] == name), None)


def selected(sql, limit=5, room=1, order="n desc, id desc"):
    return [f"{id} {body or ''}" for id, body in sql.execute(
        f"select id, body from t where room = %s order by {order} limit %s", [room, limit])]


async def is_right(probe, sql, limit=5, name="list"):
    """A live list that is what a SELECT shows. The hub may have yet to hear of what was committed last."""
    def is_it():
        seen = newest(probe, name)
        return seen and seen["live"] and seen["rows"] == selected(sql, limit)
    await eventually(is_it, what=lambda: f"{selected(sql, limit)} in {newest(probe, name)}")


def write(sql, chance, number):
    id = chance.randrange(30)
    if chance.random() < 0.3:
        sql.execute("delete from t where id = %s", [id])
    else:
        # The order changes with each write; n may be NULL, which is first in a descending order.
        sql.execute("insert into t values (%s, 1, %s, %s) on conflict (id) do update set n = excluded.n, body = excluded.body",
                    [id, chance.choice([None, *range(20)]), f"w{number}"])


async def test_a_list_is_what_a_select_shows_whatever_is_written(own_hub, table, probe):
    chance = random.Random(7)
    table.execute("insert into t select n, 1, n, 'row' from generate_series(0, 29) n; insert into t values (100, 2, 100, 'another room')")
    begin(probe, own_hub.url)
    probe.do("rows", channel="room", name="list", table="t", filter=1, order="n", limit=5)
    probe.do("subscribe", channel="room")
    await is_right(probe, table)
    assert newest(probe)["more"] is True
    for number in range(300):
        write(table, chance, number)
        if number % 50 == 0:
            await is_right(probe, table)
    await is_right(probe, table)
    # More is deleted than is held in reserve: the list is read again.
    table.execute("insert into t select n, 1, n, 'many' from generate_series(200, 299) n")
    await is_right(probe, table)
    table.execute("delete from t where id between 220 and 299")
    await is_right(probe, table)
    assert probe.all("failed") == []


async def test_a_list_that_is_opened_later_and_a_slow_reader(own_hub, table, probe):
    table.execute("insert into t select n, 1, n, 'row' from generate_series(0, 29) n")
    begin(probe, own_hub.url)
    probe.do("changes", channel="room", table="t", name="changes")
    probe.do("subscribe", channel="room")
    await probe.see("subscribed")
    probe.do("rows", channel="room", name="list", table="t", filter=1, order="n", limit=5, pause=0.2)
    await is_right(probe, table)
    for number in range(100):
        table.execute("update t set body = %s where id = 29", [f"w{number}"])
    await is_right(probe, table)
    assert len(probe.all("list")) < 50, "who is slow gets the newest list, not each"
    await eventually(lambda: len(probe.all("update")) == 100, what="each change, for who listens to changes")
    assert probe.all("reload") == [] and probe.all("insert") == []


async def test_a_hub_that_is_killed_and_a_cursor_that_is_too_old(own_hub, table, probe):
    chance = random.Random(8)
    table.execute("insert into t select n, 1, n, 'row' from generate_series(0, 29) n")
    begin(probe, own_hub.url)
    probe.do("rows", channel="room", name="list", table="t", filter=1, order="n", limit=5)
    probe.do("events", channel="room", name="events")
    probe.do("subscribe", channel="room")
    await is_right(probe, table)
    for number in range(3):
        await asyncio.to_thread(own_hub.kill)
        await eventually(lambda: newest(probe)["live"] is False, what="the word that it is not live")
        assert newest(probe)["rows"], "what was there is shown on"
        for one in range(20):
            write(table, chance, number * 100 + one)
        if number == 2:
            # What the cursor would be judged by is gone.
            table.execute("with gone as (delete from roost.change returning xid) update roost.meta set pruned_xid = "
                          "(select xid from gone order by xid desc limit 1)")
        seen = len(probe.all("channel"))
        await asyncio.to_thread(own_hub.start)
        await is_right(probe, table)
        joined = next(line["what"] for line in probe.all("channel")[seen:] if "joined" in line["what"])
        assert joined == f"joined(resumed: {'false' if number == 2 else 'true'})"
    for one in range(20):
        write(table, chance, 1000 + one)
    await is_right(probe, table)


async def test_a_policy_that_changes(own_hub, cluster, probe):
    with cluster.connect(own_hub.database) as sql:
        sql.execute("create table member (who text, room int, primary key (who, room));"
                    "create table t (id int primary key, room int not null, n int, body text);"
                    "alter table t enable row level security;"
                    "create policy members on t for select to authenticated using (exists (select from member m "
                    "where m.room = t.room and m.who = current_setting('request.jwt.claims', true)::json ->> 'sub'));"
                    "grant select on member to authenticated; insert into member values ('someone', 1);"
                    "insert into t select n, 1, n, 'row' from generate_series(0, 9) n")
        own_hub.run("watch", "t", "--no-scope")
        own_hub.start()
        begin(probe, own_hub.url)
        probe.do("rows", channel="room", name="list", table="t", filter=1, order="n", limit=5)
        probe.do("subscribe", channel="room")
        await is_right(probe, sql)
        # Rows that a policy hides from now on: no change tells of them, so they stay until the list is read.
        sql.execute("drop policy members on t; create policy few on t for select to authenticated using (n < 8)")
        sql.execute("insert into t values (21, 1, 7, 'shown')")
        await asyncio.to_thread(own_hub.settle)
        assert "9 row" in newest(probe)["rows"]
        probe.do("reload", name="list")
        await eventually(lambda: newest(probe)["rows"] == ["21 shown", "7 row", "6 row", "5 row", "4 row"],
                         what=lambda: newest(probe))
        sql.execute("drop policy few on t; create policy others on t for select to authenticated using (true)")
        probe.do("reload", name="list")
        await is_right(probe, sql)


async def test_a_list_is_there_before_the_hub_is(own_hub, table, probes, tmp_path):
    table.execute("insert into t select n, 1, n, 'row' from generate_series(0, 29) n")

    async def open_app():
        probe = await probes()
        begin(probe, own_hub.url)
        probe.do("rows", channel="room", name="list", table="t", filter=1, order="n", limit=5, folder=str(tmp_path))
        probe.do("events", channel="room", name="events")
        probe.do("subscribe", channel="room")
        return probe

    def is_kept(body):
        return any(f'{body}"' in rows for rows in map(kept, tmp_path.glob("*.rows")))

    first = await open_app()
    await is_right(first, table)
    table.execute("update t set body = 'stored' where id = 29")
    await is_right(first, table)
    await eventually(lambda: is_kept("stored"), what="the list on the disk")
    await first.close()
    await asyncio.to_thread(own_hub.kill)
    shown = selected(table)
    table.execute("insert into t values (50, 1, 50, 'meanwhile'); delete from t where id = 28")
    second = await open_app()
    offline = await second.see("list")
    assert offline["rows"] == shown and not offline["live"]
    await asyncio.to_thread(own_hub.start)
    await is_right(second, table)
    assert "joined(resumed: true)" in [line["what"] for line in second.all("channel")], "only what changed came"


def kept(file):
    """The rows of a file, as one text."""
    return "".join(base64.b64decode(row).decode() for row in json.loads(file.read_text())["rows"])


async def test_drafts_are_shown_until_their_rows_come(own_hub, cluster, probe):
    with cluster.connect(own_hub.database) as sql:
        install(sql)
        sql.execute("truncate messages cascade")
        own_hub.watch("public.messages")
        own_hub.start()
        server = ChatServer(own_hub.environment["ROOST_DATABASE_URL"], ADA.sub, loses=2)
        async with Proxy(server.port) as way:
            begin(probe, own_hub.url, ADA.token())
            probe.do("messages", channel="room", name="list", conversation=A, order="id", limit=3, api=way.port)
            probe.do("subscribe", channel="room")
            await eventually(lambda: newest(probe) and newest(probe)["live"], what="an empty list")
            await way.close()
            for text in ("one", "two"):
                probe.do("write", name="list", conversation=A, text=text)
                await eventually(lambda: text in newest(probe)["rows"], what=lambda: newest(probe))
            draft = newest(probe)
            assert draft["rows"] == ["two", "one"] and draft["states"] == ["pending", "pending"]
            await way.open()
            await eventually(lambda: newest(probe)["states"] == ["stored", "stored"], what=lambda: newest(probe))
            assert newest(probe)["ids"] == draft["ids"], "a bubble stays when its draft becomes a row"
            assert newest(probe)["rows"] == ["two", "one"]
            assert sql.execute("select count(*) from messages").fetchone() == (2,)
            # What the server refuses is taken back.
            probe.do("write", name="list", conversation=A, text="x" * 9000)
            await eventually(lambda: any(len(line["rows"]) == 3 for line in probe.all("list")), what="the draft")
            await eventually(lambda: newest(probe)["rows"] == ["two", "one"], what=lambda: newest(probe))
            # So is what the app discards.
            await way.close()
            probe.do("write", name="list", conversation=A, text="three")
            await eventually(lambda: newest(probe)["rows"] == ["three", "two", "one"], what=lambda: newest(probe))
            probe.do("discard", name="list")
            await eventually(lambda: newest(probe)["rows"] == ["two", "one"], what=lambda: newest(probe))
        server.close()
        assert not any(len(line["rows"]) != len(set(line["ids"])) for line in probe.all("list")), "a row is never shown twice"
