"""Broadcast, presence and refused joins as the unmodified Python client reports them (wire-protocol A4, A6 to A9)."""

import asyncio
import json
import re
import shlex
import time

import pytest

from support.deadline import eventually
from support.pypi import Listener, python_client
from support.tokens import signed, token


async def test_broadcast_reaches_the_others_and_not_the_sender(hub, name):
    async with python_client(hub) as one, python_client(hub) as two:
        sender = await Listener(one, name).on_broadcast("hi").subscribe()
        receiver = await Listener(two, name).on_broadcast("hi").subscribe()
        await sender.channel.send_broadcast("hi", {"text": "ü", "deep": {"list": [1, None, 2.5]}})
        await sender.channel.send_broadcast("other", {})
        await receiver.channel.send_broadcast("hi", {"text": "back"})
        await eventually(lambda: sender.broadcasts and receiver.broadcasts, what="both broadcasts")
        assert receiver.broadcasts == [{"event": "hi", "payload": {"text": "ü", "deep": {"list": [1, None, 2.5]}}}]
        assert [b["payload"] for b in sender.broadcasts] == [{"text": "back"}], "a sender does not hear itself"


async def test_broadcast_with_self_and_ack(hub, name):
    async with python_client(hub) as client:
        listener = await Listener(client, name, broadcast_self=True, ack=True).on_broadcast("e").subscribe()
        acknowledged = []
        push = await listener.channel.push("broadcast", {"type": "broadcast", "event": "e", "payload": {"n": 1}})
        push.receive("ok", acknowledged.append)
        await eventually(lambda: listener.broadcasts and acknowledged, what="the echo and the acknowledgement")
        assert listener.broadcasts[0]["payload"] == {"n": 1}


async def test_broadcast_over_http(hub, name):
    async with python_client(hub) as client:
        listener = await Listener(client, name).on_broadcast("e/ü").subscribe()
        await listener.channel.http_send("e/ü", {"n": 1})
        await eventually(lambda: listener.broadcasts, what="the broadcast")
        assert listener.broadcasts[0]["payload"] == {"n": 1}


async def test_presence_of_two_clients(hub, name):
    async with python_client(hub) as one, python_client(hub) as two:
        ada = await Listener(one, name, presence=True, presence_key="ada").subscribe()
        bob = await Listener(two, name, presence=True, presence_key="bob").subscribe()
        await ada.channel.track({"mood": "calm"})
        await bob.channel.track({"mood": "busy"})
        for listener in (ada, bob):
            await eventually(lambda: listener.syncs and listener.syncs[-1] == ["ada", "bob"], what=lambda: f"both in {listener.syncs}")
        assert [key for key, _ in bob.joins].count("bob") == 1
        state = ada.channel.presence_state()
        assert [meta["mood"] for meta in state["bob"]] == ["busy"]
        assert all("presence_ref" in meta for metas in state.values() for meta in metas)

        await bob.channel.track({"mood": "bored"})
        await eventually(lambda: ada.channel.presence_state()["bob"][0]["mood"] == "bored", what="the new mood")
        assert len(ada.channel.presence_state()["bob"]) == 1, "tracking again replaces"

        await bob.channel.untrack()
        await eventually(lambda: sorted(ada.channel.presence_state()) == ["ada"], what="bob untracked")
        await bob.channel.track({"mood": "back"})
        await eventually(lambda: "bob" in ada.channel.presence_state(), what="bob back")
        leaves = len(ada.leaves)
        await two.close()
        await eventually(lambda: len(ada.leaves) > leaves, what="bob's leave when his socket closes")
        assert ada.leaves[-1][0] == "bob"
        assert sorted(ada.channel.presence_state()) == ["ada"]


async def test_who_is_told_ok_is_shown_and_no_presence_is_too_large_for_the_client(hub, connect, name):
    """The client is disconnected by a message of more than 1 MiB: no state, and no change, is one."""
    topic = f"realtime:{name}"
    members = {}

    async def track(key, size):
        if key not in members:
            client = await connect()
            members[key] = client, (await client.join(topic, config={"presence": {"enabled": False, "key": key}}))[0]
        client, ref = members[key]
        reply = await client.ask(
            topic, "presence", {"type": "presence", "event": "track", "payload": {"x": "y" * size}}, ref)
        return reply.payload["status"], reply.payload["response"].get("reason", "")

    async with python_client(hub) as one, python_client(hub) as two:
        early = await Listener(one, name, presence=True).subscribe()
        answers = {f"k{n}": await track(f"k{n}", 60_000) for n in range(20)}
        shown = sorted(key for key, (status, _) in answers.items() if status == "ok")
        assert len(shown) == 16
        assert all("presence.listed_bytes" in reason for status, reason in answers.values() if status == "error")
        late = await Listener(two, name, presence=True).subscribe()
        for listener in (early, late):
            await eventually(lambda: sorted(listener.channel.presence_state()) == shown, what="who was told ok")
        for key in shown:
            client, ref = members[key]
            await client.ask(topic, "presence", {"event": "untrack"}, ref)
        # The largest payload, and a change of it, which says what was and what is.
        for size in (499_900, 499_990):
            assert await track("k0", size) == ("ok", "")
            for listener in (early, late):
                await eventually(
                    lambda: [len(meta["x"]) for meta in listener.channel.presence_state().get("k0", [])] == [size],
                    what="the largest payload")
        assert (await track("k0", 500_000))[1].startswith("payload_size_exceeded")
        assert [listener.states for listener in (early, late)] == [[("SUBSCRIBED", None)]] * 2, "nobody was disconnected"


