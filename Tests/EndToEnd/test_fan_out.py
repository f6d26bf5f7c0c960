"""Busy channels: whatever goes on beside, every member gets every message once and in order: with io_uring, without, by TLS."""

import asyncio
import random

import pytest

from support.certificates import Authority
from support.deadline import eventually
from support.wsclient import Client

MEMBERS, BURSTS = 40, 60
ROOM, OTHER = "realtime:room", "realtime:other"


@pytest.fixture(params=["io_uring", "send", "tls"])
def hub(request, own_hub, tmp_path):
    if request.param == "tls":
        authority = Authority(tmp_path)
        own_hub.secure(authority.pair(), authority.trust)
    own_hub.environment |= {
        "ROOST_IO_URING": str(request.param == "io_uring").lower(), "ROOST_LOOPS": "1",
        "ROOST_LIMITS_PENDING_BYTES_PER_SOCKET": "67108864", "ROOST_LIMITS_MESSAGES_PER_SECOND": "0"}
    own_hub.start()
    return own_hub


async def flicker(member, dice):
    """Reads and does not, so that its socket is full now and then."""
    while True:
        member.socket.writer.transport.pause_reading()
        await asyncio.sleep(dice.random() * 0.15)
        member.socket.writer.transport.resume_reading()
        await asyncio.sleep(dice.random() * 0.05)


def heard(member):
    """By room and sender: the numbers that came, in order."""
    found = {}
    for message in member.messages:
        if message.event == "broadcast":
            payload = message.payload["payload"]
            assert len(payload["x"]) == payload["size"], "a message was torn"
            found.setdefault((message.topic, payload["sender"]), []).append(payload["n"])
    return found


async def test_everybody_gets_everything_once_and_in_order(hub):
    dice = random.Random(7)
    # Both versions are audiences of their own, each large enough for runs of frames and batches of sends.
    members = [await Client.connect(hub.port, 1 + number % 2, receive_buffer=4096 if number % 5 == 2 else None,
                                    tls=hub.trust)
               for number in range(MEMBERS)]
    for member in members:
        await member.join(ROOM)
    for member in members[:24]:
        await member.join(OTHER)
    # The first hears itself, the second does not; the third is no member of either room's crowd.
    senders = [members[0], members[1], await Client.connect(hub.port, tls=hub.trust)]
    await senders[0].join(ROOM, config={"broadcast": {"self": True}})
    for topic in (ROOM, OTHER):
        await senders[2].join(topic)
    await members[0].settled()
    flickering = [asyncio.create_task(flicker(member, dice)) for member in members[2:MEMBERS:5]]
    sent = {}
    try:
        for _ in range(BURSTS):
            for _ in range(dice.randrange(1, 30)):
                sender = dice.choice(senders)
                topic = dice.choice((ROOM, ROOM, OTHER))
                if topic == OTHER:
                    sender = senders[2]
                key = (topic, senders.index(sender))
                size = dice.choice((5, 150, 500, 500, 20_000))
                sender.push(topic, "broadcast", {"type": "broadcast", "event": "m", "payload": {
                    "sender": key[1], "n": sent.setdefault(key, 0), "size": size, "x": "x" * size}})
                sent[key] += 1
                if dice.random() < 0.3:
                    # An answer to one of the members falls between the messages to all.
                    dice.choice(members[4:]).push("phoenix", "heartbeat", {}, ref="between")
            await asyncio.sleep(dice.random() * 0.02)
    finally:
        for task in flickering:
            task.cancel()
    for member in members:
        member.socket.writer.transport.resume_reading()

    def expected(member):
        rooms = (ROOM, OTHER) if member in members[:24] else (ROOM,)
        return {key: list(range(count)) for key, count in sent.items()
                if key[0] in rooms and not (key[1] == 1 and member is senders[1])}
    for member in members:
        await eventually(lambda: member.closed or heard(member) == expected(member), 60)
        assert member.closed is None
        assert heard(member) == expected(member)
    for client in {*members, senders[2]}:
        await client.close()
