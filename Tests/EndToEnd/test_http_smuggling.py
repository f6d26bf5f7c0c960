"""Requests that are made to be read in two ways: the hub refuses them, or reads them as everybody does.

test_http_proxies.py sends them through proxies, beside somebody else's.
"""

import asyncio
import random

from support.deadline import PATIENCE, eventually
from support.smuggling import CANDIDATES, Answer, answers, as_h11, as_llhttp, post
from support.tokens import token
from support.wsclient import UserBroadcast

#: Not the address of the other tests: the hub slows down who keeps failing.
SOURCE = "127.0.0.5"


async def exchange(port, data, within=PATIENCE, half_close=False):
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


def heard_by(client):
    """What came of raw broadcasts: events and their bytes."""
    return [(m.payload.event, m.payload.payload) for m in client.messages if isinstance(m.payload, UserBroadcast)]


async def test_the_table(hub, connect, name):
    """Each is followed by a request that tells whether the reader found where that begins."""
    client, mine = await connect(), token()
    await client.join(f"realtime:{name}")
    sent, said = [], []
    for number, candidate in enumerate(CANDIDATES):
        hidden = post(name, f"hidden_{number}", mine, ["Content-Length: 3"], b"abc")
        data = candidate.bytes(name, mine, hidden, f"outer_{number}") + post(
            name, f"marker_{number}", mine, ["Connection: close", "Content-Length: 6"], b"marker")
        sent.append(data)
        try:
            said.append(answers(await exchange(hub.port, data)))
        except AssertionError as fault:
            said.append([Answer(0, {}, str(fault).encode())])
    # By several connections, so that each of the hub's loops has nothing left to say.
    lasts = [f"last_{n}" for n in range(16)]
    for event in lasts:
        await exchange(hub.port, post(name, event, mine, ["Connection: close", "Content-Length: 0"]))
    await eventually(lambda: set(lasts) <= {event for event, _ in heard_by(client)}, what="the last broadcasts")
    heard = heard_by(client)
    wrong = []
    for number, candidate in enumerate(CANDIDATES):
        mine = [(event, body) for event, body in heard if event.rpartition("_")[2] == str(number) and event not in lasts]
        if fault := _fault(candidate, sent[number], said[number], mine):
            answered = [(answer.status, answer.body[:80]) for answer in said[number]]
            wrong.append(f"{candidate}: {fault}; answers {answered}, heard {mine}")
    assert not wrong, f"{len(wrong)} of {len(CANDIDATES)} candidates:\n" + "\n".join(wrong)


def _fault(candidate, sent, said, heard):
    """What is wrong with the hub's reading, or None."""
    if not said or not said[-1].closes:
        return "the connection was not closed by an answer that says so"
    if not candidate.taken:
        if len(said) != 1 or not said[0].refuses or heard:
            return "it is to be refused, and nothing behind it is to be read"
        if said[0].status not in (400, 505) or not said[0].body:
            return "it is to be refused as malformed, with a sentence"
        return None
    for name, requests in {"h11": as_h11(sent), "llhttp": as_llhttp(sent)}.items():
        broadcasts = [(request.event, request.body) for request in requests if request.event]
        if heard != broadcasts or [a.status == 202 for a in said] != [r.event is not None for r in requests]:
            return f"{name} reads {requests}"
    return None


# Damaged heads.

#: A reader that goes astray takes the hidden request for one of its own.
_PROBE = b"OPTIONS /api/broadcast HTTP/1.1\r\nHost: hub.test\r\n\r\n"


def _head(first, *lines, body=b""):
    lines = [first, "Host: hub.test", *lines, "Authorization: Bearer TOKEN", "Content-Type: application/octet-stream", "", ""]
    return "\r\n".join(lines).encode() + body


