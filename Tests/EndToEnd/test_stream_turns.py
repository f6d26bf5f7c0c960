"""One name for all turns of a conversation: each is a stream of its own, and nothing of one is ever taken for another's."""

import asyncio
import contextlib
import json
import os
import random

import pytest

from support.deadline import PATIENCE, eventually
from support.events import Broken, EventReader
from support.http import HTTPConnection
from support.hub import Hub
from support.streams import Stream, Upload, bearer, stamp
from support.tokens import token
from support.wsclient import Client

pytestmark = pytest.mark.anyio

KILLS = int(os.environ.get("KILLS", "3"))
CONVERSATIONS = int(os.environ.get("CONVERSATIONS", "30"))
TURNS = 5


@pytest.fixture(scope="module")
def turns(cluster):
    hub = Hub(cluster.create_database("turns"), ROOST_STREAMS_ROUTES="/reply=reply/{conversation};turns", ROOST_LOOPS="2")
    try:
        hub.run("migrate")
        yield hub.start()
    finally:
        hub.remove()


@pytest.fixture
async def http(turns):
    async with await HTTPConnection.open(turns.port) as connection:
        yield connection


async def open_turn(http, name, content_type="application/json", **headers):
    return await Stream(http, name).create(content_type, stream_generation="next", **headers)


def words(turn, count=4):
    return [{"turn": turn, "n": n} for n in range(count)]


async def messages(events):
    got = []
    while (event := await events.next()) is not None:
        got.append(json.loads(event.data))
    return got


async def test_a_fresh_reader_of_an_ended_turn_waits_for_the_next(turns, http, name):
    """The table's first line: a GET for the second question is not answered by the first turn's reply."""
    stream = Stream(http, f"reply/{name}")
    first = await open_turn(http, stream.name)
    assert first.status == 201 and first.headers["stream-generation"]
    assert (await open_turn(http, stream.name)).headers["stream-generation"] == first.headers["stream-generation"]
    await stream.append(json.dumps(words(1)).encode(), "application/json", stream_closed="true")
    path = f"/reply?conversation={name}"
    async with await EventReader.open(turns.port, path, **bearer()) as events:
        waiting = asyncio.create_task(messages(events))
        second = await open_turn(http, stream.name)
        assert second.status == 201 and second.headers["stream-generation"] != first.headers["stream-generation"]
        await stream.append(json.dumps(words(2)).encode(), "application/json", stream_closed="true")
        assert await asyncio.wait_for(waiting, PATIENCE) == words(2)


async def test_whoever_was_reading_a_turn_is_never_shown_another(turns, http, name):
    stream, path = Stream(http, f"reply/{name}"), f"/reply?conversation={name}"
    await open_turn(http, stream.name)
    await stream.append(json.dumps(words(1)).encode(), "application/json")
    async with await EventReader.open(turns.port, path, **bearer()) as events:
        await events.next()
        cut = events.id
    await stream.close()
    async with await EventReader.open(turns.port, path, last_event_id=cut, **bearer()) as events:
        assert await messages(events) == words(1)[1:], "the rest of its own"
    await open_turn(http, stream.name)
    async with await EventReader.open(turns.port, path, last_event_id=cut, **bearer()) as events:
        assert events.status == 204


async def test_a_reader_that_names_what_it_knows_is_shown_only_another(turns, http, name):
    stream = Stream(http, f"reply/{name}")
    first = (await open_turn(http, stream.name)).headers["stream-generation"]
    await stream.append(json.dumps(words(1)).encode(), "application/json")
    async with await EventReader.open(turns.port, f"/reply?conversation={name}&after={first}", **bearer()) as events:
        waiting = asyncio.create_task(messages(events))
        await stream.close()
        await open_turn(http, stream.name)
        await stream.append(json.dumps(words(2)).encode(), "application/json", stream_closed="true")
        assert await asyncio.wait_for(waiting, PATIENCE) == words(2)
    refused = await http.request("GET", f"/reply?conversation={name}&after=x", None, **bearer())
    assert refused.status == 400 and "Stream-Generation" in refused.json["error"]


