"""Names are bytes: who chooses a name that Unicode calls equivalent to somebody else's is somebody else all the same, as in Postgres."""

import json
import unicodedata
from urllib.parse import quote

import pytest

from support.http import HTTPConnection
from support.serverapi import Backend
from support.streams import Stream, bearer
from support.subscriptions import Subscription
from support.tokens import token
from support.wsclient import Client

pytestmark = pytest.mark.anyio

# What a policy takes for the user's own: streams and channels below the user's name.
OWN = """
    create policy own_streams on realtime.messages to authenticated
        using (starts_with(realtime.topic(), 'stream:' || (current_setting('request.jwt.claims')::json->>'sub') || '/'))
        with check (starts_with(realtime.topic(), 'stream:' || (current_setting('request.jwt.claims')::json->>'sub') || '/'));
    create policy own_room on realtime.messages to authenticated
        using (realtime.topic() = 'room-' || (current_setting('request.jwt.claims')::json->>'sub'))
        with check (realtime.topic() = 'room-' || (current_setting('request.jwt.claims')::json->>'sub'));
"""

# Composed and in parts, two accents in another order, a letter that is another by decree, a compatibility form, a joiner, a mark
# that combines with what stands in front of the name. The last three are no equivalents to Unicode, and tried beside them.
PAIRS = {
    "one scalar and its parts": ("Jos\u00e9", "Jose\u0301"),
    "marks in another order": ("a\u0307\u0323", "a\u0323\u0307"),
    "the sign for kelvin": ("K", "\u212a"),
    "hangul": ("\ud55c", "\u1112\u1161\u11ab"),
    "a ligature": ("fi", "\ufb01"),
    "a joiner": ("ab", "a\u200db"),
    "a mark in front": ("x", "\u0301x"),
}


@pytest.fixture(params=PAIRS)
def pair(request):
    one, other = PAIRS[request.param]
    assert one.encode() != other.encode()
    return one, other


def test_most_pairs_are_equivalent():
    assert sum(unicodedata.normalize("NFC", one) == unicodedata.normalize("NFC", other) for one, other in PAIRS.values()) == 4


@pytest.fixture
def hub_of_names(own_hub, cluster):
    own_hub.environment |= {"ROOST_LIMITS_CONNECTIONS_PER_USER": "1"}
    with cluster.connect(own_hub.database) as sql:
        sql.execute(OWN)
    return own_hub.start()


async def test_a_stream_is_nobodys_but_its_owners(hub_of_names, pair):
    one, other = pair
    victim, attacker = bearer("authenticated", sub=one), bearer("authenticated", sub=other)
    names = quote(f"{one}/1"), quote(f"{other}/1")
    async with await HTTPConnection.open(hub_of_names.port) as http:
        assert (await Stream(http, names[0], **victim).create(body=b"secret")).status == 201
        # The other's own name is another stream, and the right to it is no right to the first.
        assert (await Stream(http, names[1], **attacker).create(body=b"own")).status == 201
        assert (await Stream(http, names[1], **attacker).read()).body == b"own"
        theirs = Stream(http, names[0], **attacker)
        for answer in (await theirs.read(), await theirs.append(b"forged"), await theirs.cancel(), await theirs.delete()):
            assert answer.status in (403, 404), answer.status
        assert (await Stream(http, names[0], **victim).read()).body == b"secret"
        # Nor the other way round: what the first may do is not what the second may.
        assert (await Stream(http, names[1], **victim).read()).status in (403, 404)


async def test_a_channel_is_open_to_its_own_user(hub_of_names, pair):
    one, other = pair
    client = await Client.connect(hub_of_names.port, apikey=token(sub=one))
    try:
        config = {"private": True}
        assert (await client.ask(f"realtime:room-{one}", "phx_join", {"config": config}, "1")).payload["status"] == "ok"
        assert (await client.ask(f"realtime:room-{other}", "phx_join", {"config": config}, "2")).payload["status"] == "error"
    finally:
        await client.close()


