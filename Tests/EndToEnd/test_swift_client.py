"""RoostClient, the Swift client, against the real hub: `client-probe session` does what these tests say."""

import asyncio
import json
import signal
import subprocess
import time

import pytest

from support.bounds import Elapsed, at_most
from support.deadline import eventually
from support.hub import BINARY
from support.returning import Rows
from support.tokens import token


@pytest.fixture
def busy(own_hub, cluster):
    """A table in a database of the hub's own, and the hub on it."""
    with cluster.connect(own_hub.database) as sql:
        sql.execute("create table t (id int primary key, body text)")
        own_hub.watch("t")
        own_hub.start()
        yield sql


def rows_of(probe):
    return [line["id"] for line in probe.all("insert")]


def states_of(probe):
    return [line["state"] for line in probe.all("state")]


def sockets_of(probe):
    return [line["what"] for line in probe.all("socket")]


async def join(probe, url, channel, table=None, **client):
    """Waits between attempts are short, so that tests need not wait for them."""
    probe.do("client", url=url, **{"tokens": [token(sub="someone")], "backoff": 0.1, **client})
    if table:
        probe.do("changes", channel=channel, table=table, name="rows")
    probe.do("subscribe", channel=channel)
    await probe.see("subscribed")


async def test_a_row_arrives_as_a_value_of_its_type(hub, sql, table, name, probe):
    probe.do("client", url=hub.url, tokens=[token()])
    probe.do("changes", channel=name, table=table, filter=2, name="rows")
    probe.do("subscribe", channel=name)
    await probe.see("subscribed")
    sql.execute(f"insert into {table} values (1, 'not asked for'), (2, 'two')")
    sql.execute(f"update {table} set body = 'zwei' where id = 2")
    sql.execute(f"delete from {table} where id = 2")
    await probe.see("delete", id=2)
    rows = [line for line in probe.events if line["event"] in ("insert", "update", "delete")]
    assert [(r["event"], r["id"], r.get("body")) for r in rows] == [
        ("insert", 2, "two"), ("update", 2, "zwei"), ("delete", 2, None)]
    assert rows[0]["cursor"]
    assert states_of(probe) == ["idle", "connecting", "connected"]


async def test_a_hub_that_is_killed_loses_nothing_and_repeats_nothing(own_hub, busy, probe):
    await join(probe, own_hub.url, "room", "t")
    rows = Rows(own_hub.environment["ROOST_DATABASE_URL"], "t", rate=300)
    rows.start()
    for _ in range(2):
        seen = len(rows_of(probe))
        await eventually(lambda: len(rows_of(probe)) > seen + 50, what="rows")
        await asyncio.to_thread(own_hub.kill)
        await asyncio.to_thread(own_hub.start)
    seen = len(rows_of(probe))
    await eventually(lambda: len(rows_of(probe)) > seen + 50, what="rows")
    committed = await rows.stop()
    await eventually(lambda: rows_of(probe)[-1] == committed[-1], what=lambda: f"the last row in {probe.events[-3:]}")
    assert rows_of(probe) == committed, "each once, in the order of the commits"
    assert probe.all("reload") == []
    assert sockets_of(probe).count("connected") == 3


async def test_a_cut_in_the_middle_of_everything(hub, sql, table, name, way, probe):
    await join(probe, way.url, name, table)
    # However busy the machine is, it is back within the window of an inactive app.
    await say_state(probe, name, "inactive")
    for number in range(400):
        sql.execute(f"insert into {table} values (%s)", [number])
        if number % 50 == 25:
            way.cut()
        await asyncio.sleep(0)
    await eventually(lambda: 399 in rows_of(probe), what=lambda: f"the last row in {probe.events[-3:]}")
    assert rows_of(probe) == list(range(400))
    assert sockets_of(probe).count("connected") > 1
    assert states_of(probe) == ["idle", "connecting", "connected"]


async def say_state(probe, channel, state):
    """Of its app; it and the hub have it when this returns."""
    probe.do("app_state", state=state)
    seen = len(probe.events)
    probe.do("send", channel=channel, text="state", count=1)
    await probe.see("sent", after=seen)


