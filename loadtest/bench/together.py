"""Several hubs as one: what Redis and the link between them cost, how late a message is at another hub, what more hubs carry,
and many sockets over several hubs."""

import contextlib
import os
import resource
import selectors
import socket
import statistics
import subprocess
import sys
import time

import streams
from crowd import Crowd, Rooms
from hub import NO_LIMITS, SILENCE, Hub
from inbound import Sender, joined, text_2, VERSION_2
from processes import Threads, cpu_us, resident
from programs import BenchError, free_port
from redis import Redis
from table import show, spread, verdict

RATE = 10_000
ADDED_P50, ADDED_P99 = 0.7, 3  # ms
REDIS_IDLE, REDIS_BUSY = 10, 2  # CPU µs per message
LINEAR, ENGINE = 0.9, 0.8
SPEAKERS = 5


class Speakers(Crowd):
    """Who publishes at each of several hubs, and readers at each or at the first ones, in one process; the commands are those of `ClusterCrowd`."""
    script = "cluster_crowd.py"

    def __init__(self, hubs, speakers=SPEAKERS, readers=None):
        self.hubs, self.speakers, self.readers = hubs, speakers, readers or len(hubs)
        self.process = subprocess.Popen([sys.executable, str(__file__).replace("together.py", self.script), hubs[0].token,
                                         *(str(hub.port) for hub in hubs)], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def __enter__(self):
        self.ask("connect", speakers=self.speakers, readers=self.readers)
        return self


@contextlib.contextmanager
def several(programs, cluster, redis, count, name, loops=1, each=lambda number: {}, **settings):
    """So many hubs on one database that act as one by `redis`; alone, where there is none. `each`: settings of one of them."""
    database = cluster.create(name)
    together = {"ROOST_CLUSTER_URL": redis.url} if redis else {}
    with contextlib.ExitStack() as stack:
        hubs = [stack.enter_context(Hub(programs, cluster, database, loops, ops=True, ROOST_NODE_NAME=f"hub{number}",
                                        **together, **SILENCE, **NO_LIMITS, **settings, **each(number)))
                for number in range(count)]
        if redis:
            until(lambda: all(hub.figures()["roost_cluster_hubs"] == count - 1 and hub.figures()["roost_cluster_reached"]
                              for hub in hubs), 30, "the hubs do not find each other")
        yield hubs


def until(condition, within, complaint):
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            raise BenchError(complaint)
        time.sleep(0.1)


def thread_us(pid, name):
    """CPU µs that the thread of this name has used."""
    for task in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError):
            if open(f"/proc/{pid}/task/{task}/comm").read().strip() == name:
                return int(open(f"/proc/{pid}/task/{task}/schedstat").read().split()[0]) / 1000
    raise BenchError(f"the hub has no thread {name}")


class Used:
    """CPU µs of Redis, and of each hub in all and in its cluster's thread, since this was made."""

    def __init__(self, redis, hubs):
        self.redis, self.hubs = redis, hubs
        self.start, self.began = self._now(), time.monotonic()

    def _now(self):
        return [self.redis.cpu_us() if self.redis else 0,
                *((cpu_us(hub.pid), thread_us(hub.pid, "roost-cluster") if self.redis else 0) for hub in self.hubs)]

    def stop(self):
        now, self.seconds = self._now(), time.monotonic() - self.began
        redis = now[0] - self.start[0]
        hubs = [(after[0] - before[0], after[1] - before[1]) for before, after in zip(self.start[1:], now[1:])]
        return redis, hubs


# Latency and CPU


def latency(programs, cluster, arguments):
    rounds, seconds = arguments.rounds or (2 if arguments.quick else 5), 5 if arguments.quick else 10
    with Redis(free_port()) as redis, several(programs, cluster, redis, 2, "together_latency") as hubs, Speakers(hubs) as crowd:
        crowd.ask("speak", rate=RATE, seconds=2, at=[0, 1])
        found, lost = {1: [], 2: []}, 0
        for _ in range(rounds):
            for speakers, results in found.items():
                load, used, entries = os.getloadavg()[0], Used(redis, hubs), written(hubs)
                result = crowd.ask("speak", rate=RATE, seconds=seconds, at=list(range(speakers)))
                spent, _ = used.stop()
                lost += result["missing"]
                results.append(result | {
                    "redis": spent / result["sent"], "load": load, "pace": result["sent"] / result["seconds"],
                    "packed": result["sent"] / max(1, written(hubs) - entries)})
        for speakers, results in found.items():
            late(results, f"Two hubs of one loop, {RATE:,} messages/s of 150 bytes, "
                          + ("all said at one" if speakers == 1 else "half of them said at each")
                          + f", a reader at each; median of {rounds} interleaved runs of {seconds} s")
        print(f"\nLost: {lost}")
        costs(crowd, redis, hubs, rounds, seconds)


