"""`receipts.statement`: who has certainly received which row, in the application's own table. No pushes are configured."""

import asyncio
import contextlib
import time
import uuid

from support.bounds import Elapsed, watch_the_machine
from support.chat import A, ADA, GRACE, LINUS, OUTSIDER, install, statement
from support.deadline import eventually
from support.hub import Hub
from support.proxy import Proxy
from support.wsclient import Client

#: Every word about a receipt, as it was told: the statement may be told the same again, and notes that.
TOLD = """
    create table told (
        user_id text, source text, id bigint, kind text, at timestamptz, words int not null default 1,
        primary key (user_id, source, id)
    );
"""
STATEMENT = """
    insert into told as t (user_id, source, id, at, kind)
    select u, s, (k ->> 'id')::bigint, at, kind
    from unnest($1::text[], $2::text[], $3::jsonb[], $4::timestamptz[], $5::text[]) r (u, s, k, at, kind)
    on conflict (user_id, source, id) do update set words = t.words + 1, kind = greatest(t.kind, excluded.kind)
"""


class Receipts:
    """A hub that tells who received what."""

    def __init__(self, cluster, name, told=STATEMENT, **environment):
        self.cluster, self.name, self.clients = cluster, name, []
        self.hub = Hub(cluster.create_database(name), ROOST_RECEIPTS_STATEMENT=told, ROOST_LOOPS="2", **environment)

    async def __aenter__(self):
        self.hub.run("migrate")
        with self.sql() as sql:
            install(sql)
            sql.execute(TOLD)
        self.hub.watch("public.messages")
        self.hub.watch("public.read_receipts")
        await asyncio.to_thread(self.hub.start)
        return self

    async def __aexit__(self, kind, *_):
        for client in self.clients:
            with contextlib.suppress(Exception):
                await client.close()
        if kind:
            print("the hub's log:", self.hub.log[-3000:])
        self.hub.remove()

    def sql(self):
        return self.cluster.connect(self.name)

    async def open(self, who, state=None, port=None, **claims):
        client = await Client.connect(port or self.hub.port, apikey=who.token(**claims))
        self.clients.append(client)
        await client.watch(f"realtime:{A}", {"event": "INSERT", "schema": "public", "table": "messages",
                                             "filter": f"conversation_id=eq.{A}"}, config={"app_state": state} if state else {})
        return client

    def say(self, sql, number, sender=ADA):
        sql.execute("insert into messages (id, conversation_id, sender_id, body) values (%s, %s, %s, 'x')", [number, A, sender.sub])


def told(sql, number):
    return {(user, kind) for user, kind in sql.execute("select user_id, kind from told where id = %s", [number]).fetchall()}


async def test_who_has_proven_a_row_is_told_soon_and_who_is_stopped_is_not(cluster):
    watch_the_machine()
    async with Receipts(cluster, "receipts") as chat:
        with chat.sql() as sql:
            await chat.open(ADA, "active")
            await chat.open(GRACE, "background")
            stopped = await chat.open(GRACE, "active", session_id=str(uuid.uuid4()))
            stopped._task.cancel()
            # It may not see conversation A.
            await chat.open(OUTSIDER, "active")
            elapsed = Elapsed()
            chat.say(sql, 100)
            await eventually(lambda: told(sql, 100) == {(ADA.sub, "shown"), (GRACE.sub, "delivered")}, what="two receipts", every=0.02)
            # A ping within the second, a pong, and a pass of the writer.
            elapsed.assert_at_most(2.5, "a tick")
            print(f"told after {elapsed.seconds:.2f} s")
            # Whoever joins later proves nothing of what was before.
            await chat.open(LINUS, "active")
            chat.say(sql, 101)
            await eventually(lambda: len(told(sql, 101)) >= 2, what="the next receipts")
            await chat.hub.settled()
            assert {user for user, _ in told(sql, 100)} == {ADA.sub, GRACE.sub}
            assert sql.execute("select count(*) from told where id = 100 and (at < now() - interval '1 hour' or at > now())"
                               ).fetchone() == (0,)
            assert chat.hub.metric("roost_receipts_refused_total") == 0


async def test_what_was_missed_is_received_when_it_is_brought(cluster):
    async with Receipts(cluster, "receipts_missed") as chat:
        with chat.sql() as sql:
            session = str(uuid.uuid4())
            async with Proxy(chat.hub.port) as proxy:
                client = await chat.open(GRACE, "active", proxy.port, session_id=session)
                chat.say(sql, 100)
                await eventually(lambda: told(sql, 100) != set(), what="the first")
                proxy.stall()
                chat.say(sql, 101)
                await chat.hub.settled()
                client._task.cancel()
                client.socket.abort()
            assert told(sql, 101) == set()
            await chat.open(GRACE, "active", session_id=session)
            await eventually(lambda: told(sql, 101) == {(GRACE.sub, "shown")}, what="what was missed")


async def test_the_sample_chat_shows_ticks_from_the_hub(cluster):
    async with Receipts(cluster, "receipts_chat", statement("ReceiptsOfSampleChat")) as chat:
        with chat.sql() as sql:
            await chat.open(GRACE)
            sender = await chat.open(ADA)
            await sender.watch("realtime:ticks", {"event": "*", "schema": "public", "table": "read_receipts"})
            chat.say(sql, 100)
            tick = await sender.next("postgres_changes", "realtime:ticks")
            record = tick.payload["data"]["record"]
            assert (record["message_id"], record["user_id"], record["read_at"]) == (100, GRACE.sub, None)


async def test_what_a_killed_hub_had_not_written_is_proven_again(cluster):
    """Receipts while hubs are killed: whatever a socket had proven and the table lacks is sent again, and proven again."""
    async with Receipts(cluster, "receipts_killed") as chat:
        sessions = {who: str(uuid.uuid4()) for who in (ADA, GRACE)}
        number, kills = 100, []
        with chat.sql() as sql:
            for kill in range(3):
                for who, session in sessions.items():
                    await chat.open(who, "active", session_id=session)
                # The table is locked, so that proofs wait when the hub dies.
                with chat.sql() as locker, locker.transaction():
                    if kill:
                        locker.execute("lock table told in access exclusive mode")
                    end = time.monotonic() + 3
                    while time.monotonic() < end:
                        chat.say(sql, number)
                        number += 1
                        await asyncio.sleep(0.03)
                    if kill:
                        await eventually(lambda: chat.hub.metric("roost_receipts_waiting") > 0, what="proofs that wait")
                    kills.append((number, chat.hub.metric("roost_receipts_waiting")))
                    await asyncio.to_thread(chat.hub.kill)
                chat.clients.clear()
                await asyncio.to_thread(chat.hub.start)
            for who, session in sessions.items():
                await chat.open(who, "active", session_id=session)
            wanted = {(who.sub, each) for who in sessions for each in range(100, number)}
            def missing():
                return wanted - set(sql.execute("select user_id, id from told").fetchall())
            await eventually(lambda: not missing(), what=lambda: f"{len(missing())} of {len(wanted)} are missing: {sorted((n, w[-1]) for w, n in missing())}; kills at {kills}")
            print(f"{len(wanted)} receipts over three kills, none lost")
