"""Typing: a set of users per channel. Clients start it; silence, loss, a leave and the user's own message end it."""

import asyncio
import json
import os
import time

import pytest

from support.bounds import at_most, in_time, taken, watch_the_machine
from support.channels import INSTALL, Rights
from support.chat import A, ADA, GRACE, install, message, person
from support.deadline import PATIENCE, eventually
from support.hub import Hub
from support.member import Member
from support.pypi import Listener, python_client
from support.tokens import token
from support.watcher import loop_of
from support.wsclient import Client, kind3

#: Seconds: of silence that end it, between two starts of one user, and how exact that is to be.
SILENCE, RHYTHM, MARGIN = 3, 1, 0.3
AT_ONCE = 0.3
#: `typing.shown`: users that a channel is told of at once, and starts that it is told of in a second.
SHOWN = 20
TYPISTS = int(os.environ.get("ROOST_E2E_TYPISTS", "500"))


@pytest.fixture(scope="module")
def chat_hub(cluster):
    """The sample chat, on two loops. Nothing but what happens makes this hub ask Postgres anything."""
    hub = Hub(cluster.create_database("typing_chat"), ROOST_LOOPS="2", ROOST_FEED_SAFETY_POLL_SECONDS="3600")
    try:
        hub.run("migrate")
        with cluster.connect("typing_chat") as sql:
            install(sql)
            sql.execute(INSTALL)
        for table in ("messages", "typing_indicators"):
            hub.watch(table)
        yield hub.start()
    finally:
        hub.remove()


@pytest.fixture
def chat(cluster, chat_hub):
    with cluster.connect("typing_chat") as sql:
        yield sql


@pytest.fixture
async def enter(chat_hub):
    """Raw clients in a channel, closed at the end."""
    clients = []

    async def enter_one(topic, user=None, version=2, changes=None, **config):
        client = await Client.connect(chat_hub.port, version, apikey=user or token())
        clients.append(client)
        joined = client.watch(topic, *changes, config=config) if changes else client.join(topic, config=config)
        client.joined_as, _ = await joined
        return client

    yield enter_one
    for client in clients:
        await client.close()


@pytest.fixture
async def audience(enter):
    """Listeners of both versions on both loops."""
    async def gather_one(topic, **options):
        found = {}
        for number in range(60):
            client = await enter(topic, version=1 + number % 2, **options)
            found.setdefault((await loop_of(client), client.version), client)
            if len(found) == 4:
                return list(found.values())
        raise AssertionError(f"all sockets were taken by {list(found)}")
    return gather_one


def says(typing, **more):
    return {"typing": typing, "user_id": "u", "name": "Ü", **more}


def say(client, topic, typing, ref=None, binary=False, **more):
    if binary:
        # With a member before and one after it, and spaces as some encoders set them.
        body = json.dumps({"user_id": "u", "typing": typing, "name": "Ü", **more}, indent=1).encode()
        client.send_binary(kind3(client.joined_as, ref or "", topic, "typing", body))
    else:
        client.push(topic, "broadcast", {"type": "broadcast", "event": "typing", "payload": says(typing, **more)}, ref)


def event_of(message):
    """The event and payload of a broadcast, of either kind of frame."""
    if message.is_binary:
        return message.payload.event, json.loads(message.payload.payload)
    return message.payload["event"], message.payload["payload"]


def typing_of(client):
    """(when, payload) of what this client was told of typing, in order."""
    return [(each.at, event_of(each)[1]) for each in client.messages
            if each.event == "broadcast" and event_of(each)[0] == "typing"]


def state_of(client):
    return [event_of(each)[1] for each in client.messages
            if each.event == "broadcast" and event_of(each)[0] == "typing_state"]


async def hears(client, count, within=PATIENCE):
    """What it was told once it was told so many, and no more by then."""
    await eventually(lambda: len(typing_of(client)) >= count, within, lambda: f"{count} of {client.messages}")
    await client.settled()
    told = typing_of(client)
    assert len(told) == count, told
    return told


class Ear(Listener):
    """The Python client, with the time of each."""

    def __init__(self, client, topic, **options):
        super().__init__(client, topic, **options)
        self.told, self.states_told = [], []
        self.channel.on_broadcast("typing", lambda b: self.told.append((time.monotonic(), b["payload"])))
        self.channel.on_broadcast("typing_state", lambda b: self.states_told.append(b["payload"]))

    async def hears(self, count, within=PATIENCE):
        await eventually(lambda: len(self.told) >= count, within, lambda: f"{count} of {self.told}")
        return self.told


