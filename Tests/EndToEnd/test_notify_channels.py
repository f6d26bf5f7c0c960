"""NOTIFY channels (`notify.channels`, docs/notify.md): an application's own notifications become broadcasts."""

import contextlib
import json
import re

import psycopg
import pytest

from support.channels import INSTALL, Rights
from support.deadline import eventually, until
from support.hub import ROOT, Hub
from support.pypi import Listener, python_client
from support.tokens import token
from support.wsclient import Client

CHANNELS = """
    messages -> room:{conversation_id} / new_message
    messages -> public feed:{meta.kind} / {meta.event}
    jobs -> public jobs / done
"""
MISSING = "Messages from the database may be missing: load what you show again."


@pytest.fixture(scope="module")
def own(cluster):
    """A hub of two loops that listens, its database, and who may read `room:NUMBER` by rows."""
    hub = Hub(cluster.create_database("notify"), ROOST_LOOPS="2", ROOST_NOTIFY_CHANNELS=CHANNELS)
    hub.database = "notify"
    try:
        hub.run("migrate")
        with cluster.connect("notify") as connection:
            connection.execute(INSTALL)
        yield hub.start()
    finally:
        hub.remove()


@pytest.fixture
def database(own, cluster):
    with cluster.connect(own.database) as connection:
        yield connection


def notify(database, payload, channel="messages"):
    database.execute("select pg_notify(%s, %s)", [channel, payload if isinstance(payload, str) else json.dumps(payload)])


def kill_listener(database):
    killed = database.execute(
        "select pid, pg_terminate_backend(pid) from pg_stat_activity "
        "where application_name = 'roost notifications' and datname = current_database()").fetchall()
    assert [done for _, done in killed] == [True]


def told(listener):
    return sum(MISSING in str(system) for system in listener.systems)


async def everybody(hub, database, room, stack):
    """Python clients in a private and in public channels, several of each, so that both loops have some."""
    listeners = []
    for number in range(4):
        who = f"user {room} {number}"
        Rights(database, f"room:{room}").give(who, "read broadcast")
        client = await stack.enter_async_context(python_client(hub, token(sub=who)))
        for name, event, private in ((f"room:{room}", "new_message", True), (f"feed:{room}", "news", False)):
            listeners.append(await Listener(client, name, private=private).on_broadcast(event).subscribe())
    return listeners


def payload(room, number):
    return {"conversation_id": room, "n": number, "meta": {"kind": str(room), "event": "news"}, "body": "Ć\n\"x\""}


async def test_a_thousand_reach_every_member_once_in_order(own, database):
    async with contextlib.AsyncExitStack() as stack:
        listeners = await everybody(own, database, 1, stack)
        for number in range(1000):
            notify(database, payload(1, number))
        for listener in listeners:
            await eventually(lambda: len(listener.broadcasts) >= 1000, what=lambda: f"{len(listener.broadcasts)} of 1,000")
            assert [message["payload"] for message in listener.broadcasts] == [payload(1, n) for n in range(1000)]
            assert told(listener) == 0


async def test_private_and_public_are_two_rooms_and_policies_decide(own, database):
    Rights(database, "room:2").give("ann", "read broadcast")
    async with python_client(own, token(sub="ann")) as ann, python_client(own, token(sub="eve")) as eve, \
            python_client(own, token(sub="eve")) as eve_again:
        member = await Listener(ann, "room:2", private=True).on_broadcast("new_message").subscribe()
        outsider = Listener(eve, "room:2", private=True).on_broadcast("new_message")
        assert (await outsider.attempt())[0] == "CHANNEL_ERROR"
        public = await Listener(eve_again, "room:2").on_broadcast("new_message").subscribe()
        fence = await Listener(eve_again, "jobs").on_broadcast("done").subscribe()
        notify(database, payload(2, 1))
        notify(database, {"n": 1}, "jobs")
        await eventually(lambda: member.broadcasts and fence.broadcasts)
        assert public.broadcasts == [] and outsider.broadcasts == []


async def test_text_and_json_that_is_no_object(own, database):
    client = await Client.connect(own.port)
    await client.join("realtime:jobs")
    for text, value in (("backup is done", "backup is done"), ("[1, 2]", [1, 2]), ("", ""), ('{"id": 7}', None)):
        notify(database, text, "jobs")
        message = await client.next("broadcast", "realtime:jobs")
        assert message.payload == {
            "event": "done", "payload": {"id": 7} if value is None else {"payload": value}, "type": "broadcast"}
    await client.close()


async def test_what_has_no_topic_is_counted_and_logged_once(own, database):
    count = 'roost_notifications_total{result="no_field"}'
    before = own.metric(count)
    for number in range(50):
        notify(database, {"hidden": f"s3cret {number}", "meta": {"kind": None}})
    # Two mappings each.
    until(lambda: own.metric(count) == before + 100, what="the counter")
    own.wait_until_logged("channel messages")
    lines = [line for line in own.log.splitlines() if "channel messages" in line]
    assert len(lines) == 1 and "not delivered" in lines[0], lines
    assert "s3cret" not in own.log


async def test_after_a_session_that_was_killed_members_are_told_and_miss_nothing_more(own, database):
    async with contextlib.AsyncExitStack() as stack:
        listeners = await everybody(own, database, 3, stack)
        bystander = await Listener(await stack.enter_async_context(python_client(own)), "other").subscribe()
        for turn in range(1, 4):
            kill_listener(database)
            for listener in listeners:
                await eventually(lambda: told(listener) == turn, what=lambda: f"{turn} times: {listener.systems}")
            notify(database, payload(3, turn))
            for listener in listeners:
                await eventually(lambda: len(listener.broadcasts) >= turn)
        for listener in listeners:
            assert [message["payload"]["n"] for message in listener.broadcasts] == [1, 2, 3]
            assert {state for state, _ in listener.states} == {"SUBSCRIBED"}, "nobody had to join again"
            assert "'ok'" in str(listener.systems[-1]), listener.systems
        assert told(bystander) == 0
        await own.settled()
        assert own.metric("roost_notify_up") == 1 and own.metric("roost_notify_gaps_total") == 3