async def test_a_ui_is_told_of_losses_that_last(way, name, probe):
    await join(probe, way.url, name)
    shown = ["idle", "connecting", "connected"]
    assert states_of(probe) == shown
    # A second is within the window of an inactive app, however busy the machine is.
    await say_state(probe, name, "inactive")
    await way.close()
    await probe.see("socket", what='lost(reason: "The connection broke.")')
    await asyncio.sleep(1)
    seen = len(probe.events)
    await way.open()
    probe.do("network_is_back")
    await probe.see("socket", what="connected", after=seen)
    assert states_of(probe) == shown
    # Four are not within that of an active one.
    await say_state(probe, name, "active")
    seen, elapsed = len(probe.events), Elapsed()
    await way.close()
    told = await probe.see("state", after=seen, state="disconnected")
    elapsed.assert_at_most(2.5, "the word of a loss that lasts")
    lost = await probe.see("socket", after=seen, what='lost(reason: "The connection broke.")')
    assert 1.9 < told["at"] - lost["at"]
    await asyncio.sleep(2)
    await way.open()
    probe.do("network_is_back")
    await probe.see("state", after=seen, state="connected")
    assert states_of(probe) == [*shown, "disconnected", "connected"]


async def test_an_app_in_the_background_is_told_later(way, name, probe):
    await join(probe, way.url, name)
    await say_state(probe, name, "inactive")
    await way.close()
    await probe.see("socket", what='lost(reason: "The connection broke.")')
    await asyncio.sleep(2.5)
    assert states_of(probe)[-1] == "connected"
    # Back in front of its user, who gets the shorter window from here on.
    seen = len(probe.events)
    probe.do("app_state", state="active")
    with at_most(3, "the word of the loss"):
        await probe.see("state", after=seen, state="disconnected")


async def test_a_token_is_renewed_before_it_runs_out(hub, sql, table, name, probe):
    tokens = [token(sub="someone", lifetime=4), token(sub="someone")]
    expired, elapsed = time.time() + 4.5, Elapsed()
    await join(probe, hub.url, name, table, tokens=tokens)
    await probe.see("token", count=2)
    elapsed.assert_at_most(4, "another token")
    await asyncio.sleep(max(0, expired - time.time()))
    sql.execute(f"insert into {table} values (1)")
    await probe.see("insert", id=1)
    assert sockets_of(probe) == ["connecting", "connected"]


async def test_a_token_that_the_hub_refuses_is_replaced(hub, name, probe):
    await join(probe, hub.url, name, tokens=[token(lifetime=-5), "nonsense", token()])
    assert len(probe.all("token")) == 3
    assert 'lost(reason: "The hub refuses the token.")' in sockets_of(probe)


async def test_what_the_hub_does_not_serve_is_said(hub, sql, name, probe):
    sql.execute(f"create table {name} (id int primary key)")
    probe.do("client", url=hub.url, tokens=[token()])
    probe.do("changes", channel=name, table=name, name="rows")
    probe.do("subscribe", channel=name)
    refused = await probe.see("refused")
    assert "roost watch" in refused["text"]
    assert "roost watch" in (await probe.see("failed"))["text"]
    await probe.see("ended", name="rows")


async def test_messages_wait_for_the_network(way, hub, name, probes):
    sender, receiver = await probes(), await probes()
    await join(receiver, hub.url, name)
    receiver.do("broadcasts", channel=name, text="n", name="n")
    await join(sender, way.url, name)
    sender.do("send", channel=name, text="n", count=1)
    await sender.see("sent", n=1)
    await way.close()
    await sender.see("socket", what='lost(reason: "The connection broke.")')
    sender.do("send", channel=name, text="n", count=2)
    await asyncio.sleep(0.3)
    await way.open()
    await sender.see("sent", n=2)
    await receiver.see("broadcast", payload={"n": 2})
    assert [line["payload"]["n"] for line in receiver.all("broadcast")] == [1, 2]


async def test_presence_does_not_flap_when_the_watcher_is_lost(way, hub, name, probes):
    present, watcher = await probes(), await probes()
    await join(present, hub.url, name, name="ada")
    present.do("track", channel=name, text="fine")
    await present.see("tracked")
    watcher.do("client", url=way.url, tokens=[token()], backoff=0.1)
    watcher.do("presence", channel=name, name="presence")
    watcher.do("subscribe", channel=name)
    await watcher.see("presence", members=["ada"], joined=["ada"])
    seen = len(watcher.events)
    way.cut()
    await watcher.see("socket", what="connected", after=seen)
    present.do("track", channel=name, text="better")
    await watcher.see("presence", members=["ada"], changed=["ada"])
    assert len(watcher.all("presence")) == 2
    present.do("leave", channel=name)
    await watcher.see("presence", members=[], left=["ada"])


