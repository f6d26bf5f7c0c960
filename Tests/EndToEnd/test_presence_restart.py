"""A hub that stops, or is killed, and comes back: nobody who returns was ever gone."""

import asyncio
import os
import random

import pytest

from support.bounds import in_time, taken, watch_the_machine
from support.deadline import eventually
from support.pypi import python_client
from support.tokens import token
from support.watcher import TimedListener, Watcher, refs
from support.wsclient import Client

MEMBERS = int(os.environ.get("ROOST_E2E_PRESENCES", "1000"))
#: How many of them do not come back.
STAYING_AWAY = MEMBERS // 10
#: Seconds that they have for it, and over how many the others return.
PATIENCE, RETURN = 15, 1.5
TOPIC = "realtime:crowd"


class Member:
    """One with a key of its own, who wants counts and no lists: a thousand lists of a thousand would be about Python."""

    def __init__(self, hub, number):
        self.hub, self.number, self.key = hub, number, f"member {number}"
        self.client = None

    async def come(self, tracks=True):
        self.client = await Client.connect(self.hub.port, 1 + self.number % 2, apikey=token(sub=f"user {self.number}"))
        await self.client.join(TOPIC, config={"presence": {"key": self.key, "occupancy": True}})
        if tracks:
            payload = {"n": self.number, "name": f"Nömber {self.number}"}
            self.client.push(TOPIC, "presence", {"type": "presence", "event": "track", "payload": payload})
        await self.client.settled()

    async def come_back(self, rng):
        """Some time later. Those with a key need not track again, but most clients do."""
        await asyncio.sleep(rng.uniform(0, RETURN))
        await self.come(tracks=rng.random() < 0.5)

    @property
    def counts(self):
        return [message.payload["payload"] for message in self.client.messages
                if message.event == "broadcast" and message.payload["event"] == "presence_occupancy"]


async def in_batches(coroutines, size=50):
    coroutines = list(coroutines)
    for start in range(0, len(coroutines), size):
        await asyncio.gather(*coroutines[start:start + size])


@pytest.mark.clock
@pytest.mark.parametrize("ending", ["stop", "kill"])
async def test_a_thousand_are_still_there_after_a_restart(own_hub, cluster, ending):
    """The must-show: zero leaves, and the same refs, for those who stayed and for those who returned."""
    watch_the_machine()
    own_hub.environment |= {"ROOST_LOOPS": "2", "ROOST_PRESENCE_RESTART_SECONDS": str(PATIENCE)}
    own_hub.start()
    watchers = [await Watcher.join(own_hub.port, TOPIC, version) for version in (1, 2)]
    async with python_client(own_hub) as one, python_client(own_hub) as two:
        listeners = [await TimedListener(client, "crowd").subscribe() for client in (one, two)]
        members = [Member(own_hub, number) for number in range(MEMBERS)]
        await in_batches(member.come() for member in members)
        keys = {member.key for member in members}
        for listener in listeners:
            await eventually(lambda: listener.channel.presence_state().keys() == keys, what="all shown")
        await eventually(lambda: all(member.counts[-1:] == [{"members": MEMBERS, "keys": MEMBERS}] for member in members), 30,
                         "all counted, and told all")
        with cluster.connect(own_hub.database) as sql:
            # A moment later it is written down.
            await eventually(lambda: sql.execute("select count(*) from roost.presence").fetchone()[0] == MEMBERS,
                             what="all stored")
        before = await state(own_hub)
        assert before.keys() == keys and all(len(metas) == 1 for metas in before.values())
        for listener in listeners:
            assert [each for each in listener.told if each[1] == "leave"] == []
            listener.told.clear()
        for watcher in watchers:
            watcher.forget()

        seen = [len(listener.states) for listener in listeners]
        status = await asyncio.to_thread(getattr(own_hub, ending))
        assert status == (0 if ending == "stop" else -9)
        # Until the end of their sockets: whoever was closed later than others was not told that those are gone.
        for watcher in watchers:
            end = await watcher.client.end()
            assert end.code == (1012 if ending == "stop" else None)
            assert watcher.told("leaves") == []
        for member in members:
            await member.client.end()
            assert all(count["members"] == MEMBERS for count in member.counts[-1:])
        began = asyncio.get_running_loop().time()
        await asyncio.to_thread(own_hub.start)

        watchers = [await Watcher.join(own_hub.port, TOPIC, version) for version in (1, 2)]
        rng = random.Random(5)
        back, away = members[STAYING_AWAY:], {member.key for member in members[:STAYING_AWAY]}
        await asyncio.gather(*(member.come_back(rng) for member in back))
        returned = asyncio.get_running_loop().time() - began
        for listener, count in zip(listeners, seen):
            await listener.wait_for_state("SUBSCRIBED", after=count)
        now = await state(own_hub)
        assert asyncio.get_running_loop().time() - began < PATIENCE, f"too slow for this test: back after {returned:.1f} s"
        print(f"\n{len(back)} came back within {returned:.1f} s of the start")
        assert [refs(watcher.state) for watcher in watchers] == [before] * 2
        assert now == before
        for watcher in watchers:
            assert watcher.diffs == []
        for listener in listeners:
            assert listener.told == [], "for the Python client nobody ever left, or came"
            assert listener.channel.presence_state().keys() == keys

        # Those who did not come back are gone when their time is over, and nobody else is.
        for watcher in watchers:
            await eventually(lambda: len(watcher.told("leaves")) >= STAYING_AWAY, PATIENCE + 10, what="the leaves")
            assert sorted(key for _, key, _ in watcher.told("leaves")) == sorted(away)
            assert watcher.told("joins") == []
            for at, _, _ in watcher.told("leaves"):
                assert PATIENCE - 0.5 < at - began
                assert at - began < PATIENCE + 5 or at - began - taken(began, at, PATIENCE) < PATIENCE + 5
        for listener in listeners:
            await eventually(lambda: len(listener.told) >= STAYING_AWAY, what="the Python client's leaves")
            assert sorted(listener.told, key=lambda each: each[2]) == [
                (at, "leave", key) for (at, _, _), key in zip(sorted(listener.told, key=lambda each: each[2]), sorted(away))]
        assert await state(own_hub) == {key: before[key] for key in keys - away}
        await eventually(lambda: back[0].counts[-1] == {"members": len(back), "keys": len(back)}, what="their number")
        with cluster.connect(own_hub.database) as sql:
            await eventually(lambda: sql.execute("select count(*) from roost.presence").fetchone()[0] == len(back),
                             what="those who are gone forgotten")
    for each in [*watchers, *(member.client for member in members)]:
        await each.close()


