"""What a hub does while nothing happens, and what one message costs among many sockets that do nothing."""

import collections
import statistics

from channels import exchange
from crowd import Rooms
from hub import SILENCE, Hub
from processes import cpu_us
from table import show, spread, verdict

MANY, FEW = 19_000, 100
MESSAGE_BUDGET = 50
SLEEPERS = 10_000
PERCENT_BUDGET = 0.1
POLL = 5  # seconds between the hub's safety polls
# What the hub asks: a poll reads a window, and has its other sessions prove that they live.
WINDOW, PROOF, OTHER = "windows read", "proofs of a session", "other statements"


def measure(programs, cluster, arguments):
    message(programs, cluster, arguments)
    rest(programs, cluster, arguments)


# One message


def message(programs, cluster, arguments):
    """Pairs of sockets, of which one says something to the other."""
    rounds = arguments.rounds or (3 if arguments.quick else 5)
    times = 300 if arguments.quick else 1000
    found, missing = {(count, again): [] for count in (FEW, MANY) for again in (False, True)}, 0
    with Hub(programs, cluster, cluster.create("idle_few"), arguments.loops, **SILENCE) as small, \
            Hub(programs, cluster, cluster.create("idle_many"), arguments.loops, **SILENCE) as large, \
            Rooms(small, FEW) as few, Rooms(large, MANY) as many:
        for crowd in (few, many):
            crowd.ask("join", channels=[[[f"realtime:pair {number // 2}", {}]] for number in range(crowd.count)])
        # The first round warms up.
        for turn in range(rounds + 1):
            for hub, crowd in ((small, few), (large, many)):
                # From all over the place, and others in each round, so that none is in a cache by chance.
                pairs = [[f"realtime:pair {pair}", 2 * pair]
                         for pair in ((turn * times + step) * 7919 % (crowd.count // 2) for step in range(times))]
                for again in (False, True):
                    cost, lacking = exchange(hub, crowd, topics=pairs[:1] if again else pairs, window=1, expected=1, times=times)
                    missing += lacking
                    if turn:
                        found[crowd.count, again].append(cost)
        disorder = sum(crowd.ask("listen", seconds=0)["disorder"] for crowd in (few, many))
    rows = [[f"{sockets:,}", "the same pair again" if again else "another pair", spread(costs),
             f"≤ {MESSAGE_BUDGET} {verdict(statistics.median(costs) <= MESSAGE_BUDGET)}"]
            for (sockets, again), costs in found.items()]
    show(f"A message from one socket to one other, all others idle; hub CPU µs, receiving included; median of {rounds} rounds",
         ["sockets", "the next message is", "CPU µs per message", "budget"], rows)
    print(f"\nLost: {missing}; repeated or out of order: {disorder}")


# Nothing


def rest(programs, cluster, arguments):
    seconds = 20 if arguments.quick else 60
    cluster.log_by_who_asks()
    rows, others = [], []
    for sockets, period in ((0, 0), (SLEEPERS, 0), (SLEEPERS, 25)):
        database = cluster.create(f"idle_rest_{sockets}_{period}")
        cluster.log_statements(database)
        with Hub(programs, cluster, database, arguments.loops, ["public.roost_load"], **SILENCE) as hub, Rooms(hub, sockets) as crowd:
            crowd.ask("join", channels=[[[f"realtime:room {number // 10}", {}]] for number in range(sockets)])
            if period:
                crowd.ask("keep_alive", period=period)
            crowd.ask("listen", seconds=3)
            began, before = len(cluster.asked(database)), cpu_us(hub.pid)
            crowd.ask("listen", seconds=seconds)
            percent = (cpu_us(hub.pid) - before) / 1e4 / seconds
            new = cluster.asked(database)[began:]
        kinds = collections.Counter(kind(line) for line in new)
        others.extend(line for line in new if kind(line) == OTHER)
        rows.append([f"{sockets:,}", f"every {period} s" if period else "none", f"{percent:.3f}",
                     "–" if period else f"≤ {PERCENT_BUDGET} {verdict(percent <= PERCENT_BUDGET)}",
                     *(kinds[name] for name in (WINDOW, PROOF, OTHER))])
    show(f"An idle hub that watches a table, for {seconds} s, in which its safety poll is due {seconds // POLL} times",
         ["sockets, joined ten by ten", "heartbeats", "CPU % of a core", "budget", WINDOW, PROOF, OTHER], rows)
    print(f"\nNo statement but the safety poll's: {verdict(not others)}", *others[:10], sep="\n")


def kind(line):
    if "pg_current_snapshot()" in line:
        return WINDOW
    return PROOF if line.endswith("select 1") else OTHER
