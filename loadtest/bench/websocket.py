"""WebSockets as clients of the hub speak them (RFC 6455), by hand: what a library would use of the machine, the hub would lack.

The functions make and take bytes and know no socket; `fleet.py` and the stress run build on them. `Connection` is one blocking
socket."""

import collections
import json
import socket

from programs import BenchError

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
VERSION_1, VERSION_2 = "1.0.0", "2.0.0"
#: A mask of zeros, which RFC 6455 leaves to the client: the payload stays as it is, and masking costs nothing.
NO_MASK = bytes(4)


def upgrade(port, token, version=VERSION_2):
    """The request that opens a WebSocket at the hub."""
    return (f"GET /realtime/v1/websocket?vsn={version}&apikey={token} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n").encode()


def frame(opcode, payload, mask=NO_MASK):
    """One frame of a client."""
    size = len(payload)
    if size < 126:
        head = bytes([0x80 | opcode, 0x80 | size])
    elif size < 1 << 16:
        head = bytes([0x80 | opcode, 0xFE]) + size.to_bytes(2, "big")
    else:
        head = bytes([0x80 | opcode, 0xFF]) + size.to_bytes(8, "big")
    if mask == NO_MASK:
        return head + mask + payload
    pattern = (mask * (size // 4 + 1))[:size]
    return head + mask + (int.from_bytes(payload, "big") ^ int.from_bytes(pattern, "big")).to_bytes(size, "big")


def frames(data, start=0, end=None):
    """The complete frames of a server in `data`: the opcode, and where the payload begins and ends. The hub never
    fragments; what stands behind the last of them is the beginning of a frame whose end has not come yet."""
    end = len(data) if end is None else end
    while end - start >= 2:
        size, begin = data[start + 1] & 0x7F, start + 2
        if size > 125:
            begin += 2 if size == 126 else 8
            size = int.from_bytes(data[start + 2:begin], "big")
        if end < begin + size:
            return
        yield data[start] & 0x0F, begin, begin + size
        start = begin + size


def message(topic, event, payload, ref="1", join_ref="1", version=VERSION_2):
    """A message of the Realtime protocol, as a frame."""
    fields = ([join_ref, ref, topic, event, payload] if version == VERSION_2 else
              {"topic": topic, "event": event, "payload": payload, "ref": ref, "join_ref": join_ref})
    return frame(TEXT, json.dumps(fields).encode())


class Connection:
    """One WebSocket that blocks; open when it is made. `receive_buffer` is the kernel's, in bytes."""

    def __init__(self, port, token, version=VERSION_2, receive_buffer=None):
        self.version, self.rest, self.received = version, b"", collections.deque()
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(120)
        self.socket.connect(("127.0.0.1", port))
        self.socket.sendall(upgrade(port, token, version))
        head = self.wait_for(b"\r\n\r\n")
        if b" 101 " not in head[:20]:
            raise BenchError(f"the hub refused a WebSocket: {head[:40].decode('latin-1')}")

    def push(self, topic, event, payload, ref="1", join_ref="1"):
        self.socket.sendall(message(topic, event, payload, ref, join_ref, self.version))

    def wait_for(self, wanted, times=1):
        """All bytes that came until these were among them so often."""
        seen = b""
        while seen.count(wanted) < times:
            seen += self._some()
        return seen

    def receive(self):
        """The next message, decoded."""
        while not self.received:
            data, position = self.rest + self._some(), 0
            for opcode, begin, position in frames(data):
                if opcode == TEXT:
                    self.received.append(data[begin:position])
                elif opcode == PING:
                    # The hub sends what was missed, and rows, no faster than its pings are answered.
                    self.socket.sendall(frame(PONG, data[begin:position]))
                elif opcode == CLOSE:
                    raise BenchError("the hub closed a socket")
            self.rest = data[position:]
        return json.loads(self.received.popleft())

    def close(self):
        self.socket.close()

    def _some(self):
        try:
            data = self.socket.recv(1 << 18)
        except TimeoutError:
            raise BenchError("the hub did not answer within two minutes") from None
        if not data:
            raise BenchError("the hub closed a socket")
        return data
