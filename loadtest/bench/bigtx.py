"""One transaction of 100,000 rows on a watched table: what other channels notice, and what it takes of memory."""

import os
import pathlib
import threading
import time

from commits import Commits
from crowd import Rooms
from hub import SILENCE, Hub
from processes import Threads, most_resident, resident
from table import show, verdict

ROWS = 100_000
LISTENERS, RATE = 100, 100
READERS, COMMITS = 10, 50
#: Milliseconds: p99 of broadcasts, whoever hears the rows; the longest pause of other row changes where nobody does.
BROADCAST_BUDGET, PAUSE_BUDGET = 10, 50

OTHER = """create table public.other (id bigint generated always as identity primary key, stamp text not null);
grant select on public.other to service_role"""
# Numbers as of a message: later than all before, one by one.
FILL = """insert into public.roost_load (conversation_id, stamp)
select ('00000000-0000-4000-8000-' || lpad((n % 100)::text, 12, '0'))::uuid, ({first} + n)::text
from generate_series(0, {rows} - 1) n"""


def inserts(table, **filter):
    return {"postgres_changes": [{"event": "INSERT", "schema": "public", "table": table} | filter]}


def taker(number, conversation=None):
    """A socket with one channel for the rows of the transaction: all, or those of a conversation."""
    filter = {} if conversation is None else {"filter": f"conversation_id=eq.00000000-0000-4000-8000-{conversation:012}"}
    return [[f"realtime:taker {number}", inserts("roost_load", **filter)]]


#: Who hears the rows, and how many deliveries that makes.
TAKERS = {
    "nobody": ([], 0),
    "a filter that none of them matches": ([taker(0, 999)], 0),
    "100 readers, 1,000 each": ([taker(number, number) for number in range(100)], ROWS),
    "ten readers of all": ([taker(number) for number in range(10)], 10 * ROWS),
}


def measure(programs, cluster, arguments):
    calm = 5 if arguments.quick else 20
    pauses, costs = [], []
    for number, (name, (channels, expected)) in enumerate(TAKERS.items()):
        for turn in range(arguments.rounds or (1 if arguments.quick else 3)):
            database = cluster.create(f"bigtx{number}_{turn}")
            cluster.psql(database, OTHER)
            with Hub(programs, cluster, database, arguments.loops, ["public.roost_load", "public.other"], ops=True,
                     **SILENCE) as hub:
                run = Run(cluster, hub, channels, expected).run(calm)
            for what, key in (("broadcasts", "broadcasts"), ("row changes of another table", "changes")):
                before, during = run.noticed[key]
                budget = (f"p99 ≤ {BROADCAST_BUDGET} {verdict(during['p99'] <= BROADCAST_BUDGET)}" if key == "broadcasts"
                          else f"longest ≤ {PAUSE_BUDGET} {verdict(during['p100'] <= PAUSE_BUDGET)}" if not channels else "–")
                pauses.append([name, what, *(f"{points[point]:.1f}" for points in (before, during)
                                             for point in ("p50", "p99", "p100")),
                               f"{during['late']:.1f}", budget])
            costs.append([name, f"{run.inserted:.2f}", f"{run.delivered:.2f}" if expected else "–",
                          f"{run.spent / ROWS:.1f}" if expected else "–", run.turn, f"{run.waited:.2f}",
                          f"{run.resting / 1e6:.1f}", f"+{(run.peak - run.resting) / 1e6:.1f}",
                          f"+{(run.after - run.resting) / 1e6:.1f}", run.lost, run.disorder])
    show(f"A transaction of {ROWS:,} rows; meanwhile {LISTENERS} sockets hear {RATE} broadcasts/s, and {READERS} sockets "
         f"{COMMITS} commits/s of another table; ms from due, or committed, to read; before it, and from its begin to its last "
         "delivery",
         ["its rows go to", "noticed by", "before: p50", "p99", "longest", "during: p50", "p99", "longest", "tester late",
          "budget"], pauses)
    show("What it took; the hub's memory in MB",
         ["its rows go to", "insert, s", "commit → last delivery, s", "hub CPU µs per row", "longest turn of a loop, ms",
          "its threads waited for a core, s",
          "at rest", "peak", "3 s later", "lost", "repeated or out of order"], costs)


