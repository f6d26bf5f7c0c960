"""Private channels: who comes in, who may write, what SQL sends, what is replayed (wire-protocol A4 to A8, A11, B)."""

import asyncio
import json
import threading
import time

import psycopg
import pytest

from support.bounds import at_most
from support.channels import Rights, installed_policies
from support.cluster import Cluster
from support.deadline import eventually
from support.http import HTTPConnection
from support.hub import Hub
from support.pypi import Listener, python_client
from support.tokens import token
from support.wsclient import Client, kind3

PRIVATE = {"private": True}
both_versions = pytest.mark.parametrize("version", [1, 2])


def of(who, **claims):
    return token(sub=who, **claims)


def bearer(who):
    return {"authorization": "Bearer " + of(who)}


def denied(verb, name):
    return f"Unauthorized: You do not have permissions to {verb} this Channel topic: {name}"


@pytest.fixture(scope="module")
def installed(shared_hub, cluster):
    with installed_policies(shared_hub, cluster):
        yield


@pytest.fixture
def rights(installed, sql, name):
    return Rights(sql, name)


def now_ms():
    return int(time.time() * 1000)


# Joining


@both_versions
async def test_who_may_read_comes_in(connect, rights, topic, name, version):
    rights.give("ann")
    ann, bob = await connect(version, apikey=of("ann")), await connect(version, apikey=of("bob"))
    await ann.join(topic, config=PRIVATE)
    reply = await bob.ask(topic, "phx_join", {"config": PRIVATE})
    assert reply.payload == {"status": "error", "response": {"reason": denied("read from", name)}}
    rights.give("bob", "read broadcast")
    await bob.join(topic, config=PRIVATE)


async def test_who_has_no_claims_or_no_role(connect, rights, topic):
    """A policy that needs `sub` shows nothing to a token without one; a role the database lacks is nobody."""
    rights.give("ann")
    for bad in (token(), token("anon"), token("no_such_role", sub="ann")):
        client = await connect(apikey=bad)
        assert (await client.ask(topic, "phx_join", {"config": PRIVATE})).payload["status"] == "error"
    await (await connect(apikey=token("service_role"))).join(topic, config=PRIVATE)


async def test_private_and_public_are_two_rooms(hub, rights, name):
    rights.give("ann")
    async with python_client(hub, of("ann")) as one, python_client(hub) as two:
        secret = await Listener(one, name, private=True, broadcast_self=True).on_broadcast("e").subscribe()
        public = await Listener(two, name, broadcast_self=True).on_broadcast("e").subscribe()
        await secret.channel.send_broadcast("e", {"from": "private"})
        await public.channel.send_broadcast("e", {"from": "public"})
        await eventually(lambda: secret.broadcasts and public.broadcasts, what="both echoes")
        assert [b["payload"] for b in secret.broadcasts] == [{"from": "private"}]
        assert [b["payload"] for b in public.broadcasts] == [{"from": "public"}]


async def test_the_python_client_is_told_why(hub, rights, name):
    async with python_client(hub, of("bob")) as client:
        state, error = await Listener(client, name, private=True).attempt()
        assert state == "CHANNEL_ERROR" and denied("read from", name) in error


@pytest.mark.clock
async def test_a_changed_policy_counts_within_a_second(connect, sql, rights, topic, name):
    client = await connect(apikey=of("ann"))

    async def becomes(status):
        async def is_it():
            return (await client.ask(topic, "phx_join", {"config": PRIVATE})).payload["status"] == status
        with at_most(1, f"a policy by which a join is {status}"):
            await eventually(is_it, every=0.02)

    await becomes("error")
    sql.execute(f"create policy \"{name}\" on realtime.messages for select using (realtime.topic() = '{name}')")
    try:
        await becomes("ok")
    finally:
        sql.execute(f'drop policy "{name}" on realtime.messages')
    await becomes("error")


async def test_a_hundred_at_once(connect, rights, topic):
    rights.give("ann")
    clients = [await connect(apikey=of("ann" if n % 2 else "bob")) for n in range(100)]
    replies = await asyncio.gather(*(client.ask(topic, "phx_join", {"config": PRIVATE}) for client in clients))
    assert [reply.payload["status"] for reply in replies] == ["error", "ok"] * 50


