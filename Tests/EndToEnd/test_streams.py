"""Streams over HTTP (Durable Streams): what the protocol says, on the wire of a real hub."""

import asyncio
import os

import pytest

from support.deadline import eventually
from support.http import HTTPConnection
from support.streams import Stream, bearer, byte_count, new_name, offset, stamp
from support.tokens import token

pytestmark = pytest.mark.anyio


@pytest.fixture
async def other(hub):
    async with await HTTPConnection.open(hub.port) as connection:
        yield connection


# Creating


async def test_a_stream_is_created_once(http):
    stream = Stream(http)
    made = await stream.create()
    assert made.status == 201
    assert made.headers["location"] == f"http://127.0.0.1/streams/{stream.name}"
    assert made.headers["content-type"] == "text/plain" and made.headers["stream-next-offset"] == offset(0)
    again = await stream.create("Text/Plain; charset=utf-8")
    assert again.status == 200 and "location" not in again.headers
    assert (await stream.create("application/json")).status == 409
    assert (await stream.create(stream_ttl="60")).status == 409
    assert (await stream.create(stream_closed="true")).status == 409


async def test_a_stream_may_be_created_with_its_content_and_its_end(http):
    stream = Stream(http)
    made = await stream.create(body="Grüße".encode(), stream_closed="true")
    assert made.status == 201 and made.headers["stream-next-offset"] == offset(7)
    assert made.headers["stream-closed"] == "true"
    page = await stream.read()
    assert page.body.decode() == "Grüße" and page.headers["stream-closed"] == "true"


@pytest.mark.parametrize("headers, status", [
    ({"stream_ttl": "60", "stream_expires_at": "2099-01-01T00:00:00Z"}, 400),
    ({"stream_ttl": "060"}, 400), ({"stream_ttl": "-1"}, 400), ({"stream_expires_at": "tomorrow"}, 400),
    ({"stream_forked_from": "/streams/a"}, 501), ({"stream_lease": "x"}, 400),
])
async def test_what_a_stream_cannot_be_made_with(http, headers, status):
    refused = await Stream(http).create(**headers)
    assert refused.status == status and refused.json["error"]


@pytest.mark.parametrize("path", ["/streams/", "/streams/a//b", "/streams/a%0Ab", "/streams/..%2Fa", "/streams/" + "x" * 201])
async def test_what_is_no_name(http, path):
    refused = await http.request("PUT", path, b"", **bearer())
    assert refused.status == 400 and "name" in refused.json["error"]


async def test_names_are_percent_decoded_and_both_roots_are_one(http):
    name = f"Grüße/{new_name()}"
    path = "/Gr%C3%BC%C3%9Fe/" + name.split("/", 1)[1]
    made = await http.request("PUT", "/realtime/v1/streams" + path, b"x", **bearer())
    assert made.headers["location"] == "http://127.0.0.1/realtime/v1/streams" + path
    assert (await http.request("GET", "/streams" + path, None, **bearer())).body == b"x"


# Appending


async def test_what_is_appended_is_read_from_any_offset(http):
    stream = Stream(http)
    await stream.create()
    for text in ["Hello", ", ", "world"]:
        answer = await stream.append(text.encode())
        assert answer.status == 204
    assert answer.headers["stream-next-offset"] == offset(12)
    page = await stream.read()
    assert page.status == 200 and page.body == b"Hello, world"
    assert page.headers["stream-up-to-date"] == "true" and "stream-closed" not in page.headers
    assert (await stream.read(f"?offset={offset(7)}")).body == b"world"
    assert (await stream.read("?offset=-1")).body == b"Hello, world"
    now = await stream.read("?offset=now")
    assert now.body == b"" and now.headers["stream-next-offset"] == offset(12)


async def test_closed_is_final(http):
    stream = Stream(http)
    await stream.create()
    closed = await stream.append(b"all", stream_closed="true")
    assert closed.status == 204 and closed.headers["stream-closed"] == "true"
    late = await stream.append(b"more")
    assert late.status == 409 and late.headers["stream-closed"] == "true"
    assert late.headers["stream-next-offset"] == offset(3)
    assert (await stream.close()).status == 204, "to close again is no error"
    assert (await stream.read()).body == b"all"


