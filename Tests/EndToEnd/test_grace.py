"""Presence with grace: who is cut off counts as present for a while, and who comes back in time was never gone."""

import asyncio
import json
import time
import types
import urllib.request

import pytest

from support.bounds import taken, watch_the_machine
from support.deadline import eventually
from support.demo import Demo
from support.hub import Hub
from support.member import Member
from support.pypi import python_client
from support.tokens import token
from support.watcher import TimedListener, Watcher, loop_of, refs, watch_on_each_loop
from support.websocket import CLOSE
from support.wsclient import Client

WINDOWS = {"active": 2, "inactive": 12, "background": 20}
#: Seconds that a leave may come too early or too late.
MARGIN = 0.5
#: Seconds for what is to come at once.
AT_ONCE = 0.3
#: Seconds without an answer to a ping after which a peer is lost; whoever answers has to come round to it on a busy machine, too.
IDLE = 10
LAUNCH_CREW = "c0000000-0000-4000-8000-000000000002"
#: The beginning of a script that looks for something in the page.
PANE = "document.querySelector('[data-testid=pane-0]"
#: Notes when the page showed whom as online, in milliseconds since 1970.
NOTE_PRESENCE = """(() => {
    const shown = document.querySelector('[data-testid=pane-0] [data-testid=presence]');
    window.noted = [[Date.now(), shown.dataset.online]];
    new MutationObserver(() => noted.push([Date.now(), shown.dataset.online]))
        .observe(shown, {attributes: true, attributeFilter: ['data-online']});
})()"""


def track(client, topic, payload):
    client.push(topic, "presence", {"type": "presence", "event": "track", "payload": payload})


async def tell_state(client, topic, state, way):
    """What a client says of its app; the join config is another way, which is gone by now."""
    payload = {"type": "app_state", "state": state}
    if way == "event":
        assert (await client.ask(topic, "app_state", payload)).payload == {"status": "ok", "response": {}}
    elif way == "broadcast":
        client.push(topic, "broadcast", {"type": "broadcast", "event": "app_state", "payload": payload})
    await client.settled()


async def present(port, topic, key, payload=None, state=None, way="event", apikey=None, version=2, **presence):
    """A raw client that tracks."""
    client = await Client.connect(port, version, apikey=apikey or token(sub="ann"))
    config = {"presence": {**({"key": key} if key else {}), **presence}}
    await client.join(topic, config={**config, **({"app_state": state} if way == "join" else {})})
    if state and way != "join":
        await tell_state(client, topic, state, way)
    track(client, topic, payload or {})
    await client.settled()
    return client


def cut(client):
    """An RST. The moment of it."""
    client._task.cancel()
    client.socket.abort()
    return time.monotonic()


async def drop(client):
    """A close without a leave, as of a page that is loaded again. When this returns, the hub has noticed."""
    client.socket.send(CLOSE, (1001).to_bytes(2, "big"))
    began = time.monotonic()
    await client.end()
    async with asyncio.timeout(30):
        assert await client.socket.reader.read() == b""
    client.socket.writer.close()
    return began


@pytest.fixture(scope="module", autouse=True)
def watched():
    watch_the_machine()


def lasted(began, at, least, most):
    """So long from one time to another, without what the machine took from everybody."""
    seconds = at - began
    assert seconds >= least, f"{seconds:.2f} s instead of {least} at least"
    if seconds > most:
        lost = taken(began, at, most)
        assert seconds - lost <= most, f"{seconds:.2f} s instead of {most} at most, of which the machine took {lost:.2f} s"


def about(began, at, window, margin=MARGIN):
    lasted(began, at, window - margin, window + margin)


# The demo with its page, as a visitor has it


@pytest.fixture(scope="module")
def demo():
    demo = Demo()
    try:
        yield demo.start()
    finally:
        demo.remove()


async def test_a_leave_comes_when_the_window_of_the_app_state_is_over(demo, browser, impatient_hub):
    """The must-show, and at the same time a peer of whose loss nobody says anything."""
    await asyncio.gather(every_state(demo, browser), half_open(impatient_hub))


