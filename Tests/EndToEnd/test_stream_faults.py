"""What happens to a stream's producers: nothing is there twice, and nothing is missing."""

import asyncio
import os
import random
import socket
import struct
import time

import pytest

from support.http import HTTPConnection
from support.streams import Stream, bearer, byte_count, offset, stamp

pytestmark = pytest.mark.anyio


class Producer:
    """Numbers its requests, as the protocol has it, and sends each until it is answered."""

    def __init__(self, port, name, rng):
        self.port, self.name, self.rng = port, name, rng
        self.epoch, self.sequence, self.said = 0, 0, b""
        self.http = None
        self.faults = {"reset": 0, "repeat": 0, "zombie": 0, "order": 0, "restart": 0}

    async def append(self, body, number, epoch=None):
        if self.http is None:
            self.http = await HTTPConnection.open(self.port)
        epoch = self.epoch if epoch is None else epoch
        return await Stream(self.http, self.name).append(body, **stamp(number, epoch))

    def lose(self):
        """The connection is gone, and what was sent by it may have been taken or not."""
        sock = self.http.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.http.writer.transport.abort()
        self.http = None

    async def say(self):
        body = self.rng.choice(["word ", "Grüße ", "🐦", f"{self.sequence} "]).encode()
        match self.rng.choice(["none", *self.faults]):
            case "reset":
                sending = asyncio.create_task(self.append(body, self.sequence))
                await asyncio.sleep(self.rng.random() * 0.004)
                if not sending.done():
                    sending.cancel()
                    await asyncio.gather(sending, return_exceptions=True)
                    if self.http:
                        self.lose()
                self.faults["reset"] += 1
            case "repeat":
                for _ in range(self.rng.randint(1, 3)):
                    assert (await self.append(body, self.sequence)).status in (200, 204)
                self.faults["repeat"] += 1
            case "order":
                answer = await self.append(b"too early", self.sequence + 2)
                assert answer.status == 409 and answer.headers["producer-expected-seq"] == str(self.sequence)
                self.faults["order"] += 1
            case "restart":
                # Another incarnation takes over, and the one before is a zombie from here on.
                self.epoch, self.sequence = self.epoch + 1, 0
                self.faults["restart"] += 1
            case "zombie" if self.epoch > 0 and self.sequence > 0:
                assert (await self.append(b"from the dead", 5, self.epoch - 1)).status == 403
                self.faults["zombie"] += 1
        answer = await self.append(body, self.sequence)
        assert answer.status in (200, 204), answer
        self.sequence += 1
        self.said += body


async def test_faults_of_producers_neither_repeat_nor_skip(hub, stream):
    faults = int(os.environ.get("ROOST_STREAM_FAULTS", "150"))
    producer = Producer(hub.port, stream.name, random.Random(11))
    while sum(producer.faults.values()) < faults:
        await producer.say()
    assert (await stream.read("?offset=-1")).body == producer.said[:1 << 20]
    assert byte_count((await stream.head()).headers["stream-next-offset"]) == len(producer.said)
    assert min(producer.faults.values()) > 0, producer.faults
    print(producer.faults)


@pytest.mark.clock
async def test_a_producer_is_told_of_a_cancel_in_the_middle_of_its_request(hub, http):
    rounds = int(os.environ.get("ROOST_STREAM_TOLD", "10"))
    took = []
    for _ in range(rounds):
        stream = Stream(http)
        await stream.create()
        producer = await HTTPConnection.open(hub.port)
        head = "".join(f"{name}: {value}\r\n" for name, value in bearer().items())
        producer.writer.write(
            f"POST {stream.path} HTTP/1.1\r\nhost: a\r\n{head}content-type: text/plain\r\n"
            f"transfer-encoding: chunked\r\n\r\n5\r\nHello\r\n".encode())
        while byte_count((await stream.head()).headers["stream-next-offset"]) < 5:
            pass
        start = time.monotonic()
        fence = (await stream.cancel()).headers["stream-next-offset"]
        answer = await producer.answer()
        took.append((time.monotonic() - start) * 1000)
        assert answer.status == 409 and answer.headers["stream-next-offset"] == fence == offset(5)
        producer.writer.close()
    took.sort()
    print(f"told after {took[len(took) // 2]:.1f} ms (median), {took[len(took) * 99 // 100]:.1f} ms (p99)")
