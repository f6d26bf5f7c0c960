"""Many channels: what a delivery costs in channels of ten, and what a socket costs that is in a hundred channels."""

import statistics
import time

from crowd import Rooms
from hub import SILENCE, Hub
from processes import cpu_us, resident
from table import show, spread, verdict

SOCKETS, ROOM = 10_000, 10
BUDGET = 1.5
JOINERS, CHANNELS = 1000, 100
UNCHANGED = 1.10
ECHO = {"broadcast": {"self": True}}


def measure(programs, cluster, arguments):
    rounds = arguments.rounds or (3 if arguments.quick else 5)
    small(programs, cluster, arguments, rounds)
    many(programs, cluster, arguments, rounds)


def exchange(hub, crowd, **command):
    """Hub CPU µs per delivery of what is published, and how many deliveries are missing."""
    first, before = crowd.ask("listen", seconds=0)["delivered"], cpu_us(hub.pid)
    state = crowd.ask("publish", **command)
    return (cpu_us(hub.pid) - before) / (state["delivered"] - first), state["missing"]


# Channels of ten


def small(programs, cluster, arguments, rounds):
    """The same sockets are in one channel of all and in channels of ten, so that nothing else differs."""
    rooms = [[f"realtime:room {number}", number * ROOM] for number in range(SOCKETS // ROOM)]
    everybody = [["realtime:everybody", number * ROOM] for number in range(SOCKETS // ROOM)]
    bursts = 3 if arguments.quick else 10
    ways = {
        "one channel of all, a message at a time":
            {"topics": everybody, "window": 1, "expected": SOCKETS - 1, "times": bursts},
        "channels of ten, a message in each at a time":
            {"topics": rooms, "window": len(rooms), "expected": ROOM - 1, "times": bursts},
        "channels of ten, a message in one at a time":
            {"topics": rooms, "window": 1, "expected": ROOM - 1, "times": len(rooms) * bursts},
    }
    found, missing = {name: [] for name in ways}, 0
    with Hub(programs, cluster, cluster.create("channels_small"), arguments.loops, **SILENCE) as hub, \
            Rooms(hub, SOCKETS) as crowd:
        crowd.ask("join", channels=[[["realtime:everybody", {}], [rooms[number // ROOM][0], {}]]
                                    for number in range(SOCKETS)])
        for turn in range(rounds + 1):
            for name, way in ways.items():
                cost, lacking = exchange(hub, crowd, **way)
                missing += lacking
                # The first round warms up.
                if turn:
                    found[name].append(cost)
        state = crowd.ask("listen", seconds=0.5)
    base = next(iter(found.values()))
    rows = []
    for name, figures in found.items():
        ratio = statistics.median(figures) / statistics.median(base)
        rows.append([name, spread(figures, 2), f"{ratio:.2f}",
                     spread([ours / theirs for ours, theirs in zip(figures, base)], 2),
                     "–" if figures is base else f"≤ {BUDGET} {verdict(ratio <= BUDGET)}"])
    show(f"{SOCKETS:,} sockets, all in one channel and ten by ten in {len(rooms):,}; members send; hub CPU µs per delivery "
         f"of 150 bytes, receiving included, median of {rounds} interleaved rounds",
         ["messages", "CPU µs per delivery", "ratio of medians", "ratio per round", "budget"], rows)
    print(f"\n{state['delivered']:,} deliveries; lost: {missing}; repeated or out of order: {state['disorder']}")


# A hundred channels each


def many(programs, cluster, arguments, rounds):
    """Two hubs side by side: at one every socket is in two channels, at the other in a hundred, of about as many members each."""
    lobby, own = "realtime:lobby", [[f"realtime:own {number}", number] for number in range(JOINERS)]
    # A socket shares no more than a tenth of its channels with the next one.
    others = [[[f"realtime:room {(number * 10 + turn) % JOINERS}", {}] for turn in range(CHANNELS - 2)]
              for number in range(JOINERS)]
    ways = {
        "a message to all, CPU µs per delivery": ("lobby", 2),
        "a message that comes back to its sender alone, CPU µs": ("own", 1),
        "nothing but heartbeats every 10 s, CPU % of a core": ("idle", 3),
        "joining the last channel, CPU µs": ("join", 1),
    }
    figures = {key: ([], []) for key, _ in ways.values()}
    missing = 0
    hold = 10 if arguments.quick else 20
    with Hub(programs, cluster, cluster.create("channels_few"), arguments.loops, **SILENCE) as one, \
            Hub(programs, cluster, cluster.create("channels_many"), arguments.loops, **SILENCE) as hundred, \
            Rooms(one, JOINERS) as few, Rooms(hundred, JOINERS) as much:
        pairs = ((one, few), (hundred, much))
        for _, crowd in pairs:
            crowd.ask("join", channels=[[[lobby, {}]]] * JOINERS)
        time.sleep(1)
        memory = resident(hundred.pid)
        spent = join(hundred, much, others)
        time.sleep(1)
        memory = (resident(hundred.pid) - memory) / JOINERS / (CHANNELS - 2)
        for which, (hub, crowd) in enumerate(pairs):
            figures["join"][which].append(join(hub, crowd, [[[topic, ECHO]] for topic, _ in own]))
        for _ in range(rounds):
            for which, (hub, crowd) in enumerate(pairs):
                for key, way in (("lobby", {"topics": [[lobby, 0]], "window": 1, "expected": JOINERS - 1, "times": 50}),
                                 ("own", {"topics": own, "window": JOINERS, "expected": 1, "times": 10})):
                    cost, lacking = exchange(hub, crowd, **way)
                    figures[key][which].append(cost)
                    missing += lacking
        for _, crowd in pairs:
            crowd.ask("keep_alive", period=10)
        for _ in range(rounds):
            before = [cpu_us(hub.pid) for hub, _ in pairs]
            for _, crowd in pairs:
                crowd.tell("listen", seconds=hold)
            states = [crowd.hear() for _, crowd in pairs]
            for which, (hub, _) in enumerate(pairs):
                figures["idle"][which].append((cpu_us(hub.pid) - before[which]) / 1e4 / hold)
    rows = []
    for name, (key, digits) in ways.items():
        alone, among = figures[key]
        ratio = statistics.median(among) / statistics.median(alone)
        rows.append([name, spread(alone, digits), spread(among, digits), f"{ratio:.2f}",
                     f"≤ {UNCHANGED:.2f} {verdict(ratio <= UNCHANGED)}"])
    show(f"{JOINERS:,} sockets in two channels each, and {JOINERS:,} in {CHANNELS}; median of {rounds} interleaved rounds",
         ["", "2 channels", f"{CHANNELS} channels", "ratio", "unchanged"], rows)
    print(f"\nOne more channel of a socket: {memory:.0f} bytes, {spent:.1f} CPU µs on average; "
          f"lost: {missing}; repeated or out of order: {sum(state['disorder'] for state in states)}")


def join(hub, crowd, channels):
    """CPU µs per join."""
    before = cpu_us(hub.pid)
    crowd.ask("join", channels=channels)
    return (cpu_us(hub.pid) - before) / sum(map(len, channels))
