"""Policies see what a SELECT sees, for values that JSON does not keep: each policy of each type is a user of its own, told what
SELECT shows that user."""

import pytest

from support.chat import Principal
from support.exact_values import IS_WHOLE, create_table, insert_rows, install, rows, runs, sample
from support.markers import Markers
from support.wsclient import Client

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


def generated(columns):
    """What can be asked of a value of any type."""
    for name, (type, values) in columns.items():
        yield f"{name} is null"
        yield f"{name} is not null"
        yield f"coalesce({name}::text, 'none') = 'none'"
        for value in values:
            yield f"{name}::text = ({value}::{type})::text"


@pytest.mark.parametrize("capture", ["triggers", "wal"])
async def test_policies_answer_as_a_select_does(own_hub, cluster, capture):
    own_hub.environment["ROOST_FEED_CAPTURE"] = capture
    with cluster.connect(own_hub.database) as sql:
        columns = install(sql)
        create_table(sql, columns)
        sql.execute("create function row_is_quiet(t) returns boolean language sql stable as 'select $1.jb is null'")
        # Without an extension there are no policies that need it.
        policies = [policy for policy in [*POLICIES, *sample(generated(columns))] if runs(sql, f"select {policy} from t")]
        everybody = {f"{number}": policy for number, policy in enumerate(policies)}
        assert len(everybody) >= 200 or not IS_WHOLE
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
            insert_rows(writer, columns)
            assert not await compare("INSERT", 1), "\n".join(wrong)
            writer.execute("update t set version = 2")
            assert not await compare("UPDATE", 2), "\n".join(wrong)
        version = sql.execute("show server_version").fetchone()[0]
        print(f"\nPostgres {version}, {capture}: {len(everybody)} policies of {len(columns)} types, {sum(1 for _ in rows(columns))} rows, twice each")
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
        if "h" not in install(sql):
            pytest.skip("this server has no hstore")
        sql.execute("create table t (id serial primary key, doc jsonb, h hstore, ai int[], p pair, js json);"
                    "grant select on t to anon, authenticated")
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