async def test_what_is_late_for_a_turn_is_not_done_to_the_next(turns, http, name):
    stream = Stream(http, f"reply/{name}")
    first = (await open_turn(http, stream.name)).headers["stream-generation"]
    await stream.append(b"[1]", "application/json", **stamp(0))
    page = await stream.read()
    await stream.close()
    second = (await open_turn(http, stream.name)).headers["stream-generation"]
    late = await stream.append(b"[1]", "application/json", stream_generation=first, **stamp(0))
    assert late.status == 409 and late.headers["stream-generation"] == second
    assert (await stream.cancel(stream_generation=first)).status == 409
    assert (await stream.delete(stream_generation=first)).status == 409
    assert (await stream.append(b"[1]", "application/json", stream_generation="x")).status == 400
    assert (await stream.read()).body == b"[]"
    old = await stream.read(f"?offset={page.headers['stream-next-offset']}")
    assert old.status == 410 and old.headers["stream-generation"] == second
    assert (await stream.read("", if_none_match=page.headers["etag"])).status == 200, "a cache knows the generation"
    await stream.append(b"[2]", "application/json", stream_generation=second)
    assert (await stream.read()).body == b"[2]"


async def test_a_long_request_writes_the_turn_that_it_began_with(turns, http, name):
    stream = Stream(http, f"reply/{name}")
    await open_turn(http, stream.name, "text/plain")
    async with await HTTPConnection.open(turns.port) as connection:
        upload = Upload(connection, stream)
        upload.write(b"one")

        async def is_written():
            return (await stream.read()).body == b"one"
        await eventually(is_written)
        await stream.cancel()
        await open_turn(http, stream.name, "text/plain")
        upload.write(b"late")
        assert (await upload.answer()).status == 409
    assert (await stream.read()).body == b""


async def test_conversations_with_late_readers_drops_and_cancels(turns):
    """No byte of another turn, and nobody is stuck."""
    rng = random.Random(CONVERSATIONS)
    gate = asyncio.Semaphore(50)
    stuck, wrong, read = [], [], 0

    async def follow(conversation, turn, known, seed):
        """As an application that asks its question, and reads until the reply has ended, however often it loses its connection."""
        nonlocal read
        rng, last, got = random.Random(seed), None, []
        path = f"/reply?conversation={conversation}&after={known}"
        while True:
            headers = {**bearer(), **({"last_event_id": last} if last else {})}
            async with await EventReader.open(turns.port, path, **headers) as events:
                if events.status == 204:
                    break
                drops = rng.random() < 0.4
                while (event := await events.next()) is not None:
                    got.append(json.loads(event.data))
                    last = events.id
                    if drops and rng.random() < 0.3:
                        break
                else:
                    break
        wrong.extend(message for message in got if message["turn"] != turn)
        if [message["n"] for message in got] != list(range(len(got))):
            wrong.append(got)
        read += len(got)

    async def converse(number):
        async with gate, await HTTPConnection.open(turns.port) as http:
            conversation = f"c{number}"
            stream, known = Stream(http, f"reply/{conversation}"), "0"
            for turn in range(TURNS):
                readers = [asyncio.create_task(follow(conversation, turn, known, rng.random())) for _ in range(2)]
                made = await open_turn(http, stream.name)
                assert made.status == 201, made
                generation = made.headers["stream-generation"]
                said, ends = words(turn, rng.randint(1, 5)), rng.choice(["close", "close", "cancel"])
                for word in said[:-1]:
                    await stream.append(json.dumps([word]).encode(), "application/json", stream_generation=generation)
                readers.append(asyncio.create_task(follow(conversation, turn, known, rng.random())))
                if ends == "cancel":
                    assert (await stream.cancel(stream_generation=generation)).status == 200
                else:
                    await stream.append(
                        json.dumps([said[-1]]).encode(), "application/json", stream_closed="true", stream_generation=generation)
                done, waiting = await asyncio.wait(readers, timeout=PATIENCE)
                stuck.extend(waiting)
                for reader in done:
                    reader.result()
                known = generation
    await asyncio.gather(*map(converse, range(CONVERSATIONS)))
    assert not stuck and not wrong and read > 0, (len(stuck), wrong[:3])
    print(f"{CONVERSATIONS} conversations, {TURNS} turns each: {read} messages read")


