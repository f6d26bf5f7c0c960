"""First the rows that are there, then what changes (docs/rows.md): what comes, in which form, and what is refused."""

import asyncio
import json
from urllib.parse import urlencode

import pytest

from support.http import HTTPConnection
from support.rows import TOPIC, begin, binding
from support.subscriptions import Subscription, channel
from support.tokens import token

pytestmark = pytest.mark.anyio


@pytest.fixture
def table(own_hub, cluster):
    with cluster.connect(own_hub.database) as sql:
        sql.execute("create table t (id int primary key, room int not null, body text, at timestamptz default now())")
        own_hub.watch("t")
        own_hub.start()
        yield sql


async def test_rows_come_first_and_then_what_is_live(own_hub, table):
    table.execute("insert into t select n, n % 2, 'row ' || n, '2026-01-01 12:00+00'::timestamptz + n * interval '1 s' from generate_series(1, 10) n")
    changes = [binding(filter="room=eq.1"), binding(filter="room=eq.0"), binding(event="UPDATE")]
    client, fold, response = await begin(
        own_hub, [{"table": "t", "filter": "room=eq.1", "order": "id.desc", "limit": 3, "select": ["body"]}], changes)
    async with client:
        ids = [change["id"] for change in response["postgres_changes"]]
        await fold.has_begun.wait()
        rows = [m.payload for m in client.messages if m.event == "postgres_changes"]
        assert [row["data"]["record"] for row in rows] == [{"id": n, "body": f"row {n}"} for n in (9, 7, 5)]
        first = rows[0]
        assert first["ids"] == [ids[0]], "those of the binding with the same filter"
        assert first["snapshot"] is True and "cursor" not in first
        assert {**first["data"], "commit_timestamp": None, "columns": None} == {
            "schema": "public", "table": "t", "type": "INSERT", "commit_timestamp": None, "columns": None,
            "record": {"id": 9, "body": "row 9"}, "errors": None}
        assert fold.report["status"] == "ok" and fold.report["channel"] == "rows" and fold.report["cursor"]
        assert fold.report["rows"] == [{"schema": "public", "table": "t", "count": 3, "next": {"id": 5}}]
        await client.next("system", TOPIC, where=lambda m: m.payload["message"] == "Subscribed to PostgreSQL")
        table.execute("insert into t values (11, 1, 'new')")
        live = await client.next("postgres_changes", TOPIC, where=lambda m: not m.payload.get("snapshot"))
        assert live.payload["ids"] == [ids[0]] and live.payload["data"]["record"]["id"] == 11
        # The next page, by what the report said.
        topic = f"{TOPIC}:next"
        other, second, _ = await begin(
            own_hub, [{"table": "t", "filter": "room=eq.1", "order": "id.desc", "limit": 3, "after": fold.report["rows"][0]["next"]}],
            topic=topic)
        async with other:
            await second.has_begun.wait()
            assert sorted(second.rows) == [1, 3] and "next" not in second.report["rows"][0]


async def test_what_cannot_be_read_is_said_and_the_rest_is_served(own_hub, table):
    table.execute("create table other (id int primary key); grant select on other to anon, authenticated")
    table.execute("create table hidden (id int primary key, secret text, open text); insert into hidden values (1, 'x', 'y');"
                  "revoke all on hidden from authenticated; grant select (id, open) on hidden to authenticated;"
                  "insert into t values (1, 1, 'a')")
    own_hub.run("watch", "hidden")
    rows = [
        {"table": "t", "limit": 2000}, {"table": "other"}, {"table": "nowhere"}, {"table": "t", "filter": "nope=eq.1"},
        {"table": "t", "order": "room;drop"}, {"table": "hidden", "order": "secret"}, {"table": "hidden", "filter": "secret=eq.x"},
        {"table": "hidden", "select": ["secret"]}, {"table": "hidden"}, {"table": "t"}, {"table": "t"}]
    client, fold, _ = await begin(own_hub, rows, [binding(), binding("hidden")])
    async with client:
        await fold.has_begun.wait()
        texts = "\n".join(fold.errors)
        for part in (
                "limit must be a whole number from 1 to 1000", "roost watch public.other", "public.nowhere", 'column "nope" does not exist',
                'column "room;drop" does not exist', 'orders by the column "secret"', 'filters by the column "secret"', 'selects the column "secret"',
                "at most 10 entries"):
            assert part in texts, texts
        assert len(fold.errors) == 9
        assert [entry["count"] for entry in fold.report["rows"]] == [0] * 8 + [1, 1, 0]
        shown = [m.payload["data"] for m in client.messages if m.event == "postgres_changes"]
        assert {one["table"]: one["record"].keys() for one in shown} == {"hidden": {"id": 1, "open": 1}.keys(), "t": {"id", "room", "body", "at"}}


