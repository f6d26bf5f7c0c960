"""The frames themselves, of both versions: what clients hide, and what they rely on (wire-protocol A0 to A9)."""

import asyncio
import json
import re

import pytest

from support.deadline import eventually
from support.tokens import token
from support.websocket import TEXT, WebSocket
from support.wsclient import kind3

both_versions = pytest.mark.parametrize("version", [1, 2])


def keys(message):
    """join_ref, ref; of version 1, which has no join_ref, the ref alone."""
    frame = json.loads(message.raw)
    return frame[:2] if isinstance(frame, list) else [frame["ref"]]


@pytest.mark.parametrize("path", ["/realtime/v1/websocket", "/socket/websocket"])
async def test_both_prefixes(connect, path):
    client = await connect(path=path)
    await client.settled()


async def test_version_1_is_the_default(hub):
    socket = await WebSocket.open(hub.port, f"/socket/websocket?apikey={token()}")
    socket.send(TEXT, json.dumps({"event": "heartbeat", "payload": {}, "topic": "phoenix", "ref": None, "join_ref": None}))
    _, answer = await asyncio.wait_for(socket.receive(), 30)
    assert json.loads(answer) == {
        "topic": "phoenix", "event": "phx_reply", "payload": {"status": "ok", "response": {}}, "ref": None}
    await socket.close()


@both_versions
async def test_heartbeat(connect, version):
    client = await connect(version)
    reply = await client.ask("phoenix", "heartbeat", {})
    assert reply.payload == {"status": "ok", "response": {}}
    assert keys(reply) == ([None, "1"] if version == 2 else ["1"])


@both_versions
async def test_the_frames_of_a_join_in_their_order(connect, version, table, topic):
    client = await connect(version)
    wanted = {"event": "INSERT", "schema": "public", "table": table, "filter": " id=gt.0 , n=not.is.null"}
    config = {"presence": {"key": "me", "enabled": True}, "postgres_changes": [wanted, {"event": "*", "schema": "public", "table": table}]}
    client.push(topic, "phx_join", {"config": config}, "7", "7")
    await client.next("presence_state")
    await client.next("system")
    reply = client.messages[0]
    assert reply.event == "phx_reply" and reply.ref == "7"
    assert reply.payload["status"] == "ok"
    entries = reply.payload["response"]["postgres_changes"]
    for entry, asked in zip(entries, config["postgres_changes"], strict=True):
        number = entry.pop("id")
        assert isinstance(number, int) and 0 < number < 2**31
        assert entry == asked, "echoed as it came"


@both_versions
async def test_refs_of_server_frames(connect, version, hub, sql, table, topic):
    """join_ref and ref by the table of A2."""
    one, two = await connect(version), await connect(version)
    ref, _ = await one.join(topic, [{"event": "*", "schema": "public", "table": table}], {"presence": {"enabled": True}})
    await two.join(topic)

    def check(message, join_ref, ref):
        assert keys(message) == ([join_ref, ref] if version == 2 else [ref]), message.raw

    check(await one.next("system"), ref, None)
    check(await one.next("presence_state"), ref, None)
    track = await one.ask(topic, "presence", {"type": "presence", "event": "track", "payload": {}}, ref)
    check(track, ref, track.ref)
    check(await one.next("presence_diff"), None, None)
    two.push(topic, "broadcast", {"type": "broadcast", "event": "e", "payload": {}})
    check(await one.next("broadcast"), None, None)
    sql.execute(f"insert into {table} values (1)")
    check(await one.next("postgres_changes"), None, None)
    leave = await one.ask(topic, "phx_leave", {}, ref)
    check(leave, ref, leave.ref)
    check(await one.next("phx_close"), ref, ref)
    unmatched = await one.ask(topic, "broadcast", {}, ref)
    check(unmatched, None, unmatched.ref)


@both_versions
async def test_a_join_without_changes_has_the_key_that_swift_waits_for(connect, version, topic):
    client = await connect(version)
    client.push(topic, "phx_join", {"config": {}}, "1", "1")
    reply = await client.next("phx_reply")
    assert reply.payload == {"status": "ok", "response": {"postgres_changes": []}}
    await client.settled()
    assert client.messages == [], "no presence_state that nobody asked for"


