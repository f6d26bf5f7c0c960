"""The hub is killed, restarted or one of two, and every client still gets every row."""

import asyncio
import contextlib

import pytest

from support.hub import Hub
from support.pypi import Listener, python_client
from support.returning import Returning, Rows, in_order


@pytest.fixture
def table(own_hub, cluster):
    with cluster.connect(own_hub.database) as sql:
        sql.execute("create table t (id int primary key)")
        own_hub.watch("t")
        own_hub.start()
        yield sql


async def come_back(client):
    """As clients do: again and again until it works."""
    for attempt in range(100):
        try:
            return await client.enter()
        except (OSError, AssertionError, asyncio.IncompleteReadError, TimeoutError):
            await asyncio.sleep(0.1)
    raise AssertionError("the hub does not come back")


@pytest.mark.parametrize("ending", ["kill", "stop"])
async def test_every_row_arrives_although_the_hub_ends(own_hub, table, ending):
    clients = [Returning(own_hub, f"realtime:room:{number % 3}", "t", 1 + number % 2, sub=f"user {number}")
               for number in range(20)]
    for client in clients:
        await client.enter()
    rows = Rows(own_hub.environment["ROOST_DATABASE_URL"], "t", rate=500)
    async with python_client(own_hub) as packaged:
        listener = await Listener(packaged, "packaged").on_changes(schema="public", table="t").subscribe()
        rows.start()
        for _ in range(3):
            await asyncio.sleep(0.7)
            # What is on the way to some of them at that moment is never read.
            for client in clients[::3]:
                client.client.socket.writer.transport.pause_reading()
            await asyncio.to_thread(getattr(own_hub, ending))
            for client in clients:
                with contextlib.suppress(OSError):
                    await client.cut()
            await asyncio.sleep(0.2)
            own_hub.start()
            await asyncio.gather(*map(come_back, clients))
        committed = await rows.stop()
        for client in clients:
            await client.has(committed)
            assert in_order(client.ids)
            await client.close()

        def missing():
            return set(committed) - {change["data"]["record"]["id"] for change in listener.changes}
        async with asyncio.timeout(30):
            while missing():
                await asyncio.sleep(0.05)
    repeats = sum(len(client.ids) for client in clients) - len(clients) * len(committed)
    print(f"\n{len(committed)} rows, 3 × {ending}, {len(clients)} raw clients and the one of PyPI: lost 0, "
          f"repeats {repeats}")


async def test_a_hub_that_was_away_for_a_while_brings_what_happened_meanwhile(own_hub, table):
    client = Returning(own_hub, "realtime:r", "t")
    await client.enter()
    table.execute("insert into t select generate_series(1, 10)")
    await client.has(range(1, 11))
    await asyncio.to_thread(own_hub.kill)
    await client.cut()
    table.execute("insert into t select generate_series(11, 5000)")
    own_hub.start()
    # It does not come at once: the hub has read all of this before there was anybody to hear it.
    await asyncio.sleep(1.5)
    table.execute("insert into t select generate_series(5001, 5010)")
    await client.enter()
    await client.has(range(1, 5011))
    assert in_order(client.ids)
    await client.close()


async def test_two_hubs_on_one_database_go_their_own_ways(own_hub, table):
    other = Hub(own_hub.environment["ROOST_DATABASE_URL"], ROOST_NODE_NAME="other")
    try:
        other.start()
        here = Returning(own_hub, "realtime:r", "t", sub="here")
        there = Returning(other, "realtime:r", "t", sub="there")
        await here.enter()
        await there.enter()
        rows = Rows(own_hub.environment["ROOST_DATABASE_URL"], "t", rate=400)
        rows.start()
        await asyncio.sleep(0.5)
        await asyncio.to_thread(own_hub.kill)
        await here.cut()
        await asyncio.sleep(0.5)
        await there.cut()
        await asyncio.sleep(0.2)
        await there.enter()
        own_hub.start()
        await here.enter()
        await asyncio.sleep(0.3)
        committed = await rows.stop()
        await here.has(committed)
        await there.has(committed)
        assert in_order(here.ids) and in_order(there.ids)
        # A cursor holds on either of them.
        third = Returning(other, "realtime:r", "t", sub="third")
        place = len(here.frames) // 2
        assert (await third.enter(resume={"cursor": here.frames[place]["cursor"]}))["resumed"] is True
        await third.has(range(here.ids[place] + 1, committed[-1] + 1))
        assert third.ids == list(range(here.ids[place] + 1, committed[-1] + 1))
        for client in (here, there, third):
            await client.close()
    finally:
        other.remove()
