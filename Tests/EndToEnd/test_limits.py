"""Limits: each is answered with an error that names it, nobody is cut off for good, and nobody else notices.

Hubs of their own, with limits so low that a test reaches them. One loop where a bystander is to sit beside the culprit.
"""

import asyncio
import contextlib
import json
import resource
import signal
import socket
import subprocess
import time

import pytest

from support.bounds import Elapsed, at_most
from support.bystander import Bystander
from support.deadline import PATIENCE, eventually
from support.hub import Hub
from support.pypi import Listener, python_client
from support.tokens import token
from support.websocket import Closed, Refused
from support.wsclient import Client


def hub_with(cluster, name, **limits):
    settings = {f"ROOST_LIMITS_{key.upper()}": str(value) for key, value in limits.items()}
    hub = Hub(cluster.create_database(name), **{"ROOST_LOOPS": "2", **settings})
    hub.run("migrate")
    return hub


def served(name, loops=2, **limits):
    """A fixture: a hub for this module, with limits."""
    @pytest.fixture(scope="module")
    def fixture(cluster):
        hub = hub_with(cluster, name, **limits)
        hub.environment["ROOST_LOOPS"] = str(loops)
        try:
            yield hub.start()
        finally:
            hub.remove()
    return fixture


small = served("limits_small", connections=10)
addresses = served("limits_addresses", connections_per_address=3)
users = served("limits_users", connections_per_user=2)
paced = served(
    "limits_paced", loops=1, joins_per_second=20, presence_per_second=20, messages_per_second=500, bytes_per_second=500_000)


def refused(hub, limit):
    return hub.metric(f'roost_refused_total{{limit="{limit}"}}')


def slowed(hub, limit):
    return hub.metric(f'roost_slowed_total{{limit="{limit}"}}')


async def emptied(hub):
    await eventually(lambda: hub.metric("roost_connections") == 0, what="all sockets of the last test gone")


async def refusal(hub, **options):
    with pytest.raises(Refused) as caught:
        await Client.connect(hub.port, **options)
    assert caught.value.headers["content-type"].startswith("application/json")
    return caught.value.status, json.loads(caught.value.body)["error"]


async def opened(hub, count, **options):
    """Tries to open so many at once. The clients, and the statuses of those that were refused."""
    answers = await asyncio.gather(*(Client.connect(hub.port, **options) for _ in range(count)), return_exceptions=True)
    clients = [answer for answer in answers if isinstance(answer, Client)]
    others = [answer for answer in answers if not isinstance(answer, Client)]
    assert all(isinstance(answer, Refused) for answer in others), others
    return clients, [answer.status for answer in others]


async def closed(clients):
    for client in clients:
        await client.close()


# Sockets


async def test_sockets_in_all(small):
    await emptied(small)
    before = refused(small, "connections")
    clients, statuses = await opened(small, 60)
    assert (len(clients), statuses) == (10, [503] * 50)
    assert await refusal(small) == (
        503, "Too many connected users: this hub takes 10 sockets (limits.connections); try again later")
    await eventually(lambda: refused(small, "connections") == before + 51, what="51 refusals counted")
    for client in clients:
        await client.join("realtime:full")
    await clients.pop().close()
    async def again():
        try:
            clients.append(await Client.connect(small.port))
            return True
        except Refused:
            return False
    await eventually(again, what="the free seat")
    await closed(clients)


async def test_seats_come_back_however_sockets_end(small):
    """A seat that is lost is missed in the next round."""
    await emptied(small)
    for round in range(20):
        clients, _ = await opened(small, 12)
        assert len(clients) == 10, f"{len(clients)} seats in round {round}"
        for number, client in enumerate(clients):
            if number % 3 == 0:
                client.socket.send(8, b"\x03\xe8")
            elif number % 3 == 1:
                client.socket.writer.transport.abort()
            else:
                client.socket.send_bytes(b"\xff" * 10)
        await closed(clients)
        await emptied(small)


async def test_upgrades_that_break_off_keep_no_seat(small):
    await emptied(small)
    path = f"/realtime/v1/websocket?apikey={token()}&vsn=2.0.0"
    head = (f"GET {path} HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n")
    for number in range(200):
        with socket.create_connection(("127.0.0.1", small.port)) as connection:
            # Reset, whole or in the middle of the head.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            connection.sendall((head + "\r\n").encode()[:None if number % 2 else -5])
    # The hub may still be taking up the last of them.
    for _ in range(50):
        await emptied(small)
        clients, _ = await opened(small, 12)
        await closed(clients)
        if len(clients) == 10:
            break
    assert len(clients) == 10