@both_versions
async def test_a_legacy_join_names_the_table_in_its_topic(connect, version, sql, table):
    """Without `config`: the event is that of the change, and the payload its data."""
    client = await connect(version)
    topic = f"realtime:public:{table}:n=eq.5"
    reply = await client.ask(topic, "phx_join", {})
    assert reply.payload["status"] == "ok"
    await client.next("system")
    sql.execute(f"insert into {table} values (1, 'no', 4), (2, 'yes', 5)")
    sql.execute(f"update {table} set body = 'more'")
    insert, update = await client.next("INSERT", topic), await client.next("UPDATE", topic)
    assert insert.payload["record"] == {"id": 2, "body": "yes", "n": 5}
    assert (update.payload["type"], update.payload["record"]["body"]) == ("UPDATE", "more")
    await client.settled()
    assert client.messages == []


async def test_the_same_parameters_and_the_select_key_are_echoed(connect, table, topic):
    client = await connect()
    entry = {"event": "insert", "schema": "public", "table": table, "select": ["id"], "unknown": {"deep": [1]}}
    _, response = await client.join(topic, [None, entry, entry])
    assert [{**e, "id": 0} for e in response["postgres_changes"]] == [{**entry, "id": 0}] * 2
    ids = [e["id"] for e in response["postgres_changes"]]
    assert all(isinstance(i, int) and i for i in ids)


async def test_booleans_may_be_strings(connect, topic):
    client = await connect()
    await client.join(topic, config={"broadcast": {"self": "true", "ack": "false"}, "presence": {"enabled": "true"}})
    await client.next("presence_state")
    client.push(topic, "broadcast", {"type": "broadcast", "event": "e", "payload": {}}, client.ref())
    await client.next("broadcast")
    await client.settled()
    assert client.messages == []


@pytest.mark.parametrize("config", [
    [], "text", 7, {"broadcast": 1, "presence": [], "postgres_changes": {}, "private": "no"},
    {"postgres_changes": None}, {"presence": {"key": 5, "enabled": None}}])
async def test_an_odd_config_keeps_nobody_out(connect, topic, config):
    client = await connect()
    client.push(topic, "phx_join", {"config": config}, "1", "1")
    assert (await client.next("phx_reply")).payload["status"] == "ok"


async def test_topics_that_cannot_be_joined(connect):
    client = await connect()
    reply = await client.ask("realtime:", "phx_join", {})
    assert reply.payload == {"status": "error", "response": {"reason": "TopicNameRequired: You must provide a topic name"}}
    for topic in ("other:room", "phoenix", "", "realtime"):
        reply = await client.ask(topic, "phx_join", {})
        assert reply.payload == {"status": "error", "response": {"reason": "unmatched topic"}}
        assert keys(reply) == [None, reply.ref]


async def test_messages_on_a_topic_that_is_not_joined(connect, topic):
    client = await connect()
    for event in ("broadcast", "presence", "whatever"):
        reply = await client.ask(topic, event, {}, "1")
        assert reply.payload == {"status": "error", "response": {"reason": "unmatched topic"}}
    client.push(topic, "access_token", {"access_token": token()}, client.ref(), "1")
    client.push(topic, "broadcast", {}, None, "1")
    assert await client.settled() == [], "to a token nobody waits for an answer, nor to what has no ref"
    reply = await client.ask(topic, "phx_leave", {}, "1")
    assert reply.payload == {"status": "ok", "response": {}}, "a leave is always granted"


async def test_an_unknown_event_on_a_joined_topic_is_silent(connect, topic):
    client = await connect()
    await client.join(topic)
    client.push(topic, "whatever", {}, "9", "1")
    await client.settled()
    assert client.messages == []


@both_versions
async def test_a_second_join_replaces_the_first(connect, version, topic):
    client, other = await connect(version), await connect(version)
    await client.join(topic, config={"presence": {"key": "me", "enabled": True}})
    await client.ask(topic, "presence", {"event": "track", "payload": {}}, "1")
    await client.join(topic)
    await other.join(topic)
    other.push(topic, "broadcast", {"event": "e", "type": "broadcast", "payload": {"n": 1}})
    await client.next("broadcast")
    await client.settled()
    events = [m.event for m in client.messages]
    assert "broadcast" not in events, "one membership, one copy"
    # The Python client would take the old one's close for the new channel's.
    assert "phx_close" not in events
    await other.join(topic, config={"presence": {"enabled": True}})
    assert (await other.next("presence_state")).payload == {}, "the first incarnation's presence ended with it"


@both_versions
async def test_leave(connect, version, topic):
    client, other = await connect(version), await connect(version)
    ref, _ = await client.join(topic)
    await other.join(topic)
    await client.ask(topic, "phx_leave", {}, ref)
    close = await client.next("phx_close")
    assert close.payload == {} and close.ref == ref
    other.push(topic, "broadcast", {"event": "e", "payload": {}})
    await other.settled()
    await client.settled()
    assert client.messages == []