class Run:
    """What happens to a fresh hub."""

    def __init__(self, cluster, hub, channels, expected):
        self.cluster, self.hub, self.channels, self.expected = cluster, hub, channels, expected
        self.is_over = threading.Event()

    def run(self, calm):
        with Rooms(self.hub, LISTENERS + 1) as self.listeners, Rooms(self.hub, READERS) as self.readers, \
                Rooms(self.hub, len(self.channels)) as takers:
            self.listeners.ask("join", channels=[[["realtime:lobby", {}]]] * (LISTENERS + 1))
            self.readers.ask("join", channels=[[["realtime:other", inserts("other")]]] * READERS)
            takers.ask("join", channels=self.channels)
            for crowd in (self.listeners, self.readers):
                prefer(crowd)
            before = self.load(lambda: time.sleep(calm))
            self.resting = resident(self.hub.pid)
            pathlib.Path(f"/proc/{self.hub.pid}/clear_refs").write_text("5")
            during = self.load(lambda: self.transact(takers))
            self.peak = most_resident(self.hub.pid)
            time.sleep(3)
            self.after = resident(self.hub.pid)
            self.noticed = {key: (before[key], during[key]) for key in before}
            lost = [points["lost"] for load in (before, during) for points in load.values()]
            self.lost, self.disorder = sum(lost) + self.missing, sum(
                crowd.ask("listen", seconds=0)["disorder"] for crowd in (self.listeners, self.readers, takers))
        return self

    def load(self, meanwhile):
        """What the other channels notice while something else happens."""
        self.is_over.clear()
        writer = Commits(self.cluster, self.hub.database, COMMITS, lambda due: f"insert into other (stamp) values ('{due}')")
        heard = {crowd: crowd.ask("listen", seconds=0)["delivered"] for crowd in (self.listeners, self.readers)}
        sent = []
        threads = [threading.Thread(target=self.broadcast, args=(sent,)), threading.Thread(target=self.read)]
        writer.start()
        for thread in threads:
            thread.start()
        meanwhile()
        writer.finish()
        # The last commit is to be heard by somebody who listens.
        time.sleep(0.3)
        self.is_over.set()
        for thread in threads:
            thread.join()
        result = {}
        for key, crowd, expected, commits in (
                ("broadcasts", self.listeners, sum(sent) * LISTENERS, ()),
                ("changes", self.readers, len(writer.done) * READERS, writer.done)):
            state = crowd.ask("listen", seconds=10, until=heard[crowd] + expected)
            result[key] = crowd.ask("points", commits=commits) | {"lost": heard[crowd] + expected - state["delivered"]}
        return result

    def broadcast(self, sent):
        while not self.is_over.is_set():
            sent.append(self.listeners.ask("pace", topic="realtime:lobby", rate=RATE, seconds=1)["sent"])

    def read(self):
        while not self.is_over.is_set():
            self.readers.ask("listen", seconds=0.5)

    def transact(self, takers):
        turns = self.hub.figures()
        takers.tell("listen", seconds=120, until=self.expected)
        began = time.monotonic()
        self.cluster.psql(self.hub.database, FILL.format(first=time.monotonic_ns(), rows=ROWS))
        committed, threads = time.monotonic(), Threads(self.hub.pid)
        self.missing = self.expected - takers.hear()["delivered"]
        self.inserted, self.delivered = committed - began, time.monotonic() - committed
        self.spent, self.waited = sum(threads.ran_us().values()), threads.waited_seconds()
        self.turn = longest(turns, self.hub.figures(), "roost_loop_turn_seconds")
        # Without deliveries nothing tells when the hub is through.
        time.sleep(1 if self.expected else 5)


def longest(before, after, histogram):
    """In milliseconds, by the buckets that a histogram of seconds has: what none of the new values was above."""
    buckets = {}
    for name, count in after.items():
        if name.startswith(histogram + "_bucket"):
            edge = float(name.split('le="')[1].split('"')[0])
            buckets[edge] = buckets.get(edge, 0) + count - before.get(name, 0)
    return f"≤ {min(edge for edge, count in buckets.items() if count == max(buckets.values())) * 1000:g}"


def prefer(crowd):
    """Who measures how long others wait shall not wait for a core."""
    try:
        os.setpriority(os.PRIO_PROCESS, crowd.process.pid, -15)
    except PermissionError:
        pass  # then "tester late" tells