async def test_a_producer_that_repeats_itself_is_heard_once(http):
    stream = Stream(http)
    await stream.create()
    first = await stream.append(b"a", **stamp(0))
    assert first.status == 200 and first.headers["producer-seq"] == "0"
    assert (await stream.append(b"b", **stamp(1))).status == 200
    again = await stream.append(b"a", **stamp(0))
    assert again.status == 204 and again.headers["producer-seq"] == "1"
    gap = await stream.append(b"d", **stamp(3))
    assert gap.status == 409
    assert (gap.headers["producer-expected-seq"], gap.headers["producer-received-seq"]) == ("2", "3")
    assert (await stream.append(b"c", **stamp(0, epoch=1))).status == 200
    zombie = await stream.append(b"z", **stamp(2))
    assert zombie.status == 403 and zombie.headers["producer-epoch"] == "1"
    assert (await stream.append(b"z", **stamp(1, epoch=2))).status == 400
    assert (await stream.append(b"z", producer_id="writer")).status == 400
    assert (await stream.read()).body == b"abc"


async def test_what_an_append_cannot_be(http):
    stream = Stream(http)
    await stream.create("application/json")
    assert (await stream.append(b"", "application/json")).status == 400
    assert (await stream.append(b"{", "application/json")).status == 400
    assert (await stream.append(b"[]", "application/json")).status == 400
    assert (await stream.append(b"text")).status == 409
    assert (await stream.append(b"1", "application/json", stream_seq="b")).status == 204
    assert (await stream.append(b"2", "application/json", stream_seq="a")).status == 409
    assert (await stream.append(b"[2,[3]]", "application/json", stream_seq="c")).status == 204
    assert (await stream.read()).json == [1, 2, [3]]
    nothing = Stream(http)
    assert (await nothing.append(b"x")).status == 404
    assert (await nothing.read()).status == 404 and (await nothing.head()).status == 404


async def test_a_body_in_chunks_is_one_append(http):
    stream = Stream(http)
    await stream.create()
    fields = "\r\n".join(f"{name}: {value}" for name, value in stream.headers.items())
    http.write(
        f"POST {stream.path} HTTP/1.1\r\nhost: a\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n"
        f"{fields}\r\n\r\n3\r\nHel\r\n2\r\nlo\r\n0\r\n\r\n".encode())
    assert (await http.answer()).status == 204
    assert (await stream.read()).body == b"Hello"


# Reading


async def test_a_page_that_is_known_is_not_sent_again(http):
    stream = Stream(http)
    await stream.create(body=b"abc")
    page = await stream.read()
    same = await stream.read(if_none_match=page.headers["etag"])
    assert same.status == 304 and same.headers["stream-next-offset"] == offset(3)
    await stream.close()
    ended = await stream.read(if_none_match=page.headers["etag"])
    assert ended.status == 200 and ended.headers["stream-closed"] == "true", "the end is news"


async def test_head_tells_how_a_stream_stands(http):
    stream = Stream(http)
    await stream.create("application/json", stream_ttl="3600")
    answer = await stream.head()
    assert answer.status == 200 and answer.headers["content-type"] == "application/json"
    assert answer.headers["stream-ttl"] == "3600" and answer.headers["cache-control"] == "no-store"
    assert answer.headers["stream-next-offset"] == offset(0)


async def test_what_is_deleted_is_gone_and_its_name_is_free(http):
    stream = Stream(http)
    await stream.create(body=b"old")
    assert (await stream.delete()).status == 204
    assert (await stream.read()).status == 404
    assert (await stream.delete()).status == 404
    assert (await stream.create(body=b"new")).status == 201
    assert (await stream.read()).body == b"new"


@pytest.mark.parametrize("query", [
    "?offset=5", "?offset=abc", "?offset=", "?offset=-2", "?offset=-1&offset=-1", "?live=yes", "?live=long-poll",
])
async def test_offsets_that_were_never_given_out(http, query):
    stream = Stream(http)
    await stream.create(body=b"abc")
    assert (await stream.read(query)).status == 400