@pytest.fixture
def impatient_hub(cluster):
    hub = Hub(cluster.create_database("impatient"), ROOST_TIMEOUTS_PING_AFTER="1", ROOST_TIMEOUTS_IDLE=str(IDLE))
    try:
        hub.run("migrate")
        yield hub.start()
    finally:
        hub.remove()


async def half_open(hub):
    """The peer is gone without a word: the hub notices after some seconds without an answer to its ping, waits a few more
    for one to its close, and then the window begins."""
    watcher = await Watcher.join(hub.port, "realtime:half open")
    client = await present(hub.port, "realtime:half open", "ann")
    await watcher.hears("joins", "ann")
    client._task.cancel()
    client.socket.writer.transport.pause_reading()
    began = time.monotonic()
    at, _ = await watcher.hears("leaves", "ann")
    lasted(began, at, IDLE + WINDOWS["active"] - MARGIN, IDLE + WINDOWS["active"] + 7)
    client.socket.abort()
    await watcher.close()


async def every_state(demo, browser):
    """kill -9 in each state, and an RST for each way to tell it, seen by all kinds of watchers."""
    with urllib.request.urlopen(f"http://127.0.0.1:{demo.port}/demo/api/session", timeout=30) as answer:
        users = {user["name"]: user for user in json.load(answer)["users"]}
    page = await browser.page(demo.page + "?user=ada")
    crew = f"{PANE} [data-conversation-id=\"{LAUNCH_CREW}\"]')"
    await page.until(f"{crew} !== null")
    await page.run(f"{crew}.click()")
    await page.until(f"{PANE} [data-testid=conversation]').dataset.id === '{LAUNCH_CREW}'")

    url, own = f"ws://127.0.0.1:{demo.port}/realtime/v1", users["Linus"]["token"]
    killed = {"active": users["Grace"], "inactive": users["Margaret"], "background": users["Katherine"]}
    members = dict(zip(killed, await asyncio.gather(*(
        Member.start(url, user["token"], "lobby", user["id"]) for user in killed.values()))))
    # The last one counts, whichever way it was told.
    await members["active"].do("send_broadcast", "app_state", {"state": "background"})
    await members["active"].do("push", "app_state", {"type": "app_state", "state": "active"})
    await members["inactive"].do("send_broadcast", "app_state", {"type": "app_state", "state": "inactive"})
    await members["background"].do("push", "app_state", {"type": "app_state", "state": "background"})
    for member in members.values():
        await member.do("track", {"name": "x"})
    raw = {(way, state): await present(demo.port, "realtime:lobby", f"{way} {state}", None, state, way, own, version)
           for way, version in (("event", 1), ("broadcast", 2), ("join", 1)) for state in WINDOWS}
    raw["untold", "active"] = await present(demo.port, "realtime:lobby", "untold active", apikey=own)
    keys = {f"{way} {state}": WINDOWS[state] for way, state in raw} | {
        user["id"]: WINDOWS[state] for state, user in killed.items()}

    watchers = [await Watcher.join(demo.port, "realtime:lobby", version, apikey=own) for version in (1, 2)]
    for watcher in watchers:
        assert keys.keys() <= watcher.state.keys()
    await page.until(f"{PANE} [data-testid=presence]').dataset.online.split(' ').length === 3")
    await page.run(NOTE_PRESENCE)
    async with python_client(types.SimpleNamespace(url=url), own) as client:
        listener = await TimedListener(client, "lobby").subscribe()
        await eventually(lambda: keys.keys() <= listener.channel.presence_state().keys(), what="the state")
        listener.told.clear()

        began, wall = time.monotonic(), time.time()
        for member in members.values():
            member.kill()
        for client in raw.values():
            cut(client)
        await eventually(lambda: all(len(watcher.told("leaves")) >= len(keys) for watcher in watchers), 60, what=lambda:
                         f"{len(keys)} leaves: {[watcher.told('leaves') for watcher in watchers]}", every=0.05)
        for watcher in watchers:
            await watcher.settled()
            # The page shows its conversations before it is present itself.
            assert [key for _, key, _ in watcher.told("joins") if key != users["Ada"]["id"]] == []
            left = {key: at for at, key, _ in watcher.told("leaves")}
            assert len(watcher.told("leaves")) == len(left) == len(keys), "each leaves once"
            for key, window in keys.items():
                about(began, left[key], window)
            in_order = [[left[key] for key, each in keys.items() if each == window] for window in WINDOWS.values()]
            assert all(max(shorter) < min(longer) for shorter, longer in zip(in_order, in_order[1:])), "however busy the machine is"
        print("\nleaves after kill -9:", {state: f"{left[user['id']] - began:.3f} s" for state, user in killed.items()})
        await eventually(lambda: len(listener.told) >= len(keys), what=lambda: f"the Python client's: {listener.told}")
        assert {(kind, key) for _, kind, key in listener.told} == {("leave", key) for key in keys}
        for key, window in keys.items():
            [at] = listener.leaves_of(key)
            about(began, at, window)
    # The page sets the attribute whenever it hears of anybody, and is as free as the others to hear it a moment later.
    await page.until(f"{PANE} [data-testid=presence]').dataset.online === ''")
    noted = await page.run("noted.filter(([, ids], n) => n === 0 || ids !== noted[n - 1][1])")
    assert [set(ids.split()) for _, ids in noted] == [
        {user["id"] for user in list(killed.values())[gone:]} for gone in range(4)], noted
    for (at, _), window in zip(noted[1:], WINDOWS.values()):
        about(began, began + at / 1000 - wall, window)
    assert page.complaints == []
    await page.close()
    for each in [*watchers, *members.values()]:
        await (each.end() if isinstance(each, Member) else each.close())