async def test_a_hub_that_is_restarted_listens_before_it_is_ready(own, database):
    async with contextlib.AsyncExitStack() as stack:
        listeners = await everybody(own, database, 4, stack)
        for end in (own.stop, own.kill):
            states = [len(listener.states) for listener in listeners]
            end()
            notify(database, payload(4, -1))
            own.start()
            for listener, before in zip(listeners, states):
                await listener.wait_for_state("SUBSCRIBED", after=before)
            for number in range(20):
                notify(database, payload(4, number))
            for listener in listeners:
                await eventually(lambda: len(listener.broadcasts) >= 20, what=lambda: str(listener.broadcasts))
                assert [message["payload"]["n"] for message in listener.broadcasts] == list(range(20))
                listener.broadcasts.clear()


async def test_two_hubs_listen_for_themselves_and_relay_nothing(own, database, cluster):
    other = Hub(cluster.url(own.database), ROOST_NOTIFY_CHANNELS=CHANNELS, ROOST_NODE_NAME="other")
    try:
        other.start()
        clients = [await Client.connect(hub.port) for hub in (own, other)]
        for client in clients:
            await client.join("realtime:jobs")
        for number in range(10):
            notify(database, {"n": number}, "jobs")
        for client in clients:
            seen = [(await client.next("broadcast", "realtime:jobs")).payload["payload"]["n"] for _ in range(10)]
            assert seen == list(range(10))
            assert await client.settled() == []
            await client.close()
    finally:
        other.remove()


async def test_members_with_history_are_brought_what_they_missed(own, database):
    keeper, client = await Client.connect(own.port), await Client.connect(own.port)
    config = {"broadcast": {"history": True}}
    await keeper.join("realtime:jobs", config=config)
    _, response = await client.join("realtime:jobs", config=config)
    await client.close()
    for number in range(3):
        notify(database, {"n": number}, "jobs")
    for number in range(3):
        assert (await keeper.next("broadcast", "realtime:jobs")).payload["payload"] == {"n": number}
    back = await Client.connect(own.port)
    _, response = await back.join("realtime:jobs", config={"broadcast": {"history": {"after": response["history"]["id"]}}})
    assert response["history"]["complete"] is True
    seen = [(await back.next("broadcast", "realtime:jobs")).payload["payload"]["n"] for _ in range(3)]
    assert seen == [0, 1, 2] and await back.settled() == []
    for client in (keeper, back):
        await client.close()


async def test_the_recipes_of_the_manual(own, database):
    """Each block of SQL of docs/notify.md runs, and what it sends is what the page says."""
    blocks = re.findall(r"```sql\n(.*?)```", (ROOT / "docs/notify.md").read_text(), re.DOTALL)
    trigger, policy, shorter = blocks
    user = "11111111-1111-4111-8111-111111111111"
    database.execute(
        "create table public.messages (id int primary key, conversation_id int, body text);"
        "create table public.conversation_participants (conversation_id int, user_id uuid);"
        f"insert into public.conversation_participants values (5, '{user}')")
    database.execute(policy)
    database.execute(trigger)
    # Within a second a new policy counts for a hub that runs; for one that starts, at once.
    own.stop()
    own.start()
    async with python_client(own, token(sub=user)) as ann:
        member = await Listener(ann, "room:5", private=True).on_broadcast("new_message").subscribe()
        database.execute("insert into public.messages values (1, 5, 'Hi')")
        await eventually(lambda: member.broadcasts)
        assert member.broadcasts[0]["payload"] == {"id": 1, "conversation_id": 5, "body": "Hi"}
        # A row that is too long fails its writer.
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="payload string too long"):
            database.execute("insert into public.messages values (2, 5, repeat('x', 8000))")
        database.execute(shorter)
        database.execute("insert into public.messages values (2, 5, repeat('x', 8000))")
        await eventually(lambda: len(member.broadcasts) == 2)
        assert member.broadcasts[1]["payload"] == {"id": 2, "conversation_id": 5}


@pytest.mark.parametrize("channels, said", [
    ("messages -> room:{id}", "it names no event; write CHANNEL -> TOPIC / EVENT"),
    ("messages -> room:{id / e", "a { without a }"), ("roost -> t / e", "the hub's own"),
    ("messages -> realtime:room / e", "write the topic without realtime:"),
    ("a -> t / e, a -> t / e", "take one away"),
], ids=["event", "brace", "own", "prefix", "twice"])
def test_a_mapping_that_cannot_work_is_one_sentence(own, channels, said):
    for command in (["config", "check"], ["serve"]):
        result = own.run(*command, check=False, ROOST_NOTIFY_CHANNELS=channels)
        assert result.returncode == 78 and said in result.stderr, result.stderr
        assert result.stderr.startswith("Error: ROOST_NOTIFY_CHANNELS: '") and result.stderr.count("\n") == 1


def test_a_public_topic_beside_private_only_is_refused(own):
    result = own.run("config", "check", check=False, ROOST_LIMITS_PRIVATE_ONLY="true")
    assert result.returncode == 78 and "take the word public away" in result.stderr, result.stderr