async def test_an_offset_beyond_the_end_is_none(http):
    stream = Stream(http)
    await stream.create(body=b"abc")
    assert (await stream.read(f"?offset={offset(4)}")).status == 410


# Long-polls


async def poll(stream, at):
    return await stream.read(f"?offset={offset(at)}&live=long-poll")


async def test_a_long_poll_waits_for_what_comes_next(http, other):
    stream = Stream(http)
    await stream.create(body=b"abc")
    reader = Stream(other, stream.name)
    at_once = await poll(reader, 0)
    assert at_once.body == b"abc" and at_once.headers["stream-cursor"]
    waiting = asyncio.create_task(poll(reader, 3))
    await stream.append(b"def")
    page = await waiting
    assert page.status == 200 and page.body == b"def" and page.headers["stream-next-offset"] == offset(6)
    waiting = asyncio.create_task(poll(reader, 6))
    await stream.close()
    ended = await waiting
    assert ended.status == 204 and ended.headers["stream-closed"] == "true"
    assert (await poll(reader, 6)).status == 204, "an end is not waited for twice"


async def test_a_long_poll_of_a_stream_that_is_deleted_ends(http, other):
    stream = Stream(http)
    await stream.create()
    waiting = asyncio.create_task(poll(Stream(other, stream.name), 0))
    # Whether the poll or the deletion comes first, the stream is not there.
    await stream.delete()
    assert (await waiting).status == 404


async def test_many_long_polls_are_answered_by_one_append(hub, http):
    stream = Stream(http)
    await stream.create()
    connections = [await HTTPConnection.open(hub.port) for _ in range(200)]
    waiting = [asyncio.create_task(poll(Stream(each, stream.name), 0)) for each in connections]
    await stream.append(b"here")
    assert [(await each).body for each in waiting] == [b"here"] * 200
    for each in connections:
        each.writer.close()


async def test_a_drain_sends_those_who_wait_home(own_hub):
    # One loop reads in the order in which bytes came: the poll is there when the request behind it is answered.
    own_hub.environment["ROOST_LOOPS"] = "1"
    own_hub.start()
    async with await HTTPConnection.open(own_hub.port) as http, await HTTPConnection.open(own_hub.port) as other:
        stream = Stream(http)
        await stream.create(body=b"abc")
        reader = Stream(other, stream.name, **stream.headers)
        assert (await poll(reader, 0)).body == b"abc"
        waiting = asyncio.create_task(poll(reader, 3))
        await asyncio.sleep(0)
        for _ in range(3):
            await stream.head()
        assert await asyncio.to_thread(own_hub.stop, 30) == 0
        assert (await waiting).status == 204


# The fence


async def test_a_cancel_fixes_the_end_and_tells_the_producer(http, other):
    stream = Stream(http)
    await stream.create()
    await stream.append(b"so far", **stamp(0))
    reader = Stream(other, stream.name)
    waiting = asyncio.create_task(poll(reader, 6))
    cancelled = await stream.cancel()
    assert cancelled.status == 200 and cancelled.headers["stream-next-offset"] == offset(6)
    told = await waiting
    assert told.headers["stream-status"] == "cancelled" and told.headers["stream-closed"] == "true"
    refused = await stream.append(b"more", **stamp(1))
    assert refused.status == 409 and refused.headers["stream-cancelled"] == "true"
    assert refused.headers["stream-next-offset"] == offset(6)
    assert (await stream.cancel()).status == 200
    assert (await stream.read()).body == b"so far"
    assert (await http.request("GET", stream.path + "/cancel", None, **stream.headers)).status == 405


async def test_nothing_is_shown_behind_a_cancel(hub, http):
    """Cancels that race with appends: the end that the cancel was answered is the end that everybody finds."""
    rounds = int(os.environ.get("ROOST_STREAM_CANCELS", "50"))
    async with await HTTPConnection.open(hub.port) as producer, await HTTPConnection.open(hub.port) as watcher:
        for _ in range(rounds):
            stream, writing, reading = Stream(http), None, None
            await stream.create()

            async def write():
                while (await Stream(producer, stream.name).append(b"token ")).status == 204:
                    pass

            async def read():
                got = b""
                while True:
                    page = await poll(Stream(watcher, stream.name), len(got))
                    got += page.body
                    if page.headers.get("stream-closed"):
                        return got

            writing, reading = asyncio.create_task(write()), asyncio.create_task(read())
            await Stream(http, stream.name).append(b"begin ")
            fence = byte_count((await stream.cancel()).headers["stream-next-offset"])
            await writing
            assert len(await reading) == fence
            assert len((await stream.read()).body) == fence


