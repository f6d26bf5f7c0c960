"""The operator's live page: what feeds it, who may see it, and the page in a browser."""

import asyncio
import json
import statistics
import urllib.error
import urllib.request

import pytest

from support.deadline import eventually
from support.hub import Hub
from support.ops import LIVE, connect_operator, hook, state_where, watch
from support.tokens import token
from support.websocket import Refused
from support.wsclient import Client, kind3

TOKEN = "an-operator-shows-this-token-0123456789"


def get(port, path, **headers):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except urllib.error.HTTPError as answer:
        return answer.code, dict(answer.headers), answer.read()


# What feeds the page


async def test_a_new_page_has_a_past_and_a_sample_each_second(hub, operator, connect, topic):
    clients = [await connect() for _ in range(3)]
    for client in clients:
        await client.join(topic)
    past = await watch(operator, "ops:overview")
    assert past["node"] == "roost"
    times = [sample["at"] for sample in past["samples"]]
    for _ in range(2):
        sample = (await operator.next("sample", "ops:overview")).payload
        times.append(sample["sample"]["at"])
    pauses = [later - earlier for earlier, later in zip(times, times[1:])]
    assert min(pauses) > 0.3 and statistics.median(pauses) < 3, times
    other = await connect_operator(hub)
    # One more may have come meanwhile.
    assert times[-2:] in zip_of_two([sample["at"] for sample in (await watch(other, "ops:overview"))["samples"]])
    await other.close()

    async def is_the_metric():
        # Some of the last test's sockets may just have gone.
        nonlocal sample
        sample = (await operator.next("sample", "ops:overview")).payload
        return sample["sample"]["connections"] == hub.metric("roost_connections")
    await eventually(is_the_metric, what="as many connections as /metrics has")
    assert sample["sample"]["connections"] >= 3
    assert len(sample["sample"]["loops"]) == 2
    assert sample["figures"]["roost_feed_up"] == 1 and sample["problem"] is None
    assert sample["figures"]["process_resident_memory_bytes"] > 1_000_000


def zip_of_two(numbers):
    return [list(two) for two in zip(numbers, numbers[1:])]


async def test_the_rates_are_those_of_the_load(operator, connect, topic):
    sender, reader = await connect(), await connect()
    ref, _ = await sender.join(topic)
    await reader.join(topic)
    await watch(operator, "ops:overview")
    async with asyncio.timeout(30):
        while True:
            # What came while this process stood still is of the seconds before.
            await operator.settled()
            operator.messages.clear()
            for _ in range(50):
                sender.push(topic, "broadcast", {"type": "broadcast", "event": "e", "payload": {}}, None, ref)
            second = (await operator.next("sample", "ops:overview")).payload["sample"]
            if second["framesIn"] > 30 and second["framesOut"] > 30:
                break
    assert second["framesIn"] < 200 and 30 * 50 < second["bytesIn"] < 200 * 200
    assert all(0 <= loop["busy"] <= 1 for loop in second["loops"])
    assert sum(loop["busy"] for loop in second["loops"]) > 0


async def test_the_lag_of_row_changes(hub, sql, operator, connect, table, topic):
    client = await connect()
    await client.watch(topic, {"event": "*", "schema": "public", "table": table})
    await watch(operator, "ops:overview")
    sql.execute(f'insert into "{table}" values (1, $$x$$, 1)')
    await client.next("postgres_changes", topic)
    async with asyncio.timeout(30):
        while (lag := (await operator.next("sample", "ops:overview")).payload["sample"])["lagMedian"] is None:
            pass
    assert 0 < lag["lagMedian"] <= lag["lagP99"] < 60_000


async def test_the_busiest_channels(operator, connect, topic):
    quiet, busy = f"{topic}-quiet", f"{topic}-busy"
    clients = [await connect() for _ in range(2)]
    refs = {name: [(await client.join(name))[0] for client in clients] for name in (quiet, busy)}
    await watch(operator, "ops:channels")
    for _ in range(20):
        clients[0].push(busy, "broadcast", {"type": "broadcast", "event": "e", "payload": {}}, None, refs[busy][0])

    def is_counted(payload):
        row = next((row for row in payload["channels"] if row["topic"] == busy), None)
        return row and row["messages"] > 0 and row
    payload = await state_where(operator, "ops:channels", is_counted)
    row = is_counted(payload)
    assert row["sockets"] == 2 and row["messages"] <= row["deliveries"] <= 20 and not row["private"]
    order = [row["topic"] for row in payload["channels"]]
    assert order.index(busy) < order.index(quiet)


