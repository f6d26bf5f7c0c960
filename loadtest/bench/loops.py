"""Two loops against one, argued from CPU time: the cores of one machine have the clients to serve, too."""

import statistics

from channels import exchange
from crowd import Rooms
from hub import SILENCE, Hub
from processes import Threads
from table import show, spread, verdict

SOCKETS, ROOM = 2000, 10
BUDGET = 1.7


def measure(programs, cluster, arguments):
    rounds = arguments.rounds or (3 if arguments.quick else 5)
    bursts = 20 if arguments.quick else 100
    everybody = [["realtime:everybody", number * ROOM] for number in range(SOCKETS // ROOM)]
    rooms = [[f"realtime:room {number}", number * ROOM] for number in range(SOCKETS // ROOM)]
    ways = {
        f"one channel of {SOCKETS:,}, a message at a time":
            {"topics": everybody, "window": 1, "expected": SOCKETS - 1, "times": bursts},
        f"{len(rooms)} channels of ten, a message in each at a time":
            {"topics": rooms, "window": len(rooms), "expected": ROOM - 1, "times": bursts},
    }
    found, missing = {name: {1: [], 2: []} for name in ways}, 0
    hubs = {loops: Hub(programs, cluster, cluster.create(f"loops{loops}"), loops, **SILENCE) for loops in (1, 2)}
    with hubs[1], hubs[2], Rooms(hubs[1], SOCKETS) as alone, Rooms(hubs[2], SOCKETS) as both:
        for crowd in (alone, both):
            crowd.ask("join", channels=[[["realtime:everybody", {}], [rooms[number // ROOM][0], {}]]
                                        for number in range(SOCKETS)])
        for turn in range(rounds + 1):
            for name, way in ways.items():
                for loops, crowd in ((1, alone), (2, both)):
                    threads = Threads(hubs[loops].pid)
                    _, lacking = exchange(hubs[loops], crowd, **way)
                    missing += lacking
                    deliveries = way["window"] * way["expected"] * way["times"]
                    # The loops are the threads that have something to do.
                    used = sorted((ran / deliveries for ran in threads.ran_us().values()), reverse=True)[:loops]
                    # The first round warms up.
                    if turn:
                        found[name][loops].append(used)
        disorder = sum(crowd.ask("listen", seconds=0)["disorder"] for crowd in (alone, both))
    rows = []
    for name, by_loops in found.items():
        one, two = ([sum(used) for used in by_loops[loops]] for loops in (1, 2))
        shares = [used[0] / sum(used) for used in by_loops[2]]
        # As much as the busier loop can do: it works all the time, the other waits for it.
        each = [alone / used[0] for alone, used in zip(one, by_loops[2])]
        ratio = statistics.median(one) / statistics.median(used[0] for used in by_loops[2])
        rows.append([name, spread(one, 2), spread(two, 2), spread([100 * share for share in shares], 0), f"{ratio:.2f}",
                     spread(each, 2), f"≥ {BUDGET} {verdict(ratio >= BUDGET)}"])
    show(f"{SOCKETS:,} sockets, hub CPU µs per delivery, receiving included; median of {rounds} interleaved rounds",
         ["messages", "one loop", "two loops together", "busier one's share, %", "throughput ratio of medians", "per round",
          "budget"], rows)
    print(f"\nLost: {missing}; repeated or out of order: {disorder}")