async def test_sockets_of_one_address(addresses):
    await emptied(addresses)
    clients, statuses = await opened(addresses, 10, source="127.0.0.9")
    assert (len(clients), statuses) == (3, [429] * 7)
    assert await refusal(addresses, source="127.0.0.9") == (
        429, "Too many connected users: one address may have 3 sockets (limits.connections_per_address); close another first")
    others, statuses = await opened(addresses, 3, source="127.0.0.10")
    assert (len(others), statuses) == (3, [])
    await eventually(lambda: refused(addresses, "connections_per_address") == 8, what="8 refusals counted")
    await closed(clients)
    await eventually(lambda: addresses.metric("roost_connections") == 3, what="the first three gone")
    clients, statuses = await opened(addresses, 4, source="127.0.0.9")
    assert (len(clients), statuses) == (3, [429])
    await closed(clients + others)


async def test_sockets_of_one_user_by_the_token_at_the_door(users):
    await emptied(users)
    ada = token(sub="ada")
    clients, statuses = await opened(users, 6, apikey=ada)
    assert (len(clients), statuses) == (2, [429] * 4)
    assert await refusal(users, apikey=ada) == (
        429, "Too many connected users: one user may have 2 sockets (limits.connections_per_user); close another first")
    others, statuses = await opened(users, 5)
    assert (len(others), statuses) == (5, []), "tokens without a subject do not count"
    await clients.pop().close()
    await eventually(lambda: users.metric("roost_connections") == 6, what="one gone")
    again, statuses = await opened(users, 2, apikey=ada)
    assert (len(again), statuses) == (1, [429])
    await closed(clients + others + again)


async def test_sockets_of_one_user_by_the_token_of_the_join(users):
    """As supabase-js does: the door sees the project's key, and the user comes with the join."""
    await emptied(users)
    clients = [await Client.connect(users.port) for _ in range(3)]
    for client in clients[:2]:
        await client.join("realtime:a", access_token=token(sub="grace"))
        await client.join("realtime:b", access_token=token(sub="grace"))
    reply = await clients[2].ask("realtime:a", "phx_join", {"config": {}, "access_token": token(sub="grace")})
    assert reply.payload["response"]["reason"] == (
        "ConnectionRateLimitReached: Too many connected users: one user may have 2 sockets (limits.connections_per_user); "
        "close another first")
    await clients[0].close()
    await eventually(lambda: users.metric("roost_connections") == 2, what="one gone")
    await clients[2].join("realtime:a", access_token=token(sub="grace"))
    await closed(clients)


async def test_the_python_client_comes_in_when_there_is_room(small):
    await emptied(small)
    clients, _ = await opened(small, 10)
    async with python_client(small) as client:
        listener = Listener(client, "late")
        attempt = asyncio.create_task(listener.subscribe())
        await eventually(lambda: refused(small, "connections") > 0 and not attempt.done(), what="a refusal")
        await closed(clients)
        await asyncio.wait_for(attempt, 30)


async def test_without_free_files_the_hub_waits_and_does_not_spin(cluster):
    for number in range(3):
        hub = hub_with(cluster, f"limits_files_{number}", connections=1000)
        try:
            return await does_not_spin(hub.start())
        except (Closed, AssertionError):
            # libdispatch ends a process that has no file left for a look at its threads in /proc (workqueue.c). A limit that holds when
            # the hub starts leaves it some (`DescriptorRoom`); this one is lowered while it runs.
            # Its sockets are closed before it can be waited for.
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(hub.process.wait, PATIENCE)
            if hub.process.poll() != -signal.SIGILL:
                raise
        finally:
            hub.remove()
    pytest.fail("the hub ended three times")


async def does_not_spin(hub):
    await emptied(hub)
    keep = await Client.connect(hub.port)
    await keep.join("realtime:keep")
    _, hard = resource.prlimit(hub.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(hub.process.pid, resource.RLIMIT_NOFILE, (hub.open_files + 4, hard))
    sockets = [socket.create_connection(("127.0.0.1", hub.port)) for _ in range(40)]
    await eventually(lambda: "cannot accept connections" in hub.log, what="the warning")

    def cpu():
        with open(f"/proc/{hub.process.pid}/stat") as file:
            return sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13])) / 100
    began, before = time.monotonic(), cpu()
    while time.monotonic() - began < 2:
        await keep.settled()
        await asyncio.sleep(0.1)
    spent, took = cpu() - before, time.monotonic() - began
    assert spent < took / 4, f"{spent:.2f} s of CPU in {took:.1f} s of waiting for files"
    for one in sockets:
        one.close()

    async def again():
        try:
            return await Client.connect(hub.port)
        except (Refused, TimeoutError, OSError):
            return None
    await closed([await eventually(again, 20, "a new connection"), keep])