async def test_one_right_publishes_to_one_topic(hub_of_names, pair):
    one, other = pair
    bearer_of_one = bearer("authenticated", sub=one)
    async with await HTTPConnection.open(hub_of_names.port) as http:
        def message(name):
            return {"topic": f"room-{name}", "event": "e", "payload": {}, "private": True}
        own = await http.request("POST", "/api/broadcast", {"messages": [message(one)]}, **bearer_of_one)
        assert own.status == 202, own.body
        both = await http.request("POST", "/api/broadcast", {"messages": [message(one), message(other)]}, **bearer_of_one)
        assert both.status == 403 and json.loads(both.body)["topics"] == [f"room-{other}"], both.body


async def test_a_reader_reads_the_channel_that_its_path_names(hub, pair):
    async with await HTTPConnection.open(hub.port) as http:
        for topic in pair:
            async with await Subscription.open(hub.port, f"/api/broadcast/{quote(topic)}/events") as events:
                assert events.first == {"channels": [{"topic": topic, "status": "ok"}]}
                said = await http.request("POST", f"/api/broadcast/{quote(topic)}/events/e", {}, **bearer("service_role"))
                assert said.status == 202, said.body
                assert (await events.message())[:3] == ("e", topic, "e")


async def test_a_backend_means_the_user_that_it_names(hub_of_names, pair):
    one, other = pair
    backend = Backend(hub_of_names)
    # One socket is allowed for each: the second is not counted with the first.
    clients = [await Client.connect(hub_of_names.port, apikey=token(sub=name)) for name in (one, other)]
    try:
        for client in clients:
            await client.join("realtime:a")
        for name in one, other:
            assert (await backend.get(f"/users/{quote(name)}"))["count"] == 1
        assert (await backend.post(f"/users/{quote(other)}/disconnect"))["disconnected"] == 1
        assert (await backend.get(f"/users/{quote(one)}"))["count"] == 1
        await clients[0].settled()
    finally:
        for client in clients:
            await client.close()


async def test_rows_are_those_that_postgres_selects(own_hub, cluster, pair):
    """Tables, columns and filters' values: each of the eight subscriptions gets what a SELECT of the same finds."""
    def quoted(name):
        return '"' + name + '"'
    with cluster.connect(own_hub.database) as sql:
        for table in pair:
            sql.execute(f"create table {quoted(table)} (id int primary key, {quoted(pair[0])} text, {quoted(pair[1])} text)")
            own_hub.watch(quoted(table))
        own_hub.start()
        asked = [(table, column, value) for table in pair for column in pair for value in pair]
        async with await Client.connect(own_hub.port) as client:
            for number, (table, column, value) in enumerate(asked):
                await client.watch(f"realtime:{number}", {"event": "INSERT", "schema": "public", "table": table,
                                                          "filter": f"{column}=eq.{value}"})
            for table in pair:
                for number, (first, second) in enumerate([(pair[0], pair[1]), (pair[1], pair[0]), (pair[0], pair[0])]):
                    sql.execute(f"insert into {quoted(table)} values (%s, %s, %s)", (number, first, second))
            for number, (table, column, value) in enumerate(asked):
                expected = sql.execute(f"select row_to_json(t)::text from {quoted(table)} t where {quoted(column)} = %s order by id", (value,))
                for row, in expected.fetchall():
                    data = (await client.next("postgres_changes", f"realtime:{number}")).payload["data"]
                    assert (data["table"].encode(), data["record"]) == (table.encode(), json.loads(row))
            await own_hub.settled()
            assert not [message for message in await client.settled() if message.event == "postgres_changes"]


async def test_members_are_present_under_their_own_keys(hub_of_names, pair):
    clients = [await Client.connect(hub_of_names.port, apikey=token(sub=name)) for name in pair]
    try:
        for client, key in zip(clients, pair):
            ref, _ = await client.join("realtime:a", config={"presence": {"key": key, "enabled": True}})
            reply = await client.ask("realtime:a", "presence", {"type": "presence", "event": "track", "payload": {"of": key}}, ref)
            assert reply.payload["status"] == "ok"
        async with await Client.connect(hub_of_names.port) as late:
            await late.join("realtime:a", config={"presence": {"enabled": True}})
            state = (await late.next("presence_state")).payload
            assert {key.encode(): [meta["of"] for meta in entry["metas"]] for key, entry in state.items()} == {
                key.encode(): [key] for key in pair}
    finally:
        for client in clients:
            await client.close()
