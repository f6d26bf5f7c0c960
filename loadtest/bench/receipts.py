"""Receipts that are written back: how many a second, and what they cost."""

import time
import uuid

from hub import Hub, token
from programs import BenchError
from table import show, spread

SUBSCRIBERS, CONVERSATIONS, COMMITS = 1000, 100, 1000
TICKS = "create table ticks (user_id text, source text, id text, at timestamptz, kind text, words int default 1, primary key (user_id, source, id))"
#: Whom the tokens of users name.
READERS = """do $$ begin
    if to_regrole('authenticated') is null then create role authenticated nologin; end if;
end $$;
grant select on public.roost_load to authenticated"""
STATEMENT = """
    insert into ticks as t (user_id, source, id, at, kind)
    select u, s, k ->> 'id', at, kind from unnest($1::text[], $2::text[], $3::jsonb[], $4::timestamptz[], $5::text[]) r (u, s, k, at, kind)
    on conflict (user_id, source, id) do update set words = t.words + 1
"""


def measure(programs, cluster, arguments):
    rounds = arguments.rounds or (1 if arguments.quick else 3)
    duration = 10 if arguments.quick else 30
    rows = []
    for name, settings in (("off", {}), ("on", {"ROOST_RECEIPTS_STATEMENT": STATEMENT, "ROOST_RECEIPTS_TABLES": "public.roost_load"})):
        database = cluster.create(f"receipts_{name}")
        cluster.psql(database, TICKS)
        cluster.psql(database, READERS)
        with Hub(programs, cluster, database, arguments.loops, watch=["public.roost_load"], ops=True, **settings) as hub:
            tokens = cluster.folder / f"tokens-{name}"
            tokens.write_text("\n".join(token(str(uuid.UUID(int=number))) for number in range(SUBSCRIBERS)))
            results, written = [], []
            for _ in range(rounds):
                before = ticks(cluster, database)
                results.append(programs.json_of(
                    [programs.roost_load, "changes", "--url", hub.url, "--token", hub.token, "--tokens", tokens,
                     "--database", cluster.url(database), "--subscribers", SUBSCRIBERS, "--conversations", CONVERSATIONS,
                     "--rate", COMMITS, "--duration", duration, "--warm-up", 0, "--json", "--pid", f"hub={hub.pid}"], accept=(0, 1)))
                written.append(ticks(cluster, database, None if name == "off" else hub) - before)
            if name == "on":
                check(hub, cluster, database, results)
        rows.append([name, spread([each["hub_cpu_us_per_delivery"] for each in results]),
                     spread([each["delivered"] / duration for each in results], 0),
                     spread([count / duration for count in written], 0)])
    show(f"{SUBSCRIBERS:,} subscribers, {CONVERSATIONS} conversations, {COMMITS:,} commits/s; median of {rounds}",
         ["receipts", "hub's CPU µs per delivery", "deliveries/s", "receipts written/s"], rows)


def ticks(cluster, database, hub=None):
    """How many receipts the table has, once all are written that were proven."""
    end = time.monotonic() + 30
    while hub and metric(hub, "waiting") > 0 and time.monotonic() < end:
        time.sleep(0.1)
    return int(cluster.psql(database, "select count(*) from ticks"))


def metric(hub, name):
    return int(hub.figures()[f"roost_receipts_{name}"])


def check(hub, cluster, database, results):
    """What was proven is in the table. Deliveries of the last second may be unproven: the tester goes when it has the last of them."""
    delivered = sum(result["delivered"] for result in results)
    told = int(cluster.psql(database, "select coalesce(sum(words), 0) from ticks"))
    proven, refused = metric(hub, "proven_total"), metric(hub, "refused_total")
    print(f"{delivered:,} deliveries, {proven:,} proven, {told:,} told, {refused:,} refused, {metric(hub, 'batches_total'):,} statements")
    if told != proven or refused:
        raise BenchError(f"{proven:,} receipts were proven, and {told:,} were told")
