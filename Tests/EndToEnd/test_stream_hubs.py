"""Streams that several hubs have together: any hub takes and shows any of them, and none that dies costs a byte."""

import asyncio
import os
import random
import signal
import time

import pytest
from durable_streams import DurableStream, stream as read_stream

from support.deadline import PATIENCE, eventually, until
from support.events import EventReader
from support.freezing import freeze
from support.http import HTTPConnection
from support.redis import Redis
from support.stream_hubs import WATCHERS, PollWatcher, Producer
from support.streams import Stream, Upload, bearer, byte_count, new_name, offset, stamp
from test_cluster import Hubs
from test_stream_rows import SCHEMA, STATEMENT

pytestmark = pytest.mark.anyio


def shares(hub):
    try:
        return hub.metric("roost_stream_sharing") == 1
    except (OSError, AssertionError):
        return False


def wait_until_shared(hubs, within=PATIENCE):
    for hub in hubs:
        until(lambda: shares(hub), within, lambda: f"streams are shared; {hub.log[-2000:]}")


@pytest.fixture(scope="module")
def redis():
    with Redis() as redis:
        yield redis


@pytest.fixture(scope="module")
def shared_hubs(cluster, redis):
    hubs = Hubs(cluster.create_database("streamhubs"), redis)
    try:
        yield hubs.start()
    finally:
        hubs.remove()


@pytest.fixture
def hubs(shared_hubs):
    wait_until_shared(shared_hubs.all)
    yield shared_hubs.all
    for hub in shared_hubs.all:
        if hub.process.poll() is not None:
            hub.start()


@pytest.fixture
async def ways(hubs):
    """A connection with each hub."""
    ways = [await HTTPConnection.open(hub.port) for hub in hubs]
    yield ways
    for way in ways:
        way.writer.close()


def on(ways, name=None):
    """One stream, by each hub."""
    name = name or new_name()
    return [Stream(way, name) for way in ways]


async def test_what_one_hub_acknowledged_every_hub_shows_at_once(ways):
    streams = on(ways)
    assert (await streams[0].create()).status == 201
    assert (await streams[1].create()).status == 200
    said = b""
    for number in range(60):
        said += (body := f"{number} Grüße\n".encode())
        assert (await random.choice(streams).append(body)).status == 204
        page = await random.choice(streams).read()
        assert page.body == said and page.headers["stream-up-to-date"] == "true"
    assert (await streams[2].append(b"", stream_closed="true")).status == 204
    assert (await streams[0].append(b"more")).status == 409
    assert (await streams[1].head()).headers["stream-closed"] == "true"
    assert (await streams[1].delete()).status == 204
    for stream in streams:
        assert (await stream.read()).status == 404


async def test_two_hubs_that_write_one_stream_at_once_lose_nothing(hubs, ways):
    def conflicts():
        return sum(hub.metric("roost_stream_conflicts_total") for hub in hubs)
    before = conflicts()
    # On a busy machine the hubs may take turns for a while.
    for _ in range(20):
        await write_by_all(hubs, ways)
        if conflicts() > before:
            break
    assert conflicts() > before


async def write_by_all(hubs, ways):
    name = new_name()
    await Stream(ways[0], name).create()

    async def write(number):
        way = await HTTPConnection.open(hubs[number % 3].port)
        for seq in range(40):
            answer = await Stream(way, name).append(f"{number}:{seq}\n".encode(), **stamp(seq, producer=f"w{number}"))
            assert answer.status == 200, answer.body
        way.writer.close()

    await asyncio.gather(*[write(number) for number in range(6)])
    bodies = [(await stream.read()).body for stream in on(ways, name)]
    assert bodies[0] == bodies[1] == bodies[2]
    lines = bodies[0].decode().splitlines()
    for number in range(6):
        assert [line for line in lines if line.startswith(f"{number}:")] == [f"{number}:{seq}" for seq in range(40)]


