"""What watching a table costs those who write to it."""

import statistics

from hub import Hub
from table import show, spread, verdict

BUDGET = 0.80
SCRIPT = """\\set n random(0, 999)
insert into public.roost_load (conversation_id, stamp)
values (('00000000-0000-4000-8000-' || lpad(:n::text, 12, '0'))::uuid, 'a message of an ordinary length, nothing more');
"""


def measure(programs, cluster, arguments):
    rounds = arguments.rounds or 3
    seconds = 3 if arguments.quick else 10
    script = cluster.folder / "insert.sql"
    script.write_text(SCRIPT)
    # Three databases of one cluster, in turn: one plain, one watched with its hub, one watched with nobody following.
    plain, followed, alone = (cluster.create(f"writers_{name}") for name in ("plain", "followed", "alone"))
    with Hub(programs, cluster, alone, arguments.loops, watch=["public.roost_load"]):
        pass
    rows, costs = [], []
    with Hub(programs, cluster, followed, arguments.loops, watch=["public.roost_load"]):
        for clients in (8, 32):
            runs = {plain: [], followed: [], alone: []}
            for _ in range(rounds):
                for database, found in runs.items():
                    # Each starts from a checkpoint, so that none pays for another's.
                    cluster.psql("postgres", "checkpoint")
                    found.append(cluster.pgbench(database, script, clients, seconds))
            rows.append(rates(clients, *([rate for rate, _ in found] for found in runs.values())))
            costs.append([clients, *(spread([cost for _, cost in found], 0) for found in runs.values())])
    show(f"Single-row inserts by pgbench, transactions/s; median of {rounds} interleaved rounds of {seconds} s",
         ["clients", "not watched", "watched, hub follows", "share", "per round", "watched, no hub", "share",
          f"≥ {BUDGET:.0%}"], rows)
    show("The same in CPU µs of Postgres per transaction, the hub's session included",
         ["clients", "not watched", "watched, hub follows", "watched, no hub"], costs)


def rates(clients, plain, followed, alone):
    median = statistics.median
    share = median(followed) / median(plain)
    return [clients, spread(plain, 0), spread(followed, 0), f"{share:.0%}",
            spread([100 * ours / theirs for ours, theirs in zip(followed, plain)], 0), spread(alone, 0),
            f"{median(alone) / median(plain):.0%}", verdict(share >= BUDGET)]
