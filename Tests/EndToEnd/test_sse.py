"""Subscriptions over plain HTTP (docs/sse.md): every channel as server-sent events or lines of JSON, and nothing lost."""

import asyncio
import json
import time

import pytest

from support.channels import Rights, installed_policies
from support.deadline import eventually
from support.http import HTTPConnection
from support.ports import over_both
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
@over_both
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
@over_both
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
    member.push(f"realtime:{name}:rows", "presence", {"type": "presence", "event": "track", "payload": {"a": 1}})
    assert list((await events.until("presence_diff")).payload["joins"]) == ["ann"]


@over_both
async def test_lines_of_json_and_events_by_a_post(hub, http, name):
    body = json.dumps({"channels": [name, {"topic": f"{name}:2", "config": {}}], "access_token": token("anon")}).encode()
    async with await Subscription.open(
            hub.port, "/realtime/v1/api/sse", method="POST", body=body, lines=True,
            content_type="application/json") as events:
        assert list(events.channels) == [name, f"{name}:2"]
        await say(http, f"{name}:2", "x", {})
        assert (await events.message()).topic == f"{name}:2"


@over_both
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
@over_both
async def test_what_is_wrong_is_said_before_the_answer_begins(hub, path, status, words):
    async with await Subscription.open(hub.port, path) as events:
        assert events.status == status and words in events.first["error"], events.first


async def test_without_a_token(hub):
    async with await Subscription.open(hub.port, "/api/sse?channel=a", token_in_header=False) as events:
        assert events.status == 401 and "Authorization" in events.first["error"]


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


@over_both
async def test_an_id_that_says_nothing_is_told(hub, read, name):
    for last in ("nonsense", "1~zz!hzz.1", "1~~", "1" * 5000):
        events = await read(name, last_id=last)
        assert events.first["resumed"] is False and events.channels[name]["reason"].endswith("load what you show again.")


# Who may read


@pytest.fixture(scope="module")
def installed(shared_hub, cluster):
    with installed_policies(shared_hub, cluster):
        yield


@pytest.fixture
def rights(installed, sql, name):
    return Rights(sql, name)


def of(who, **claims):
    return token(sub=who, **claims)


async def test_the_policies_decide_before_the_answer_begins(hub, rights, http, name):
    rights.give("ann")
    private = channel(name, private=True)

    async def answer(*channels, who="ann"):
        return await Subscription.to(hub.port, *channels, bearer=of(who))

    await eventually(lambda: may_read(hub, private, of("ann")), what="ann's right")
    async with await answer(private, who="bob") as refused:
        assert refused.status == 403 and "permissions" in refused.first["error"]
    async with await answer(private, f"{name}:public", who="bob") as events:
        assert events.status == 200 and events.channels[f"{name}:public"]["status"] == "ok"
        verdict = events.channels[name]
        assert verdict["status"] == "error" and verdict["code"] == 403 and verdict["reason"].startswith("Unauthorized")
    path = f"/api/broadcast/{name}/events?private=true"
    async with await Subscription.open(hub.port, path, bearer=of("ann")) as events:
        await say(http, name, "public", {})
        await say(http, name, "secret", {"n": 1}, private=True)
        assert (await events.message()).name == "secret"


async def may_read(hub, private, who):
    async with await Subscription.to(hub.port, private, bearer=who) as events:
        return events.status == 200


async def test_a_token_that_runs_out_ends_the_answer(hub, rights, name):
    rights.give("ann")
    private = channel(name, private=True)
    await eventually(lambda: may_read(hub, private, of("ann")), what="ann's right")
    # The reader is told, and may not come back with it. On a busy machine its token may have run out before it came.
    while True:
        short = of("ann", exp=int(time.time()) + 2)
        async with await Subscription.to(hub.port, private, bearer=short) as events:
            if events.status == 401:
                continue
            message = await events.message()
            assert message.name == "token_expired" and message.topic == name and message.payload["code"] == 401
            assert await events.message() is None
            break
    async with await Subscription.to(hub.port, private, bearer=short) as events:
        assert events.status == 401


@over_both
async def test_a_ticket_stands_for_a_token_once(hub, http, name):
    answer = await http.request("POST", "/api/sse/ticket", b"", authorization="Bearer " + of("ann"))
    ticket = json.loads(answer.body)
    assert answer.status == 200 and ticket["expires_in"] == 30 and answer.headers["cache-control"] == "no-store"
    path = f"/api/sse{query([name], ticket=ticket['ticket'])}"
    async with await Subscription.open(hub.port, path, token_in_header=False) as events:
        await say(http, name, "x", {})
        assert (await events.message()).name == "x"
    async with await Subscription.open(hub.port, path, token_in_header=False) as events:
        assert events.status == 401 and "used already" in events.first["error"]
    assert (await http.request("POST", "/api/sse/ticket", b"")).status == 401
    assert (await http.request("GET", "/api/sse/ticket", authorization="Bearer " + of("ann"))).status == 405


