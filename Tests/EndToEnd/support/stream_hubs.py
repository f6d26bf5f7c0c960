"""Producers and watchers of streams that several hubs share: each goes on at another hub when its own dies."""

import asyncio
import json
import random
import time

from support.events import Broken, EventReader
from support.http import HTTPConnection
from support.streams import Stream, bearer, offset, stamp
from support.tokens import token
from support.websocket import Closed, Refused
from support.wsclient import Client

#: Seconds after which a hub that says nothing is taken for gone.
SILENT = 5
#: What a connection says that is gone, or a hub that is starting.
GONE = (OSError, EOFError, asyncio.IncompleteReadError, asyncio.TimeoutError, TimeoutError, Broken,
        Closed, Refused)


class Wanderer:
    """Somebody who is at one hub, and goes to another one that is there when that is lost."""

    def __init__(self, hubs, at=0):
        self.hubs, self.at = hubs, at
        self.moves = 0

    @property
    def hub(self):
        return self.hubs[self.at % len(self.hubs)]

    async def move(self):
        self.moves += 1
        self.at += random.randint(1, len(self.hubs) - 1)
        await asyncio.sleep(0.01)


class Producer(Wanderer):
    """Numbers its appends, and sends each until it is answered."""

    def __init__(self, hubs, name, at=0, pause=0.002):
        super().__init__(hubs, at)
        self.name, self.pause = name, pause
        self.said, self.appends = b"", 0
        self.repeated = self.refused = 0
        self.acknowledged = 0.0

    async def run(self, until):
        http = None
        try:
            while not until():
                body = f"{self.appends} {random.choice(['word', 'Grüße', '🐦'])}\n".encode()
                http = await self.say(http, body, **stamp(self.appends))
                self.said += body
                self.appends += 1
                self.acknowledged = time.monotonic()
                await asyncio.sleep(self.pause)
            await self.say(http, b"", stream_closed="true", **stamp(self.appends))
        finally:
            if http:
                http.writer.close()

    async def say(self, http, body, **headers):
        while True:
            try:
                http = http or await HTTPConnection.open(self.hub.port)
                answer = await Stream(http, self.name).append(body, within=SILENT, **headers)
                if answer.status in (200, 204):
                    self.repeated += answer.status == 204
                    return http
                assert answer.status == 503, f"{answer.status} {answer.body}"
                self.refused += 1
            except GONE:
                if http:
                    http.writer.close()
                http = None
            await self.move()
            if http:
                http.writer.close()
                http = None


class Watcher(Wanderer):
    """Puts a stream together; nothing may be missing, nothing come twice."""

    def __init__(self, hubs, name, at=0):
        super().__init__(hubs, at)
        self.name, self.got, self.status = name, b"", None

    async def run(self):
        while self.status is None:
            try:
                await self.watch()
            except GONE:
                pass
            if self.status is None:
                await self.move()
        return self.got


class PollWatcher(Watcher):
    async def watch(self):
        async with await HTTPConnection.open(self.hub.port) as http:
            while self.status is None:
                answer = await Stream(http, self.name).read(f"?offset={offset(len(self.got))}&live=long-poll", within=40)
                if answer.status == 503:
                    return
                assert answer.status in (200, 204), f"{answer.status} {answer.body}"
                self.got += answer.body
                assert answer.headers["stream-next-offset"] == offset(len(self.got))
                if answer.headers.get("stream-closed") == "true":
                    self.status = answer.headers["stream-status"]


class EventWatcher(Watcher):
    async def watch(self):
        path = f"/streams/{self.name}?offset={offset(len(self.got))}&live=sse"
        async with await EventReader.open(self.hub.port, path, within=SILENT, **bearer()) as events:
            if events.status == 503:
                return
            assert events.status == 200, events.status
            while (event := await events.next(within=40)) is not None:
                if event.name == "data":
                    self.got += event.data.encode()
                    continue
                control = json.loads(event.data)
                assert control["streamNextOffset"] == offset(len(self.got))
                self.status = control.get("status") if control.get("streamClosed") else None


class ChannelWatcher(Watcher):
    id = None

    async def watch(self):
        client = await Client.connect(self.hub.port, 1, apikey=token("service_role"), within=SILENT)
        try:
            topic = f"realtime:stream:{self.name}"
            config = {"private": True, "stream": {"every_ms": 0, **({"id": self.id, "at": len(self.got)} if self.id else {})}}
            await client.join(topic, config=config)
            while self.status is None:
                frame = (await client.next("broadcast", topic, within=40)).payload["payload"]
                assert self.id in (None, frame["id"]) and frame.get("status") != "deleted", frame
                self.id = frame["id"]
                if "next" in frame:
                    assert frame["at"] == len(self.got), f"{frame['at']} behind {len(self.got)}"
                    self.got += frame.get("delta", "").encode()
                    assert frame["next"] == len(self.got)
                if frame.get("status") in ("complete", "cancelled", "aborted"):
                    self.status = frame["status"]
        finally:
            await client.close()


WATCHERS = [PollWatcher, EventWatcher, ChannelWatcher]
