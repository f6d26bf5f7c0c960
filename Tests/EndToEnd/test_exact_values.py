"""Policies see what a SELECT sees, for values that JSON does not keep: each policy of each type is a user of its own, told what
SELECT shows that user."""

import asyncio
import itertools

import pytest

from support.chat import Principal
from support.markers import Markers
from support.wsclient import Client

TYPES = """
    create extension hstore; create extension citext; create extension ltree; create extension cube; create extension isn;
    create type mood as enum ('sad', 'so so', 'ok');
    create type pair as (a int, b text); create type deep as (doc jsonb, pairs pair[], tags text[]);
    create domain positive as int check (value > 0); create domain document as jsonb; create domain words as text[];
    create domain folded as citext; create domain place as pair;
    create schema hidden; create table hidden.thing (); create table thing (); grant usage on schema hidden to authenticated;
    create schema aside; create table aside.marker (id int primary key);
    grant usage on schema aside to authenticated; grant select on aside.marker to authenticated
"""

#: By column: its type and values, as SQL. None of them are SQL's null, which every column gets besides.
VALUES = {
    "i": ("int8", ["9007199254740993", "-1"]),
    "n": ("numeric", ["'NaN'", "0.10", "1e-30"]),
    "f": ("float8", ["0.1", "'-0'", "'Infinity'", "1.7976931348623157e308"]),
    "b": ("bool", ["true", "false"]),
    "tx": ("text", ["''", "'null'", r"E'a,\"b\\\\c\n(d)'", "'{}'"]),
    "ch": ("char(4)", ["'a'"]),
    "u": ("uuid", ["'00000000-0000-4000-8000-000000000001'"]),
    "by": ("bytea", [r"'\x00ff'", "''"]),
    "d": ("date", ["'2026-03-01'", "'0044-03-15 BC'", "'infinity'"]),
    "ts": ("timestamp", ["'2026-03-01 12:30:00.000001'"]),
    "tz": ("timestamptz", ["'2026-03-29 02:30 Europe/Berlin'", "'-infinity'"]),
    "iv": ("interval", ["'1 mon -1 day 00:00:00.000001'"]),
    "j": ("json", ["' null '", "'null'", """'{"a": null}'""", "'[1, 2]'", "'\"null\"'"]),
    "jb": ("jsonb", ["'null'", """'{"public": null}'""", "'[null]'", "'\"null\"'", "'1e3'"]),
    "doc": ("document", ["'null'", """'{"a": 1}'"""]),
    "js": ("jsonb[]", ["array['null', '1']::jsonb[]", "array[null, '1']::jsonb[]", "'{}'"]),
    "ai": ("int[]", ["'[0:1]={1,2}'", "'{1,2}'", "'{NULL,1}'", "'[-1:0][5:6]={{1,2},{3,4}}'", "'{}'"]),
    "ta": ("text[]", [r"""'[5:6]={"a,b",null}'""", """'{"null",NULL}'"""]),
    "w": ("words", ["'[0:0]={a}'", "'{a}'"]),
    "m": ("mood", ["'so so'"]),
    "p": ("pair", ["row(1, 'x\"y')", "row(null, null)"]),
    "pl": ("place", ["row(2, 'null')"]),
    "dp": ("deep", ["row('null', array[row(1, null)::pair], '[0:0]={x}')", "row(null, null, null)"]),
    "po": ("positive", ["7"]),
    "h": ("hstore", ["'a=>b'", "'a=>NULL'", "''"]),
    "hs": ("hstore[]", ["array['a=>b'::hstore]"]),
    "c": ("citext", ["'ABC'"]),
    "fo": ("folded", ["'ABC'"]),
    "lt": ("ltree", ["'a.b.c'"]),
    "cu": ("cube", ["'(0.1, 2), (3, 4)'"]),
    "isb": ("isbn", ["'978-0-393-04002-9'"]),
    "ir": ("int4range", ["'empty'", "'[1,5)'"]),
    "dr": ("daterange", ["'[2026-01-02,2026-03-04)'"]),
    "tr": ("tstzrange", ["'[2026-01-02 00:00+00,)'"]),
    "rc": ("regclass", ["'hidden.thing'", "'public.thing'", "'pg_class'"]),
    "rp": ("regprocedure", ["'pg_catalog.lower(text)'"]),
    "pt": ("point", ["'(0.1,-1e308)'"]),
    "ip": ("inet", ["'10.0.0.1/8'"]),
    "v": ("tsvector", ["'a:1A b'"]),
    "bi": ("varbit", ["'1010'", "''"]),
    "x": ("xml", ["'<a>1</a>'"]),
}

