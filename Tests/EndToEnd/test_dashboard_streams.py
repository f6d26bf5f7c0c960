"""The operator's live page shows streams: which grow, who writes and reads one, and the buttons that end it."""

import asyncio
import itertools
import json
import urllib.request

import pytest

from support.deadline import eventually
from support.events import EventReader
from support.http import HTTPConnection
from support.ops import LIVE, connect_operator, hook, state_where, watch
from support.streams import Stream, Upload, bearer, stamp
from support.subscriptions import Subscription, channel
from support.tokens import token

pytestmark = pytest.mark.anyio
PRIVATE = {"private": True}


def view(stream):
    return f"ops:stream:{stream.name}"


def line(stream, key="newest"):
    return lambda payload: next((row for row in payload[key] if row["name"] == stream.name), None)


# What feeds the page


async def test_the_newest_streams_and_all_in_figures(operator, http):
    streams = [Stream(http) for _ in range(30)]
    for stream in streams:
        await stream.create(body=b"Hello")
    payload = await watch(operator, "ops:streams")
    assert payload["served"] and payload["streams"] >= payload["open"] >= 30 and payload["bytes"] >= 150
    # Bounded, the latest first; of those that were made in the same millisecond none is later.
    assert len(payload["newest"]) == 25 and {row["name"] for row in payload["newest"]} <= {stream.name for stream in streams}
    row = payload["newest"][0]
    assert row["state"] == "open" and row["bytes"] == 5 and row["type"] == "text/plain" and 0 <= row["seconds"] < 300
    assert row["webSockets"] == row["events"] == row["longPolls"] == row["requests"] == row["sockets"] == 0
    # Nothing was appended, and nobody numbers it.
    assert row["silence"] is None and row["producer"] is None and row["appends"] == 0


async def test_those_that_grow_with_their_rates(operator, http, stream):
    quiet = Stream(http)
    await quiet.create(body=b"x" * 5000)
    await watch(operator, "ops:streams")
    row = None
    async with asyncio.timeout(30):
        while not row or not row["byteRate"]:
            for _ in range(10):
                await stream.append(b"0123456789")
            row = line(stream, "busiest")((await operator.next("state", "ops:streams")).payload)
    # A survey is a second after the one before, on a busy machine some.
    assert 0 < row["byteRate"] <= 10 * row["appendRate"] + 0.1 and row["appendRate"] < 1000
    assert row["appends"] >= 10 and row["silence"] < 100
    payload = await state_where(operator, "ops:streams", lambda payload: not line(stream, "busiest")(payload))
    assert not line(quiet, "busiest")(payload), "what does not grow is not busy, however large"


async def test_who_reads_a_stream_by_each_way(hub, operator, connect, stream):
    await stream.append(b"Hello")
    member = await connect(apikey=token("service_role", sub="member"))
    await member.join(f"realtime:stream:{stream.name}", config=PRIVATE)
    async with (
            await EventReader.open(hub.port, f"{stream.path}?offset=-1&live=sse", **bearer(sub="reader")),
            await EventReader.open(hub.port, f"{stream.path}?live=events", **bearer(sub="browser")),
            await Subscription.to(hub.port, channel(f"stream:{stream.name}", private=True), bearer=token("service_role", sub="subscriber")),
            await HTTPConnection.open(hub.port) as polling):
        asker = Stream(polling, stream.name, **bearer(sub="asker"))
        poll = asyncio.create_task(asker.read("?offset=now&live=long-poll", within=30))
        await watch(operator, view(stream))
        seen = await state_where(operator, view(stream), lambda payload: (
            len(payload["watchers"]) == 5 and payload["behind"] == 0))
        counts = {key: seen["stream"][key] for key in ("webSockets", "events", "longPolls")}
        assert counts == {"webSockets": 1, "events": 3, "longPolls": 1}
        ways = {row["user"]: (row["transport"], row["offset"], row["behind"]) for row in seen["watchers"]}
        assert ways == {"member": ("websocket", 5, 0), "reader": ("sse", 5, 0), "browser": ("sse", 5, 0),
                        "subscriber": ("sse", 5, 0), "asker": ("long_poll", 5, 0)}
        # Those that the hub knows as connections have a view of their own; the others' addresses are shown.
        connected = {row["user"]: row["id"] for row in seen["watchers"] if row["id"]}
        assert set(connected) == {"member", "subscriber"}
        assert (await watch(operator, f"ops:connection:{connected['member']}"))["socket"]["user"] == "member"
        assert {row["address"] for row in seen["watchers"] if row["user"] != "asker"} == {"127.0.0.1"}
        row = line(stream)(await watch(operator, "ops:streams"))
        assert (row["webSockets"], row["events"], row["longPolls"]) == (1, 3, 1)
        await stream.append(b"!")
        assert (await poll).body == b"!"
    await state_where(operator, view(stream), lambda payload: (
        [row["user"] for row in payload["watchers"]] == ["member"] and payload["stream"]["webSockets"] == 1))