def late(results, title):
    p50, p99 = ([each["added"][name] / 1e3 for each in results] for name in ("p50", "p99"))
    cost = [each["redis"] for each in results]
    show(title, ["", "found", "budget"], [
        ["later at the other hub, p50, ms", spread(p50, 2), f"≤ {ADDED_P50} {verdict(statistics.median(p50) <= ADDED_P50)}"],
        ["– p99", spread(p99, 2), f"≤ {ADDED_P99} {verdict(statistics.median(p99) <= ADDED_P99)}"],
        ["– p99.9", spread([each["added"]["p99.9"] / 1e3 for each in results], 2), ""],
        ["sent → read at the same hub, p50 / p99, ms", " / ".join(
            spread([each["same"][name] / 1e3 for each in results], 2) for name in ("p50", "p99")), ""],
        ["sent → read at the other hub, p50 / p99, ms", " / ".join(
            spread([each["other"][name] / 1e3 for each in results], 2) for name in ("p50", "p99")), ""],
        ["Redis' CPU per message, µs", spread(cost, 1), f"≤ {REDIS_IDLE} {verdict(statistics.median(cost) <= REDIS_IDLE)}"],
        ["messages in an entry of the log", spread([each["packed"] for each in results], 1), ""],
        ["messages/s said", spread([each["pace"] for each in results], 0), f"{RATE:,} wanted"],
        ["load average before", spread([each["load"] for each in results], 1), "latencies hold below 3"],
    ])


def written(hubs):
    return sum(hub.figures()["roost_cluster_entries_total"] for hub in hubs)


def costs(crowd, redis, hubs, rounds, seconds):
    """What saying and hearing take of a hub: only one speaks. What both take when nobody does is taken off."""
    idle = Used(redis, hubs)
    crowd.ask("speak", rate=1, seconds=seconds, at=[0])
    _, still = idle.stop()
    rows = []
    for rate, burst in ((1_000, 1), (RATE, 1), (RATE, 10), (50_000, 50)):
        said, heard, whole = [], [], []
        for _ in range(rounds):
            used = Used(redis, hubs)
            sent = crowd.ask("speak", rate=rate, seconds=seconds, at=[0], burst=burst)["sent"]
            spent, each = used.stop()
            scale = used.seconds / idle.seconds
            net = [[(now - before * scale) / sent for now, before in zip(one, other)] for one, other in zip(each, still)]
            said.append(net[0][1])
            heard.append(net[1][1])
            whole.append((net[0][0], net[1][0], spent / sent))
        rows.append([f"{rate:,}" + (f", {burst} at a time" if burst > 1 else ""), spread(said, 1), spread(heard, 1),
                     *(spread([each[place] for each in whole], 1) for place in range(3))])
    show("One hub says all, the other hears all: CPU µs per message",
         ["messages/s", "say it, the cluster's thread", "hear it, the cluster's thread", "the whole hub that says it, reader included",
          "the whole hub that hears it, reader included", "Redis"], rows)


# Saturation


def saturation(programs, cluster, arguments):
    """As many messages as the hubs take in, to channels where nobody else is."""
    # More than Redis lets a reader lag by (32 MB, each with its overhead) would cut the links of hubs that share two cores.
    frames, at_once = 100_000, 128
    rows = []
    for count in (1, 2, 4, 8):
        with Redis() as redis, several(programs, cluster, redis, count, f"together_busy{count}") as hubs:
            calm, pace = quiet_cost(redis, hubs, 3 if arguments.quick else 8)
            results = []
            for _ in range(2):
                # The first one warms up.
                results.append(flood(redis, hubs, frames, at_once))
            cost, each, rate, packed, size = results[-1]
            bound = f"≤ {REDIS_BUSY} {verdict(cost <= REDIS_BUSY)}" if count == 8 else ""
            rows.append([count, f"{calm:.1f}", f"{pace:.1f}", f"{cost:.2f}", bound, f"{1e6 * ENGINE / cost:,.0f}", f"{packed:.0f}", f"{size:.0f}", f"{each:.2f}",
                         f"{rate:,.0f}"])
    show("As many messages of 150 bytes as the hubs take in on this machine, log included (a plain PUBLISH with 8 readers: 3.7 µs)",
         ["hubs", f"Redis' CPU µs per message at {RATE:,}/s", "messages in an entry", "as many as they take: the same", "budget", "messages/s at 80 % of a Redis core", "messages in an entry",
          "log, bytes per message", "all hubs' clusters' threads, CPU µs per message and hub", "messages/s seen"], rows)


