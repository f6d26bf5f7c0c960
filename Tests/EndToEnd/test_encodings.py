"""Databases that are not in UTF-8: nothing that Roost sends has a character they lack, and no byte of theirs stops the feed."""

import itertools

import pytest

from support.hub import ROOT, Hub
from support.wsclient import Client

_numbers = itertools.count(1)

#: Of an encoding: SQL for a text, and what clients are shown of it. The last two have no place in UTF-8.
TEXTS = [
    ("LATIN1", r"E'caf\351'", "café"),
    ("SQL_ASCII", r"E'caf\351'", "caf\ufffd"),
    ("WIN1252", "'caf' || chr(129)", "caf\ufffd"),
]


@pytest.fixture
def in_encoding(cluster):
    hubs = []

    def make(encoding, **settings):
        name = f"encoded{next(_numbers)}"
        with cluster.connect() as sql:
            sql.execute(f"create database {name} encoding '{encoding}' template template0 lc_collate 'C' lc_ctype 'C'")
        hubs.append(Hub(cluster.url(name), **settings))
        hubs[-1].run("migrate")
        return hubs[-1], name
    try:
        yield make
    finally:
        for hub in hubs:
            hub.remove()


def test_sql_is_ascii_for_databases_that_lack_a_character():
    for path in (ROOT / "Sources").rglob("*.sql"):
        assert path.read_bytes().isascii(), path


@pytest.mark.parametrize("capture", ["triggers", "wal"])
@pytest.mark.parametrize("encoding, text, shown", TEXTS)
async def test_rows_go_on(cluster, in_encoding, encoding, text, shown, capture):
    hub, database = in_encoding(encoding, ROOST_FEED_CAPTURE=capture)
    with cluster.connect(database) as sql:
        sql.execute("create table t (id int primary key, x text); create table other (id int primary key)")
        sql.execute("grant select on t, other to authenticated")
        hub.watch("t")
        hub.watch("other")
        hub.start()
        async with await Client.connect(hub.port) as client:
            await client.watch("realtime:room", {"event": "*", "schema": "public"})
            sql.execute(f"insert into t values (1, {text})")
            sql.execute("insert into other values (1)")
            sql.execute("update t set x = 'fine'")
            seen = [(await client.next("postgres_changes")).payload["data"] for _ in range(3)]
        assert [(change["type"], change["record"]) for change in seen] == [
            ("INSERT", {"id": 1, "x": shown}), ("INSERT", {"id": 1}), ("UPDATE", {"id": 1, "x": "fine"})]
    assert hub.metric("roost_feed_connections_total") == 1


async def test_names_that_are_not_ascii_are_read_beside_bytes_without_a_character(in_encoding, cluster):
    hub, database = in_encoding("WIN1252", ROOST_FEED_CAPTURE="wal")
    with cluster.connect(database) as sql:
        sql.execute('create table t (id int primary key, x text); create table other (id int primary key, "größe" text)')
        sql.execute("grant select on t, other to authenticated")
        hub.watch("t")
        hub.watch("other")
        hub.start()
        async with await Client.connect(hub.port) as client:
            await client.watch("realtime:room", {"event": "*", "schema": "public"})

            async def shown(statement):
                sql.execute(statement)
                return (await client.next("postgres_changes", within=60)).payload["data"]["record"]

            assert await shown("insert into other values (1, 'é')") == {"id": 1, "größe": "é"}
            # The session that has bytes in place of characters, the one that has characters again, and so on.
            for number in 1, 2:
                assert await shown(f"insert into t values ({number}, 'é' || chr(129))") == {"id": number, "x": "\ufffd\ufffd"}
                assert await shown(f"insert into t values (-{number}, 'é')") == {"id": -number, "x": "é"}
                assert await shown(f"update other set id = id + 1") == {"id": number + 1, "größe": "é"}