async def test_private_only(cluster):
    hub = Hub(cluster.create_database("private_only"), ROOST_LIMITS_PRIVATE_ONLY="true")
    try:
        hub.run("migrate")
        hub.start()
        async with await Client.connect(hub.port, apikey=token("service_role")) as client:
            reply = await client.ask("realtime:a", "phx_join", {"config": {}})
            assert reply.payload["response"] == {"reason": "PrivateOnly: This project only allows private channels"}
            await client.join("realtime:a", config=PRIVATE)
            async with await HTTPConnection.open(hub.port) as http:
                service = {"authorization": "Bearer " + token("service_role")}
                public = {"topic": "a", "event": "e", "payload": {}}
                for path, body in (("/api/broadcast/a/events/e", {}), ("/api/broadcast", {"messages": [public]}),
                                   ("/api/broadcast", {"messages": [{**public, "private": True}, public]})):
                    answer = await http.request("POST", path, body, **service)
                    assert (answer.status, answer.json) == (403, {"message": "This project only allows private channels"})
                assert (await http.request("POST", "/api/broadcast/a/events/e?private=true", {"n": 1}, **service)).status == 202
            assert (await client.next("broadcast")).payload["payload"] == {"n": 1}
    finally:
        hub.remove()


# One of the two


async def test_readers_of_presence_alone(connect, rights, topic):
    rights.give("ann").give("bob", "read presence")
    ann, bob = await connect(apikey=of("ann")), await connect(apikey=of("bob"))
    config = {**PRIVATE, "presence": {"enabled": True, "key": "k"}, "broadcast": {"ack": True}}
    ref, _ = await ann.join(topic, config=config)
    await bob.join(topic, config=config)
    await bob.next("presence_state")
    assert (await ann.ask(topic, "broadcast", {"type": "broadcast", "event": "e", "payload": {}}, ref)).payload["status"] == "ok"
    assert (await ann.ask(topic, "presence", {"event": "track", "payload": {"n": 1}}, ref)).payload["status"] == "ok"
    assert "k" in (await bob.next("presence_diff")).payload["joins"]
    await bob.settled()
    assert [m.event for m in bob.messages] == []


async def test_readers_of_broadcasts_alone(connect, rights, topic):
    rights.give("ann").give("bob", "read broadcast")
    ann, bob = await connect(apikey=of("ann")), await connect(apikey=of("bob"))
    config = {**PRIVATE, "presence": {"enabled": True, "key": "k"}}
    ref, _ = await ann.join(topic, config=config)
    await bob.join(topic, config=config)
    await ann.ask(topic, "presence", {"event": "track", "payload": {"n": 1}}, ref)
    ann.push(topic, "broadcast", {"type": "broadcast", "event": "e", "payload": {}}, ann.ref(), ref)
    await bob.next("broadcast")
    await bob.settled()
    assert [m.event for m in bob.messages] == []


# Writing


@both_versions
@pytest.mark.parametrize("ack", [True, False])
async def test_a_denied_broadcast_is_answered_where_its_sender_waits_for_it(hub, connect, rights, topic, name, version, ack):
    """An error reply that nobody asked for makes supabase-kt deaf, and ends the Elixir client's channel."""
    rights.give("ann", "read broadcast")
    ann, service = await connect(version, apikey=of("ann")), await connect(apikey=token("service_role"))
    await service.join(topic, config=PRIVATE)
    ref, _ = await ann.join(topic, config={**PRIVATE, "broadcast": {"ack": ack}})
    refused = 'roost_messages_refused_total{reason="unauthorized"}'
    before = hub.metric(refused)
    message = {"type": "broadcast", "event": "e", "payload": {}}
    for number in range(70, 73):
        ann.push(topic, "broadcast", message, str(number), ref)
    if version == 2:
        ann.send_binary(kind3(ref, "73", topic, "e", b"{}"))
    ann.push(topic, "broadcast", message, None, ref)
    await ann.settled()
    await hub.settled()
    await ann.settled()
    await service.settled()
    expected = {"status": "error", "response": {"error": "unauthorized", "reason": denied("write to", name)}}
    answers = [m.payload for m in ann.messages if m.event == "phx_reply" and m.topic == topic]
    assert answers == [expected] * ((4 if version == 2 else 3) if ack else 0)
    assert service.messages == []
    assert hub.metric(refused) == before + (5 if version == 2 else 4)


