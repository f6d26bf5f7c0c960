"""5,000 rows a second for a while: nothing lost, how late, and what a row costs."""

import itertools
import statistics
import time

from commits import Commits
from crowd import Rooms
from hub import Hub
from processes import Threads
from table import show, spread, verdict

RATE = 5000
SUBSCRIBERS, CONVERSATIONS = 1000, 100
WRITERS = 32  # sessions, of single rows: enough that Postgres keeps up
TOGETHER = 10  # conversations of a transaction, and rows in each of them
KEPT_UP = 0.98  # of the rate; less is another measurement

FILL = """insert into public.roost_load (conversation_id, stamp)
select ('00000000-0000-4000-8000-' || lpad((({first} + n / {each}) % {all})::text, 12, '0'))::uuid, ({due} + n)::text
from generate_series(0, {last}) n"""
# A commit after each row, without the round trips and flushes that would leave no core to the hub.
TRICKLE = """set synchronous_commit = off; do $$ begin for n in 0..{last} loop
insert into public.roost_load (conversation_id, stamp)
values (('00000000-0000-4000-8000-' || lpad((n % {all})::text, 12, '0'))::uuid, ({due} + n)::text); commit;
end loop; end $$"""


def measure(programs, cluster, arguments):
    rounds = arguments.rounds or (1 if arguments.quick else 3)
    seconds = 10 if arguments.quick else 30
    ways = {
        f"of {TOGETHER * TOGETHER} rows, ten each for ten conversations": together,
        f"of one row, {TOGETHER * TOGETHER} by a procedure, not flushed": apart,
        f"of one row, by {WRITERS} sessions": single,
    }
    rows = []
    for number, (name, way) in enumerate(ways.items()):
        database = cluster.create(f"rows{number}")
        with Hub(programs, cluster, database, arguments.loops, ["public.roost_load"]) as hub:
            found = [way(programs, cluster, hub, seconds) for _ in range(rounds)]
        lost, wrong = (sum(each[key] for each in found) for key in ("lost", "wrong"))
        # A machine may be too small for the writers and the tester beside the hub; then its busiest thread tells.
        seen, capacity = (statistics.median(each[key] for each in found) for key in ("rate", "capacity"))
        rows.append([name] + [spread([each[key] for each in found], digits) for key, digits in (
            ("rate", 0), ("p50", 1), ("p99", 1), ("max", 0), ("row", 1), ("delivery", 2), ("capacity", 0), ("tester", 0))]
            + [f"{sum(each['delivered'] for each in found):,}", lost, wrong,
               verdict(max(seen / KEPT_UP, capacity) >= RATE and not lost and not wrong)
               + ("" if seen >= KEPT_UP * RATE else ", by CPU time")])
    show(f"{RATE:,} rows/s due for {seconds} s, {SUBSCRIBERS:,} subscribers over {CONVERSATIONS} conversations, so ten "
         f"deliveries of each row; median of {rounds}",
         ["transactions", "rows/s written", "commit → client, ms: p50", "p99", "max", "hub CPU µs per row", "per delivery",
          "rows/s that its busiest thread has CPU time for", "tester % of a core", "deliveries", "lost",
          "repeated or out of order", f"≥ {RATE:,} rows/s, nothing lost"], rows)


def together(programs, cluster, hub, seconds):
    turns = itertools.count()
    return follow(cluster, hub, seconds, lambda due: FILL.format(
        first=next(turns) * TOGETHER, each=TOGETHER, all=CONVERSATIONS, due=due, last=TOGETHER * TOGETHER - 1))


def apart(programs, cluster, hub, seconds):
    return follow(cluster, hub, seconds, lambda due: TRICKLE.format(all=CONVERSATIONS, due=due, last=TOGETHER * TOGETHER - 1),
                  is_one=False)


def follow(cluster, hub, seconds, sql, is_one=True):
    """A crowd reads what one session writes."""
    size = TOGETHER * TOGETHER
    with Rooms(hub, SUBSCRIBERS) as crowd:
        crowd.ask("join", channels=[[[f"realtime:conversation {number % CONVERSATIONS}", {"postgres_changes": [
            {"event": "INSERT", "schema": "public", "table": "roost_load",
             "filter": f"conversation_id=eq.00000000-0000-4000-8000-{number % CONVERSATIONS:012}"}]}]]
            for number in range(SUBSCRIBERS)])
        writer = Commits(cluster, hub.database, RATE / size, sql)
        tester, threads, began = crowd.ask("keep_alive", period=25)["cpu"], Threads(hub.pid), time.monotonic()
        writer.start()
        crowd.ask("listen", seconds=seconds)
        writer.finish()
        took, written = time.monotonic() - began, len(writer.done) * size
        expected = written * SUBSCRIBERS // CONVERSATIONS
        state = crowd.ask("listen", seconds=15, until=expected)
        # The commits of a procedure are not seen one by one: late is what comes after all of them were due.
        used, points = threads.ran_us().values(), crowd.ask("points", commits=writer.done if is_one else ())
    return {"rate": written / took, "p50": points["p50"], "p99": points["p99"], "max": points["p100"],
            "row": sum(used) / written, "delivery": sum(used) / state["delivered"], "capacity": 1e6 * written / max(used),
            "tester": 100 * (state["cpu"] - tester) / took, "delivered": state["delivered"],
            "lost": expected - state["delivered"], "wrong": state["disorder"]}


def single(programs, cluster, hub, seconds):
    threads = Threads(hub.pid)
    result = programs.json_of(
        [programs.roost_load, "changes", "--url", hub.url, "--token", hub.token, "--database", cluster.url(hub.database),
         "--rate", RATE, "--writers", WRITERS, "--duration", seconds, "--subscribers", SUBSCRIBERS,
         "--conversations", CONVERSATIONS, "--settle", 30, "--json", "--pid", f"hub={hub.pid}"], accept=(0, 1))
    # Connecting and leaving is among it.
    used, written = threads.ran_us().values(), result["commits"]
    return {"rate": result["achieved_rate"], "p50": result["commit_p50_us"] / 1000, "p99": result["commit_p99_us"] / 1000,
            "max": result["commit_max_us"] / 1000, "row": sum(used) / written,
            "delivery": result["hub_cpu_us_per_delivery"], "capacity": 1e6 * written / max(used),
            "tester": result["tester_cpu_percent"], "delivered": result["delivered"], "lost": result["lost"],
            "wrong": result["repeated"] + result["out_of_order"] + result["wrong"]}
