"""Streams read and written by RoostClient: exact over every kind of loss."""

import asyncio
import base64
import json
import os
import random

import pytest

from support.deadline import PATIENCE, eventually
from support.http import HTTPConnection
from support.streams import Stream, new_name
from support.tokens import token

CUTS = int(os.environ.get("ROOST_STREAM_CUTS", "8"))
PIECES = ["word ", "Grüße ", "a\nb\n", "🐦", "\"\\"]


def begin(probe, url, role="service_role"):
    """Waits between attempts are short, so that tests need not wait for them."""
    probe.do("client", url=url, tokens=[token(role, sub="someone")], backoff=0.05)
    return probe


def text_of(probe):
    return "".join(line["text"] for line in probe.all("text"))


def connects(probe):
    return sum(line["what"] == "connected" for line in probe.all("socket"))


def numbered(count, first=0):
    return "".join(f"{number} Grüße 🐦\n" for number in range(first, first + count))


async def whole(stream):
    return (await stream.read("?offset=-1")).body.decode()


async def read_to_the_end(probe, reason="complete", within=PATIENCE):
    await probe.see("ended", name="reader", within=within)
    end, = probe.all("stream_end")
    assert end["reason"] == reason and probe.all("failed") == []
    return end


async def test_a_reader_through_cuts_has_every_byte_once(stream, way, probe):
    begin(probe, way.url).do("stream", channel=stream.name, name="reader")
    rng, said = random.Random(5), []

    async def write():
        while not done:
            said.append(rng.choice(PIECES))
            assert (await stream.append(said[-1].encode())).status in (200, 204)
            await asyncio.sleep(0.002)
        await stream.close()

    done = False
    writing = asyncio.create_task(write())
    for _ in range(CUTS):
        seen = len(text_of(probe))
        await eventually(lambda: len(text_of(probe)) > seen + 50, what="text")
        way.cut()
    done = True
    await writing
    end = await read_to_the_end(probe)
    assert text_of(probe) == "".join(said) and end["offset"] == len("".join(said).encode())
    assert len(probe.all("begins")) == 1 and connects(probe) >= CUTS


async def test_a_reader_that_is_slow_misses_nothing(stream, hub, probe):
    begin(probe, hub.url).do("stream", channel=stream.name, name="reader", pause=0.05)
    said = ""
    for number in range(200):
        said += (piece := f"{number} ")
        await stream.append(piece.encode())
    await stream.close()
    await read_to_the_end(probe)
    assert text_of(probe) == said


async def test_a_view_sees_the_text_grow(stream, way, probe):
    begin(probe, way.url).do("stream_texts", channel=stream.name, name="view")
    await stream.append("Grü".encode())
    await probe.see("shown", text="Grü", end="")
    way.cut()
    await stream.append("ße".encode())
    await probe.see("shown", text="Grüße", end="")
    await stream.close()
    await probe.see("shown", text="Grüße", end="complete")
    await probe.see("ended", name="view")


async def test_a_writer_through_cuts_is_kept_once_and_in_order(stream, way, hub, probes):
    writer, reader = begin(await probes(), way.url), begin(await probes(), hub.url)
    reader.do("stream", channel=stream.name, name="reader")
    writer.do("stream_write", channel=stream.name, pause=0.002, on=True)
    for _ in range(CUTS):
        seen = len(text_of(reader))
        await eventually(lambda: len(text_of(reader)) > seen + 200, what="text")
        way.cut()
    writer.do("stream_finish")
    written = await writer.see("written", within=30)
    await read_to_the_end(reader)
    said = numbered(written["pieces"])
    assert await whole(stream) == text_of(reader) == said and written["end"] == len(said.encode())
    assert connects(writer) >= CUTS


async def test_a_writer_without_a_network_waits_for_it(stream, way, probe):
    begin(probe, way.url).do("stream_write", channel=stream.name, count=1, first=0)
    await probe.see("written")
    await way.close()
    await probe.see("socket", what='lost(reason: "The connection broke.")')
    seen = len(probe.events)
    probe.do("stream_write", channel=stream.name, count=50, first=1, on=True)
    await way.open()
    probe.do("network_is_back")
    await probe.see("written", after=seen)
    assert await whole(stream) == numbered(51)


async def test_a_writer_is_told_of_a_cancel_and_where_it_was(stream, hub, probes):
    writer, reader = begin(await probes(), hub.url), begin(await probes(), hub.url)
    reader.do("stream", channel=stream.name, name="reader")
    writer.do("stream_write", channel=stream.name, pause=0.002)
    await eventually(lambda: len(text_of(reader)) > 500, what="text")
    reader.do("stream_cancel", channel=stream.name)
    await reader.see("cancelled")
    end = await read_to_the_end(reader, "cancelled")
    told = await writer.see("unwritten")
    assert told["text"] == f"A reader cancelled the stream at {end['offset']} bytes; stop writing it."
    said = await whole(stream)
    assert text_of(reader) == said and end["offset"] == len(said.encode())
    assert numbered(said.count("\n") + 1).startswith(said), "and nothing of what was kept is missing"
    # Whoever cancels what has ended is not failed.
    seen = len(reader.events)
    reader.do("stream_cancel", channel=stream.name)
    await reader.see("cancelled", after=seen)


