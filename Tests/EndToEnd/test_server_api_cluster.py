"""The HTTP API for backends over three hubs: an answer is of all, or says of which it is not."""

import asyncio
import os
import signal

import pytest

from support.deadline import eventually, until
from support.freezing import freeze
from support.ops import connect_operator
from support.redis import Redis
from support.serverapi import Backend
from support.tokens import token
from support.websocket import Refused
from support.wsclient import Client
from test_cluster import Hubs


@pytest.fixture(scope="module")
def hubs(cluster):
    with Redis() as redis:
        hubs = Hubs(cluster.create_database("server_api"), redis, ROOST_LIMITS_CONNECTIONS_PER_USER="3")
        try:
            yield hubs.start()
        finally:
            hubs.remove()


@pytest.fixture
async def enter(hubs):
    """One client of the user on each hub, all three in a channel; closed at the end."""
    clients = []

    async def enter_all(user):
        topic, three = f"realtime:{user}", [await Client.connect(hub.port, apikey=token(sub=user)) for hub in hubs.all]
        clients.extend(three)
        for number, client in enumerate(three):
            await client.join(topic, config={"presence": {"enabled": True, "key": f"k{number}"}})
            client.push(topic, "presence", {"type": "presence", "event": "track", "payload": {"n": number}})
        # All three are in the list of each.
        for client in three:
            seen = set()
            while len(seen) < 3:
                message = await client.next(where=lambda m: m.event in ("presence_diff", "presence_state"))
                seen |= set(message.payload.get("joins", message.payload))
        # And known to all loops: one may be told of the newest a moment after its sibling.
        await settled(hubs)
        return three

    yield enter_all
    for client in clients:
        await client.close()


@pytest.fixture
async def members(enter, name):
    return await enter(name)


async def of_all(ask):
    """The first answer that is of all hubs: on a busy machine one may take longer than the half second that it has."""
    for number in range(10):
        answer = await ask(number)
        if not answer["incomplete"]:
            return answer
    raise AssertionError(answer)


async def settled(hubs):
    for hub in hubs.all:
        await hub.settled()


async def test_every_hub_has_the_same_answer(hubs, members, name):
    for hub in hubs.all:
        async def whole(path):
            return await of_all(lambda _: Backend(hub).get(path))
        assert await whole(f"/channels/{name}") == {
            "topic": name, "private": False, "connections": 3, "present": 3, "typing": 0, "incomplete": []}
        page = await whole(f"/channels?prefix={name}&limit=1")
        assert (page["channels"][0]["connections"], page["next"]) == (3, None)
        presence = await whole(f"/channels/{name}/presence")
        assert [member["key"] for member in presence["members"]] == ["k0", "k1", "k2"]
        user = await whole(f"/users/{name}")
        assert sorted(connection["hub"] for connection in user["connections"]) == ["hub0", "hub1", "hub2"]
        assert (user["online"], user["count"]) == (True, 3)
        stats = await whole("/stats")
        assert [one["hub"] for one in stats["hubs"]] == ["hub0", "hub1", "hub2"]


