"""Rows that are read beside writers: nothing is missing between them and what comes live, and nothing comes twice."""

import asyncio
import contextlib
import json
import os
import random
import re
import threading
import time

import psycopg
import pytest

from support.deadline import eventually
from support.rows import TOPIC, begin, binding
from support.tokens import token

pytestmark = pytest.mark.anyio
both_captures = pytest.mark.parametrize("capture", ["triggers", "wal"])

#: How many joins begin with rows beside writers; 10,000 take half an hour: ROOST_ROWS_JOINS=10000
JOINS = int(os.environ.get("ROOST_ROWS_JOINS", 200))
#: The rows of a large table, and how often some of them are read: ROOST_ROWS_SIZE=10000000 ROOST_ROWS_SAMPLES=2000
SIZE, SAMPLES = int(os.environ.get("ROOST_ROWS_SIZE", 100_000)), int(os.environ.get("ROOST_ROWS_SAMPLES", 50))
#: Rounds of twelve users, and the seed of their filters.
ROUNDS, SEED = int(os.environ.get("ROOST_ROWS_ROUNDS", 6)), int(os.environ.get("ROOST_ROWS_SEED", 1))


@pytest.fixture
def table(own_hub, cluster, capture):
    own_hub.environment["ROOST_FEED_CAPTURE"] = capture
    with cluster.connect(own_hub.database) as sql:
        sql.execute("create table t (id int primary key, room int not null, body text, at timestamptz default now())")
        own_hub.watch("t")
        own_hub.start()
        yield sql


class Churn(threading.Thread):
    """Writes without end, in transactions of which some stay open for long, and rolls some back."""

    def __init__(self, url, number, is_over):
        super().__init__(daemon=True)
        self.url, self.number, self.is_over, self.failure = url, number, is_over, None
        self.commits = 0

    def run(self):
        try:
            chance = random.Random(self.number)
            with psycopg.connect(self.url) as sql:
                key = self.number * 1_000_000
                while not self.is_over.is_set():
                    for _ in range(chance.randint(1, 5)):
                        what, one = chance.random(), self.number * 1_000_000 + chance.randint(0, 60)
                        if what < 0.4:
                            sql.execute("insert into t values (%s, %s, 'new') on conflict (id) do nothing", [one, one % 4])
                        elif what < 0.8:
                            key += 1
                            sql.execute("update t set body = %s, room = %s where id = %s", [str(key), chance.randint(0, 3), one])
                        else:
                            sql.execute("delete from t where id = %s", [one])
                    # One in twenty stays open for as long as several joins take.
                    time.sleep(chance.random() * (0.5 if chance.random() < 0.05 else 0.01))
                    if chance.random() < 0.1:
                        sql.rollback()
                    else:
                        sql.commit()
                        self.commits += 1
        except BaseException as failure:  # shown by the test
            self.failure = failure


@contextlib.contextmanager
def churning(url, count=4):
    is_over = threading.Event()
    writers = [Churn(url, number, is_over) for number in range(count)]
    for writer in writers:
        writer.start()
    try:
        yield writers
    finally:
        is_over.set()
        for writer in writers:
            writer.join(60)
    assert [writer.failure for writer in writers if writer.failure] == []


@both_captures
async def test_nothing_is_missing_between_the_rows_and_what_is_live(own_hub, table, capture):
    """Many joins, each beside writers whose transactions are open while it reads: what it makes of all that comes is what a SELECT
    shows in the end. With triggers nothing comes twice (docs/rows.md)."""
    url = own_hub.environment["ROOST_DATABASE_URL"]
    joined = snapshots = commits = twice = 0
    while joined < JOINS:
        count = min(40, JOINS - joined)
        with churning(url) as writers:
            clients = []
            while len(clients) < count:
                batch = [begin(own_hub, [{"table": "t", "limit": 1000}], topic=f"{TOPIC}:{n}") for n in range(10)]
                clients += await asyncio.gather(*batch)
                await asyncio.sleep(0)
            # What comes live has come for a while.
            seen = sum(writer.commits for writer in writers)
            await eventually(lambda: sum(writer.commits for writer in writers) > seen + 20, what="the writers to go on")
        await asyncio.to_thread(own_hub.settle)
        wanted = dict(table.execute("select id, to_json(t) from t").fetchall())
        for client, fold, _ in clients:
            await client.settled()
            assert fold.report and not fold.errors
            if capture == "wal":
                # The barrier knows nothing of what the WAL has yet to bring.
                await eventually(lambda: fold.rows == wanted, what=lambda: differences(fold.rows, wanted))
            assert fold.rows == wanted, differences(fold.rows, wanted)
            assert capture == "wal" or not fold.twice, "rows that the snapshot had came again as inserts"
            twice += len(fold.twice)
            await client.close()
        joined += len(clients)
        snapshots += sum(fold.snapshots for _, fold, _ in clients)
        commits += sum(writer.commits for writer in writers)
    print(f"{capture}: {joined} joins, {snapshots} rows, {twice} of them twice, beside {commits} commits")


def differences(rows, wanted):
    return {
        "missing": sorted(wanted.keys() - rows.keys()), "too many": sorted(rows.keys() - wanted.keys()),
        "other": [(rows[key], wanted[key]) for key in rows.keys() & wanted.keys() if rows[key] != wanted[key]][:3]}


FILTERS = [
    "room=eq.{n}", "room=neq.{n}", "room=in.({n},3)", "room=not.in.({n})", "id=gt.{big}", "id=lte.{big}", "room=gt.{n},id=lt.{big}",
    "body=like.%{n}", "body=ilike.%{n}%", "body=match.^[0-{n}]", "body=is.null", "body=not.is.null", "room=isdistinct.{n}", ""]


