"""Several hubs on one database and one Redis act as one."""

import asyncio
import itertools
import json
import signal

import pytest

from support import lagging
from support.bounds import at_most, in_time
from support.deadline import PATIENCE, eventually, until
from support.freezing import freeze
from support.http import HTTPConnection
from support.hub import Hub
from support.redis import Redis
from support.returning import Returning, Rows, in_order
from support.tokens import token
from support.wsclient import Client

#: Seconds for what is to come at once.
AT_ONCE = 3.0


class Hubs:
    """Three hubs of one cluster, two loops each."""

    def __init__(self, database, redis, count=3, **settings):
        self.redis = redis
        self.all = [
            Hub(database, ROOST_LOOPS="2", ROOST_NODE_NAME=f"hub{number}", ROOST_CLUSTER_URL=lagging.url(redis, number),
                ROOST_FEED_SAFETY_POLL_SECONDS="1", **settings)
            for number in range(count)]
        self.all[0].run("migrate")

    def start(self):
        for hub in self.all:
            hub.start(wait=False)
        for hub in self.all:
            hub.wait_until_listening(30)
        self.wait_until_whole()
        return self

    def wait_until_whole(self, hubs=None, within=PATIENCE):
        hubs = hubs or self.all
        for hub in hubs:
            until(lambda: hub.ops("/readyz") == (200, "ok\n"), within, lambda: f"{hub.ops('/readyz')} {hub.log[-2000:]}")
        for hub in hubs:
            until(lambda: hub.metric("roost_cluster_hubs") == len(hubs) - 1, within, lambda: hub.log[-2000:])

    def remove(self):
        for hub in self.all:
            hub.remove()


@pytest.fixture(scope="module")
def redis():
    with Redis() as redis:
        yield redis


@pytest.fixture(scope="module")
def shared_hubs(cluster, redis):
    hubs = Hubs(cluster.create_database("several"), redis, ROOST_NOTIFY_CHANNELS="jobs -> public {topic} / e")
    try:
        yield hubs.start()
    finally:
        hubs.remove()


@pytest.fixture
def hubs(shared_hubs):
    yield shared_hubs.all
    for hub in shared_hubs.all:
        if hub.process.poll() is not None:
            hub.start()
    shared_hubs.wait_until_whole()


@pytest.fixture
async def member(hubs):
    """Opens a client on a hub and joins."""
    clients = []

    async def open_client(hub, topic, config=None, version=2, **claims):
        client = await Client.connect(hub.port, version, apikey=token(**claims))
        clients.append(client)
        client.joined = await client.join(topic, config=config)
        return client

    yield open_client
    for client in clients:
        await client.close()


def say(client, topic, n):
    client.push(topic, "broadcast", {"type": "broadcast", "event": "e", "payload": {"n": n}})


async def numbers(client, topic, count, within=PATIENCE):
    """Of so many broadcasts what they say."""
    out = []
    for _ in range(count):
        message = await client.next("broadcast", topic, within=within, where=lambda m: m.payload.get("event") == "e")
        out.append(message.payload["payload"]["n"])
    return out


def track(client, topic, **payload):
    client.push(topic, "presence", {"type": "presence", "event": "track", "payload": payload})


def present(key):
    return {"presence": {"key": key, "enabled": True}}


async def diff(client, topic, part, key, bound=AT_ONCE):
    with at_most(bound, f"the word that {key} {part}"):
        return await client.next("presence_diff", topic, where=lambda m: key in m.payload[part])


def present_to(client, topic):
    """The keys that a client knows of who has just joined: its first list, and what changed since."""
    keys = set()
    for message in client.messages:
        if message.topic == topic and message.event == "presence_state":
            keys = set(message.payload)
        elif message.topic == topic and message.event == "presence_diff":
            keys = (keys - set(message.payload["leaves"])) | set(message.payload["joins"])
    return keys


def leaves(client, topic):
    return [key for m in client.messages if m.event == "presence_diff" and m.topic == topic for key in m.payload["leaves"]
            if key not in m.payload["joins"]]


