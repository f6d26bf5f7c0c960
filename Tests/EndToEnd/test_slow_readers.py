"""Clients that read more slowly than their channels speak: what they are spared, when they are closed, and what it costs others."""

import asyncio
import time

import pytest

from support.bounds import taken, watch_the_machine
from support.deadline import eventually
from support.tokens import token
from support.websocket import CLOSE
from support.wsclient import Client

MEGABYTE = 1 << 20
#: More than the kernel's buffers of both ends take (tcp_wmem and tcp_rmem: 4 and 6 MB).
FLOOD = 32 * MEGABYTE


@pytest.fixture
def capped(own_hub):
    """Starts the hub with a cap; a quarter of it is the mark at which a socket lags."""
    def start(cap, **settings):
        own_hub.environment |= {"ROOST_LIMITS_PENDING_BYTES_PER_SOCKET": str(cap), **settings}
        own_hub.start()
        return own_hub
    return start


def stall(client):
    client.socket.writer.transport.pause_reading()


def go_on(client):
    client.socket.writer.transport.resume_reading()


async def flood(sender, topic, count=FLOOD, size=100_000):
    """Broadcasts so many bytes in all; all are with the hub when it returns."""
    text = "y" * size
    for number in range(count // size):
        sender.push(topic, "broadcast", {"event": "flood", "payload": {"n": number, "x": text}})
        if number % 10 == 0:
            await sender.settled()
    await sender.settled()
    return count // size


async def test_presence_is_spared_and_made_up_for(capped):
    hub = capped(16 * FLOOD // 4, ROOST_LOOPS="1")
    topic = "realtime:room"
    slow, sender, guest = [await Client.connect(hub.port, version) for version in (2, 2, 1)]
    await slow.join(topic, config={"presence": {"enabled": True, "key": "slow"}})
    await slow.next("presence_state")
    await sender.join(topic)
    guest_ref, _ = await guest.join(topic, config={"presence": {"enabled": True, "key": "guest"}})
    await guest.ask(topic, "presence", {"type": "presence", "event": "track", "payload": {"n": 0}})
    await slow.next("presence_diff")
    stall(slow)
    # Nobody else is to be sent it all.
    await guest.ask(topic, "phx_leave", {}, guest_ref)
    guest_ref, _ = await guest.join("realtime:elsewhere")
    await flood(sender, topic, 2 * FLOOD)
    comers = [await Client.connect(hub.port) for _ in range(5)]
    for comer in comers:
        await comer.join(topic, config={"presence": {"enabled": True, "key": "comer"}})
    for number in range(20):
        for comer in comers:
            await comer.ask(topic, "presence", {"type": "presence", "event": "track", "payload": {"n": number}})
    for comer in comers[1:]:
        await comer.ask(topic, "presence", {"type": "presence", "event": "untrack"})
        await comer.close()
    await eventually(lambda: hub.metric("roost_slow_reader_coalesced_total") >= 100, what="presence that was spared")
    go_on(slow)
    state = await slow.next("presence_state", within=30)
    assert list(state.payload) == ["comer"]
    assert [meta["n"] for meta in state.payload["comer"]["metas"]] == [19]
    floods = [m.payload["payload"]["n"] for m in slow.messages if m.event == "broadcast"]
    assert floods == list(range(2 * FLOOD // 100_000)), "messages are spared to nobody"
    # What came before the flood is the guest's leaving; from the state on every difference counts again.
    assert [list(m.payload["leaves"]) for m in slow.messages if m.event == "presence_diff"] == [["guest"]]
    slow.messages.clear()
    await comers[0].ask(topic, "presence", {"type": "presence", "event": "track", "payload": {"n": 20}})
    difference = await slow.next("presence_diff")
    assert difference.payload["joins"]["comer"]["metas"][0]["n"] == 20
    assert await slow.settled() == [], "one state, once"
    assert slow.closed is None
    for client in (slow, sender, guest, comers[0]):
        await client.close()


# The hub waits for the reader's answer to its close for three seconds.
@pytest.mark.clock
async def test_at_its_cap_a_slow_reader_is_told_to_come_back(capped):
    hub = capped(MEGABYTE)
    slow, sender = await Client.connect(hub.port), await Client.connect(hub.port)
    for client in (slow, sender):
        await client.join("realtime:room")
    stall(slow)
    await flood(sender, "realtime:room")
    # The close frame is waited for only so long: the reader goes on as soon as the hub has closed it.
    await hub.settled()
    go_on(slow)
    end = await slow.end()
    assert hub.metric("roost_slow_reader_closed_total") == 1
    assert end.code == 1013, "all three clients come back from it"
    numbers = [m.payload["payload"]["n"] for m in slow.messages if m.event == "broadcast"]
    assert numbers == list(range(len(numbers))), "no hole before the end"
    await hub.settled()
    assert hub.metric("roost_slow_reader_cut_total") == 0
    for client in (slow, sender):
        await client.close()


@pytest.mark.clock
async def test_over_a_slow_link_the_close_frame_arrives(capped):
    """Megabytes are on their way when the hub closes the socket, and the kernel takes no more for longer than the hub waits for a
    reader that takes nothing."""
    hub = capped(MEGABYTE)
    slow, sender = await Client.connect(hub.port, receive_buffer=65_536), await Client.connect(hub.port)
    for client in (slow, sender):
        await client.join("realtime:room")
    stall(slow)
    await flood(sender, "realtime:room", 8 * MEGABYTE)
    await eventually(lambda: hub.metric("roost_slow_reader_closed_total") == 1, what="a socket at its cap")
    async with asyncio.timeout(90):
        while slow.closed is None:
            # The link's pace: what the buffer holds, about once a second. The event loop reads in the turn after the next.
            go_on(slow)
            for _ in range(3):
                await asyncio.sleep(0)
            stall(slow)
            await asyncio.sleep(0.8)
    assert slow.closed.code == 1013
    await hub.settled()
    assert hub.metric("roost_slow_reader_cut_total") == 0
    for client in (slow, sender):
        await client.close()


async def test_a_reader_that_takes_nothing_is_cut_off_and_costs_no_memory(capped):
    hub = capped(MEGABYTE, ROOST_LOOPS="1")
    slow, sender = await Client.connect(hub.port), await Client.connect(hub.port)
    for client in (slow, sender):
        await client.join("realtime:room")
    before = hub.resident_bytes
    stall(slow)
    await flood(sender, "realtime:room")
    assert hub.resident_bytes - before < 12 * MEGABYTE
    await eventually(lambda: hub.metric("roost_connections") == 1, what="the end of the stalled socket")
    await hub.settled()
    assert hub.metric("roost_slow_reader_cut_total") == 1
    assert hub.metric("roost_slow_reader_closed_total") == 1
    go_on(slow)
    for client in (slow, sender):
        await client.close()


async def test_what_comes_in_one_burst_is_not_the_readers_fault(capped):
    """Sixty times the cap in one piece: a socket that takes bytes is asked before it is taken for slow."""
    hub = capped(16_384)
    reader, sender = await Client.connect(hub.port), await Client.connect(hub.port)
    for client in (reader, sender):
        await client.join("realtime:room")
    for number in range(500):
        sender.push("realtime:room", "broadcast", {"event": "e", "payload": {"n": number, "x": "y" * 2000}})
    await eventually(lambda: sum(m.event == "broadcast" for m in reader.messages) == 500 or reader.closed)
    assert reader.closed is None
    assert [m.payload["payload"]["n"] for m in reader.messages if m.event == "broadcast"] == list(range(500))
    for client in (reader, sender):
        await client.close()


@pytest.mark.clock
async def test_stalled_readers_of_changes_hold_up_nobody_for_long(capped, cluster):
    """Three, one after the other: the rest waits for each a quarter of a second at most, and for all of them a second."""
    hub = capped(MEGABYTE, ROOST_LOOPS="1")
    watch_the_machine()
    with cluster.connect(hub.database) as sql:
        sql.execute("create table t (id int primary key, body text)")
        hub.watch("t")
        binding = {"event": "*", "schema": "public", "table": "t"}
        others = [await Client.connect(hub.port) for _ in range(5)]
        seen = {index: [] for index in range(5)}
        for index, client in enumerate(others):
            client.on_message = lambda m, index=index: seen[index].append((m.payload["data"]["record"]["id"], m.at))
            await client.watch("realtime:r", binding)
        numbers = iter(range(1_000_000))
        stalled, slowest, all_began = [], (0.0, 0.0, 0.0), time.monotonic()
        for _ in range(3):
            stalled.append(await Client.connect(hub.port))
            await stalled[-1].watch("realtime:r", binding)
            stall(stalled[-1])
            # 200 rows of 100 KB: more than the kernel and the cap take.
            for _ in range(200):
                number, began = next(numbers), time.monotonic()
                await asyncio.to_thread(sql.execute, "insert into t values (%s, repeat('x', 100000))", (number,))
                await eventually(lambda: all(got and got[-1][0] == number for got in seen.values()), every=0.002)
                slowest = max(slowest, (time.monotonic() - began, began, time.monotonic()))
        await eventually(lambda: hub.metric("roost_slow_reader_closed_total") == 3, what="three closes")
        await hub.settled()
        assert hub.metric("roost_slow_reader_written_off_total") == 3
        held = hub.metric("roost_changes_held_seconds_total")
        assert held <= 3 * 0.3 or held - taken(all_began, time.monotonic(), 0.9) <= 3 * 0.3, f"{held} s"
        # Behind the hold there is the path of a row of 100 KB to five readers.
        took, began, until = slowest
        assert took < 1.5 or took - taken(began, until, 1.5) < 1.5, f"{took:.2f} s"
        for got in seen.values():
            assert [number for number, _ in got] == list(range(600))
    for client in (*stalled, *others):
        go_on(client)
        await client.close()


@pytest.mark.clock
async def test_most_readers_lag_and_are_waited_for(capped, cluster):
    """A transaction of many times the cap, to readers that are busy with it: nobody is cut off."""
    hub = capped(131_072, ROOST_LOOPS="1")
    with cluster.connect(hub.database) as sql:
        sql.execute("create table t (id int primary key, body text)")
        hub.watch("t")
        readers = [await Client.connect(hub.port) for _ in range(4)]
        seen = {index: [] for index in range(4)}
        for index, client in enumerate(readers):
            client.on_message = lambda m, index=index: seen[index].append(m.payload["data"]["record"]["id"])
            await client.watch("realtime:r", {"event": "*", "schema": "public", "table": "t"})
        sql.execute("insert into t select n, repeat('x', 1000) from generate_series(1, 20000) n")
        await eventually(lambda: all(len(got) >= 20000 for got in seen.values()) or any(c.closed for c in readers), 60)
        assert not any(client.closed for client in readers)
        assert all(got == list(range(1, 20001)) for got in seen.values())
        await hub.settled()
        assert hub.metric("roost_slow_reader_closed_total") == 0
    for client in readers:
        await client.close()


@pytest.mark.clock
@pytest.mark.parametrize("stays_stalled", [False, True])
async def test_who_was_closed_as_too_slow_catches_up(capped, cluster, stays_stalled):
    """What was thrown away at the cap is not proven by the answer to the close that took its place."""
    hub = capped(MEGABYTE)
    with cluster.connect(hub.database) as sql:
        sql.execute("create table t (id int primary key, body text)")
        hub.watch("t")
        binding, mine = {"event": "*", "schema": "public", "table": "t"}, token(sub="somebody")
        seen = []

        async def come():
            client = await Client.connect(hub.port, apikey=mine)
            client.on_message = lambda m: seen.append(m.payload["data"]["record"]["id"])
            await client.watch("realtime:r", binding)
            return client

        slow = await come()
        stall(slow)
        for number in range(300):
            await asyncio.to_thread(sql.execute, "insert into t values (%s, repeat('x', 100000))", (number,))
            if not stays_stalled and number % 5 == 4:
                # The close frame is waited for only so long, and it may be due long before the last row.
                await hub.settled()
                if hub.metric("roost_slow_reader_closed_total") == 1:
                    go_on(slow)
        await eventually(lambda: hub.metric("roost_slow_reader_closed_total") == 1, what="the close")
        if stays_stalled:
            await eventually(lambda: hub.metric("roost_slow_reader_cut_total") == 1, what="the cut")
        go_on(slow)
        end = await slow.end()
        if not stays_stalled:
            assert end.code == 1013
            # As every client does, and the one of these tests does not.
            slow.socket.send(CLOSE, (1013).to_bytes(2, "big"))
        assert seen == list(range(len(seen)))
        await eventually(lambda: hub.metric("roost_connections") == 0, what="the end of its socket")
        back = await come()
        await eventually(lambda: len(set(seen)) == 300 or back.closed, 30, lambda: f"{len(set(seen))} of 300")
        assert set(seen) == set(range(300)), f"lost: {sorted(set(range(300)) - set(seen))[:10]}"
        await back.close()


async def test_what_was_missed_comes_as_slowly_as_it_is_read(capped, cluster):
    """Thirty times the cap was missed by one who reads in sips, and writers go on: it is not closed, and nothing is lost."""
    hub = capped(MEGABYTE)
    with cluster.connect(hub.database) as sql:
        sql.execute("create table t (id int primary key, body text)")
        hub.watch("t")
        binding, mine = {"event": "*", "schema": "public", "table": "t"}, token(sub="somebody")
        seen = []
        first = await Client.connect(hub.port, apikey=mine)
        await first.watch("realtime:r", binding)
        first.socket.abort()
        sql.execute("insert into t select n, repeat('x', 10000) from generate_series(1, 3000) n")

        back = await Client.connect(hub.port, apikey=mine)
        back.on_message = lambda m: seen.append(m.payload["data"]["record"]["id"])
        await back.join("realtime:r", [binding])
        for number in range(3001, 3101):
            stall(back)
            await asyncio.to_thread(sql.execute, "insert into t values (%s, repeat('x', 10000))", (number,))
            await asyncio.sleep(0.03)
            go_on(back)
            await asyncio.sleep(0.005)
        await eventually(lambda: len(set(seen)) == 3100 or back.closed, 30, lambda: f"{len(set(seen))} of 3100")
        assert not back.closed, back.closed
        assert list(dict.fromkeys(seen)) == list(range(1, 3101)), "in order"
        await hub.settled()
        assert hub.metric("roost_slow_reader_closed_total") == 0
        await back.close()
