"""Postgres is upgraded from one major version to another under a hub and its clients; docs/upgrading.md promises what is
counted here."""

import contextlib
import itertools

import pytest

import servers as versions
from members import Members, Writer
from support.deadline import eventually
from support.hub import Hub

SERVERS = versions.servers()
DATABASE = "app"
NEIGHBOURS = list(itertools.pairwise(sorted(SERVERS)))
FIRST_TO_LAST = (min(SERVERS), max(SERVERS))
LAST = 1_000_000


def each(pairs):
    return pytest.mark.parametrize("pair", pairs, ids=lambda pair: f"{pair[0]}_to_{pair[1]}")


@contextlib.contextmanager
def stage(pair, settings="", same_port=True):
    """The old server with a watched table, its hub, and a new server that was never started."""
    with contextlib.ExitStack() as stack:
        old = versions.cluster(pair[0], SERVERS[pair[0]], settings=settings)
        stack.callback(old.remove)
        old.start()
        new = versions.cluster(pair[1], SERVERS[pair[1]], old.port if same_port else None)
        stack.callback(new.remove)
        hub = Hub(old.create_database(DATABASE), ROOST_LOOPS="1")
        stack.callback(hub.remove)
        hub.run("migrate")
        with old.connect(DATABASE) as sql:
            sql.execute("create table t (id int primary key)")
        hub.watch("t")
        writer = Writer(old.url(DATABASE))
        stack.callback(writer.ended.set)
        writer.start()
        yield old, new, hub.start(), writer


async def start(hub):
    hub.start(wait=False)
    hub.wait_until_listening(60)
    await ready(hub)


async def ready(hub):
    await eventually(lambda: hub.ops("/readyz")[0] == 200, 60, lambda: f"ready; the hub says {hub.log[-2000:]}")


async def count(what, new, members, writer):
    """What the clients lack when all is over."""
    await writer.rest()
    with new.connect(DATABASE) as sql:
        sql.execute("insert into t values (%s)", [LAST])
        truth = {row[0] for row in sql.execute("select id from t")}
    await members.have(LAST)
    counts = members.count(truth)
    print(f"\n{what}: {len(truth)} rows,", ", ".join(
        f"{kind}: {found.silent} lost, {found.told} told {sorted(set(found.answers))}" for kind, found in counts.items()))
    return counts


def lost(counts):
    return {kind: found.silent for kind, found in counts.items() if found.silent}


def told(counts):
    return {kind for kind, found in counts.items() if found.told}


async def upgraded(pair, way, hub_stays, writers_wait, all_are_back=False):
    """With writers at rest or not, and with clients that come back before or after."""
    with stage(pair) as (old, new, hub, writer):
        async with Members(hub) as members:
            await writer.write(50)
            await members.have(writer.next - 10)
            await members.cut()
            await writer.write(50)
            if writers_wait:
                await writer.rest()
            if all_are_back:
                await members.come_back()
                await members.level()
            if not hub_stays:
                assert hub.stop() == 0
            way(old, new, DATABASE)
            if hub_stays:
                await ready(hub)
            else:
                await start(hub)
            if not writers_wait or all_are_back:
                await writer.write(50)
            if not (all_are_back and hub_stays):
                await members.come_back()
            await writer.write(50)
            what = [f"{pair[0]} to {pair[1]}", way.__name__, "hub stays" if hub_stays else "hub restarts",
                    "writers wait" if writers_wait else "writers go on", "all are back" if all_are_back else "some are away"]
            return await count(", ".join(what), new, members, writer)


@pytest.mark.parametrize("hub_stays", [True, False], ids=["hub_stays", "hub_restarts"])
@each([*NEIGHBOURS, FIRST_TO_LAST])
async def test_after_pg_upgrade_nobody_lacks_anything(pair, hub_stays):
    counts = await upgraded(pair, versions.by_pg_upgrade, hub_stays, writers_wait=False)
    assert not lost(counts) and not told(counts)


@pytest.mark.parametrize("hub_stays", [True, False], ids=["hub_stays", "hub_restarts"])
@each([FIRST_TO_LAST])
async def test_after_a_dump_who_was_there_lacks_nothing(pair, hub_stays):
    counts = await upgraded(pair, versions.by_dump, hub_stays, writers_wait=True, all_are_back=True)
    assert not lost(counts)


@pytest.mark.parametrize("hub_stays", [True, False], ids=["hub_stays", "hub_restarts"])
@each([FIRST_TO_LAST])
async def test_after_a_dump_who_was_away_is_told_by_cursor(pair, hub_stays):
    """What was missed before the dump is not in the new database's history; only a cursor can tell its client so."""
    counts = await upgraded(pair, versions.by_dump, hub_stays, writers_wait=True)
    assert set(lost(counts)) <= {"returns"} and told(counts) == {"resumes"}


@each([FIRST_TO_LAST])
async def test_after_logical_replication_who_was_there_lacks_nothing(pair):
    with stage(pair, settings="wal_level = logical\n", same_port=False) as (old, new, hub, writer):
        new.start()
        replication = versions.Replication(old, new, DATABASE)
        async with Members(hub) as members:
            await writer.write(50)
            replication.begin("t", hub)
            await members.cut()
            await writer.write(50)
            await writer.rest()
            await members.come_back()
            await members.level()
            assert hub.stop() == 0
            replication.end("t", hub)
            hub.environment["ROOST_DATABASE_URL"] = writer.url = new.url(DATABASE)
            await start(hub)
            await writer.write(50)
            await members.come_back()
            await writer.write(50)
            counts = await count(f"{pair[0]} to {pair[1]}, logical replication", new, members, writer)
    assert not lost(counts)
