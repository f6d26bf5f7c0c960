"""An attacker and a victim behind one proxy, which sends both over the same connections to the hub.

What the attacker sends is in support/smuggling.py. If the hub read a request where the proxy saw none, the victim's next
request would become part of it: the victim would get the attacker's answer, and the attacker's channel the victim's token.
"""

import asyncio

import pytest

from support.deadline import eventually
from support.http import HTTPConnection
from support.reverse_proxy import ReverseProxy
from support.smuggling import CANDIDATES, PATH, post
from support.tokens import token
from support.wsclient import Client, UserBroadcast


@pytest.fixture(scope="module", params=["haproxy", "nginx"])
def proxy(shared_hub, request):
    proxy = ReverseProxy(request.param, shared_hub.port)
    try:
        yield proxy.start()
    finally:
        proxy.remove()


class Victim:
    """Broadcasts and connects through the proxy, and says what went wrong with that."""

    def __init__(self, proxy, topic):
        self.proxy, self.topic = proxy, topic
        self.token = token(sub="victim")
        self.sent = 0

    async def broadcasts(self):
        self.sent += 1
        path = PATH.format(topic=self.topic, event=f"n{self.sent}")
        # The token stands near the beginning, where a request that waits for so many bytes would take it.
        head = f"POST {path} HTTP/1.1\r\nAuthorization: Bearer {self.token}\r\nHost: hub.test\r\n"
        async with await HTTPConnection.open(self.proxy.port) as connection:
            connection.write(head.encode() + b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
            answer = await connection.answer()
            assert (answer.status, answer.body) == (202, b""), f"the victim was answered {answer.status} {answer.body}"

    async def connects(self):
        async with await Client.connect(self.proxy.port, apikey=self.token) as client:
            assert not await client.settled(), "the victim's socket got what it did not ask for"


async def attack(proxy, candidate, data):
    """Sends data through the proxy; the beginning of what is said to it, or nothing where the proxy waits for more."""
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)

    async def said(within):
        try:
            async with asyncio.timeout(within):
                return await reader.read(65536)
        except (TimeoutError, ConnectionError):
            return b""

    try:
        early = b""
        if candidate.is_split:
            end = data.index(b"\r\n\r\n") + 4
            writer.write(data[:end])
            # A server that sees no body answers now.
            early, data = await said(0.1), data[end:]
        writer.write(data)
        # A proxy may wait for more of what is damaged. That costs the attack its effect, and the test nothing.
        return early + await said(20 if candidate.taken and not early else 0.1 if early else 0.5)
    finally:
        writer.close()


async def test_connections_are_shared(proxy, name):
    """Or the test below would show nothing."""
    victim = Victim(proxy, name)

    async def the_same_are_open():
        before = proxy.connections
        await victim.broadcasts()
        return before and proxy.connections == before

    await eventually(the_same_are_open)


async def test_nobody_is_taken_for_another(hub, proxy, connect, name):
    mine = token(sub="attacker")
    attacker, witness = await connect(), await connect()
    await attacker.join(f"realtime:{name}")
    victim = Victim(proxy, f"{name}_of_the_victim")
    await witness.join(f"realtime:{victim.topic}")
    # Waits for the first 150 bytes of whoever comes next on this connection.
    hidden = post(name, "loot", mine, ["Content-Length: 150"])
    faults = []
    for candidate in CANDIDATES:
        said = await attack(proxy, candidate, candidate.bytes(name, mine, hidden))
        try:
            await victim.broadcasts()
            await victim.connects()
        except (AssertionError, TimeoutError, OSError, EOFError) as fault:
            faults.append(f"{candidate}: {type(fault).__name__} {fault}")
        if victim.topic.encode() in said or victim.token.encode() in said:
            faults.append(f"{candidate}: the attacker was answered {said}")
        if candidate.taken and not said.startswith(b"HTTP/1.1 "):
            faults.append(f"{candidate}: it is a proper request, and was answered {said}")
        faults += [f"{candidate}: {fault}" for fault in stolen(attacker, victim)]
    await victim.broadcasts()
    # Requests over different connections may be another loop's each, so in whatever order.
    heard = [(await witness.next("broadcast")).payload["event"] for _ in range(victim.sent)]
    await attacker.settled()
    faults += stolen(attacker, victim)
    assert not faults, f"{len(faults)} faults\n" + "\n".join(faults)
    assert sorted(heard) == sorted(f"n{n + 1}" for n in range(victim.sent)), "each once"


def stolen(attacker, victim):
    """What the attacker's socket got that is not the attacker's."""
    heard = [m.payload for m in attacker.messages if isinstance(m.payload, UserBroadcast)]
    attacker.messages.clear()
    secrets = (victim.topic.encode(), victim.token.encode())
    return [
        f"the attacker was sent {user.event} {user.payload}" for user in heard
        if user.event == "loot" or any(secret in user.payload for secret in secrets)]
