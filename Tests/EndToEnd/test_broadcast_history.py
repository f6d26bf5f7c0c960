"""`config.broadcast.history`: who drops off and comes back gets the broadcasts that were sent meanwhile."""

import asyncio
import json
import socket
import struct

import pytest

from support.deadline import eventually
from support.http import HTTPConnection
from support.pypi import Listener, python_client
from support.tokens import token
from support.wsclient import Client, kind3

HISTORY = {"broadcast": {"history": True}}
both_versions = pytest.mark.parametrize("version", [1, 2])


def after(id):
    return {"broadcast": {"history": {"after": id}}}


def read(message):
    """Number, id and whether it is a repeat, of a broadcast in a text or a binary frame."""
    if message.is_binary:
        payload, meta = json.loads(message.payload.payload), json.loads(message.payload.metadata)
    else:
        payload, meta = message.payload["payload"], message.payload["meta"]
    return payload["n"], meta["history"], meta.get("replayed", False)


class Publisher:
    """Numbers 0, 1, 2 … by HTTP and by sockets of both versions, which the kernel spreads over the loops."""

    def __init__(self, hub, topic, name):
        self.hub, self.topic, self.name, self.sent = hub, topic, name, 0

    async def __aenter__(self):
        self.http = await HTTPConnection.open(self.hub.port)
        self.sockets = [await Client.connect(self.hub.port, version) for version in (1, 2, 1, 2)]
        for client in self.sockets:
            await client.join(self.topic)
        return self

    async def __aexit__(self, *_):
        await self.http.__aexit__()
        for client in self.sockets:
            await client.close()

    async def publish(self, count):
        """Done when the hub has taken them all."""
        for _ in range(count):
            payload = {"n": self.sent}
            client = self.sockets[self.sent % len(self.sockets)]
            if self.sent % 3 == 0:
                answer = await self.http.request(
                    "POST", f"/api/broadcast/{self.name}/events/e", payload, authorization="Bearer " + token(),
                    content_type="application/json")
                assert answer.status == 202, answer.body
            elif client.version == 2:
                client.send_binary(kind3("1", "9", self.topic, "e", json.dumps(payload).encode()))
                await client.settled()
            else:
                client.push(self.topic, "broadcast", {"type": "broadcast", "event": "e", "payload": payload}, "9")
                await client.settled()
            self.sent += 1


@both_versions
async def test_a_client_that_names_the_last_id_gets_each_message_once(hub, topic, name, version):
    got, last = [], None
    async with Publisher(hub, topic, name) as publisher:
        for turn in range(12):
            client = await Client.connect(hub.port, version)
            _, response = await client.join(topic, config=after(last) if last else HISTORY)
            history = response["history"]
            assert history.get("complete") is (True if last else None), history
            last = history["id"]
            await publisher.publish(10)
            # What comes behind the reply is read in part: the rest is lost with the socket.
            missed = publisher.sent - len(got)
            for _ in range(missed if turn == 11 else max(1, missed - 5)):
                number, last, _ = read(await client.next("broadcast", topic))
                got.append(number)
            client.socket.abort()
            await publisher.publish(5 if turn < 11 else 0)
    assert got == sorted(got, key=got.index) and len(set(got)) == len(got), "each once"
    assert sorted(got) == list(range(publisher.sent))


async def test_two_on_different_loops_see_the_same_order(hub, topic, name):
    clients = [await Client.connect(hub.port) for _ in range(6)]
    for client in clients:
        await client.join(topic, config=HISTORY)
    async with Publisher(hub, topic, name) as one, Publisher(hub, topic, name) as other:
        await asyncio.gather(one.publish(30), other.publish(30))
    seen = []
    for client in clients:
        seen.append([read(await client.next("broadcast", topic))[:2] for _ in range(60)])
        await client.close()
    assert all(order == seen[0] for order in seen)


async def test_the_python_client_is_cut_and_has_missed_nothing(hub, topic, name):
    async with python_client(hub, token(sub="ann")) as client, Publisher(hub, topic, name) as publisher:
        listener = Listener(client, name).on_broadcast("e")
        listener.channel.params["config"]["broadcast"]["history"] = True
        await listener.subscribe()
        for _ in range(8):
            await publisher.publish(6)
            states = len(listener.states)
            transport = client._ws_connection.transport
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            transport.abort()
            await publisher.publish(6)
            await listener.wait_for_state("SUBSCRIBED", after=states)
        def missing():
            return set(range(publisher.sent)) - {b["payload"]["n"] for b in listener.broadcasts}
        await eventually(lambda: not missing(), what=lambda: f"{missing()} of {publisher.sent}")


@both_versions
async def test_a_socket_that_freezes_is_no_loss_where_refs_begin_anew(hub, topic, name, version):
    """As supabase-swift before 2.55; the hub cannot hear of the break, and asks."""
    got, frozen = set(), []
    async with Publisher(hub, topic, name) as publisher:
        for turn in range(3):
            client = await Client.connect(hub.port, version, apikey=token(sub=f"freezes {version}"))
            await client.join(topic, config=HISTORY)
            missed = set(range(publisher.sent)) - got
            while missed - got:
                got.add(read(await client.next("broadcast", topic))[0])
            client.socket.writer.transport.pause_reading()
            frozen.append(client)
            await publisher.publish(4)
    assert got == set(range(8))
    for client in frozen:
        client._task.cancel()
        client.socket.abort()


async def test_a_first_join_gets_nothing_old(hub, connect, topic, name):
    keeper, newcomer = await connect(), await connect(apikey=token(sub="new"))
    await keeper.join(topic, config=HISTORY)
    async with Publisher(hub, topic, name) as publisher:
        await publisher.publish(3)
        await newcomer.join(topic, config=HISTORY)
        assert await newcomer.settled() == []


@both_versions
async def test_what_sql_sends_is_kept_too(hub, connect, sql, topic, name, version):
    stays, goes = await connect(version), await connect(version)
    await stays.join(topic, config=HISTORY)
    _, response = await goes.join(topic, config=HISTORY)
    goes.socket.abort()
    for n in range(3):
        sql.execute("select realtime.send(%s::jsonb, 'e', %s, false)", [json.dumps({"n": n}), name])
    seen = [read(await stays.next("broadcast", topic)) for _ in range(3)]
    back = await connect(version)
    await back.join(topic, config=after(response["history"]["id"]))
    assert [read(await back.next("broadcast", topic)) for _ in range(3)] == [(n, id, True) for n, id, _ in seen]
    assert await back.settled() == []


async def test_another_process_says_that_it_cannot_know(own_hub):
    own_hub.start()
    client = await Client.connect(own_hub.port)
    _, response = await client.join("realtime:a", config=HISTORY)
    own_hub.kill()
    await client.end()
    own_hub.start()
    client = await Client.connect(own_hub.port)
    _, response = await client.join("realtime:a", config=after(response["history"]["id"]))
    assert response["history"]["complete"] is False and "another process" in response["history"]["reason"]
    assert response["history"]["id"] and response["history"]["since"] > 1_700_000_000_000
    await client.close()