#: What people write, and what went wrong before.
POLICIES = [
    "coalesce(jb, '{\"public\": true}') ->> 'public' = 'true'", "js[1] is null", "js[1] is not null", "jb = 'null'",
    "jsonb_typeof(jb) = 'null'", "json_typeof(j) = 'null'", "jsonb_typeof(doc) = 'null'", "doc = 'null'", "j::text = ' null '",
    "(dp).doc is null", "(dp).doc is not null", "((dp).pairs)[1].b is null", "array_lower((dp).tags, 1) = 0", "dp is null",
    "h -> 'a' = 'b'", "h ? 'a'", "not (h ? 'a')", "h @> 'a=>b'", "hs[1] -> 'a' = 'b'", "exist(h, 'a') and h -> 'a' is null",
    "ai[0] = 1", "ai[1] = 1", "array_lower(ai, 1) = 0", "array_lower(ta, 1) = 5", "ta[5] = 'a,b'", "ta[6] is null", "w[0] = 'a'",
    "1 = any (ai)", "array_ndims(ai) = 2", "ai[-1][5] = 1", "ta[1] = 'null'", "rc = 'hidden.thing'::regclass",
    "rc = 'public.thing'::regclass", "rc::oid = 'pg_class'::regclass::oid", "rp = 'lower(text)'::regprocedure",
    "lt <@ 'a.b'", "c = 'abc'", "fo = 'abc'", "cu = '(0.1, 2), (3, 4)'", "upper(dr) = '2026-03-04'", "lower(dr) > '2026-01-15'",
    "tr @> '2026-02-01'::timestamptz", "ir @> 3", "isempty(ir)", "(p).b = 'x\"y'", "(p).a is null", "(pl).b = 'null'",
    "f = 1.7976931348623157e308", "tx = 'null'", "pt[0] = 0.1", "t.jb is null and t.id > 0", "row_is_quiet(t)", "v @@ 'a'",
    "d < '0001-01-01'", "by = '\\x00ff'", "x is document", "num_nulls(j, jb, doc) = 0", "num_nulls(j, jb, doc) = 3",
]


def generated():
    """What can be asked of a value of any type."""
    for name, (_, values) in VALUES.items():
        yield f"{name} is null"
        yield f"{name} is not null"
        yield f"coalesce({name}::text, 'none') = 'none'"
        for value in values:
            yield f"{name}::text = ({value}::{VALUES[name][0]})::text"


def users():
    return {f"{number}": policy for number, policy in enumerate(itertools.chain(POLICIES, generated()))}


def rows():
    """Each value in a row of its own, among nulls; rows full of values, and an empty one."""
    for name, (_, values) in VALUES.items():
        for value in values:
            yield {name: value}
    for nth in range(5):
        yield {name: values[nth % len(values)] for name, (_, values) in VALUES.items()}
    yield {}


