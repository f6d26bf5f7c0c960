"""Clients whose hubs end go on at other hubs where they were themselves: nothing is lost, and nothing comes from before they first came."""

import asyncio
import contextlib
import itertools
import os

import pytest

from support.deadline import eventually
from support.redis import Redis
from support.returning import Returning, Rows, in_order
from test_cluster import Hubs
from test_recovery_places import come_back, come_late, have_proven

#: Restarts of all hubs of each kind.
RESTARTS = int(os.environ.get("ROOST_E2E_RESTARTS", "1"))

_numbers = itertools.count(1)

#: How many sessions all hubs keep.
KEPT = "select sum(sessions) from roost.session"

COMPLETE = """
    select count(*) from roost.session_list l join roost.cursor c using (node) where l.turn = c.list_turn and node = any (%s)"""


@pytest.fixture(scope="module")
def redis():
    with Redis() as redis:
        yield redis


@pytest.fixture
def hubs(cluster, redis):
    name = f"moving_{next(_numbers)}"
    hubs = Hubs(cluster.create_database(name), redis, ROOST_FEED_SESSIONS_PER_USER="10")
    try:
        with cluster.connect(name) as sql:
            sql.execute("create table t (id int primary key)")
            hubs.all[0].watch("t")
            hubs.start()
            hubs.sql = sql
            yield hubs
    finally:
        hubs.remove()


#: How often it was said that a list does not count.
TURNS = "select sum(list_turn) from roost.cursor"


def names(those):
    return [hub.environment["ROOST_NODE_NAME"] for hub in those]


async def are_listed(hubs, those):
    """Waits until it is known of each of these hubs whom it serves: of one that took long to write it down, others bring everybody all
    that may be missing (docs/recovery.md)."""
    await eventually(
        lambda: hubs.sql.execute(COMPLETE, [names(those)]).fetchone()[0] == len(those), 60, "complete lists of sessions")


def groups(hubs, way):
    """Which hubs end together."""
    return [hubs.all] if way == "at once" else [[hub] for hub in hubs.all]


async def restart(hubs, ending, those, clients):
    """They end, their clients go to others, and they are started again. Who moved, and whether the lists of all hubs counted until all were
    back: a hub that takes long to write somebody down ends that of its own (docs/recovery.md)."""
    turns = hubs.sql.execute(TURNS).fetchone()
    ends = [asyncio.to_thread(getattr(hub, ending)) for hub in those]
    await asyncio.gather(*ends)
    counted = hubs.sql.execute(COMPLETE, [names(hubs.all)]).fetchone()[0] == len(hubs.all)
    moving = [client for client in clients if client.hub in those]
    others = [hub for hub in hubs.all if hub not in those]
    for number, client in enumerate(moving):
        with contextlib.suppress(OSError):
            await client.cut()
        at = hubs.all.index(client.hub)
        client.hub = others[number % len(others)] if others else hubs.all[(at + 1) % len(hubs.all)]
    if not others:
        for hub in those:
            hub.start(wait=False)
    await asyncio.gather(*map(come_back, moving))
    for hub in those if others else []:
        hub.start(wait=False)
    await asyncio.to_thread(hubs.wait_until_whole, within=60)
    return moving, counted and hubs.sql.execute(TURNS).fetchone() == turns