# Who may


POLICIES = """
    create policy "read {0}" on realtime.messages for select to authenticated
        using (realtime.topic() = 'stream:{0}' and auth.uid() is not null);
    create policy "write {0}" on realtime.messages for insert to authenticated
        with check (realtime.topic() = 'stream:{0}' and extension = 'broadcast' and auth.uid()::text like '%1');
    create policy "cancel {0}" on realtime.messages for insert to authenticated
        with check (realtime.topic() = 'stream:{0}' and extension = 'cancel' and auth.uid()::text like '%2');
"""
WRITER, STOPPER, READER = (f"00000000-0000-0000-0000-00000000000{n}" for n in (1, 2, 3))


async def test_policies_decide_who_reads_writes_and_cancels(hub, http, sql):
    name = new_name()
    sql.execute(POLICIES.format(name))
    writer, stopper, reader = (Stream(http, name, **bearer("authenticated", sub=sub)) for sub in (WRITER, STOPPER, READER))
    stranger = Stream(http, name, **bearer("anon"))
    # Policies count within a second, wherever they are asked.
    await eventually(lambda: is_let(writer.create), what="the right to write")
    await eventually(lambda: is_let(reader.read), what="the right to read")
    assert (await writer.append(b"hello")).status == 204
    assert (await reader.read()).body == b"hello"
    for answer in [await stopper.append(b"x"), await reader.append(b"x"), await reader.cancel(), await reader.delete()]:
        assert answer.status == 403
    await eventually(lambda: is_let(stopper.cancel), what="the right to cancel")
    assert (await writer.append(b"x")).status == 409
    refused = await stranger.read()
    missing = await Stream(http, new_name(), **bearer("anon")).read()
    assert (refused.status, refused.body) == (403, missing.body), "a stranger learns not even whether it is there"
    assert (await writer.delete()).status == 204


async def is_let(request):
    return (await request()).status != 403


async def test_without_a_token_there_is_nothing(http):
    stream = Stream(http, None, **{"x_nothing": "1"})
    for answer in [await stream.create(), await stream.read(), await stream.head()]:
        assert answer.status == 401
    expired = Stream(http, None, authorization=f"Bearer {token('service_role', lifetime=-10)}")
    assert (await expired.create()).status == 401


async def test_pages_of_other_origins_may_use_streams(http):
    answer = await http.request("OPTIONS", "/streams/a", None, origin="https://app.example")
    assert answer.status == 204
    assert "PUT" in answer.headers["access-control-allow-methods"]
    assert "producer-id" in answer.headers["access-control-allow-headers"]
    page = await Stream(http).create()
    assert page.headers["access-control-allow-origin"] == "*"
    assert "stream-next-offset" in page.headers["access-control-expose-headers"]


