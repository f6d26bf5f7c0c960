"""README.md and docs/tutorial.md as a newcomer follows them: every block is run, in order, on a Postgres as initdb leaves it."""

import os
import sys

import pytest

from support.demo import Demo
from support.hub import ROOT
from support.pages import Reader, blocks
from support.ports import free_port


@pytest.fixture
def reader():
    """Makes readers, who have no variables of ours but the ports: those that the pages name may be taken here."""
    readers = []

    def make(*replaced):
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("ROOST_", "PG", "IOS_LIVE"))}
        environment |= {
            "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}", "ROOST_DRAIN_SECONDS": "1",
            "ROOST_HTTP_PORT": str(free_port()), "ROOST_OPS_PORT": str(free_port())}
        readers.append(Reader(environment, replaced))
        return readers[-1]

    yield make
    for one in readers:
        one.leave()


def test_the_tutorial(reader, plain):
    newcomer = reader(("postgres://postgres:PASSWORD@127.0.0.1:5432/postgres", plain.url()))
    newcomer.follow(ROOT / "docs/tutorial.md")
    assert newcomer.ran > 12 and len(newcomer.skipped) == 1, (newcomer.ran, newcomer.skipped)
    with plain.connect() as sql:
        left = sql.execute(
            "select nspname from pg_namespace where nspname in ('roost', 'realtime', 'auth') union all "
            "select rolname from pg_roles where rolname in ('anon', 'authenticated', 'service_role')").fetchall()
        assert left == [], "what the page says of how to undo it"


def test_your_own_database(reader, plain):
    with plain.connect() as sql:
        sql.execute("create database readme")
    with plain.connect("readme") as sql:
        sql.execute("create table public.messages (id int8 primary key, body text)")
    owner = reader(("postgres://postgres:PASSWORD@db.example.org:5432/postgres", plain.url("readme")))
    owner.follow(ROOT / "README.md", of=["Your own database"])
    assert owner.ran == 3


def test_five_minutes(reader):
    demo = Demo()
    try:
        demo.start()
        visitor = reader(("127.0.0.1:4000", f"127.0.0.1:{demo.port}"))
        visitor.follow(ROOT / "README.md", of=["Five minutes"])
        assert visitor.ran == 4 and len(visitor.skipped) == 1
        visitor.leave()
    finally:
        demo.remove()


def test_every_block_of_the_readme_is_run_or_says_why_not():
    run = {"Your own database", "Five minutes"}
    others = [block for block in blocks(ROOT / "README.md") if block.language in ("sh", "sql") and block.heading not in run]
    assert [block for block in others if not block.directive.startswith("skip, ")] == []