def quiet_cost(redis, hubs, seconds):
    """Redis' CPU µs per message, and messages in an entry, where all hubs together say 10,000 messages a second."""
    with Speakers(hubs, 2, 1) as crowd:
        everywhere = list(range(len(hubs)))
        crowd.ask("speak", rate=RATE, seconds=1, at=everywhere)
        used, entries = Used(redis, hubs), written(hubs)
        sent = crowd.ask("speak", rate=RATE, seconds=seconds, at=everywhere)["sent"]
        spent, _ = used.stop()
        return spent / sent, sent / max(1, written(hubs) - entries)


def flood(redis, hubs, frames, at_once):
    """CPU µs per message of Redis and of the clusters' threads, messages/s, messages in an entry, bytes of the log for one."""
    selector, senders = selectors.DefaultSelector(), []
    each = frames // len(hubs) // 10 // at_once
    for number, hub in enumerate(hubs):
        for n in range(10):
            topic = b"realtime:flood %d-%02d" % (number, n)
            sender = Sender(joined(hub, VERSION_2, topic), text_2(topic, 0) * at_once, each)
            selector.register(sender.socket, selectors.EVENT_WRITE, sender)
            senders.append(sender)
    total = each * at_once * len(senders)
    redis.ask("flushall")
    time.sleep(1)
    base, entries, before = redis.used, written(hubs), told(hubs)
    used, began = Used(redis, hubs), time.monotonic()
    while selector.get_map():
        for key, _ in selector.select():
            if key.data.write():
                selector.unregister(key.fileobj)
    try:
        until(lambda: told(hubs) - before >= total * len(hubs), 60, "the hubs did not hear all of each other")
    except BenchError as failure:
        parts = [(int(figures["roost_cluster_sent_total"]), int(figures["roost_cluster_received_total"]))
                 for figures in (hub.figures() for hub in hubs)]
        raise BenchError(f"{failure}: {total} messages; each hub sent and received {parts}, and {before:.0f} before") from None
    spent, threads = used.stop()
    seconds, count = time.monotonic() - began, max(1, written(hubs) - entries)
    for sender in senders:
        sender.connection.close()
    size = (redis.used - base) / total
    return spent / total, sum(thread for _, thread in threads) / total / len(hubs), total / seconds, total / count, size


def told(hubs):
    """Messages that hubs wrote to the log, and that came to them from others: each is counted once at each hub."""
    figures = [hub.figures() for hub in hubs]
    if any(each["roost_cluster_gaps_total"] or each["roost_cluster_dropped_total"] for each in figures):
        raise BenchError("messages between hubs were given up: the hubs were asked for more than this machine does")
    return sum(each["roost_cluster_sent_total"] + each["roost_cluster_received_total"] for each in figures)


# One to four hubs


