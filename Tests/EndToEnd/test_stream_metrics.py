"""What /metrics says of streams, of who reads them, and of closes that are committed with a row."""

import asyncio

import pytest

from support.deadline import eventually
from support.events import EventReader
from support.http import HTTPConnection
from support.metrics import came_to, scrape
from support.ops import connect_operator, state_where, watch
from support.streams import Stream, Upload, bearer, stamp
from support.subscriptions import Subscription, channel
from support.tokens import token
from support.wsclient import Client

pytestmark = pytest.mark.anyio


@pytest.fixture
def hub(own_hub):
    own_hub.environment |= {"ROOST_LOOPS": "2", "ROOST_STREAMS_BYTES": "4096", "ROOST_STREAMS_COUNT": "3"}
    return own_hub.start()


@pytest.fixture
async def http(hub):
    async with await HTTPConnection.open(hub.port) as connection:
        yield connection


def refused(reason):
    return f'roost_stream_refused_total{{reason="{reason}"}}'


async def test_what_becomes_of_streams_is_counted(hub, http):
    values = scrape(hub)
    # What never happened is 0 and not missing.
    for reason in ("not_found", "ended", "content", "fenced", "order", "too_large", "full", "share", "disk", "row", "unavailable", "forbidden"):
        assert values[refused(reason)] == 0, reason
    stream = Stream(http)
    await stream.create(body=b"12345")
    for number in range(3):
        await stream.append(b"678", **stamp(number))
    assert (await stream.append(b"678", **stamp(2))).status == 204, "it is there already"
    await came_to(hub, roost_streams=1, roost_streams_open=1, roost_stream_bytes=14, roost_stream_appends_total=3,
                  roost_stream_appended_bytes_total=14, roost_streams_evicted_total=0, roost_streams_stalled=0)
    assert (await stream.append(b"x" * 5000)).status == 413
    assert (await stream.append(b"x", **stamp(0, epoch=4))).status == 200
    assert (await stream.append(b"x", **stamp(0, epoch=3))).status == 403
    assert (await stream.append(b"x", **stamp(7, epoch=4))).status == 409
    assert (await Stream(http, "reply/nowhere").append(b"x")).status == 404
    await stream.cancel()
    assert (await stream.append(b"x")).status == 409
    ended = Stream(http)
    await ended.create(body=b"x", stream_closed="true")
    await came_to(hub, **{refused(reason): 1 for reason in ("too_large", "fenced", "order", "not_found", "ended")},
                  **{'roost_streams_ended_total{reason="cancelled"}': 1, 'roost_streams_ended_total{reason="complete"}': 1},
                  roost_streams=2, roost_streams_open=0)
    # There may be three: those that ended go first, and then there is no room.
    for _ in range(3):
        assert (await Stream(http).create()).status == 201
    assert (await Stream(http).create()).status == 503
    await came_to(hub, roost_streams=3, roost_streams_evicted_total=2, **{refused("full"): 1})


async def test_who_reads_and_who_writes_is_counted(hub, http):
    stream = Stream(http)
    await stream.create()
    member = await Client.connect(hub.port, apikey=token("service_role"))
    await member.join(f"realtime:stream:{stream.name}", config={"private": True})
    watchers = 'roost_stream_watchers{{transport="{}"}}'
    async with (
            await EventReader.open(hub.port, f"{stream.path}?offset=-1&live=sse", **bearer()),
            await EventReader.open(hub.port, f"{stream.path}?live=events", **bearer()),
            await Subscription.to(hub.port, channel(f"stream:{stream.name}", private=True), bearer=token("service_role")),
            await HTTPConnection.open(hub.port) as polling, await HTTPConnection.open(hub.port) as writing):
        poll = asyncio.create_task(Stream(polling, stream.name).read("?offset=now&live=long-poll", within=30))
        upload = Upload(writing, stream)
        await came_to(hub, roost_event_subscriptions=1, roost_stream_producers=1, roost_connections=4, **{
            watchers.format("websocket"): 1, watchers.format("sse"): 3, watchers.format("long_poll"): 1})
        upload.write(b"x")
        assert (await poll).body == b"x"
        writing.writer.transport.abort()
        await came_to(hub, roost_streams_stalled=1, roost_stream_producers=0, **{watchers.format("long_poll"): 0})
    await member.close()
    await came_to(hub, roost_event_subscriptions=0, roost_connections=0, **{
        watchers.format("websocket"): 0, watchers.format("sse"): 0})


async def test_who_may_not_is_counted(hub, http):
    stranger = bearer("authenticated", sub="nobody")
    stream = Stream(http, **stranger)

    async def denied():
        return (await stream.create()).status == 403
    # Until the policies can be asked, the answer is another.
    await eventually(denied, what="the policies' word")
    await came_to(hub, **{refused("forbidden"): 1})
    assert (await stream.read()).status == 403
    async with await HTTPConnection.open(hub.port) as connection:
        upload = Upload(connection, stream, **stranger)
        assert (await upload.answer()).status == 403
    await came_to(hub, **{refused("forbidden"): 3})


async def test_a_disk_that_takes_nothing_is_counted(hub, http):
    import resource
    stream = Stream(http)
    await stream.create(body=b"kept")
    resource.prlimit(hub.process.pid, resource.RLIMIT_FSIZE, (1024, resource.RLIM_INFINITY))
    assert (await stream.append(b"x" * 2000)).status == 503
    resource.prlimit(hub.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    await came_to(hub, roost_stream_write_failures_total=1, roost_stream_appends_total=0, roost_stream_appended_bytes_total=4,
                  **{refused("disk"): 1})


async def test_closes_with_a_row_are_counted_and_shown(own_hub, cluster):
    own_hub.environment["ROOST_STREAMS_ON_CLOSE"] = "insert into reply (name, body) values ($1, $2) returning id"
    committed = 'roost_stream_commits_total{{result="{}"}}'
    with cluster.connect(own_hub.database) as sql:
        sql.execute("""
            create table reply (id serial primary key, name text, body text check (body <> 'forbidden'));
            grant insert, select on reply to service_role;
            grant usage on sequence reply_id_seq to service_role;""")
        own_hub.start()
        assert [scrape(own_hub)[committed.format(result)] for result in ("committed", "refused", "unknown")] == [0, 0, 0]
        operator = await connect_operator(own_hub)
        async with await HTTPConnection.open(own_hub.port) as http:
            stream = Stream(http)
            await stream.create()
            # While somebody has the table, the close waits, and the page says so.
            with cluster.connect(own_hub.database) as other:
                other.execute("begin; lock table reply in access exclusive mode")
                closing = asyncio.create_task(stream.append(b"Hello", stream_closed="true"))
                await watch(operator, f"ops:stream:{stream.name}")
                await state_where(operator, f"ops:stream:{stream.name}", lambda payload: payload["stream"]["state"] == "closing")
                other.execute("commit")
            assert (await closing).status == 204
            await state_where(operator, f"ops:stream:{stream.name}", lambda payload: payload["stream"]["state"] == "complete")
            wrong = Stream(http)
            await wrong.create()
            assert (await wrong.append(b"forbidden", stream_closed="true")).status == 422
        await came_to(own_hub, roost_stream_appends_total=1, **{
            committed.format("committed"): 1, committed.format("refused"): 1, refused("row"): 1,
            'roost_streams_ended_total{reason="complete"}': 1})
        values = scrape(own_hub)
        assert values["roost_stream_commit_seconds_count"] == 2 and 0 < values["roost_stream_commit_seconds_sum"] < 60
        await operator.close()
