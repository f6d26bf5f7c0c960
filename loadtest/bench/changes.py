"""Commit → client."""

import statistics
import time

from hub import Hub
from processes import cpu_us
from table import show, spread, verdict

P50_BUDGET = 2
P99_BUDGET = 10


def measure(programs, cluster, arguments):
    rounds = arguments.rounds or (1 if arguments.quick else 3)
    duration = 15 if arguments.quick else 30
    database = cluster.create("changes")
    with Hub(programs, cluster, database, arguments.loops, watch=["public.roost_load"]) as hub:
        processes = ["--pid", f"hub={hub.pid}"]
        for number, pid in enumerate(cluster.backends(database, "roost")):
            processes += ["--pid", f"backend{number}={pid}"]
        time.sleep(2)
        resting = rest(processes)
        results = [programs.json_of(
            [programs.roost_load, "changes", "--url", hub.url, "--token", hub.token, "--database", cluster.url(database),
             "--duration", duration, "--json", *processes], accept=(0, 1)) for _ in range(rounds)]
    report(results, rounds)
    print(f"\nCPU with nobody connected and nothing written: {resting}")


def rest(processes, seconds=10):
    """What hub and backends use when nothing happens; their safety poll comes every 5 s."""
    named = [process.split("=") for process in processes[1::2]]
    before = {name: cpu_us(int(pid)) for name, pid in named}
    time.sleep(seconds)
    return ", ".join(f"{name} {(cpu_us(int(pid)) - before[name]) / seconds / 1e4:.3f} %" for name, pid in named)


def report(results, rounds):
    rows = []
    for name, prefix in (("commit → client", "commit"), ("schedule → client", "schedule")):
        rows.append([name] + [spread([result[f"{prefix}_{point}_us"] / 1000 for result in results], 2)
                              for point in ("p50", "p90", "p99", "p99.9", "max")])
    show(f"1,000 subscribers, 100 conversations, 500 commits/s; ms, median of {rounds}",
         ["from", "p50", "p90", "p99", "p99.9", "max"], rows)
    for point, budget in (("p50", P50_BUDGET), ("p99", P99_BUDGET)):
        median = statistics.median(result[f"commit_{point}_us"] for result in results) / 1000
        print(f"\nBudget of {point}: ≤ {budget} ms, {verdict(median <= budget)}", end="")
    wrong = {name: sum(result[name] for result in results) for name in ("lost", "repeated", "out_of_order", "wrong")}
    print(f"\n{sum(result['delivered'] for result in results):,} deliveries; "
          + ", ".join(f"{name.replace('_', ' ')}: {count}" for name, count in wrong.items()))
    used = [name for name in results[0] if name.endswith("_cpu_percent")]
    print("CPU, % of a core at 500 commits/s: "
          + ", ".join(f"{name[:-12]} {spread([result[name] for result in results])}" for name in used))
    print("CPU per delivery: hub " + spread([result["hub_cpu_us_per_delivery"] for result in results])
          + " µs, tester (receiving) " + spread([result["tester_receiving_us_per_delivery"] for result in results]) + " µs")