async def test_a_reading_that_takes_too_long_is_ended_and_said(own_hub, table):
    table.execute("insert into t values (1, 1, 'a'); create table slow (id int primary key);"
                  "insert into slow values (1); alter table slow enable row level security;"
                  "create policy slow on slow using (pg_sleep(30) is null); grant select on slow to authenticated")
    own_hub.run("watch", "slow", "--no-scope")
    client, fold, _ = await begin(own_hub, [{"table": "slow"}, {"table": "t"}], [binding("slow"), binding()])
    async with client:
        await asyncio.wait_for(fold.has_begun.wait(), 60)
        assert len(fold.errors) == 1 and "took longer than 2000 ms" in fold.errors[0], fold.errors
        assert list(fold.rows) == [1], "the other table is served"
        status, answer = await get(own_hub, table="slow")
        assert status == 400 and "took longer" in answer["error"]


async def get(hub, bearer=None, **query):
    async with await HTTPConnection.open(hub.port) as http:
        answer = await http.request(
            "GET", "/api/rows?" + urlencode(query), authorization="Bearer " + (bearer or token(sub="somebody")))
        return answer.status, answer.json


async def test_pages_over_http_and_events_from_their_cursor(own_hub, table):
    table.execute("insert into t select n, n % 3, case when n % 4 > 0 then 'b' || n % 5 end, null from generate_series(1, 100) n")
    for order in ("body,room.desc", "body.desc,room.desc", "room", "body.desc", ""):
        seen, after, pages = [], None, 0
        while True:
            query = {"table": "t", "limit": 7, "filter": "id=gt.10", "order": order} | ({"after": json.dumps(after)} if after else {})
            status, page = await get(own_hub, **query)
            assert status == 200, page
            seen += [row["id"] for row in page["rows"]]
            pages += 1
            if not (after := page.get("next")):
                break
        assert pages == 13 and len(seen) == 90 and len(set(seen)) == 90, order
        terms = ", ".join(term.replace(".", " ") for term in order.split(",") if term)
        last = " desc" if order.endswith("desc") else ""
        wanted = table.execute(f"select id from t where id > 10 order by {terms + ',' if terms else ''} id{last}").fetchall()
        assert seen == [row[0] for row in wanted], order
    status, page = await get(own_hub, table="t", select="body", limit=1)
    assert page["rows"] == [{"id": 1, "body": "b1"}]
    # What commits between the rows and the events is in the events.
    table.execute("insert into t values (1000, 0)")
    async with await Subscription.to(
            own_hub.port, channel("rows", postgres_changes=[binding()], resume={"cursor": page["cursor"]})) as events:
        assert events.channels["rows"]["resumed"] is True, events.first
        event = await events.until("postgres_changes")
        assert event.payload["data"]["record"]["id"] == 1000
    for query in ({"table": "t", "limit": "x"}, {"table": "t", "after": "{"}, {}, {"table": "t", "filter": "or=(id.eq.1)"}):
        status, answer = await get(own_hub, **query)
        assert status == 400 and answer["error"], query
    assert (await get(own_hub, bearer="no.token", table="t"))[0] == 401


async def test_events_begin_with_rows_and_come_back_without(own_hub, table):
    table.execute("insert into t values (1, 1), (2, 1)")
    wanted = channel("rows", postgres_changes=[binding()], rows=[{"table": "t"}])
    async with await Subscription.to(own_hub.port, wanted) as events:
        assert [(await events.until("postgres_changes")).payload["data"]["record"]["id"] for _ in range(2)] == [1, 2]
        report = await events.until("system")
        while report.payload["message"] != "Rows are there":
            report = await events.until("system")
        await events.known(lambda position: "!r" in position)
        last = events.id
    table.execute("insert into t values (3, 1)")
    async with await Subscription.to(own_hub.port, wanted, last_id=last) as events:
        assert events.channels["rows"]["resumed"] is True
        event = await events.until("postgres_changes")
        assert event.payload["data"]["record"]["id"] == 3 and "snapshot" not in event.payload


async def test_a_return_brings_what_changed_or_all_anew(own_hub, table):
    table.execute("insert into t values (1, 1), (2, 1)")
    client, fold, response = await begin(own_hub, [{"table": "t"}], resume={})
    async with client:
        assert response["resumed"] is True
        await fold.has_begun.wait()
        cursor = fold.report["cursor"]
    table.execute("delete from t where id = 1; insert into t values (3, 1)")
    client, fold, response = await begin(own_hub, [{"table": "t"}], resume={"cursor": cursor})
    async with client:
        assert response["resumed"] is True
        changes = [await client.next("postgres_changes") for _ in range(2)]
        assert [m.payload["data"]["type"] for m in changes] == ["DELETE", "INSERT"] and not fold.report
    client, fold, response = await begin(own_hub, [{"table": "t"}], resume={"cursor": "nonsense"})
    async with client:
        assert response["resumed"] is False
        await fold.has_begun.wait()
        assert sorted(fold.rows) == [2, 3]
        assert not [m for m in client.messages if m.event == "system" and "load" in m.payload["message"]]