@pytest.fixture(scope="module", autouse=True)
def watched():
    watch_the_machine()


def is_at_once(began, at):
    return at - began < AT_ONCE or at - began - taken(began, at, AT_ONCE) < AT_ONCE


# Time


@pytest.mark.clock
async def test_a_start_is_passed_on_and_the_hub_ends_it_after_three_seconds(cluster, chat_hub, name):
    """The must-show with two unmodified clients: repeated starts are thinned out, and silence ends them. At the same time
    a hub where all of this is turned off."""
    off = Hub(cluster.create_database("typing_off"), ROOST_TYPING_ENABLED="false")
    try:
        off.run("migrate")
        off.start()
        await asyncio.gather(thinned_out(chat_hub, name), not_the_same_again(chat_hub, f"{name}_drafts"), turned_off(off))
    finally:
        off.remove()


async def thinned_out(hub, name):
    async with python_client(hub, token(sub="ada")) as one, python_client(hub, token(sub="bob")) as two:
        typist, ear = await Ear(one, name).subscribe(), await Ear(two, name).subscribe()
        began = time.monotonic()
        for number in range(11):
            await typist.channel.send_broadcast("typing", says(True))
            last = time.monotonic()
            await asyncio.sleep(max(0, began + 0.21 * (number + 1) - last))
        told = await ear.hears(4)
        assert [payload["typing"] for _, payload in told] == [True, True, True, False], told
        for (before, _), (after, _) in zip(told[:2], told[1:3]):
            assert after - before >= RHYTHM - 0.02, "one a second"
        assert is_at_once(began, told[0][0])
        at, payload = told[3]
        print(f"\nended {at - last:.3f} s after the last start")
        assert SILENCE - MARGIN <= at - last
        assert at - last <= SILENCE + MARGIN or at - last - taken(last, at, SILENCE) <= SILENCE + MARGIN
        assert payload == says(False)
        assert typist.told == [], "its own client knows"


async def not_the_same_again(hub, name):
    """It is passed on, and of an app's own event of that name all is."""
    async with python_client(hub, token(sub="ada")) as one, python_client(hub, token(sub="bob")) as two:
        typist, ear = await Ear(one, name).subscribe(), await Ear(two, name).subscribe()
        drafts = [says(True, draft=draft) for draft in ("h", "he", "hel", "hell", "hello")]
        for draft in drafts:
            await typist.channel.send_broadcast("typing", draft)
        told = await ear.hears(5)
        await asyncio.sleep(SILENCE + MARGIN)
        assert [payload for _, payload in told] == drafts, "and nothing is made up"
        assert typist.told == []


async def turned_off(hub):
    one, two = await Client.connect(hub.port), await Client.connect(hub.port)
    for client in (one, two):
        await client.join("realtime:off")
    for number in range(5):
        say(one, "realtime:off", True, id=number)
    say(one, "realtime:off", False)
    say(one, "realtime:off", False)
    say(one, "realtime:off", True, id="last")
    await one.settled()
    late = await Client.connect(hub.port)
    await late.join("realtime:off")
    await asyncio.sleep(SILENCE + MARGIN)
    await two.settled()
    assert [payload["typing"] for _, payload in typing_of(two)] == [True] * 5 + [False, False, True]
    await late.settled()
    assert state_of(late) == typing_of(late) == []
    for client in (one, two, late):
        await client.close()


# What ends it


@pytest.mark.parametrize("end", ["stop", "kill", "leave"])
async def test_the_python_clients_stop_loss_and_leave_end_it_at_once(chat_hub, enter, topic, name, end):
    ears = [await enter(topic, version=version) for version in (1, 2)]
    async with python_client(chat_hub, token(sub="bob")) as client:
        ear = await Ear(client, name).subscribe()
        typist = await Member.start(chat_hub.url, token(sub="ada"), name)
        await typist.do("send_broadcast", "typing", says(True))
        await ear.hears(1)
        began = time.monotonic()
        if end == "stop":
            await typist.do("send_broadcast", "typing", says(False))
        elif end == "leave":
            await typist.do("unsubscribe")
        else:
            typist.kill()
        [_, (at, payload)] = await ear.hears(2)
        assert payload == says(False) and is_at_once(began, at)
        for raw in ears:
            assert [payload for _, payload in await hears(raw, 2)] == [says(True), says(False)]
        if end == "stop":
            await typist.do("send_broadcast", "typing", says(False))
            for raw in ears:
                await hears(raw, 2)
        await typist.end()


