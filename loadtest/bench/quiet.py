"""What a watched table that nobody writes to keeps of the WAL while the rest of the database is busy."""

import subprocess
import time

from hub import Hub
from programs import BenchError
from table import show, verdict

#: A hub tells the slot where it is at least this often; bytes of WAL that are written in that time are always behind it.
SECONDS, RATE = 10, 300
BOUND = 64 * 1024 * 1024
BEHIND = """select pg_wal_lsn_diff(pg_current_wal_lsn(), s.confirmed_flush_lsn)::bigint, pg_wal_lsn_diff(pg_current_wal_lsn(),
s.restart_lsn)::bigint, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint from pg_replication_slots s"""


def measure(programs, cluster, arguments):
    minutes = arguments.minutes or (1 if arguments.quick else 60)
    database = cluster.create("quiet")
    made = subprocess.run([cluster.bin / "pgbench", "-i", "-q", "-s", "5", cluster.url(database)], capture_output=True, text=True)
    if made.returncode != 0:
        raise BenchError(f"pgbench failed: {made.stderr.strip()[-300:]}")
    with Hub(programs, cluster, database, arguments.loops, watch=["public.roost_load"], ROOST_FEED_CAPTURE="wal"):
        busy = subprocess.Popen([cluster.bin / "pgbench", "-n", "-M", "prepared", "-c", "4", "-j", "1", "-R", str(RATE), "-T",
                                 str(minutes * 60), cluster.url(database)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                text=True)
        samples, began = [], time.monotonic()
        while busy.poll() is None:
            confirmed, restart, written = map(int, cluster.psql(database, BEHIND).split("|"))
            samples.append((time.monotonic() - began, confirmed, restart, written))
            time.sleep(SECONDS)
        if busy.returncode != 0:
            raise BenchError(f"pgbench failed: {busy.stderr.read().strip()[-300:]}")
    parts = [samples[len(samples) * part // 6:len(samples) * (part + 1) // 6] for part in range(6)]
    rows = [(f"{part[0][0] / 60:.0f}–{part[-1][0] / 60:.0f}", mega(part[-1][3] - part[0][3]), mega(max(s[1] for s in part)),
             mega(max(s[2] for s in part))) for part in parts if part]
    show(f"A quiet table in a busy database: pgbench at {RATE}/s on other tables for {minutes} minutes; MB "
         f"(never more than {mega(BOUND)} MB kept: {verdict(max(s[2] for s in samples) <= BOUND)})",
         ["minutes", "WAL written", "slot behind, most", "WAL kept, most"], rows)


def mega(count):
    return f"{count / 1e6:.1f}"
