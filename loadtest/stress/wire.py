"""One WebSocket as a transport: text frames in and out, pings answered, and every way to lose it."""

import asyncio
import os
import socket
import struct

from websocket import CLOSE, PING, PONG, TEXT, frame, frames, upgrade


class Wire(asyncio.Protocol):
    """Calls `opened()`, `took(text)`, `ponged()` and `lost(reason)` of its owner; `lost` once, and nothing behind it.

    Nothing is read while it is paused: a client that hangs keeps its bytes in the kernel, unread, as a real one does.
    """

    def __init__(self, owner, request):
        self.owner, self.request = owner, request
        self.transport = None
        self._buffer = bytearray()
        self._upgraded = False
        self._reason = "cut"
        self._pace = None  # bytes a second

    @classmethod
    async def open(cls, owner, port, token, version):
        request = upgrade(port, token, version)
        _, wire = await asyncio.get_running_loop().create_connection(lambda: cls(owner, request), "127.0.0.1", port)
        return wire

    # Losing it

    def forget(self):
        """The owner has given up on it; it is told nothing any more."""
        self.owner = None

    def reset(self):
        """An RST, and what was not read is gone: the client died, or its network did."""
        # The hub may have ended it long ago.
        if self.transport and self.transport.get_extra_info("socket").fileno() >= 0:
            # A timeout of zero makes close(2) reset the connection (socket(7), SO_LINGER).
            self.transport.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.transport.abort()

    def close(self, code=1000):
        if self.transport and not self.transport.is_closing():
            self._send(CLOSE, struct.pack(">H", code))
            self.transport.close()

    def slow_down(self, pace):
        """From here on no more than so many bytes are read in a second; None ends it."""
        self._pace = pace

    def pause(self):
        if self.transport and not self.transport.is_closing():
            self.transport.pause_reading()

    def resume(self):
        if self.transport and not self.transport.is_closing():
            self.transport.resume_reading()

    # Sending

    def send(self, text):
        self._send(TEXT, text.encode())

    def ping(self):
        self._send(PING, b"")

    def _send(self, opcode, payload):
        if self.transport and not self.transport.is_closing():
            self.transport.write(frame(opcode, payload, mask=os.urandom(4)))

    # asyncio.Protocol

    def connection_made(self, transport):
        self.transport = transport
        transport.write(self.request)

    def connection_lost(self, error):
        if self.owner:
            self.owner.lost(self._reason if error is None else f"{type(error).__name__}")

    def data_received(self, data):
        if self._pace:
            self.pause()
            asyncio.get_running_loop().call_later(len(data) / self._pace, self.resume)
        self._buffer += data
        if not self._upgraded and not self._upgrade():
            return
        position = 0
        for opcode, begin, end in frames(self._buffer):
            if not self.owner:
                break
            position = end
            self._take(opcode, bytes(self._buffer[begin:end]))
        del self._buffer[:position]

    def _upgrade(self):
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return False
        status = bytes(self._buffer[:end]).split(b"\r\n")[0].decode("latin-1")
        if " 101 " not in status:
            self._reason = f"refused: {status}"
            self.transport.abort()
            return False
        del self._buffer[:end + 4]
        self._upgraded = True
        self.owner.opened()
        return True

    def _take(self, opcode, payload):
        if opcode == TEXT:
            self.owner.took(payload)
        elif opcode == PING:
            self._send(PONG, payload)
        elif opcode == PONG:
            self.owner.ponged()
        elif opcode == CLOSE:
            code = int.from_bytes(payload[:2], "big") if len(payload) >= 2 else None
            self._reason = f"closed {code} {payload[2:].decode(errors='replace')}".strip()
            self._send(CLOSE, payload)
            self.transport.close()