async def state(hub, topic=TOPIC):
    watcher = await Watcher.join(hub.port, topic)
    await watcher.close()
    return refs(watcher.state)


async def test_a_second_restart_before_all_are_back_starts_the_time_anew(own_hub, cluster):
    """Also those who had no chance to come back to the hub in between; and what is not theirs is not given away."""
    own_hub.environment |= {"ROOST_LOOPS": "2", "ROOST_PRESENCE_RESTART_SECONDS": "2"}
    own_hub.start()
    await in_time(2, lambda number: second_restart(own_hub, cluster, f"{TOPIC}:{number}"))


async def second_restart(own_hub, cluster, topic):
    stored = f"select count(*) from roost.presence where topic like '%{topic.removeprefix('realtime:')}'"
    clients = {}
    for who in ("ann", "bob", "cyd"):
        clients[who] = await Client.connect(own_hub.port, apikey=token(sub=who))
        await clients[who].join(topic, config={"presence": {"key": who}})
        clients[who].push(topic, "presence", {"type": "presence", "event": "track", "payload": {"u0000": "\0", "n": 1}})
        await clients[who].settled()
    before = await state(own_hub, topic)
    with cluster.connect(own_hub.database) as sql:
        await eventually(lambda: sql.execute(stored).fetchone()[0] == 3, what="all stored")
    await asyncio.to_thread(own_hub.kill)
    own_hub.start()
    # One leaves meanwhile: it must not be there again after the next crash.
    again = await Client.connect(own_hub.port, apikey=token(sub="ann"))
    await again.join(topic, config={"presence": {"key": "ann"}})
    assert await state(own_hub, topic) == before
    again.push(topic, "phx_leave", {})
    with cluster.connect(own_hub.database) as sql:
        await eventually(lambda: sql.execute(stored).fetchone()[0] == 2, what="one forgotten")
    await asyncio.to_thread(own_hub.kill)
    own_hub.start()
    watcher = await Watcher.join(own_hub.port, topic)
    assert refs(watcher.state) == {key: before[key] for key in ("bob", "cyd")}
    assert [meta["u0000"] for entry in watcher.state.values() for meta in entry["metas"]] == ["\0", "\0"]
    # Somebody else's key is somebody else's presence.
    thief = await Client.connect(own_hub.port, apikey=token(sub="dan"))
    await thief.join(topic, config={"presence": {"key": "bob"}})
    bob = await Client.connect(own_hub.port, apikey=token(sub="bob"))
    await bob.join(topic, config={"presence": {"key": "bob"}})
    at, left = await watcher.hears("leaves", "cyd")
    await watcher.settled()
    assert [key for _, key, _ in watcher.told("leaves")] == ["cyd"] and watcher.told("joins") == []
    for each in (watcher, thief, bob, again, *clients.values()):
        await each.close()
