"""Tokens that change or end in mid-stream: rows are judged for whoever the token names at the time."""

import asyncio

import pytest

from support.chat import A, ADA, B, LINUS, Principal, install, message
from support.deadline import eventually
from support.markers import Markers
from support.pypi import Listener, python_client
from support.wsclient import Client

MESSAGES = {"event": "*", "schema": "public", "table": "messages"}


@pytest.fixture(params=["rows", "scope"])
def chat(own_hub, cluster, request):
    with cluster.connect(own_hub.database) as sql:
        install(sql)
        scope = ["--scope", "conversation_id", "--members", "conversation_participants"]
        own_hub.run("watch", "messages", *(scope if request.param == "scope" else ["--no-scope"]))
        own_hub.watch("aside.marker")
        own_hub.start()
        yield sql


def write_to_both(sql, number):
    sql.execute(message(number, A, ADA.sub) + ";" + message(number + 1, B, LINUS.sub))


def ids(frames):
    return [frame.payload["data"]["record"]["id"] for frame in frames]


def ends_with(came, wanted, entitled):
    """What was written under the new claims came, and before it at most what was written a moment earlier and is to be
    seen under them: a change of claims is a recovery, which loses nothing, and may tell a little twice."""
    assert set(came) <= set(entitled), "another user's row"
    assert came[len(came) - len(wanted):] == wanted


async def test_another_users_token_shows_that_users_rows(chat, own_hub):
    markers = Markers(chat)
    async with await Client.connect(own_hub.port, apikey=ADA.token()) as client:
        await markers.follow(client)
        ref, _ = await client.watch("realtime:mine", MESSAGES)
        for number, user, wanted in ((100, None, [100]), (110, LINUS, [111]), (120, ADA, [120]), (130, LINUS, [131])):
            if user:
                client.push("realtime:mine", "access_token", {"access_token": user.token()}, client.ref(), ref)
                system = await client.next("system", "realtime:mine")
                assert system.payload["status"] == "ok", "a new word that changes flow"
            write_to_both(chat, number)
            ends_with(ids(await markers.pass_by(client)), wanted, range(100 + wanted[0] % 10, 140, 10))


async def test_another_role_loses_and_gains(chat, own_hub):
    """To a role that may read nothing, and to one that may read all."""
    markers = Markers(chat)
    async with await Client.connect(own_hub.port, apikey=ADA.token()) as client:
        await markers.follow(client)
        ref, _ = await client.watch("realtime:mine", MESSAGES)
        for number, user, status, wanted in (
                (100, Principal("anon", "anon"), "error", []), (110, Principal("service", "service_role"), "ok", [110, 111]),
                (120, ADA, "ok", [120])):
            client.push("realtime:mine", "access_token", {"access_token": user.token()}, client.ref(), ref)
            assert (await client.next("system", "realtime:mine")).payload["status"] == status
            write_to_both(chat, number)
            entitled = {"anon": [], "service": range(100, 112)}.get(user.name, [100, 110, 120])
            ends_with(ids(await markers.pass_by(client)), wanted, entitled)


async def test_while_tokens_change_all_the_time_no_row_reaches_the_wrong_user(chat, own_hub):
    """Two tokens in turn, as fast as they are answered. A row that was judged for one is not sent to the other."""
    markers = Markers(chat)
    async with await Client.connect(own_hub.port, apikey=ADA.token()) as client:
        await markers.follow(client)
        ref, _ = await client.watch("realtime:mine", MESSAGES)
        certain = 0
        for turn in range(60):
            user, own = ((LINUS, 1), (ADA, 0))[turn % 2]
            number = 1000 + turn * 10
            client.push("realtime:mine", "access_token", {"access_token": user.token()}, client.ref(), ref)
            await asyncio.to_thread(write_to_both, chat, number)  # while it is being answered
            assert (await client.next("system", "realtime:mine")).payload["status"] == "ok"
            await asyncio.to_thread(write_to_both, chat, number + 2)
            came = ids(await markers.pass_by(client))
            assert number + 2 + own in came, "live means live: committed after the answer"
            assert number + 3 - own not in came, "another user's row"
            certain += 1
        assert certain == 60


