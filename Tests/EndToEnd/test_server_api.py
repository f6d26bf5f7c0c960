"""The HTTP API for backends, on one hub (docs/server-api.md). Several hubs: test_server_api_cluster.py."""

import json

import pytest

from support.channels import Rights, installed_policies
from support.serverapi import Backend
from support.tokens import token

PRIVATE = {"private": True}
CALLS = [("GET", "/channels"), ("GET", "/channels/a"), ("GET", "/channels/a/presence"), ("GET", "/channels/a/typing"),
         ("GET", "/stats"), ("GET", "/users/ann"), ("POST", "/users/ann/disconnect"), ("POST", "/users/ann/unsubscribe"),
         ("POST", "/users/ann/refresh")]


@pytest.fixture(params=["/api", "/realtime/v1/api"])
def prefix(request):
    return request.param


@pytest.fixture
def backend(hub):
    return Backend(hub)


def track(client, topic, **payload):
    client.push(topic, "presence", {"type": "presence", "event": "track", "payload": payload})


def keyed(key):
    return {"presence": {"enabled": True, "key": key}}


@pytest.mark.parametrize("method, path", CALLS)
async def test_only_service_tokens_are_heard(hub, prefix, method, path):
    backend = Backend(hub, prefix)
    for authorization, status in ((None, 401), ("Bearer nonsense", 401), ("Bearer " + token(sub="ann"), 403),
                                  ("Bearer " + token("anon"), 403)):
        answer = await backend.call(method, path, authorization=authorization)
        assert answer.status == status and answer.json["message"], answer.body
    other = "POST" if method == "GET" else "GET"
    answer = await backend.call(other, path)
    assert answer.status == 405 and method in answer.headers["allow"], answer.body


async def test_channels_page_by_page(connect, backend, name):
    client, other = await connect(), await connect()
    topics = [f"{name}-{n:02}" for n in range(12)]
    for topic in topics:
        await client.join(f"realtime:{topic}", config=keyed("ann"))
    await other.join(f"realtime:{topics[3]}", config=keyed("bob"))
    track(client, f"realtime:{topics[3]}", n=1)
    await other.next("presence_diff", f"realtime:{topics[3]}")
    # Both loops have heard it when one member of each has.
    await client.next("presence_diff", f"realtime:{topics[3]}")
    channels = await backend.pages(f"/channels?prefix={name}&limit=5", of="channels")
    assert [channel["topic"] for channel in channels] == topics
    assert channels[3] == {"topic": topics[3], "private": False, "connections": 2, "present": 1, "typing": 0}
    assert channels[4] == {"topic": topics[4], "private": False, "connections": 1, "present": 0, "typing": 0}
    one = await backend.get(f"/channels/{topics[3]}")
    assert one == {**channels[3], "incomplete": []}
    assert (await backend.get(f"/channels/{topics[3]}?private=true"))["connections"] == 0
    for query in ("limit=0", "limit=501", "limit=x", "cursor=!"):
        answer = await backend.call("GET", f"/channels?{query}")
        assert answer.status == 400 and answer.json["message"], query


async def test_who_is_present_page_by_page(connect, backend, topic, name):
    client = None
    for n in range(5):
        client = await connect()
        await client.join(topic, config=keyed(f"k{n % 3}"))
        track(client, topic, n=n)
        # Its own diff: the channel's list has it, on its loop and, before the others' diffs come here, on theirs.
        await client.next("presence_diff", topic, where=lambda m: any(
            meta.get("n") == n for key in m.payload["joins"].values() for meta in key["metas"]))
    watcher = await connect()
    await watcher.join(topic, config=keyed("watcher"))
    members = await backend.pages(f"/channels/{name}/presence?limit=2", of="members")
    assert [member["key"] for member in members] == sorted(member["key"] for member in members)
    assert sorted((m["key"], meta["n"]) for m in members for meta in m["metas"]) == [
        ("k0", 0), ("k0", 3), ("k1", 1), ("k1", 4), ("k2", 2)]
    assert all(meta["phx_ref"] for m in members for meta in m["metas"])
    whole = await backend.get(f"/channels/{name}/presence")
    assert (whole["count"], whole["listed"], whole["next"], whole["incomplete"]) == (5, 5, None, [])
    empty = await backend.get("/channels/nobody-is-here/presence")
    assert (empty["count"], empty["members"]) == (0, [])


async def test_who_types(connect, backend, topic, name):
    typist, other = await connect(apikey=token(sub="ann")), await connect()
    await typist.join(topic)
    await other.join(topic)
    typing = {"typing": True, "name": "Ann"}

    async def is_told():
        # It ends by itself after three seconds; and the other loop, which may be the one that is asked, is told a moment later.
        typist.push(topic, "broadcast", {"type": "broadcast", "event": "typing", "payload": typing})
        await typist.settled()
        return (await backend.get(f"/channels/{name}/typing"))["typists"], (await backend.get(f"/channels/{name}"))["typing"]
    typists = [{"user": "ann", "payload": typing}]
    told = []
    while (typists, 1) not in told:
        told.append(await is_told())
        assert len(told) < 1000 and all(who in ([], typists) and count in (0, 1) for who, count in told), told[-3:]
    await other.next("broadcast", topic)