async def test_the_python_client_survives_a_denied_broadcast(hub, connect, rights, topic, name):
    rights.give("ann", "read broadcast")
    service = await connect(apikey=token("service_role"))
    ref, _ = await service.join(topic, config=PRIVATE)
    async with python_client(hub, of("ann")) as client:
        listener = await Listener(client, name, private=True).on_broadcast("e").subscribe()
        for _ in range(3):
            await listener.channel.send_broadcast("e", {})
        await listener.channel.track({})
        service.push(topic, "broadcast", {"type": "broadcast", "event": "e", "payload": {"n": 1}}, service.ref(), ref)
        await eventually(lambda: listener.broadcasts, what="the service's message")
        assert [state for state, _ in listener.states] == ["SUBSCRIBED"]


async def test_denied_tracking(connect, rights, topic, name):
    rights.give("ann", "read presence", "write broadcast")
    ann = await connect(apikey=of("ann"))
    ref, _ = await ann.join(topic, config={**PRIVATE, "presence": {"enabled": True}})
    for _ in range(2):
        reply = await ann.ask(topic, "presence", {"event": "track", "payload": {}}, ref)
        assert reply.payload == {"status": "error", "response": {"reason": denied("track presence in", name)}}


async def test_the_first_messages_come_in_order(connect, rights, topic):
    """What is sent while the policies are asked waits for them."""
    rights.give("ann")
    ann, bob = await connect(apikey=of("ann")), await connect(apikey=of("ann"))
    await bob.join(topic, config=PRIVATE)
    ref, _ = await ann.join(topic, config={**PRIVATE, "broadcast": {"ack": True}})
    for n in range(20):
        if n % 2:
            ann.send_binary(kind3(ref, f"b{n}", topic, "e", json.dumps({"n": n}).encode()))
        else:
            ann.push(topic, "broadcast", {"type": "broadcast", "event": "e", "payload": {"n": n}}, f"b{n}", ref)
    got = [await bob.next("broadcast") for _ in range(20)]
    assert [json.loads(m.payload.payload)["n"] if m.is_binary else m.payload["payload"]["n"] for m in got] == list(range(20))
    for n in range(20):
        assert (await ann.next("phx_reply", ref=f"b{n}")).payload["status"] == "ok"


# HTTP


async def test_http_needs_the_right_to_write(connect, http, rights, topic, name):
    rights.give("ann")
    client = await connect(apikey=of("ann"))
    await client.join(topic, config=PRIVATE)
    single = f"/api/broadcast/{name}/events/e?private=true"
    answer = await http.request("POST", single, {"n": 0}, **bearer("bob"))
    assert answer.status == 403
    assert answer.json == {
        "message": f"You do not have permissions to write to this Channel topic: {name}", "topics": [name]}
    assert answer.headers["access-control-allow-origin"] == "*"
    assert (await http.request("POST", single, {"n": 1}, **bearer("ann"))).status == 202
    assert (await client.next("broadcast")).payload["payload"] == {"n": 1}


async def test_a_batch_is_published_whole_or_not_at_all(connect, http, rights, topic, name):
    rights.give("ann")
    secret, public = await connect(apikey=of("ann")), await connect()
    await secret.join(topic, config=PRIVATE)
    await public.join(topic)
    messages = [
        {"topic": name, "event": "e", "payload": {"n": 1}, "private": True}, {"topic": name, "event": "e", "payload": {"n": 2}},
        {"topic": f"{name}/x", "event": "e", "payload": {}, "private": True},
        {"topic": f"{name}/y", "event": "e", "payload": {}, "private": True}]
    answer = await http.request("POST", "/api/broadcast", {"messages": messages}, **bearer("ann"))
    assert (answer.status, answer.json["topics"]) == (403, [f"{name}/x", f"{name}/y"])
    answer = await http.request("POST", "/api/broadcast", {"messages": messages[:2]}, **bearer("ann"))
    assert (answer.status, answer.body) == (202, b"")
    assert (await secret.next("broadcast")).payload["payload"] == {"n": 1}
    assert (await public.next("broadcast")).payload["payload"] == {"n": 2}


