"""Events that nobody sends anything on for half an hour, through the proxies that operators put in front.

Opt-in, because it takes as long as it says: `ROOST_IDLE_MINUTES=30 pytest Tests/EndToEnd/test_idle_proxies.py`.
"""

import asyncio
import contextlib
import os

import pytest

from support.events import EventReader
from support.http import HTTPConnection
from support.reverse_proxy import CONFIGURATIONS, ReverseProxy
from support.streams import Stream, bearer

pytestmark = pytest.mark.anyio
MINUTES = float(os.environ.get("ROOST_IDLE_MINUTES", 0))
#: Seconds between two comments of the hub (docs/sse.md).
COMMENTS = 15


@pytest.fixture
def proxies(hub):
    with contextlib.ExitStack() as stack:
        proxies = [ReverseProxy(kind, hub.port) for kind in CONFIGURATIONS]
        for proxy in proxies:
            stack.callback(proxy.remove)
            proxy.start()
        yield proxies


@pytest.mark.skipif(MINUTES == 0, reason="ROOST_IDLE_MINUTES is not set")
async def test_readers_outlive_idle_minutes(hub, stream, name, proxies):
    """On the very same connection: the hub's comments keep a proxy from taking it for dead."""
    await stream.append(b"before")
    paths = {"channel": f"/api/broadcast/{name}/events/said", "stream": f"{stream.path}?live=events"}
    readers = {}
    for proxy in proxies:
        for kind, path in paths.items():
            events = readers[proxy.kind, kind] = await EventReader.open(proxy.port, path, **bearer())
            first = await events.next()
            assert first.name == "connected" if kind == "channel" else first.data == "before"
    waiting = {key: asyncio.create_task(events.next(within=MINUTES * 60 + 120)) for key, events in readers.items()}
    over, _ = await asyncio.wait(waiting.values(), timeout=MINUTES * 60, return_when=asyncio.FIRST_COMPLETED)
    assert not over, [(key, task) for key, task in waiting.items() if task in over]
    # The connection of before was no answer that goes on: the hub has closed it long ago.
    async with await HTTPConnection.open(hub.port) as fresh:
        answer = await Stream(fresh, stream.name).append(b"after")
        assert answer.status == 204, answer
        answer = await fresh.request(
            "POST", f"/api/broadcast/{name}/events/said", b'{"text": "after"}', content_type="application/json", **bearer())
        assert answer.status == 202, answer
    for (proxy, kind), task in waiting.items():
        event = await task
        assert "after" in event.data, (proxy, kind, event)
    comments = {key: events.comments for key, events in readers.items()}
    print(f"{MINUTES:g} minutes idle; comments: {comments}")
    # A busy machine may be late with some.
    assert min(comments.values()) >= int(MINUTES * 60 / COMMENTS * 0.8), comments
    for events in readers.values():
        events.close()