async def test_a_producer_is_known_at_every_hub(ways):
    streams = on(ways)
    await streams[0].create()
    assert (await streams[0].append(b"one,", **stamp(0))).status == 200
    assert (await streams[1].append(b"one,", **stamp(0))).status == 204
    assert (await streams[1].append(b"two,", **stamp(1))).status == 200
    gap = await streams[2].append(b"four", **stamp(3))
    assert gap.status == 409 and gap.headers["producer-expected-seq"] == "2"
    assert (await streams[2].append(b"three", **stamp(0, epoch=1))).status == 200
    assert (await streams[0].append(b"from the dead", **stamp(2))).status == 403
    assert (await streams[0].read()).body == b"one,two,three"


@pytest.mark.parametrize("kind", WATCHERS)
async def test_watchers_of_other_hubs_see_every_byte(hubs, ways, kind):
    name = new_name()
    await Stream(ways[0], name).create()
    watchers = [kind(hubs, name, at) for at in range(3)]
    watching = [asyncio.create_task(watcher.run()) for watcher in watchers]
    producer = Producer(hubs[:1] * 2, name)
    await producer.run(lambda: producer.appends == 100)
    async with asyncio.timeout(30):
        for got in await asyncio.gather(*watching):
            assert got == producer.said
    assert {watcher.status for watcher in watchers} == {"complete"} and not any(w.moves for w in watchers)


async def test_a_cancel_by_another_hub_is_a_fence(hubs, ways):
    """No byte behind it at any watcher of any hub, however busily others append."""
    for _ in range(3):
        streams = on(ways)
        name = streams[0].name
        await streams[0].create()
        watchers = [kind(hubs, name, at) for kind in WATCHERS for at in range(3)]
        watching = [asyncio.create_task(watcher.run()) for watcher in watchers]
        refused = []

        async def write(number):
            async with await HTTPConnection.open(hubs[number].port) as way:
                while True:
                    answer = await Stream(way, name).append(b"word ")
                    if answer.status != 204:
                        return refused.append(answer)

        writing = [asyncio.create_task(write(number)) for number in range(3)]
        await eventually(lambda: all(len(watcher.got) > 50 for watcher in watchers), what="watchers read")
        cancelled = await streams[1].cancel()
        async with asyncio.timeout(30):
            await asyncio.gather(*writing)
            got = set(await asyncio.gather(*watching))
        end = byte_count(cancelled.headers["stream-next-offset"])
        assert [len(text) for text in got] == [end] and {watcher.status for watcher in watchers} == {"cancelled"}
        for answer in refused:
            assert answer.status == 409 and answer.headers["stream-cancelled"] == "true"
            assert answer.headers["stream-next-offset"] == offset(end)


async def test_a_long_request_is_told_of_a_cancel_at_another_hub_and_watchers_of_its_break(hubs, ways):
    streams = on(ways)
    await streams[0].create()
    upload = Upload(await HTTPConnection.open(hubs[0].port), streams[0])
    upload.write(b"Hello")
    await eventually(lambda: _has(streams[1], b"Hello"), what="the piece")
    async with await EventReader.open(hubs[2].port, f"{streams[2].path}?offset=now&live=sse", **bearer()) as events:
        assert (await events.json())[1]["upToDate"]
        upload.connection.writer.transport.abort()
        name, control = await events.json()
        assert control["status"] == "stalled"
    upload = Upload(await HTTPConnection.open(hubs[0].port), streams[0])
    upload.write(b", world")
    await eventually(lambda: _has(streams[1], b"Hello, world"), what="the piece")
    assert (await streams[1].cancel()).headers["stream-next-offset"] == offset(12)
    answer = await upload.answer()
    assert answer.status == 409 and answer.headers["stream-cancelled"] == "true"


async def _has(stream, body):
    return (await stream.read()).body == body


async def test_the_python_client_at_another_hub(hubs, ways):
    name = new_name()
    await Stream(ways[0], name).create(body=b"Hello")
    url = f"http://127.0.0.1:{hubs[1].port}/streams/{name}"

    def use():
        with DurableStream.connect(url, headers=bearer()) as handle:
            handle.append(", world")
        with read_stream(url, headers=bearer(), live=False) as answer:
            return answer.read_text()

    assert await asyncio.to_thread(use) == "Hello, world"
    assert (await Stream(ways[2], name).read()).body == b"Hello, world"