async def test_how_far_the_slowest_is_behind(hub, operator, http):
    stream = Stream(http)
    await stream.create("application/octet-stream")
    slow = await EventReader.open(hub.port, f"{stream.path}?offset=-1&live=sse", buffer=4096, **bearer(sub="slow"))
    async with slow:
        slow.writer.transport.pause_reading()
        for _ in range(8):
            await stream.append(b"x" * 1_000_000, "application/octet-stream")
        await watch(operator, view(stream))
        seen = await state_where(operator, view(stream), lambda payload: payload["behind"])
        row = seen["watchers"][0]
        assert row["user"] == "slow" and row["behind"] == seen["behind"] == 8_000_000 - row["offset"] > 1_000_000


async def test_who_writes_a_stream(hub, operator, connect, stream, name):
    await stream.append(b"a", **stamp(0, producer="first"))
    await stream.append(b"b", **stamp(0, epoch=3, producer="second"))
    writer = await connect(apikey=token("service_role", sub=name))
    ref, _ = await writer.join(f"realtime:stream:{stream.name}", config={"private": True, "broadcast": {"ack": True}})
    said = {"type": "broadcast", "event": "append", "payload": {"delta": "c"}}
    writer.push(f"realtime:stream:{stream.name}", "broadcast", said, "9", ref)
    await writer.next("phx_reply", ref="9")
    async with await HTTPConnection.open(hub.port) as connection:
        upload = Upload(connection, stream)
        upload.write(b"d")
        await watch(operator, view(stream))
        seen = await state_where(operator, view(stream), lambda payload: (
            payload["stream"]["requests"] == 1 and len(payload["writers"]) == 2 and payload["stream"]["bytes"] == 4))
        assert [row["user"] for row in seen["writers"] if row["id"]] == [name] and seen["stream"]["sockets"] == 1
        assert [(row["id"], row["epoch"], row["sequence"], row["end"]) for row in seen["producers"]] == [
            ("second", 3, 0, 2), ("first", 0, 0, 1)]
        assert seen["stream"]["producer"] == "second" and seen["producerCount"] == 2
        connection.writer.transport.abort()
    seen = await state_where(operator, view(stream), lambda payload: not payload["stream"]["requests"])
    # Another connection is there still.
    assert seen["stream"]["state"] == "open"
    await writer.close()
    await state_where(operator, view(stream), lambda payload: payload["stream"]["state"] == "stalled")


async def test_the_newest_content_without_tokens(operator, http):
    secret = token(sub="somebody", marker="x" * 300)
    text, messages, data = Stream(http), Stream(http), Stream(http)
    await text.create(body=b"x" * 10_000)
    answer = await text.append(f" it is {secret} and so on".encode(), **stamp(0, producer=secret[:150]))
    assert answer.status == 200
    await messages.create("application/json", body=json.dumps(
        [{"n": number, "access_token": "open sesame"} for number in range(20)]).encode())
    await data.create("application/octet-stream", body=secret.encode())
    seen = await watch(operator, view(text))
    assert seen["excerpt"] == ["… it is *** and so on"]
    assert seen["stream"]["producer"] == seen["producers"][0]["id"] == "***"
    # What is looked at begins within the token, whose end would pass for a word.
    await text.append(b" z" * 1_900)
    seen = await state_where(operator, view(text), lambda payload: payload["excerpt"][0].endswith(" z"))
    assert seen["excerpt"] == ["…" + " z" * 100]
    assert (await watch(operator, view(messages)))["excerpt"] == [
        f'{{"n":{number},"access_token":"***"}}' for number in range(15, 20)]
    assert (await watch(operator, view(data)))["excerpt"] == []
    told = b"".join(message.raw for message in operator.messages)
    for part in secret.split("."):
        assert part[-20:].encode() not in told
    assert b"sesame" not in told


