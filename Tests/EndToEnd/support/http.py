"""HTTP by hand, on one connection that is kept."""

import asyncio
import json

from support.deadline import PATIENCE, patience
from support.ports import trust_of
from support.websocket import response


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)


class HTTPConnection:
    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self._gathered = b""
        self._address = None

    @classmethod
    async def open(cls, port, source=None, tls=None):
        address = {"port": port, "local_addr": (source, 0) if source else None, "ssl": tls or trust_of(port)}
        connection = cls(*await asyncio.open_connection("127.0.0.1", **address))
        connection._address = address
        return connection

    async def open_again(self):
        """One that the hub has closed meanwhile, as nothing was asked by it for long: a page takes seconds to open."""
        self.writer.close()
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", **self._address)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        self.writer.close()

    def write(self, data):
        self.writer.write(data)

    def gather(self, data):
        """Keeps data for `flush`, which sends all of it in one piece."""
        self._gathered += data

    def flush(self):
        self.writer.write(self._gathered)
        self._gathered = b""

    async def request(self, method, path, body=None, within=PATIENCE, **headers):
        """Header names are written with underscores; None leaves a header out."""
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        wanted = {"host": "127.0.0.1", "content_length": None if body is None else str(len(body)), **headers}
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in wanted.items() if value is not None]
        self.write("\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode() + (body or b""))
        return await self.answer(within, has_body=method != "HEAD")

    async def answer(self, within=PATIENCE, has_body=True):
        async with patience(within):
            status, headers = await response(self.reader)
            size = int(headers.get("content-length", 0)) if has_body and status not in (204, 304) else 0
            return Answer(status, headers, await self.reader.readexactly(size))

    async def ended(self, within=PATIENCE):
        """What else comes until the server closes."""
        async with patience(within):
            try:
                return await self.reader.read(-1)
            except ConnectionError:
                return b""