async def test_two_sockets_of_a_user_are_one_typist(enter, audience, topic):
    await in_time(SILENCE, lambda number: two_sockets_of_a_user_are_one_typist(enter, audience, f"{topic}_{number}"))


async def two_sockets_of_a_user_are_one_typist(enter, audience, topic):
    ears = await audience(topic)
    phone, desk = await enter(topic, token(sub="ada")), await enter(topic, token(sub="ada"), version=1)
    say(phone, topic, True)
    for ear in ears:
        await hears(ear, 1)
    say(desk, topic, True)
    await desk.settled()
    # The desk renewed it; the phone is not missed.
    phone.socket.abort()
    stranger = await enter(topic)
    say(stranger, topic, False, id="stranger")
    for ear in ears:
        assert (await hears(ear, 2))[1][1] == says(False, id="stranger"), "its own, which ends nobody else's"
    say(desk, topic, False)
    for ear in ears:
        assert (await hears(ear, 3))[2][1] == says(False)
    # Without a user each socket is one.
    others = [await enter(topic) for _ in range(2)]
    for other in others:
        say(other, topic, True)
    for ear in ears:
        await hears(ear, 5)
    say(others[0], topic, False)
    for ear in ears:
        assert [payload["typing"] for _, payload in (await hears(ear, 6))[3:]] == [True, True, False]


@pytest.mark.parametrize("version, binary", [(1, False), (2, False), (2, True)], ids=["v1", "v2", "binary"])
async def test_the_users_message_ends_it_before_the_row_is_there(chat_hub, chat, enter, audience, name, version, binary):
    """The must-show: nobody is ever shown a message and that its author is still writing it."""
    await in_time(SILENCE, lambda number: the_users_message_ends_it_before_the_row_is_there(
        chat_hub, chat, enter, audience, f"{name}_{number}", version, binary))


async def the_users_message_ends_it_before_the_row_is_there(chat_hub, chat, enter, audience, name, version, binary):
    topic = f"realtime:{name}"
    changes = [{"event": "INSERT", "schema": "public", "table": "messages", "filter": f"conversation_id=eq.{A}"}]
    ears = await audience(topic, user=GRACE.token(), changes=changes)
    typist, other = await enter(topic, ADA.token(), version, changes), await enter(topic, token(sub=person(7)), version)
    async with python_client(chat_hub, GRACE.token()) as client:
        told = []
        ear = Ear(client, name).on_changes("INSERT", into=told, schema="public", table="messages")
        ear.channel.on_broadcast("typing", told.append)
        await ear.subscribe()
        await eventually(lambda: ear.systems, what="the word that changes flow")
        number = chat.execute("select max(id) from messages").fetchone()[0] + 1
        say(typist, topic, True, binary=binary)
        say(other, topic, True, name="other")
        for each in ears:
            await hears(each, 2)
        chat.execute(message(number, A, ADA.sub))
        await eventually(lambda: len(told) >= 4, what=lambda: f"all in {told}")
        # Some clients say so themselves after they sent it.
        say(typist, topic, False, binary=binary)
        for each in (*ears, typist):
            await eventually(lambda: any(one.event == "postgres_changes" for one in each.messages), what="the row")
        await typist.settled()
        for each in ears:
            frames = [one for one in (await settled(each)).messages if one.event in ("broadcast", "postgres_changes")]
            order = [event_of(one)[1]["typing"] if one.event == "broadcast" else "row" for one in frames]
            assert order == [True, True, False, "row"], order
            # The hub changes one word of what the typist said, and nothing else.
            [started] = [one.raw for one in frames[:2] if b'"other"' not in one.raw]
            assert frames[2].raw == started.replace(b"true", b"false")
        assert [entry["payload"]["typing"] if "payload" in entry else "row" for entry in told] == [True, True, False, "row"]
        # The other one is still at it, and of itself the typist is told nothing.
        assert [payload["name"] for _, payload in typing_of(typist)] == ["other"]


