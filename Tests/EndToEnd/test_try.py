"""`roost try`: a Postgres as initdb leaves it, prepared by one command, and what that prints, pasted."""

import os
import subprocess

import pytest

from support.hub import BINARY
from support.ports import free_port


@pytest.fixture
def database(plain):
    name = f"try_{free_port()}"
    with plain.connect() as sql:
        sql.execute(f"create database {name}")
    with plain.connect(name) as sql:
        sql.execute("create table public.notes (id int8 primary key, body text)")
        yield plain.url(name), sql


def roost(*arguments, answer="", **variables):
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("ROOST_", "PG"))} | variables
    return subprocess.run([BINARY, *arguments], input=answer, env=environment, capture_output=True, text=True, timeout=60)


def test_what_it_prints_is_all_that_a_hub_needs(database):
    url, sql = database
    done = roost("try", url, "public.notes", answer="y\n")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "grant select on public.notes to authenticated, service_role;" in done.stdout and "schema roost is version" in done.stdout
    exports = dict(line.strip().removeprefix("export ").split("=", 1) for line in done.stdout.splitlines() if "export " in line)
    assert set(exports) == {"ROOST_DATABASE_URL", "ROOST_JWT_SECRET"} and len(exports["ROOST_JWT_SECRET"]) == 64
    assert "roost tail my-channel --table public.notes" in done.stdout
    exports["ROOST_DATABASE_URL"] = exports["ROOST_DATABASE_URL"].strip("'")
    assert roost("doctor", **exports).returncode == 0
    triggers = "select count(*) from pg_trigger where tgrelid = 'public.notes'::regclass and not tgisinternal"
    assert sql.execute(triggers).fetchone() != (0,)
    again = roost("try", "public.notes", "--yes", **exports)
    assert again.returncode == 0 and "export " not in again.stdout and "run no SQL" in again.stdout, again.stdout + again.stderr


@pytest.mark.parametrize("answer", ["", "n\n", "what?\n"])
def test_nothing_is_changed_before_a_yes(database, answer):
    url, sql = database
    asked = roost("try", url, "public.notes", answer=answer)
    assert asked.returncode == 1 and "Nothing was changed" in asked.stderr, asked.stderr
    assert sql.execute("select to_regnamespace('roost')").fetchone() == (None,)


def test_a_table_has_to_be_named(database):
    url, _ = database
    nothing = roost("try", url)
    assert nothing.returncode == 64 and "This database has public.notes." in nothing.stderr, nothing.stderr
    unknown = roost("try", url, "notes.notes", "--yes")
    assert unknown.returncode == 69 and "There is no table notes.notes; did you mean public.notes?" in unknown.stderr, unknown.stderr
