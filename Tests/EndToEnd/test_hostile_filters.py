"""Filters made to be slow: what is refused, what the worst of those that are let in cost the others, who is told what.

A hub of its own. What was found from outside is attack C1: one subscriber's back-references kept Postgres busy for a
quarter of an hour, and everybody's changes with it.
"""

import asyncio
import json
import statistics
import time

import psycopg
import pytest

from support.bounds import at_most
from support.deadline import eventually
from support.hub import Hub
from support.tokens import token
from support.wsclient import Client

C1 = r"body=match.^(.*)(.*)(.*)(.*)(.*)\1\2\3\4\5$"
ROW = "a" * 300 + "1"


@pytest.fixture(scope="module")
def hub(cluster):
    hub = Hub(cluster.create_database("hostile"), ROOST_LOOPS="2")
    try:
        hub.run("migrate")
        with cluster.connect("hostile") as sql:
            sql.execute("create table notes (id int8 generated always as identity primary key, room int4, body text)")
        hub.watch("public.notes")
        yield hub.start()
    finally:
        hub.remove()


@pytest.fixture
def sql(cluster, hub):
    with cluster.connect("hostile") as connection:
        yield connection


def entry(text):
    return {"event": "INSERT", "schema": "public", "table": "notes", "filter": text}


async def system(client, topic, *filters):
    """What a join for these filters is told."""
    await client.join(topic, [entry(text) for text in filters])
    return (await client.next("system", topic)).payload


def figure(hub, name):
    """Of /metrics."""
    return next(float(line.split()[1]) for line in hub.read_metrics()[1].splitlines() if line.startswith(name))


def sessions(sql):
    return sql.execute(
        "select count(*), coalesce(max(extract(epoch from clock_timestamp() - query_start)), 0)::float8 from pg_stat_activity "
        "where application_name = 'roost filters' and state = 'active'").fetchone()


@pytest.mark.clock
async def test_the_pattern_of_the_attack_is_refused_in_a_sentence(hub, sql):
    async with await Client.connect(hub.port) as eve, await Client.connect(hub.port) as bob:
        told = await system(eve, "realtime:c1", C1)
        assert told["status"] == "error" and told["channel"] == "c1"
        assert told["message"].startswith('the pattern of filter condition "body=match.')
        assert told["message"].endswith(
            "has a back-reference (\\1), which are not served: they can take Postgres for ever")
        for text, reason in (("body=match.(?=.*a)(?=.*b)x", "lookahead"), ("body=imatch.((a{20}){20}){20}", "too large"),
                             ("body=match.***=a", "begins with ***"), ("body=ilike." + "%a" * 100, "more than 20 %"),
                             ("body=eq." + "x" * 5000, "longer than 2048 bytes")):
            topic = f"realtime:{reason.split()[0]}"
            told = await system(eve, topic, text)
            assert told["status"] == "error" and reason in told["message"], told
        await bob.watch("realtime:bob", entry("room=eq.1"))
        with at_most(4, "the rows of somebody else"):
            for _ in range(5):
                sql.execute("insert into notes (room, body) values (1, %s)", [ROW])
                await bob.next("postgres_changes")
        assert not [m for m in await eve.settled() if m.event == "postgres_changes"]
        assert sessions(sql)[0] == 0


async def test_patterns_are_counted_for_each_socket(hub):
    async with await Client.connect(hub.port) as client:
        for channel in range(4):
            await client.join(f"realtime:p{channel}", [entry(f"body=match.a{channel}{n}") for n in range(25)])
        refused = await client.ask("realtime:p4", "phx_join", {"config": {"postgres_changes": [entry("body=ilike.a")]}})
        assert refused.payload["status"] == "error"
        assert "limits.patterns_per_connection" in refused.payload["response"]["reason"]
        await client.join("realtime:p5", [entry("room=eq.1")])


async def latencies(client, sql, rows=40):
    """How long each of some rows took to `client`, in seconds."""
    took = []
    for _ in range(rows):
        began = time.monotonic()
        await asyncio.to_thread(sql.execute, "insert into notes (room, body) values (1, %s)", ["ab c1" * 100])
        took.append((await client.next("postgres_changes")).at - began)
        await asyncio.sleep(0.005)
    return took


@pytest.mark.clock
async def test_others_hardly_notice_a_hundred_subscribers_with_the_worst_that_is_let_in(hub, sql):
    async with await Client.connect(hub.port) as ann:
        await ann.watch("realtime:ann", entry("room=eq.1"))
        await latencies(ann, sql, 10)
        without = await latencies(ann, sql)
        clients = await asyncio.gather(*(Client.connect(hub.port) for _ in range(100)))
        try:
            await asyncio.gather(*(
                client.watch(f"realtime:eve{n}", entry(f"body=match.([^a]*[^b]*[^c]*){{10}}([^a][^b]){{40}}{n:03}"), within=30)
                for n, client in enumerate(clients)))
            # The costly ones are found and ended by the first rows.
            first = await latencies(ann, sql, 80)
            beside = await latencies(ann, sql)
            assert sessions(sql)[1] < 3
            ended = 0
            for client in clients:
                messages = await client.settled()
                assert not [m for m in messages if m.event == "postgres_changes"]
                for message in messages:
                    if message.event == "system" and message.payload["status"] == "error":
                        assert "took too long" in message.payload["message"]
                        ended += 1
            # Whether any ends depends on the machine: a quick one decides them all in time.
            assert not ended or figure(hub, 'roost_filters_ended_total{reason="took_too_long"}') >= ended
        finally:
            await asyncio.gather(*(client.close() for client in clients))
        # The machine may be busy, and more or less so than before: it is looked at on both sides, and one row that was late says
        # nothing. loadtest/bench.sh hostile measures the slowest, in turns.
        calm = max(statistics.median(took) for took in (without, await latencies(ann, sql)))
        first, beside = statistics.median(first), statistics.median(beside)
        print(f"without {calm * 1000:.1f} ms, beside {beside * 1000:.1f} ms, the first rows {first * 1000:.1f} ms; "
              f"{ended} of 100 filters were ended")
        assert beside < max(2 * calm, 0.05)
        assert first < max(5 * calm, 0.3)


async def test_regular_expressions_can_be_turned_off(hub, sql):
    hub.stop()
    hub.environment["ROOST_LIMITS_REGULAR_EXPRESSIONS"] = "false"
    hub.start()
    async with await Client.connect(hub.port) as client:
        told = await system(client, "realtime:off", "body=match.a")
        assert told["status"] == "error" and "limits.regular_expressions" in told["message"]
        await client.watch("realtime:on", entry("body=like.a%"))
        # The hub begins where it stopped, which may be a row or two earlier.
        sql.execute("insert into notes (room, body) values (2, 'abc')")
        assert (await client.next("postgres_changes", where=lambda m: m.payload["data"]["record"]["room"] == 2)).payload["data"]["record"]["body"] == "abc"