async def test_where_a_user_is_and_out_it_goes(connect, hub, backend, topic, name):
    user = f"{name}|ä/1"
    path = "/users/" + user.replace("ä", "%C3%A4")
    assert await backend.get(path) == {"user": user, "online": False, "count": 0, "connections": [], "incomplete": []}
    clients = [await connect(apikey=token(sub=user)) for _ in range(2)]
    for client in clients:
        await client.join(topic)
    stranger = await connect(apikey=token(sub=name))
    await stranger.join(topic)
    answer = await backend.get(path)
    assert (answer["online"], answer["count"], len(answer["connections"])) == (True, 2, 2)
    for connection in answer["connections"]:
        assert connection["channels"] == [{"topic": name, "private": False}]
        assert connection["seconds"] >= 0 and connection["app_state"] is None and connection["id"]
    answer = await backend.post(f"{path}/disconnect")
    assert (answer["user"], answer["disconnected"], answer["incomplete"]) == (user, 2, [])
    assert list(answer["hubs"].values()) == [2]
    for client in clients:
        assert (await client.end()).code == 1012
    assert f"a backend disconnected the user {user}" in hub.log
    await stranger.settled()
    assert (await backend.post(f"{path}/disconnect"))["disconnected"] == 0


async def test_out_of_a_channel_and_kept_out(connect, backend, topic, name):
    client, other = await connect(apikey=token(sub=name)), await connect(apikey=token(sub="other"))
    for one in (client, other):
        await one.join(topic)
        await one.join(topic + "-2")
    answer = await backend.post(f"/users/{name}/unsubscribe", {"topic": name})
    assert (answer["topic"], answer["private"], answer["unsubscribed"]) == (name, False, 1)
    assert (await client.next("phx_close", topic)).payload["reason"].startswith("Unauthorized: ")
    await client.join(topic)
    assert (await backend.post(f"/users/{name}/unsubscribe", {"topic": name, "seconds": 600}))["unsubscribed"] == 1
    await client.next("phx_close", topic)
    reply = await client.ask(topic, "phx_join", {"config": {}})
    assert "you may join again in" in reply.payload["response"]["reason"]
    # Its other channels, and others in this one, are as they were; so is the private room of that name.
    other.push(topic + "-2", "broadcast", {"type": "broadcast", "event": "e", "payload": {}})
    await client.next("broadcast", topic + "-2")
    assert (await backend.get(f"/channels/{name}"))["connections"] == 1
    for body in (None, [], {"topic": ""}, {"topic": "a", "seconds": -1}, {"topic": "a", "private": "yes"}):
        answer = await backend.call("POST", f"/users/{name}/unsubscribe", body)
        assert answer.status == 400 and answer.json["message"], body


@pytest.fixture(scope="module")
def installed(shared_hub, cluster):
    with installed_policies(shared_hub, cluster):
        yield


async def test_rights_are_decided_anew(connect, backend, installed, sql, topic, name):
    rights = Rights(sql, name)
    rights.give(name)
    rights.give("bob")
    ann, bob = await connect(apikey=token(sub=name)), await connect(apikey=token(sub="bob"))
    for one in (ann, bob):
        await one.join(topic, config=PRIVATE)
    assert (await backend.post(f"/users/{name}/refresh"))["refreshed"] == 1
    bob.push(topic, "broadcast", {"type": "broadcast", "event": "still", "payload": {}})
    await ann.next("broadcast", topic)
    rights.take(name)
    bob.push(topic, "broadcast", {"type": "broadcast", "event": "not yet", "payload": {}})
    await ann.next("broadcast", topic)
    assert (await backend.post(f"/users/{name}/refresh"))["refreshed"] == 1
    assert "no longer have permission" in (await ann.next("phx_error", topic)).payload["reason"]
    assert (await backend.get(f"/channels/{name}?private=true"))["connections"] == 1


async def test_counts(connect, backend, topic):
    client = await connect()
    await client.join(topic)
    answer = await backend.get("/stats")
    assert answer["connections"] >= 1 and len(answer["hubs"]) == 1 and answer["incomplete"] == []
    assert answer["hubs"][0]["connections"] == answer["connections"]


async def test_commands(connect, hub, topic, name):
    client = await connect(apikey=token(sub=name))
    await client.join(topic, config=keyed("ann"))
    track(client, topic, n=1)
    await client.next("presence_diff", topic)
    out = hub.run("channels", "--prefix", name).stdout
    assert out.startswith(f"{name}\t1 connection, ") and out.endswith(" 0 typing\n")
    assert json.loads(hub.run("channels", "--prefix", name, "--json").stdout)["channels"][0]["topic"] == name
    assert hub.run("channels", "--prefix", name + "x").stdout == ""
    assert json.loads(hub.run("presence", name, "--json").stdout)["topic"] == name
    lines = hub.run("user", name).stdout.splitlines()
    assert lines[0] == "online, 1 connection" and lines[1].endswith(f"\t{name}")
    assert hub.run("user", name + "x").stdout == "offline, 0 connections\n"
    out = hub.run("disconnect", name).stdout
    assert out.startswith("closed 1 connection: 1 on ")
    assert (await client.end()).code == 1012
    refused = hub.run("channels", "--token", token(sub=name), check=False)
    assert refused.returncode == 1 and "service_role" in refused.stderr