async def test_so_many_topics_in_one_request(http, rights, name):
    messages = [{"topic": f"{name}{n}", "event": "e", "payload": {}, "private": True} for n in range(101)]
    assert (await http.request("POST", "/api/broadcast", {"messages": messages}, **bearer("ann"))).status == 422
    answer = await http.request("POST", "/api/broadcast", {"messages": messages[:100]}, **bearer("ann"))
    assert (answer.status, len(answer.json["topics"])) == (403, 100)


# Tokens


async def test_a_fresh_token_keeps_the_channel(connect, rights, topic):
    rights.give("ann")
    ann, service = await connect(apikey=of("ann")), await connect(apikey=token("service_role"))
    ref, _ = await ann.join(topic, config=PRIVATE)
    service_ref, _ = await service.join(topic, config=PRIVATE)
    # One after the other in one piece: how long a machine takes to come to a join is not the question.
    end = time.time() + 5
    for fresh in (of("ann", exp=int(end)), of("ann", lifetime=3600, n=1)):
        ann.push(topic, "access_token", {"access_token": fresh}, ann.ref(), ref)
    while time.time() < end + 0.5:
        service.push(topic, "broadcast", {"type": "broadcast", "event": "e", "payload": {}}, service.ref(), service_ref)
        assert (await ann.next()).event == "broadcast"
        await asyncio.sleep(0.1)


async def test_a_token_of_somebody_else_ends_the_channel(connect, rights, topic, name):
    rights.give("ann")
    ann = await connect(apikey=of("ann"))
    ref, _ = await ann.join(topic, config=PRIVATE)
    ann.push(topic, "access_token", {"access_token": of("bob")}, ann.ref(), ref)
    message = f"You no longer have permission to read from this Channel topic: {name}"
    system = await ann.next("system")
    assert system.payload == {"extension": "system", "status": "error", "message": message, "channel": name}
    error = await ann.next("phx_error")
    assert (error.join_ref, error.ref) == (ref, ref)
    assert (await ann.ask(topic, "broadcast", {}, ref)).payload["response"] == {"reason": "unmatched topic"}


async def test_revoked_rights_end_with_the_next_token(connect, rights, topic):
    """As in the original: rights hold for a token's life, so tokens should be short."""
    rights.give("ann")
    ann = await connect(apikey=of("ann"))
    ref, _ = await ann.join(topic, config={**PRIVATE, "broadcast": {"self": True}})
    rights.take("ann")
    ann.push(topic, "access_token", {"access_token": of("ann", n=2)}, ann.ref(), ref)
    await ann.next("phx_error")


async def test_write_rights_are_asked_anew_for_a_new_token(connect, rights, topic):
    rights.give("ann", "read broadcast")
    ann = await connect(apikey=of("ann"))
    ref, _ = await ann.join(topic, config={**PRIVATE, "broadcast": {"ack": True}})
    message = {"type": "broadcast", "event": "e", "payload": {}}
    assert (await ann.ask(topic, "broadcast", message, ref)).payload["status"] == "error"
    rights.give("ann", "write broadcast")
    assert (await ann.ask(topic, "broadcast", message, ref)).payload["status"] == "error", "for the token's life"
    ann.push(topic, "access_token", {"access_token": of("ann", n=2)}, ann.ref(), ref)
    assert (await ann.ask(topic, "broadcast", message, ref)).payload["status"] == "ok"


async def test_expiry_and_coming_back(connect, rights, topic):
    """A client that wakes with a stale token, gets a fresh one and joins again is in."""
    rights.give("ann")
    ann = await connect(apikey=of("ann"))
    ref, _ = await ann.join(topic, config=PRIVATE)
    short = of("ann", lifetime=2)
    ann.push(topic, "access_token", {"access_token": short}, ann.ref(), ref)
    await ann.next("phx_error")
    stale = await ann.ask(topic, "phx_join", {"config": PRIVATE, "access_token": short})
    assert stale.payload["response"]["reason"].startswith("InvalidJWTToken: Token has expired")
    await ann.join(topic, config=PRIVATE, access_token=of("ann"))


