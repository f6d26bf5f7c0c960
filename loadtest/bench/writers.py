"""What watching a table costs those who write to it: not watched, by triggers, from the WAL."""

import statistics
import subprocess
import time

from hub import Hub
from processes import cpu_us
from programs import BenchError
from table import show, spread, verdict

SHARE, CPU, LATENCY = 0.80, 1.05, 1.10  # the budgets: triggers' throughput; the WAL's CPU and latency
SCRIPT = """\\set n random(0, 999)
insert into public.roost_load (conversation_id, stamp)
values (('00000000-0000-4000-8000-' || lpad(:n::text, 12, '0'))::uuid, 'a message of an ordinary length, nothing more');
"""
PLAIN, TRIGGERS, ALONE, WAL = "not watched", "triggers", "triggers, no hub", "WAL"


def measure(programs, cluster, arguments):
    rounds = arguments.rounds or (3 if arguments.quick else 10)
    seconds = 3 if arguments.quick else 6
    script = cluster.folder / "insert.sql"
    script.write_text(SCRIPT)
    # Databases of one cluster, in turn; wal_level is logical for all of them.
    databases = {way: cluster.create(f"writers_{number}") for number, way in enumerate((PLAIN, TRIGGERS, ALONE, WAL))}
    watch = ["public.roost_load"]
    with Hub(programs, cluster, databases[ALONE], arguments.loops, watch=watch):
        pass
    with Hub(programs, cluster, databases[TRIGGERS], arguments.loops, watch=watch, ROOST_FEED_CAPTURE="triggers"), \
            Hub(programs, cluster, databases[WAL], arguments.loops, watch=watch, ROOST_FEED_CAPTURE="wal"):
        for clients in (8, 32):
            found = {way: [] for way in databases}
            for _ in range(rounds):
                for way, runs in found.items():
                    runs.append(Run(cluster, databases[way], script, clients, seconds))
            saturation(found, clients, rounds, seconds)
        half = statistics.median(run.rate for run in found[PLAIN]) / 2
        found = {way: [] for way in databases}
        for _ in range(rounds):
            for way, runs in found.items():
                runs.append(Run(cluster, databases[way], script, 8, seconds, rate=half))
        half_load(found, half, rounds, seconds)


class Run:
    """One run of pgbench: what it did, and what that cost."""

    def __init__(self, cluster, database, script, clients, seconds, rate=None):
        # Each starts from a checkpoint, so that none pays for another's.
        cluster.psql("postgres", "checkpoint")
        command = [cluster.bin / "pgbench", "-n", "-M", "prepared", "-f", script, "-c", str(clients), "-j", "2",
                   "-T", str(seconds)]
        log = cluster.folder / f"log-{time.monotonic_ns()}"
        if rate:
            command += ["--rate", f"{rate:.0f}", "-l", f"--log-prefix={log}"]
        before, ran = cluster.cpu_microseconds(), subprocess.Popen(
            [*command, cluster.url(database)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(seconds * 0.15)
        backends = cluster.backends(database, "pgbench")
        rows, used = self._rows(cluster, database), sum(map(cpu_us, backends))
        time.sleep(seconds * 0.6)
        # By the writers' own sessions, while they last.
        self.backend = (sum(map(cpu_us, backends)) - used) / (self._rows(cluster, database) - rows)
        out, errors = ran.communicate()
        # A session's CPU time is its postmaster's only when it has ended; and what reads the WAL has to get there.
        time.sleep(0.5)
        spent = cluster.cpu_microseconds() - before
        rates = [float(line.split()[2]) for line in out.splitlines() if line.startswith("tps =")]
        counts = [int(line.split()[-1].split("/")[0]) for line in out.splitlines()
                  if line.startswith("number of transactions actually processed")]
        if ran.returncode != 0 or not rates or not counts:
            raise BenchError(f"pgbench failed: {errors.strip()[-300:]}")
        self.rate, self.postgres = rates[0], spent / counts[0]
        # From when the transaction began, not from when it was due: pgbench waits for a core itself.
        late = sorted(int(fields[2]) - int(fields[6]) for file in cluster.folder.glob(f"{log.name}.*")
                      for fields in map(str.split, file.read_text().splitlines()) if len(fields) > 6)
        self.p50, self.p99 = (late[int(len(late) * point)] / 1000 for point in (0.5, 0.99)) if late else (0, 0)

    @staticmethod
    def _rows(cluster, database):
        return int(cluster.psql(database, "select last_value from public.roost_load_id_seq"))


def ratios(found, way, value):
    """To the unwatched table, round by round."""
    return [getattr(ours, value) / getattr(plain, value) for ours, plain in zip(found[way], found[PLAIN])]


def saturation(found, clients, rounds, seconds):
    rows = []
    for way, runs in found.items():
        share, cost = (ratios(found, way, value) for value in ("rate", "backend"))
        rows.append([
            way, *(spread([getattr(run, value) for run in runs], 0) for value in ("rate", "backend", "postgres")),
            spread(share, 2), spread(cost, 2),
            verdict(statistics.median(cost) <= CPU) if way == WAL
            else verdict(statistics.median(share) >= SHARE) if way == TRIGGERS else ""])
    show(f"Single-row inserts by pgbench with {clients} clients, as many as two cores give; medians of {rounds} interleaved "
         f"rounds of {seconds} s", [
             "the table is", "transactions/s", "CPU µs of the writer's session per transaction", "of all of Postgres",
             "× transactions/s", "× CPU of the session", f"triggers × ≥ {SHARE}, WAL CPU × ≤ {CPU}"], rows)


def half_load(found, rate, rounds, seconds):
    rows = []
    for way, runs in found.items():
        cost, p50, p99 = (ratios(found, way, value) for value in ("backend", "p50", "p99"))
        is_met = max(statistics.median(p50), statistics.median(p99)) <= LATENCY and statistics.median(cost) <= CPU
        rows.append([
            way, spread([run.rate for run in runs], 0), spread([run.backend for run in runs], 0),
            spread([run.postgres for run in runs], 0), spread([run.p50 for run in runs], 2),
            spread([run.p99 for run in runs], 2), spread(cost, 2), spread(p50, 2), spread(p99, 2),
            verdict(is_met) if way == WAL else ""])
    show(f"The same at half of that, {rate:,.0f} transactions/s by 8 clients; medians of {rounds} interleaved rounds of {seconds} s",
         ["the table is", "transactions/s", "CPU µs of the writer's session per transaction", "of all of Postgres",
          "commit p50, ms", "p99", "× CPU of the session", "× p50", "× p99", f"CPU × ≤ {CPU}, p50 and p99 × ≤ {LATENCY}"],
         rows)