def linear(programs, cluster, arguments):
    """Each hub has its own sockets and its own load client. Linear: what a delivery costs does not grow with the hubs."""
    seconds, rounds = 4 if arguments.quick else 10, arguments.rounds or (2 if arguments.quick else 3)
    sockets, ways = 100, {
        # How many messages a second are said at each of n hubs, and whether those of all hear them.
        "one channel on all hubs, 200 messages/s in all": lambda n: (200 / n, True),
        "a channel of 100 on each hub, 100 messages/s in each": lambda n: (100, False),
    }
    clusters = [(1, False), (1, True), (2, True), (4, True)]
    found = {name: {cluster: [] for cluster in clusters} for name in ways}
    with contextlib.ExitStack() as stack:
        sides = {}
        for count, has_redis in clusters:
            redis = stack.enter_context(Redis()) if has_redis else None
            hubs = stack.enter_context(several(programs, cluster, redis, count, f"together_{count}{'' if redis else '_alone'}"))
            crowds = [stack.enter_context(Rooms(hub, sockets)) for hub in hubs]
            for number, crowd in enumerate(crowds):
                crowd.ask("join", channels=[[["realtime:all", {}], [f"realtime:own {number}", {}]] for _ in range(sockets)])
            sides[count, has_redis] = redis, hubs, crowds
        for turn in range(rounds + 1):
            for name, way in ways.items():
                for side, (redis, hubs, crowds) in sides.items():
                    result = paced(redis, hubs, crowds, seconds, *way(side[0]))
                    # The first round warms up.
                    if turn:
                        found[name][side].append(result)
    rows = []
    for name, by_side in found.items():
        base = [cost for cost, _, _ in by_side[1, True]]
        for (count, has_redis), results in by_side.items():
            costs, delivered, shares = zip(*results)
            ratio = statistics.median(base) / statistics.median(costs)
            rows.append([name, f"{count}" + ("" if has_redis else ", without Redis"), spread(costs, 2),
                         f"{statistics.median(delivered):,.0f}", f"{100 * statistics.median(shares):.1f} %", f"{ratio:.2f}",
                         spread([one / other for one, other in zip(base, costs)], 2),
                         f"≥ {LINEAR} {verdict(ratio >= LINEAR)}" if count > 1 else "–"])
    show(f"{sockets} sockets and a load client of its own at each hub, one loop each; CPU µs of all hubs per delivery; median of "
         f"{rounds} interleaved rounds of {seconds} s",
         ["messages", "hubs", "hubs' CPU µs per delivery", "deliveries", "Redis' core", "of linear", "per round", "budget"], rows)


def paced(redis, hubs, crowds, seconds, rate, is_shared):
    """CPU µs of all hubs per delivery, deliveries, and the share of a core that Redis used."""
    first = sum(crowd.ask("listen", seconds=0.1)["delivered"] for crowd in crowds)
    used = Used(redis, hubs)
    for number, crowd in enumerate(crowds):
        # The last member of each speaks.
        crowd.tell("pace", topic="realtime:all" if is_shared else f"realtime:own {number}", rate=rate, seconds=seconds)
    for crowd in crowds:
        crowd.hear()
    for crowd in crowds:
        crowd.tell("listen", seconds=0.4)
    last = sum(crowd.hear()["delivered"] for crowd in crowds)
    spent, each = used.stop()
    return sum(whole for whole, _ in each) / (last - first), last - first, spent / used.seconds / 1e6


# Many sockets


