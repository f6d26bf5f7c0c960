"""After a restart everybody goes on where it was itself: who was lost holds nobody else back, and nobody is sent rows from before it
first came."""

import asyncio
import contextlib
import os

import pytest

from support.deadline import eventually
from support.returning import Returning, Rows, in_order
from support.websocket import Refused

#: Restarts of each kind; the issue's proof is ROOST_E2E_RESTARTS=5.
RESTARTS = int(os.environ.get("ROOST_E2E_RESTARTS", "2"))

#: How many keys of these hubs stand, as it is written down, where they would be brought a row again; those that are known to be lost are
#: left out. A hub whose list does not count is one more. Whoever proves nothing for a while stands behind those who follow (docs/recovery.md).
UNPROVEN = """
    with row as (select xmin::text::xid8 as writer from t where id = %(row)s)
    select count(*) from row, roost.cursor c
    left join roost.session_list l on l.node = c.node and l.turn = c.list_turn
    left join roost.session s on s.node = c.node
    where (%(nodes)s::text[] is null or c.node = any (%(nodes)s)) and (l.node is null or s.key is not null and s.lost_at is null
        and not coalesce(pg_visible_in_snapshot(writer, s.place) or s.follows and pg_visible_in_snapshot(writer, l.proven), false))"""


@pytest.fixture
def table(own_hub, cluster):
    with cluster.connect(own_hub.database) as sql:
        sql.execute("create table t (id int primary key)")
        own_hub.watch("t")
        own_hub.start()
        yield sql


async def come_back(client):
    """As clients do: again and again until it works."""
    for _ in range(200):
        try:
            return await client.enter()
        except (OSError, AssertionError, asyncio.IncompleteReadError, TimeoutError, Refused):
            await asyncio.sleep(0.1)
    raise AssertionError("the hub does not come back")


async def come_late(late, others, count, first, owed):
    """Clients join for the first time while rows are written. From `first` on rows may come to them, and after `owed` they have to."""
    for one in late:
        # Behind what the feed has brought others already it does not begin again. It is as exact as its marks, which are 20 ms apart
        # and made with the next rows: half a second of rows is not looked at, and these come after what a busy machine held up.
        known = count()
        for other in others:
            await other.has([known])
        await one.hub.settled()
        after = count()
        await eventually(lambda: count() > after)
        for other in others:
            await other.has([after + 1])
        first[one] = known - 10
        await one.enter()
        # One more may be committed already that is not counted yet.
        owed[one] = count() + 1


async def have_proven(sql, row, but=0, nodes=None):
    """Waits until all but so many who are here would not be brought this row again, at these hubs or all."""
    def count():
        return sql.execute(UNPROVEN, {"row": row, "nodes": nodes}).fetchone()[0]
    await eventually(lambda: count() <= but, 60, lambda: f"{count()} are written down where they lack row {row}")


async def restart(hub, ending, clients):
    await asyncio.to_thread(getattr(hub, ending))
    for client in clients:
        with contextlib.suppress(OSError):
            await client.cut()
    hub.start()
    await asyncio.gather(*map(come_back, clients))


@pytest.mark.parametrize("ending", ["stop", "kill"])
async def test_a_restart_repeats_what_was_not_proven_and_nothing_from_before_a_first_join(own_hub, table, ending):
    rows = Rows(own_hub.environment["ROOST_DATABASE_URL"], "t", rate=20)

    def client(number):
        return Returning(own_hub, f"realtime:room:{number % 5}", "t", 1 + number % 2, sub=f"user {number}")

    def count():
        return rows.committed[-1] if rows.committed else 0
    stay, lost = [client(number) for number in range(30)], [client(number) for number in range(30, 40)]
    late = [client(number) for number in range(40, 50)]
    first, owed = {one: 0 for one in stay + lost}, {one: 0 for one in stay}
    for one in stay + lost:
        await one.enter()
    rows.start()
    await eventually(lambda: count() >= 40)
    for one in lost:
        await one.cut()
    gone = count()
    here = stay + late
    repeats = []
    for turn in range(RESTARTS):
        if turn == 0:
            await come_late(late, stay, count, first, owed)
        # Those who are here prove it every few seconds, whatever the lost ones lack. A restart is no reason to begin anew with it.
        known = count()
        await have_proven(table, known, but=len(lost))
        got = count()
        await eventually(lambda: count() >= got + 20)
        for one in here:
            await one.has([got + 20])
        # At its end a hub asks once more.
        kept = got if ending == "stop" else known
        before = {one: (len(one.ids), set(one.ids)) for one in here}
        at = count()
        await restart(own_hub, ending, here)
        then = count()
        await eventually(lambda: count() >= then + 20)
        again = []
        for one in here:
            await one.has([then + 20])
            length, old = before[one]
            again += [number for number in one.ids[length:] if number in old]
        oldest = min(again, default=at)
        repeats.append(f"{len(again)} repeats for {len(here)} clients, the oldest {at - oldest} rows old of {at}, {at - kept} not proven")
        assert oldest > kept, f"what was proven came again: {repeats}"
    committed = await rows.stop()
    for one in here:
        assert in_order(one.ids)
        assert min(one.ids) >= first[one], "rows from before its first join"
        await one.has([number for number in committed if number > owed[one]], 40)
    # Who was lost is brought all of it, by the third process yet.
    for one in lost:
        await one.enter()
        await one.has([number for number in committed if number > gone], 40)
    early = sum(number < first[one] for one in here for number in one.ids)
    print("", *(f"{ending} {turn + 1}: {line}" for turn, line in enumerate(repeats)), f"{early} rows from before a first join", sep="\n")
    for one in here + lost:
        await one.close()