async def test_the_python_client_comes_back_with_a_fresh_token(hub, rights, name):
    rights.give("ann")
    async with python_client(hub, of("ann", lifetime=3600)) as client:
        listener = await Listener(client, name, private=True).subscribe()
        await client.set_auth(of("ann", lifetime=2))
        await listener.wait_for_state("CHANNEL_ERROR")
        count = len(listener.states)
        await client.set_auth(of("ann"))
        await listener.wait_for_state("SUBSCRIBED", after=count)


# Messages from SQL


def meta_of(message):
    return json.loads(message.payload.metadata) if message.is_binary else message.payload["meta"]


def body_of(message):
    return json.loads(message.payload.payload) if message.is_binary else message.payload["payload"]


@both_versions
async def test_sql_sends_to_channels(connect, sql, rights, topic, name, version):
    rights.give("ann")
    secret, public = await connect(version, apikey=of("ann")), await connect(version)
    await secret.join(topic, config=PRIVATE)
    await public.join(topic)
    sql.execute("select realtime.send('{\"n\": 1}', 'e', %s)", [name])
    sql.execute("select realtime.send('{\"n\": 2}', 'e', %s, false)", [name])
    for client, n in (secret, 1), (public, 2):
        message = await client.next("broadcast")
        assert body_of(message)["n"] == n
        [(id,)] = sql.execute("select id from realtime.messages where topic = %s and payload ->> 'n' = %s", [name, str(n)])
        assert meta_of(message) == {"id": str(id)}
        await client.settled()
        assert client.messages == []


async def test_sql_sends_bytes(connect, sql, rights, topic, name):
    rights.give("ann")
    one, two = await connect(1, apikey=of("ann")), await connect(2, apikey=of("ann"))
    for client in one, two:
        await client.join(topic, config=PRIVATE)
    sql.execute("select realtime.send_binary('\\x00ff10', 'blob', %s), realtime.send('{}', 'fence', %s)", [name, name])
    message = await two.next("broadcast")
    assert message.is_binary and (message.payload.event, message.payload.encoding) == ("blob", 0)
    assert message.payload.payload == b"\x00\xff\x10"
    assert "id" in json.loads(message.payload.metadata)
    assert (await one.next("broadcast")).payload["event"] == "fence", "version 1 has no form for bytes"


async def test_broadcast_changes_from_a_trigger(connect, sql, rights, topic, name):
    rights.give("ann")
    client = await connect(apikey=of("ann"))
    await client.join(topic, config=PRIVATE)
    sql.execute(f"""
        create table "{name}" (id int primary key, body text);
        create function "{name}_changed"() returns trigger language plpgsql as $$ begin
            perform realtime.broadcast_changes('{name}', tg_op, tg_op, tg_table_name, tg_table_schema, new, old);
            return null;
        end $$;
        create trigger t after insert or update or delete on "{name}" for each row execute function "{name}_changed"();
        insert into "{name}" values (1, 'a'); update "{name}" set body = 'b'; delete from "{name}";
    """)
    got = [body_of(await client.next("broadcast")) for _ in range(3)]
    assert [m["operation"] for m in got] == ["INSERT", "UPDATE", "DELETE"]
    assert got[1]["record"] == {"id": 1, "body": "b"} and got[1]["old_record"] == {"id": 1, "body": "a"}
    assert (got[0]["table"], got[0]["schema"], got[0]["old_record"]) == (name, "public", None)


async def test_sql_messages_come_in_commit_order(connect, cluster, rights, topic, name):
    """Two transactions that overlap: the one that commits first is heard first, each in its own order."""
    rights.give("ann")
    client = await connect(apikey=of("ann"))
    await client.join(topic, config=PRIVATE)
    with psycopg.connect(cluster.url("shared")) as early, psycopg.connect(cluster.url("shared")) as late:
        for n in range(3):
            early.execute("select realtime.send(%s, 'e', %s)", [json.dumps({"n": f"early{n}"}), name])
            late.execute("select realtime.send(%s, 'e', %s)", [json.dumps({"n": f"late{n}"}), name])
        late.commit()
        assert [body_of(await client.next("broadcast"))["n"] for _ in range(3)] == ["late0", "late1", "late2"]
        early.commit()
        assert [body_of(await client.next("broadcast"))["n"] for _ in range(3)] == ["early0", "early1", "early2"]
        early.execute("select realtime.send('{}', 'e', %s)", [name])
        early.rollback()
    await client.settled()
    assert client.messages == []


