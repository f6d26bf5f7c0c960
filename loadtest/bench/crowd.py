"""Subscribers with tokens of their own, of whom nobody is expected to receive much."""

import base64
import hashlib
import hmac
import json
import os
import socket
import time

from hub import SECRET
from programs import BenchError


def token(subject):
    """As the hub's configuration verifies it."""
    def encoded(data):
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
    now = int(time.time())
    claims = {"role": "authenticated", "sub": subject, "iat": now, "exp": now + 86400}
    text = ".".join(encoded(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, claims))
    return f"{text}.{encoded(hmac.new(SECRET.encode(), text.encode(), hashlib.sha256).digest())}"


class Subscriber:
    """One WebSocket that is told of every row of public.messages its user may see. The join is done when it is made."""

    def __init__(self, port, subject):
        self.connection = socket.create_connection(("127.0.0.1", port))
        self.connection.settimeout(120)
        self.file = self.connection.makefile("rb")
        self.connection.sendall(
            f"GET /realtime/v1/websocket?vsn=2.0.0&apikey={token(subject)} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode())
        if b" 101 " not in self.file.readline():
            raise BenchError("the hub refused a WebSocket")
        while self.file.readline().strip():
            pass
        self._send(["1", "1", "realtime:all", "phx_join", {"config": {"postgres_changes": [
            {"event": "INSERT", "schema": "public", "table": "messages"}]}}])
        while True:
            frame = self.next()
            if frame[3] == "system":
                break
        if frame[4]["status"] != "ok":
            raise BenchError(f"the hub refused a subscription: {frame[4]['message']}")

    def _send(self, frame):
        payload = json.dumps(frame).encode()
        length = len(payload)
        head = bytes([0x81, 0x80 | length]) if length < 126 else bytes([0x81, 0xFE]) + length.to_bytes(2, "big")
        mask = os.urandom(4)
        self.connection.sendall(head + mask + bytes(byte ^ mask[n % 4] for n, byte in enumerate(payload)))

    def next(self):
        """The next message."""
        while True:
            head = self.file.read(2)
            if len(head) < 2 or head[0] & 0x0F == 8:
                raise BenchError("the hub closed a socket")
            length = head[1] & 0x7F
            if length > 125:
                length = int.from_bytes(self.file.read(2 if length == 126 else 8), "big")
            payload = self.file.read(length)
            if head[0] & 0x0F == 1:
                return json.loads(payload)

    def take(self, count):
        """Waits for so many rows."""
        while count:
            count -= self.next()[3] == "postgres_changes"

    def heartbeat(self):
        self._send([None, "2", "phoenix", "heartbeat", {}])
