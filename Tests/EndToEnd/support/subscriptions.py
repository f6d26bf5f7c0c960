"""Readers of events: subscriptions without a WebSocket, as server-sent events or as lines of JSON."""

import asyncio
import collections
import json
from urllib.parse import quote, urlencode

from support.deadline import PATIENCE, patience
from support.events import EventReader
from support.tokens import token

Message = collections.namedtuple("Message", "name topic event payload data id")


def channel(topic, **config):
    return json.dumps({"topic": topic, "config": config})


def query(channels, **more):
    return "?" + urlencode([("channel", one) for one in channels] + list(more.items()), quote_via=quote)


class Subscription(EventReader):
    """One answer; `first` is its event `connected`, or the error that it is."""

    @classmethod
    async def open(cls, hub_port, path, lines=False, bearer=None, last_id=None, token_in_header=True, **options):
        if token_in_header:
            options["authorization"] = "Bearer " + (bearer or token("anon"))
        if lines:
            options["accept"] = "application/x-ndjson"
        if last_id is not None:
            options["last_event_id"] = last_id
        self = await super().open(hub_port, path, **options)
        self.is_lines = lines
        self.first = self.channels = None
        if self.status != 200:
            self.first = json.loads(await self.body())
            return self
        name, _, event, self.first, *_ = await self.message()
        assert name == event == "connected"
        self.channels = {one["topic"]: one for one in self.first["channels"]}
        return self

    @classmethod
    async def to(cls, port, *channels, **options):
        return await cls.open(port, "/api/sse" + query(channels), **options)

    async def message(self, within=PATIENCE):
        """The next event; None at the end of the answer."""
        if self.is_lines:
            return await self._line(within)
        event = await self.next(within)
        if event is None:
            return None
        data = json.loads(event.data)
        return Message(event.name, data.get("topic"), data["event"], data["payload"], data, event.id)

    async def _line(self, within):
        async with patience(within):
            while True:
                while b"\n" not in self._text:
                    if not await self._more():
                        assert self._text == b"", "an answer ends between lines"
                        return None
                line, self._text = self._text.split(b"\n", 1)
                if not line:
                    self.comments += 1
                    continue
                data = json.loads(line)
                self.id = data.pop("id", self.id)
                if data:
                    return Message(data["event"], data.get("topic"), data["event"], data["payload"], data, self.id)

    async def until(self, *wanted, within=PATIENCE):
        """The next event of one of these names, others being passed over."""
        async with patience(within):
            while True:
                message = await self.message(within)
                assert message is not None, f"the answer ended before {wanted}"
                if message.name in wanted:
                    return message

    async def known(self, wanted, within=PATIENCE):
        """Reads on until the answer's position is such; there must be no event before."""
        async with patience(within):
            while not (self.id and wanted(self.id)):
                self.take_positions()
                if not (self.id and wanted(self.id)):
                    assert await self._more(), "the answer ended"

    async def knows(self, wanted):
        """Whether what came so far says so."""
        self.take_positions()
        try:
            # What came so far, and no more.
            await asyncio.wait_for(self._more(), 0.1)
        except TimeoutError:
            pass
        self.take_positions()
        return bool(self.id and wanted(self.id))

    def take_positions(self):
        """Of what has been read and not been looked at, without taking anything."""
        for line in self._text.decode(errors="ignore").split("\n"):
            if self.is_lines and line.startswith("{\"id\":"):
                self.id = line.split('"')[3]
            elif line.startswith("id: "):
                self.id = line[4:]