# Rates


async def test_joins_over_the_rate_are_refused_and_later_not(paced):
    """As many as channels at once, and one second's."""
    async with Bystander(paced), await Client.connect(paced.port) as client:
        began = time.monotonic()
        for number in range(400):
            client.push("realtime:again", "phx_join", {"config": {}}, str(number), str(number))
        replies = [await client.next("phx_reply", ref=str(number)) for number in range(400)]
        errors = [reply.payload["response"]["reason"] for reply in replies if reply.payload["status"] == "error"]
        assert 120 <= 400 - len(errors) <= 140 + 20 * (time.monotonic() - began)
        assert set(errors) == {
            "ClientJoinRateLimitReached: Too many joins per second: one socket may make 20 (limits.joins_per_second); "
            "join again later"}
        async def joined():
            return (await client.ask("realtime:again", "phx_join", {"config": {}})).payload["status"] == "ok"
        await eventually(joined, what="a join after a while", every=0.1)
        await eventually(lambda: refused(paced, "joins_per_second") >= len(errors), what="the refusals counted")


async def test_a_python_client_with_a_hundred_channels_meets_no_limit(paced, name):
    async with python_client(paced) as client:
        await asyncio.gather(*(Listener(client, f"{name}_{number}", presence=True).subscribe() for number in range(100)))
        for channel in list(client.channels.values()):
            await channel.track({"n": 1})


async def test_presence_over_the_rate_is_answered_with_an_error(paced, topic):
    async with await Client.connect(paced.port) as client, await Client.connect(paced.port) as other:
        await client.join(topic)
        await other.join(topic, config={"presence": {"enabled": True}})
        began = time.monotonic()
        for number in range(300):
            client.push(topic, "presence", {"type": "presence", "event": "track", "payload": {"n": number}}, str(number + 9))
        replies = [await client.next("phx_reply", ref=str(number + 9)) for number in range(300)]
        accepted = [number for number, reply in enumerate(replies) if reply.payload["status"] == "ok"]
        assert 120 <= len(accepted) <= 140 + 20 * (time.monotonic() - began)
        assert replies[-1].payload["response"]["reason"].startswith(
            "ClientPresenceRateLimitReached: Too many presence messages per second: one socket may send 20 (limits.presence_per_second)")
        await other.settled()
        seen = [meta["n"] for message in other.messages if message.event == "presence_diff"
                for key in message.payload["joins"].values() for meta in key["metas"]]
        assert seen == accepted, "what was accepted was shown, and nothing else"
        assert (await client.ask(topic, "presence", {"event": "untrack"})).payload["status"] == "ok"


@pytest.mark.clock
@pytest.mark.parametrize("version", [1, 2])
async def test_a_flood_of_messages_waits_and_loses_nothing(paced, topic, version):
    """3,000 messages at once, of which 1,000 may come so, and then 500 a second."""
    async with Bystander(paced) as bystander, await Client.connect(paced.port, version) as client, \
            await Client.connect(paced.port) as other:
        await client.join(topic, config={"broadcast": {"ack": True}})
        await other.join(topic)
        before, elapsed = slowed(paced, "messages_per_second"), Elapsed()
        for number in range(3000):
            client.push(topic, "broadcast", {"event": "e", "payload": {"n": number}}, f"r{number}")
        client.push("phoenix", "heartbeat", {}, "beat")
        await client.next("phx_reply", "phoenix", "beat")
        assert elapsed.seconds > 3
        elapsed.assert_at_most(9, "3,000 messages")
        replies = [message for message in client.messages if message.event == "phx_reply"]
        assert [reply.ref for reply in replies] == [f"r{number}" for number in range(3000)]
        assert {reply.payload["status"] for reply in replies} == {"ok"}
        await other.settled()
        assert [m.payload["payload"]["n"] for m in other.messages if m.event == "broadcast"] == list(range(3000))
        await eventually(lambda: slowed(paced, "messages_per_second") > before, what="the pauses counted")
        print(f"bystander's slowest: {bystander.slowest * 1000:.1f} ms")
        # Then it is as quick as anybody.
        await asyncio.sleep(2)
        with at_most(0.5, "an answer after the flood"):
            await client.settled()


