"""Row changes as the unmodified Python client reports them (wire-protocol A5)."""

import datetime

import pytest

from support.pypi import TIMESTAMP, Listener, python_client


async def test_insert_update_delete_with_the_default_replica_identity(hub, sql, table, name):
    async with python_client(hub) as client:
        listener = await Listener(client, name).on_changes(schema="public", table=table).subscribe()
        before = datetime.datetime.now(datetime.UTC)
        sql.execute(f"insert into {table} values (1, 'one', 10)")
        [insert] = await listener.take()
        sql.execute(f"update {table} set body = 'eins' where id = 1")
        [update] = await listener.take()
        sql.execute(f"delete from {table} where id = 1")
        [delete] = await listener.take()

    assert set(insert) == {"schema", "table", "commit_timestamp", "type", "columns", "record", "errors"}
    assert (insert["schema"], insert["table"], insert["type"], insert["errors"]) == ("public", table, "INSERT", None)
    assert insert["columns"] == [{"name": "id", "type": "int8"}, {"name": "body", "type": "text"}, {"name": "n", "type": "int4"}]
    assert insert["record"] == {"id": 1, "body": "one", "n": 10}
    assert TIMESTAMP.fullmatch(insert["commit_timestamp"]), insert["commit_timestamp"]
    moment = datetime.datetime.fromisoformat(insert["commit_timestamp"])
    assert abs((moment - before).total_seconds()) < 60

    assert update["type"] == "UPDATE"
    assert update["record"] == {"id": 1, "body": "eins", "n": 10}
    assert update["old_record"] == {"id": 1}, "the default replica identity has the primary key alone"

    assert delete["type"] == "DELETE"
    assert "record" not in delete
    assert delete["old_record"] == {"id": 1}


async def test_replica_identity_full_gives_the_whole_old_row(hub, sql, name):
    table = name
    sql.execute(f"create table {table} (id int8 primary key, body text, n int4)")
    sql.execute(f"alter table {table} replica identity full")
    hub.watch(table)
    async with python_client(hub) as client:
        listener = await Listener(client, name).on_changes(table=table, schema="public").subscribe()
        sql.execute(f"insert into {table} values (1, 'one', 10)")
        sql.execute(f"update {table} set body = 'eins'")
        sql.execute(f"delete from {table}")
        _, update, delete = await listener.take(3)
    assert update["old_record"] == {"id": 1, "body": "one", "n": 10}
    assert delete["old_record"] == {"id": 1, "body": "eins", "n": 10}


async def test_an_update_of_the_primary_key(hub, sql, table, name):
    async with python_client(hub) as client:
        listener = await Listener(client, name).on_changes(table=table, schema="public").subscribe()
        sql.execute(f"insert into {table} values (1, 'a', 0), (2, 'b', 0)")
        await listener.take(2)
        sql.execute(f"update {table} set id = id + 10")
        changes = await listener.take(2)
    assert sorted((c["old_record"]["id"], c["record"]["id"], c["record"]["body"]) for c in changes) == [
        (1, 11, "a"), (2, 12, "b")]


async def test_the_event_of_a_binding(hub, sql, table, name):
    async with python_client(hub) as client:
        listener = Listener(client, name)
        seen = {event: [] for event in ("INSERT", "UPDATE", "DELETE", "*")}
        for event, into in seen.items():
            listener.on_changes(event, into, schema="public", table=table)
        await listener.subscribe()
        sql.execute(f"insert into {table} values (1)")
        sql.execute(f"update {table} set n = 1")
        sql.execute(f"delete from {table}")
        await listener.take(3, of=seen["*"])
    assert {event: [c["data"]["type"] for c in seen[event]] for event in ("INSERT", "UPDATE", "DELETE")} == {
        "INSERT": ["INSERT"], "UPDATE": ["UPDATE"], "DELETE": ["DELETE"]}


