"""Broadcasts that are kept: rows of realtime.messages, and acknowledgements that wait for them (supabase/realtime PR 2022)."""

import asyncio
import os
import uuid

import pytest

from support.channels import installed_policies
from support.cluster import Cluster
from support.deadline import eventually
from support.http import HTTPConnection
from support.hub import Hub
from support.tokens import token
from support.wsclient import Client, kind3

#: Of hub and Postgres in turns.
KILLS = int(os.environ.get("KILLS", "4"))
CONFIG = {"private": True, "broadcast": {"ack": True}}
SERVICE = token("service_role", sub="service")


async def keep(client, ref, topic, payload, persist=b'{"persist": true}', encoding=1):
    """Sends one, and waits for what it is answered."""
    number = client.ref()
    client.send_binary(kind3(ref, number, topic, "e", payload, encoding, persist))
    return (await client.next("phx_reply", topic, number)).payload


@pytest.fixture(scope="module")
def installed(shared_hub, cluster):
    with installed_policies(shared_hub, cluster):
        yield


def rows(sql, name):
    return sql.execute(
        "select id, event, payload, binary_payload, private, skip_broadcast, expires_at is not null, extension "
        "from realtime.messages where topic = %s order by inserted_at", [name]).fetchall()


async def test_the_acknowledgement_carries_the_id_of_a_row(connect, sql, topic, name):
    sender, reader = await connect(apikey=SERVICE), await connect(apikey=SERVICE)
    ref, _ = await sender.join(topic, config=CONFIG)
    await reader.join(topic, config=CONFIG)
    kept = await keep(sender, ref, topic, b'{"n": 1.0}')
    assert kept["status"] == "ok" and uuid.UUID(kept["response"]["id"])
    brief = await keep(sender, ref, topic, b"\x00\xff", b'{"persist": {"ttl": 60}}', encoding=0)
    assert (await reader.next("broadcast", topic)).payload.payload == b'{"n": 1.0}'
    [(first, event, payload, _, private, skips, expires, extension), second] = rows(sql, name)
    assert str(first) == kept["response"]["id"] and (event, payload, extension) == ("e", {"n": 1.0}, "broadcast")
    assert private and skips and not expires
    assert str(second[0]) == brief["response"]["id"] and bytes(second[3]) == b"\x00\xff" and second[6]
    await reader.settled()
    assert len(reader.messages) == 1, "what was broadcast is not broadcast again"


async def test_who_joins_later_is_replayed_it_until_it_expires(connect, sql, topic, name):
    sender = await connect(apikey=SERVICE)
    ref, _ = await sender.join(topic, config=CONFIG)
    for n, persist in ((1, b'{"persist": true}'), (2, b'{"persist": {"ttl": 3600}}'), (3, b'{"persist": {"ttl": 1}}')):
        assert (await keep(sender, ref, topic, b'{"n": %d}' % n, persist))["response"]["id"]
    sql.execute("update realtime.messages set expires_at = now() at time zone 'UTC' where payload ->> 'n' = '3' and topic = %s", [name])
    late = await connect(apikey=SERVICE)
    await late.join(topic, config={"private": True, "broadcast": {"replay": {}}})
    await late.settled()
    assert [m.payload["payload"]["n"] for m in late.messages] == [1, 2]


async def test_the_policy_decides(connect, sql, installed, topic, name):
    def give(*rights):
        for command, extension in rights:
            sql.execute("insert into public.channel_rights values (%s, 'ann', %s, %s)", [name, extension, command])
    give(("read", "broadcast"), ("write", "broadcast"))
    ann = await connect(apikey=token(sub="ann"))
    ref, _ = await ann.join(topic, config=CONFIG)
    assert await keep(ann, ref, topic, b"{}") == {"status": "ok", "response": {}}, "sent, and not kept"
    give(("write", "persistence"))
    ann.push(topic, "access_token", {"access_token": token(sub="ann", n=2)}, ann.ref(), ref)
    assert (await keep(ann, ref, topic, b"{}"))["response"]["id"]
    assert len(rows(sql, name)) == 1