_LENGTH, _CHUNKED, _PATH = f"Content-Length: {len(_PROBE)}", "Transfer-Encoding: chunked", "/api/broadcast/t/events/e"
_CHUNK = b"%x\r\n%s\r\n" % (len(_PROBE), _PROBE)
_HEADS = [
    _head("GET /none?a=b HTTP/1.1", "Accept: */*"),
    _head("DELETE /none HTTP/1.1", _LENGTH, body=_PROBE),
    _head(f"POST {_PATH} HTTP/1.1", "X-Auth: a", _LENGTH, body=_PROBE),
    _head(f"POST {_PATH} HTTP/1.1", _LENGTH, "Connection: keep-alive", body=_PROBE),
    _head(f"POST {_PATH} HTTP/1.1", "Content-Length: 0"),
    _head(f"POST {_PATH} HTTP/1.1", _CHUNKED, body=_CHUNK + b"0\r\n\r\n"),
    _head(f"POST http://hub.test{_PATH} HTTP/1.1", "X: a", _CHUNKED,
          body=b"5;a=b\r\nhello\r\n" + _CHUNK + b"0\r\nA: b\r\n\r\n"),
]

_PIECES = [
    b"\r\n", b"\n", b"\r", b"\r\n\r\n", b"\r\n ", b" ", b"\t", b":", b"\0", b"\xff", b"\xc3\xa4", b";", b",", b"0", b"1",
    b"+", b"-", b"0x", b"X: ", b"X-Auth: a\r\n", b"Content-Length: 5\r\n", b"Content-Length:", b"Transfer-Encoding",
    b"Transfer-Encoding: chunked\r\n", b"chunked", b"identity", b"Host: a\r\n", b"HTTP/1.0", b"HTTP/1.1", b"/", b"?", b"#",
    b"%", b"0\r\n\r\n", b"Connection: close\r\n", b"Expect: 100-continue\r\n",
]


def _damaged(numbers, mine):
    data = bytearray(numbers.choice(_HEADS))
    for _ in range(numbers.choice((1, 1, 1, 2, 3))):
        # Mostly in the head, where a reader makes up its mind.
        at = numbers.randrange(len(data) + 1) if numbers.random() < 0.4 else numbers.randrange(min(len(data), 110))
        match numbers.randrange(5):
            case 0: data[at:at + 1] = bytes([numbers.randrange(256)])
            case 1: del data[at:at + numbers.randrange(1, 8)]
            case 2: data[at:at] = data[at:at + numbers.randrange(1, 30)]
            case 3: data[at:at + numbers.randrange(4)] = numbers.choice(_PIECES)
            case _: data[at:at] = numbers.choice(_PIECES)
    return bytes(data).replace(b"TOKEN", mine.encode())


async def test_damaged_heads(hub):
    """What the hub takes, h11 takes, with the same end: both find the probe behind it, and no other."""
    numbers, mine = random.Random(17), token()
    rest = [_damaged(numbers, mine) for _ in range(4_000)]
    connections = taken = 0
    while rest:
        batch = rest[:20]
        data = b"".join(head + _PROBE for head in batch)
        # A request that is never complete is ended by the end of what comes.
        said = [answer for answer in answers(await exchange(hub.port, data, half_close=True)) if answer.status >= 200]
        refused = bool(said) and said[-1].refuses
        took = said[:-1] if refused else said
        opinion = as_h11(data, most=len(took))
        # OPTIONS is answered with 204, and nothing else is.
        probes = [answer.status == 204 for answer in took]
        assert probes == [request.method == "OPTIONS" for request in opinion], (
            f"{data!r}: answers {[(a.status, a.body) for a in said]}, h11 {opinion}")
        # The next connection begins with the head behind the one that ended this.
        del rest[:min(sum(probes) + 1, len(batch))]
        taken += len(took)
        connections += 1
    assert connections > 1_000 and taken > 1_000, "heads are refused, and heads are taken"


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
            async with asyncio.timeout(30):
                head = await reader.readuntil(b"\r\n\r\n")
            # Of RFC 6455, section 1.3.
            accept = b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
            assert head.startswith(b"HTTP/1.1 101 ") and accept in head, f"{name} before {before}: {head}"
            writer.close()