async def test_a_leave_of_an_old_incarnation_does_not_end_the_new_one(connect, topic):
    client = await connect()
    first, _ = await client.join(topic)
    second, _ = await client.join(topic, config={"broadcast": {"self": True}})
    assert (await client.ask(topic, "phx_leave", {}, first)).payload["status"] == "ok"
    client.push(topic, "broadcast", {"event": "e", "payload": {}}, join_ref=second)
    await client.next("broadcast")


async def test_a_missing_join_ref_is_accepted_and_a_stale_one_is_not(hub, connect, topic):
    client = await connect()
    await client.join(topic, config={"broadcast": {"self": True}})
    before = hub.metric("roost_messages_stale_total")
    for number, join_ref in enumerate(["999", None]):
        client.push(topic, "broadcast", {"event": "e", "payload": {"n": number}}, join_ref=join_ref)
    assert (await client.next("broadcast")).payload["payload"] == {"n": 1}
    await hub.settled()
    assert hub.metric("roost_messages_stale_total") == before + 1


async def test_extra_elements_are_tolerated(connect, topic):
    client = await connect()
    await client.join(topic, config={"broadcast": {"self": True}})
    client.send_text(json.dumps(["1", "2", topic, "broadcast", {"event": "e", "payload": {}}, "extra", 7]))
    await client.next("broadcast")


# Broadcast


async def test_acknowledgement_only_where_asked_for(connect, topic):
    client = await connect()
    await client.join(topic, config={"broadcast": {"ack": True}})
    reply = await client.ask(topic, "broadcast", {"event": "e", "payload": {}})
    assert reply.payload == {"status": "ok", "response": {}}
    await client.join(topic)
    client.push(topic, "broadcast", {"event": "e", "payload": {}}, client.ref())
    await client.settled()
    assert client.messages == []


async def test_a_text_broadcast_passes_verbatim(connect, topic):
    """Extra keys, spaces, big numbers and escapes: the payload is the sender's, byte for byte."""
    sender = await connect()
    await sender.join(topic)
    receivers = [await connect(version) for version in (1, 2)]
    for receiver in receivers:
        await receiver.join(topic)
    payload = r'{"type":"broadcast", "event":"e","extra":[1.50,12345678901234567890],"payload":{"t":"\u00e9\n\/ü"}}'
    sender.send_text(f'["1","5","{topic}","broadcast",{payload}]')
    for receiver in receivers:
        assert payload.encode() in (await receiver.next("broadcast")).raw


async def test_kind_3_reaches_version_2_as_kind_4_and_version_1_as_text(connect, topic):
    sender, one, two = await connect(2), await connect(1), await connect(2)
    for client in (sender, one, two):
        await client.join(topic, config={"broadcast": {"ack": True}})
    payload = b'{"x" : 1.0, "t":"\xc3\xbc"}'
    sender.send_binary(kind3("1", "8", topic, "cursor", payload))
    assert (await sender.next("phx_reply", ref="8")).payload == {"status": "ok", "response": {}}
    frame = await two.next("broadcast")
    assert frame.is_binary
    name = topic.encode()
    assert frame.raw == bytes([4, len(name), 6, 0, 1]) + name + b"cursor" + payload, "bytes untouched"
    text = await one.next("broadcast")
    assert text.payload == {"type": "broadcast", "event": "cursor", "payload": {"x": 1.0, "t": "ü"}}
    await sender.settled()
    assert sender.messages == [], "no echo without self"


async def test_raw_bytes_reach_version_2_alone(connect, topic):
    sender, one, two = await connect(2), await connect(1), await connect(2)
    for client in (sender, one, two):
        await client.join(topic)
    data = bytes(range(256)) * 4
    sender.send_binary(kind3("1", "8", topic, "blob", data, encoding=0))
    sender.push(topic, "broadcast", {"event": "fence", "payload": {}})
    frame = await two.next("broadcast")
    assert (frame.payload.encoding, frame.payload.event, frame.payload.payload) == (0, "blob", data)
    assert (await one.next("broadcast")).payload["event"] == "fence"


async def test_kind_3_with_metadata(connect, topic):
    sender, one, two = await connect(2), await connect(1), await connect(2)
    for client in (sender, one, two):
        await client.join(topic)
    sender.send_binary(kind3("1", "8", topic, "e", b'{"n":1}', metadata=b'{"id":"m-1"}'))
    assert (await two.next("broadcast")).payload.metadata in (b'{"id":"m-1"}', b"")
    assert (await one.next("broadcast")).payload["payload"] == {"n": 1}


