"""Streams over HTTP, by hand."""

import itertools

from support.deadline import PATIENCE
from support.tokens import token

_numbers = itertools.count(1)


def new_name():
    return f"reply/{next(_numbers)}"


def bearer(role="service_role", **claims):
    return {"authorization": f"Bearer {token(role, **claims)}"}


class Stream:
    """One stream, spoken to by one connection and one token."""

    def __init__(self, http, name=None, **headers):
        self.http, self.name, self.headers = http, name or new_name(), headers or bearer()

    @property
    def path(self):
        return f"/streams/{self.name}"

    async def create(self, content_type="text/plain", body=b"", **headers):
        return await self.http.request(
            "PUT", self.path, body, content_type=content_type, **self.headers, **headers)

    async def append(self, body, content_type="text/plain", **headers):
        return await self.http.request(
            "POST", self.path, body, content_type=content_type, **self.headers, **headers)

    async def close(self, **headers):
        return await self.http.request("POST", self.path, None, stream_closed="true", **self.headers, **headers)

    async def cancel(self, **headers):
        return await self.http.request("POST", self.path + "/cancel", None, **self.headers, **headers)

    async def read(self, query="", within=PATIENCE, **headers):
        return await self.http.request("GET", self.path + query, None, within=within, **self.headers, **headers)

    async def head(self):
        return await self.http.request("HEAD", self.path, None, **self.headers)

    async def delete(self, **headers):
        return await self.http.request("DELETE", self.path, None, **self.headers, **headers)


class Upload:
    """A request whose body is written in chunks."""

    def __init__(self, connection, stream, content_type="text/plain", **headers):
        self.connection = connection
        fields = {**bearer(), "host": "a", "content-type": content_type, "transfer-encoding": "chunked", **headers}
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
        connection.write(f"POST {stream.path} HTTP/1.1\r\n{lines}\r\n".encode())

    def write(self, data):
        self.connection.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def end(self):
        self.connection.write(b"0\r\n\r\n")

    async def answer(self, within=PATIENCE):
        return await self.connection.answer(within)


def stamp(sequence, epoch=0, producer="writer"):
    return {"producer_id": producer, "producer_epoch": str(epoch), "producer_seq": str(sequence)}


class Offset(str):
    """So many bytes, whichever generation they are of."""

    def __eq__(self, other):
        return isinstance(other, str) and other.rpartition("_")[2] == str(self)

    __hash__ = str.__hash__


def byte_count(position):
    """Of the bytes before an offset."""
    return int(position.rpartition("_")[2])


def offset(number):
    return Offset(f"{number:016}")
