"""Pushes to Android while Google and hubs fail: at most once each, in order for each user, and each accounted for.

`ROOST_FCM_STORM="seed=7 pushes=10000 users=400 kills=6"` makes it a long one.
"""

import asyncio
import os
import random
import time

from support.bounds import Elapsed
from support.deadline import eventually
from support.fcm import FCM, new_token
from support.push_hub import PushHub

SHORT = "seed=1 pushes=600 users=60 kills=2"
TABLE = """create table public.storm (id bigint generated always as identity primary key, reader text not null, n int not null);
grant select on public.storm to service_role"""
DEVICE = """insert into roost.push_device (token, environment, bundle, kind, user_id, role, claims)
select token, 'fcm', '', 'alert', 'user ' || n, 'service_role', jsonb_build_object('sub', 'user ' || n, 'role', 'service_role')
from unnest(%s::text[]) with ordinality u (token, n)"""
AUDIENCE = """select (n ->> 'row')::int as row, n -> 'record' ->> 'reader' as user_id, (n -> 'record' ->> 'n')::int as n,
'somebody' as sender_name, n -> 'record' ->> 'n' as body from jsonb_array_elements($1) n"""
#: What Google answers instead of taking a push, of so many each; and what happens to connections.
TROUBLE = [
    {"every": 23, "do": {"answer": "QUOTA_EXCEEDED", "retry_after": 1}}, {"every": 29, "do": {"answer": "INTERNAL"}},
    {"every": 31, "do": {"answer": "UNAVAILABLE", "retry_after": 1}}, {"every": 307, "do": {"stall": "after"}},
    {"every": 401, "do": {"stall": "before"}}, {"every": 101, "do": {"goaway": "before"}}, {"every": 151, "do": {"goaway": "graceful"}},
    {"every": 503, "do": {"goaway": "withheld"}}, {"every": 1009, "do": {"abort": "after"}}, {"every": 1201, "do": {"abort": "before"}},
    {"every": 199, "do": {"answer": "UNAUTHENTICATED"}}]
#: Of so many devices one is gone.
GONE = 20
SEEN = {"delivered", "unregistered", "unanswered", "unknown", "bad token"}


async def test_each_push_arrives_once_or_its_outcome_says_why(cluster):
    wanted = {name: int(value) for name, value in (word.split("=") for word in os.environ.get("ROOST_FCM_STORM", SHORT).split())}
    chance = random.Random(wanted["seed"])
    tokens = [new_token() for _ in range(wanted["users"])]
    with FCM("--delay", "0.002") as fcm:
        settings = {"ROOST_ALERTS_AUDIENCE": AUDIENCE, "ROOST_ALERTS_TABLES": "public.storm", "ROOST_ALERTS_WHEN": "away"}
        with PushHub(cluster, "fcm_storm", apns=fcm, **settings) as chat, chat.sql() as sql:
            # Its own table, beside that of the sample chat.
            for statement in TABLE.split(";\n"):
                sql.execute(statement)
            chat.hub.watch("public.storm")
            sql.execute(DEVICE, [tokens])
            # An hour ahead: an assertion is dated by Google's clock, or there is no push at all.
            fcm.set(clock_offset=3600)
            for token in tokens[::GONE]:
                fcm.tell(token, gone=True)
            fcm.script(*TROUBLE)
            took = Elapsed()
            await asyncio.gather(write(chat, wanted, chance), kill(chat, wanted, chance))
            await settle(sql)
            report(sql, fcm, tokens, wanted, took)


async def write(chat, wanted, chance):
    with chat.sql() as sql:
        counts = dict.fromkeys(range(1, wanted["users"] + 1), 0)
        left = wanted["pushes"]
        while left:
            rows = []
            for _ in range(min(left, 20)):
                user = chance.randint(1, wanted["users"])
                counts[user] += 1
                rows.append((f"user {user}", counts[user]))
            left -= len(rows)
            await asyncio.to_thread(
                sql.execute, "insert into public.storm (reader, n) select * from unnest(%s::text[], %s::int[])",
                [[user for user, _ in rows], [n for _, n in rows]])
            await asyncio.sleep(0.01)


async def kill(chat, wanted, chance):
    for _ in range(wanted["kills"]):
        await asyncio.sleep(chance.uniform(1, 3))
        await asyncio.to_thread(chat.hub.kill)
        await asyncio.sleep(chance.uniform(0.1, 0.5))
        await asyncio.to_thread(chat.hub.start)


async def settle(sql):
    def waiting():
        return sql.execute("select count(*) from roost.alert where state in ('due', 'held', 'elsewhere')").fetchone()[0]

    def under_way():
        return sql.execute("select count(*) from roost.alert_device where outcome is null").fetchone()[0]

    def unread():
        # Users whose only device was dropped have no alerts any more.
        return sql.execute("select count(*) from public.storm s join roost.push_device d on d.user_id = s.reader where not exists ("
                           "select from roost.alert a where a.message = 'public.storm ' || s.id)").fetchone()[0]

    began = time.monotonic()
    await eventually(lambda: not unread() and not waiting() and not under_way(), 600,
                     lambda: f"{unread()} without an alert, {waiting()} wait, {under_way()} under way after {time.monotonic() - began:.0f} s",
                     every=0.2)


def report(sql, fcm, tokens, wanted, took):
    numbers = dict(sql.execute("select id, n from public.storm").fetchall())
    fates = {}
    for message, token, outcome in sql.execute("select message, token, outcome from roost.alert_device"):
        fates.setdefault(token, {})[numbers[int(message.rpartition(" ")[2])]] = outcome
    seen = {token: [numbers[int(number)] for number in ids] for token, ids in fcm.times("messageId").items()}
    twice = {token: each for token, each in seen.items() if len(each) != len(set(each))}
    disordered = {token: each for token, each in seen.items() if each != sorted(each)}
    written = dict(sql.execute("select (regexp_match(reader, '[0-9]+'))[1]::int, max(n) from public.storm group by 1").fetchall())
    lost, counts = [], {}
    for user, last in written.items():
        token = tokens[user - 1]
        for number in range(1, last + 1):
            fate = fates.get(token, {}).get(number)
            counts[fate] = counts.get(fate, 0) + 1
            # A device that is gone was dropped, and has no row for what came later.
            if fate is None and (user - 1) % GONE or fate == "delivered" and number not in seen.get(token, []):
                lost.append((user, number, fate))
    print(f"\n{wanted}: {len(numbers)} pushes in {took.seconds:.0f} s, {counts}; {len(twice)} devices twice, "
          f"{len(disordered)} out of order, {len(lost)} unaccounted for; {fcm.summary['answers']}")
    assert not twice and not disordered and not lost, (twice, disordered, lost[:10])
    assert set(counts) - {None} <= SEEN, counts
    assert fcm.violations == []