# Coming back


async def test_a_new_process_that_comes_back_in_time_was_never_gone(hub, topic, name):
    watchers = await watch_on_each_loop(hub.port, topic)
    async with python_client(hub) as client:
        listener = await TimedListener(client, name).subscribe()
        first = await Member.start(hub.url, token(sub="ann"), name, "ann")
        # A new process takes longer than two seconds on a busy machine.
        await first.do("push", "app_state", {"state": "background"})
        await first.do("track", {"mood": "calm", "n": 1})
        for watcher in watchers:
            _, meta = await watcher.hears("joins", "ann")
        await eventually(lambda: listener.told, what="the join")
        for watcher in watchers:
            watcher.forget()
        listener.told.clear()

        await first.end()
        second = await Member.start(hub.url, token(sub="ann"), name, "ann")
        await second.do("track", {"n": 1, "mood": "calm"})
        late = await watch_on_each_loop(hub.port, topic)
        for watcher in [*watchers, *late]:
            await watcher.settled()
            assert watcher.diffs == []
        assert listener.told == []
        assert [refs(watcher.state) for watcher in late] == [{"ann": [meta["phx_ref"]]}] * 2
        # It is the second's now: what it changes is a change, and its leave is one.
        await second.do("track", {"mood": "busy"})
        for watcher in [*watchers, *late]:
            _, joined = await watcher.hears("joins", "ann")
            _, left = await watcher.hears("leaves", "ann")
            assert joined["phx_ref_prev"] == left["phx_ref"] == meta["phx_ref"]
            assert (joined["mood"], left["mood"]) == ("busy", "calm")
            watcher.forget()
        began = time.monotonic()
        await second.do("unsubscribe")
        for watcher in [*watchers, *late]:
            at, left = await watcher.hears("leaves", "ann")
            lasted(began, at, 0, AT_ONCE)
            assert left["phx_ref"] == joined["phx_ref"]
        await second.end()
    for watcher in [*watchers, *late]:
        await watcher.close()