async def test_a_text_broadcast_reaches_version_2_as_text(connect, topic):
    sender, two = await connect(1), await connect(2)
    for client in (sender, two):
        await client.join(topic)
    sender.push(topic, "broadcast", {"type": "broadcast", "event": "e", "payload": {"n": 1}})
    frame = await two.next("broadcast")
    assert not frame.is_binary
    assert frame.payload == {"type": "broadcast", "event": "e", "payload": {"n": 1}}


async def test_a_payload_over_the_limit_is_refused_with_a_reason(connect, topic):
    client, other = await connect(), await connect()
    await client.join(topic, config={"broadcast": {"ack": True}})
    await other.join(topic)
    reply = await client.ask(topic, "broadcast", {"event": "e", "payload": {"t": "x" * 3_100_000}})
    assert reply.payload["status"] == "error"
    assert reply.payload["response"]["reason"].startswith("payload_size_exceeded: ")
    await client.ask(topic, "broadcast", {"event": "small", "payload": {}})
    assert (await other.next("broadcast")).payload["event"] == "small"


# Presence


async def test_presence_frames(connect, topic):
    one, two = await connect(2), await connect(1)
    await one.join(topic, config={"presence": {"key": "a", "enabled": True}})
    assert (await one.next("presence_state")).payload == {}
    await one.ask(topic, "presence", {"type": "presence", "event": "TRACK", "payload": {"n": 1}})
    first = (await one.next("presence_diff")).payload
    assert first["leaves"] == {}
    [meta] = first["joins"]["a"]["metas"]
    assert meta["n"] == 1 and isinstance(meta["phx_ref"], str)

    await two.join(topic, config={"presence": {"key": "b", "enabled": True}})
    assert (await two.next("presence_state")).payload == {"a": {"metas": [meta]}}

    await one.ask(topic, "presence", {"event": "track", "payload": {"n": 1}})
    await one.settled()
    assert one.messages == [], "the same again is nothing new"

    await one.ask(topic, "presence", {"event": "track", "payload": {"n": 2}})
    diff = (await two.next("presence_diff")).payload
    [new] = diff["joins"]["a"]["metas"]
    assert new["n"] == 2 and new["phx_ref"] != meta["phx_ref"] and new["phx_ref_prev"] == meta["phx_ref"]
    assert [m["phx_ref"] for m in diff["leaves"]["a"]["metas"]] == [meta["phx_ref"]]

    await one.ask(topic, "presence", {"event": "untrack"})
    diff = (await two.next("presence_diff")).payload
    assert diff["joins"] == {} and list(diff["leaves"]) == ["a"]


async def test_several_sockets_under_one_key(connect, topic):
    clients = [await connect() for _ in range(3)]
    for number, client in enumerate(clients):
        await client.join(topic, config={"presence": {"key": "same", "enabled": True}})
        await client.ask(topic, "presence", {"event": "track", "payload": {"n": number}})
    late = await connect()
    await late.join(topic, config={"presence": {"enabled": True}})
    metas = (await late.next("presence_state")).payload["same"]["metas"]
    assert sorted(m["n"] for m in metas) == [0, 1, 2]
    assert len({m["phx_ref"] for m in metas}) == 3
    clients[1].socket.abort()
    diff = (await late.next("presence_diff")).payload
    assert [m["n"] for m in diff["leaves"]["same"]["metas"]] == [1]


async def test_presence_that_is_not_a_map_or_unknown(connect, topic):
    client = await connect()
    await client.join(topic, config={"presence": {"enabled": True}})
    reply = await client.ask(topic, "presence", {"event": "track", "payload": [1]})
    assert reply.payload == {"status": "error", "response": {"reason": "Presence track payload must be a map"}}
    reply = await client.ask(topic, "presence", {"event": "dance", "payload": {}})
    assert reply.payload["status"] == "error" and isinstance(reply.payload["response"], dict)


async def test_tracking_turns_presence_on(connect, topic):
    client, other = await connect(), await connect()
    await client.join(topic)
    await other.join(topic, config={"presence": {"key": "o", "enabled": True}})
    await client.ask(topic, "presence", {"event": "track", "payload": {}})
    await client.next("presence_diff")
    await other.ask(topic, "presence", {"event": "track", "payload": {}})
    await client.next("presence_diff", where=lambda m: "o" in m.payload["joins"])


# Tokens