def crowded(programs, cluster, arguments):
    """100,000 sockets over six hubs: 20,000 files are allowed to a process here, so six processes of hubs and six of clients."""
    total = arguments.sockets or (12_000 if arguments.quick else 100_000)
    count = 6
    each = total // count
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if each + 100 > hard:
        raise BenchError(f"{each} sockets for a hub are more than the {hard} files that a process may have; take fewer --sockets")
    with Redis() as redis, several(programs, cluster, redis, count, "together_many", ROOST_LIMITS_CONNECTIONS=each + 1000) as hubs, \
            contextlib.ExitStack() as stack:
        before = [resident(hub.pid) for hub in hubs]
        used, began = Used(redis, hubs), time.monotonic()
        crowds = [stack.enter_context(Many(hub, number)) for number, hub in enumerate(hubs)]
        for crowd in crowds:
            crowd.tell("enter", count=each, topic="realtime:everybody")
        for crowd in crowds:
            crowd.hear()
        spent, parts = used.stop()
        seconds = time.monotonic() - began
        connecting = sum(whole for whole, _ in parts) / (each * count)
        memory = [(resident(hub.pid) - first) / each for hub, first in zip(hubs, before)]
        rows = [["connect and join, hubs' CPU µs each", f"{connecting:.0f}", "≤ 100 " + verdict(connecting <= 100)],
                ["connect and join, sockets/s seen (clients on the same cores)", f"{each * count / seconds:,.0f}", ""],
                ["memory of a socket in its hub, KB", spread([bytes / 1024 for bytes in memory], 2),
                 "≤ 4 " + verdict(statistics.median(memory) <= 4096)]]
        idle = Used(redis, hubs)
        time.sleep(5 if arguments.quick else 15)
        spent, parts = idle.stop()
        rows.append(["all silent: a hub's CPU, % of a core", spread([whole / idle.seconds / 1e4 for whole, _ in parts], 2), ""])
        rows.append(["– Redis' CPU, % of a core", f"{spent / idle.seconds / 1e4:.2f}", ""])
        costs, lasts, clients = [], [], []
        for _ in range(3 if arguments.quick else 5):
            first = [crowd.ask("report") for crowd in crowds]
            used, began = Used(redis, hubs), time.monotonic_ns()
            for crowd in crowds[1:]:
                crowd.tell("await_all", seconds=60)
            crowds[0].tell("say", topic="realtime:everybody")
            answers = [crowd.hear() for crowd in crowds]
            _, parts = used.stop()
            if any(answer["missing"] for answer in answers):
                raise BenchError(f"a broadcast did not reach all: {[answer['missing'] for answer in answers]} missing")
            costs.append(sum(whole for whole, _ in parts) / (each * count - 1))
            lasts.append(max(answer["last"] - answers[0]["said"] for answer in answers) / 1e6)
            clients.append(sum(now["cpu"] - then["cpu"] for now, then in zip(answers, first)) * 1e6 / (each * count))
        rows += [["one broadcast to all, hubs' CPU µs per delivery", spread(costs, 2), ""],
                 ["– until the last client has read it, ms", spread(lasts, 0), ""],
                 ["– clients' CPU µs per delivery on the same cores", spread(clients, 2), ""]]
        gaps = sum(hub.figures()["roost_cluster_gaps_total"] for hub in hubs)
        memory = [(resident(hub.pid) - first) / each for hub, first in zip(hubs, before)]
        rows.append(["memory of a socket after the broadcasts, KB", spread([bytes / 1024 for bytes in memory], 2), ""])
        show(f"{each * count:,} sockets over {count} hubs of one loop, all in one channel", ["", "found", "budget"], rows)
        print(f"\nLost: 0; gaps told: {gaps:.0f}")


class Many(Crowd):
    """A hub's share of the sockets; the commands are those of `ManyCrowd`."""
    script = "many_crowd.py"

    def __init__(self, hub, number):
        # An address of the loopback for each crowd, so that their ports are many.
        super().__init__(hub, hub.token, f"127.0.1.{number + 1}")


# Streams that hubs share


def sharing(programs, cluster, arguments):
    """What an append takes where other hubs have it before it is acknowledged, and when readers at each hub have it."""
    rounds, count = arguments.rounds or 3, 1000 if arguments.quick else 3000

    def folder(number):
        return {"ROOST_STREAMS_DIRECTORY": cluster.folder / f"shared-streams-{number}", "ROOST_STREAMS_BYTES": 100_000_000}

    with Redis(free_port()) as redis, several(programs, cluster, redis, 2, "together_streams", each=folder) as hubs:
        until(lambda: all(hub.figures()["roost_stream_sharing"] for hub in hubs), 30, "the hubs do not share streams")
        writer = streams.Writer(hubs[0])
        streams.show_appends(hubs[0], writer, rounds)
        path = writer.stream()
        readers = [reader(hub, path) for hub in hubs]
        took = [[], []]
        for _ in range(count):
            start = time.monotonic_ns()
            writer.request("POST", path, b"x" * 256)
            for times, connection in zip(took, readers):
                while b"x" * 256 not in connection.recv(65_536):
                    pass
                times.append((time.monotonic_ns() - start) / 1e6)
        show(f"An append of 256 bytes, read as events at the same hub and at another; {count} times",
             ["", "p50 ms", "p99 ms"],
             [[name, f"{sorted(times)[count // 2]:.2f}", f"{sorted(times)[count * 99 // 100]:.2f}"]
              for name, times in zip(("both have it: at the same hub", "and then at the other"), took)])


def reader(hub, path):
    connection = socket.create_connection(("127.0.0.1", hub.port))
    connection.sendall(f"GET {path}?offset=-1&live=sse HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {hub.token}\r\n\r\n".encode())
    if not connection.recv(65_536).startswith(b"HTTP/1.1 200"):
        raise BenchError("a reader was refused")
    return connection


def measure(programs, cluster, arguments):
    for part in (latency, saturation, linear, crowded, sharing):
        part(programs, cluster, arguments)
