"""SIGHUP: limits, keys and the log change while clients stay; what is wrong changes nothing; what takes a restart is named."""

import itertools
import json
import signal
import urllib.parse

import pytest

from support.config_file import FileHub
from support.deadline import eventually, until
from support.tokens import SECRET, signed, token
from support.websocket import Refused, WebSocket
from support.wsclient import Client

_numbers = itertools.count(1)
OTHER_SECRET = "another-secret-that-end-to-end-tests-sign-with"


@pytest.fixture
def filed(cluster):
    """Starts hubs that read a file."""
    hubs = []

    def start(text="", **settings):
        hub = FileHub(cluster.create_migrated_database(f"reload_{next(_numbers)}"), text, **{"ROOST_LOOPS": "2", **settings})
        hubs.append(hub)
        return hub.start()

    yield start
    for hub in hubs:
        hub.remove()


async def status(hub, text=None):
    """Of an upgrade with a token: 101, or why not."""
    query = urllib.parse.urlencode({"apikey": text or token(), "vsn": "2.0.0"})
    try:
        await (await WebSocket.open(hub.port, f"/realtime/v1/websocket?{query}")).close()
        return 101
    except Refused as answer:
        return answer.status


async def joins(client, count):
    """How many of so many channels the client gets into."""
    replies = [await client.ask(f"realtime:{number}", "phx_join", {"config": {}}, str(number)) for number in range(count)]
    return sum(reply.payload["status"] == "ok" for reply in replies)


async def test_limits_change_and_sockets_stay(filed):
    hub = filed("limits:\n  channels_per_connection: 2\n  payload_bytes: 300\n")
    clients = [await Client.connect(hub.port) for _ in range(4)]
    assert [await joins(client, 4) for client in clients] == [2] * 4
    hub.write(limits__channels_per_connection=3, limits__payload_bytes=1000)
    lines = await hub.reload()
    assert "The configuration was reloaded: limits.channels_per_connection, limits.payload_bytes." in "\n".join(lines)
    assert len(lines) == 1, lines
    # Two loops: whichever a client is on has them.
    assert [await joins(client, 4) for client in clients] == [3] * 4
    large = {"type": "broadcast", "event": "e", "payload": {"text": "x" * 500}}
    clients[0].push("realtime:0", "broadcast", large)
    await clients[1].next("broadcast", "realtime:0")
    hub.write()
    assert "reloaded: limits.channels_per_connection" in (await hub.reload())[0], "back to the defaults"
    assert await joins(clients[0], 6) == 6
    assert "nothing that a reload changes is new" in (await hub.reload())[0]
    assert all(client.closed is None for client in clients)
    await eventually(lambda: hub.metric("roost_connections_accepted_total") == 4, what="the four of the beginning and no other")
    for client in clients:
        await client.close()


async def test_a_limit_of_sockets_is_turned_on_and_off(filed):
    """Who came before a limit is in nobody's count; who was counted is given back when the limit is gone."""
    hub = filed()
    ada = lambda: token(sub="ada")
    before = [await Client.connect(hub.port, apikey=ada()) for _ in range(3)]
    hub.write(limits__connections_per_user=2, limits__connections_per_address=2)
    await hub.reload()
    counted = [await Client.connect(hub.port, apikey=ada()) for _ in range(2)]
    assert await status(hub, ada()) == 429
    assert await status(hub, token(sub="grace")) == 429, "it is the address's limit, too"
    for client in before:
        await client.close()
    await eventually(lambda: hub.metric("roost_connections") == 2, what="those from before are gone")
    assert await status(hub, ada()) == 429, "nobody counted them, so nothing is given back"
    hub.write()
    await hub.reload()
    assert await status(hub, ada()) == 101
    for client in counted:
        await client.close()
    await eventually(lambda: hub.metric("roost_connections") == 0, what="all are gone")
    hub.write(limits__connections_per_user=1)
    await hub.reload()
    async with await Client.connect(hub.port, apikey=ada()):
        assert await status(hub, ada()) == 429


@pytest.mark.parametrize("text, said", [
    ("limits:\n  joins_per_second: many\n", "roost.yaml:2: limits.joins_per_second is 'many'"),
    ("limits:\n  join_per_second: 5\n", "roost.yaml:2: there is no key limits.join_per_second; did you mean limits.joins_per_second?"),
    ("limits: [\n", "this is not YAML"), ("timeouts.idle: 20\n", "must be less than"),
    ("jwks.file: /nowhere.json\n", "/nowhere.json"), ("alerts.title: '{'\n", "roost.yaml:1: alerts.title"),
    (None, "does not exist any more"),
], ids=str)
async def test_a_broken_file_changes_nothing(filed, text, said):
    hub = filed("limits:\n  channels_per_connection: 2\n")
    async with await Client.connect(hub.port) as client:
        hub.file.unlink() if text is None else hub.file.write_text(text + "limits.channels_per_connection: 5\n")
        lines = await hub.reload()
        assert len(lines) == 1 and " error " in lines[0], lines
        assert "The configuration is not reloaded, and all stays as it was: " in lines[0] and said in lines[0], lines
        assert await joins(client, 4) == 2
        hub.file.write_text("limits:\n  channels_per_connection: 3\n")
        assert "was reloaded" in (await hub.reload())[0], "the next one is read again"
        assert await joins(client, 4) == 3


