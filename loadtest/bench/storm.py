"""Everybody comes back at once: after a kill -9 of the hub, and after a restart under load."""

import collections
import json
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import uuid

from hub import Hub
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


class Crowds:
    """The sockets, spread over processes: one has no more than 20,000 files, and one core."""

    def __init__(self, port, sockets, processes=2):
        script = pathlib.Path(__file__).with_name("storm_crowd.py")
        share = -(-sockets // processes)
        self.sockets = sockets
        self.processes = [
            subprocess.Popen([sys.executable, script, str(port), str(first), str(min(share, sockets - first)),
                              ",".join(CONVERSATIONS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for first in range(0, sockets, share)]

    def ask(self, **command):
        for process in self.processes:
            process.stdin.write(json.dumps(command) + "\n")
            process.stdin.flush()
        return [json.loads(process.stdout.readline()) for process in self.processes]

    def until_joined(self, within, reconnects=0):
        """Waits until all are joined, after so many losses in all. When the last one was, on the monotonic clock."""
        deadline = time.monotonic() + within
        while True:
            states = self.ask(do="state")
            if (sum(state["joined"] for state in states) == self.sockets
                    and sum(state["reconnects"] for state in states) >= reconnects):
                return max(state["last"] for state in states)
            if time.monotonic() > deadline:
                joined = sum(state["joined"] for state in states)
                raise BenchError(f"{joined} of {self.sockets} sockets joined within {within} s; "
                                 f"{[state['errors'] for state in states]}")
            time.sleep(0.1)

    def cpu(self):
        return sum(state["cpu"] for state in self.ask(do="state"))

    def end(self):
        for process in self.processes:
            process.stdin.close()
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Writer(threading.Thread):
    """Writes at a steady rate, whatever becomes of the hub; `rows` has when each was handed to Postgres."""

    def __init__(self, cluster, database):
        super().__init__(daemon=True)
        self.session = cluster.session(database)
        self.rows = []  # (conversation, number, when)
        self.ended = threading.Event()

    def run(self):
        due = time.monotonic()
        while not self.ended.is_set():
            number = len(self.rows)
            conversation = CONVERSATIONS[number % len(CONVERSATIONS)]
            self.session.stdin.write(
                f"insert into roost_load (conversation_id, stamp) values ('{conversation}', '{number}');\n")
            self.session.stdin.flush()
            self.rows.append((conversation, number, time.monotonic()))
            due += 1 / RATE
            self.ended.wait(max(0, due - time.monotonic()))

    def finish(self):
        self.ended.set()
        self.join()
        self.session.stdin.close()
        if self.session.wait() != 0:
            raise BenchError("the writer's session failed")

    def between(self, began, ended):
        found = collections.defaultdict(list)
        for conversation, number, at in self.rows:
            if began <= at <= ended:
                found[conversation].append(number)
        return found


def measure(programs, cluster, arguments):
    sizes = (1000, 10_000)
    # What the hub asks of Postgres is counted in the server's log, by who asks.
    cluster.psql("postgres", "alter system set log_line_prefix = '%a|%d|'")
    cluster.psql("postgres", "select pg_reload_conf()")
    rows = [storm(programs, cluster, arguments, sockets, signal.SIGKILL) for sockets in sizes]
    rows.append(storm(programs, cluster, arguments, 5000, signal.SIGTERM))
    show(f"All sockets come back at once while {RATE} rows/s are written; seconds from the start of the new process",
         ["sockets", "the hub had", "all joined, s", "all caught up, s", "hub CPU µs per socket", "testers' CPU µs",
          "queries", "of them recovering", "missed rows × readers", "lost", "repeats"], rows)


def storm(programs, cluster, arguments, sockets, number):
    database = cluster.create(f"storm_{sockets}_{number.name.lower()}")
    cluster.psql(database, GRANT)
    cluster.psql("postgres", f"alter database {database} set log_statement = 'all'")
    with Hub(programs, cluster, database, arguments.loops, watch=["public.roost_load"]) as hub:
        hub.environment["ROOST_DRAIN_SECONDS"] = "3"
        crowds = Crowds(hub.port, sockets)
        try:
            crowds.until_joined(120)
            writer = Writer(cluster, database)
            writer.start()
            time.sleep(3)
            lost_at = time.monotonic()
            hub.process.send_signal(number)
            hub.process.wait(30)
            time.sleep(2)
            queries, testers = len(asked(cluster, database)), crowds.cpu()
            began = time.monotonic()
            hub.start()
            joined = crowds.until_joined(120, reconnects=sockets) - began
            missed = writer.between(lost_at, began)
            caught_up, _ = await_all(crowds, writer, missed)
            spent = time.clock_gettime_ns(~hub.pid << 3 | 2) / 1000
            testers = crowds.cpu() - testers
            new = asked(cluster, database)[queries:]
            time.sleep(2)
            writer.finish()
            _, verdict = await_all(crowds, writer, missed)
        finally:
            crowds.end()
    if verdict["lost"]:
        print(f"lost: {verdict['examples']}")
    return [f"{sockets:,}", {signal.SIGKILL: "kill -9", signal.SIGTERM: "SIGTERM, 3 s drain"}[number], f"{joined:.2f}",
            f"{caught_up - began:.2f}" if caught_up else "never", f"{spent / sockets:.0f}",
            f"{testers * 1e6 / sockets:.0f}", len(new), sum(bool(RECOVERING.search(line)) for line in new),
            f"{sum(map(len, missed.values())) * sockets // len(CONVERSATIONS):,}", verdict["lost"],
            f"{verdict['repeats']:,}"]


def await_all(crowds, writer, missed, within=30):
    """Until nothing is missing of what was written so far. When the last of the missed rows came, and the verdict."""
    rows = writer.between(0, time.monotonic() - 0.1)
    deadline = time.monotonic() + within
    while True:
        answers = crowds.ask(do="verdict", rows=rows, missed=missed)
        lost = sum(answer["lost"] for answer in answers)
        if not lost or time.monotonic() > deadline:
            return 0 if lost else max(answer["caught_up"] for answer in answers), {
                "lost": lost, "repeats": sum(answer["repeats"] for answer in answers),
                "examples": sum((answer["examples"] for answer in answers), [])}
        time.sleep(0.2)


def asked(cluster, database):
    """The statements of the hub's sessions."""
    return [line for line in (cluster.folder / "log").read_text(errors="replace").splitlines()
            if line.startswith("roost") and f"|{database}|" in line
            and (" statement: " in line or " execute " in line)]
