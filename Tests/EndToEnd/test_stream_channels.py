"""Streams on Supabase's wire: the channel `stream:NAME`, with an unmodified client and with frames as they are."""

import asyncio
import json
import os
import random

import pytest

from support.bounds import at_most
from support.deadline import eventually
from support.pypi import Listener, python_client
from support.streams import Stream, bearer, offset, stamp
from support.tokens import token

pytestmark = pytest.mark.anyio
PRIVATE = {"private": True}
ACK = {"private": True, "broadcast": {"ack": True}}


@pytest.fixture
def service():
    return token("service_role")


def topic(stream):
    return f"realtime:stream:{stream.name}"


class Text:
    """Puts a stream together from its frames, as docs/streams.md has it."""

    def __init__(self):
        self.id, self.text, self.next, self.status, self.row = None, "", 0, None, None

    def take(self, frame):
        if frame["id"] != self.id:
            self.id, self.text, self.next = frame["id"], "", 0
        if "next" in frame:
            assert frame["at"] == self.next, "nothing is missing, and nothing comes twice"
            self.text += frame.get("delta", "")
            self.next = frame["next"]
            assert len(self.text.encode()) == self.next
        self.status = frame.get("status", self.status)


async def frames(client, text, until):
    while not until(text):
        message = await client.next("broadcast")
        text.take(told(message))
    return text


def told(message):
    """In version 2 it is a binary frame, which is shorter."""
    if message.is_binary:
        assert message.payload.event == "stream" and message.payload.encoding == 1
        return json.loads(message.payload.payload)
    assert message.payload["event"] == "stream"
    return message.payload["payload"]


async def test_an_unmodified_client_watches(hub, stream, service):
    await stream.append(b"Hello")
    async with python_client(hub, service) as client:
        got = Text()
        listener = Listener(client, f"stream:{stream.name}", private=True)
        listener.channel.on_broadcast("stream", lambda message: got.take(message["payload"]))
        await listener.subscribe()
        await eventually(lambda: got.text == "Hello", what="all there is")
        for number in range(20):
            await stream.append(f", {number} Grüße 🐦".encode())
        await stream.close()
        await eventually(lambda: got.status == "complete", what="the end")
        assert got.text == "Hello" + "".join(f", {number} Grüße 🐦" for number in range(20))


@pytest.mark.parametrize("version", [1, 2])
async def test_an_unmodified_producer_writes_by_its_socket(hub, connect, stream, service, version):
    writer, watcher = await connect(version, apikey=service), await connect(version, apikey=service)
    await writer.join(topic(stream), config=ACK)
    await watcher.join(topic(stream), config=PRIVATE)
    for number in range(10):
        reply = await writer.ask(topic(stream), "broadcast", {
            "type": "broadcast", "event": "append", "payload": {"delta": f"{number} "}})
        assert reply.payload["status"] == "ok"
    reply = await writer.ask(topic(stream), "broadcast", {"type": "broadcast", "event": "close", "payload": {}})
    assert reply.payload == {"status": "ok", "response": {"next": 20}}
    text = await frames(watcher, Text(), lambda text: text.status == "complete")
    assert text.text == "0 1 2 3 4 5 6 7 8 9 "
    reply = await writer.ask(topic(stream), "broadcast", {
        "type": "broadcast", "event": "append", "payload": {"delta": "more"}})
    assert reply.payload["response"]["reason"] == "StreamEnded: The stream has ended at 20 bytes"
    assert (await stream.read()).body.decode() == text.text


async def test_a_watcher_cancels_and_the_producer_is_told(hub, connect, stream, service):
    writer, watcher = await connect(apikey=service), await connect(apikey=service)
    await writer.join(topic(stream), config=ACK)
    await watcher.join(topic(stream), config=ACK)
    await writer.ask(topic(stream), "broadcast", {"type": "broadcast", "event": "append", "payload": {"delta": "so far"}})
    await frames(watcher, Text(), lambda text: text.text == "so far")
    reply = await watcher.ask(topic(stream), "broadcast", {"type": "broadcast", "event": "cancel", "payload": {}})
    assert reply.payload == {"status": "ok", "response": {"next": 6}}
    await frames(writer, Text(), lambda text: text.status == "cancelled")
    reply = await writer.ask(topic(stream), "broadcast", {
        "type": "broadcast", "event": "append", "payload": {"delta": "more"}})
    assert reply.payload["response"]["reason"] == "StreamCancelled: The stream was cancelled at 6 bytes: stop writing it"


