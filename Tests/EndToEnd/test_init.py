"""`roost init`: from a Postgres as initdb leaves it to clients that get rows, and what `roost doctor` says on the way."""

import asyncio
import json

import psycopg
import pytest

from support.hub import BINARY, Hub


@pytest.fixture
def chat(plain):
    """A hub on a database with a table and nothing else; roles that are made go with it."""
    with plain.connect() as sql:
        sql.execute("create database chat")
    with plain.connect("chat") as sql:
        sql.execute("create schema app")
        sql.execute("create table app.notes (id int primary key, body text)")
    hub = Hub(plain.url("chat"))
    hub.run("migrate")
    yield hub
    hub.remove()
    with plain.connect() as sql:
        sql.execute("drop database chat with (force)")
        for role in "anon", "authenticated", "service_role", "roost_hub", "maker":
            sql.execute(f"drop role if exists {role}")


def errors(hub):
    report = json.loads(hub.run("doctor", "--json", check=False).stdout)
    return [finding["message"] for finding in report["findings"] if finding["severity"] == "error"]


async def test_from_a_fresh_postgres_to_the_first_row(chat, plain):
    assert "run `roost init --yes`" in errors(chat)[0]
    printed = chat.run("init").stdout
    assert "create role authenticated nologin noinherit;" in printed and "-- Nothing was run. To run it: roost init --yes" in printed
    assert len(errors(chat)) == 1, "printing changes nothing"
    chat.run("init", "--yes")
    chat.run("watch", "app.notes")
    (unread,) = errors(chat)
    assert "app.notes" in unread and "`roost init app.notes --yes`" in unread
    done = chat.run("init", "app.notes", "--yes").stdout
    assert "grant usage on schema app to authenticated, service_role;" in done and "has no row level security" in done
    assert errors(chat) == []
    assert chat.run("init", "app.notes").stdout.startswith("-- Nothing is missing.\n"), "it can be repeated"
    with plain.connect("chat") as sql:
        listed = sql.execute("select oid::regclass::text from roost.watched").fetchall()
        assert listed == [("app.notes",)], "as docs/supabase.md lists them: what `roost unwatch` takes"

    chat.start()
    tail = await asyncio.create_subprocess_exec(
        BINARY, "tail", "room", "--table", "app.notes", env=chat.environment, cwd=chat.folder, stdout=asyncio.subprocess.PIPE)
    try:
        seen = b""
        with plain.connect("chat") as sql:
            async with asyncio.timeout(30):
                while b"first row" not in seen:
                    line = await tail.stdout.readline()
                    assert line, seen
                    seen += line
                    if b"Subscribed to PostgreSQL" in line:
                        sql.execute("insert into app.notes values (1, 'first row')")
    finally:
        tail.kill()
        await tail.wait()


def test_whoever_may_not_create_roles_gets_the_sql_for_somebody_who_may(chat, plain):
    with plain.connect("chat") as sql:
        sql.execute("create role roost_hub login")
        result = chat.run("init", "app.notes", "--yes", check=False, ROOST_DATABASE_URL=plain.url("chat", "roost_hub"))
        assert result.returncode == 69 and not result.stdout
        sentence, script = result.stderr.split("\n\n", 1)
        assert sentence.startswith("Error: roost_hub may not do this (it lacks CREATEROLE). Have an administrator"), sentence
        assert "grant anon, authenticated, service_role to roost_hub;" in script
        sql.execute(script)
    again = chat.run("init", "app.notes", "--yes", ROOST_DATABASE_URL=plain.url("chat", "roost_hub"))
    assert again.stdout.startswith("-- Nothing is missing.\n"), again.stdout


def test_roles_that_a_role_with_createrole_may_make(chat, plain):
    """All but service_role, which bypasses row level security."""
    with plain.connect("chat") as sql:
        sql.execute("create role maker login createrole")
        url = plain.url("chat", "maker")
        result = chat.run("init", "--yes", check=False, ROOST_DATABASE_URL=url)
        assert result.returncode == 69 and "only a superuser can create a role with BYPASSRLS" in result.stderr
        assert sql.execute("select count(*) from pg_roles where rolname = 'anon'").fetchone() == (0,), "all or nothing"
        sql.execute("create role service_role nologin bypassrls")
    chat.run("init", "--yes", ROOST_DATABASE_URL=url)
    with psycopg.connect(url) as maker:
        maker.execute("set role authenticated")


def test_a_hub_with_a_role_of_its_own(chat, plain):
    with plain.connect("chat") as sql:
        sql.execute("create role roost_hub login")
        chat.run("init", "--hub-role", "roost_hub", "--yes")
        assert sql.execute("select pg_has_role('roost_hub', 'service_role', 'member')").fetchone() == (True,)
    nobody = chat.run("init", "--hub-role", "nobody", check=False)
    assert nobody.returncode == 69 and "There is no role nobody" in nobody.stderr


@pytest.mark.parametrize("table, said", [("app.nothing", "There is no table app.nothing"), ("a.b.c.d", "is not a table's name")])
def test_a_table_that_is_none(chat, table, said):
    result = chat.run("init", table, "--yes", check=False)
    assert result.returncode == 69 and said in result.stderr
