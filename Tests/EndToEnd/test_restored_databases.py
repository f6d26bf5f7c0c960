"""The database becomes another one under a hub that lives: what was written since reaches everybody, and clients that say
where they were are told where that is no place any more."""

import asyncio

import pytest

from support.cluster import Cluster
from support.hub import Hub
from support.returning import Returning


@pytest.fixture
def clusters():
    """The one that the hub works with, and another."""
    made = [Cluster(), Cluster()]
    for cluster in made:
        cluster.start()
    yield made
    for cluster in made:
        cluster.remove()


async def reason(hub, cursor, number):
    """Why a cursor is refused."""
    client = Returning(hub, "realtime:r", "t", sub=f"resumes {number}")
    response = await client.enter(resume={"cursor": cursor})
    await client.close()
    assert response["resumed"] is False, response
    return response["reason"]


async def come_back(client):
    """As clients do: again and again until it works."""
    for _ in range(100):
        try:
            return await client.enter()
        except (OSError, AssertionError, asyncio.IncompleteReadError, TimeoutError):
            await asyncio.sleep(0.1)
    raise AssertionError("the hub does not come back")


async def test_a_dump_and_a_copy_of_files_under_a_living_hub(clusters):
    first, second = clusters
    hub = Hub(first.create_database("app"))
    live, away, cursors = Returning(hub, "realtime:r", "t", sub="live"), Returning(hub, "realtime:r", "t", sub="away"), []
    try:
        hub.run("migrate")
        with first.connect("app") as sql:
            sql.execute("create table t (id int primary key)")
            hub.watch("t")
            # So that the new server's transactions have lower numbers.
            sql.execute("do $$ begin for i in 1..4000 loop perform pg_current_xact_id(); commit; end loop; end $$")
            hub.start()
            await live.enter()
            await away.enter()
            sql.execute("insert into t select generate_series(1, 10)")
            for client in (live, away):
                await client.has(range(1, 11))
        cursors.append(live.frames[4]["cursor"])

        # A dump into a new server, at the old address. Somebody writes before the hub is there.
        await asyncio.to_thread(first.dump, "app", second, "app")
        await away.cut()
        with second.connect("app") as sql:
            sql.execute("insert into t select generate_series(11, 15)")
        second.stop()
        first.stop("immediate")
        second.move_to(first.port)
        second.start()
        with second.connect("app") as sql:
            sql.execute("insert into t select generate_series(16, 20)")
        await live.has(range(1, 21))
        await come_back(away)
        await away.has(range(1, 21))
        assert live.ids == list(range(1, 21)), "each once"
        assert "another database" in await reason(hub, cursors[0], 1)

        # The files of now, put back later. What was written since is gone, and its numbers are given out again.
        second.stop()
        copy = await asyncio.to_thread(second.copy_of_files)
        second.start()
        with second.connect("app") as sql:
            sql.execute("insert into t select generate_series(21, 30)")
        await live.has(range(1, 31))
        cursors.append(live.frames[24]["cursor"])
        await away.cut()
        second.stop("immediate")
        await asyncio.to_thread(second.put_back, copy)
        second.start()
        with second.connect("app") as sql:
            sql.execute("do $$ begin for i in 1..500 loop perform pg_current_xact_id(); commit; end loop; end $$")
            sql.execute("insert into t select generate_series(101, 110)")
            await live.has([*range(1, 31), *range(101, 111)])
            await come_back(away)
            await away.has([*range(1, 21), *range(101, 111)])
            assert "a restore" in await reason(hub, cursors[1], 2)

            # The outbox is emptied.
            cursors.append(live.frames[-5]["cursor"])
            sql.execute("truncate roost.change")
            sql.execute("insert into t values (111)")
            await live.has([111])
            assert "older" in await reason(hub, cursors[2], 3)
        for text in ("restored from a dump", "put back to an earlier state"):
            hub.wait_until_logged(text)
    finally:
        await live.close()
        await away.close()
        hub.remove()
