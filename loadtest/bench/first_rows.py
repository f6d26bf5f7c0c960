"""Fifty rows of a large table, from a join to the last of them, beside commits: with an index, and without."""

import http.client
import json
import statistics
import subprocess
import time
import urllib.parse

from hub import NO_LIMITS, Hub, token
from programs import BenchError
from table import show, verdict
from websocket import Connection

ROOMS, WANTED = 10_000, 50
COMMITS = 500
BUDGET_MS, BOUND_SECONDS = 10, 2
TABLE = """create table public.big (id bigint generated always as identity primary key, room int not null,
body text not null, at timestamptz not null default now())"""
FILL = """insert into public.big (room, body)
select n % {rooms}, 'a message of about forty characters ' || n from generate_series({first}, {last}) n"""
USER = """do $$ begin
    if to_regrole('authenticated') is null then create role authenticated nologin; end if;
end $$;
grant select on public.big to authenticated"""
WRITE = """\\set room random(0, 9999)
insert into public.big (room, body) values (:room, 'new');
"""


def measure(programs, cluster, arguments):
    samples, seconds = (500, 10) if arguments.quick else (2000, 40)
    database = f"first_rows_{arguments.rows}"
    if not (cluster.kept and cluster.has(database)):
        fill(cluster, database, arguments.rows)
    # Its clients are a user's, as an application's are: of tokens without one the hub cannot tell who comes back.
    cluster.psql(database, USER)
    with Hub(programs, cluster, database, arguments.loops, watch=["public.big"], **NO_LIMITS) as hub:
        script = cluster.folder / "write.sql"
        script.write_text(WRITE)
        writer = subprocess.Popen(
            [cluster.bin / "pgbench", "-n", "-M", "prepared", "-c", "4", "-j", "1", "-R", str(COMMITS), "-T", str(seconds + 20),
             "-f", script, cluster.url(database)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            user = token("ada")
            socket = Connection(hub.port, user)
            for number in range(50):
                by_join(socket, number)
            before, began = commits(cluster, database), time.monotonic()
            joins, pages = [], []
            while time.monotonic() - began < seconds and len(joins) < samples:
                number = 50 + len(joins)
                joins.append(by_join(socket, number))
                pages.append(by_http(hub.port, user, number))
            rate = (commits(cluster, database) - before) / (time.monotonic() - began)
            unindexed = [by_join(socket, number, is_refused=True) for number in (-3, -2, -1)]
        finally:
            writer.terminate()
            writer.wait()
    rows = [line("join → 50 rows and their report", joins), line("GET /api/rows, a connection each", pages)]
    show(f"{WANTED} of {arguments.rows:,} rows by an index on (room, id), beside {rate:.0f} commits/s on the same table; one client after the "
         f"other, {len(joins):,} samples, ms", ["", "p50", "p90", "p99", "max", f"p99 ≤ {BUDGET_MS} ms"], rows)
    print(f"\nWithout an index, a join was told so after {statistics.median(unindexed):.2f} s (at most "
          f"{BOUND_SECONDS + 1} s: {verdict(max(unindexed) <= BOUND_SECONDS + 1)})")


def fill(cluster, database, count):
    cluster.create(database)
    cluster.psql(database, TABLE)
    step = 1_000_000
    for first in range(0, count, step):
        cluster.psql(database, FILL.format(rooms=ROOMS, first=first, last=min(first + step, count) - 1))
    cluster.psql(database, "create index on public.big (room, id)")
    cluster.psql(database, "vacuum analyze public.big")


def commits(cluster, database):
    """Of rows; the hub's own transactions are none of them."""
    return int(cluster.psql(database, "select n_tup_ins from pg_stat_user_tables where relname = 'big'"))


def by_join(socket, number, is_refused=False):
    """Seconds from a join to the report behind its rows."""
    topic, only = f"realtime:rows {number}", "body=imatch.nobody wrote this" if is_refused else f"room=eq.{number * 37 % ROOMS}"
    began = time.monotonic()
    socket.push(topic, "phx_join", {"config": {
        "postgres_changes": [{"event": "*", "schema": "public", "table": "big", "filter": only}],
        "rows": [{"table": "big", "filter": only, "order": "id.desc", "limit": WANTED}]}}, ref=str(number), join_ref=str(number))
    came = 0
    while True:
        _, _, where, event, payload = socket.receive()
        if where != topic:
            continue
        came += event == "postgres_changes" and payload.get("snapshot", False)
        if event == "system" and payload["message"] == "Rows are there":
            took = time.monotonic() - began
            break
    if is_refused != ("error" in payload["rows"][0]) or came != (0 if is_refused else WANTED):
        raise BenchError(f"{came} rows came: {payload}")
    socket.push(topic, "phx_leave", {}, ref=f"{number} leaves", join_ref=str(number))
    return took


def by_http(port, user, number):
    query = urllib.parse.urlencode({"table": "big", "filter": f"room=eq.{number * 37 % ROOMS}", "order": "id.desc", "limit": WANTED})
    began = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", f"/api/rows?{query}", headers={"Authorization": f"Bearer {user}"})
    rows = json.load(connection.getresponse())["rows"]
    took = time.monotonic() - began
    connection.close()
    if len(rows) != WANTED:
        raise BenchError(f"{len(rows)} rows came")
    return took


def line(name, times):
    times = sorted(1000 * one for one in times)
    points = [times[min(len(times) - 1, int(len(times) * share))] for share in (0.5, 0.9, 0.99)] + [times[-1]]
    return [name, *(f"{point:.1f}" for point in points), verdict(points[2] <= BUDGET_MS)]