async def test_whoever_comes_back_on_another_loop_was_never_gone(hub, topic):
    """Many at once, again and again, until both ways between two loops were taken often."""
    watchers = await watch_on_each_loop(hub.port, topic)
    keys = [f"key {number}" for number in range(12)]

    async def come(key):
        # In the background: they come back within seconds, and a busy machine has longer than an active app's two.
        return await present(hub.port, topic, key, {"of": key, "list": [1, {"a": None}]}, "background", apikey=token(sub=key))
    clients = await asyncio.gather(*map(come, keys))
    for watcher in watchers:
        await eventually(lambda: {key for _, key, _ in watcher.told("joins")} == set(keys), what="all joins")
        watcher.forget()
    [before] = {json.dumps(refs((await fresh(hub, topic)).state), sort_keys=True) for _ in range(2)}
    moves = []
    for turn in range(4):
        loops = await asyncio.gather(*map(loop_of, clients))
        await asyncio.gather(*map(drop, clients))
        clients = await asyncio.gather(*map(come, keys))
        moves += zip(loops, await asyncio.gather(*map(loop_of, clients)))
    assert {("0", "1"), ("1", "0"), ("0", "0"), ("1", "1")} <= set(moves), moves
    for watcher in watchers:
        await watcher.settled()
        assert watcher.diffs == []
    assert {json.dumps(refs((await fresh(hub, topic)).state), sort_keys=True) for _ in range(6)} == {before}
    # They are theirs, wherever they are: each leaves once.
    for client in clients:
        client.push(topic, "phx_leave", {})
    for watcher in watchers:
        await eventually(lambda: len(watcher.told("leaves")) >= len(keys), what="all leaves")
        await watcher.settled()
        assert sorted(key for _, key, _ in watcher.told("leaves")) == sorted(keys)
    assert [refs((await fresh(hub, topic)).state) for _ in range(6)] == [{}] * 6
    for each in [*watchers, *clients]:
        await each.close()


async def fresh(hub, topic):
    """What somebody is told who comes now."""
    watcher = await Watcher.join(hub.port, topic)
    await watcher.close()
    return watcher


async def test_without_a_key_of_its_own_a_client_comes_back_by_tracking(hub, topic):
    """It has its window, and five seconds more from the moment that it joins. A machine that takes longer shows nothing."""
    for attempt in range(10):
        if await comes_back_by_tracking(hub, f"{topic}_{attempt}"):
            return
    raise AssertionError("too slow for this test, ten times")


async def comes_back_by_tracking(hub, topic):
    """Whether it came in its time."""
    watcher = await Watcher.join(hub.port, topic)
    client = await present(hub.port, topic, None, {"n": 1})
    await eventually(lambda: watcher.told("joins"), what="the join")
    [(_, key, meta)] = watcher.told("joins")
    lost = time.monotonic()
    await drop(client)
    again = await Client.connect(hub.port, apikey=token(sub="ann"))
    joins = time.monotonic()
    await again.join(topic)
    is_in_time = time.monotonic() - lost < WINDOWS["active"]
    stranger = await present(hub.port, topic, None, {"n": 1}, apikey=token(sub="bob"))
    await asyncio.sleep(WINDOWS["active"] + MARGIN)
    track(again, topic, {"n": 1})
    await again.settled()
    is_in_time = is_in_time and time.monotonic() - joins < 5
    await watcher.settled()
    if is_in_time:
        [_, (_, other, _)] = watcher.told("joins")
        assert other != key, "somebody else's without a key is another"
        assert watcher.told("leaves") == []
        assert refs((await fresh(hub, topic)).state)[key] == [meta["phx_ref"]]
    for each in (again, stranger, watcher):
        await each.close()
    return is_in_time


# Saying goodbye, and saying it again


@pytest.mark.parametrize("version", [1, 2])
async def test_a_leave_and_an_untrack_are_told_at_once(hub, topic, version):
    watchers = await watch_on_each_loop(hub.port, topic)
    for key, event, payload in (
            ("one", "phx_leave", {}), ("two", "presence", {"type": "presence", "event": "untrack"})):
        client = await present(hub.port, topic, key, None, "background", version=version)
        for watcher in watchers:
            await watcher.hears("joins", key)
        began = time.monotonic()
        client.push(topic, event, payload)
        for watcher in watchers:
            at, _ = await watcher.hears("leaves", key)
            lasted(began, at, 0, AT_ONCE)
        # What is over is not kept for a socket that is lost later.
        cut(client)
        assert key not in (await fresh(hub, topic)).state
    for watcher in watchers:
        await watcher.close()