@pytest.mark.parametrize("end", ["close", "abort", "leave"])
async def test_a_producer_whose_socket_ends_has_stalled(hub, connect, stream, service, end):
    writer, watcher = await connect(apikey=service), await connect(apikey=service)
    await writer.join(topic(stream), config=ACK)
    await watcher.join(topic(stream), config=PRIVATE)
    await writer.ask(topic(stream), "broadcast", {"type": "broadcast", "event": "append", "payload": {"delta": "a"}})
    match end:
        case "close": await writer.close()
        case "abort": writer.socket.writer.transport.abort()
        case "leave": await writer.ask(topic(stream), "phx_leave", {})
    # Sooner than somebody who is there and says nothing has stalled (streams.stalled_after).
    with at_most(5, "the word of the stall"):
        text = await frames(watcher, Text(), lambda text: text.status == "stalled")
    assert text.text == "a"
    await stream.append(b"b")
    await frames(watcher, text, lambda text: text.status == "open" and text.text == "ab")


async def test_a_stream_that_is_made_later_is_told_of_at_once(hub, connect, http, service):
    stream = Stream(http)
    watcher = await connect(apikey=service)
    await watcher.join(topic(stream), config=PRIVATE)
    await stream.create(body=b"begin")
    text = await frames(watcher, Text(), lambda text: text.text == "begin")
    await stream.delete()
    message = await watcher.next("broadcast")
    assert told(message) == {"id": text.id, "status": "deleted"}
    await stream.create(body=b"again")
    await frames(watcher, text, lambda text: text.text == "again")


async def test_who_joins_again_is_sent_all_of_it_or_what_it_lacks(connect, stream, service):
    """As docs/streams.md tells clients to take it: a frame at 0 begins anew."""
    await stream.append(b"Hello")
    client = await connect(apikey=service)
    await client.join(topic(stream), config=PRIVATE)
    first = told(await client.next("broadcast"))
    await client.ask(topic(stream), "phx_leave", {})
    await stream.append(b", world")
    await client.join(topic(stream), config=PRIVATE)
    again = told(await client.next("broadcast"))
    assert (again["id"], again["at"], again["delta"]) == (first["id"], 0, "Hello, world")
    await client.ask(topic(stream), "phx_leave", {})
    await client.join(topic(stream), config={**PRIVATE, "stream": {"id": first["id"], "at": first["next"]}})
    rest = told(await client.next("broadcast"))
    assert (rest["id"], rest["at"], rest["delta"]) == (first["id"], 5, ", world")


async def test_the_channel_is_private(connect, stream, service):
    client = await connect(apikey=service)
    reply = await client.ask(topic(stream), "phx_join", {"config": {}})
    assert reply.payload["response"]["reason"] == "StreamTopic: The channel of a stream is private: join it with private: true"
    stranger = await connect(apikey=token("authenticated", sub="ann"))
    reply = await stranger.ask(topic(stream), "phx_join", {"config": PRIVATE})
    assert reply.payload["response"]["reason"].startswith("Unauthorized")


@pytest.mark.parametrize("path, body", [
    ("/api/broadcast/stream:{}/events/stream?private=true", {}),
    ("/api/broadcast", {"messages": [{"topic": "stream:{}", "event": "stream", "private": True, "payload": {}}]}),
])
async def test_nobody_else_says_what_the_hub_says(http, stream, path, body):
    """By HTTP; tests of the hub have it for sockets."""
    body = json.loads(json.dumps(body).replace("stream:{}", f"stream:{stream.name}"))
    answer = await http.request("POST", path.format(stream.name), body, content_type="application/json", **bearer())
    assert answer.status == 403 and "come from the hub alone" in answer.json["message"]


async def test_late_joiners_drops_and_resumes_are_byte_exact(hub, connect, stream, service):
    """Watchers of both protocol versions that come at any time, break off, and go on where they were."""
    rounds = int(os.environ.get("ROOST_STREAM_JOINS", "200"))
    pieces = ["word ", "Grüße ", "a\nb\n", "🐦", "\"\\"]
    rng, said, joins = random.Random(3), "", 0

    async def watch(seed):
        nonlocal joins
        rng, text = random.Random(seed), Text()
        for _ in range(rounds // 20):
            client = await connect(rng.choice([1, 2]), apikey=service)
            joins += 1
            resume = {"stream": {"id": text.id, "at": text.next, "every_ms": rng.choice([0, 5, 40])}}
            if text.id:
                # The answer to a resumed join begins where this one is.
                await client.join(topic(stream), config={**PRIVATE, **resume})
            else:
                await client.join(topic(stream), config=PRIVATE)
            for _ in range(rng.randrange(1, 8)):
                if text.status == "complete":
                    return text.text
                text.take(told(await client.next("broadcast")))
            await client.close()
        client = await connect(apikey=service)
        await client.join(topic(stream), config={**PRIVATE, "stream": {"id": text.id, "at": text.next}})
        return (await frames(client, text, lambda text: text.status == "complete")).text

    watchers = [asyncio.create_task(watch(seed)) for seed in range(20)]
    number = 0
    while not all(watcher.done() for watcher in watchers) and number < rounds * 5:
        piece = rng.choice(pieces)
        assert (await stream.append(piece.encode(), **stamp(number))).status == 200
        said += piece
        number += 1
        await asyncio.sleep(0.001)
    await stream.close(**stamp(number))
    for watcher in watchers:
        assert await watcher == said
    print(f"{joins} joins")