@both_versions
async def test_the_token_of_the_join_wins(connect, hub, version, topic):
    """`user_token` before `access_token` before the socket's; `sb_…` are no tokens."""
    client = await connect(version, apikey=token("service_role"))
    config = {"private": True}
    for extra, status in [
        ({}, "ok"), ({"access_token": token("anon")}, "error"), ({"access_token": "sb_publishable_x"}, "ok"),
        ({"access_token": token("service_role"), "user_token": token("anon")}, "error"), ({"access_token": None}, "ok"),
    ]:
        reply = await client.ask(topic, "phx_join", {"config": config, **extra})
        assert reply.payload["status"] == status, (extra, reply.payload)


@both_versions
async def test_a_good_access_token_is_taken_in_silence(connect, version, topic):
    client = await connect(version)
    ref, _ = await client.join(topic)
    for new in (token(), None, "sb_secret_x"):
        client.push(topic, "access_token", {"access_token": new}, client.ref(), ref)
    await client.settled()
    assert [m.event for m in client.messages if m.event != "system"] == []


@both_versions
async def test_a_bad_access_token_ends_the_channel_in_a_way_that_clients_come_back_from(connect, version, topic):
    client = await connect(version)
    ref, _ = await client.join(topic, config={"broadcast": {"self": True}})
    client.push(topic, "access_token", {"access_token": token(lifetime=-5)}, client.ref(), ref)
    system = await client.next("system")
    assert (system.payload["extension"], system.payload["status"]) == ("system", "error")
    assert int(re.match(r"Token has expired (\d+) seconds ago", system.payload["message"])[1]) >= 5
    error = await client.next("phx_error")
    assert error.ref == ref and (version == 1 or error.join_ref == ref)
    assert (await client.ask(topic, "broadcast", {"event": "e", "payload": {}})).payload["status"] == "error"


async def test_replication_ready(connect, topic):
    client = await connect()
    await client.join(topic, config={"broadcast": {"replication_ready": True}})
    system = await client.next("system")
    assert system.payload == {
        "extension": "system", "status": "ok", "message": "Replication connection established",
        "channel": topic.removeprefix("realtime:")}


async def test_the_system_message_has_all_four_keys(connect, table, topic):
    client = await connect()
    await client.join(topic, [{"event": "*", "schema": "public", "table": table}])
    assert (await client.next("system")).payload == {
        "extension": "postgres_changes", "status": "ok", "message": "Subscribed to PostgreSQL",
        "channel": topic.removeprefix("realtime:")}


async def test_the_old_row_is_never_null_and_ids_are_those_of_the_channel(connect, sql, table, topic):
    client = await connect()
    _, response = await client.watch(topic, {"event": "*", "schema": "public", "table": table},
                                     {"event": "DELETE", "schema": "public", "table": table})
    every, deletes = [e["id"] for e in response["postgres_changes"]]
    sql.execute(f"insert into {table} values (1)")
    insert = (await client.next("postgres_changes")).payload
    assert insert["ids"] == [every] and "old_record" not in insert["data"] and insert["data"]["errors"] is None
    sql.execute(f"delete from {table}")
    delete = (await client.next("postgres_changes")).payload
    assert sorted(delete["ids"]) == sorted([every, deletes]) and "record" not in delete["data"]


async def test_live_means_live(connect, cluster, hub, sql, table, topic):
    """Every commit after the join's reply reaches the client, for joins in the middle of a stream of commits."""
    stop, committed = False, []

    def write():
        with cluster.connect("shared") as connection:
            while not stop:
                number = len(committed) + 1
                connection.execute(f"insert into {table} values (%s)", (number,))
                committed.append(number)

    writer = asyncio.create_task(asyncio.to_thread(write))
    try:
        for round in range(10):
            client = await connect(1 + round % 2)
            client.push(f"{topic}_{round}", "phx_join", {"config": {"postgres_changes": [
                {"event": "INSERT", "schema": "public", "table": table}]}}, "1", "1")
            await client.next("phx_reply")
            # The one after may have been committed before the reply, and not be counted yet.
            after = len(committed) + 1
            await eventually(lambda: len(committed) > after + 20)
            await client.next("postgres_changes", where=lambda m: m.payload["data"]["record"]["id"] == after + 10)
            seen = [m.payload["data"]["record"]["id"] for m in client.messages if m.event == "postgres_changes"]
            missing = set(range(after + 1, after + 10)) - set(seen)
            assert not missing, f"round {round}: told live after commit {after}, never saw {sorted(missing)}"
            await client.close()
    finally:
        stop = True
        await writer
