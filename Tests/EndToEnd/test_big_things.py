"""Large rows and large transactions (issue 2, "To build", 5)."""

import asyncio
import time

import psycopg

from support.deadline import eventually
from support.pypi import Listener, python_client


class Counter:
    """Counts row changes of one client without keeping them."""

    def __init__(self, client, key="id"):
        self.ids, self.key = [], key
        client.on_message = self._take

    def _take(self, message):
        data = message.payload["data"]
        self.ids.append((data.get("record") or data["old_record"])[self.key])

    async def reached(self, count, within=120):
        await eventually(lambda: len(self.ids) >= count, within, lambda: f"{len(self.ids)} of {count} rows")
        return self.ids


async def test_a_row_over_a_mebibyte_says_so_and_the_python_client_survives(hub, sql, table, name):
    """websockets, below the Python client, ends a connection that brings more than 1 MiB."""
    async with python_client(hub) as client:
        listener = await Listener(client, name).on_changes(schema="public", table=table).subscribe()
        sql.execute(f"insert into {table} values (1, repeat('x', 1100000), 7)")
        sql.execute(f"insert into {table} values (2, repeat('y', 1500), 8)")
        large, small = await listener.take(2)
        assert large["errors"] == ["Error 413: Payload Too Large"]
        assert large["record"] == {"id": 1, "n": 7}, "values of up to 64 bytes"
        assert small["errors"] is None and len(small["record"]["body"]) == 1500
        sql.execute(f"update {table} set n = 9 where id = 1")
        [update] = await listener.take()
        assert update["errors"] == ["Error 413: Payload Too Large"] and update["record"]["n"] == 9
        sql.execute(f"delete from {table} where id = 1")
        [delete] = await listener.take()
        assert delete["old_record"] == {"id": 1}
        assert listener.states == [("SUBSCRIBED", None)]


async def test_rows_up_to_the_limit_fit_the_python_client(hub, sql, table, name):
    """Just below the limit of a row: with all around it, the frame must still be below 1 MiB, or say 413.

    Quotation marks, because they grow when they are written as JSON.
    """
    async with python_client(hub) as client:
        listener = await Listener(client, name).on_changes(schema="public", table=table).subscribe()
        for number, body in enumerate(("repeat('x', 1040000)", "repeat('x', 1048400)", "repeat('x', 1048520)",
                                       "repeat('\"', 520000)", "repeat('\"', 524200)", "repeat('é', 524200)", "repeat(chr(1), 174000)")):
            sql.execute(f"insert into {table} values ({number}, {body}, 7)")
            [change] = await listener.take()
            assert change["record"]["id"] == number
            assert change["errors"] in (None, ["Error 413: Payload Too Large"])
        assert listener.states == [("SUBSCRIBED", None)], "the connection was never lost"


async def test_an_update_of_two_large_rows_fits(hub, sql, name):
    """Record and old record are each below the limit and together above it."""
    sql.execute(f"create table {name} (id int primary key, body text); alter table {name} replica identity full")
    hub.watch(name)
    async with python_client(hub) as client:
        listener = await Listener(client, name).on_changes(schema="public", table=name).subscribe()
        sql.execute(f"insert into {name} values (1, repeat('a', 700000))")
        await listener.take()
        sql.execute(f"update {name} set body = repeat('b', 700000)")
        [update] = await listener.take()
        assert update["errors"] == ["Error 413: Payload Too Large"]
        assert listener.states == [("SUBSCRIBED", None)]


async def test_a_hundred_thousand_rows_of_one_statement(connect, sql, table, topic):
    """All of them, once, in order."""
    client = await connect()
    await client.watch(topic, {"event": "INSERT", "schema": "public", "table": table})
    counter = Counter(client)
    began = time.monotonic()
    await asyncio.to_thread(sql.execute, f"insert into {table} select g, 'row ' || g, g % 7 from generate_series(1, 100000) g")
    committed = time.monotonic()
    ids = await counter.reached(100_000)
    assert ids == list(range(1, 100_001))
    print(f"\n100,000 rows: insert {committed - began:.1f} s, delivered {time.monotonic() - committed:.1f} s after the commit")
    await client.settled()
    assert client.closed is None and len(ids) == 100_000


async def test_ten_thousand_rows_to_the_python_client(hub, sql, table, name):
    async with python_client(hub) as client:
        listener = await Listener(client, name).on_changes("INSERT", schema="public", table=table).subscribe()
        await asyncio.to_thread(sql.execute, f"insert into {table} select g from generate_series(1, 10000) g")
        changes = await listener.take(10_000, within=90)
        assert [change["record"]["id"] for change in changes] == list(range(1, 10_001))
        assert listener.states == [("SUBSCRIBED", None)]


