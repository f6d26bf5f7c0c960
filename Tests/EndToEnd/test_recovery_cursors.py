"""`config.resume.cursor`: a client that says where it was gets exactly the rest."""

import asyncio
import random
import string

import pytest

from support.cluster import Cluster
from support.hub import Hub
from support.returning import Returning, Rows, in_order
from test_every_row import Writer

STREAM = 800


@pytest.fixture
async def returning(own_hub):
    made = []

    def make(*arguments, hub=own_hub, **options):
        made.append(Returning(hub, *arguments, **options))
        return made[-1]

    yield make
    for client in made:
        await client.close()


@pytest.fixture
def busy(own_hub, cluster):
    """A table, the hub on it, and a connection."""
    with cluster.connect(own_hub.database) as sql:
        sql.execute("create table t (id int primary key, seq int)")
        own_hub.watch("t")
        own_hub.start()
        yield sql


def change(frame):
    record = frame["data"].get("record") or frame["data"]["old_record"]
    return frame["data"]["type"], record["id"], record.get("seq")


async def stream(own_hub, client, count=STREAM):
    """What concurrent writers with transactions of several rows write, as one client received it."""
    writers = [Writer(own_hub.environment["ROOST_DATABASE_URL"], "t", number, count // 8) for number in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        await asyncio.to_thread(writer.join, 60)
    assert [writer.failure for writer in writers if writer.failure] == []
    await client.has([], 1)
    async with asyncio.timeout(30):
        while len(client.frames) < count // 8 * 8:
            await asyncio.sleep(0.01)
    await client.settled()
    return list(client.frames)


async def test_every_change_carries_a_cursor_and_the_beginning_one_if_asked(returning, busy):
    client = returning("realtime:r", "t")
    assert (await client.enter(resume={}))["resumed"] is True
    system = (await client.client.next("system", "realtime:r")).payload
    assert system["message"] == "Subscribed to PostgreSQL" and isinstance(system["cursor"], str) and system["cursor"]
    busy.execute("insert into t values (1), (2)")
    await client.has([1, 2])
    cursors = [frame["cursor"] for frame in client.frames]
    assert len(set(cursors)) == 2
    assert all(set(cursor) <= set(string.ascii_letters + string.digits + "._-") for cursor in cursors)
    print("a cursor:", cursors[0], len(cursors[0]), "bytes")


@pytest.mark.parametrize("version", [1, 2])
async def test_resuming_at_any_change_brings_exactly_the_rest(own_hub, returning, busy, version):
    reader = returning("realtime:r", "t", version)
    await reader.enter()
    frames = await stream(own_hub, reader)
    chance = random.Random(version)
    places = [0, len(frames) - 1, *chance.sample(range(len(frames)), 20)]
    for number, place in enumerate(places):
        client = returning("realtime:r", "t", version, sub=f"resumes at {place}")
        response = await client.enter(resume={"cursor": frames[place]["cursor"]})
        assert response["resumed"] is True, response
        busy.execute("insert into t values (%s)", [10_000 + number])
        await client.has([10_000 + number])
        assert client.ids[-1] == 10_000 + number, "what is new came before what was missed"
        # Behind the stream lie the markers of those who resumed before.
        got = [change(frame) for frame in client.frames if change(frame)[1] < 10_000]
        assert sorted(got) == sorted(change(frame) for frame in frames[place + 1:]), f"at {place}"
        last = {}
        for _, identity, seq in got:
            assert seq > last.get(identity, 0), f"row {identity}: {seq} after {last[identity]}"
            last[identity] = seq
        await client.close()


@pytest.mark.parametrize("version", [1, 2])
async def test_no_gap_and_no_overlap_where_the_live_changes_begin(own_hub, returning, busy, version):
    """Rows are written all the time that clients resume; each gets each row once."""
    reader = returning("realtime:r", "t", version)
    await reader.enter()
    rows = Rows(own_hub.environment["ROOST_DATABASE_URL"], "t", rate=1500)
    rows.start()
    clients = []
    await asyncio.sleep(0.3)
    for number in range(12):
        place = random.randrange(len(reader.frames))
        client = returning("realtime:r", "t", version, sub=f"number {number}")
        client.first = reader.ids[place] + 1
        assert (await client.enter(resume={"cursor": reader.frames[place]["cursor"]}))["resumed"] is True
        clients.append(client)
        await asyncio.sleep(0.1)
    committed = await rows.stop()
    for client in clients:
        await client.has(range(client.first, committed[-1] + 1))
        await client.settled()
        assert client.ids == list(range(client.first, committed[-1] + 1)), "each once, in the order of the commits"


async def test_the_cursor_of_the_beginning_is_a_place_to_resume_at(returning, busy):
    first = returning("realtime:r", "t", sub="first")
    await first.enter(resume={})
    begun = (await first.client.next("system", "realtime:r")).payload
    await first.close()
    busy.execute("insert into t select generate_series(1, 30)")
    second = returning("realtime:r", "t", sub="second")
    answer = await second.enter(resume={"cursor": begun["cursor"]})
    assert answer["resumed"] is True
    await second.has(range(1, 31))
    assert second.ids == list(range(1, 31))


async def is_refused(client, busy, cursor, number):
    response = await client.enter(resume={"cursor": cursor})
    assert response["resumed"] is False, response
    assert response["reason"] and "load the data again" in response["reason"], response
    assert len(response["postgres_changes"]) == 1
    busy.execute("insert into t values (%s)", [number])
    await client.has([number])
    assert client.ids == [number], "refused, so it starts at the present"
    return response["reason"]


@pytest.mark.parametrize(
    "cursor", ["garbage", "", ".", "AAAA.1", "x" * 100_000, "a.b.c", "-1", "ÄÖÜ", "\0", "A" * 300 + "." + "z" * 16],
    ids=["garbage", "empty", "dot", "short", "long", "dots", "negative", "umlauts", "nul", "overflow"])
async def test_a_cursor_that_is_none_is_refused_with_a_reason(returning, busy, cursor):
    await is_refused(returning("realtime:r", "t"), busy, cursor, 1)


@pytest.mark.parametrize("resume", [5, "text", [], None, {"cursor": 5}, {"cursor": None}, {"cursor": {}}],
                         ids=["number", "text", "list", "null", "number-inside", "null-inside", "object-inside"])
async def test_a_resume_of_another_shape_ends_nothing(returning, busy, resume):
    client = returning("realtime:r", "t")
    response = await client.enter(resume=resume)
    assert len(response["postgres_changes"]) == 1
    busy.execute("insert into t values (1)")
    await client.has([1])


async def test_a_damaged_cursor_brings_down_nothing(own_hub, returning, busy):
    client = returning("realtime:r", "t")
    await client.enter()
    busy.execute("insert into t select generate_series(1, 10)")
    await client.has(range(1, 11))
    cursor = client.frames[4]["cursor"]
    chance = random.Random(4)
    outcomes = []
    for number in range(60):
        damaged = list(cursor)
        for _ in range(chance.randint(1, 3)):
            damaged[chance.randrange(len(damaged))] = chance.choice("ABCxyz019._-")
        text = "".join(damaged)[:chance.choice([len(cursor), chance.randrange(len(cursor))])]
        other = returning("realtime:r", "t", sub=f"damaged {number}")
        outcomes.append((await other.enter(resume={"cursor": text}))["resumed"])
        await other.close()
    print(f"{outcomes.count(True)} of {len(outcomes)} damaged cursors were taken for others")
    assert own_hub.process.poll() is None
    busy.execute("insert into t values (11)")
    await client.has([11])


async def test_a_cursor_of_another_database_is_refused(returning, busy):
    elsewhere = Cluster().start()
    try:
        hub = Hub(elsewhere.create_database("elsewhere"))
        try:
            hub.run("migrate")
            with elsewhere.connect("elsewhere") as sql:
                sql.execute("create table t (id int primary key)")
                hub.watch("t")
                hub.start()
                client = returning("realtime:r", "t", hub=hub)
                await client.enter()
                sql.execute("insert into t values (1)")
                await client.has([1])
        finally:
            hub.remove()
    finally:
        elsewhere.remove()
    reason = await is_refused(returning("realtime:r", "t", sub="other"), busy, client.frames[0]["cursor"], 1)
    assert "another database" in reason


async def test_a_cursor_older_than_what_is_kept_is_refused(own_hub, returning, busy):
    client = returning("realtime:r", "t")
    await client.enter()
    busy.execute("insert into t values (1)")
    busy.execute("insert into t values (2)")
    await client.has([1, 2])
    await client.close()
    later = returning("realtime:r", "t", sub="third")
    await later.enter(resume={})
    begun = (await later.client.next("system", "realtime:r")).payload
    await later.close()
    # As the pruner leaves it: changes that are gone, and the last transaction that had any.
    busy.execute("with gone as (delete from roost.change returning xid) update roost.meta set pruned_xid = "
                 "(select xid from gone order by xid desc limit 1)")
    reason = await is_refused(returning("realtime:r", "t", sub="other"), busy, client.frames[0]["cursor"], 3)
    assert "older" in reason
    # Whoever came after all that was pruned needs none of it.
    covered = returning("realtime:r", "t", sub="third")
    assert (await covered.enter(resume={"cursor": begun["cursor"]}))["resumed"] is True
    await covered.has([3])
    assert covered.ids == [3]


async def test_a_cursor_outlives_the_hub(own_hub, returning, busy):
    client = returning("realtime:r", "t")
    await client.enter()
    busy.execute("insert into t values (1)")
    await client.has([1])
    await asyncio.to_thread(own_hub.kill)
    busy.execute("insert into t select generate_series(2, 40)")
    own_hub.start()
    other = returning("realtime:r", "t", sub="other")
    assert (await other.enter(resume={"cursor": client.frames[0]["cursor"]}))["resumed"] is True
    await other.has(range(2, 41))
    assert other.ids == list(range(2, 41)) and in_order(other.ids)
