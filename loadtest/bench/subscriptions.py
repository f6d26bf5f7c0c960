"""A hundred thousand subscriptions with a filter each: how long they take to open and to close, what they keep, and how late a row is."""

import time

from commits import Commits
from crowd import Rooms
from hub import NO_LIMITS, SILENCE, Hub
from processes import cpu_us, resident
from programs import BenchError
from table import show, verdict

SOCKETS, EACH = 10_000, 10
RATE, SECONDS = 50, 20
#: How much more the last tenth may cost than the first.
FLAT = 1.3
INSERT = "insert into public.roost_load (conversation_id, stamp) values ('{conversation}', '{due}')"


def conversation(number):
    return f"00000000-0000-4000-8000-{number:012}"


def measure(programs, cluster, arguments):
    sockets = arguments.sockets or (1_000 if arguments.quick else SOCKETS)
    count = sockets * EACH
    with Hub(programs, cluster, cluster.create("subscriptions"), arguments.loops, ["public.roost_load"], ops=True,
             **SILENCE, **NO_LIMITS) as hub:
        with Rooms(hub, sockets) as crowd:
            idle, first, last, began = resident(hub.pid), 0, 0, time.monotonic()
            for turn in range(EACH):
                # All sockets join one topic, each with a filter of its own.
                before = cpu_us(hub.pid)
                crowd.ask("join", channels=[[[f"realtime:seat {turn}", {"postgres_changes": [
                    {"event": "INSERT", "schema": "public", "table": "roost_load",
                     "filter": f"conversation_id=eq.{conversation(number * EACH + turn)}"}]}]] for number in range(sockets)])
                last = (cpu_us(hub.pid) - before) / sockets
                first = first or last
            opened = time.monotonic() - began
            kept = (resident(hub.pid) - idle) / count
            writer = Commits(cluster, hub.database, RATE, lambda due: INSERT.format(conversation=conversation(due % count), due=due))
            writer.start()
            crowd.ask("listen", seconds=SECONDS)
            writer.finish()
            state = crowd.ask("listen", seconds=10, until=len(writer.done))
            points, lost = crowd.ask("points", commits=writer.done), len(writer.done) - state["delivered"]
            before, began = cpu_us(hub.pid), time.monotonic()
        while hub.figures()["roost_connections"] > 0:
            if time.monotonic() - began > 120:
                raise BenchError("the hub did not close the sockets")
            time.sleep(0.02)
        closed, spent = time.monotonic() - began, (cpu_us(hub.pid) - before) / count
    show(f"{count:,} subscriptions: {sockets:,} sockets in {EACH} channels each, with a filter of its own each; one loop",
         ["what", "figure"], [
             ["open all, s", f"{opened:.1f}"],
             ["hub CPU µs per join: the first tenth, the last", f"{first:.0f}, {last:.0f} (≤ {FLAT} ×: {verdict(last <= FLAT * first)})"],
             ["kept for each, KB", f"{kept / 1024:.2f}"],
             [f"commit → its one client, ms: p50, p99 ({len(writer.done):,} rows, {lost} lost)", f"{points['p50']:.1f}, {points['p99']:.1f}"],
             ["close all, s", f"{closed:.1f}"],
             ["hub CPU µs per subscription that ends with its socket", f"{spent:.0f}"],
         ])
