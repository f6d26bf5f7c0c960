"""The emulators themselves (clients/): one is held against the real client, and each way to get stuck is shown by a server that causes it."""

import contextlib

import pytest
from realtime import AsyncRealtimeClient

from clients import CSharp, Dart, DartThree, Elixir, Go, JavaScript, Kotlin, Python, Rust, Swift, SwiftThree
from clients.channel import State, Wishes
from clients.standin import StandIn
from support.deadline import eventually
from support.tokens import token

ROWS = [{"event": "INSERT", "schema": "public", "table": "kit_message", "filter": "room=eq.a"}]
TOPIC = "realtime:a"


def change(id):
    return {"ids": [7], "data": {"type": "INSERT", "schema": "public", "table": "kit_message", "record": {"id": id}, "columns": []}}


@contextlib.asynccontextmanager
async def joined(kind, script=None, wishes=None):
    """A client in one channel of a stand-in."""
    async with StandIn(kind.version, script) as server:
        client = kind(server.port, token("anon"), token(sub="ann"))
        try:
            await client.connect()
            channel = client.channel("a", wishes or Wishes(ROWS))
            channel.subscribe()
            await eventually(lambda: channel.is_joined, what=lambda: f"{channel.seen} {server.frames}")
            yield server, client, channel
        finally:
            await client.close()


async def test_the_emulator_of_python_sends_what_the_package_sends():
    key, fresh = token(sub="ann"), token(sub="ann", lifetime=7200)
    async with StandIn(1) as real:
        client = AsyncRealtimeClient(f"ws://127.0.0.1:{real.port}/realtime/v1", key)
        channel = client.channel("a", {"config": {
            "broadcast": {"ack": False, "self": False}, "presence": {"key": "ann", "enabled": True}, "private": False}})
        channel.on_postgres_changes("INSERT", lambda _: None, table="kit_message", schema="public", filter="room=eq.a")
        await channel.subscribe()
        await channel.track({"name": "Ann"})
        await channel.send_broadcast("message", {"n": 1})
        await client.set_auth(fresh)
        await channel.unsubscribe()
        await eventually(lambda: "phx_leave" in real.events(), what=lambda: str(real.frames))
        await client.close()
    async with StandIn(1) as emulated:
        client = Python(emulated.port, key)
        await client.connect()
        channel = client.channel("a", Wishes(ROWS, "ann"))
        channel.subscribe()
        await eventually(lambda: channel.is_joined)
        channel.track({"name": "Ann"})
        channel.broadcast("message", {"n": 1})
        client.set_token(fresh)
        channel.leave()
        await eventually(lambda: "phx_leave" in emulated.events())
        await client.close()
    # When a heart beats is a matter of the clock.
    beat = {"event": "heartbeat", "topic": "phoenix", "payload": {}, "ref": None, "join_ref": None}
    assert beat in real.frames and beat in emulated.frames
    assert [frame for frame in real.frames if frame != beat] == [frame for frame in emulated.frames if frame != beat]


async def test_kotlin_freezes_at_an_error_until_its_heartbeat_fails():
    def script(event, topic):
        return [("phx_reply", {"status": "error", "response": {"reason": "no"}})] if event == "presence" else None

    async with joined(Kotlin, script) as (server, client, channel):
        channel.track({})
        await eventually(lambda: client.freezes, what="the freeze")
        await server.say(TOPIC, "postgres_changes", change(1))
        await eventually(lambda: server.events(TOPIC).count("phx_join") == 2, what="the next socket")
        await eventually(lambda: channel.is_joined)
        assert channel.seen.rows == [], "nobody read it"
        await server.say(TOPIC, "postgres_changes", change(2))
        await eventually(lambda: channel.seen.rows == [2])


async def test_dart_leaves_itself_if_the_answer_takes_two_seconds_after_a_reconnect():
    joins = []

    def script(event, topic):
        if event == "phx_join":
            joins.append(topic)
            return [] if len(joins) > 1 else None
        return None

    async with joined(Dart, script) as (server, client, channel):
        client.drop()
        await eventually(lambda: channel.left_by_itself, what=lambda: f"{joins} {channel.seen}")
        assert "phx_leave" in server.events(TOPIC)