async def test_values_are_those_of_to_jsonb(hub, sql, name):
    sql.execute(f"""create table {name} (
        id uuid primary key, flag bool, small int2, big int8, exact numeric, real float8, at timestamptz, naive timestamp,
        day date, doc jsonb, old json, tags text[], numbers int4[], raw bytea, nothing text, span interval, addr inet)""")
    hub.watch(name)
    async with python_client(hub) as client:
        listener = await Listener(client, name).on_changes(table=name, schema="public").subscribe()
        sql.execute(f"""insert into {name} values (
            'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', true, 7, 9007199254740993, 123456789012345678.125, 0.1,
            '2026-01-02 03:04:05.678+00', '2026-01-02 03:04:05', '2026-02-03', '{{"a": [1, null, "é"]}}', '{{"b":  2}}',
            '{{x,"y z",NULL}}', '{{1,2}}', '\\x00ff', null, '1 day', '10.0.0.1')""")
        [insert] = await listener.take()
        expected = sql.execute(f"select to_jsonb(t) from {name} t").fetchone()[0]
    assert insert["record"] == expected
    assert insert["record"]["big"] == 9007199254740993
    types = {column["name"]: column["type"] for column in insert["columns"]}
    assert types == {
        "id": "uuid", "flag": "bool", "small": "int2", "big": "int8", "exact": "numeric", "real": "float8",
        "at": "timestamptz", "naive": "timestamp", "day": "date", "doc": "jsonb", "old": "json", "tags": "_text",
        "numbers": "_int4", "raw": "bytea", "nothing": "text", "span": "interval", "addr": "inet"}


ROWS = """(1, 'apple', 'open', true, '2026-01-01 10:00+00', 1.50, null),
          (2, 'Banana', 'closed', false, '2026-06-01 10:00+02', 10, 'x'),
          (10, 'a,b', 'open', null, '2027-01-01 00:00+00', 9.99, 'y'),
          (-3, 'q"uote', 'held', true, '2025-12-31 23:59:59+00', -1, '')"""


# What each filter leaves of ROWS, by id.
FILTERS = [
    ("id=eq.2", [2]),
    ("id=neq.2", [1, 10, -3]),
    ("id=gt.2", [10]),  # as numbers: "10" < "2" as text
    ("id=gte.2", [2, 10]),
    ("id=lt.1", [-3]),
    ("id=lte.1", [1, -3]),
    ("price=gt.9.99", [2]),
    ("price=eq.1.5", [1]),  # numeric: 1.50 is 1.5
    ("at=gte.2026-06-01 08:00+00", [2, 10]),  # the same instant in another zone
    ("name=eq.apple", [1]),
    ('name=eq."a,b"', [10]),
    (r'name=eq."q\"uote"', [-3]),
    ("status=in.(open,held)", [1, 10, -3]),
    ('name=in.("a,b",apple)', [1, 10]),
    ("status=not.in.(open,held)", [2]),
    ("name=like.%an%", [2]),
    ("name=ilike.A%", [1, 10]),
    ("name=not.ilike.a%", [2, -3]),
    ("name=match.^[a-z]+$", [1]),
    ("name=imatch.^[a-z]+$", [1, 2]),
    ("flag=is.true", [1, -3]),
    ("flag=is.null", [10]),
    ("flag=not.is.null", [1, 2, -3]),
    ("note=is.null", [1]),
    ("note=eq.", [-3]),
    ("note=neq.x", [10, -3]),  # null matches neither eq nor neq
    ("note=isdistinct.x", [1, 10, -3]),
    ("status=eq.open,id=gt.1", [10]),  # AND
    ("", [1, 2, 10, -3]),
]