async def test_a_client_that_returns_in_its_window_was_never_away(way, hub, name, probes):
    present, watcher = await probes(), await probes()
    watcher.do("client", url=hub.url, tokens=[token()], backoff=0.1)
    watcher.do("presence", channel=name, name="presence")
    watcher.do("subscribe", channel=name)
    await watcher.see("subscribed")
    await join(present, way.url, name, name="ada")
    # Within its window it comes back, however busy the machine is.
    present.do("app_state", state="inactive")
    present.do("track", channel=name, text="fine")
    await watcher.see("presence", members=["ada"], joined=["ada"])
    told = len(watcher.all("presence"))
    seen = len(present.events)
    way.cut()
    await present.see("socket", what="connected", after=seen)
    # It tracks the same again by itself, which is silent; what it tracks next is the next that the others hear of.
    present.do("track", channel=name, text="better")
    await watcher.see("presence", members=["ada"], changed=["ada"])
    assert len(watcher.all("presence")) == told + 1
    # The hub knows what the app is doing: longer than the window of an active one, and still there.
    present.do("app_state", state="inactive")
    present.do("send", channel=name, text="n", count=1)
    await present.see("sent")
    await way.close()
    await asyncio.sleep(2.5)
    assert len(watcher.all("presence")) == told + 1


async def test_who_stops_without_a_word_types_no_more(hub, name, probes):
    typist, reader = await probes(), await probes()
    await join(typist, hub.url, name)
    await join(reader, hub.url, name)
    reader.do("typists", channel=name, name="typing")
    reader.do("send", channel=name, text="n", count=1)
    await reader.see("sent")
    typist.do("type", channel=name, text="ada")
    began, elapsed = await reader.see("typing", users=["ada"]), Elapsed()
    ended = await reader.see("typing", users=[])
    elapsed.assert_at_most(3.3, "typing")
    assert 2.7 < ended["at"] - began["at"]


async def test_typing_is_a_set_that_a_loss_clears(way, hub, name, probes):
    typist, reader = await probes(), await probes()
    await join(typist, hub.url, name)
    await join(reader, way.url, name)
    reader.do("typists", channel=name, name="typing")
    # The answer to this shows that the sequence before it is there.
    reader.do("send", channel=name, text="n", count=1)
    await reader.see("sent")
    for _ in range(5):
        typist.do("type", channel=name, text="ada")
    await reader.see("typing", users=["ada"])
    typist.do("type", channel=name, text="ada", on=False)
    await reader.see("typing", users=[])
    typist.do("type", channel=name, text="ada")
    await eventually(lambda: reader.all("typing")[-1]["users"] == ["ada"])
    await way.close()
    await eventually(lambda: reader.all("typing")[-1]["users"] == [])


async def resources(probe):
    seen = len(probe.events)
    probe.do("resources")
    line = await probe.see("resources", after=seen)
    return line["files"], line["sockets"]


async def test_nothing_is_left_of_a_client_that_is_dropped(hub, sql, table, name, probe):
    kept = None
    connections = hub.metric("roost_connections")
    for number in range(4):
        seen = len(probe.events)
        probe.do("client", url=hub.url, tokens=[token()])
        probe.do("changes", channel=name, table=table, name="rows")
        probe.do("broadcasts", channel=name, text="n", name="n")
        probe.do("presence", channel=name, name="presence")
        probe.do("subscribe", channel=name)
        await probe.see("subscribed", after=seen)
        assert (await resources(probe))[1] == 1
        # One sequence ends by itself, and the others go on.
        probe.do("cancel", name="n")
        await probe.see("ended", name="n", after=seen)
        sql.execute(f"insert into {table} values (%s)", [number])
        await probe.see("insert", id=number, after=seen)
        probe.do("drop")
        for ended in ("rows", "presence", "states", "sockets"):
            await probe.see("ended", name=ended, after=seen)

        async def nothing_is_left():
            return (await resources(probe))[1] == 0
        await eventually(nothing_is_left, what="the end of the socket's thread")
        files = (await resources(probe))[0]
        kept = kept or files
        assert files == kept
    await eventually(lambda: hub.metric("roost_connections") == connections, what="the end of the connections")


async def test_disconnecting_waits_for_the_end(hub, name, probe):
    await join(probe, hub.url, name)
    probe.do("disconnect")
    await probe.see("disconnected")
    assert (await resources(probe))[1] == 0
    assert states_of(probe)[-1] == "idle"


async def test_tail_leaves_when_it_is_interrupted(hub, connect, name, topic):
    watcher = await connect()
    await watcher.join(topic)
    tail = await asyncio.create_subprocess_exec(
        BINARY, "tail", name, env=hub.environment, cwd=hub.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    first = json.loads(await asyncio.wait_for(tail.stdout.readline(), 30))
    assert (first["event"], first["payload"]["status"]) == ("phx_reply", "ok")
    connections = hub.metric("roost_connections")
    tail.send_signal(signal.SIGINT)
    assert await asyncio.wait_for(tail.wait(), 30) == 0
    assert (await tail.stderr.read()).decode().strip() == ""
    await eventually(lambda: hub.metric("roost_connections") == connections - 1, what="the end of the connection")