async def test_the_same_payload_again_is_silent_and_another_is_one_change(hub, topic):
    watchers = await watch_on_each_loop(hub.port, topic)
    payload = {"name": "ü", "at": {"x": 1.5, "list": [1, None, "a"]}, "empty": {}}
    client = await present(hub.port, topic, "ann", payload)
    for watcher in watchers:
        _, first = await watcher.hears("joins", "ann")
    same = [
        '{"name":"ü","at":{"x":1.5,"list":[1,null,"a"]},"empty":{}}',
        '{ "empty" : {}, "at" : {"list":[1, null ,"\\u0061"],"x":1.5}, "name":"\\u00fc" }',
    ]
    for text in same:
        client.send_text(f'[null,null,"{topic}","presence",{{"type":"presence","event":"track","payload":{text}}}]')
    await client.settled()
    for watcher in watchers:
        await watcher.settled()
        assert len(watcher.diffs) == 1
    changed = {**payload, "at": {"x": 1.5, "list": [None, 1, "a"]}}
    track(client, topic, changed)
    for watcher in watchers:
        _, old = await watcher.hears("leaves", "ann")
        [_, change] = watcher.diffs
        [joined] = change.payload["joins"]["ann"]["metas"]
        assert joined == {**changed, "phx_ref": joined["phx_ref"], "phx_ref_prev": first["phx_ref"]}
        assert joined["phx_ref"] != first["phx_ref"]
        # A later change names the one that the watchers know, and so may the old meta.
        assert {key: old[key] for key in payload} == payload and old["phx_ref"] == first["phx_ref"]
        await watcher.close()
    await client.close()


async def test_a_wrong_state_is_an_error_and_changes_nothing(hub, topic):
    await asyncio.gather(*(wrong_state(hub, f"{topic}_{version}", version) for version in (1, 2)))


async def wrong_state(hub, topic, version):
    watcher = await Watcher.join(hub.port, topic, version)
    listener = await present(hub.port, topic, "all ears", version=version)
    client = await Client.connect(hub.port, version, apikey=token(sub="ann"))
    await client.join(topic, config={"presence": {"key": "ann"}, "broadcast": {"self": True}, "app_state": "asleep"})
    for payload in ({"state": "asleep"}, {"state": 1}, {"type": "app_state"}, {}):
        reply = await client.ask(topic, "app_state", payload)
        assert reply.payload["status"] == "error" and "must be active, inactive or background" in str(reply.payload)
        # As a broadcast it may be an app's own.
        client.push(topic, "broadcast", {"type": "broadcast", "event": "app_state", "payload": payload})
        for each in (client, listener):
            assert (await each.next("broadcast")).payload["payload"] == payload
    track(client, topic, {})
    await watcher.hears("joins", "ann")
    client.push(topic, "broadcast", {"type": "broadcast", "event": "app_state", "payload": {"state": "active"}})
    for each in (client, listener):
        await each.settled()
        assert not [message for message in each.messages if message.event == "broadcast"], "for the hub, not for the others"
    began = cut(client)
    at, _ = await watcher.hears("leaves", "ann")
    about(began, at, WINDOWS["active"])
    for each in (listener, watcher):
        await each.close()


# Windows of its own


@pytest.fixture
def quick_hub(cluster):
    hub = Hub(
        cluster.create_database("quick_grace"), ROOST_LOOPS="2", ROOST_PRESENCE_GRACE_ACTIVE_SECONDS="1",
        ROOST_PRESENCE_GRACE_INACTIVE_SECONDS="2", ROOST_PRESENCE_GRACE_BACKGROUND_SECONDS="3",
        ROOST_PRESENCE_GRACE_TOPICS="live:*=0/0/0, room:*:x=2/1/0, room:*=3/0/1",
        ROOST_LIMITS_MESSAGE_BYTES="8192", ROOST_LIMITS_PAYLOAD_BYTES="4096")
    try:
        hub.run("migrate")
        yield hub.start()
    finally:
        hub.remove()