async def run_out(client, ref, lifetime=2):
    """A token of some seconds takes the place of its own, and ends. On a busy machine it may have ended when it comes."""
    client.push("realtime:mine", "access_token", {"access_token": ADA.token(lifetime=lifetime)}, client.ref(), ref)
    system = await client.next("system", "realtime:mine", where=lambda message: message.payload["status"] == "error")
    assert "Token has expired" in system.payload["message"]
    # What was before that is of no interest: that changes flow under it, and a row that is told again.
    client.messages = [message for message in client.messages if message.event not in ("system", "postgres_changes")]


async def test_an_expired_token_ends_the_channel_and_a_fresh_one_brings_it_back(chat, own_hub):
    markers = Markers(chat)
    async with await Client.connect(own_hub.port, apikey=ADA.token()) as client:
        await markers.follow(client)
        ref, _ = await client.watch("realtime:mine", MESSAGES, config={"broadcast": {"ack": True}}, access_token=ADA.token())
        write_to_both(chat, 100)
        assert ids(await markers.pass_by(client)) == [100]
        await run_out(client, ref)
        error = await client.next("phx_error", "realtime:mine")
        assert (error.join_ref, error.ref) == (ref, ref)
        write_to_both(chat, 110)
        assert ids(await markers.pass_by(client)) == [], "nothing without a valid token"
        # Asleep with the old token: refused, and not for good.
        stale = ADA.token(lifetime=-5)
        client.push("realtime:mine", "phx_join", {"config": {"postgres_changes": [MESSAGES]}, "access_token": stale}, "77", "77")
        refusal = await client.next("phx_reply", "realtime:mine", "77")
        assert refusal.payload["status"] == "error" and "Token has expired" in refusal.payload["response"]["reason"]
        await client.watch("realtime:mine", MESSAGES, access_token=ADA.token())
        write_to_both(chat, 120)
        came = ids(await markers.pass_by(client))
        assert 110 in came, "what it missed while its token was no good"
        ends_with(came, [120], [100, 110, 120])


async def test_a_token_that_is_refreshed_too_late_goes_on_with_what_was_missed(chat, own_hub):
    """As clients do that hear of nothing but the refusal of their fresh token: Elixir's, and the one for Rust."""
    await asyncio.to_thread(own_hub.stop)
    own_hub.environment["ROOST_TIMEOUTS_TOKEN_GRACE"] = "30"
    own_hub.start()
    markers = Markers(chat)
    async with await Client.connect(own_hub.port, apikey=ADA.token()) as client:
        await markers.follow(client)
        ref, _ = await client.watch("realtime:mine", MESSAGES, config={"broadcast": {"ack": True}}, access_token=ADA.token())
        write_to_both(chat, 100)
        assert ids(await markers.pass_by(client)) == [100]
        # It must not have ended before it comes: there is nothing to be refreshed then.
        await run_out(client, ref, lifetime=3)
        write_to_both(chat, 110)
        assert ids(await markers.pass_by(client)) == [], "nothing without a valid token"
        reply = await client.ask("realtime:mine", "broadcast", {"type": "broadcast", "event": "e", "payload": {}}, ref)
        assert "Token has expired" in reply.payload["response"]["reason"]
        client.push("realtime:mine", "access_token", {"access_token": ADA.token()}, client.ref(), ref)
        assert (await client.next("system", "realtime:mine")).payload["status"] == "ok"
        write_to_both(chat, 120)
        came = ids(await markers.pass_by(client))
        assert came[-2:] == [110, 120], came
        assert not [message for message in client.messages if message.event in ("phx_error", "phx_reply")]


async def test_the_python_client_refreshes_its_token_in_mid_stream(chat, own_hub):
    async with python_client(own_hub, ADA.token()) as client:
        listener = await Listener(client, "mine").on_changes(schema="public", table="messages").subscribe()
        write_to_both(chat, 100)
        assert [data["record"]["id"] for data in await listener.take()] == [100]
        await client.set_auth(LINUS.token())
        # Its answer is a second word that changes flow.
        await eventually(lambda: len(listener.systems) == 2, what="the second system message")
        write_to_both(chat, 110)

        def came():
            return [change["data"]["record"]["id"] for change in listener.changes]
        await eventually(lambda: 111 in came(), what=lambda: f"row 111 among {came()}")
        ends_with(came(), [111], [101, 111])