async def test_lists_are_joined_page_by_page(hubs, name):
    clients = [await Client.connect(hub.port, apikey=token()) for hub in hubs.all]
    try:
        for n in range(30):
            await clients[n % 3].join(f"realtime:{name}-{n:02}")
            await clients[(n // 3) % 3].join(f"realtime:{name}-all-{n % 4}")
        await settled(hubs)
        channels = await Backend(hubs.all[1]).pages(f"/channels?prefix={name}&limit=7", of="channels")
        assert [channel["topic"] for channel in channels] == [f"{name}-{n:02}" for n in range(30)] + [
            f"{name}-all-{n}" for n in range(4)]
        assert {channel["connections"] for channel in channels[:30]} == {1}
        assert all(channel["connections"] == 3 for channel in channels[30:])
    finally:
        for client in clients:
            await client.close()


async def test_a_user_is_disconnected_everywhere(hubs, enter, name):
    members = []

    async def disconnect(number):
        members[:] = await enter(f"{name}_{number}")
        return await Backend(hubs.all[2]).post(f"/users/{name}_{number}/disconnect")
    answer = await of_all(disconnect)
    assert answer["hubs"] == {"hub0": 1, "hub1": 1, "hub2": 1} and answer["disconnected"] == 3
    for client in members:
        assert (await client.end()).code == 1012


async def test_a_user_is_kept_out_everywhere(hubs, enter, name):
    user, members = None, []

    async def unsubscribe(number):
        nonlocal user, members
        user = f"{name}_{number}"
        members = await enter(user)
        return await Backend(hubs.all[0]).post(f"/users/{user}/unsubscribe", {"topic": user, "seconds": 60})
    answer = await of_all(unsubscribe)
    assert answer["unsubscribed"] == 3
    topic = f"realtime:{user}"
    for client in members:
        await client.next("phx_close", topic)
        reply = await client.ask(topic, "phx_join", {"config": {}})
        assert "you may join again in" in reply.payload["response"]["reason"]


async def test_a_hub_that_is_silent_is_named(hubs, members, name):
    backend, frozen = Backend(hubs.all[0]), hubs.all[2]
    try:
        for _ in range(5):
            hubs.wait_until_whole()
            freeze(frozen.process.pid)
            answer = await backend.get(f"/users/{name}")
            if answer["incomplete"] == ["hub2"]:
                break
            # On a busy machine it passed for dead before it was asked: then it is no hub of the cluster. Or another was late, too.
            os.kill(frozen.process.pid, signal.SIGCONT)
        assert answer["incomplete"] == ["hub2"] and answer["count"] == 2
        out = hubs.all[0].run("user", name, check=False)
        # By now it may be known to be dead: then it is no hub of the cluster any more.
        assert out.returncode == 69 and "hub2" in out.stderr or out.stdout.startswith("online, 2 connections")
    finally:
        os.kill(frozen.process.pid, signal.SIGCONT)
    hubs.wait_until_whole()


async def test_without_redis_a_hub_says_that_it_knows_itself_alone(hubs, members, name):
    hubs.redis.kill()
    try:
        backend = Backend(hubs.all[0])
        until(lambda: hubs.all[0].metric("roost_cluster_reached") == 0)
        for path in (f"/channels/{name}", f"/channels/{name}/presence", f"/users/{name}", "/stats"):
            assert (await backend.get(path))["incomplete"] == ["hub1", "hub2"], path
        assert (await backend.post(f"/users/{name}/disconnect"))["hubs"] == {"hub0": 1}
    finally:
        hubs.redis.start()
    hubs.wait_until_whole()


# How many sockets a user may have


async def is_let_in(hub, user):
    """A socket of the user, or None where it has as many as it may."""
    try:
        client = await Client.connect(hub.port, apikey=token(sub=user))
    except Refused as refused:
        assert refused.status == 429, refused
        return None
    return client


async def test_a_user_has_so_many_sockets_on_all_hubs_together(hubs, name):
    clients = [await is_let_in(hub, name) for hub in hubs.all]
    assert all(clients)
    for hub in hubs.all:
        async with asyncio.timeout(30):
            # The others hear of a socket a moment after it is there: until then one more may get in.
            while more := await is_let_in(hub, name):
                await more.close()
    assert (other := await is_let_in(hubs.all[0], name + "-other"))
    await other.close()
    await clients.pop().close()
    async with asyncio.timeout(30):
        while not (again := await is_let_in(hubs.all[0], name)):
            await asyncio.sleep(0.02)
    clients.append(again)
    # A hub that is killed takes its sockets out of the count, once the others know of it.
    hubs.all[1].kill()
    async with asyncio.timeout(30):
        while not (again := await is_let_in(hubs.all[2], name)):
            await asyncio.sleep(0.1)
    hubs.all[1].start()
    hubs.wait_until_whole()
    # Who comes asks the others how many there are.
    async with asyncio.timeout(30):
        while more := await is_let_in(hubs.all[1], name):
            await more.close()
    for client in [*clients, again]:
        await client.close()


async def test_without_redis_each_hub_counts_by_itself(hubs, name):
    clients = [await is_let_in(hubs.all[0], name) for _ in range(3)]
    async with asyncio.timeout(30):
        while more := await is_let_in(hubs.all[1], name):
            await more.close()
    hubs.redis.kill()
    try:
        async def counts_alone():
            if more := await is_let_in(hubs.all[1], name):
                clients.append(more)
            return more
        await eventually(counts_alone, what="the second hub lets one in")
        assert await is_let_in(hubs.all[0], name) is None
    finally:
        hubs.redis.start()
    hubs.wait_until_whole()
    async with asyncio.timeout(30):
        while more := await is_let_in(hubs.all[2], name):
            await more.close()
    for client in clients:
        await client.close()


# The live page


async def test_the_live_page_ends_a_user_everywhere_and_says_whose_page_it_is(hubs, enter, name):
    operator = await connect_operator(hubs.all[1])
    try:
        await operator.join("ops:overview")
        # Those that were killed by another test stand there for a minute, too.
        def there(message):
            return [hub["name"] for hub in message.payload["cluster"]["hubs"] if hub["state"] == "there"]

        sample = await operator.next("sample", "ops:overview", where=lambda m: len(there(m)) == 3)
        assert there(sample) == ["hub1", "hub0", "hub2"]
        members = []

        async def disconnect(number):
            members[:] = await enter(f"{name}_{number}")
            return (await operator.ask("ops:overview", "disconnect_user", {"user": f"{name}_{number}"})).payload["response"]
        assert await of_all(disconnect) == {"closed": 3, "incomplete": []}
        for client in members:
            assert (await client.end()).code == 1012
    finally:
        await operator.close()