# Broadcast and typing


async def test_what_is_said_on_one_hub_is_heard_on_all(hubs, member, topic):
    clients = [await member(hub, topic) for hub in hubs]
    for n in range(100):
        say(clients[n % 3], topic, n)
    for number, client in enumerate(clients):
        heard = await numbers(client, topic, 66)
        assert sorted(heard) == [n for n in range(100) if n % 3 != number][:66] or len(heard) == 66
        for other in range(3):
            mine = [n for n in heard if n % 3 == other]
            assert mine == sorted(mine), "one publisher's in its order"


async def test_messages_by_http_reach_all(hubs, member, topic, name):
    clients = [await member(hub, topic) for hub in hubs]
    async with await HTTPConnection.open(hubs[0].port) as http:
        answer = await http.request("POST", f"/api/broadcast/{name}/events/e", json.dumps({"n": 1}).encode(),
                                    authorization=f"Bearer {token()}", content_type="application/json")
        assert answer.status == 202, answer.body
    for client in clients:
        assert await numbers(client, topic, 1) == [1]


async def test_typing_is_one_set(hubs, member, topic):
    await in_time(3, lambda number: typing(hubs, member, f"{topic}_{number}"))


async def typing(hubs, member, topic):
    typist = await member(hubs[0], topic, sub="ann")
    watcher = await member(hubs[1], topic, sub="bob")
    typist.push(topic, "broadcast", {"type": "broadcast", "event": "typing", "payload": {"typing": True, "user_id": "ann"}})
    started = await watcher.next("broadcast", topic, where=lambda m: m.payload["event"] == "typing")
    assert started.payload["payload"]["typing"] is True
    # The third hub may hear of it after the second has.
    await hubs[2].settled()
    late = await member(hubs[2], topic, sub="cid")
    state = await late.next("broadcast", topic, where=lambda m: m.payload["event"] == "typing_state")
    assert [typist["user_id"] for typist in state.payload["payload"]["typing"]] == ["ann"]
    ended = await watcher.next("broadcast", topic, where=lambda m: m.payload["event"] == "typing")
    assert ended.payload["payload"]["typing"] is False


def test_each_hub_tells_which_hubs_there_are_and_of_which_version(hubs):
    version = hubs[0].run("--version").stdout.split()[0]
    for hub in hubs:
        text = hub.read_metrics()[1]
        for number in range(3):
            assert f'roost_cluster_peer_info{{hub="hub{number}",version="{version}"}} 1\n' in text


# Presence


async def test_who_is_present_on_one_hub_is_present_on_all(hubs, member, topic):
    first = await member(hubs[0], topic, present("ann"), sub="ann")
    track(first, topic, name="Ann")
    watcher = await member(hubs[1], topic, present("bob"), sub="bob")
    with at_most(AT_ONCE, "the word of ann"):
        await eventually(lambda: any("ann" in {**m.payload, **m.payload.get("joins", {})} for m in watcher.messages
                                     if m.event in ("presence_state", "presence_diff")))
    track(watcher, topic, name="Bob")
    joined = await diff(first, topic, "joins", "bob")
    assert joined.payload["joins"]["bob"]["metas"][0]["name"] == "Bob"
    late = await member(hubs[2], topic, present("cid"), sub="cid")
    # The third hub may hear of Bob after the first has.
    await eventually(lambda: present_to(late, topic) == {"ann", "bob"}, what=lambda: late.messages)
    await first.ask(topic, "phx_leave", {})
    assert "ann" in (await diff(watcher, topic, "leaves", "ann")).payload["leaves"]
    assert "ann" in (await diff(late, topic, "leaves", "ann")).payload["leaves"]