async def test_one_channel(operator, connect, topic):
    ada = await connect(apikey=token(sub="ada"))
    bob = await connect(apikey=token(sub="bob"))
    config = {"presence": {"key": "ada's key", "enabled": True}}
    ref, _ = await ada.join(topic, config=config)
    await bob.join(topic)
    ada.push(topic, "presence", {"type": "presence", "event": "track", "payload": {"mood": "fine"}}, "9", ref)
    await ada.next("phx_reply", topic, "9")
    name = f"ops:channel:{topic}"
    await watch(operator, name)
    ada.push(topic, "broadcast", {"type": "broadcast", "event": "wave", "payload": {"n": 7, "apikey": "open sesame"}}, None, ref)
    seen = await state_where(operator, name, lambda payload: payload["events"])
    assert {member["user"] for member in seen["members"]} == {"ada", "bob"}
    assert [room["sockets"] for room in seen["rooms"]] == [2]
    assert seen["rooms"][0]["present"][0]["key"] == "ada's key"
    assert "fine" in seen["rooms"][0]["present"][0]["excerpt"]
    event = seen["events"][0]
    assert event["event"] == "broadcast" and event["receivers"] == 1 and not event["refused"]
    assert '"n":7' in event["excerpt"] and "sesame" not in event["excerpt"]


async def test_what_is_refused_is_shown_with_the_reason(operator, connect, topic):
    topic = topic.replace("realtime:", "realtime:live-activity:")
    ada, name = await connect(), f"ops:channel:{topic}"
    await ada.join(topic)
    await watch(operator, name)
    ada.push(topic, "broadcast", {"type": "broadcast", "event": "summary", "payload": {}}, "9")
    seen = await state_where(operator, name, lambda payload: payload["events"])
    assert [(event["event"], event["refused"], event["receivers"]) for event in seen["events"]] == [("broadcast", True, 0)]
    assert "come from the hub alone" in seen["events"][0]["excerpt"]


async def test_an_event_is_listed_once_whatever_the_number_of_loops(hub, operator, connect, topic):
    name, clients, refs, loops = f"ops:channel:{topic}", [], [], set()
    # The kernel chooses a socket's loop.
    while len(loops) < 2:
        clients.append(await connect(apikey=token(sub=str(len(clients)))))
        refs.append((await clients[-1].join(topic))[0])
        loops = {member["id"].split("-")[0] for member in (await watch(operator, name))["members"]}
    others = len(clients) - 1
    for _ in range(2):
        clients[0].push(topic, "broadcast", {"type": "broadcast", "event": "the same twice", "payload": {}}, None, refs[0])
    clients[0].push(topic, "broadcast", {"type": "broadcast", "event": "other", "payload": {}}, None, refs[0])

    def is_whole(payload):
        return sum(event["receivers"] for event in payload["events"]) == 3 * others and payload
    events = is_whole(await state_where(operator, name, is_whole))["events"]
    assert [event["receivers"] for event in events] == [others] * 3
    assert ["the same twice" in event["excerpt"] for event in events] == [True, True, False]
    assert len({(event["loop"], event["number"]) for event in events}) == 3, "each has a key of its own"


async def test_a_channel_that_is_not_there(operator):
    assert await watch(operator, "ops:channel:realtime:nobody-is-here") == {"rooms": [], "members": [], "events": []}


async def connection_of(operator, user):
    """The id of a user's only connection."""
    sockets = (await watch(operator, f"ops:user:{user}"))["sockets"]
    assert len(sockets) == 1, sockets
    return sockets[0]["id"]