async def test_copy(connect, sql, table, topic):
    client = await connect()
    await client.watch(topic, {"event": "*", "schema": "public", "table": table})
    counter = Counter(client)
    with sql.cursor().copy(f"copy {table} (id, body) from stdin") as copy:
        for number in range(2000):
            copy.write_row((number, f"a\tb\n{number}"))
    assert await counter.reached(2000) == list(range(2000))


async def test_on_conflict_is_an_insert_or_an_update(connect, sql, table, topic):
    client = await connect()
    await client.watch(topic, {"event": "*", "schema": "public", "table": table})
    upsert = f"insert into {table} values (%s, %s) on conflict (id) do"
    sql.execute(f"{upsert} update set body = excluded.body", (1, "new"))
    sql.execute(f"{upsert} update set body = excluded.body", (1, "changed"))
    sql.execute(f"{upsert} nothing", (1, "ignored"))
    sql.execute(f"{upsert} nothing", (2, "last"))
    seen = [(await client.next("postgres_changes")).payload["data"] for _ in range(3)]
    assert [(c["type"], c["record"]["id"], c["record"]["body"]) for c in seen] == [
        ("INSERT", 1, "new"), ("UPDATE", 1, "changed"), ("INSERT", 2, "last")]


async def test_partitioned_table(connect, hub, sql, name, topic):
    """Its partitions' rows are the table's, whichever way they are written."""
    sql.execute(f"""create table {name} (id int, day date, primary key (id, day)) partition by range (day);
        create table {name}_a partition of {name} for values from ('2026-01-01') to ('2026-02-01');
        create table {name}_b partition of {name} for values from ('2026-02-01') to ('2026-03-01')""")
    hub.watch(name)
    client = await connect()
    await client.watch(topic, {"event": "*", "schema": "public", "table": name})
    sql.execute(f"insert into {name} values (1, '2026-01-05'), (2, '2026-02-05')")
    sql.execute(f"insert into {name}_a values (3, '2026-01-06')")
    sql.execute(f"update {name} set id = 4 where id = 3")
    sql.execute(f"update {name} set day = '2026-02-07' where id = 1")  # moves to the other partition
    sql.execute(f"delete from {name}_b where id = 2")
    seen = [(await client.next("postgres_changes")).payload["data"] for _ in range(5)]
    await asyncio.sleep(0.1)
    await client.settled()
    seen += [m.payload["data"] for m in client.messages if m.event == "postgres_changes"]
    assert {change["table"] for change in seen} == {name}
    assert [c["type"] for c in seen[:4]] == ["INSERT", "INSERT", "INSERT", "UPDATE"]
    # A row that moves may be an update, or a delete and an insert.
    assert [c["type"] for c in seen[4:-1]] in (["UPDATE"], ["DELETE", "INSERT"], ["INSERT", "DELETE"])
    assert seen[-1]["type"] == "DELETE"


async def test_a_partition_that_is_added_later(connect, hub, sql, name, topic):
    sql.execute(f"create table {name} (id int primary key) partition by range (id); "
                f"create table {name}_a partition of {name} for values from (0) to (10)")
    hub.watch(name)
    client = await connect()
    await client.watch(topic, {"event": "INSERT", "schema": "public", "table": name})
    sql.execute(f"create table {name}_b partition of {name} for values from (10) to (20)")
    sql.execute(f"insert into {name} values (5), (15)")
    seen = sorted([(await client.next("postgres_changes")).payload["data"]["record"]["id"] for _ in range(2)])
    assert seen == [5, 15]


async def test_a_table_without_a_primary_key(connect, hub, sql, name, topic):
    sql.execute(f"create table {name} (a int, b text)")
    hub.watch(name)
    client = await connect()
    await client.watch(topic, {"event": "*", "schema": "public", "table": name})
    sql.execute(f"insert into {name} values (1, 'x')")
    sql.execute(f"update {name} set b = 'y'")
    sql.execute(f"delete from {name}")
    insert, update, delete = [(await client.next("postgres_changes")).payload["data"] for _ in range(3)]
    assert insert["record"] == {"a": 1, "b": "x"}
    assert update["record"] == {"a": 1, "b": "y"} and update["old_record"] == {}
    assert delete["old_record"] == {}


async def test_generated_and_default_columns(connect, hub, sql, name, topic):
    sql.execute(f"""create table {name} (id int generated always as identity primary key, net int,
        gross int generated always as (net * 2) stored, note text default 'none')""")
    hub.watch(name)
    client = await connect()
    await client.watch(topic, {"event": "*", "schema": "public", "table": name, "filter": "gross=gt.10"})
    sql.execute(f"insert into {name} (net) values (5), (6)")
    assert (await client.next("postgres_changes")).payload["data"]["record"] == {"id": 2, "net": 6, "gross": 12, "note": "none"}


async def test_truncate_is_silent(connect, sql, table, topic):
    client = await connect()
    await client.watch(topic, {"event": "*", "schema": "public", "table": table})
    sql.execute(f"insert into {table} values (1)")
    await client.next("postgres_changes")
    sql.execute(f"truncate {table}")
    sql.execute(f"insert into {table} values (2)")
    assert (await client.next("postgres_changes")).payload["data"]["record"]["id"] == 2