@pytest.mark.clock
async def test_a_flood_of_bytes_waits_and_loses_nothing(paced, topic):
    """3 MB at once: 1 MB may, the rest comes at 500 kB a second, in the middle of messages, too."""
    async with Bystander(paced), await Client.connect(paced.port) as client, await Client.connect(paced.port) as other:
        await client.join(topic, config={"broadcast": {"ack": True}})
        await other.join(topic)
        elapsed = Elapsed()
        for number in range(3):
            client.push(topic, "broadcast", {"event": "e", "payload": {"n": number, "t": "x" * 1_000_000}}, f"r{number}")
        for number in range(3):
            assert (await client.next("phx_reply", ref=f"r{number}")).payload["status"] == "ok"
        assert elapsed.seconds > 3
        elapsed.assert_at_most(8, "3 MB")
        for number in range(3):
            message = await other.next("broadcast")
            assert (message.payload["payload"]["n"], len(message.payload["payload"]["t"])) == (number, 1_000_000)
        await eventually(lambda: slowed(paced, "bytes_per_second") > 0, what="the pauses counted")


async def test_sockets_that_end_while_they_are_not_read(paced):
    """Their places are used again, and the newcomers are read."""
    await emptied(paced)
    async with Bystander(paced):
        for _ in range(5):
            clients = [await Client.connect(paced.port) for _ in range(10)]
            for client in clients:
                for number in range(1500):
                    client.push("phoenix", "heartbeat", {}, str(number))
            await asyncio.sleep(0.2)
            for client in clients:
                client.socket.writer.transport.abort()
            await closed(clients)
            async with await Client.connect(paced.port) as fresh:
                await fresh.settled()
    await emptied(paced)


async def test_everything_at_once_ten_times_over(paced, topic):
    """Joins, presence and messages far over their rates from one socket: its channels stay, and others do not notice."""
    async with await Client.connect(paced.port) as culprit, await Client.connect(paced.port) as friend:
        await culprit.join(topic, config={"broadcast": {"ack": True}})
        await friend.join(topic)
        async with Bystander(paced) as bystander:
            for number in range(2000):
                culprit.push(f"{topic}_{number % 50}", "phx_join", {"config": {}}, f"j{number}", f"j{number}")
                culprit.push(topic, "presence", {"event": "track", "payload": {"n": number}}, f"p{number}")
                culprit.push(topic, "broadcast", {"event": "e", "payload": {"n": number}}, f"b{number}")
            culprit.push("phoenix", "heartbeat", {}, "beat")
            await culprit.next("phx_reply", "phoenix", "beat", within=120)
        answered = {message.ref: message.payload["status"] for message in culprit.messages if message.event == "phx_reply"}
        assert len(answered) == 6000, "each got its answer"
        assert all(answered[f"b{number}"] == "ok" for number in range(2000))
        assert {answered[f"j{number}"] for number in range(2000)} == {answered[f"p{number}"] for number in range(2000)} == {"ok", "error"}
        await friend.settled()
        assert [m.payload["payload"]["n"] for m in friend.messages if m.event == "broadcast"] == list(range(2000))
        bystander.assert_at_most(0.25)


async def test_a_message_over_the_limit_names_it(paced):
    async with await Client.connect(paced.port) as client:
        client.send_text('["1","1","realtime:a","broadcast",{"x":"' + "y" * 5_100_000 + '"}]')
        end = await client.end(30)
        assert (end.code, end.reason) == (
            1009, "The message is too large: it may have 5000000 bytes (limits.message_bytes); send less")


async def test_every_limit_is_in_the_metrics(small):
    text = small.ops("/metrics")[1]
    for limit in ("connections", "connections_per_address", "connections_per_user", "channels_per_connection",
                  "filters_per_channel", "patterns_per_connection", "message_bytes", "payload_bytes", "joins_per_second", "presence_per_second"):
        assert f'roost_refused_total{{limit="{limit}"}} ' in text
    for limit in ("messages_per_second", "bytes_per_second"):
        assert f'roost_slowed_total{{limit="{limit}"}} ' in text
    assert text.count("# TYPE roost_refused_total counter") == 1