async def test_who_comes_back_on_another_hub_was_never_gone(hubs, member, topic):
    watchers = [await member(hub, topic, present(f"w{n}"), sub=f"w{n}") for n, hub in enumerate(hubs)]
    ann = await member(hubs[0], topic, {**present("ann"), "app_state": "inactive"}, sub="ann")
    track(ann, topic, name="Ann")
    for watcher in watchers:
        await diff(watcher, topic, "joins", "ann")
    ann._task.cancel()
    ann.socket.abort()
    back = await member(hubs[1], topic, present("ann"), sub="ann")
    track(back, topic, name="Ann")
    await back.settled()
    # It has noticed that she is gone there, and knows that she is back here.
    await hubs[1].settled()
    await hubs[0].settled()
    await back.ask(topic, "phx_leave", {})
    for watcher in watchers:
        left = await diff(watcher, topic, "leaves", "ann")
        assert "ann" not in left.payload["joins"]
        assert leaves(watcher, topic) == [], "she left once, at the end"


async def test_members_of_a_hub_that_dies_count_for_their_windows_and_leave_once(hubs, member, topic):
    watcher = await member(hubs[1], topic, present("w"), sub="w")
    gone = await member(hubs[0], topic, present("ann"), sub="ann")
    stays = await member(hubs[0], topic, {**present("bob"), "app_state": "background"}, sub="bob")
    for client, key in ((gone, "ann"), (stays, "bob")):
        track(client, topic, name=key)
        await diff(watcher, topic, "joins", key)
    hubs[0].kill()
    # Within the window, by the last state of his app.
    back = await member(hubs[2], topic, present("bob"), sub="bob")
    track(back, topic, name="bob")
    await diff(watcher, topic, "leaves", "ann", bound=15)
    await back.settled()
    await hubs[2].settled()
    await hubs[1].settled()
    late = await member(hubs[1], topic, present("x"), sub="x")
    state = await late.next("presence_state", topic)
    assert "bob" in state.payload and "ann" not in state.payload
    assert "bob" not in leaves(watcher, topic) and leaves(watcher, topic).count("ann") == 0


async def test_a_hub_that_is_killed_and_started_at_once_shows_everybody_when_it_has_its_name(hubs, shared_hubs, member, topic):
    """Until its old lease is over it is not in the log, where what others answer stands behind messages that it never reads."""
    ann = await member(hubs[0], topic, present("ann"), sub="ann")
    track(ann, topic, name="ann")
    await ann.settled()

    async def speak():
        for n in itertools.count():
            say(ann, topic, n)
            await asyncio.sleep(0.02)

    speaking = asyncio.create_task(speak())
    try:
        hubs[2].kill()
        await asyncio.to_thread(hubs[2].start)
        await asyncio.to_thread(shared_hubs.wait_until_whole)
        await eventually(lambda: hubs[2].metric("roost_cluster_members") > 0, what="it knows who is present")
        # Somebody of another hub may be known before her.
        await hubs[2].settled()
    finally:
        speaking.cancel()
    watcher = await member(hubs[2], topic, present("w"), sub="w")
    assert "ann" in (await watcher.next("presence_state", topic)).payload
    assert hubs[2].metric("roost_cluster_questions_unanswered_total") == 0, "the first answer was one"


# History


HISTORY = {"broadcast": {"history": True, "self": True}}


async def test_a_channel_with_history_has_one_order_on_all_hubs(hubs, member, topic):
    clients = [await member(hub, topic, HISTORY) for hub in hubs]
    for n in range(90):
        say(clients[n % 3], topic, n)
    heard = [await numbers(client, topic, 90) for client in clients]
    assert heard[0] == heard[1] == heard[2]
    assert sorted(heard[0]) == list(range(90))


async def test_an_id_of_one_hub_counts_on_another(hubs, member, topic):
    first = await member(hubs[0], topic, HISTORY)
    publisher = await member(hubs[1], topic)
    say(publisher, topic, 0)
    message = await first.next("broadcast", topic)
    last = message.payload["meta"]["history"]
    await first.close()
    for n in range(1, 6):
        say(publisher, topic, n)
    await publisher.settled()
    for hub in hubs:
        await hub.settled()
    back = await member(hubs[2], topic, {"broadcast": {"history": {"after": last}}})
    assert back.joined[1]["history"]["complete"] is True, back.joined
    assert await numbers(back, topic, 5) == [1, 2, 3, 4, 5]