@pytest.mark.parametrize("event", ["INSERT", "DELETE"])
async def test_filters(hub, sql, name, event):
    sql.execute(f"""create table {name} (id int8 primary key, name text, status text, flag bool, at timestamptz,
        price numeric, note text)""")
    sql.execute(f"alter table {name} replica identity full")
    hub.watch(name)
    async with python_client(hub) as client:
        listener = Listener(client, name)
        seen = [[] for _ in FILTERS]
        for (text, _), into in zip(FILTERS, seen):
            listener.on_changes(event, into, schema="public", table=name, filter=text or None)
        await listener.subscribe()
        sql.execute(f"insert into {name} values {ROWS}")
        sql.execute(f"delete from {name}")
        await listener.take(4, of=seen[-1])
        seen[-1].extend([{"data": {"record": {"id": i}, "old_record": {"id": i}}} for i in FILTERS[-1][1]])
    record = "record" if event == "INSERT" else "old_record"
    found = {text: sorted(c["data"][record]["id"] for c in into) for (text, _), into in zip(FILTERS, seen)}
    assert found == {text: sorted(ids) for text, ids in FILTERS}


async def test_an_update_is_filtered_by_its_new_values(hub, sql, table, name):
    async with python_client(hub) as client:
        listener = await Listener(client, name).on_changes("UPDATE", table=table, schema="public", filter="n=eq.2").subscribe()
        sql.execute(f"insert into {table} values (1, 'a', 1), (2, 'b', 2)")
        sql.execute(f"update {table} set n = 3 - n")  # 1 becomes 2, 2 becomes 1
        [update] = await listener.take()
    assert update["record"]["id"] == 1


async def test_select_leaves_the_chosen_columns_and_the_primary_key(hub, sql, table, name):
    async with python_client(hub) as client:
        listener = await Listener(client, name).on_changes(table=table, schema="public", select=["n"]).subscribe()
        sql.execute(f"insert into {table} values (1, 'hidden', 5)")
        [insert] = await listener.take()
    assert insert["record"] == {"id": 1, "n": 5}
    assert [column["name"] for column in insert["columns"]] == ["id", "n"]


async def test_quoted_names(hub, sql, name):
    schema, table, column = f"Schéma {name}", 'Ta"ble', "Co lumn"
    sql.execute(f'create schema "{schema}"; grant usage on schema "{schema}" to authenticated')
    sql.execute(f'create table "{schema}"."Ta""ble" ("Id" int primary key, "{column}" text)')
    sql.execute(f'grant select on "{schema}"."Ta""ble" to authenticated')
    hub.watch(f'"{schema}"."Ta""ble"')
    async with python_client(hub) as client:
        listener = await Listener(client, name).on_changes(schema=schema, table=table, filter=f"{column}=eq.yes").subscribe()
        sql.execute(f'insert into "{schema}"."Ta""ble" values (1, \'no\'), (2, \'yes\')')
        [insert] = await listener.take()
    assert (insert["schema"], insert["table"], insert["record"]) == (schema, table, {"Id": 2, column: "yes"})


async def test_wildcards(hub, sql, name):
    """A schema alone, or `*`, is every watched table in it; only the table alone is that of `public`."""
    schema = f"wild_{name}"
    sql.execute(f"create schema {schema}; create table {schema}.a (id int primary key); create table {schema}.b (id int primary key)")
    sql.execute(f"grant usage on schema {schema} to authenticated; grant select on all tables in schema {schema} to authenticated")
    for table in ("a", "b"):
        hub.watch(f"{schema}.{table}")
    async with python_client(hub) as client:
        listener = Listener(client, name)
        whole, star = [], []
        listener.on_changes("*", whole, schema=schema).on_changes("INSERT", star, schema=schema, table="*")
        await listener.subscribe()
        sql.execute(f"insert into {schema}.a values (1); insert into {schema}.b values (2)")
        assert sorted(c["table"] for c in await listener.take(2, of=whole)) == ["a", "b"]
        assert sorted(c["record"]["id"] for c in await listener.take(2, of=star)) == [1, 2]


async def test_two_bindings_that_match_are_one_frame_with_two_ids(hub, sql, table, name):
    async with python_client(hub) as client:
        listener = Listener(client, name)
        first, second = [], []
        listener.on_changes("INSERT", first, schema="public", table=table)
        listener.on_changes("*", second, schema="public", table=table, filter="id=gt.0")
        await listener.subscribe()
        sql.execute(f"insert into {table} values (1)")
        await listener.take(1, of=second)
        assert len(first) == 1
        assert len(set(first[0]["ids"])) == 2
