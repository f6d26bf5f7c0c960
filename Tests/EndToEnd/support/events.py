"""Server-sent events by hand (WHATWG HTML, section 9.2), over HTTP/1.1 in chunks or over HTTP/1.0."""

import asyncio
import collections
import json
import zlib

from support.deadline import PATIENCE, patience
from support.ports import trust_of
from support.websocket import response

Event = collections.namedtuple("Event", "name data id")


class Broken(Exception):
    """The answer ended without its last chunk."""


class EventReader:
    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.status = self.headers = self.id = self.retry = None
        self.comments = 0
        self.unpack = lambda piece: piece
        self._text = b""

    @classmethod
    async def open(cls, port, path, version="1.1", within=PATIENCE, method="GET", body=None, buffer=None, **headers):
        sock = None
        if buffer:
            import socket
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
            sock.setblocking(False)
            await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
        tls = trust_of(port)
        events = cls(*await (
            asyncio.open_connection(sock=sock, limit=4096, ssl=tls, server_hostname="127.0.0.1" if tls else None) if sock
            else asyncio.open_connection("127.0.0.1", port, ssl=tls)))
        if body is not None:
            headers["content_length"] = str(len(body))
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in {"host": "127.0.0.1", **headers}.items()]
        events.writer.write("\r\n".join([f"{method} {path} HTTP/{version}", *lines, "", ""]).encode() + (body or b""))
        async with patience(within):
            events.status, events.headers = await response(events.reader)
        events.is_chunked = events.headers.get("transfer-encoding") == "chunked"
        if events.headers.get("content-encoding") == "gzip":
            events.unpack = zlib.decompressobj(31).decompress
        return events

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        self.close()

    def close(self):
        self.writer.close()

    async def _more(self):
        """False at the end of the answer."""
        if not self.is_chunked:
            piece = await self.reader.read(65_536)
            self._text += self.unpack(piece)
            return bool(piece)
        try:
            size = int(await self.reader.readuntil(b"\r\n"), 16)
            piece = await self.reader.readexactly(size + 2)
        except asyncio.IncompleteReadError as error:
            raise Broken from error
        assert piece.endswith(b"\r\n")
        self._text += self.unpack(piece[:-2])
        return size > 0

    async def next(self, within=PATIENCE):
        """The next event; None at the end of the answer."""
        async with patience(within):
            while True:
                while b"\n\n" not in self._text:
                    if not await self._more():
                        assert self._text == b"", "an answer ends between events"
                        return None
                block, self._text = self._text.split(b"\n\n", 1)
                name, data = "message", []
                for line in block.decode().split("\n"):
                    field, _, value = line.partition(":")
                    value = value.removeprefix(" ")
                    match field:
                        case "event": name = value
                        case "data": data.append(value)
                        case "id": self.id = value
                        case "retry": self.retry = int(value)
                        case "": self.comments += 1
                if data:
                    return Event(name, "\n".join(data), self.id)

    async def json(self, within=PATIENCE):
        event = await self.next(within)
        return event and (event.name, json.loads(event.data))

    async def body(self, within=PATIENCE):
        """What an answer that is no stream of events says."""
        async with patience(within):
            return await self.reader.readexactly(int(self.headers["content-length"]))