@pytest.mark.parametrize("capture", ["triggers", "wal"])
async def test_policies_answer_as_a_select_does(own_hub, cluster, capture):
    own_hub.environment["ROOST_FEED_CAPTURE"] = capture
    everybody = users()
    assert len(everybody) >= 200
    with cluster.connect(own_hub.database) as sql:
        sql.execute(TYPES)
        columns = ", ".join(f"{name} {type}" for name, (type, _) in VALUES.items())
        sql.execute(f"create table t (id serial primary key, {columns}, version int default 1); grant select on t to authenticated")
        sql.execute("create function row_is_quiet(t) returns boolean language sql stable as 'select $1.jb is null'")
        cases = " ".join(f"when '{sub}' then {policy}" for sub, policy in everybody.items())
        sql.execute(f"alter table t enable row level security; create policy p on t for select using (case sub() {cases} end)"
                    .replace("sub()", "current_setting('request.jwt.claim.sub', true)"))
        own_hub.run("watch", "t", "--no-scope")
        own_hub.watch("aside.marker")
        own_hub.start()
        markers = Markers(sql)
        people = [Principal(sub, "authenticated", sub) for sub in everybody]
        clients = {}
        for person in people:
            clients[person] = await Client.connect(own_hub.port, apikey=person.token())
            await markers.follow(clients[person])
            await clients[person].watch("realtime:t", {"event": "*", "schema": "public", "table": "t"})
        wrong = []

        async def compare(operation, version):
            marker = markers.write()
            for person, client in clients.items():
                came = [(frame.payload["data"]["type"], frame.payload["data"]["record"]["id"])
                        for frame in await markers.reach(client, marker) if frame.topic == "realtime:t"]
                with person.acting(sql):
                    shown = [(operation, id) for id, in sql.execute(
                        "select id from t where version = %s order by id", [version]).fetchall()]
                if sorted(came) != shown:
                    wrong.append(f"{operation} by {everybody[person.sub]}: shown {sorted(set(came) - set(shown))}, "
                                 f"hidden {sorted(set(shown) - set(came))}, twice {len(came) - len(set(came))}")
            return wrong

        with cluster.connect(own_hub.database) as writer:
            # What the writer has set must not show.
            writer.execute("set datestyle = 'German, DMY'; set search_path = hidden, public; set extra_float_digits = 0;"
                           "set intervalstyle = 'sql_standard'; set timezone = 'Asia/Kolkata'")
            for row in rows():
                names = ", ".join(row)
                values = ", ".join(f"{value}::{VALUES[name][0]}" for name, value in row.items())
                writer.execute(f"insert into t ({names}) values ({values})" if row else "insert into t default values")
            assert not await compare("INSERT", 1), "\n".join(wrong)
            writer.execute("update t set version = 2")
            assert not await compare("UPDATE", 2), "\n".join(wrong)
        print(f"\n{len(everybody)} policies, {sum(1 for _ in rows())} rows, twice each")
        for client in clients.values():
            await client.close()


RAISING = """
    create type shape; create function shape_in(cstring) returns shape language internal immutable strict as 'textin';
    create function shape_out(shape) returns cstring language internal immutable strict as 'textout';
    create type shape (input = shape_in, output = shape_out, like = text);
    create function as_json(shape) returns json language plpgsql immutable as $$ begin
        if textin(shape_out($1)) like 'curve%' then raise exception 'a curve has no JSON'; end if;
        return json_build_object('type', 'Point'); end $$;
    create cast (shape as json) with function as_json(shape)
"""


async def test_a_writer_never_fails_for_a_value_without_json(own_hub, cluster):
    """Neither of rows that were there before `roost watch`, nor of messages; and the policy reads the value."""
    with cluster.connect(own_hub.database) as sql:
        sql.execute(RAISING)
        sql.execute("create table t (id int primary key, s shape, doc jsonb); grant select on t to authenticated;"
                    "insert into t values (1, 'curve 1'), (2, 'curve 2'), (3, 'curve 3');"
                    "alter table t enable row level security;"
                    "create policy p on t using (s::text <> 'curve hidden' and doc is null);"
                    "alter table realtime.messages add shape shape")
        own_hub.run("watch", "t", "--no-scope")
        own_hub.start()
        async with await Client.connect(own_hub.port, apikey=Principal("ada", "authenticated", "ada").token()) as client:
            await client.watch("realtime:room", {"event": "*", "schema": "public", "table": "t"})
            sql.execute("update t set id = 10 where id = 1; delete from t where id = 2;"
                        "insert into t values (4, 'curve hidden', null), (5, 'curve', 'null'), (6, 'point', null)")
            seen = [(await client.next("postgres_changes")).payload["data"] for _ in range(3)]
            assert [(data["type"], data.get("record", data.get("old_record")).get("id")) for data in seen] == [
                ("UPDATE", 10), ("DELETE", 2), ("INSERT", 6)]
            assert seen[0]["record"]["s"] == "curve 1" and seen[2]["record"]["s"] == {"type": "Point"}
            sql.execute("insert into realtime.messages (topic, extension, event, payload, private, shape)"
                        " values ('room', 'broadcast', 'greeting', '{\"a\": 1}', false, 'curve')")
            message = await client.next("broadcast")
            assert message.payload["event"] == "greeting" and message.payload["payload"]["a"] == 1


