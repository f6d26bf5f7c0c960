"""What could be lost without a word: sessions that are not written, tokens that change, an outbox that is emptied."""

import pytest

from support.returning import Returning
from support.tokens import token


@pytest.fixture
def table(own_hub, cluster):
    with cluster.connect(own_hub.database) as sql:
        sql.execute("create table t (id int primary key)")
        own_hub.watch("t")
        # What one client was sent tells on the other.
        own_hub.environment["ROOST_LOOPS"] = "1"
        own_hub.start()
        yield sql


# A token that is refreshed

FAILS_FOR_ANN = """
    create or replace function allowed() returns boolean language plpgsql stable as $$
    begin
        if current_setting('request.jwt.claims')::json ->> 'sub' = 'ann' then raise 'broken'; end if;
        return true;
    end $$"""
ALLOWS = "create or replace function allowed() returns boolean language plpgsql stable as $$ begin return true; end $$"


async def test_what_waits_for_a_policy_is_not_lost_to_a_new_token(own_hub, table):
    table.execute(ALLOWS)
    table.execute("""
        alter table t enable row level security;
        grant select on t to authenticated;
        create policy readers on t for select to authenticated using (allowed())""")
    ann = Returning(own_hub, "realtime:r", "t", sub="ann")
    eve = Returning(own_hub, "realtime:r", "t", sub="eve")
    for client in (ann, eve):
        await client.enter()
        await client.client.next("system", "realtime:r")
    table.execute("insert into t values (1)")
    for client in (ann, eve):
        await client.has([1])
    table.execute(FAILS_FOR_ANN)
    for number in range(2, 6):
        table.execute("insert into t values (%s)", [number])
        await eve.has([number])
    assert ann.ids == [1]
    fresh = token("authenticated", lifetime=9000, sub="ann")
    ann.client.push("realtime:r", "access_token", {"access_token": fresh}, "90", "1")
    told = await ann.client.next(
        topic="realtime:r", where=lambda message: message.event == "phx_error"
        or "Subscribed" in message.payload.get("message", ""))
    table.execute(ALLOWS)
    if told.event == "phx_error":
        await ann.join()
    await ann.has(range(1, 6))
    for client in (ann, eve):
        await client.close()
