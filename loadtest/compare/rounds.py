"""The measurements, in interleaved rounds."""

import random
import sys

from failure import Undelivered

#: µs per delivery; the kernel alone needs more, with 16 messages in a write.
LEAST_CPU = 0.1


def run(plan, peers, client, record, path):
    """For every shape each round visits every server once, in an order of its own, so that those that are compared
    were measured within seconds of one another. Every server is started for the measurement and ended after it."""
    order = random.Random(plan.seed)
    opened = []
    try:
        for peer in peers:
            opened.append(peer)
            peer.open()
        for number in range(1, plan.rounds + 1):
            for shape in plan.shapes():
                found = []
                for peer in order.sample(peers, len(peers)):
                    outcome = measure(peer, client, shape)
                    record.add(number, peer, shape, outcome)
                    found.append(f"{peer.name} {outcome if isinstance(outcome, Undelivered) else shown(outcome)}")
                print(f"compare: round {number} of {plan.rounds}, {shape.sockets:,} sockets, {shape.size} bytes, "
                      f"{shape.window} at a time, CPU µs per delivery: {', '.join(found)}", file=sys.stderr)
            record.save(path)
    finally:
        for peer in opened:
            peer.close()


def measure(peer, client, shape):
    """Figures, or the failure in their place."""
    try:
        with peer.running(shape.window) as server:
            figures = client.measure(server, peer.traffic(shape.size), shape)
        if figures.cpu_us_per_delivery < LEAST_CPU:
            return Undelivered(f"its processes used {shown(figures)} µs per delivery, which cannot be all of them.")
        return figures
    except Undelivered as failure:
        return failure


def shown(figures):
    return f"{figures.cpu_us_per_delivery:.2f}"