@pytest.mark.parametrize("way", ["one by one", "at once"])
@pytest.mark.parametrize("ending", ["stop", "kill"])
async def test_a_restart_of_all_hubs_repeats_what_was_not_proven_and_nothing_from_before_a_first_join(hubs, ending, way):
    rows = Rows(hubs.all[0].environment["ROOST_DATABASE_URL"], "t", rate=20)

    def client(number, at=None):
        hub = hubs.all[number % 3 if at is None else at]
        return Returning(hub, f"realtime:room:{number % 5}", "t", 1 + number % 2, sub=f"user {number}")

    def count():
        return rows.committed[-1] if rows.committed else 0
    stay, lost = [client(number) for number in range(18)], [client(number, at=0) for number in range(18, 24)]
    late = [client(number) for number in range(24, 30)]
    first, owed = {one: 0 for one in stay + lost}, {one: 0 for one in stay}
    for one in stay + lost:
        await one.enter()
    rows.start()
    await eventually(lambda: count() >= 40)
    for one in lost:
        await one.cut()
    gone = count()
    here, report = stay + late, []
    #: What a client had proven when it moved for the first time, where its hub was killed; else when it moved last. A hub that is killed
    #: does not say when it lost its clients, so that they cannot claim what it keeps of them (docs/recovery.md).
    kept = {}
    always_counted = True
    for turn in range(RESTARTS):
        if turn == 0:
            await come_late(late, stay, count, first, owed)
        for those in groups(hubs, way):
            known = count()
            moving = [one for one in here if one.hub in those]
            if ending == "stop" or any(one not in kept for one in moving):
                await have_proven(hubs.sql, known, nodes=names({one.hub for one in moving}))
            got = count()
            await eventually(lambda: count() >= got + 20)
            for one in here:
                await one.has([got + 20])
                if one.hub in those and (ending == "stop" or one not in kept):
                    kept[one] = known
            if ending == "stop":
                # Where they were before, nothing is kept of them.
                await eventually(
                    lambda: hubs.sql.execute(KEPT).fetchone()[0] <= len(here + lost), 60,
                    lambda: f"{hubs.sql.execute(KEPT).fetchone()[0]} sessions of {len(here + lost)} clients")
            before = {one: (len(one.ids), set(one.ids)) for one in here}
            at = count()
            moved, counted = await restart(hubs, ending, those, here)
            always_counted &= counted
            then = count()
            await eventually(lambda: count() >= then + 20)
            again = []
            for one in here:
                await one.has([then + 20])
                length, old = before[one]
                mine = [number for number in one.ids[length:] if number in old]
                again += mine
                # Where a list did not count when its hub was killed, all is brought that may be missing.
                if counted:
                    assert min(mine, default=at) > kept.get(one, 0), f"what was proven came again to {one.sub}: {mine[:5]}"
            oldest = min(again, default=at)
            report.append(
                f"{len(again)} repeats for {len(moved)} clients that moved, the oldest {at - oldest} rows old of {at}"
                f"{'' if counted else ', and a list that did not count'}")
    committed = await rows.stop()
    for one in here:
        assert in_order(one.ids)
        if always_counted:
            assert min(one.ids) >= first[one], "rows from before its first join"
        await one.has([number for number in committed if number > owed[one]], 40)
    for number, one in enumerate(lost):
        one.hub = hubs.all[1 + number % 2]
        await one.enter()
        await one.has([number for number in committed if number > gone], 40)
    print("", *(f"{ending}, {way}: {line}" for line in report), sep="\n")
    for one in here + lost:
        await one.close()


@pytest.mark.parametrize("is_killed", [False, True])
async def test_whose_session_gave_way_on_one_hub_is_brought_what_it_missed_by_another(hubs, is_killed):
    """Ten sessions are kept of one user: of the others it is known from where on they are owed rows, on every hub."""
    sql = hubs.sql
    away = [Returning(hubs.all[0], f"realtime:room:{number}", "t", sub="ann") for number in range(30)]
    sql.execute("insert into t select generate_series(1, 20)")
    for number, one in enumerate(away):
        await one.enter()
        sql.execute("insert into t values (%s)", [100 + number])
        await one.has([100 + number])
        await one.settled()
        await one.cut()
    await eventually(lambda: hubs.all[0].metric("roost_sessions_given_way_total") >= 20)
    sql.execute("insert into t select generate_series(201, 220)")
    if is_killed:
        await are_listed(hubs, hubs.all[:1])
        # It writes down within a second what gave way; until then its list still names the session.
        hubs.all[0].kill()
    for number in (0, 10, 29):
        one = away[number]
        one.hub = hubs.all[1 + number % 2]
        await one.enter()
        await one.has(range(201, 221))
        await one.close()
    # Somebody else is brought nothing old.
    await are_listed(hubs, hubs.all)
    other = Returning(hubs.all[1], "realtime:room:0", "t", sub="bob")
    await other.enter()
    sql.execute("insert into t values (300)")
    await other.has([300])
    assert other.ids == [300]
    await other.close()
