"""Requests that are made to be read in two ways: the hub refuses them, or reads them as everybody does.

docs/threat-model.md says why. What is sent here goes to the hub itself and, further down, through proxies that keep
connections to it and send several clients' requests over one.
"""

import asyncio
import random

import pytest

from support.smuggling import CANDIDATES, Answer, answers, as_h11, as_llhttp, marker, post
from support.tokens import token
from support.websocket import WebSocket
from support.wsclient import Client, UserBroadcast

#: Not the address of the other tests: the hub slows down who keeps failing.
SOURCE = "127.0.0.5"


async def exchange(port, data, within=5, half_close=False):
    """Sends data on a connection of its own; what was said until the server closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(SOURCE, 0))
    said = b""
    try:
        writer.write(data)
        if half_close:
            writer.write_eof()
        async with asyncio.timeout(within):
            while piece := await reader.read(65536):
                said += piece
    except TimeoutError:
        raise AssertionError(f"the server neither answered all nor closed; it said {said!r}") from None
    except ConnectionError:
        pass
    finally:
        writer.close()
    return said


class Listener:
    """Hears what was broadcast on a topic, in order."""

    def __init__(self, client, topic):
        self.client, self.topic = client, topic

    @classmethod
    async def join(cls, port, name):
        client = await Client.connect(port)
        await client.join(f"realtime:{name}")
        return cls(client, name)

    async def heard(self):
        """What came since the last call: events and their bytes."""
        await self.client.settled()
        came = [m.payload for m in self.client.messages if isinstance(m.payload, UserBroadcast)]
        self.client.messages.clear()
        return [(user.event, user.payload) for user in came]


@pytest.fixture
async def listener(hub, name):
    listener = await Listener.join(hub.port, name)
    yield listener
    await listener.client.close()


def broadcasts(requests):
    return [(request.event, request.body) for request in requests if request.event]


async def test_the_table(hub, listener):
    mine = token()
    hidden = post(listener.topic, "hidden", mine, ["Content-Length: 3"], b"abc")
    wrong = []
    for candidate in CANDIDATES:
        data = candidate.bytes(listener.topic, mine, hidden) + marker(listener.topic, mine)
        try:
            said = answers(await exchange(hub.port, data))
        except AssertionError as fault:
            said = [Answer(0, {}, str(fault).encode())]
        heard = await listener.heard()
        if fault := _fault(candidate, said, heard, data):
            wrong.append(f"{candidate}: {fault}; answers {[(a.status, a.body[:80]) for a in said]}, heard {heard}")
    assert not wrong, f"{len(wrong)} of {len(CANDIDATES)} candidates:\n" + "\n".join(wrong)


def _fault(candidate, said, heard, data):
    """What is wrong with the hub's reading, or None."""
    if not said or not said[-1].closes:
        return "the connection was not closed by an answer that says so"
    if not candidate.taken:
        if len(said) != 1 or not said[0].refuses or heard:
            return "it is to be refused, and nothing behind it is to be read"
        if said[0].status not in (400, 505) or not said[0].body:
            return "it is to be refused as malformed, with a sentence"
        return None
    for name, requests in {"h11": as_h11(data), "llhttp": as_llhttp(data)}.items():
        if heard != broadcasts(requests) or [a.status == 202 for a in said] != [r.event is not None for r in requests]:
            return f"{name} reads {requests}"
    return None


# Damaged heads.

#: A reader that goes astray takes the hidden request for one of its own.
_PROBE = b"OPTIONS /api/broadcast HTTP/1.1\r\nHost: hub.test\r\n\r\n"

_HEADS = [
    b"GET /none HTTP/1.1\r\nHost: hub.test\r\nAccept: */*\r\n\r\n",
    b"POST /none HTTP/1.1\r\nHost: hub.test\r\nX-Auth: a\r\nContent-Length: %d\r\n\r\n%s" % (len(_PROBE), _PROBE),
    b"POST /none HTTP/1.1\r\nContent-Length: %d\r\nHost: hub.test\r\n\r\n%s" % (len(_PROBE), _PROBE),
    b"DELETE /none?a=b HTTP/1.1\r\nHost: hub.test\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (
        len(_PROBE), _PROBE),
    b"PUT http://hub.test/none HTTP/1.1\r\nHost: hub.test\r\nTransfer-Encoding: chunked\r\nA: b\r\n\r\n0\r\nA: b\r\n\r\n",
    b"POST /none HTTP/1.1\r\nHost: hub.test\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n",
]

