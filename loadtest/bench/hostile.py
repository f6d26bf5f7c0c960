"""Filters made to be slow: what rows for others take beside a hundred subscribers with the worst that is let in."""

import statistics
import time

from commits import Commits
from crowd import Rooms
from hub import SILENCE, Hub
from processes import cpu_us
from programs import BenchError
from table import show, spread, verdict

OTHERS, HOSTILE = 20, 100
RATE, SECONDS = 100, 1  # rows a second, and for how long at a time, first without and then with
BUDGET = 2
BODY = "ab c1" * 100
#: A number makes each subscriber's another pattern, which Postgres compiles and decides by itself.
PATTERNS = {
    "a regular expression of many states": "body=match.([^a]*[^b]*[^c]*){{10}}([^a][^b]){{40}}{n:05}",
    "a long alternation": "body=imatch.(" + "|".join(f"b c1a{{{{{k}}}}}b" for k in range(1, 21)) + ").*{n:05}",
    "word boundaries": r"body=match.(\y\w*\s){{4}}[^a]*{n:05}",
    "ilike with 20 %": "body=ilike." + "%a%b% %c" * 5 + "{n:05}",
    "like with 20 %": "body=like." + "%a%b% %c" * 5 + "{n:05}",
    "a cheap regular expression, twenty each": "body=match.{n:05}",
}
EACH = {"a cheap regular expression, twenty each": 20}

# Two tables alike, one of which nobody hostile asks for.
TABLES = """alter table public.roost_load add column body text;
create table public.quiet (like public.roost_load including all);
grant select on public.quiet to service_role"""
CONVERSATION = "00000000-0000-4000-8000-000000000001"


def measure(programs, cluster, arguments):
    rounds = arguments.rounds or (5 if arguments.quick else 15)
    rows = []
    for number, (name, pattern) in enumerate(PATTERNS.items()):
        for renewed in (False, True):
            database = cluster.create(f"hostile_{number}_{int(renewed)}")
            cluster.psql(database, TABLES)
            with Hub(programs, cluster, database, arguments.loops, ["public.roost_load", "public.quiet"], **SILENCE) as hub:
                found = beside(cluster, hub, database, pattern, EACH.get(name, 1), renewed, rounds)
                hub.log.seek(0)
                ended = sum("is not served any more" in line for line in hub.log)
            ratios = [after / before for before, after in zip(found["without"], found["beside"])]
            rows.append([name + (", new ones each time" if renewed else "")]
                        + [spread(found[key], 1) for key in ("without", "beside")] + [spread(ratios, 2)]
                        + [verdict(statistics.median(ratios) <= BUDGET)]
                        + [spread(found[key], 0) for key in ("longest", "cpu", "filters")] + [ended])
    show(f"Rows at {RATE}/s for {OTHERS} subscribers, {HOSTILE} with hostile filters beside them; commit → client, p99 in ms of "
         f"{SECONDS} s without and {SECONDS} s with, in turn; median of {rounds}",
         ["the hostile filters", "p99 without", "p99 beside", "ratio", f"≤ {BUDGET}", "the longest beside, ms",
          "Postgres beside, % of a core", "of it for filters", "filters ended"], rows)


def beside(cluster, hub, database, pattern, each, renewed, rounds):
    found = {key: [] for key in ("without", "beside", "longest", "cpu", "filters")}
    numbers = iter(range(100_000))

    def entries():
        return [{"event": "INSERT", "schema": "public", "table": "roost_load", "filter": pattern.format(n=next(numbers))}
                for _ in range(each)]

    with Rooms(hub, OTHERS) as others:
        others.ask("join", channels=[[["realtime:rows", {"postgres_changes": [
            {"event": "INSERT", "schema": "public", "table": table, "filter": f"conversation_id=eq.{CONVERSATION}"}
            for table in ("roost_load", "quiet")]}]]] * OTHERS)
        crowds = []
        try:
            for turn in range(rounds + 1):
                if not crowds or renewed:
                    for crowd in crowds:
                        crowd.__exit__()
                    crowds = [Rooms(hub, HOSTILE).__enter__()]
                    crowds[0].ask("join", channels=[[[f"realtime:hostile {turn}", {"postgres_changes": entries()}]]
                                                    for _ in range(HOSTILE)])
                quiet = phase(cluster, database, others, "quiet")
                loud = phase(cluster, database, others, "roost_load")
                crowds[0].ask("listen", seconds=0.05)
                if turn:  # The first warms up.
                    found["without"].append(quiet["p99"])
                    found["beside"].append(loud["p99"])
                    found["longest"].append(loud["p100"])
                    found["cpu"].append(loud["cpu"])
                    found["filters"].append(loud["filters"])
        finally:
            for crowd in crowds:
                crowd.__exit__()
    return found


def phase(cluster, database, others, table):
    writer = Commits(cluster, database, RATE, lambda due: f"insert into public.{table} (conversation_id, stamp, body) "
                     f"values ('{CONVERSATION}', '{due}', '{BODY}')")
    others.ask("listen", seconds=0.2)
    others.ask("points")
    before = others.ask("listen", seconds=0)["delivered"]
    sessions = cluster.backends(database, "roost filters")
    cpu, filters, began = cluster.cpu_microseconds(), cpu_seconds(sessions), time.monotonic()
    writer.start()
    others.ask("listen", seconds=SECONDS)
    took = time.monotonic() - began
    cpu, filters = cluster.cpu_microseconds() - cpu, cpu_seconds(sessions) - filters
    writer.finish()
    expected = before + len(writer.done) * OTHERS
    state = others.ask("listen", seconds=30, until=expected)
    if state["delivered"] != expected or state["disorder"]:
        raise BenchError(f"{expected - state['delivered']} deliveries were lost, {state['disorder']} out of order")
    return others.ask("points", commits=writer.done) | {"cpu": cpu / took / 1e4, "filters": 100 * filters / took}


def cpu_seconds(pids):
    """Of those processes that are still there."""
    spent = 0
    for pid in pids:
        try:
            spent += cpu_us(pid) / 1e6
        except OSError:
            pass
    return spent