@both_captures
async def test_what_each_has_is_what_a_select_shows_it(own_hub, cluster, capture):
    """Random filters and users under policies by membership, which changes: the rows that a user begins with are a SELECT's as
    its role, and what it makes of what follows, too."""
    chance = random.Random(SEED)
    own_hub.environment["ROOST_FEED_CAPTURE"] = capture
    with cluster.connect(own_hub.database) as sql:
        sql.execute("""
            create table member (who text, room int, primary key (who, room));
            create table t (id int primary key, room int not null, body text);
            alter table t enable row level security;
            create policy members on t for select to authenticated
                using (room in (select m.room from member m where m.who = current_setting('request.jwt.claims', true)::json ->> 'sub'));
            insert into member select 'user' || w, r from generate_series(0, 4) w, generate_series(0, 3) r where (w + r) % 3 > 0;
            insert into t select n, n % 4, nullif((n * 7 % 10)::text, '3') from generate_series(1, 200) n""")
        own_hub.run("watch", "t", "--no-scope")
        own_hub.start()
        for round in range(ROUNDS):
            clients = []
            for n in range(12):
                user = f"user{chance.randrange(5)}"
                text = chance.choice(FILTERS).format(n=chance.randrange(4), big=chance.randrange(200))
                wanted = [{"table": "t", "filter": text, "limit": 1000}]
                clients.append((user, text, *await begin(
                    own_hub, wanted, [binding(filter=text)], topic=f"{TOPIC}:{round}:{n}", apikey=token(sub=user))))
            for user, text, _, fold, _ in clients:
                await fold.has_begun.wait()
                assert not fold.errors, (text, fold.errors)
                assert fold.rows == shown(sql, user, text), (user, text)
            # Rooms stay: a row that leaves a filter is told as what it became, and by no DELETE.
            for _ in range(30):
                sql.execute("insert into t values (%s, %s, %s)", [
                    1000 + round * 100 + _, chance.randrange(4), chance.choice(["1", "2", None])])
            await asyncio.to_thread(own_hub.settle)
            for user, text, client, fold, _ in clients:
                # What changed since its rows were read may still be on its way to it.
                await eventually(lambda: fold.rows == shown(sql, user, text), what=f"{user}, {text}")
                assert capture == "wal" or not fold.twice
                await client.close()
            # All that a user may see is less than may be asked for.
            sql.execute("delete from t where id >= 1000")
            who, room = f"user{chance.randrange(5)}", chance.randrange(4)
            if not sql.execute("delete from member where who = %s and room = %s", [who, room]).rowcount:
                sql.execute("insert into member values (%s, %s)", [who, room])


def shown(sql, user, text):
    """What a SELECT shows a user of a filter's rows, as PostgREST would run it."""
    claims = json.dumps({"role": "authenticated", "sub": user})
    with sql.transaction(force_rollback=True):
        sql.execute("select set_config('request.jwt.claims', %s, true)", [claims])
        sql.execute("set local role authenticated")
        return dict(sql.execute(f"select id, row_to_json(t) from t where {where(text)}").fetchall())


def where(text):
    """The filter as SQL, written down once more for the tests."""
    conditions = []
    for part in re.split(r",(?![^(]*\))", text) if text else []:
        column, rest = part.split("=", 1)
        negated = rest.startswith("not.")
        operator, value = rest.removeprefix("not.").split(".", 1)
        word = {"eq": "=", "neq": "<>", "gt": ">", "gte": ">=", "lt": "<", "lte": "<=", "like": "like", "ilike": "ilike", "match": "~",
                "is": "is", "isdistinct": "is distinct from", "in": "in"}[operator]
        literal = value if operator in ("is", "in") else "'" + value + "'"
        conditions.append(f"{'not' if negated else ''} ({column} {word} {literal})")
    return " and ".join(conditions) or "true"


@pytest.mark.parametrize("capture", ["triggers"])
async def test_fifty_rows_of_a_large_table(own_hub, table):
    """What it takes from a join to its rows, beside commits; the figures are in docs/rows.md."""
    table.execute("insert into t select n, n %% 1000, 'row ' || n from generate_series(1, %s) n", [SIZE])
    table.execute("create index on t (room, id)")
    table.execute("analyze t")
    is_over = threading.Event()
    writer = threading.Thread(target=write_steadily, args=(own_hub.environment["ROOST_DATABASE_URL"], is_over), daemon=True)
    writer.start()
    times = []
    try:
        for n in range(SAMPLES):
            room = n % 1000
            began = time.monotonic()
            client, fold, _ = await begin(
                own_hub, [{"table": "t", "filter": f"room=eq.{room}", "order": "id.desc", "limit": 50}],
                [binding(filter=f"room=eq.{room}")], topic=f"{TOPIC}:{n}", apikey=token(sub=f"user{n}"))
            await fold.has_begun.wait()
            times.append(time.monotonic() - began)
            assert fold.report["rows"][0]["count"] == min(50, SIZE // 1000)
            await client.close()
    finally:
        is_over.set()
        writer.join(60)
    times.sort()
    print(f"{SAMPLES} connections, joins and 50 rows of {SIZE}: p50 {times[len(times) // 2] * 1000:.1f} ms, "
          f"p99 {times[len(times) * 99 // 100] * 1000:.1f} ms")


def write_steadily(url, is_over):
    """500 commits a second, or as many as the machine has time for."""
    with psycopg.connect(url, autocommit=True) as sql:
        number = 100_000_000
        due = time.monotonic()
        while not is_over.is_set():
            number += 1
            sql.execute("insert into t values (%s, %s, 'new')", [number, number % 1000])
            due = max(due + 0.002, time.monotonic() - 0.1)
            time.sleep(max(0, due - time.monotonic()))