async def test_what_takes_a_restart_is_named_each_time(filed):
    hub = filed("limits.channels_per_connection: 2\n")
    hub.file.write_text("node.name: other\nfeed:\n  retention_hours: 48\nlimits.channels_per_connection: 3\n")
    for told in ("limits.channels_per_connection", "nothing that a reload changes is new"):
        first, *rest = await hub.reload(lines=3)
        assert told in first
        assert [line.partition("] ")[2] for line in rest] == [
            "node.name needs a restart: it is roost until then, and is to be other (config/roost.yaml:1).",
            "feed.retention_hours needs a restart: it is 24 until then, and is to be 48 (config/roost.yaml:3)."]
    async with await Client.connect(hub.port) as client:
        assert await joins(client, 4) == 3


async def test_a_secret_is_rotated_without_a_restart(filed):
    hub = filed(f"jwt.secret: {SECRET}\n", ROOST_JWT_SECRET="", ROOST_LIMITS_FAILURES_PER_MINUTE="0", ROOST_LOG_LEVEL="debug")
    claims = {"role": "authenticated", "exp": 4_000_000_000, "sub": "ada"}
    old, new = signed(claims), signed(claims, OTHER_SECRET)
    assert [await status(hub, old), await status(hub, new)] == [101, 401]
    async with await Client.connect(hub.port, apikey=old) as client, await Client.connect(hub.port, apikey=old) as other:
        await client.join("realtime:room")
        await other.join("realtime:room")
        hub.write(jwt__secret=OTHER_SECRET, jwt__previous_secrets=SECRET)
        await hub.reload()
        assert [await status(hub, old), await status(hub, new)] == [101, 101]
        hub.write(jwt__secret=OTHER_SECRET)
        await hub.reload()
        assert [await status(hub, old), await status(hub, new)] == [401, 101]
        client.push("realtime:room", "broadcast", {"type": "broadcast", "event": "e", "payload": {}})
        await other.next("broadcast", "realtime:room")
        hub.write(jwt__secret=OTHER_SECRET, jwt__issuer="us")
        await hub.reload()
        assert await status(hub, new) == 401, "what a token must claim is reloaded, too"
        hub.write(jwt__secret="short")
        assert "has 5 bytes, expected at least 32" in (await hub.reload())[0]
        assert client.closed is None and other.closed is None
    for text in (SECRET, OTHER_SECRET, old, new, old.split(".")[2], new.split(".")[2]):
        assert text not in hub.log


async def test_the_log_changes_its_level_and_its_form(filed):
    hub = filed("log.level: info\n")
    async with await Client.connect(hub.port) as client:
        async def malformed():
            """The lines about a frame that is none."""
            length = len(hub.log)
            client.send_text("nonsense")
            await client.settled()
            await hub.settled()
            return [line for line in hub.log[length:].splitlines() if "malformed" in line]

        assert await malformed() == []
        hub.write(log__level="debug")
        await hub.reload()
        assert len(await malformed()) == 1
        hub.write(log__level="debug", log__format="json")
        await hub.reload()
        (line,) = await malformed()
        assert json.loads(line).keys() >= {"time", "level", "message", "source"} and json.loads(line)["level"] == "debug"
        hub.write(log__level="info")
        await hub.reload()
        assert await malformed() == []


async def test_a_hub_that_is_not_ready_survives_it(cluster):
    hub = FileHub(cluster.create_database(f"reload_{next(_numbers)}"), "limits.channels_per_connection: 1\n")
    try:
        hub.run("migrate")
        hub.start(wait=False)
        hub.wait_until_it_catches(signal.SIGHUP)
        assert not hub.is_listening
        hub.write(limits__channels_per_connection=2)
        for _ in range(5):
            hub.process.send_signal(signal.SIGHUP)
        hub.wait_until_listening()
        until(lambda: hub.reloads > 0, what="the reload that was asked for before")
        async with await Client.connect(hub.port) as client:
            assert await joins(client, 3) == 2
    finally:
        hub.remove()


async def test_which_pages_and_proxies_may_changes(filed):
    hub = filed("http.origins: https://a.example.com\n", ROOST_LIMITS_CONNECTIONS_PER_ADDRESS="1")

    async def enters(**headers):
        try:
            async with await Client.connect(hub.port, headers=headers) as client:
                await client.settled()
                return True
        except Refused as refused:
            return refused.status

    async def is_told(expected, **headers):
        """The socket before this one counts until the hub has seen it close."""
        async def has_answered():
            return await enters(**headers) == expected
        await eventually(has_answered, what=f"{expected} for {headers}")

    await is_told(True, Origin="https://a.example.com")
    await is_told(403, Origin="https://b.example.com")
    hub.write(http__origins="https://b.example.com", http__trusted_proxies="127.0.0.1")
    lines = await hub.reload()
    assert any("The configuration was reloaded: http.origins, http.trusted_proxies." in line for line in lines)
    await is_told(403, Origin="https://a.example.com")
    await is_told(True, Origin="https://b.example.com")
    async with await Client.connect(hub.port, headers={"X-Forwarded-For": "192.0.2.1"}):
        assert await enters(**{"X-Forwarded-For": "192.0.2.1"}) == 429
        assert await enters(**{"X-Forwarded-For": "192.0.2.2"}) is True