@pytest.mark.parametrize("metadata", [b'{"persist": {"ttl": 0}}', b'{"persist": 7}'])
async def test_a_time_that_is_none(connect, topic, metadata):
    client = await connect(apikey=SERVICE)
    ref, _ = await client.join(topic, config=CONFIG)
    refused = await keep(client, ref, topic, b"{}", metadata)
    assert refused["status"] == "error" and refused["response"]["error"] == "invalid_persist_ttl"


async def test_what_no_row_can_be_keeps_no_other_from_being_one(hub, connect, sql, topic, name):
    client = await connect(apikey=SERVICE)
    ref, _ = await client.join(topic, config=CONFIG)
    await keep(client, ref, topic, b"{}")
    payloads = [b'{"text": "\\u0000"}' if n % 10 == 0 else b'{"n": %d}' % n for n in range(200)]
    replies = await asyncio.gather(*(keep(client, ref, topic, payload) for payload in payloads))
    assert all(reply["status"] == "ok" for reply in replies)
    assert ["id" in reply["response"] for reply in replies] == [n % 10 != 0 for n in range(200)]
    assert len(rows(sql, name)) == 181
    assert hub.metric("roost_messages_not_stored_total") >= 20


async def test_by_http(hub, sql, topic, name):
    bearer = {"authorization": "Bearer " + SERVICE}
    async with await HTTPConnection.open(hub.port) as http:
        kept = await http.request("POST", f"/api/broadcast/{name}/events/e?private=true&persist=true", {"n": 1}, **bearer)
        assert kept.status == 202
        [row] = rows(sql, name)
        assert (row[1], row[2], row[5]) == ("e", {"n": 1}, True)
        public = await http.request("POST", f"/api/broadcast/{name}/events/e?persist=true", {"n": 1}, **bearer)
        assert public.status == 422 and public.json["errors"]["persist"]
        unclear = await http.request("POST", f"/api/broadcast/{name}/events/e?private=true&persist=x", {"n": 1}, **bearer)
        assert unclear.status == 422
        assert len(rows(sql, name)) == 1


async def send_without_end(port, acknowledged, stop):
    """Keeps broadcasts until the hub is gone, and again with the next one; the ids that were acknowledged."""
    while not stop.is_set():
        try:
            async with await Client.connect(port, apikey=SERVICE) as client:
                ref, _ = await client.join("realtime:kept", config=CONFIG)

                async def one():
                    while not stop.is_set():
                        reply = await keep(client, ref, "realtime:kept", b"{}")
                        if "id" in reply["response"]:
                            acknowledged.append(reply["response"]["id"])
                await asyncio.gather(*(one() for _ in range(20)))
        except (Exception, asyncio.CancelledError):  # noqa: BLE001  Whatever a hub or a Postgres that dies looks like.
            await asyncio.sleep(0.05)


async def test_every_acknowledged_id_is_a_row_whatever_is_killed():
    # A server that is killed keeps what it has committed only if commits wait for their WAL to be written.
    cluster = Cluster(settings="synchronous_commit = on\n").start()
    hub = Hub(cluster.create_database("hub"))
    acknowledged, stop = [], asyncio.Event()
    try:
        hub.run("migrate")
        with cluster.connect("hub") as sql:
            sql.execute("checkpoint")
        hub.start()
        senders = [asyncio.create_task(send_without_end(hub.port, acknowledged, stop)) for _ in range(2)]
        for kill in range(KILLS):
            before = len(acknowledged)
            await eventually(lambda: len(acknowledged) > before + 200, 60, "acknowledgements")  # noqa: B023
            if kill % 2:
                await asyncio.to_thread(cluster.stop, "immediate")
                await asyncio.to_thread(cluster.start)
            else:
                await asyncio.to_thread(hub.kill)
                await asyncio.to_thread(hub.start)
        before = len(acknowledged)
        await eventually(lambda: len(acknowledged) > before + 200, 60, "acknowledgements")
        stop.set()
        await asyncio.wait(senders)
        with cluster.connect("hub") as sql:
            found = [str(id) for (id,) in sql.execute("select id from realtime.messages where topic = 'kept'").fetchall()]
        assert len(set(acknowledged)) == len(acknowledged), "no id twice"
        assert len(set(found)) == len(found)
        assert set(acknowledged) <= set(found), f"{len(set(acknowledged) - set(found))} of {len(acknowledged)} are no rows"
    finally:
        stop.set()
        hub.remove()
        cluster.remove()