async def test_a_hub_that_is_killed_costs_neither_side_a_byte(own_hub, probes):
    own_hub.start()
    async with await HTTPConnection.open(own_hub.port) as http:
        stream = Stream(http)
        await stream.create()
    writer, reader = begin(await probes(), own_hub.url), begin(await probes(), own_hub.url)
    reader.do("stream", channel=stream.name, name="reader")
    writer.do("stream_write", channel=stream.name, pause=0.003, on=True)
    for _ in range(3):
        seen = len(text_of(reader))
        await eventually(lambda: len(text_of(reader)) > seen + 500, what="text")
        await asyncio.to_thread(own_hub.kill)
        await asyncio.to_thread(own_hub.start)
    writer.do("stream_finish")
    said = numbered((await writer.see("written", within=40))["pieces"])
    await read_to_the_end(reader)
    assert text_of(reader) == said
    async with await HTTPConnection.open(own_hub.port) as http:
        assert await whole(Stream(http, stream.name)) == said
    assert min(connects(reader), connects(writer)) >= 4


async def test_messages_and_bytes_are_exact(http, hub, probes):
    messages, sound = Stream(http), Stream(http)
    await messages.create("application/json")
    await sound.create("audio/ogg")
    for stream, form in ((messages, "message"), (sound, "bytes")):
        writer, reader = begin(await probes(), hub.url), begin(await probes(), hub.url)
        reader.do("stream", channel=stream.name, name="reader")
        writer.do("stream_write", channel=stream.name, count=30, state=form, on=True)
        await writer.see("written")
        await read_to_the_end(reader)
        if form == "message":
            assert [json.loads(line["json"]) for line in reader.all("message")] == [{"n": n} for n in range(30)]
        else:
            got = b"".join(base64.b64decode(line["base64"]) for line in reader.all("bytes"))
            assert got.decode() == numbered(30)


async def test_a_writer_that_is_gone_is_told_of_and_comes_back(stream, way, hub, probes):
    writer, reader = begin(await probes(), way.url), begin(await probes(), hub.url)
    reader.do("stream", channel=stream.name, name="reader")
    writer.do("stream_write", channel=stream.name, count=1)
    await writer.see("written")
    await reader.see("stream_state", state="open")
    await way.close()
    await reader.see("stream_state", state="stalled")
    seen = len(reader.events)
    await way.open()
    writer.do("network_is_back")
    writer.do("stream_write", channel=stream.name, count=1, first=1)
    await reader.see("stream_state", state="open", after=seen)
    await stream.close()
    await read_to_the_end(reader)
    assert text_of(reader) == numbered(2)


async def test_a_stream_that_is_made_again_while_nobody_looks(http, stream, way, probe):
    await stream.append(b"old")
    begin(probe, way.url).do("stream", channel=stream.name, name="reader")
    await probe.see("text", text="old")
    await way.close()
    await probe.see("socket", what='lost(reason: "The connection broke.")')
    await stream.delete()
    await stream.create(body=b"new")
    await stream.close()
    await way.open()
    probe.do("network_is_back")
    await read_to_the_end(probe)
    told = [line["event"] for line in probe.events if line["event"] in ("begins", "text", "stream_end")]
    assert told == ["begins", "text", "begins", "text", "stream_end"] and text_of(probe) == "oldnew"


@pytest.mark.parametrize("away", [True, False])
async def test_a_stream_that_is_gone_ends_the_loop(http, stream, way, probe, away):
    """Also where the reader was away meanwhile: it would wait for ever for the rest."""
    await stream.append(b"half of")
    begin(probe, way.url).do("stream", channel=stream.name, name="reader")
    await probe.see("text", text="half of")
    if away:
        await way.close()
        await probe.see("socket", what='lost(reason: "The connection broke.")')
    await stream.delete()
    if away:
        await way.open()
        probe.do("network_is_back")
    await read_to_the_end(probe, "deleted")


async def test_who_may_not_is_told(stream, hub, probes):
    stranger = begin(await probes(), hub.url, role="authenticated")
    stranger.do("stream", channel=stream.name, name="reader")
    stranger.do("stream_write", channel=stream.name, pause=0.01)
    assert "Unauthorized" in (await stranger.see("failed"))["text"]
    await stranger.see("ended", name="reader")
    # What was on its way counts as refused, too.
    assert "Unauthorized" in (await stranger.see("unwritten"))["text"]
    assert await whole(stream) == ""
    # Nobody has made it.
    writer = begin(await probes(), hub.url)
    writer.do("stream_write", channel=new_name(), count=1)
    assert "There is no such stream: create it first" in (await writer.see("unwritten"))["text"]


async def test_the_row_of_the_end(own_hub, cluster, probes):
    own_hub.environment["ROOST_STREAMS_ON_CLOSE"] = "insert into reply (name, body) values ($1, $2) returning id, body"
    with cluster.connect(own_hub.database) as sql:
        sql.execute("create table reply (id serial primary key, name text, body text check (body not like '%forbidden%'))")
        sql.execute("grant select, insert on reply to service_role; grant usage on sequence reply_id_seq to service_role")
        own_hub.start()
        writer, reader = begin(await probes(), own_hub.url), begin(await probes(), own_hub.url)
        async with await HTTPConnection.open(own_hub.port) as http:
            good, bad = Stream(http), Stream(http)
            await good.create()
            await bad.create()
            reader.do("stream", channel=good.name, name="reader")
            writer.do("stream_write", channel=good.name, count=3, on=True)
            await writer.see("written")
            end = await read_to_the_end(reader)
            assert json.loads(end["row"])["body"] == numbered(3)
            writer.do("stream_write", channel=bad.name, text="forbidden", count=1, on=True)
            told = await writer.see("unwritten")
            assert "StreamCloseFailed: The stream is still open" in told["text"] and "check constraint" in told["text"]
            assert (await bad.head()).headers.get("stream-closed") is None
        assert sql.execute("select body from reply").fetchall() == [(numbered(3),)]
