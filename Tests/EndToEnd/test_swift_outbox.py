"""RoostClient's outbox, through a hub and a network that go up and down: each message is there once and is seen once."""

import json

import pytest

from support.chat import A, ADA, install
from support.chat_server import ChatServer
from support.deadline import eventually
from support.proxy import Proxy
from support.swift_probe import Probe

MESSAGES, LANES = 1_000, 4


@pytest.fixture
def chat(own_hub, cluster):
    """The hub on the sample chat, and the application's server."""
    with cluster.connect(own_hub.database) as sql:
        install(sql)
        sql.execute("truncate messages cascade")
        own_hub.watch("public.messages")
        own_hub.start()
        server = ChatServer(own_hub.environment["ROOST_DATABASE_URL"], ADA.sub)
        yield own_hub, server, sql
        server.close()


async def start(folder, hub_port, api_port, **order):
    probe = await Probe().start("outbox")
    probe.process.stdin.write(json.dumps({
        "url": f"ws://127.0.0.1:{hub_port}", "token": ADA.token(), "api": api_port,
        "file": str(folder / "outbox"), "conversation": A, "lanes": LANES, **order}).encode() + b"\n")
    return probe


def check_rows(sql, count):
    """Each number once, and in each lane in its order."""
    bodies = [body for body, in sql.execute("select body from messages order by id")]
    assert sorted(int(body.split()[1]) for body in bodies) == list(range(count))
    for lane in range(LANES):
        assert [int(body.split()[1]) for body in bodies if body.startswith(f"{lane} ")] == list(range(lane, count, LANES))
    assert sql.execute("select count(distinct local_id) from messages").fetchone() == (count,)


async def test_a_thousand_sends_while_hub_and_network_go_up_and_down(chat, tmp_path):
    hub, server, sql = chat
    async with Proxy(hub.port) as way_to_hub, Proxy(server.port) as way_to_server:
        probe = await start(tmp_path, way_to_hub.port, way_to_server.port, first=0, count=MESSAGES, rate=150, waits=True)

        async def more_rows(count):
            wanted = len(probe.all("row")) + count
            await eventually(lambda: len(probe.all("row")) >= wanted, what=lambda: f"{wanted} rows in {probe.events[-20:]}")

        async def states(*wanted):
            await eventually(lambda: [line["state"] for line in probe.all("state")] == list(wanted),
                             what=lambda: f"{wanted} and not {probe.all('state')}")

        await probe.see("subscribed")
        await more_rows(50)

        # Short losses. Nobody is told of them.
        for number in range(3):
            way_to_hub.cut()
            way_to_server.cut()
            await eventually(lambda: len(probe.all("socket")) == number + 2, what="a new connection")
            await more_rows(40)
        await states("idle", "connecting", "connected")

        # The hub dies, and is away for longer than the window of an active app. Sends go on meanwhile.
        hub.kill()
        sent = len(probe.all("sent"))
        await states("idle", "connecting", "connected", "disconnected")
        await eventually(lambda: len(probe.all("sent")) > sent + 50, what="sends without the hub")
        hub.start()
        await states("idle", "connecting", "connected", "disconnected", "connected")
        await more_rows(50)

        # No network at all.
        await way_to_hub.close()
        await way_to_server.close()
        await states("idle", "connecting", "connected", "disconnected", "connected", "disconnected")
        await way_to_server.open()
        await way_to_hub.open()
        await states("idle", "connecting", "connected", "disconnected", "connected", "disconnected", "connected")

        await probe.see("written")
        await eventually(lambda: len(probe.all("sent")) >= MESSAGES and len(probe.all("row")) >= MESSAGES, 90,
                         lambda: f"{len(probe.all('sent'))} sent, {len(probe.all('row'))} seen: {probe.events[-20:]}")
        # Whatever would come twice is on its way before this one.
        sql.execute("insert into messages (conversation_id, sender_id, body) values (%s, %s, 'last')", [A, ADA.sub])
        await probe.see("row", body="last")
        sql.execute("delete from messages where body = 'last'")
        rows = probe.all("row")
        await probe.close()

    check_rows(sql, MESSAGES)
    assert sorted(line["body"] for line in rows[:-1]) == sorted(f"{n % LANES} {n}" for n in range(MESSAGES))
    assert len({line["local_id"] for line in probe.all("sent")}) == len(probe.all("sent")) == MESSAGES
    assert probe.all("failed") == probe.all("unexpected") == []
    assert server.lost > 50 and probe.all("retry"), "nothing went wrong, so nothing was shown"
    print(f"{server.requests} requests, {server.lost} answers lost, {server.repeats} repeats, {len(probe.all('retry'))} retries")


async def test_an_app_that_is_killed_sends_what_it_had_taken_on(chat, tmp_path):
    hub, server, sql = chat
    async with Proxy(hub.port) as way_to_hub, Proxy(server.port) as way_to_server:
        probe = await start(tmp_path, way_to_hub.port, way_to_server.port, first=0, count=100, rate=1_000)
        await eventually(lambda: len(probe.all("sent")) > 20, what="some that are sent")
        await way_to_server.close()
        await probe.see("written")
        await probe.close()
        known = len(probe.all("sent"))

        await way_to_server.open()
        probe = await start(tmp_path, way_to_hub.port, way_to_server.port, first=100, count=100, rate=1_000)
        stored = (await probe.see("stored"))["count"]
        assert 0 < stored <= 100 - known, "what was told as sent is not stored any more"
        await eventually(lambda: len(probe.all("sent")) == stored + 100, what=lambda: f"{stored} + 100 in {probe.events[-20:]}")
        await probe.close()
    check_rows(sql, 200)
    assert probe.all("failed") == []