async def test_a_notification_is_kept_once_and_has_one_id(hubs, member, cluster, topic, name):
    clients = [await member(hub, topic, HISTORY) for hub in hubs]
    away = await member(hubs[0], topic, HISTORY)

    def notify(sql, n):
        sql.execute("select pg_notify('jobs', %s)", [json.dumps({"topic": name, "n": n})])

    with cluster.connect("several") as sql:
        notify(sql, 0)
        last = (await away.next("broadcast", topic)).payload["meta"]["history"]
        await away.close()
        for n in range(1, 40):
            notify(sql, n)
    heard = []
    for client in clients:
        messages = [await client.next("broadcast", topic) for _ in range(40)]
        assert [m.payload["payload"]["n"] for m in messages] == list(range(40))
        heard.append([m.payload["meta"]["history"] for m in messages])
    assert heard[0] == heard[1] == heard[2]
    back = await member(hubs[1], topic, {"broadcast": {"history": {"after": last}}})
    assert back.joined[1]["history"]["complete"] is True, back.joined
    assert [(await back.next("broadcast", topic)).payload["payload"]["n"] for _ in range(39)] == list(range(1, 40))
    for client in (*clients, back):
        await client.settled()
        assert not [m for m in client.messages if m.event == "broadcast"], "each once"


# Rows


async def test_a_client_whose_hub_died_is_brought_its_rows_by_another(hubs, shared_hubs, cluster, name, topic):
    with cluster.connect("several") as sql:
        sql.execute(f'create table "{name}" (id int8 primary key, body text, n int4)')
    hubs[0].watch(f'public."{name}"')
    client = Returning(hubs[0], topic, name, sub="moves")
    await client.enter()
    rows = Rows(hubs[0].environment["ROOST_DATABASE_URL"], name, rate=100)
    rows.start()
    await eventually(lambda: len(client.frames) > 50)
    hubs[0].kill()
    client.hub = hubs[1]
    await asyncio.sleep(0.5)
    await client.enter()
    await eventually(lambda: len(rows.committed) > 250, 30)
    # And again, while the hub lives: a balancer sent it elsewhere.
    await client.cut()
    client.hub = hubs[2]
    await asyncio.sleep(0.3)
    await client.enter()
    committed = await rows.stop()
    await client.has(committed, 60)
    assert in_order(client.ids)
    await client.close()


async def rows_brought(hub, topic, table, sub):
    """How many rows somebody new is brought who joins a hub, and says good-bye."""
    client = Returning(hub, topic, table, sub=sub)
    await client.enter()
    await client.client.next("system", topic)
    # Until it has answered the ping behind that, nothing is proven, and the next one would be brought the same.
    await client.settled()
    count = len(client.frames)
    await client.client.ask(topic, "phx_leave", {})
    await client.close()
    return count


async def test_a_living_hub_says_where_its_client_is(hubs, shared_hubs, cluster, name, topic):
    with cluster.connect("several") as sql:
        sql.execute(f'create table "{name}" (id int8 primary key, body text, n int4)')
        hubs[0].watch(f'public."{name}"')
        # For somebody who is away the hub keeps its place far back.
        away = Returning(hubs[0], topic, name, sub="away")
        await away.enter()
        await away.cut()
        here = Returning(hubs[0], topic, name, sub="here")
        await here.enter()
        sql.execute(f'insert into "{name}" (id) select generate_series(1, 300)')
        await here.has(range(1, 301))
        # Once the first client has answered a ping, a second one lacks nothing.
        counts = []
        while not counts or counts[-1] > 0:
            assert len(counts) < 60, counts
            counts.append(await rows_brought(hubs[1], topic, name, "here"))
            await asyncio.sleep(0.25)
        # Whoever is away is brought all of it, wherever it comes back.
        away.hub = hubs[2]
        await away.enter()
        await away.has(range(1, 301))
        assert hubs[1].metric("roost_cluster_questions_total") > 0
    await here.close()
    await away.close()


