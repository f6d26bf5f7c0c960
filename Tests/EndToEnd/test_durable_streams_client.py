"""The Python client of the Durable Streams protocol (PyPI `durable-streams`), unmodified, against the hub."""

import asyncio
import threading

import pytest
from durable_streams import (
    AsyncDurableStream, DurableStream, DurableStreamError, SeqConflictError, StreamExistsError, StreamNotFoundError,
    astream, stream,
)

from support.streams import bearer, new_name

# The protocol wants an offset of live readers; without one they are answered 400, which is a rule of its own.
LIVE = [True, "long-poll", "sse"]


@pytest.fixture
def url(hub):
    return f"http://127.0.0.1:{hub.port}/realtime/v1/streams/{new_name()}"


@pytest.fixture
def text(url):
    with DurableStream.create(url, content_type="text/plain", headers=bearer()) as handle:
        yield handle


def test_create_append_read(text):
    text.append("Hello")
    text.append(", world")
    with text.stream(live=False) as answer:
        assert answer.read_text() == "Hello, world" and answer.up_to_date
        at = answer.offset
    text.append(" again")
    with stream(text.url, headers=bearer(), offset=at, live=False) as answer:
        assert answer.read_text() == " again"


def test_head_connect_and_delete(url, text):
    text.append("x")
    assert DurableStream.head_static(url, headers=bearer()).content_type == "text/plain"
    with DurableStream.connect(url, headers=bearer()) as handle:
        assert handle.content_type == "text/plain"
        handle.delete()
    with pytest.raises(StreamNotFoundError):
        DurableStream.connect(url, headers=bearer())


def test_errors_are_the_clients_own(url, text):
    with pytest.raises(StreamExistsError):
        DurableStream.create(url, content_type="application/json", headers=bearer())
    with pytest.raises(StreamNotFoundError):
        DurableStream.connect(url + "x", headers=bearer())
    with pytest.raises(DurableStreamError):
        DurableStream.connect(url, headers=bearer("authenticated"))
    text.append("a", seq="2")
    with pytest.raises(SeqConflictError):
        text.append("b", seq="1")


def test_json_messages(url):
    with DurableStream.create(url, content_type="application/json", headers=bearer()) as handle:
        for number in range(5):
            handle.append({"n": number})
        with handle.stream(live=False) as answer:
            assert list(answer.iter_json()) == [{"n": number} for number in range(5)]


@pytest.mark.parametrize("live", LIVE)
def test_a_live_reader_of_text_misses_nothing(text, live):
    """Appends while it reads; it stops when it has the last word."""
    words = [f"word {number}\n" for number in range(50)]
    text.append(words[0])

    def write():
        for word in words[1:]:
            text.append(word)

    got, writer = "", threading.Thread(target=write)
    with stream(text.url, headers=bearer(), offset="-1", live=live) as answer:
        writer.start()
        for piece in answer.iter_text():
            got += piece
            if got.endswith(words[-1]):
                break
    writer.join()
    assert got == "".join(words)


@pytest.mark.parametrize("live", LIVE)
def test_a_live_reader_of_messages_misses_nothing(url, live):
    with DurableStream.create(url, content_type="application/json", headers=bearer()) as handle:
        # A live reader's first answer comes with the first message.
        handle.append({"n": 0})
        writer = threading.Thread(target=lambda: [handle.append({"n": number}) for number in range(1, 50)])
        got = []
        with stream(url, headers=bearer(), offset="-1", live=live) as answer:
            writer.start()
            for item in answer.iter_json():
                got.append(item["n"])
                if item["n"] == 49:
                    break
        writer.join()
        assert got == list(range(50))


@pytest.mark.anyio
@pytest.mark.parametrize("live", LIVE)
async def test_the_asynchronous_client(url, live):
    async with await AsyncDurableStream.create(url, content_type="text/plain", headers=bearer()) as handle:
        await handle.append("begin ")

        async def write():
            for number in range(20):
                await handle.append(f"{number} ")

        got, writing = "", None
        async with astream(url, headers=bearer(), offset="-1", live=live) as answer:
            writing = asyncio.create_task(write())
            async for piece in answer.iter_text():
                got += piece
                if got.endswith("19 "):
                    break
        await writing
        assert got == "begin " + "".join(f"{number} " for number in range(20))


def test_a_reader_goes_on_where_it_stopped(text):
    """As its documentation has it: the offset of an answer is where the next begins."""
    got, at = "", "-1"
    for number in range(10):
        text.append(f"{number};")
        with stream(text.url, headers=bearer(), offset=at, live=False) as answer:
            got += answer.read_text()
            at = answer.offset
    assert got == "".join(f"{number};" for number in range(10))