async def test_cancelling_a_stream(hub, operator, connect, stream):
    member = await connect(apikey=token("service_role"))
    await member.join(f"realtime:stream:{stream.name}", config=PRIVATE)
    await stream.append(b"Hello")
    id = (await watch(operator, view(stream)))["stream"]["id"]
    reply = await operator.ask(view(stream), "cancel_stream", {"stream": stream.name, "id": id})
    assert reply.payload == {"status": "ok", "response": {"stream": stream.name}}
    await member.next("broadcast", where=lambda message: b"cancelled" in message.raw)
    late = await stream.append(b"!")
    assert late.status == 409 and late.headers["stream-cancelled"] == "true"
    seen = await state_where(operator, view(stream), lambda payload: payload["stream"]["state"] == "cancelled")
    assert seen["stream"]["bytes"] == 5
    assert f"cancelled the stream {stream.name}" in hub.log


async def test_deleting_a_stream(hub, operator, stream):
    id = (await watch(operator, view(stream)))["stream"]["id"]
    reply = await operator.ask(view(stream), "delete_stream", {"stream": stream.name, "id": id})
    assert reply.payload["status"] == "ok"
    assert (await stream.head()).status == 404
    await state_where(operator, view(stream), lambda payload: payload == {"stream": None})
    assert f"deleted the stream {stream.name}" in hub.log
    # Another one of its name is not what the operator has looked at.
    await stream.create()
    for command in ("cancel_stream", "delete_stream"):
        again = await operator.ask(view(stream), command, {"stream": stream.name, "id": id})
        assert again.payload == {"status": "error", "response": {"reason": "there is no such stream any more"}}
    assert (await stream.append(b"on")).status == 204


async def test_what_is_no_stream(operator, stream):
    assert await watch(operator, "ops:stream:nobody/wrote/this") == {"stream": None}
    for name in ("", "a//b", "a/../b", "x" * 201, "a/cancel"):
        assert (await operator.ask(f"ops:stream:{name}", "phx_join", {})).payload["status"] == "error", name
    for payload in ({}, {"stream": stream.name}, {"stream": 7, "id": "1"}, {"stream": "a//b", "id": "1"}):
        for command in ("cancel_stream", "delete_stream"):
            asked = await operator.ask("ops:stream:nobody/wrote/this", command, payload)
            assert asked.payload["status"] == "error" and "say which stream" in asked.payload["response"]["reason"]
    assert (await operator.ask("ops:streams", "cancel_stream", {"stream": stream.name, "id": "1"})).payload["status"] == "error"


async def test_a_hub_without_streams(own_hub, browser):
    del own_hub.environment["ROOST_STREAMS_DIRECTORY"]
    own_hub.start()
    operator = await connect_operator(own_hub)
    assert await watch(operator, "ops:streams") == {"served": False}
    assert await watch(operator, "ops:stream:reply/1") == {"stream": None}
    asked = await operator.ask("ops:streams", "delete_stream", {"stream": "reply/1", "id": "1"})
    assert asked.payload["status"] == "error"
    await operator.close()
    page = await browser.page(f"http://127.0.0.1:{own_hub.ops_port}/#/streams")
    await page.until(LIVE)
    await page.until("document.querySelector('main').innerText.includes('streams.directory is not set')")
    await page.run("location.hash = '#/'")
    await page.until(f"{hook('connections-0')}?.textContent === '0'")
    assert await page.run(f"{hook('streams')}.hidden")
    assert page.complaints == []
    await page.close()


