"""/metrics counts what happens, in a form that Prometheus reads."""

import re
import struct

import pytest

from support.deadline import eventually
from support.metrics import came_to, scrape
from support.tokens import token
from support.websocket import CLOSE, Refused
from support.wsclient import Client


@pytest.fixture
def hub(own_hub, cluster):
    own_hub.environment["ROOST_LOOPS"] = "2"
    with cluster.connect(own_hub.database) as sql:
        sql.execute("create table t (id int primary key)")
        own_hub.watch("t")
    return own_hub.start()


async def test_what_clients_do_is_counted(hub, cluster):
    topic, changes = "realtime:m", {"event": "*", "schema": "public", "table": "t"}
    track = {"type": "presence", "event": "track", "payload": {}}
    members = [await Client.connect(hub.port, apikey=token(sub=f"user{n}")) for n in range(3)]
    with pytest.raises(Refused):
        await Client.connect(hub.port, apikey="no-token")
    refs = []
    for client in members:
        # Whoever comes back has more time for it than an active app's two seconds.
        refs.append((await client.watch(topic, changes, config={"app_state": "background"}))[0])
        client.push(topic, "presence", track, join_ref=refs[-1])
    refused = await members[0].ask("no-topic", "phx_join", {"config": {}})
    assert refused.payload["status"] == "error"
    await came_to(
        hub, roost_connections=3, roost_connections_accepted_total=3, roost_memberships=3, roost_presence_members=3,
        roost_presence_joins_total=3, **{'roost_connections_refused_total{reason="token"}': 1, 'roost_joins_total{result="ok"}': 3})

    members[0].push(topic, "broadcast", {"type": "broadcast", "event": "typing", "payload": {"typing": True}}, join_ref=refs[0])
    members[0].send_text("{no frame")
    with cluster.connect(hub.database) as sql:
        for number in range(10):
            sql.execute("insert into t values (%s)", (number,))
    for client in members:
        for _ in range(10):
            await client.next("postgres_changes")
    values = scrape(hub)
    await came_to(
        hub, roost_typing_starts_total=1, roost_malformed_frames_total=1, roost_feed_changes_total=10, roost_feed_up=1, roost_ready=1)
    # One group of subscribers on each loop that has members.
    values = scrape(hub)
    assert values["roost_feed_lag_seconds_count"] in (10, 20)
    assert values['roost_feed_lag_seconds_bucket{le="+Inf"}'] == values["roost_feed_lag_seconds_count"]
    assert 0 < values["roost_feed_lag_seconds_sum"] < 60
    assert values["roost_loop_turn_seconds_count"] > 50

    members[0].socket.abort()
    await came_to(hub, roost_connections=2, **{'roost_connections_closed_total{code="1006"}': 1})
    members[0] = await Client.connect(hub.port, apikey=token(sub="user0"))
    ref, _ = await members[0].watch(topic, changes)
    members[0].push(topic, "presence", track, join_ref=ref)
    await came_to(
        hub, roost_presence_leaves_avoided_total=1, roost_presence_leaves_total=0, roost_presence_members=3,
        **{'roost_recoveries_total{result="resumed"}': 1})
    await members[1].ask(topic, "phx_leave", {}, join_ref=refs[1])
    await came_to(hub, roost_presence_leaves_total=1, roost_presence_members=2, roost_memberships=2)
    for client in members:
        await client.close()
    await came_to(hub, roost_connections=0, roost_memberships=0)


async def test_clients_cannot_make_series_by_their_close_codes(hub):
    for code in (3000, 4321, 4999):
        client = await Client.connect(hub.port)
        client.socket.send(CLOSE, struct.pack(">H", code))
        await client.socket.writer.drain()
        await eventually(lambda: client.closed, what="the answer to the close frame")  # noqa: B023
        await client.close()
    await came_to(hub, **{'roost_connections_closed_total{code="other"}': 3})
    assert not [name for name in scrape(hub) if re.search('code="(3|4)', name)]


async def test_the_process_and_the_outbox_are_described(hub):
    await eventually(lambda: "roost_outbox_rows" in scrape(hub), what="the outbox, which is measured after the first look")
    values = scrape(hub)
    assert values["roost_outbox_bytes"] >= 0 and values["roost_outbox_age_seconds"] == 0
    assert 1e6 < values["process_resident_memory_bytes"] < 1e9
    assert abs(values["process_open_fds"] - hub.open_files) <= 3
    assert values["process_cpu_seconds_total"] > 0
    assert any(name.startswith("roost_build_info{version=") for name in values)
