"""RFC 6455 by hand: a socket that can say exactly what a test wants, also what no library would."""

import asyncio
import base64
import contextlib
import os
import socket
import struct

from support.deadline import PATIENCE, patience
from support.ports import trust_of

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10

#: Seconds for which a hub that is to end a connection is waited for.
GOODBYE = 1


class Refused(Exception):
    """The upgrade was answered with something else."""

    def __init__(self, status, headers, body):
        super().__init__(f"{status} {body!r}")
        self.status, self.headers, self.body = status, headers, body


class Closed(Exception):
    """The server ended the connection; `code` is None where it sent no close frame."""

    def __init__(self, code, reason=""):
        super().__init__(f"{code} {reason}")
        self.code, self.reason = code, reason


def frame(opcode, payload, fin=True, reserved=0, masked=True):
    """A client's frame, well-formed by default."""
    if isinstance(payload, str):
        payload = payload.encode()
    head = bytes([(0x80 if fin else 0) | reserved << 4 | opcode])
    mask_bit, size = (0x80 if masked else 0), len(payload)
    if size < 126:
        head += bytes([mask_bit | size])
    elif size < 65536:
        head += struct.pack(">BH", mask_bit | 126, size)
    else:
        head += struct.pack(">BQ", mask_bit | 127, size)
    if not masked:
        return head + payload
    mask = os.urandom(4)
    repeated = int.from_bytes((mask * (size // 4 + 1))[:size], "big")
    return head + mask + (int.from_bytes(payload, "big") ^ repeated).to_bytes(size, "big")


async def response(reader):
    """The head of an HTTP response: status, headers."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    status = int(head[0].split(" ", 2)[1])
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    return status, headers


class WebSocket:
    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self._buffer = bytearray()
        self._position = 0
        self._is_closed = False
        self.pongs = 0

    @classmethod
    async def open(cls, port, path, headers=None, source=None, within=PATIENCE, receive_buffer=None, tls=None):
        """`source`: another address of the loopback, for those that are meant to be refused: the hub slows down
        addresses that keep failing, and that must not be ours. `receive_buffer`: bytes, for one that is full soon.
        `tls`: an ssl.SSLContext. A `port` that is a text is the path of a Unix domain socket; a pair is an address and a port."""
        tls = tls or trust_of(port)
        async with patience(within):
            is_unix = isinstance(port, str)
            plain = socket.socket(socket.AF_UNIX if is_unix else socket.AF_INET)
            plain.setblocking(False)
            if receive_buffer:
                plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            if source:
                plain.bind((source, 0))
            host, port = port if isinstance(port, tuple) else ("127.0.0.1", port)
            await asyncio.get_running_loop().sock_connect(plain, port if is_unix else (host, port))
            reader, writer = await asyncio.open_connection(
                sock=plain, limit=1 << 20, ssl=tls, server_hostname="127.0.0.1" if tls else None)
            wanted = {
                "Host": "localhost" if is_unix else f"{host}:{port}", "Upgrade": "websocket", "Connection": "Upgrade",
                "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(), "Sec-WebSocket-Version": "13",
                **(headers or {}),
            }
            lines = [f"{name}: {value}" for name, value in wanted.items() if value is not None]
            writer.write("\r\n".join([f"GET {path} HTTP/1.1", *lines, "", ""]).encode())
            status, answer = await response(reader)
            if status != 101:
                body = await reader.readexactly(int(answer.get("content-length", 0)))
                writer.close()
                raise Refused(status, answer, body)
            return cls(reader, writer)

    def send(self, opcode, payload, **form):
        self.writer.write(frame(opcode, payload, **form))

    def send_bytes(self, data):
        self.writer.write(data)

    async def receive(self):
        """The next data frame: opcode and payload. Answers pings by itself."""
        while True:
            opcode, payload = await self._frame()
            if opcode == PING:
                self.send(PONG, payload)
            elif opcode == PONG:
                self.pongs += 1
            elif opcode == CLOSE:
                self._is_closed = True
                code = int.from_bytes(payload[:2], "big") if len(payload) >= 2 else None
                raise Closed(code, payload[2:].decode(errors="replace"))
            else:
                return opcode, payload

    async def _frame(self):
        if self._position > 1 << 20:
            del self._buffer[:self._position]
            self._position = 0
        await self._need(2)
        start = self._position
        first, second = self._buffer[start], self._buffer[start + 1]
        assert second & 0x80 == 0, "a server's frame must not be masked"
        assert first & 0x80, "the hub never fragments"
        size, head = second & 0x7F, 2
        if size == 126:
            await self._need(4)
            size, head = int.from_bytes(self._buffer[start + 2:start + 4], "big"), 4
        elif size == 127:
            await self._need(10)
            size, head = int.from_bytes(self._buffer[start + 2:start + 10], "big"), 10
        await self._need(head + size)
        payload = bytes(self._buffer[start + head:start + head + size])
        self._position = start + head + size
        return first & 0x0F, payload

    async def _need(self, count):
        while len(self._buffer) - self._position < count:
            try:
                data = await self.reader.read(262144)
            except ConnectionError:
                data = b""
            if not data:
                raise Closed(None)
            self._buffer += data

    async def close(self):
        """A clean end: close frame, then the socket. The hub, unless it stands still, counts the socket no more; one that has closed it
        waits for the answer and for nothing behind it."""
        with contextlib.suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(GOODBYE):
                self.send(CLOSE, struct.pack(">H", 1000))
                await self.writer.drain()
                while not self._is_closed and await self.reader.read(262144):
                    pass
        self.writer.close()

    def abort(self):
        """No goodbye: an RST."""
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()