# The page


async def test_the_page_shows_streams_and_cancels_one_after_asking_back(hub, connect, open_page, stream):
    stream_topic = f"realtime:stream:{stream.name}"
    member = await connect(apikey=token("service_role", sub="ada"))
    await member.join(stream_topic, config=PRIVATE)
    page = await open_page("#/streams")
    await page.until(f"{hook('streams-newest')}?.textContent.includes({json.dumps(stream.name)})")
    await page.until(f"/^[1-9][0-9,]* kept, [1-9]/.test({hook('streams-sum')}.textContent)")
    numbers = itertools.count()

    async def grows():
        await stream.append(b"Tell me. ", **stamp(next(numbers)))
        return await page.run(f"{hook('streams-busiest')}?.textContent.includes({json.dumps(stream.name)})")
    await eventually(grows, what="the stream among those that grow", every=0.05)
    await page.run(f"[...{hook('streams-newest')}.querySelectorAll('a')].find((a) => a.textContent === {json.dumps(stream.name)}).click()")
    await page.until(f"{hook('stream')}?.textContent.includes('writer') || {hook('producers')}?.textContent.includes('writer')")
    await page.until(f"{hook('watchers')}.textContent.includes('ada')")
    await page.until(f"{hook('excerpt')}.textContent.includes('Tell me')")
    await page.run(f"{hook('cancel')}.click()")
    await page.until(f"{hook('dialog')}?.open")
    assert "producer is told to stop" in await page.run(f"{hook('dialog')}.textContent")
    await page.run(f"{hook('dialog')}.querySelector('button').click()")
    await page.until(f"!{hook('dialog')}")
    assert "stream-status" not in (await stream.head()).headers, "who says no has changed nothing"
    await page.run(f"{hook('cancel')}.click()")
    await page.until(f"{hook('dialog')}?.open")
    await page.run(f"{hook('confirm')}.click()")
    await member.next("broadcast", where=lambda message: b"cancelled" in message.raw)
    await page.until(f"{hook('stream')}.textContent.includes('cancelled') && {hook('cancel')}.hidden")
    await page.until(f"{hook('news')}.textContent.includes('is cancelled')")


async def test_the_page_deletes_a_stream(open_page, stream):
    page = await open_page(f"#/stream/{urllib.request.quote(stream.name, safe='')}")
    await page.until(f"{hook('stream')}?.textContent.includes('open')")
    await page.run(f"{hook('delete')}.click()")
    await page.until(f"{hook('dialog')}?.open")
    await page.run(f"{hook('confirm')}.click()")
    await page.until(f"!{hook('gone')}.hidden && {hook('delete')}.hidden")
    assert (await stream.head()).status == 404


async def test_the_overview_counts_streams(hub, open_page, stream):
    page = await open_page()
    kept = await eventually(lambda: hub.metric("roost_streams"))
    await page.until(f"!{hook('streams')}.hidden && {hook('streams')}.textContent.includes('Kept{int(kept):,}')")


async def test_markup_of_streams_is_text(http, open_page):
    stream = Stream(http, "reply/%3Cimg%20src=x%20onerror=alert(1)%3E")
    await stream.create("text/<b>x</b>", body=b"<script>1</script>")
    await stream.append(b"<i>", "text/<b>x</b>", **stamp(0, producer="<u>me</u>"))
    page = await open_page("#/streams")
    await page.until(f"{hook('streams-newest')}?.textContent.includes('<img')")
    assert await page.run("document.querySelectorAll('main img, main b, main u, main i, main script').length") == 0
    await page.run("location.hash = '#/stream/' + encodeURIComponent('reply/<img src=x onerror=alert(1)>')")
    await page.until(f"{hook('excerpt')}?.textContent.includes('<script>1</script><i>')")
    await page.until(f"{hook('producers')}.textContent.includes('<u>me</u>')")
    assert await page.run("document.querySelectorAll('main img, main b, main u, main i, main script').length") == 0