async def test_kills_among_the_turns(own_hub, cluster):
    """Whatever the hub had acknowledged is read, each turn has its row, and nobody is shown another turn."""
    own_hub.environment |= {
        "ROOST_STREAMS_ROUTES": "/reply=reply/{conversation};turns",
        "ROOST_STREAMS_ON_CLOSE": "insert into reply (name, body) values ($1, $2::jsonb) returning id"}
    with cluster.connect(own_hub.database) as sql:
        sql.execute("create table reply (id serial primary key, name text, body jsonb); grant all on reply, reply_id_seq to public")
        own_hub.start()
        over, turns = asyncio.Event(), dict.fromkeys(range(8), 0)

        async def ask(http, method, path, body, statuses, **headers):
            """Again and again until the hub answers, as numbered requests may be."""
            while True:
                try:
                    answer = await http.request(method, path, body, content_type="application/json", **bearer(), **headers)
                    if answer.status != 503:
                        assert answer.status in statuses, answer
                        return answer
                except (OSError, asyncio.IncompleteReadError):
                    with contextlib.suppress(OSError):
                        await http.open_again()
                await asyncio.sleep(0.02)

        async def follow(conversation, known, turn):
            path, last, got = f"/reply?conversation={conversation}&after={known}", None, []
            while True:
                try:
                    headers = {**bearer(), **({"last_event_id": last} if last else {})}
                    async with await EventReader.open(own_hub.port, path, **headers) as events:
                        if events.status == 204:
                            return got
                        while (event := await events.next()) is not None:
                            got.append(json.loads(event.data))
                            last = events.id
                        if got and got[-1]["last"]:
                            return got
                except (OSError, Broken, asyncio.IncompleteReadError):
                    await asyncio.sleep(0.02)

        async def converse(number):
            known, name = "0", f"/streams/reply/k{number}"
            http = await HTTPConnection.open(own_hub.port)
            while not over.is_set():
                turn = turns[number]
                reader = asyncio.create_task(follow(f"k{number}", known, turn))
                made = await ask(http, "PUT", name, b"", (200, 201), stream_generation="next")
                generation = made.headers["stream-generation"]
                for n in range(4):
                    message = json.dumps([{"turn": turn, "n": n, "last": n == 3}]).encode()
                    ends = {"stream_closed": "true"} if n == 3 else {}
                    await ask(http, "POST", name, message, (200, 204), stream_generation=generation, **stamp(n), **ends)
                got = await asyncio.wait_for(reader, 60)
                assert [(m["turn"], m["n"]) for m in got] == [(turn, n) for n in range(4)], got
                known, turns[number] = generation, turn + 1
            http.writer.close()

        async def kill():
            for _ in range(KILLS):
                seen = sum(turns.values())
                await eventually(lambda: sum(turns.values()) > seen + 8, 60)
                await asyncio.to_thread(own_hub.kill)
                await asyncio.to_thread(own_hub.start)
            over.set()
        await asyncio.gather(kill(), *map(converse, turns))
        for number, count in turns.items():
            rows = sql.execute("select body from reply where name = %s order by id", [f"reply/k{number}"]).fetchall()
            assert [{m["turn"] for m in body} for (body,) in rows] == [{turn} for turn in range(count)]
            assert all(len(body) == 4 for (body,) in rows)
    print(f"{KILLS} kills among {sum(turns.values())} turns")


async def test_a_member_of_its_channel_follows_turn_by_turn(turns, http, name):
    stream = Stream(http, f"reply/{name}")
    member = await Client.connect(turns.port, apikey=token("service_role"))
    topic = f"realtime:stream:reply/{name}"
    ref, _ = await member.join(topic, config={"private": True})
    for turn in (b"one", b"two"):
        await open_turn(http, stream.name, "text/plain")
        await stream.append(turn, stream_closed="true")
        text, status = "", None
        while status != "complete":
            payload = json.loads((await member.next("broadcast", topic)).payload.payload)
            if payload["at"] == 0:
                text = ""
            text, status = text + payload.get("delta", ""), payload.get("status")
        assert text == turn.decode()
    await member.close()