async def test_a_trace_shows_both_ways_and_no_token(operator, connect, topic, name):
    user, secret = f"traced-{name}", token(sub=f"traced-{name}", marker="x" * 400)
    client = await connect(apikey=secret)
    other = await connect()
    other_ref, _ = await other.join(topic)
    id = await connection_of(operator, user)
    traced = f"ops:connection:{id}"
    seen = await watch(operator, traced)
    assert seen["socket"]["user"] == user and seen["trace"] == []
    ref, _ = await client.join(topic, access_token=secret, config={"presence": {"key": secret}})
    client.push(topic, "access_token", {"access_token": secret}, None, ref)
    client.push(topic, "broadcast", {"type": "broadcast", "event": "say", "payload": {"text": f"mine is {secret}"}}, None, ref)
    client.send_binary(kind3(ref, "", topic, "binary", json.dumps({"deep": [{"Authorization": secret}]}).encode()))
    other.push(topic, "broadcast", {"type": "broadcast", "event": "reply", "payload": {"long": "ä" * 500}}, None, other_ref)
    await client.next("broadcast", topic)
    seen = await state_where(operator, traced, lambda payload: len(payload["trace"]) >= 6)
    assert [row["topic"] for row in seen["memberships"]] == [topic]
    heads = [(frame["out"], frame["event"]) for frame in seen["trace"]]
    for expected in [(False, "phx_join"), (True, "phx_reply"), (False, "access_token"), (False, "broadcast"),
                     (False, "binary"), (True, "broadcast")]:
        assert expected in heads, heads
    assert all(frame["topic"] == topic and frame["bytes"] > 0 for frame in seen["trace"])
    assert all(len(frame["excerpt"].encode()) <= 204 for frame in seen["trace"])
    told = b"".join(message.raw for message in operator.messages) + json.dumps(seen).encode()
    for part in secret.split("."):
        assert part[:20].encode() not in told, part
    assert "mine is ***" in json.dumps(seen)


async def test_a_slow_reader_is_listed(operator, connect, topic, name):
    slow = await connect(apikey=token(sub=name), receive_buffer=4096)
    await slow.join(topic)
    fast = await connect()
    ref, _ = await fast.join(topic)
    slow.socket.reader._transport.pause_reading()
    await watch(operator, "ops:slow")
    for _ in range(10):
        for _ in range(6):
            fast.push(topic, "broadcast", {"type": "broadcast", "event": "e", "payload": {"x": "x" * 400_000}}, None, ref)
        found = [row for row in (await operator.next("state", "ops:slow")).payload["sockets"] if row["user"] == name]
        if found:
            break
    assert found and found[0]["pending"] > 0


async def test_the_newest_connections_are_listed(operator, connect, name):
    names = [f"{name}-{number}" for number in range(30)]
    for each in names:
        await connect(apikey=token(sub=each))
    rows = (await watch(operator, "ops:newest"))["sockets"]
    # Two loops: of which the newer one is, is known by the second.
    assert len(rows) == 25 and {row["user"] for row in rows} <= set(names)
    assert all(0 <= row["seconds"] < 300 for row in rows)


async def test_disconnecting_a_connection_makes_its_client_come_back(hub, operator, connect, name):
    client = await connect(apikey=token(sub=name))
    id = await connection_of(operator, name)
    topic = f"ops:user:{name}"
    reply = await operator.ask(topic, "disconnect", {"connection": id})
    assert reply.payload == {"status": "ok", "response": {"closed": 1}}
    assert (await client.end()).code == 1012
    await state_where(operator, topic, lambda payload: all(row["closing"] for row in payload["sockets"]))
    again = await operator.ask(topic, "disconnect", {"connection": id})
    assert again.payload["status"] == "error"
    assert f"disconnected the connection {id}" in hub.log
    # Whoever has its place now is another one.
    await connect(apikey=token(sub=name))
    assert await eventually(lambda: id_of_only(operator, topic)) != id


async def id_of_only(operator, topic):
    open_now = [row for row in (await operator.next("state", topic)).payload["sockets"] if not row["closing"]]
    return open_now[0]["id"] if len(open_now) == 1 else None


async def test_disconnecting_a_user(hub, operator, connect, name):
    theirs = [await connect(apikey=token(sub=name)) for _ in range(3)]
    bystander = await connect(apikey=token(sub=f"not {name}"))
    topic = f"ops:user:{name}"
    assert len((await watch(operator, topic))["sockets"]) == 3
    reply = await operator.ask(topic, "disconnect_user", {"user": name})
    assert reply.payload["response"] == {"closed": 3, "incomplete": []}
    assert [(await client.end()).code for client in theirs] == [1012] * 3
    await bystander.settled()
    assert f"disconnected the user {name}" in hub.log