async def test_a_late_joiner_gets_the_presence_state(hub, name):
    async with python_client(hub) as one, python_client(hub) as two:
        ada = await Listener(one, name, presence=True, presence_key="ada").subscribe()
        await ada.channel.track({"n": 1})
        await eventually(lambda: ada.syncs and ada.syncs[-1] == ["ada"], what="ada")
        bob = await Listener(two, name, presence=True, presence_key="bob").subscribe()
        await eventually(lambda: bob.syncs == [["ada"]], what=lambda: f"ada in {bob.syncs}")


async def test_a_join_with_a_bad_token_is_an_error_with_the_reason(hub, name):
    cases = {
        signed({"role": "authenticated", "exp": int(time.time()) + 60}, secret="somebody else's secret, not ours"):
            "JwtSignatureError: Failed to validate JWT signature",
        "no.jwt": "MalformedJWT: The token provided is not a valid JWT",
        token(lifetime=-30): "InvalidJWTToken: Token has expired 30 seconds ago",
        signed({"role": "authenticated"}): "InvalidJWTToken: Fields `role` and `exp` are required in JWT",
        signed({"exp": int(time.time()) + 60}): "InvalidJWTToken: Fields `role` and `exp` are required in JWT",
    }
    for number, (bad, reason) in enumerate(cases.items()):
        async with python_client(hub) as client:
            await client.set_auth(bad)
            state, error = await Listener(client, f"{name}_{number}").attempt()
            assert state == "CHANNEL_ERROR"
            # Some seconds may have gone by.
            assert reason in re.sub(r"\b[3-9]\d seconds", "30 seconds", error), error


async def test_a_client_recovers_with_a_good_token(hub, name):
    async with python_client(hub) as client:
        await client.set_auth("no.jwt")
        listener = Listener(client, name)
        assert (await listener.attempt())[0] == "CHANNEL_ERROR"
        await client.set_auth(token())
        await listener.wait_for_state("SUBSCRIBED")


async def test_a_private_channel_needs_the_right_role(hub, name):
    async with python_client(hub) as client:
        state, error = await Listener(client, name, private=True).attempt()
        assert state == "CHANNEL_ERROR"
        assert f"Unauthorized: You do not have permissions to read from this Channel topic: {name}" in error
    async with python_client(hub, token("service_role")) as one, python_client(hub) as two:
        secret = await Listener(one, name, private=True, broadcast_self=True).on_broadcast("e").subscribe()
        public = await Listener(two, name, broadcast_self=True).on_broadcast("e").subscribe()
        await secret.channel.send_broadcast("e", {"from": "private"})
        await public.channel.send_broadcast("e", {"from": "public"})
        await eventually(lambda: secret.broadcasts and public.broadcasts, what="both echoes")
        assert [b["payload"] for b in secret.broadcasts] == [{"from": "private"}]
        assert [b["payload"] for b in public.broadcasts] == [{"from": "public"}], "two rooms of one name"


@pytest.mark.parametrize("suffix", ["", " \"X's"], ids=["plain", "quoted"])
async def test_an_unwatched_table_says_what_to_run_and_works_once_that_was_run(hub, sql, name, suffix):
    table = name + suffix
    quoted = table.replace('"', '""')
    sql.execute(f'create table "{quoted}" (id int primary key)')
    async with python_client(hub) as client:
        listener = Listener(client, name).on_changes("INSERT", schema="public", table=table)
        await listener.attempt()
        await listener.wait_for_state("CHANNEL_ERROR")
        error = next(error for state, error in listener.states if state == "CHANNEL_ERROR")
        assert "Unable to subscribe to changes of" in error
        assert "not watched" in error
        # As somebody would paste it into a shell.
        command = json.loads(error)["message"].partition("run: roost ")[2]
        assert command, error
        assert hub.run(*shlex.split(command), check=False).returncode == 0, command
        seen = len(listener.states)
        await listener.wait_for_state("SUBSCRIBED", after=seen)
        await eventually(lambda: listener.systems, what="the word that changes flow")
        sql.execute(f'insert into "{quoted}" values (1)')
        [insert] = await listener.take()
        assert insert["record"] == {"id": 1}