async def settled(client):
    await client.settled()
    return client


# Who comes, and who comes back


async def test_a_joiner_gets_the_state_and_whoever_comes_back_sees_no_ghost(chat_hub, enter, topic, name):
    await in_time(SILENCE, lambda number: a_joiner_gets_the_state_and_whoever_comes_back_sees_no_ghost(
        chat_hub, enter, f"{topic}_{number}", f"{name}_{number}"))


async def a_joiner_gets_the_state_and_whoever_comes_back_sees_no_ghost(chat_hub, enter, topic, name):
    first = await enter(topic, version=1)
    await first.settled()
    assert state_of(first) == [], "nobody typed, so there is nothing to say"
    text, binary = await enter(topic, token(sub="ada"), version=1), await enter(topic, token(sub="bob"))
    say(text, topic, True, id="text")
    say(binary, topic, True, binary=True, id="binary")
    await hears(first, 2)
    async with python_client(chat_hub) as client:
        ear = await Ear(client, name).subscribe()
        await eventually(lambda: ear.states_told, what="typing_state for the Python client")
        [state] = ear.states_told
        assert sorted(state["typing"], key=lambda each: each["id"]) == [says(True, id="binary"), says(True, id="text")]
        assert state["count"] == 2
    away = [await enter(topic, version=version) for version in (1, 2)]
    for client in away:
        await client.settled()
        assert [(len(state["typing"]), state["count"]) for state in state_of(client)] == [(2, 2)]
        client.socket.abort()
    # Both ends while nobody of those who were told that they type is there to hear it.
    say(text, topic, False)
    binary.socket.abort()
    await hears(first, 4)
    back = [await enter(topic, version=version) for version in (1, 2)]
    for client in back:
        await client.settled()
        assert state_of(client) == [{"typing": [], "count": 0}]
        assert typing_of(client) == []
    # The typist that lost its socket does not type when it is back.
    again = await enter(topic, token(sub="bob"))
    for client in (again, first):
        await client.settled()
    assert state_of(again) == [{"typing": [], "count": 0}]
    assert len(typing_of(first)) == 4


async def test_acknowledgement_and_echo_are_those_of_any_broadcast(enter, topic):
    await in_time(SILENCE, lambda number: acknowledgement_and_echo_are_those_of_any_broadcast(enter, f"{topic}_{number}"))


async def acknowledgement_and_echo_are_those_of_any_broadcast(enter, topic):
    ear = await enter(topic)
    for version in (1, 2):
        typist = await enter(topic, token(sub=f"ada {version}"), version, broadcast={"ack": True, "self": True})
        payload = {"type": "broadcast", "event": "typing", "payload": says(True)}
        for _ in range(3):
            assert (await typist.ask(topic, "broadcast", payload)).payload == {"status": "ok", "response": {}}
        assert [payload["typing"] for _, payload in await hears(typist, 1)] == [True]
        payload["payload"]["typing"] = False
        for _ in range(2):
            assert (await typist.ask(topic, "broadcast", payload)).payload["status"] == "ok"
        assert [payload["typing"] for _, payload in await hears(typist, 2)] == [True, False]
    await hears(ear, 4)
    # What is no word on typing is a broadcast like any other.
    for odd in ({"typing": "yes"}, {"typing": None}, {"is": True}, {"typing": {"typing": True}}):
        for _ in range(2):
            typist.push(topic, "broadcast", {"type": "broadcast", "event": "typing", "payload": odd})
    await typist.settled()
    assert len(typing_of(typist)) == 2 + 8
    await hears(ear, 4 + 8)


async def test_more_than_twenty_are_counted_and_move_up(enter, audience, topic):
    await in_time(SILENCE, lambda number: more_than_twenty_are_counted_and_move_up(enter, audience, f"{topic}_{number}"))