_PIECES = [
    b"\r\n", b"\n", b"\r", b"\r\n\r\n", b"\r\n ", b" ", b"\t", b":", b"\0", b"\xff", b"\xc3\xa4", b";", b",", b"0", b"1", b"+", b"-",
    b"0x", b"X: ", b"X-Auth: a\r\n", b"Content-Length: 5\r\n", b"Content-Length:", b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding", b"chunked", b"identity", b"Host: a\r\n", b"HTTP/1.0", b"HTTP/1.1", b"/", b"?", b"#", b"%", b"0\r\n\r\n",
    b"Connection: close\r\n", b"Expect: 100-continue\r\n",
]


def _damaged(numbers):
    data = bytearray(numbers.choice(_HEADS))
    for _ in range(numbers.choice((1, 1, 1, 2, 3))):
        # Mostly in the head, where a reader makes up its mind.
        at = numbers.randrange(len(data) + 1) if numbers.random() < 0.2 else numbers.randrange(min(len(data), 110))
        match numbers.randrange(5):
            case 0: data[at:at + 1] = bytes([numbers.randrange(256)])
            case 1: del data[at:at + numbers.randrange(1, 8)]
            case 2: data[at:at] = data[at:at + numbers.randrange(1, 30)]
            case 3: data[at:at + numbers.randrange(4)] = numbers.choice(_PIECES)
            case _: data[at:at] = numbers.choice(_PIECES)
    return bytes(data)


async def test_damaged_heads(hub):
    """What the hub takes, h11 takes, with the same end: both find the probe behind it, and no other."""
    numbers = random.Random(17)
    rest = [_damaged(numbers) for _ in range(2_000)]
    connections = taken = 0
    while rest:
        batch = rest[:20]
        data = b"".join(head + _PROBE for head in batch)
        # A request that is never complete is ended by the end of what comes.
        said = [answer for answer in answers(await exchange(hub.port, data, half_close=True)) if answer.status >= 200]
        refused = bool(said) and said[-1].refuses
        took = said[:-1] if refused else said
        opinion = as_h11(data, most=len(took))
        # A probe is answered with 204, and nothing else is.
        probes = [answer.status == 204 for answer in took]
        assert probes == [request.method == "OPTIONS" and request.target == "/api/broadcast" for request in opinion], (
            f"{data!r}: answers {[(a.status, a.body) for a in said]}, h11 {opinion}")
        # The next connection begins with the head behind the one that ended this.
        del rest[:min(sum(probes) + 1, len(batch))]
        taken += len(took)
        connections += 1
    assert connections > 100 and taken > 1_000, "heads are refused, and heads are taken"


# Upgrades.

async def test_no_line_of_an_upgrade_is_swallowed(hub):
    """An unknown header stands before each that counts."""
    for name in ("X", "X-Auth", "Sec", "Sec-WebSocket", "C", "Up", "Ho", "A"):
        for before in ("Host", "Upgrade", "Connection", "Sec-WebSocket-Key", "Sec-WebSocket-Version"):
            lines = {"Host": "hub.test", "Upgrade": "websocket", "Connection": "Upgrade",
                     "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version": "13"}
            text = "".join((f"{name}: a\r\n" if key == before else "") + f"{key}: {value}\r\n" for key, value in lines.items())
            reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
            writer.write(f"GET /realtime/v1/websocket?apikey={token()} HTTP/1.1\r\n{text}\r\n".encode())
            async with asyncio.timeout(5):
                head = await reader.readuntil(b"\r\n\r\n")
            # Of RFC 6455, section 1.3.
            assert head.startswith(b"HTTP/1.1 101 ") and b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head, f"{name} before {before}: {head}"
            writer.close()
