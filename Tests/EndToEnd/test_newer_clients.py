"""What clients of autumn 2026 send, frame by frame: supabase-js 2.113, realtime-csharp 7.3, and clients that track without presence."""

from support.tokens import token


def changes(table):
    return [{"event": "*", "schema": "public", "table": table}]


async def test_a_join_that_waits_is_refused_what_is_not_served(connect, topic, table):
    """supabase/realtime PR 2109."""
    client = await connect()
    options = {"postgres_changes_options": {"wait": True, "timeout": 15_000}}
    for wrong in (changes("nowhere"), [{**changes(table)[0], "filter": "nothing=eq.1"}]):
        reply = await client.ask(topic, "phx_join", {"config": {"postgres_changes": wrong, **options}})
        reason = reply.payload["response"]["reason"]
        assert reply.payload["status"] == "error" and reason.startswith("RealtimeDisabledForConfiguration: "), reply
    await client.watch(topic, *changes(table), config=options)
    assert all(m.payload.get("status") != "error" for m in await client.settled())


async def test_a_token_behind_the_reply_decides(connect, sql, topic, name, hub):
    """realtime-csharp 7.3 joins by its project's key, and its Subscribe() throws at a `system` error before the `ok`."""
    sql.execute(f"create table {name} (id int8 primary key); revoke all on {name} from anon, public; grant select on {name} to authenticated")
    hub.watch(f"public.{name}")
    client = await connect(version=1, apikey=token("anon"))
    await client.join(topic, changes(name))
    client.push(topic, "access_token", {"access_token": token("authenticated", sub="ann")}, client.ref())
    system = await client.next("system", topic)
    assert system.payload["status"] == "ok", system
    sql.execute(f"insert into {name} values (7)")
    row = await client.next("postgres_changes", topic)
    assert row.payload["data"]["record"] == {"id": 7}


async def test_without_a_token_the_reason_comes_a_moment_later(connect, sql, topic, name, hub):
    sql.execute(f"create table {name} (id int8 primary key); revoke all on {name} from anon, public; grant select on {name} to authenticated")
    hub.watch(f"public.{name}")
    client = await connect(version=1, apikey=token("anon"))
    await client.join(topic, changes(name))
    system = await client.next("system", topic)
    assert system.payload["status"] == "error" and "permission denied" in system.payload["message"]


async def test_whoever_tracks_is_shown_who_is_there(connect, topic):
    """realtime-js 2.112 and Dart's realtime_client 2.13 keep diffs back until a state has come."""
    client = await connect()
    ref, _ = await client.join(topic, config={"presence": {"key": "ada", "enabled": False}})
    assert (await client.ask(topic, "presence", {"event": "track", "payload": {"n": 1}}, ref)).payload["status"] == "ok"
    assert [m.event for m in client.messages if m.event.startswith("presence")] == ["presence_state", "presence_diff"]