async def more_than_twenty_are_counted_and_move_up(enter, audience, topic):
    ears = await audience(topic)
    typists = [await enter(topic, token(sub=f"typist {number}"), version=1 + number % 2) for number in range(SHOWN + 5)]
    for number, typist in enumerate(typists):
        say(typist, topic, True, id=number)
        await typist.settled()
    for ear in ears:
        assert {payload["id"] for _, payload in await hears(ear, SHOWN)} == set(range(SHOWN))
    for version in (1, 2):
        late = await enter(topic, version=version)
        await late.settled()
        [state] = state_of(late)
        assert (len(state["typing"]), state["count"]) == (SHOWN, SHOWN + 5)
    # Somebody who is not shown stops, and nobody hears of it; then somebody who is, and another one takes the place.
    say(typists[SHOWN], topic, False, id=SHOWN)
    await typists[SHOWN].settled()
    say(typists[3], topic, False, id=3)
    for ear in ears:
        told = await hears(ear, SHOWN + 2)
        assert [(payload["id"], payload["typing"]) for _, payload in told[SHOWN:]] == [(3, False), (SHOWN + 1, True)]


# Rights, the history, and Postgres


async def test_who_may_not_write_cannot_type(chat, enter, topic, name):
    await in_time(SILENCE, lambda number: who_may_not_write_cannot_type(chat, enter, f"{topic}_{number}", f"{name}_{number}"))


async def who_may_not_write_cannot_type(chat, enter, topic, name):
    rights = Rights(chat, name).give("ann").give("eve", "read broadcast")
    ann, eve = [await enter(topic, token(sub=who), private=True) for who in ("ann", "eve")]
    for version in (1, 2):
        denied = await enter(topic, token(sub="eve"), version, private=True, broadcast={"ack": True})
        reply = await denied.ask(topic, "broadcast", {"type": "broadcast", "event": "typing", "payload": says(True)})
        assert reply.payload["status"] == "error" and "Unauthorized" in reply.payload["response"]["reason"]
    say(eve, topic, True, ref="9", binary=True)
    await eve.settled()
    say(ann, topic, True)
    # A public channel of the same name is another one.
    outside = await enter(topic)
    await outside.settled()
    assert [payload for _, payload in await hears(eve, 1)] == [says(True)]
    assert typing_of(ann) == typing_of(outside) == state_of(outside) == []
    late = await enter(topic, token(sub="eve"), private=True)
    await late.settled()
    assert state_of(late) == [{"typing": [says(True)], "count": 1}]
    rights.take("ann")


@pytest.mark.parametrize("version", [1, 2])
async def test_typing_is_not_in_the_history(chat_hub, enter, topic, name, version):
    ear = await Client.connect(chat_hub.port, version)
    _, response = await ear.join(topic, config={"broadcast": {"history": True}})
    typist = await enter(topic, token(sub="ada"), version)
    say(typist, topic, True)
    typist.push(topic, "broadcast", {"type": "broadcast", "event": "kept", "payload": {}})
    say(typist, topic, False)
    await hears(ear, 2)
    await ear.close()
    back = await enter(topic, None, version, broadcast={"history": {"after": response["history"]["id"]}})
    await back.settled()
    assert typing_of(back) == []
    assert [event_of(each)[0] for each in back.messages if each.event == "broadcast"] == ["kept", "typing_state"] or [
        event_of(each)[0] for each in back.messages if each.event == "broadcast"] == ["typing_state", "kept"]


async def test_postgres_hears_nothing_of_it(cluster, chat_hub, chat, enter, topic):
    sessions = """select pid, query_start, state_change, query from pg_stat_activity
        where datname = 'typing_chat' and application_name like 'roost%' order by pid"""

    def count(admin):
        # What a session did is in the statistics when it is at rest for a second.
        admin.execute("select pg_stat_clear_snapshot()")
        return admin.execute(
            "select xact_commit + xact_rollback from pg_stat_database where datname = 'typing_chat'").fetchone()

    ears = [await enter(topic, version=version) for version in (1, 2)]
    typists = [await enter(topic, token(sub=f"typist {number}"), version=1 + number % 2) for number in range(10)]
    with cluster.connect("postgres") as admin:
        # Until the joins have been digested: twice the same.
        seen = []

        def at_rest():
            seen.append((count(admin), admin.execute(sessions).fetchall()))
            return len(seen) > 1 and seen[-1] == seen[-2]
        await eventually(at_rest, 60, what=lambda: f"a hub at rest: {seen[-2:]}", every=1.2)
        for _ in range(100):
            for typist in typists:
                say(typist, topic, True)
                say(typist, topic, False)
        typists[0].socket.abort()
        for typist in typists[1:]:
            await typist.settled()
        assert typing_of(ears[0])
        await asyncio.sleep(1.2)
        # The hub and Postgres have upkeep of their own, and statistics come late: some transactions, and not two thousand.
        before, then = seen[-1][0][0], count(admin)[0]
        assert then - before < 500
        # The question can be answered otherwise.
        for _ in range(1000):
            chat.execute("delete from typing_indicators")
        await eventually(lambda: count(admin)[0] - then > 900, what="an answer")