async def test_a_hub_that_slept_does_not_write_by_what_it_knew(hubs, ways):
    streams = on(ways)
    await streams[0].create(body=b"so far")
    freeze(hubs[0].process.pid)
    sending = asyncio.create_task(streams[0].append(b" and more"))
    try:
        assert (await streams[1].cancel()).headers["stream-next-offset"] == offset(6)
    finally:
        hubs[0].process.send_signal(signal.SIGCONT)
    answer = await sending
    # Its link may be taken for dead first; then it knows nothing, and says so.
    assert answer.status in (409, 503)
    for stream in streams[1:]:
        assert (await stream.read()).body == b"so far"


async def test_kills_of_hubs_cost_no_byte_and_repeat_none(shared_hubs, hubs, ways):
    """ROOST_STREAM_KILLS makes it longer."""
    kills = int(os.environ.get("ROOST_STREAM_KILLS", "4"))
    rng = random.Random(7)
    producers = []
    for number in range(3):
        name = new_name()
        await Stream(ways[number], name).create(stream_lease="0")
        producers.append(Producer(hubs, name, number, pause=0.01 if kills > 20 else 0.002))
    done = False
    watchers = [(producer, kind(hubs, producer.name, at)) for producer in producers for kind in WATCHERS for at in range(2)]
    writing = [asyncio.create_task(producer.run(lambda: done)) for producer in producers]
    watching = [asyncio.create_task(watcher.run()) for _, watcher in watchers]

    async def grow(by):
        aims = [producer.appends + by for producer in producers]
        await eventually(
            lambda: any(task.done() for task in writing) or all(p.appends >= aim for p, aim in zip(producers, aims)), 30, "appends")

    await grow(20)
    for number in range(kills):
        hub = rng.choice(producers).hub
        await asyncio.to_thread(until, lambda: hub.process.poll() is None and shares(hub), 20, "the hub is there")
        others = [other for other in hubs if other is not hub]
        await asyncio.to_thread(wait_until_shared, others[:1])
        hub.kill()
        await grow(10)
        await asyncio.to_thread(hub.start, False)
        if number % 3 == 2 or kills < 10:
            await asyncio.to_thread(wait_until_shared, [hub])
        if sum(len(p.said) for p in producers) > 2_000_000 or any(len(p.said) > 900_000 for p in producers):
            break
    await asyncio.to_thread(wait_until_shared, hubs)
    done = True
    async with asyncio.timeout(60):
        await asyncio.gather(*writing)
        got = await asyncio.gather(*watching)
    for (producer, watcher), text in zip(watchers, got):
        assert text == producer.said, f"{type(watcher).__name__}: {len(text)} of {len(producer.said)} bytes"
        assert watcher.status == "complete"
    print(f"{number + 1} kills, {sum(p.appends for p in producers)} appends, {sum(len(p.said) for p in producers)} bytes, "
          f"{sum(p.repeated for p in producers)} repeated, {sum(p.refused for p in producers)} refused, "
          f"{sum(w.moves for _, w in watchers)} moves of {len(watchers)} watchers")
    assert sum(p.moves for p in producers) > 0


async def test_a_redis_that_lost_all_gets_the_streams_back(shared_hubs, redis, hubs, ways):
    """Hubs take nothing while it is away, and none of what they acknowledged is gone when it is back."""
    name = new_name()
    streams = on(ways, name)
    await streams[0].create(stream_lease="0")
    watchers = [kind(hubs, name, at) for at, kind in enumerate(WATCHERS)]
    watching = [asyncio.create_task(watcher.run()) for watcher in watchers]
    done = False
    producer = Producer(hubs, name)
    writing = asyncio.create_task(producer.run(lambda: done))
    await eventually(lambda: producer.appends > 50, what="appends")
    redis.kill()
    refused = await streams[1].append(b"lost")
    assert refused.status == 503 and refused.headers["retry-after"] == "1"
    before = producer.appends
    await eventually(lambda: producer.refused > 10, what="refusals")
    assert producer.appends - before <= 1
    redis.start()
    await eventually(lambda: producer.appends > before + 50, 30, what="appends")
    done = True
    async with asyncio.timeout(30):
        await writing
        for got in await asyncio.gather(*watching):
            assert got == producer.said
    await eventually(lambda: sum(hub.metric("roost_streams_returned_total") for hub in hubs) > 0, what="streams that were given back")
    assert all(hub.metric("roost_streams_forked_total") == 0 for hub in hubs)