@pytest.mark.clock
async def test_every_loss_has_the_window_of_its_topic_and_state(quick_hub):
    """All at the same time: by topic, by state, by the kind of loss, and for whom the lease is."""
    port = quick_hub.port

    async def lost(topic, state, window, lose=cut, version=2):
        """Whoever is lost is told to be gone after its window, once."""
        watchers = await watch_on_each_loop(port, topic)
        client = await present(port, topic, "ann", None, state, version=version)
        for watcher in watchers:
            await watcher.hears("joins", "ann")
        began = await lose(client) if asyncio.iscoroutinefunction(lose) else lose(client)
        for watcher in watchers:
            at, _ = await watcher.hears("leaves", "ann")
            about(began, at, window, MARGIN if window else AT_ONCE)
        for watcher in watchers:
            await watcher.close()

    async def too_large(client):
        began = time.monotonic()
        client.send_text("x" * 10_000)
        assert (await client.end()).code == 1009
        # As every client answers the hub's close.
        await client.close()
        return began

    async def inherits():
        """Who comes back in the background without saying so again has its window."""
        watcher = await Watcher.join(port, "realtime:inherits")
        client = await present(port, "realtime:inherits", "ann", None, "background")
        await watcher.hears("joins", "ann")
        await drop(client)
        client = await present(port, "realtime:inherits", "ann")
        began = cut(client)
        at, _ = await watcher.hears("leaves", "ann")
        about(began, at, 3)
        await watcher.close()

    async def somebody_else():
        """Another user with the same key is another member, and the first one's window goes on."""
        watcher = await Watcher.join(port, "realtime:else")
        client = await present(port, "realtime:else", "same")
        await watcher.hears("joins", "same")
        watcher.forget()
        began = cut(client)
        other = await present(port, "realtime:else", "same", apikey=token(sub="bob"))
        _, new = await watcher.hears("joins", "same")
        at, old = await watcher.hears("leaves", "same")
        about(began, at, 1)
        assert old["phx_ref"] != new["phx_ref"]
        await watcher.close()
        await other.close()

    async def two_sockets():
        """A phone and a desk under one key: whichever comes back first, each is what it was."""
        watcher = await Watcher.join(port, "realtime:two")
        clients = [await present(port, "realtime:two", "ann", {"on": on}, "background") for on in ("phone", "desk")]
        await eventually(lambda: len(watcher.told("joins")) == 2, what="both joins")
        before = {meta["on"]: meta["phx_ref"] for _, _, meta in watcher.told("joins")}
        watcher.forget()
        for client in clients:
            await drop(client)
        desk = await present(port, "realtime:two", "ann", {"on": "desk"})
        phone = await present(port, "realtime:two", "ann", {"on": "phone"})
        await watcher.settled()
        assert watcher.diffs == []
        state = (await fresh(quick_hub, "realtime:two")).state
        assert {meta["on"]: meta["phx_ref"] for meta in state["ann"]["metas"]} == before
        # One of them stays away now, and only it is missed.
        began = cut(phone)
        at, left = await watcher.hears("leaves", "ann")
        about(began, at, 3)
        assert left["on"] == "phone"
        for each in (watcher, desk):
            await each.close()

    await asyncio.gather(
        lost("realtime:live:1", None, 0), lost("realtime:live:2", "background", 0),
        lost("realtime:room:1:x", None, 2), lost("realtime:room:2:x", "inactive", 1),
        lost("realtime:room:3:x", "background", 0),
        lost("realtime:room:1", None, 3), lost("realtime:room:2", "inactive", 0), lost("realtime:room:3", "background", 1),
        lost("realtime:alive:1", None, 1), lost("realtime:a", "inactive", 2), lost("realtime:b", "background", 3),
        lost("realtime:d", None, 1, drop, version=1),
        lost("realtime:e", "inactive", 2, drop), lost("realtime:f", None, 1, too_large),
        inherits(), somebody_else(), two_sockets())