async def test_the_log_and_its_level(own_hub):
    own_hub.start()
    operator = await connect_operator(own_hub)
    await watch(operator, "ops:log")
    client = await Client.connect(own_hub.port)
    client.send_text("no JSON")
    await client.settled()
    assert "malformed" not in own_hub.log
    reply = await operator.ask("ops:log", "log_level", {"level": "debug"})
    assert reply.payload["response"] == {"level": "debug"}
    lines = (await operator.next("lines", "ops:log")).payload
    assert lines["level"] == "debug" and any("set the level of the log to debug" in line["text"] for line in lines["lines"])
    client.send_text("no JSON either")
    await client.settled()
    assert "malformed" in own_hub.log
    async with asyncio.timeout(30):
        while not any("malformed" in line["text"] and line["level"] == "debug" for line in lines["lines"]):
            lines = (await operator.next("lines", "ops:log")).payload
    assert (await operator.ask("ops:log", "log_level", {"level": "loud"})).payload["status"] == "error"
    for each in (operator, client):
        await each.close()


async def test_the_configuration_without_secrets(own_hub):
    own_hub.environment |= {"ROOST_OPS_TOKEN": TOKEN, "ROOST_JWT_PREVIOUS_SECRETS": "previous-secret-" * 3}
    own_hub.start()
    operator = await connect_operator(own_hub, token=TOKEN)
    settings = {row["key"]: row for row in (await watch(operator, "ops:configuration"))["settings"]}
    assert settings["http.port"] == {"key": "http.port", "value": str(own_hub.port), "origin": "ROOST_HTTP_PORT"}
    assert settings["loops"]["origin"] == "default"
    assert settings["jwt.secret"]["value"] == settings["ops.token"]["value"] == "***"
    text = json.dumps(settings)
    for secret in (own_hub.environment["ROOST_JWT_SECRET"], TOKEN, "previous-secret"):
        assert secret not in text
    await operator.close()


async def test_phoenix_frames(operator):
    assert (await operator.ask("phoenix", "heartbeat", {})).payload == {"status": "ok", "response": {}}
    for topic in ("ops:nothing", "realtime:room", "ops:connection:x", "ops:channel:"):
        assert (await operator.ask(topic, "phx_join", {})).payload["status"] == "error", topic
    assert (await operator.ask("ops:overview", "disconnect", {"connection": "0-0-1"})).payload["status"] == "error"
    await watch(operator, "ops:slow")
    assert (await operator.ask("ops:slow", "no_such_command", {})).payload["status"] == "error"
    assert (await operator.ask("ops:slow", "disconnect", {"connection": 7})).payload["status"] == "error"
    operator.send_text("{broken")
    operator.send_text("[]")
    for number in range(15):
        await watch(operator, f"ops:user:{number}")
    assert (await operator.ask("ops:user:one-too-many", "phx_join", {})).payload["status"] == "error"


async def test_version_1_is_spoken_too(hub):
    operator = await connect_operator(hub, vsn="1.0.0")
    operator.version = 1
    operator.push("ops:overview", "phx_join", {}, "1")
    await operator.next("phx_reply", "ops:overview", "1")
    assert (await operator.next("history", "ops:overview")).payload["samples"]
    await operator.close()


# Who may


async def refused(hub, headers=None, **query):
    with pytest.raises(Refused) as refusal:
        await connect_operator(hub, headers, **query)
    return refusal.value.status


async def test_on_loopback_only_the_machines_own_pages(hub):
    """A page of somebody else's in the operator's browser: by a name that resolves here, or straight."""
    port = hub.ops_port
    assert await refused(hub, {"Host": f"evil.example:{port}"}) == 403
    assert await refused(hub, {"Host": f"127.0.0.1.evil.example:{port}"}) == 403
    assert await refused(hub, {"Host": None}) in (400, 403)
    assert await refused(hub, {"Origin": "https://evil.example"}) == 403
    assert await refused(hub, {"Origin": f"http://127.0.0.1:{port + 1}"}) == 403
    assert await refused(hub, {"Origin": "null"}) == 403
    assert get(port, "/ops/access", Host="evil.example")[0] == 403
    assert get(port, "/ops/access")[0] == 200
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", "[::1]:80"):
        operator = await connect_operator(hub, {"Host": host, "Origin": f"http://{host}"})
        await operator.close()