@pytest.mark.skipif("ROOST_STREAM_LATENCY" not in os.environ, reason="measures")
async def test_how_long_a_byte_takes_from_hub_to_hub(hubs, ways):
    for at in (0, 1):
        name = new_name()
        await Stream(ways[0], name).create()
        watcher = PollWatcher(hubs, name, at)
        watching = asyncio.create_task(watcher.run())
        took, answered = [], []
        for number in range(1000):
            body = f"{number}\n".encode()
            have = len(watcher.got)
            began = time.perf_counter()
            await Stream(ways[0], name).append(body)
            answered.append(time.perf_counter() - began)
            while len(watcher.got) == have:
                await asyncio.sleep(0)
            took.append(time.perf_counter() - began)
            await asyncio.sleep(0.002)
        await Stream(ways[0], name).close()
        await watching
        for what, times in [("answered", sorted(answered)), ("seen", sorted(took))]:
            print(f"watcher at hub {at}, {what}: p50 {times[500] * 1000:.2f} ms, p99 {times[990] * 1000:.2f} ms")


async def test_a_hub_that_dies_over_closes_with_rows_leaves_each_to_another_hub_once(cluster):
    """Wherever the kill found a close: another hub finds out whether its row is there, and closing again makes no second one."""
    count = int(os.environ.get("ROOST_STREAM_CLOSES", "24"))
    chance = random.Random(9)
    with Redis() as redis:
        hubs = Hubs(cluster.create_database("closes"), redis, count=2, ROOST_STREAMS_ON_CLOSE=STATEMENT)
        try:
            with cluster.connect("closes") as sql:
                sql.execute(SCHEMA)
                sql.execute("""
                    create function dawdle() returns trigger language plpgsql as $$
                        begin perform pg_sleep(0.02); return new; end $$;
                    create trigger dawdle before insert on reply for each row execute function dawdle();""")
                hubs.start()
                wait_until_shared(hubs.all)
                names = [f"reply/{number}" for number in range(count)]
                dying = [await HTTPConnection.open(hubs.all[0].port) for _ in names]
                for way, name in zip(dying, names):
                    await Stream(way, name).create()
                    await Stream(way, name).append(b"one ", **stamp(0))

                is_dying = asyncio.Event()

                async def close(number, way, name):
                    if number < count * 3 // 4:
                        await asyncio.sleep(chance.uniform(0, 0.5))
                    else:
                        # However busy the machine is, some are never begun there.
                        await is_dying.wait()
                    return await Stream(way, name).append(b"two", stream_closed="true", **stamp(1))

                closing = [asyncio.create_task(close(number, way, name)) for number, (way, name) in enumerate(zip(dying, names))]
                await eventually(lambda: sum(task.done() for task in closing) > count // 4, what="closes are under way")
                is_dying.set()
                hubs.all[0].kill()
                answers = await asyncio.gather(*closing, return_exceptions=True)
                told = {name for name, answer in zip(names, answers) if not isinstance(answer, BaseException) and answer.status < 300}
                before = {name for name, in sql.execute("select name from reply")}
                assert told <= before and len(before) < count, "who was told has a row, and the kill came in the middle"

                async def finish(name):
                    """As a producer does after a network error: the same request again, at another hub."""
                    async with await HTTPConnection.open(hubs.all[1].port) as way:
                        async def is_closed():
                            # It waits until this hub has found out, which is ten seconds after the other one began.
                            answer = await Stream(way, name).append(b"two", within=30, stream_closed="true", **stamp(1))
                            assert answer.status in (200, 204, 503), answer
                            return answer.status < 300
                        await eventually(is_closed, 40, what=f"{name} is closed", every=0.2)
                        assert (await Stream(way, name).read()).body == b"one two"

                await asyncio.gather(*[finish(name) for name in names])
                assert sorted(sql.execute("select name, body from reply")) == sorted((name, "one two") for name in names)
                print(f"{len(told)} closes were answered, {len(before) - len(told)} committed and not answered, "
                      f"{count - len(before)} left to the other hub")
        finally:
            hubs.remove()