async def test_who_comes_back_is_sent_what_it_missed_of_other_tables(own_hub, table):
    """A client that knows no cursors, and begins with the rows of one of its two tables."""
    table.execute("create table u (id int primary key); insert into t values (1, 1); insert into u values (1)")
    own_hub.run("watch", "u")
    who = token(sub="ada", session_id="phone")
    changes, rows = [binding(), binding("u")], [{"table": "t"}]
    client, fold, _ = await begin(own_hub, rows, changes, apikey=who)
    await fold.has_begun.wait()
    await client.next("system", TOPIC, where=lambda m: m.payload["message"] == "Subscribed to PostgreSQL")
    client.socket.abort()
    await client.end()
    table.execute("insert into t values (2, 1); insert into u values (2)")
    client, fold, _ = await begin(own_hub, rows, changes, apikey=who)
    async with client:
        await client.next("system", TOPIC, where=lambda m: m.payload["message"] == "Subscribed to PostgreSQL")
        shown = [(m.payload["data"]["table"], m.payload["data"]["record"]["id"], m.payload.get("snapshot", False))
                 for m in client.messages if m.event == "postgres_changes"]
        assert shown == [("t", 1, True), ("t", 2, True), ("u", 2, False)], shown


async def test_one_user_does_not_keep_others_from_their_rows(own_hub, table):
    table.execute("create table slow (id int primary key); insert into slow values (1); alter table slow enable row level security;"
                  "create policy slow on slow using (pg_sleep(30) is null); grant select on slow to authenticated;"
                  "insert into t values (1, 1)")
    own_hub.run("watch", "slow", "--no-scope")
    ada, linus = token(sub="ada"), token(sub="linus")
    greedy = [await begin(own_hub, [{"table": "slow"}], [binding("slow")], topic=f"{TOPIC}:{n}", apikey=ada) for n in range(4)]
    client, fold, _ = await begin(own_hub, [{"table": "t"}], apikey=linus)
    await fold.has_begun.wait()
    assert list(fold.rows) == [1]
    # Each of the others takes two seconds, one after the other.
    assert sum(one.has_begun.is_set() for _, one, _ in greedy) < 4, "another user's joins came first"
    for one, *_ in [*greedy, (client,)]:
        await one.close()


async def test_fresh_rows_come_also_where_the_cursor_is_good(own_hub, table):
    """A list that a client opens on a channel that goes on: its rows, and of all else what changed."""
    table.execute("create table u (id int primary key); insert into t values (1, 1); insert into u values (1)")
    own_hub.run("watch", "u")
    changes = [binding(), binding("u")]
    client, fold, _ = await begin(own_hub, [{"table": "t"}], changes, resume={})
    async with client:
        await fold.has_begun.wait()
        cursor = fold.report["cursor"]
    table.execute("insert into t values (2, 1); insert into u values (2)")
    client, fold, response = await begin(
        own_hub, [{"table": "t"}, {"table": "u", "fresh": True}], changes, resume={"cursor": cursor})
    async with client:
        assert response["resumed"] is True
        await client.next("system", TOPIC, where=lambda m: m.payload["message"] == "Subscribed to PostgreSQL")
        assert [entry["table"] for entry in fold.report["rows"]] == ["u"]
        shown = [(m.payload["data"]["table"], m.payload["data"]["record"]["id"], m.payload.get("snapshot", False))
                 for m in client.messages if m.event == "postgres_changes"]
        assert shown == [("u", 1, True), ("u", 2, True), ("t", 2, False)], shown


async def test_a_value_without_json_is_its_text(own_hub, table):
    """As in changes: a type's cast to json may fail for some of its values, as that of PostGIS does for curves."""
    table.execute(
        "create type shape as enum ('point', 'curve');"
        "create function shape_as_json(shape) returns json language plpgsql as $$ begin if $1 = 'curve' then raise 'no JSON'; end if;"
        "return '{\"a\": 1}'; end $$; create cast (shape as json) with function shape_as_json(shape);"
        "create table s (id int primary key, s shape, ch char(3), j json, n numeric);"
        "insert into s values (1, 'point', 'a', '[ null ]', 1.50), (2, 'curve', null, 'null', 'NaN')")
    own_hub.run("watch", "s")
    client, fold, _ = await begin(own_hub, [{"table": "s"}, {"table": "t"}], [binding("s"), binding()])
    async with client:
        await fold.has_begun.wait()
        assert not fold.errors, fold.errors
        assert fold.rows == {1: {"id": 1, "s": {"a": 1}, "ch": "a  ", "j": [None], "n": 1.5},
                             2: {"id": 2, "s": "curve", "ch": None, "j": None, "n": "NaN"}}
        before = dict(fold.rows)
        table.execute("insert into s select id + 10, s, ch, j, n from s")
        await asyncio.to_thread(own_hub.settle)
        await client.settled()
        for id, row in before.items():
            assert fold.rows[id + 10] == row | {"id": id + 10}, "a change of such a row looks the same"