async def test_filters_are_asked_about_the_value_that_was_written(own_hub, cluster):
    conditions = {
        "doc=is.null": "doc is null", "doc=not.is.null": "doc is not null", "doc=eq.null": "doc = 'null'",
        "doc=neq.null": "doc <> 'null'", "doc=isdistinct.null": "doc is distinct from 'null'", 'doc=in.(null,"1")': "doc in (null, '1')",
        "h=eq.a=>b": "h = 'a=>b'", 'ai=eq."[0:1]={1,2}"': "ai = '[0:1]={1,2}'", 'ai=eq."{1,2}"': "ai = '{1,2}'",
        "js=is.null": "js is null"}
    with cluster.connect(own_hub.database) as sql:
        sql.execute(TYPES)
        sql.execute("create table t (id serial primary key, doc jsonb, h hstore, ai int[], p pair, js json);"
                    "grant select on t to anon, authenticated; grant usage on schema aside to anon; grant select on aside.marker to anon")
        own_hub.watch("t")
        own_hub.watch("aside.marker")
        own_hub.start()
        markers = Markers(sql)
        async with await Client.connect(own_hub.port) as client:
            await markers.follow(client)
            for number, condition in enumerate(conditions):
                await client.watch(
                    f"realtime:{number}", {"event": "INSERT", "schema": "public", "table": "t", "filter": condition})
            sql.execute("insert into t (doc, h, ai, p, js) values ('null', 'a=>b', '[0:1]={1,2}', '(1,x)', 'null'),"
                        "(null, 'a=>NULL', '{1,2}', '(1,)', null), ('1', null, null, null, '1'), ('{\"a\": null}', '', '{}', '(,x)', '[null]')")
            # What Postgres is asked about comes behind the marker.
            came = await markers.pass_by(client)
            await own_hub.settled()
            came += [f for f in await client.settled() if f.event == "postgres_changes"]
            for number, (condition, where) in enumerate(conditions.items()):
                shown = [id for id, in sql.execute(f"select id from t where {where} order by id").fetchall()]
                assert [f.payload["data"]["record"]["id"] for f in came if f.topic == f"realtime:{number}"] == shown, condition


async def test_rows_of_before_are_read_and_hidden_only_where_nobody_can_tell(own_hub, cluster):
    """Written by triggers that kept no texts, and read by a client that comes back."""
    ada = Principal("ada", "authenticated", "ada")
    changes = [{"event": "*", "schema": "public", "table": "t"}, {"event": "*", "schema": "public", "table": "tags"}]
    with cluster.connect(own_hub.database) as sql:
        sql.execute("create table t (id int primary key, doc jsonb); create table tags (id int primary key, names text[], who text[]);"
                    "grant select on t, tags to authenticated;"
                    "alter table t enable row level security; alter table tags enable row level security;"
                    "create policy p on t using (doc is null or doc ? 'open'); create policy p on tags using ('ada' = any (who))")
        own_hub.run("watch", "t", "--no-scope")
        own_hub.run("watch", "tags", "--no-scope")
        own_hub.start()
        async with await Client.connect(own_hub.port, apikey=ada.token()) as client:
            await client.join("realtime:room", changes, {"resume": {}})
            cursor = (await client.next("system")).payload["cursor"]
        own_hub.stop()
        sql.execute("create or replace function roost.text_need(watched oid) returns integer language sql stable as 'select 0'")
        sql.execute("insert into t values (1, null), (2, 'null'), (3, '{\"open\": null}'), (4, '{}');"
                    "insert into tags values (5, null, '{ada}'), (6, '{x}', '{bob}'), (7, '{null}', '{bob,ada}')")
        own_hub.start()
        async with await Client.connect(own_hub.port, apikey=ada.token()) as client:
            await client.join("realtime:room", changes, {"resume": {"cursor": cursor}})
            # The hub has seen by now what writers have to keep.
            sql.execute("insert into t values (10, null), (11, 'null'), (12, '{\"open\": null}')")
            seen = [(await client.next("postgres_changes")).payload["data"]["record"]["id"] for _ in range(5)]
            assert seen == [3, 5, 7, 10, 12]
        assert "do not say whether a null of the column" in own_hub.log
