"""CPU per delivery of a broadcast, against the least a server can do (rawfan)."""

import contextlib
import statistics
import subprocess
import time

from hub import Hub
from programs import free_port
from table import show, spread, verdict

BUDGET = {1: 1.10, 4: 1.15, 16: 1.15}
SIZES = (150, 500)
JOIN = '["1","1","realtime:bench","phx_join",{"config":{}}]'
PUBLISH = '["1","2","realtime:bench","broadcast",{"type":"broadcast","event":"m","payload":{"t":"'


class Rawfan:
    def __init__(self, programs, window):
        self.port = free_port()
        self.process = subprocess.Popen([programs.rawfan, "-p", str(self.port), "-k", str(window)])
        time.sleep(0.3)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def load(programs, label, port, pid, sockets, messages, window, size, extra=()):
    return programs.json_of([programs.wsload, "-l", label, "-p", port, "-P", pid, "-n", sockets, "-m", messages,
                             "-w", window, "-z", size, "-warm", 2 * window, "-t", 120, *extra])


def measure(programs, cluster, arguments):
    if not programs.wsload:
        return
    rounds = arguments.rounds or (3 if arguments.quick else 5)
    deliveries = 100_000 if arguments.quick else 400_000
    sizes, counts = (SIZES[:1], (1000, 10_000)) if arguments.quick else (SIZES, (1000, 5000, 10_000))
    with Hub(programs, cluster, cluster.create("fanout"), arguments.loops) as hub:
        client = ["-u", f"/realtime/v1/websocket?vsn=2.0.0&apikey={hub.token}", "-sub", JOIN, "-ack", 1,
                  "-pinit", JOIN, "-pack", 1, "-ppre", PUBLISH, "-psuf", '"}}]']
        for size in sizes:
            rows = [compare(programs, hub, client, sockets, window, size, deliveries, rounds)
                    for sockets in counts for window in BUDGET]
            show(f"Fan-out, CPU µs per delivery of {size} bytes; median (least–most) of {rounds} interleaved rounds",
                 ["sockets", "at a time", "limit (rawfan)", "roost", "ratio of medians", "ratio per round", "budget"], rows)


def compare(programs, hub, client, sockets, window, size, deliveries, rounds):
    # At least eight bursts, so that one is not the figure.
    messages = max(deliveries * (window if window < 16 else 8) // sockets, 8 * window)
    limits, figures = [], []
    with contextlib.ExitStack() as stack:
        rawfan = stack.enter_context(Rawfan(programs, window))
        for _ in range(rounds):
            limit = load(programs, "rawfan", rawfan.port, rawfan.process.pid, sockets, messages, window, size)
            roost = load(programs, "roost", hub.port, hub.pid, sockets, messages, window, size, client)
            limits.append(limit["cpu_us_per_delivery"])
            figures.append(roost["cpu_us_per_delivery"])
    ratio = statistics.median(figures) / statistics.median(limits)
    each = [ours / limit for ours, limit in zip(figures, limits)]
    return [f"{sockets:,}", window, spread(limits, 2), spread(figures, 2), f"{ratio:.2f}", spread(each, 2),
            f"≤ {BUDGET[window]:.2f} {verdict(ratio <= BUDGET[window])}"]