async def test_a_table_is_served_from_the_moment_that_watch_returns(hub, sql, name):
    for number in range(3):
        table = f"{name}_{number}"
        sql.execute(f"create table {table} (id int primary key)")
        hub.watch(table)
        async with python_client(hub) as client:
            listener = Listener(client, name).on_changes("INSERT", schema="public", table=table)
            await listener.attempt()
            await eventually(lambda: listener.systems or len(listener.states) > 1, what="the system message")
            assert listener.states == [("SUBSCRIBED", None)]


async def test_a_table_that_does_not_exist(hub, name):
    async with python_client(hub) as client:
        listener = Listener(client, name).on_changes("INSERT", schema="public", table="no_such_table")
        await listener.attempt()
        await listener.wait_for_state("CHANNEL_ERROR")
        assert "no such table" in listener.states[-1][1]


async def test_bad_filters_are_explained(hub, table, name):
    cases = {
        "nonsense": "nonsense", "colour=eq.1": "colour", "n=eq.abc": "abc", "n=around.5": "around", "n=like.5%": "like",
        "body=match.(": "(", "n=in.(1,": "in",
    }
    async with python_client(hub) as client:
        for number, (text, named) in enumerate(cases.items()):
            listener = Listener(client, f"{name}_{number}").on_changes(schema="public", table=table, filter=text)
            await listener.attempt()
            await listener.wait_for_state("CHANNEL_ERROR")
            error = next(error for state, error in listener.states if state == "CHANNEL_ERROR")
            assert named in error.replace(table, "").replace(f"{name}_{number}", ""), error
            await client.remove_channel(listener.channel) if number < len(cases) - 1 else None


async def test_row_level_security_without_a_policy_shows_nothing(hub, sql, table, name):
    """As a SELECT would; `table` is for everybody, and a row in it comes after all that was written before."""
    sql.execute(f"create table {name}_rls (id int primary key); alter table {name}_rls enable row level security")
    hub.watch(f"{name}_rls")
    async with python_client(hub) as client, python_client(hub, token("service_role")) as service:
        listener = Listener(client, name).on_changes(schema="public", table=f"{name}_rls")
        await listener.on_changes(schema="public", table=table).subscribe()
        allowed = await Listener(service, f"{name}_s").on_changes(schema="public", table=f"{name}_rls").subscribe()
        sql.execute(f"insert into {name}_rls values (1)")
        sql.execute(f"insert into {table} values (2)")
        [change] = await listener.take()
        assert change["table"] == table
        await allowed.take()


async def test_security_that_is_turned_on_later_counts_too(hub, sql, table, name):
    async with python_client(hub) as client, python_client(hub, token("service_role")) as service:
        listener = await Listener(client, name).on_changes(schema="public", table=table).subscribe()
        allowed = await Listener(service, f"{name}_s").on_changes(schema="public", table=table).subscribe()
        sql.execute(f"insert into {table} values (1)")
        await listener.take()
        sql.execute(f"alter table {table} enable row level security")
        await asyncio.sleep(1)
        sql.execute(f"insert into {table} values (2)")
        await allowed.take(2)
        sql.execute(f"alter table {table} disable row level security")
        await asyncio.sleep(1)
        sql.execute(f"insert into {table} values (3)")
        assert [c["record"]["id"] for c in await listener.take()] == [3]


async def test_a_new_access_token_replaces_one_that_runs_out(hub, table, sql, name):
    async with python_client(hub) as fresh, python_client(hub) as stale:
        one = await Listener(fresh, name).on_changes(schema="public", table=table).subscribe()
        two = await Listener(stale, name).on_changes(schema="public", table=table).subscribe()
        short = token(lifetime=3)
        for each in (short, token()):
            await fresh.set_auth(each)
        await stale.set_auth(short)
        await two.wait_for_state("CHANNEL_ERROR")
        assert any("Token has expired" in (error or "") for _, error in two.states), two.states
        sql.execute(f"insert into {table} values (1)")
        await one.take()
        assert one.states == [("SUBSCRIBED", None)]
        assert two.changes == [], "nothing goes out on a token that ran out"


async def test_leaving_ends_the_channel_and_the_client_may_come_back(hub, name):
    async with python_client(hub) as client, python_client(hub) as other:
        keep = await Listener(client, f"{name}_keep").subscribe()
        listener = await Listener(client, name).on_broadcast("e").subscribe()
        await listener.channel.unsubscribe()
        await listener.wait_for_state("CLOSED")
        again = await Listener(client, name).on_broadcast("e").subscribe()
        sender = await Listener(other, name, ack=True).subscribe()
        await sender.channel.send_broadcast("e", {"n": 1})
        await eventually(lambda: again.broadcasts, what="the broadcast on the new channel")
        assert listener.broadcasts == []
        assert keep.states == [("SUBSCRIBED", None)]


async def test_a_hundred_channels_and_no_more_on_one_socket(hub, name):
    async with python_client(hub) as client:
        await asyncio.gather(*(Listener(client, f"{name}_{number}").subscribe() for number in range(100)))
        state, error = await Listener(client, f"{name}_more").attempt()
        assert state == "CHANNEL_ERROR"
        assert "ChannelRateLimitReached: Too many channels" in error