@pytest.mark.parametrize("kind", [JavaScript, Go, DartThree])
async def test_diffs_wait_for_a_list(kind):
    async with joined(kind, wishes=Wishes(ROWS, "ann")) as (server, client, channel):
        diff = {"joins": {"bob": {"metas": [{"phx_ref": "1"}]}}, "leaves": {}}
        await server.say(TOPIC, "presence_diff", diff)
        await server.say(TOPIC, "broadcast", {"event": "e", "payload": {"n": 1}})
        await eventually(lambda: channel.seen.broadcasts)
        assert channel.seen.presence == {}
        await server.say(TOPIC, "presence_state", {})
        await eventually(lambda: "bob" in channel.seen.presence)


async def test_csharp_throws_at_a_system_error_before_it_is_joined():
    refused = {"extension": "postgres_changes", "status": "error", "message": "permission denied", "channel": "a"}

    def script(event, topic):
        return [("phx_reply", {"status": "ok", "response": {"postgres_changes": []}}), ("system", refused)] if event == "phx_join" else None

    async with StandIn(1, script) as server:
        client = CSharp(server.port, token("anon"), token(sub="ann"))
        await client.connect()
        client.channel("a", Wishes(ROWS)).subscribe()
        await eventually(lambda: client.thrown == ["Subscribe(): permission denied"])
        await client.close()


@pytest.mark.parametrize("kind", [DartThree, SwiftThree])
@pytest.mark.parametrize("reason, comes_back", [
    ("RealtimeDisabledForConfiguration: no such table", False), ("Unauthorized: You do not have permissions", False),
    ("UnableToConnectToProject: …", True), ("RlsPolicyError: A policy failed", True), ("RemovedFromChannel: …", True),
])
async def test_some_reasons_are_the_last_word(kind, reason, comes_back):
    def script(event, topic):
        return [("phx_reply", {"status": "error", "response": {"reason": reason}})] if event == "phx_join" else None

    async with StandIn(kind.version, script) as server:
        client = kind(server.port, token("anon"), token(sub="ann"))
        await client.connect()
        channel = client.channel("a", Wishes(ROWS))
        channel.subscribe()
        await eventually(lambda: channel.seen.refusals)
        assert channel.is_over != comes_back
        if comes_back:
            await eventually(lambda: server.events(TOPIC).count("phx_join") > 1)
        assert (channel.rejoining is not None or channel.state is State.JOINING) == comes_back
        await client.close()


async def test_swift_looks_at_no_error_of_a_join_and_gives_up_after_five():
    def script(event, topic):
        return [("phx_reply", {"status": "error", "response": {"reason": "no"}})] if event == "phx_join" else None

    async with StandIn(2, script) as server:
        client = Swift(server.port, token("anon"), token(sub="ann"))
        await client.connect()
        channel = client.channel("a", Wishes(ROWS))
        channel.subscribe()
        await eventually(lambda: channel.seen.states == ["unsubscribed"])
        assert server.events(TOPIC) == ["phx_join"] * 5
        await client.close()


async def test_elixir_loses_its_channels_at_a_close_without_a_status():
    async with joined(Elixir) as (server, client, channel):
        await server.say(TOPIC, "phx_close", {})
        await eventually(lambda: client.thrown == ["MatchError in Channel.Registry"])


@pytest.mark.parametrize("kind", [Elixir, Rust])
async def test_some_join_nothing_after_a_lost_socket(kind):
    async with joined(kind) as (server, client, channel):
        before = client.socket
        client.drop()
        await eventually(lambda: client.is_open and client.socket is not before)
        client.push("phoenix", "heartbeat", {}, "last")
        await eventually(lambda: any(frame.ref == "last" for frame in client.log))
        assert server.events(TOPIC) == ["phx_join"]


@pytest.mark.parametrize("kind", [JavaScript, Python, SwiftThree, Go])
async def test_most_join_again_after_a_phx_error(kind):
    async with joined(kind) as (server, client, channel):
        await server.say(TOPIC, "phx_error", {})
        await eventually(lambda: server.events(TOPIC).count("phx_join") == 2)
        await eventually(lambda: channel.is_joined)


async def test_kotlin_knows_no_keys_of_bindings_but_its_own():
    """What the hub answers has to be what was asked for, and an `id`."""
    def script(event, topic):
        entry = {**ROWS[0], "id": 7, "cursor": "x"}
        return [("phx_reply", {"status": "ok", "response": {"postgres_changes": [entry]}})] if event == "phx_join" else None

    async with StandIn(2, script) as server:
        client = Kotlin(server.port, token("anon"), token(sub="ann"))
        await client.connect()
        client.channel("a", Wishes(ROWS)).subscribe()
        await eventually(lambda: any("SerializationException" in text for text in client.thrown))
        await client.close()