async def test_a_hub_that_is_silent_holds_up_nobody(hubs, shared_hubs, cluster, name, topic):
    with cluster.connect("several") as sql:
        sql.execute(f'create table "{name}" (id int8 primary key, body text, n int4)')
        hubs[0].watch(f'public."{name}"')
        client = Returning(hubs[0], topic, name, sub="moves")
        await client.enter()
        await client.cut()
        sql.execute(f'insert into "{name}" (id) select generate_series(1, 20)')
        before = hubs[1].metric("roost_cluster_questions_unanswered_total")
        freeze(hubs[0].process.pid)
        try:
            client.hub = hubs[1]
            await client.enter()
            await client.has(range(1, 21))
        finally:
            hubs[0].process.send_signal(signal.SIGCONT)
        await eventually(lambda: hubs[1].metric("roost_cluster_questions_unanswered_total") > before)
    await client.close()


# Redis is away, and hubs come and go


async def test_without_redis_each_hub_goes_on_alone_and_then_they_are_one_again(hubs, shared_hubs, member, topic):
    clients = [await member(hub, topic, present(f"m{n}"), sub=f"m{n}") for n, hub in enumerate(hubs)]
    for n, client in enumerate(clients):
        track(client, topic, n=n)
    for n, client in enumerate(clients):
        for other in range(3):
            if other != n:
                with at_most(AT_ONCE, f"the word of m{other}"):
                    await eventually(lambda: any(f"m{other}" in {**m.payload, **m.payload.get("joins", {})} for m in client.messages
                                                 if m.event.startswith("presence")))
    beside = await member(hubs[0], topic)
    shared_hubs.redis.kill()
    for hub in hubs:
        until(lambda: "degraded" in hub.ops("/readyz")[1])
        assert hub.ops("/readyz")[0] == 200
    say(clients[0], topic, 1)
    assert await numbers(beside, topic, 1) == [1], "what is local goes on"
    shared_hubs.redis.start()
    shared_hubs.wait_until_whole()
    assert await numbers(clients[1], topic, 1) == [1], "what was said meanwhile is sent again"
    say(clients[0], topic, 2)
    for client in clients[1:]:
        assert (await numbers(client, topic, 2 if client is clients[2] else 1))[-1] == 2
    for client in clients:
        assert leaves(client, topic) == [], "nobody left"


async def test_a_name_that_is_used_twice_is_refused(hubs, shared_hubs, cluster):
    other = Hub(cluster.create_database("impostor"), ROOST_NODE_NAME="hub1", ROOST_CLUSTER_URL=shared_hubs.redis.url())
    try:
        other.run("migrate")
        other.start()
        until(lambda: "is called hub1" in other.log, what=lambda: other.log[-2000:])
        until(lambda: "give each a node.name of its own" in other.ops("/readyz")[1], what=lambda: other.ops("/readyz"))
        assert "is called hub1" not in hubs[1].log
    finally:
        other.remove()


async def test_a_drain_makes_nobody_leave(hubs, member, topic):
    watchers = [await member(hub, topic, present(f"w{n}"), sub=f"w{n}") for n, hub in enumerate(hubs[1:])]
    moving = []
    for n in range(5):
        client = await member(hubs[0], topic, present(f"m{n}"), sub=f"m{n}")
        track(client, topic, n=n)
        moving.append(client)
        for watcher in watchers:
            await diff(watcher, topic, "joins", f"m{n}")
    hubs[0].process.send_signal(signal.SIGTERM)
    for n, client in enumerate(moving):
        await client.end()
        back = await member(hubs[1 + n % 2], topic, present(f"m{n}"), sub=f"m{n}")
        track(back, topic, n=n)
        await back.settled()
    assert hubs[0].process.wait(30) == 0
    for watcher in watchers:
        await watcher.settled()
        assert leaves(watcher, topic) == []