# Replay


def replay(since=0, **more):
    return {**PRIVATE, "broadcast": {"replay": {"since": since, **more}}}


async def test_replay_in_both_versions(connect, sql, rights, topic, name):
    rights.give("ann")
    for n in range(3):
        sql.execute("select realtime.send(%s, %s, %s)", [json.dumps({"n": n}), f"e{n}", name])
    sql.execute("select realtime.send_binary('\\x01', 'blob', %s)", [name])
    sql.execute("select realtime.send('{}', 'public', %s, false)", [name])
    ids = [str(id) for id, in sql.execute(
        "select id from realtime.messages where topic = %s and private order by inserted_at", [name])]
    for version in 1, 2:
        client = await connect(version, apikey=of("ann"))
        ref, _ = await client.join(topic, config=replay())
        got = [await client.next("broadcast") for _ in range(3)]
        assert [m.payload["event"] for m in got] == ["e0", "e1", "e2"]
        assert [m.payload["payload"]["n"] for m in got] == [0, 1, 2]
        assert [m.payload["meta"] for m in got] == [{"replayed": True, "id": id} for id in ids[:3]]
        if version == 2:
            assert {m.join_ref for m in got} == {ref}
            blob = await client.next("broadcast")
            assert json.loads(blob.payload.metadata) == {"replayed": True, "id": ids[3]}
            assert (blob.payload.encoding, blob.payload.payload) == (0, b"\x01")
        await client.settled()
        assert client.messages == []


async def test_replay_since_and_limit(connect, sql, rights, topic, name):
    rights.give("ann")
    first = await connect(apikey=of("ann"))
    await first.join(topic, config=PRIVATE)
    for n in range(30):
        sql.execute("select realtime.send(%s, 'e', %s)", [json.dumps({"n": n}), name])
    # What the feed has yet to bring is live, whatever the limit of a replay.
    for _ in range(30):
        await first.next("broadcast")
    [(middle,)] = sql.execute(
        "select extract(epoch from inserted_at at time zone 'UTC') * 1000 from realtime.messages "
        "where topic = %s and payload ->> 'n' = '20'", [name])
    for config, expected in [
        (replay(), range(5, 30)), (replay(limit=3), range(27, 30)), (replay(limit=99), range(5, 30)),
        ({**PRIVATE, "broadcast": {"replay": {}}}, range(5, 30)), (replay(limit=0), range(29, 30)), (replay(now_ms() + 30_000), range(0)),
    ]:
        client = await connect(apikey=of("ann"))
        await client.join(topic, config=config)
        await client.settled()
        assert [m.payload["payload"]["n"] for m in client.messages] == list(expected), config
    client = await connect(apikey=of("ann"))
    await client.join(topic, config=replay(int(middle)))
    await client.settled()
    numbers = [m.payload["payload"]["n"] for m in client.messages]
    # A millisecond may hold several.
    assert numbers[-10:] == list(range(20, 30)) and numbers == sorted(numbers)


@pytest.mark.parametrize("config, reason", [
    ({"broadcast": {"replay": {"since": 0}}}, "Replay is not allowed for public channels"),
    ({**PRIVATE, "broadcast": {"replay": []}}, "Replay params are not valid"), (replay("0"), "Replay params are not valid"), (replay(0, limit="3"), "Replay params are not valid"),
    ({**PRIVATE, "broadcast": {"replay": True}}, "Replay params are not valid"),
])
async def test_replays_that_are_refused(connect, rights, topic, config, reason):
    rights.give("ann")
    client = await connect(apikey=of("ann"))
    reply = await client.ask(topic, "phx_join", {"config": config})
    assert reply.payload == {"status": "error", "response": {"reason": f"UnableToReplayMessages: {reason}"}}


async def test_no_replay_without_the_right_to_read_broadcasts(connect, sql, rights, topic, name):
    rights.give("ann", "read presence")
    sql.execute("select realtime.send('{}', 'e', %s)", [name])
    client = await connect(apikey=of("ann"))
    reply = await client.ask(topic, "phx_join", {"config": replay()})
    assert reply.payload["response"] == {"reason": denied("read from", name)}