async def test_with_a_token_nobody_comes_in_without_it(own_hub):
    own_hub.environment |= {"ROOST_OPS_TOKEN": TOKEN}
    own_hub.start()
    port = own_hub.ops_port
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    for path in ("/metrics", "/ops/access"):
        assert get(port, path)[0] == 401
        assert get(port, path, Authorization=f"Bearer {TOKEN}x")[0] == 401
        assert get(port, path, **bearer)[0] == 200
        assert get(port, f"{path}?token={TOKEN}")[0] == 200
    assert get(port, "/livez")[0] == get(port, "/readyz")[0] == get(port, "/")[0] == 200
    assert await refused(own_hub) == 401
    assert await refused(own_hub, token=TOKEN[:-1]) == 401
    assert await refused(own_hub, token=token()) == 401, "a client's token is none"
    for arguments in ({"token": TOKEN}, {"headers": bearer}, {"headers": {**bearer, "Host": "ops.example.org"}}):
        operator = await connect_operator(own_hub, **arguments)
        await operator.close()
    assert TOKEN not in own_hub.log


async def test_elsewhere_than_on_loopback_the_page_takes_a_token(own_hub):
    own_hub.environment |= {"ROOST_OPS_HOST": "0.0.0.0"}
    own_hub.start()
    status, _, body = get(own_hub.ops_port, "/ops/access")
    assert status == 403 and b"ROOST_OPS_TOKEN" in body
    assert await refused(own_hub) == 403
    for path in ("/metrics", "/livez", "/readyz"):
        assert get(own_hub.ops_port, path)[0] == 200
    own_hub.stop()
    own_hub.environment |= {"ROOST_OPS_TOKEN": TOKEN}
    own_hub.start()
    operator = await connect_operator(own_hub, token=TOKEN)
    await operator.close()


async def test_the_clients_port_serves_none_of_it(hub):
    assert get(hub.port, "/ops/access")[0] == 404
    with pytest.raises(Refused) as refusal:
        await Client.connect(hub.port, path="/ops/websocket")
    assert refusal.value.status == 404


def test_files(hub):
    status, headers, body = get(hub.ops_port, "/")
    assert status == 200 and b"<!doctype html" in body[:100].lower()
    assert headers["content-security-policy"].startswith("default-src 'self';")
    assert headers["x-content-type-options"] == "nosniff"
    assert get(hub.ops_port, "/dashboard.js")[1]["content-type"].startswith("text/javascript")
    for path in ("/nothing.js", "/../Package.swift", "/%2e%2e/Package.swift", "/ops/websocket"):
        assert get(hub.ops_port, path)[0] in (400, 404, 426), path


# The page


async def test_the_page_shows_what_happens(hub, connect, open_page, topic):
    page = await open_page()
    clients = [await connect() for _ in range(4)]
    refs = [(await client.join(topic))[0] for client in clients]
    open_now = int(hub.metric("roost_connections"))
    await page.until(f"{hook('connections-0')}.textContent === '{open_now}'")
    for _ in range(30):
        clients[0].push(topic, "broadcast", {"type": "broadcast", "event": "e", "payload": {}}, None, refs[0])
    await page.until(f"parseFloat({hook('messages-1')}.textContent) >= 10")
    assert await page.run(f"{hook('ready')}.textContent") == "Ready"
    assert "changes flow" in await page.run(f"{hook('feed')}.textContent")
    assert await page.run(f"{hook('ready')}.checkVisibility() && !{hook('line')}.checkVisibility()"), "one word of how it stands"
    hint = "[...document.querySelectorAll('[data-testid=feed] button')].find(each => each.textContent === 'Reads of the outbox')"
    assert not await page.run(f"{hint}.closest('div').querySelector('.hint').checkVisibility()")
    await page.run(f"{hint}.click()")
    assert "snapshot" in await page.run(f"{hint}.closest('div').querySelector('.hint:not([hidden])').textContent")
    await page.run("location.hash = '#/channels'")
    await page.until(f"{hook('channels')}?.textContent.includes({json.dumps(topic)})")
    short = topic.removeprefix("realtime:")
    await page.run(f"document.querySelector('#topic').value = {json.dumps(short)}")
    await page.run("document.querySelector('#topic').form.requestSubmit()")
    await page.until(f"document.querySelector('.subject')?.textContent === {json.dumps('realtime:' + short)}")
    await page.run("location.hash = '#/configuration'")
    await page.until(f"{hook('configuration')}?.textContent.includes('http.port')")
    assert "end-to-end-tests-sign" not in await page.run("document.body.textContent")


