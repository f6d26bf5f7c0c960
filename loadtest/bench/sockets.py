"""What a socket costs that has joined and does nothing."""

import statistics

from fanout import Rawfan, load
from hub import Hub
from table import show, spread, verdict

JOIN_BUDGET = 100
MEMORY_BUDGET = 4
FLAT = 1.15  # the largest crowd's cost per connect and join, of the smallest's; noise is as much


def measure(programs, cluster, arguments):
    rounds = arguments.rounds or (1 if arguments.quick else 3)
    hold = 5 if arguments.quick else 15
    database = cluster.create("sockets")
    rows, costs = [], {}
    for sockets in (1000, 10_000, 19_000):
        for shared in (False, True):
            results = [idle(programs, cluster, database, arguments.loops, sockets, shared, hold) for _ in range(rounds)]
            joins = [result["hub_join_us"] for result in results]
            memory = [result["hub_kb_per_socket"] for result in results]
            costs.setdefault(shared, []).append(statistics.median(joins))
            percent = [result["hub_idle_percent"] for result in results]
            # 1,000 sockets are too few to tell memory that is theirs from memory that the first of them needs.
            verdict_of_memory = verdict(statistics.median(memory) <= MEMORY_BUDGET) if sockets > 1000 else "–"
            rows.append([f"{sockets:,}", "one" if shared else "one each", spread(joins),
                         verdict(statistics.median(joins) <= JOIN_BUDGET), spread(memory, 2), verdict_of_memory,
                         spread(percent, 3)])
    show(f"Idle joined sockets, a fresh hub for each; median of {rounds}",
         ["sockets", "channels", "connect + join, CPU µs", f"≤ {JOIN_BUDGET}", "KB per socket", f"≤ {MEMORY_BUDGET}",
          "CPU % of a core, heartbeats every 25 s"], rows)
    for shared, medians in costs.items():
        ratio = medians[-1] / medians[0]
        print(f"\nConnect + join, {'one channel' if shared else 'a channel each'}, of the last as of the first row: {ratio:.2f}, "
              f"≤ {FLAT} {verdict(ratio <= FLAT)}", end="")
    print()
    if programs.wsload:
        with Rawfan(programs, 1) as rawfan:
            limit = load(programs, "rawfan", rawfan.port, rawfan.process.pid, 10_000, 8, 1, 150)
        # Neighbours on the machine make CPU time dearer; this tells how much.
        print(f"For comparison: a connect without a join costs the limit (rawfan) {limit['connect_cpu_us']:.0f} CPU µs in this run")


def idle(programs, cluster, database, loops, sockets, shared, hold):
    with Hub(programs, cluster, database, loops) as hub:
        return programs.json_of(
            [programs.roost_load, "idle", "--url", hub.url, "--token", hub.token, "--sockets", sockets,
             "--hold", hold, "--pid", f"hub={hub.pid}", "--json", *(["--shared"] if shared else [])])
