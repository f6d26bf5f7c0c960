"""Streams as plain events, and at paths of the application's own (`streams.routes`)."""

import asyncio
import json

import pytest

from support.events import EventReader
from support.hub import Hub
from support.http import HTTPConnection
from support.streams import Stream, bearer
from support.tokens import token

pytestmark = pytest.mark.anyio


@pytest.fixture
async def routed(own_hub):
    own_hub.environment["ROOST_STREAMS_ROUTES"] = (
        "/reply=reply/{conversation},/api/voice/open-stream=voice/{dialogueId};event=type")
    own_hub.start()
    async with await HTTPConnection.open(own_hub.port) as http:
        yield own_hub, http


async def test_a_reply_as_an_application_has_it(routed):
    """Whoever is there first waits; whoever is late, or comes back, misses nothing; at the end nobody is to come back."""
    hub, http = routed
    path = "/reply?conversation=7&apikey=" + token("service_role")
    async with await EventReader.open(hub.port, path) as first:
        assert first.status == 200 and first.headers["content-type"] == "text/event-stream"
        stream = Stream(http, "reply/7")
        await stream.create("application/json")
        words = [{"text": "Hel", "isDone": False}, {"text": "lo", "isDone": False}, {"text": "", "isDone": True}]
        await stream.append(json.dumps(words[0]).encode(), "application/json")
        event = await first.next()
        assert event.name == "message" and json.loads(event.data) == words[0]
        async with await EventReader.open(hub.port, path) as late:
            assert json.loads((await late.next()).data) == words[0]
            cut = late.id
        await stream.append(json.dumps(words[1:]).encode(), "application/json", stream_closed="true")
        assert [json.loads((await first.next()).data) for _ in range(2)] == words[1:]
        assert await first.next() is None
        end = first.id
    async with await EventReader.open(hub.port, path, last_event_id=cut) as again:
        assert [json.loads((await again.next()).data) for _ in range(2)] == words[1:] and await again.next() is None
    async with await EventReader.open(hub.port, path, last_event_id=end) as over:
        assert over.status == 204


async def test_events_named_by_a_member(routed):
    hub, http = routed
    stream = Stream(http, "voice/d1")
    await stream.create("application/json")
    messages = [
        {"type": "textChunk", "text": "Hi"}, {"type": "audioChunk", "audio": "AAEC", "chunkIndex": 0, "isFinal": True},
        {"type": "done"}, {"type": "two\nlines"}, {"none": 1}]
    await stream.append(json.dumps(messages).encode(), "application/json")
    async with await EventReader.open(
            hub.port, "/api/voice/open-stream?dialogueId=d1", **bearer()) as events:
        got = [await events.next() for _ in messages]
        assert [event.name for event in got] == ["textChunk", "audioChunk", "done", "message", "message"]
        assert [json.loads(event.data) for event in got] == messages
        # Another of the name is another: nothing of it is left out.
        last = events.id
        await stream.delete()
        assert await events.next() is None
    await stream.create("application/json")
    await stream.append(b'{"type": "new"}', "application/json")
    async with await EventReader.open(
            hub.port, "/api/voice/open-stream?dialogueId=d1", last_event_id=last, **bearer()) as events:
        assert (await events.next()).name == "new"


async def test_any_stream_as_plain_events(hub, stream):
    await stream.append("Grüße,\r\nworld".encode())
    async with await EventReader.open(hub.port, f"{stream.path}?live=events", **bearer()) as events:
        assert (await events.next()).data.split() == ["Grüße,", "world"]
        await stream.append(b"!", stream_closed="true")
        assert (await events.next()).data == "!" and await events.next() is None


async def test_what_is_wrong(routed):
    hub, http = routed
    for path, status in [
            ("/reply", 400), ("/reply?conversation=", 400), ("/reply?conversation=a/b", 400),
            ("/reply?conversation=..", 400)]:
        answer = await http.request("GET", path, None, **bearer())
        assert answer.status == status, (path, answer)
    assert (await http.request("POST", "/reply?conversation=1", b"", **bearer())).status == 405
    assert (await http.request("GET", "/reply?conversation=1", None)).status == 401
    answer = await http.request("GET", "/reply?conversation=1", None, **bearer("authenticated", sub="nobody"))
    assert answer.status == 403


async def test_a_ticket_reads_a_stream_and_writes_none(routed):
    hub, http = routed

    async def ticket():
        answer = await http.request("POST", "/api/sse/ticket", b"", **bearer())
        return json.loads(answer.body)["ticket"]
    async with await EventReader.open(hub.port, f"/reply?conversation=1&ticket={await ticket()}") as events:
        assert events.status == 200
    answer = await http.request("PUT", f"/streams/reply/1?ticket={await ticket()}", b"", content_type="text/plain")
    assert answer.status == 401


async def test_a_route_that_is_none_ends_the_start(own_hub):
    result = own_hub.run("serve", check=False, ROOST_STREAMS_ROUTES="reply=x")
    assert result.returncode == 78 and "streams.routes" in result.stderr and "/reply=reply/" in result.stderr