async def test_a_rolled_back_change_is_nobodys(connect, sql, table, topic):
    client = await connect()
    await client.watch(topic, {"event": "*", "schema": "public", "table": table})
    sql.execute("begin")
    sql.execute(f"insert into {table} values (1)")
    sql.execute("savepoint s")
    sql.execute(f"insert into {table} values (2)")
    sql.execute("rollback to s")
    sql.execute(f"insert into {table} values (3)")
    sql.execute("commit")
    sql.execute("begin")
    sql.execute(f"insert into {table} values (4)")
    sql.execute("rollback")
    sql.execute(f"insert into {table} values (5)")
    assert [(await client.next("postgres_changes")).payload["data"]["record"]["id"] for _ in range(3)] == [1, 3, 5]


async def test_a_table_that_is_altered_while_watched(hub, sql, table, name):
    """Rows of the new form arrive as they are now, with the new columns; no error and no gap."""
    async with python_client(hub) as client:
        listener = await Listener(client, name).on_changes(schema="public", table=table).subscribe()
        sql.execute(f"insert into {table} values (1, 'old')")
        sql.execute(f"alter table {table} add column extra int default 5, drop column n")
        sql.execute(f"insert into {table} values (2, 'new')")
        sql.execute(f"alter table {table} rename column body to text")
        sql.execute(f"insert into {table} values (3, 'newest')")
        changes = await listener.take(3)
        assert [c["record"] for c in changes] == [
            {"id": 1, "body": "old", "n": None}, {"id": 2, "body": "new", "extra": 5}, {"id": 3, "text": "newest", "extra": 5}]
        assert [column["name"] for column in changes[2]["columns"]] == ["id", "text", "extra"]


async def test_a_table_that_is_dropped_while_watched(hub, sql, table, name):
    """Others go on; its subscribers are told, and served again when it is back and watched."""
    sql.execute(f"create table {name}_other (id int primary key)")
    hub.watch(f"{name}_other")
    async with python_client(hub) as client:
        other = await Listener(client, f"{name}_o").on_changes(schema="public", table=f"{name}_other").subscribe()
        listener = await Listener(client, name).on_changes(schema="public", table=table).subscribe()
        sql.execute(f"insert into {table} values (1)")
        sql.execute(f"drop table {table}")
        assert (await listener.take())[0]["record"]["id"] == 1
        sql.execute(f"insert into {name}_other values (1)")
        await other.take()
        await listener.wait_for_state("CHANNEL_ERROR")
        assert other.states == [("SUBSCRIBED", None)]
        sql.execute(f"create table {table} (id int8 primary key)")
        hub.watch(table)
        listener.systems.clear()
        await eventually(lambda: listener.systems, what="the word that changes flow again")
        sql.execute(f"insert into {table} values (2)")
        # The client may join again only now, and then is brought what it may have ignored until then.
        await eventually(lambda: listener.changes, what="the row")
        assert all(change["data"]["record"] == {"id": 2} for change in listener.changes)


async def test_unwatch(hub, sql, table, name):
    async with python_client(hub) as client:
        listener = await Listener(client, name).on_changes(schema="public", table=table).subscribe()
        hub.run("unwatch", table)
        sql.execute(f"insert into {table} values (1)")
        await listener.wait_for_state("CHANNEL_ERROR")
        assert listener.changes == []


async def test_watching_a_publication(hub, connect, sql, name, topic):
    sql.execute(f"create table {name}_1 (id int primary key); create table {name}_2 (id int primary key)")
    sql.execute(f"create publication {name} for table {name}_1, {name}_2")
    hub.run("watch", "--publication", name)
    again = hub.run("watch", "--publication", name)
    assert again.returncode == 0, "it may be repeated"
    client = await connect()
    for number in (1, 2):
        await client.watch(f"{topic}{number}", {"event": "*", "schema": "public", "table": f"{name}_{number}"})
        sql.execute(f"insert into {name}_{number} values (1)")
        await client.next("postgres_changes", f"{topic}{number}")


async def test_any_role_may_write_a_watched_table(hub, connect, cluster, sql, table, topic):
    """The triggers need nothing of the writer, who knows nothing of the hub."""
    sql.execute(f"do $$ begin create role plain login; exception when duplicate_object then null; end $$; grant all on {table} to plain")
    client = await connect()
    await client.watch(topic, {"event": "*", "schema": "public", "table": table})
    with psycopg.connect(cluster.url("shared", "plain"), autocommit=True) as plain:
        plain.execute(f"insert into {table} values (1)")
        plain.execute(f"update {table} set n = 1")
        plain.execute(f"delete from {table}")
    assert [(await client.next("postgres_changes")).payload["data"]["type"] for _ in range(3)] == ["INSERT", "UPDATE", "DELETE"]
