"""A client that hides nothing: protocol versions 1 and 2, frames as they are."""

import asyncio
import json
import time
import urllib.parse
from dataclasses import dataclass
from typing import Any

from support.deadline import PATIENCE, patience
from support.tokens import token
from support.websocket import BINARY, TEXT, Closed, WebSocket


@dataclass
class Message:
    """A server's frame; `raw` is what was on the wire."""
    join_ref: Any
    ref: Any
    topic: str
    event: str
    payload: Any
    raw: bytes
    at: float
    is_binary: bool = False


@dataclass
class UserBroadcast:
    """The payload of a frame of kind 4."""
    event: str
    metadata: bytes
    encoding: int
    payload: bytes


def kind3(join_ref, ref, topic, event, payload, encoding=1, metadata=b""):
    """The binary frame that a client of version 2 broadcasts with."""
    parts = [part.encode() if isinstance(part, str) else part for part in (join_ref, ref, topic, event, metadata)]
    return bytes([3, *(len(part) for part in parts), encoding]) + b"".join(parts) + payload


class Client:
    def __init__(self, socket, version):
        self.socket, self.version = socket, version
        self.messages = []  # what nobody has taken yet, in order
        self.closed = None
        self._news = asyncio.Event()
        self._refs = 0
        self.on_message = None  # takes messages instead of the list, for those who count many
        self._task = asyncio.create_task(self._read())

    @classmethod
    async def connect(cls, port, version=2, apikey=None, path="/realtime/v1/websocket", source=None,
                      receive_buffer=None, tls=None, headers=None, within=PATIENCE, **query):
        query = {"apikey": apikey or token(), "vsn": f"{version}.0.0", **query}
        socket = await WebSocket.open(port, f"{path}?{urllib.parse.urlencode(query)}", headers, source, within,
                                      receive_buffer=receive_buffer, tls=tls)
        return cls(socket, version)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.close()

    async def close(self):
        self._task.cancel()
        await asyncio.wait([self._task])
        await self.socket.close()

    # Receiving

    async def _read(self):
        try:
            while True:
                opcode, data = await self.socket.receive()
                message = self._decoded(opcode, data)
                if self.on_message and message.event == "postgres_changes":
                    self.on_message(message)
                else:
                    self.messages.append(message)
                    self._news.set()
        except Closed as end:
            self.closed = end
            self._news.set()

    def _decoded(self, opcode, data):
        at = time.monotonic()
        if opcode == BINARY:
            assert self.version == 2, "version 1 knows no binary frames"
            assert data[0] == 4, f"clients know no kind but 4: {data[:40]!r}"
            sizes, texts, offset = data[1:4], [], 5
            for size in sizes:
                texts.append(data[offset:offset + size])
                offset += size
            user = UserBroadcast(texts[1].decode(), texts[2], data[4], data[offset:])
            return Message(None, None, texts[0].decode(), "broadcast", user, data, at, is_binary=True)
        frame = json.loads(data)
        if self.version == 1:
            # `ref` must be there, also when it is null; `join_ref` must not.
            assert sorted(frame) == ["event", "payload", "ref", "topic"], frame
            message = Message(None, frame["ref"], frame["topic"], frame["event"], frame["payload"], data, at)
        else:
            assert isinstance(frame, list) and len(frame) == 5, frame
            message = Message(*frame, data, at)
        assert isinstance(message.payload, dict), f"a payload is always an object: {data[:200]!r}"
        return message

    async def next(self, event=None, topic=None, ref=None, within=PATIENCE, where=None):
        """Takes the first message that fits out of what came; those before it stay."""
        def fits(message):
            return ((event is None or message.event == event) and (topic is None or message.topic == topic)
                    and (ref is None or message.ref == ref) and (where is None or where(message)))
        try:
            async with patience(within):
                while True:
                    for index, message in enumerate(self.messages):
                        if fits(message):
                            return self.messages.pop(index)
                    if self.closed:
                        raise self.closed
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(
                f"no {event or 'message'} (ref {ref}) within {within} s; came: {[m.raw[:300] for m in self.messages]}") from None

    async def end(self, within=PATIENCE):
        """Waits until the server ends the connection. What it said."""
        async with patience(within):
            await self._task
        return self.closed

    async def settled(self):
        """All that the hub had to say to this client before this call is in `messages` when it returns.

        A heartbeat's answer is the last in the line of this socket.
        """
        ref = self.ref()
        self.push("phoenix", "heartbeat", {}, ref=ref)
        await self.next("phx_reply", "phoenix", ref)
        return self.messages

    # Sending

    def ref(self):
        self._refs += 1
        return str(self._refs)

    def send_text(self, text):
        self.socket.send(TEXT, text)

    def send_binary(self, data):
        self.socket.send(BINARY, data)

    def push(self, topic, event, payload, ref=None, join_ref=None):
        if self.version == 1:
            frame = {"topic": topic, "event": event, "payload": payload, "ref": ref, "join_ref": join_ref}
        else:
            frame = [join_ref, ref, topic, event, payload]
        self.send_text(json.dumps(frame))

    async def ask(self, topic, event, payload, join_ref=None, within=PATIENCE):
        """Pushes and waits for the reply."""
        ref = self.ref()
        self.push(topic, event, payload, ref, join_ref)
        return await self.next("phx_reply", topic, ref, within)

    async def join(self, topic, changes=None, config=None, within=PATIENCE, **extra):
        """A join that must succeed; the ref it has, and its reply's response."""
        ref = self.ref()
        config = {**(config or {}), **({"postgres_changes": changes} if changes else {})}
        self.push(topic, "phx_join", {"config": config, **extra}, ref, ref)
        reply = await self.next("phx_reply", topic, ref, within)
        assert reply.payload["status"] == "ok", reply
        return ref, reply.payload["response"]

    async def watch(self, topic, *changes, **options):
        """Joins for row changes and waits for the word that they flow."""
        joined = await self.join(topic, list(changes), **options)
        system = await self.next("system", topic)
        assert system.payload["status"] == "ok", system.payload
        return joined
