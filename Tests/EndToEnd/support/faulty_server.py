"""A Phoenix server that hands broadcasts on wrongly, to see whether a client notices."""

import asyncio
import base64
import hashlib
import json
import struct

MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def frame(text):
    payload = text.encode()
    head = bytes([0x81, len(payload)]) if len(payload) < 126 else b"\x81\x7e" + struct.pack(">H", len(payload))
    return head + payload


class FaultyServer:
    """`deliver(server, number, text, is_own)` says which texts a listener is sent in place of the message `number` of a
    topic; `is_own` tells whether it has joined that topic."""

    def __init__(self, deliver):
        self.deliver = deliver
        self.listeners = []
        self.held = {}
        self.numbers = {}

    async def __aenter__(self):
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self.server.close()

    @property
    def url(self):
        return f"ws://127.0.0.1:{self.port}/realtime/v1/websocket"

    async def _serve(self, reader, writer):
        try:
            await self._upgrade(reader, writer)
            while True:
                await self._take(json.loads(await self._message(reader)), writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.listeners = [listener for listener in self.listeners if listener[1] is not writer]
            writer.close()

    async def _upgrade(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        key = next(line.split(": ")[1] for line in head.split("\r\n") if line.startswith("Sec-WebSocket-Key"))
        accept = base64.b64encode(hashlib.sha1((key + MAGIC).encode()).digest()).decode()
        writer.write(("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                      f"Sec-WebSocket-Accept: {accept}\r\n\r\n").encode())

    async def _message(self, reader):
        while True:
            first, second = await reader.readexactly(2)
            size = second & 127
            if size == 126:
                size = struct.unpack(">H", await reader.readexactly(2))[0]
            mask = await reader.readexactly(4)
            payload = bytes(byte ^ mask[index & 3] for index, byte in enumerate(await reader.readexactly(size)))
            if first & 15 == 1:
                return payload
            if first & 15 == 8:
                raise ConnectionError

    async def _take(self, message, writer):
        join_ref, ref, topic, event, payload = message
        if event == "phx_join":
            self.listeners.append((topic, writer))
            response = {"status": "ok", "response": {"postgres_changes": []}}
            writer.write(frame(json.dumps([join_ref, ref, topic, "phx_reply", response])))
        elif event == "broadcast":
            number = self.numbers[topic] = self.numbers.get(topic, -1) + 1
            text = json.dumps([None, None, topic, "broadcast", payload])
            for listener_topic, listener in self.listeners:
                if listener is writer:
                    continue
                for each in self.deliver(self, number, text, topic == listener_topic):
                    listener.write(frame(each))
