"""Who sees a channel's presence, and when it was told of what."""

import asyncio

from support.deadline import PATIENCE, eventually
from support.pypi import Listener
from support.wsclient import Client

PRESENCE = {"presence": {"enabled": True}}


def refs(state):
    """The `phx_ref`s of a `presence_state` by key."""
    return {key: sorted(meta["phx_ref"] for meta in entry["metas"]) for key, entry in state.items()}


def loop(ref):
    """Which of the hub's event loops gave this `phx_ref`: process-loop-number."""
    return ref.split("-")[1]


class Watcher:
    """A raw client that never tracks."""

    @classmethod
    async def join(cls, port, topic, version=2, **options):
        watcher = cls()
        watcher.client, watcher.topic = await Client.connect(port, version, **options), topic
        await watcher.client.join(topic, config=PRESENCE)
        first = await watcher.client.next("presence_state")
        watcher.state = first.payload
        return watcher

    @property
    def diffs(self):
        return [message for message in self.client.messages if message.event == "presence_diff"]

    def told(self, kind, key=None):
        """(when, key, meta) of each of `joins` or `leaves`."""
        return [(message.at, each, meta) for message in self.diffs for each, entry in message.payload[kind].items()
                for meta in entry["metas"] if key in (None, each)]

    async def hears(self, kind, key, within=PATIENCE):
        """When it was told; once and not again."""
        await eventually(
            lambda: self.told(kind, key), within, lambda: f"{kind} of {key} among {self.diffs}, {self.client.closed}")
        [(at, _, meta)] = self.told(kind, key)
        return at, meta

    def forget(self):
        self.client.messages.clear()

    async def settled(self):
        await self.client.settled()

    async def close(self):
        await self.client.close()


async def watch_on_each_loop(port, topic, loops=2, **options):
    """A watcher on every loop of the hub; the kernel picks the loop, so it may take more than a few."""
    found, others = {}, []
    for number in range(40):
        watcher = await Watcher.join(port, topic, 1 + number % 2, **options)
        place = await loop_of(watcher.client)
        if place in found:
            others.append(watcher)
        found.setdefault(place, watcher)
        if len(found) == loops:
            break
    await asyncio.gather(*(watcher.close() for watcher in others))
    assert len(found) == loops, f"all sockets were taken by {list(found)}"
    return list(found.values())


async def loop_of(client):
    """On which loop this client's socket is."""
    topic = f"realtime:which loop {id(client)}"
    await client.join(topic, config={"presence": {"key": "me"}})
    client.push(topic, "presence", {"type": "presence", "event": "track", "payload": {}})
    diff = await client.next("presence_diff", topic)
    await client.ask(topic, "phx_leave", {})
    await client.settled()
    client.messages[:] = [message for message in client.messages if message.topic != topic]
    return loop(diff.payload["joins"]["me"]["metas"][0]["phx_ref"])


class TimedListener(Listener):
    """The Python client with the time of each of its presence callbacks."""

    def __init__(self, client, topic, **options):
        super().__init__(client, topic, presence=True, **options)
        self.told = []  # (when, "join" or "leave", key)
        now = asyncio.get_running_loop().time
        self.channel.on_presence_join(lambda key, _, __: self.told.append((now(), "join", key)))
        self.channel.on_presence_leave(lambda key, _, __: self.told.append((now(), "leave", key)))

    def leaves_of(self, key):
        return [at for at, kind, each in self.told if kind == "leave" and each == key]
