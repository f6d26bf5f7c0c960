"""Everybody comes back at once: after a kill -9 of the hub, and after a restart under load."""

import collections
import re
import signal
import time
import uuid

from commits import Commits
from crowd import Crowd
from hub import Hub
from processes import cpu_us
from programs import BenchError
from table import show

CONVERSATIONS = [str(uuid.UUID(int=0xC0000000_0000_4000_8000_000000000000 + number)) for number in range(100)]
#: How the statements begin that read what clients missed (RecoverySlice.sql, RecoveryWindow.sql).
RECOVERING = re.compile(r"select id, relid, op, reduced, at(, committed|::text as at)")
RATE = 50  # rows per second, each for one conversation
GRANT = """do $$ begin
    if to_regrole('authenticated') is null then create role authenticated nologin; end if;
end $$;
grant select on public.roost_load to authenticated"""


class Subscribers(Crowd):
    """Some of the sockets; the commands are those of `StormCrowd`. That they are cut off is what it is about."""
    script = "storm_crowd.py"

    def check(self, answer):
        pass


class Crowds:
    """The sockets, spread over processes: one has no more than 20,000 files, and one core."""

    def __init__(self, hub, sockets, processes=2):
        share = -(-sockets // processes)
        self.sockets = sockets
        self.crowds = [Subscribers(hub, first, min(share, sockets - first), ",".join(CONVERSATIONS))
                       for first in range(0, sockets, share)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for crowd in self.crowds:
            crowd.__exit__()

    def ask(self, do, **command):
        for crowd in self.crowds:
            crowd.tell(do, **command)
        return [crowd.hear() for crowd in self.crowds]

    def until_joined(self, within, reconnects=0):
        """Waits until all are joined, after so many losses in all. When the last one was, on the monotonic clock."""
        deadline = time.monotonic() + within
        while True:
            states = self.ask("report")
            joined = sum(state["joined"] for state in states)
            if joined == self.sockets and sum(state["reconnects"] for state in states) >= reconnects:
                return max(state["last"] for state in states)
            if time.monotonic() > deadline:
                raise BenchError(f"{joined} of {self.sockets} sockets joined within {within} s; "
                                 f"{[state['errors'] for state in states]}")
            time.sleep(0.1)

    def cpu(self):
        return sum(state["cpu"] for state in self.ask("report"))


class Rows(Commits):
    """Written at a steady rate, whatever becomes of the hub, for each conversation in turn. A row's number is when it was due, in
    monotonic nanoseconds."""

    def __init__(self, cluster, database):
        super().__init__(cluster, database, RATE, lambda number: "insert into roost_load (conversation_id, stamp) "
                         f"values ('{self.conversation(len(self.done))}', '{number}')")

    @staticmethod
    def conversation(turn):
        return CONVERSATIONS[turn % len(CONVERSATIONS)]

    def between(self, began, ended):
        """The numbers by conversation of the rows that were due between two moments, in seconds."""
        found = collections.defaultdict(list)
        for turn, (number, _) in enumerate(self.done):
            if began <= number / 1e9 <= ended:
                found[self.conversation(turn)].append(number)
        return found


def measure(programs, cluster, arguments):
    sizes = (1000, 10_000)
    cluster.log_by_who_asks()
    rows = [storm(programs, cluster, arguments, sockets, signal.SIGKILL) for sockets in sizes]
    rows.append(storm(programs, cluster, arguments, 5000, signal.SIGTERM))
    show(f"All sockets come back at once while {RATE} rows/s are written; seconds from the start of the new process",
         ["sockets", "the hub had", "all joined, s", "all caught up, s", "hub CPU µs per socket", "testers' CPU µs",
          "queries", "of them recovering", "missed rows × readers", "lost", "repeats"], rows)


def storm(programs, cluster, arguments, sockets, number):
    database = cluster.create(f"storm_{sockets}_{number.name.lower()}")
    cluster.psql(database, GRANT)
    cluster.log_statements(database)
    hub = Hub(programs, cluster, database, arguments.loops, ["public.roost_load"], ROOST_DRAIN_SECONDS=3)
    with hub, Crowds(hub, sockets) as crowds:
        crowds.until_joined(120)
        rows = Rows(cluster, database)
        rows.start()
        time.sleep(3)
        lost_at = time.monotonic()
        hub.process.send_signal(number)
        hub.process.wait(30)
        time.sleep(2)
        queries, testers = len(cluster.asked(database)), crowds.cpu()
        began = time.monotonic()
        hub.start()
        joined = crowds.until_joined(120, reconnects=sockets) - began
        missed = rows.between(lost_at, began)
        caught_up, _ = await_all(crowds, rows, missed)
        spent = cpu_us(hub.pid)
        testers = crowds.cpu() - testers
        new = cluster.asked(database)[queries:]
        time.sleep(2)
        rows.finish()
        _, verdict = await_all(crowds, rows, missed)
    if verdict["lost"]:
        print(f"lost: {verdict['examples']}")
    return [f"{sockets:,}", {signal.SIGKILL: "kill -9", signal.SIGTERM: "SIGTERM, 3 s drain"}[number], f"{joined:.2f}",
            f"{caught_up - began:.2f}" if caught_up else "never", f"{spent / sockets:.0f}",
            f"{testers * 1e6 / sockets:.0f}", len(new), sum(bool(RECOVERING.search(line)) for line in new),
            f"{sum(map(len, missed.values())) * sockets // len(CONVERSATIONS):,}", verdict["lost"],
            f"{verdict['repeats']:,}"]


def await_all(crowds, rows, missed, within=30):
    """Until nothing is missing of what was written so far. When the last of the missed rows came, and the verdict."""
    written = rows.between(0, time.monotonic() - 0.1)
    deadline = time.monotonic() + within
    while True:
        answers = crowds.ask("judge", rows=written, missed=missed)
        lost = sum(answer["lost"] for answer in answers)
        if not lost or time.monotonic() > deadline:
            return 0 if lost else max(answer["caught_up"] for answer in answers), {
                "lost": lost, "repeats": sum(answer["repeats"] for answer in answers),
                "examples": sum((answer["examples"] for answer in answers), [])}
        time.sleep(0.2)