async def test_the_page_disconnects_a_connection_after_asking_back(hub, operator, connect, open_page, name):
    client = await connect(apikey=token(sub=name))
    page = await open_page(f"#/user/{name}")
    await page.until(f"Boolean({hook('sockets')}?.querySelector('a'))")
    await page.run(f"{hook('sockets')}.querySelector('a').click()")
    await page.until(f"{hook('connection')}?.textContent.includes({json.dumps(name)})")
    await page.run(f"{hook('disconnect')}.click()")
    await page.until(f"{hook('dialog')}?.open")
    await client.settled()
    await page.run(f"{hook('confirm')}.click()")
    assert (await client.end()).code == 1012
    await page.until(f"!{hook('gone')}.hidden")
    await page.until(f"{hook('news')}.textContent.includes('is disconnected')")


async def test_markup_is_text(connect, open_page, name):
    topic = "realtime:<img src=x onerror=alert(1)>" + name
    client, reader = await connect(), await connect()
    ref, _ = await client.join(topic)
    await reader.join(topic)
    page = await open_page("#/channel/" + urllib.request.quote(topic, safe=""))
    await page.until(f"Boolean({hook('members')}?.querySelector('a'))")
    client.push(topic, "broadcast", {"type": "broadcast", "event": "<b>", "payload": {"x": "<script>1</script>"}}, None, ref)
    await page.until(f"{hook('events')}.textContent.includes('<script>')")
    assert await page.run("document.querySelectorAll('main img, main b, main script').length") == 0


async def test_the_page_says_when_it_is_cut_off_and_comes_back(own_hub, browser):
    own_hub.start()
    page = await browser.page(f"http://127.0.0.1:{own_hub.ops_port}/")
    await page.until(LIVE)
    own_hub.kill()
    await page.until(f"['waiting', 'connecting'].includes({hook('line')}.dataset.state)")
    own_hub.start()
    await page.until(LIVE)
    await page.until(f"{hook('connections-0')}.textContent === '0'")
    await page.close()


async def test_the_page_asks_for_the_token_and_takes_it_out_of_the_address(own_hub, browser):
    own_hub.environment |= {"ROOST_OPS_TOKEN": TOKEN}
    own_hub.start()
    address = f"http://127.0.0.1:{own_hub.ops_port}/"
    page = await browser.page(address)
    await page.until(f"Boolean({hook('token')})")
    for text, outcome in (("wrong", f"{hook('token-form')}?.textContent.includes('not the hub')"),
                          (TOKEN, LIVE)):
        await page.run(f"{hook('token')}.focus()")
        await page.type(text)
        await page.run(f"{hook('token-form')}.querySelector('button').click()")
        await page.until(outcome)
    await page.close()
    page = await browser.page(f"{address}?token={TOKEN}")
    await page.until(LIVE)
    assert TOKEN not in await page.run("location.href")
    await page.close()


async def test_on_a_phone_nothing_is_wider_than_the_screen(connect, open_page, topic, stream):
    client = await connect()
    await client.join(topic)
    page = await open_page(width=390, height=844)
    for view in ("", "channels", "streams", "connections", "log", "configuration", f"channel/{topic}", f"stream/{stream.name}"):
        await page.run(f"location.hash = '#/{view}'")
        await page.until("Boolean(document.querySelector('main .card'))")
        assert await page.run("document.documentElement.scrollWidth") <= 390, view
    await page.run("location.hash = '#/configuration'")
    await page.until(f"{hook('configuration')}?.textContent.includes('http.port')")
    assert await page.run("[...document.querySelectorAll('.settings td')].every(cell => cell.getBoundingClientRect().right <= 390)")