async def join_although_it_is_busy(client, topic, config):
    """The hub refuses a join whose replay Postgres does not have in time, and clients join again then."""
    async def is_let_in():
        ref = client.ref()
        client.push(topic, "phx_join", {"config": config}, ref, ref)
        reply = await client.next("phx_reply", topic, ref)
        assert reply.payload["status"] == "ok" or reply.payload["response"]["reason"].startswith("UnableToReplayMessages"), reply
        return reply.payload["status"] == "ok"
    await eventually(is_let_in, 60, "a join that is not refused")


async def test_joins_with_a_replay_in_a_stream_miss_nothing(connect, cluster, rights, topic, name):
    """While SQL sends without a pause: from the first replayed message on, every number once, in order."""
    rights.give("ann")
    done = threading.Event()

    def write():
        with cluster.connect("shared") as connection:
            n = 0
            while not done.is_set():
                connection.execute("select realtime.send(%s, 'e', %s)", [json.dumps({"n": n}), name])
                n += 1
            connection.execute("select realtime.send('{\"n\": -1}', 'e', %s)", [name])

    clients = [await connect(apikey=of("ann")) for _ in range(30)]
    writer = threading.Thread(target=write)
    writer.start()
    try:
        await clients[0].join(topic, config=PRIVATE)
        for _ in range(5):
            await clients[0].next("broadcast")
        for client in clients[1:]:
            await join_although_it_is_busy(client, topic, replay(limit=5))
            await eventually(lambda: any("replayed" not in meta_of(m) for m in client.messages), what="a live message")
    finally:
        done.set()
        await asyncio.to_thread(writer.join)
    for client in clients[1:]:
        def numbers():
            return [body_of(m)["n"] for m in client.messages]
        await eventually(lambda: -1 in numbers(), what=lambda: f"the last of {numbers()}")
        replayed = [body_of(m)["n"] for m in client.messages if "replayed" in meta_of(m)]
        live = [body_of(m)["n"] for m in client.messages if "replayed" not in meta_of(m)][:-1]
        assert len(replayed) == 5 and len(set(numbers())) == len(numbers()), "none twice"
        assert live == sorted(live) and replayed == sorted(replayed)
        # The feed may still bring what lies before the replay; there is no gap behind its first.
        assert not set(range(replayed[0], live[-1])) - set(numbers())


# The database goes away


async def test_without_a_database_nobody_is_let_in_and_everybody_is_told():
    cluster = Cluster().start()
    hub = Hub(cluster.create_database("hub"))
    try:
        hub.run("migrate")
        with cluster.connect("hub") as sql:
            # Commits do not wait for the disk in these clusters, and this one is going to crash.
            sql.execute("checkpoint")
        hub.start()
        service = {"authorization": "Bearer " + token("service_role")}
        async with await Client.connect(hub.port, apikey=token("service_role")) as client, \
                await HTTPConnection.open(hub.port) as http:
            ref, _ = await client.join("realtime:a", config={**PRIVATE, "broadcast": {"ack": True}})
            cluster.stop("immediate")
            away = "UnableToConnectToProject: Realtime was unable to connect to the project database"

            async def is_refused():
                reply = await client.ask("realtime:b", "phx_join", {"config": PRIVATE})
                return reply.payload["response"] == {"reason": away}
            # What was found of a role that is beyond policies holds for a moment.
            with at_most(1, "the end of what was found"):
                await eventually(is_refused)
            message = {"type": "broadcast", "event": "e", "payload": {}}
            refused = (await client.ask("realtime:a", "broadcast", message, ref)).payload["response"]
            assert refused == {"error": "unable_to_connect_to_project", "reason": away}
            answer = await http.request("POST", "/api/broadcast/a/events/e?private=true", {}, **service)
            assert (answer.status, answer.json) == (503, {"message": away.split(": ", 1)[1]})
            cluster.start()

            async def is_back():
                return (await client.ask("realtime:b", "phx_join", {"config": PRIVATE})).payload["status"] == "ok"
            await eventually(is_back, every=0.1)
            assert (await http.request("POST", "/api/broadcast/a/events/e?private=true", {}, **service)).status == 202
            await client.next("broadcast", "realtime:a")
        cluster.stop("immediate")
        assert hub.stop() == 0, "and an authority without a database keeps nobody from stopping"
    finally:
        hub.remove()
        cluster.remove()
