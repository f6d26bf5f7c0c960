"""Subscriptions over plain HTTP (docs/sse.md): every channel as server-sent events or lines of JSON, and nothing lost."""

import asyncio
import json
import random

import pytest

from support.channels import INSTALL, Rights
from support.deadline import eventually
from support.http import HTTPConnection
from support.subscriptions import Subscription, channel, query
from support.tokens import token

pytestmark = pytest.mark.anyio
both_formats = pytest.mark.parametrize("lines", [False, True], ids=["sse", "ndjson"])


@pytest.fixture
async def read(hub):
    """Opens readers on the shared hub and closes them at the end."""
    opened = []

    async def read(*channels, **options):
        opened.append(await Subscription.to(hub.port, *channels, **options))
        return opened[-1]

    yield read
    for one in opened:
        one.close()


async def say(http, topic, event, payload, private=False, who=None):
    answer = await http.request(
        "POST", f"/api/broadcast/{topic}/events/{event}{'?private=true' if private else ''}", json.dumps(payload).encode(),
        authorization="Bearer " + (who or token("service_role")))
    assert answer.status == 202, answer.body


@both_formats
async def test_broadcasts_of_a_channel(hub, read, http, name, lines):
    async with await Subscription.open(hub.port, f"/api/broadcast/{name}/events", lines=lines) as events:
        assert events.headers["content-type"] == ("application/x-ndjson" if lines else "text/event-stream")
        assert events.headers["x-accel-buffering"] == "no" and events.headers["cache-control"] == "no-store"
        assert events.first == {"channels": [{"topic": name, "status": "ok"}]}
        await say(http, name, "greeting", {"text": "hello\nthere"})
        message = await events.message()
        assert message[:4] == ("greeting", name, "greeting", {"text": "hello\nthere"})
        assert message.data["type"] == "broadcast" and message.id


@both_formats
async def test_one_event_of_a_channel(hub, http, name, lines):
    async with await Subscription.open(hub.port, f"/api/broadcast/{name}/events/b", lines=lines) as events:
        for number, event in enumerate("ababcb"):
            await say(http, name, event, {"n": number})
        assert [(await events.message()).payload["n"] for _ in range(3)] == [1, 3, 5]


@both_formats
async def test_several_channels_with_all_that_a_join_may_ask_for(hub, read, http, connect, sql, table, name, lines):
    watched = channel(
        f"{name}:rows", postgres_changes=[{"event": "INSERT", "schema": "public", "table": table, "filter": "n=gt.1"}],
        presence={"enabled": True})
    events = await read(watched, f"{name}:talk", lines=lines)
    assert [one["status"] for one in events.channels.values()] == ["ok", "ok"]
    assert (await events.until("presence_state")).payload == {}
    assert (await events.until("system")).payload["message"] == "Subscribed to PostgreSQL"
    sql.execute(f'insert into "{table}" values (1, \'no\', 1), (2, \'yes\', 2)')
    row = await events.until("postgres_changes")
    assert row.topic == f"{name}:rows" and row.payload["data"]["record"]["body"] == "yes"
    await say(http, f"{name}:talk", "hi", {"from": "http"})
    assert (await events.until("hi")).topic == f"{name}:talk"
    member = await connect(2)
    await member.join(f"realtime:{name}:rows", config={"presence": {"enabled": True, "key": "ann"}})
    await member.send(f"realtime:{name}:rows", "presence", {"type": "presence", "event": "track", "payload": {"a": 1}})
    assert list((await events.until("presence_diff")).payload["joins"]) == ["ann"]


async def test_lines_of_json_and_events_by_a_post(hub, http, name):
    body = json.dumps({"channels": [name, {"topic": f"{name}:2", "config": {}}], "access_token": token("anon")}).encode()
    async with await Subscription.open(
            hub.port, "/realtime/v1/api/sse", method="POST", body=body, lines=True,
            content_type="application/json") as events:
        assert list(events.channels) == [name, f"{name}:2"]
        await say(http, f"{name}:2", "x", {})
        assert (await events.message()).topic == f"{name}:2"


async def test_http_1_0_has_no_chunks(hub, read, http, name):
    events = await read(name, version="1.0")
    assert not events.is_chunked and events.headers["connection"] == "close"
    await say(http, name, "x", {"n": 1})
    assert (await events.message()).payload == {"n": 1}


@pytest.mark.parametrize("path, status, words", [
    ("/api/sse", 400, "Name a channel"),
    ("/api/sse?channel={", 400, "neither a name nor JSON"),
    ("/api/sse?channel={%22config%22:{}}", 400, "has no topic"),
    ("/api/sse?channel={%22topic%22:%22a%22,%22config%22:1}", 400, "must be an object"),
    ("/api/sse?channel=a&channel=a", 400, "named twice"),
    ("/api/sse?" + "&".join(f"channel=a{n}" for n in range(81)), 400, "at most 80 channels"),
    ("/api/sse?channel=", 400, "topic name"),
    ("/api/broadcast/a/events?private=perhaps", 400, "true or false"),
    ("/api/sse?channel=a&ticket=nonsense", 401, "ticket"),
])
async def test_what_is_wrong_is_said_before_the_answer_begins(hub, path, status, words):
    async with await Subscription.open(hub.port, path) as events:
        assert events.status == status and words in events.first["message"], events.first


async def test_without_a_token(hub):
    async with await Subscription.open(hub.port, "/api/sse?channel=a", token_in_header=False) as events:
        assert events.status == 401 and "Authorization" in events.first["message"]


# Coming back


@both_formats
async def test_a_reader_that_comes_back_gets_what_it_missed(hub, read, http, sql, table, name, lines):
    channels = channel(
        f"{name}:rows", postgres_changes=[{"event": "*", "schema": "public", "table": table}]), f"{name}:talk"
    events = await read(*channels, lines=lines)
    await events.until("system")
    sql.execute(f'insert into "{table}" values (1)')
    row = await events.until("postgres_changes")
    await say(http, f"{name}:talk", "hi", {"n": 1})
    last = await events.until("hi")
    events.close()
    sql.execute(f'insert into "{table}" values (2)')
    await say(http, f"{name}:talk", "hi", {"n": 2})
    again = await read(*channels, lines=lines, last_id=last.id)
    assert again.first["resumed"] is True and all(one["resumed"] for one in again.channels.values())
    got = [await again.until("hi", "postgres_changes") for _ in range(2)]
    assert {one.name for one in got} == {"hi", "postgres_changes"}
    assert next(one for one in got if one.name == "hi").payload == {"n": 2}
    assert next(one for one in got if one.name != "hi").payload["data"]["record"]["id"] == 2
    await say(http, f"{name}:talk", "hi", {"n": 3})
    assert (await again.until("hi")).payload == {"n": 3}


async def test_an_id_that_says_nothing_is_told(hub, read, name):
    for last in ("nonsense", "1~zz!hzz.1", "1~~", "\x7f", "1" * 5000):
        events = await read(name, last_id=last)
        assert events.first["resumed"] is False and events.channels[name]["reason"].endswith("load what you show again.")