async def test_rows_in_a_table_work_as_well(chat_hub, chat, name):
    """Apps that write `typing_indicators` and watch it, as they do with the original."""
    async with python_client(chat_hub, GRACE.token()) as client:
        listener = Listener(client, name).on_changes(
            "*", schema="public", table="typing_indicators", filter=f"conversation_id=eq.{A}")
        await listener.subscribe()
        await eventually(lambda: listener.systems, what="the word that changes flow")
        key = f"(conversation_id, user_id) = ('{A}', '{ADA.sub}')"
        chat.execute(f"insert into typing_indicators (conversation_id, user_id) values ('{A}', '{ADA.sub}')")
        chat.execute(f"update typing_indicators set started_at = now() where {key}")
        chat.execute(f"delete from typing_indicators where {key}")
        insert, update, delete = await listener.take(3)
        assert [each["type"] for each in (insert, update, delete)] == ["INSERT", "UPDATE", "DELETE"]
        for record in (insert["record"], update["record"], delete["old_record"]):
            assert (record["conversation_id"], record["user_id"]) == (A, ADA.sub)


# Many


async def test_five_hundred_typists_are_a_bounded_stream_of_frames(chat_hub, enter, audience, topic):
    """The must-show. Of starts a channel is told SHOWN a second and as many at once at first; of ends no more than starts."""
    ears = await audience(topic)
    typists = []
    for start in range(0, TYPISTS, 50):
        typists += await asyncio.gather(*(
            enter(topic, token(sub=f"typist {number}"), 1 + number % 2) for number in range(start, min(start + 50, TYPISTS))))
    for typist in typists:
        # What they hear is what the listeners hear; that Python can decode 500 times as much is not the question.
        typist._task.cancel()
        typist.socket.writer.transport.pause_reading()
    began = time.monotonic()
    seconds, started = 3, 0
    while time.monotonic() < began + seconds:
        # Everybody once a second, one after the other; every fourth stops now and then.
        for number, typist in enumerate(typists):
            say(typist, topic, number % 4 != 0 or started % 2 == 0, id=number)
            if number % 25 == 0:
                await asyncio.sleep(max(0, began + started + number / TYPISTS - time.monotonic()))
        started += 1
    spent = time.monotonic() - began
    for ear in ears:
        await ear.settled()
        told = typing_of(ear)
        starts = [at for at, payload in told if payload["typing"]]
        ends = [at for at, payload in told if not payload["typing"]]
        frames = len(told) / spent
        print(f"\n{TYPISTS} typists for {spent:.1f} s: {len(starts)} starts and {len(ends)} ends, "
              f"{frames:.0f} frames/s per listener")
        assert len(starts) <= SHOWN + SHOWN * (spent + 1), "a burst, and the rate"
        assert len(ends) <= len(starts)
        assert len(starts) >= 2 * SHOWN, "and who goes on typing is told of again"
        busiest = max(sum(at <= other < at + 1 for other in starts) for at in starts)
        # What the machine kept from this process comes to it at once.
        assert busiest <= 2 * SHOWN + 2 + SHOWN * (taken(began, began + spent, spent) if busiest > 2 * SHOWN + 2 else 0)
    # All are lost at once. Whoever moved up meanwhile goes, too: at the end nobody types, to nobody.
    for typist in typists:
        typist.socket.abort()
    for ear in ears:
        def typing():
            types = {}
            for _, payload in typing_of(ear):
                types[payload["id"]] = payload["typing"]
            return [number for number, still in types.items() if still]
        with at_most(SILENCE, "the end of all"):
            await eventually(lambda: not typing(), what=lambda: f"nobody, but there are {typing()}")
    # Of five hundred lost sockets a busy hub may have some yet to hear of, whom it has told nobody about.
    async def is_empty():
        late = await enter(topic)
        await late.settled()
        return state_of(late) == [{"typing": [], "count": 0}]
    with at_most(SILENCE, "the end of whoever is gone"):
        await eventually(is_empty)
    for ear in ears:
        await ear.settled()
        assert not typing()