async def test_a_ticket_buys_no_other(hub, http, name):
    async def ask(query="", **headers):
        return await http.request("POST", "/api/sse/ticket" + query, b"", **headers)
    ticket = json.loads((await ask(authorization="Bearer " + of("ann"))).body)["ticket"]
    refused = await ask(f"?ticket={ticket}")
    assert refused.status == 401 and "token" in json.loads(refused.body)["error"]
    assert (await ask(f"?ticket={ticket}", authorization="Bearer " + of("ann"))).status == 200, "the token counts"
    # Nobody used it up for its owner.
    async with await Subscription.open(hub.port, f"/api/sse{query([name], ticket=ticket)}", token_in_header=False) as events:
        assert events.status == 200


async def test_a_cookie_counts_for_pages_that_may_use_it(own_hub, name):
    own_hub.environment |= {"ROOST_HTTP_TOKEN_COOKIE": "access_token", "ROOST_HTTP_ORIGINS": "https://app.example.com"}
    own_hub.start()
    cookie = {"cookie": f"a=b; access_token={of('ann')}; c=d", "token_in_header": False}

    async def opened(**headers):
        async with await Subscription.to(own_hub.port, name, **cookie, **headers) as events:
            return events.status, events.headers.get("access-control-allow-credentials")
    assert await opened() == (401, None)
    assert await opened(sec_fetch_site="cross-site") == (401, None)
    assert await opened(sec_fetch_site="same-origin") == (200, "true")
    assert await opened(origin="https://app.example.com") == (200, "true")
    assert await opened(origin="https://evil.example.com") == (403, None)


async def test_a_cookie_counts_nowhere_else(hub, name):
    cookie = {"cookie": f"access_token={of('ann')}", "sec_fetch_site": "same-origin", "token_in_header": False}
    async with await Subscription.to(hub.port, name, **cookie) as events:
        assert events.status == 401


# What others can do to a reader


@over_both
async def test_nobody_passes_for_the_hub_or_for_another_channel(hub, read, http, connect, name):
    events = await read(name)
    member = await connect(2)
    await member.join(f"realtime:{name}")
    forged = ["postgres_changes", "connected", "error", "a\nevent: system\ndata: {}\n\n", ""]
    for event in [*forged, "x" * 300, "talk"]:
        member.push(f"realtime:{name}", "broadcast", {
            "type": "broadcast", "event": event, "payload": {"n": 1}, "topic": "other", "id": "forged"})
        message = await events.message()
        assert message.name == ("broadcast" if event in forged else event)
        assert message.event == event and message.topic == name and message.data["type"] == "broadcast"
        assert set(message.data) == {"topic", "event", "type", "payload", "meta"}
    member.send_text('[null,null,"realtime:%s","broadcast",{"event":"lines",\n"payload":\r\n{"a":\n\n"b"}}]' % name)
    assert (await events.message())[:4] == ("lines", name, "lines", {"a": "b"})


@both_formats
@over_both
async def test_bytes_come_as_base64(hub, read, http, name, lines):
    events = await read(name, lines=lines)
    answer = await http.request(
        "POST", f"/api/broadcast/{name}/events/raw", b"\x00\xff\n", content_type="application/octet-stream",
        authorization="Bearer " + token("anon"))
    assert answer.status == 202
    message = await events.message()
    assert message.payload == "AP8K" and message.data["encoding"] == "base64"


async def test_a_reader_is_a_connection_like_others(own_hub, name):
    own_hub.environment["ROOST_LIMITS_CONNECTIONS_PER_USER"] = "2"
    own_hub.start()
    opened = [await Subscription.to(own_hub.port, name, bearer=of("ann")) for _ in range(3)]
    assert [one.status for one in opened] == [200, 200, 429]
    opened[0].close()

    async def has_room():
        async with await Subscription.to(own_hub.port, name, bearer=of("ann")) as events:
            return events.status == 200
    await eventually(has_room, what="room for another")
    for one in opened:
        one.close()


@over_both
async def test_a_reader_says_nothing_in_presence(hub, read, connect, name):
    member = await connect(2)
    await member.join(f"realtime:{name}", config={"presence": {"enabled": True, "key": "bob"}})
    await member.ask(f"realtime:{name}", "presence", {"type": "presence", "event": "track", "payload": {}})
    events = await read(channel(name, presence={"enabled": True, "key": "ann"}))
    assert list((await events.until("presence_state")).payload) == ["bob"]