@pytest.mark.parametrize("type, is_shown", [
    ("text/html", False), ("image/svg+xml", False), ("text/javascript", False), ("text/plain, text/html", False),
    ("text/plain; charset=utf-8", True), ("application/json", True),
])
async def test_a_stream_is_no_page_of_the_hubs_origin(http, type, is_shown):
    """Whoever may write a stream chooses its type; whoever opens its address in a browser must not run what was written."""
    stream = Stream(http)
    body = b'{"a":1}' if "json" in type else b"<script>document.title = document.cookie</script>"
    answers = [await stream.create(type, body=body)]
    for query in ("?offset=-1", "", "?offset=now", f"?offset={offset(0)}&live=long-poll"):
        answers.append(await http.request("GET", f"{stream.path}{query}", None, **bearer()))
    answers.append(await http.request("HEAD", stream.path, None, **bearer()))
    for answer in answers:
        assert answer.status in (200, 201) and answer.headers["content-type"] == type
        assert answer.headers.get("content-disposition") == (None if is_shown else "attachment")
        assert "sandbox" in answer.headers["content-security-policy"] and answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("type, before, behind", [
    ("text/html", "<script>", "</script>"), ("image/svg+xml", '<svg xmlns="http://www.w3.org/2000/svg"><script>', "</script></svg>"),
])
async def test_a_browser_runs_nothing_of_a_stream(hub, http, browser, type, before, behind):
    stream = Stream(http)
    await stream.create(type, body=f"{before}document.cookie = 'ran={stream.name};path=/'{behind}".encode())
    page = await browser.page("about:blank")
    for address in (f"{stream.path}?token={token('service_role')}", "/healthcheck"):
        await page.call("Page.navigate", url=f"http://127.0.0.1:{hub.port}{address}")
        # What is opened has run by then; what is downloaded leaves the page before.
        await page.until("document.readyState == 'complete'")
    await page.until("location.pathname == '/healthcheck'")
    assert f"ran={stream.name}" not in await page.run("document.cookie")
    await page.close()


async def test_a_hub_without_a_folder_serves_none(cluster):
    from support.hub import Hub
    hub = Hub(cluster.create_database("no_streams"))
    del hub.environment["ROOST_STREAMS_DIRECTORY"]
    try:
        hub.run("migrate")
        hub.start()
        async with await HTTPConnection.open(hub.port) as http:
            answer = await Stream(http).create()
            assert answer.status == 404 and "streams.directory" in answer.json["error"]
    finally:
        hub.remove()


# What lasts


async def test_acknowledged_bytes_outlive_a_kill(own_hub):
    """A producer that sends on through kills: what it was answered for is there, once, and readers go on at their offset."""
    own_hub.start()
    kills = int(os.environ.get("ROOST_STREAM_KILLS", "10"))
    name, sequence, written = new_name(), 0, b""
    async with await HTTPConnection.open(own_hub.port) as http:
        assert (await Stream(http, name).create()).status == 201
    kill = 0
    # A busy machine may have said little before a kill.
    while kill < kills or sequence <= kills:
        assert kill < 10 * kills
        connection = await HTTPConnection.open(own_hub.port)
        killing = asyncio.get_running_loop().call_later(0.02 + 0.01 * (kill % 7), own_hub.kill)
        try:
            while True:
                piece = f"{sequence},".encode()
                answer = await Stream(connection, name).append(piece, **stamp(sequence))
                assert answer.status in (200, 204), (answer.status, answer.body)
                written += piece
                sequence += 1
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            killing.cancel()
            connection.writer.close()
        own_hub.process.wait()
        own_hub.start()
        async with await HTTPConnection.open(own_hub.port) as http:
            page = await Stream(http, name).read(f"?offset={offset(0)}")
            # The last append may be there, and not have been answered for.
            assert page.body in (written, written + piece), f"kill {kill}"
        kill += 1


async def test_a_full_disk_refuses_and_loses_nothing(cluster):
    import resource
    from support.hub import Hub
    hub = Hub(cluster.create_database("full_disk"))
    try:
        hub.run("migrate")
        hub.start()
        async with await HTTPConnection.open(hub.port) as http:
            stream = Stream(http)
            await stream.create(body=b"kept")
            resource.prlimit(hub.process.pid, resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY))
            answer = await stream.append(b"x" * 10_000, **stamp(0))
            assert answer.status == 503 and "disk" in answer.json["error"]
            assert (await stream.read()).body == b"kept"
            resource.prlimit(hub.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            assert (await stream.append(b"x" * 10_000, **stamp(0))).status == 200
            assert (await stream.read()).body == b"kept" + b"x" * 10_000
    finally:
        hub.remove()


async def test_a_folder_belongs_to_one_hub(hub, cluster):
    from support.hub import Hub
    second = Hub(cluster.create_database("second_hub"), ROOST_STREAMS_DIRECTORY=hub.environment["ROOST_STREAMS_DIRECTORY"])
    try:
        second.run("migrate")
        second.start(wait=False)
        assert second.process.wait(30) == 78
        assert "is another hub's: give each hub one of its own" in second.log
    finally:
        second.remove()
