"""Streams: how long an append takes to each of many readers, what that costs the hub, and what readers weigh."""

import http.client
import json
import pathlib
import socket
import statistics
import subprocess
import time
import urllib.parse

import websocket
from fanout import Rawfan, load
from hub import NO_LIMITS, Hub
from processes import cpu_us
from programs import BenchError
from table import show, spread, verdict

READERS = 1000
RATE = 50
PIECE = 16


def measure(programs, cluster, arguments):
    readers = compiled()
    rounds = arguments.rounds or (3 if arguments.quick else 5)
    folder = cluster.folder / "streams"
    with Hub(programs, cluster, cluster.create("streams"), arguments.loops, **NO_LIMITS, ROOST_STREAMS_DIRECTORY=folder,
             ROOST_STREAMS_BYTES=100_000_000) as hub:
        writer = Writer(hub)
        show_latency(programs, hub, writer, readers, rounds, 10 if arguments.quick else 30)
        if programs.wsload:
            show_cost(programs, hub, writer, readers, rounds, 300 if arguments.quick else 1000)
        show_weight(hub, writer, readers, (1000, 9000))
        show_appends(hub, writer, rounds)
        show_late(hub, writer, readers)
        show_wire(hub, writer)
    # Another process, so that what the first one gave back is not taken for memory that nobody needs.
    with Hub(programs, cluster, cluster.create("events"), arguments.loops, **NO_LIMITS) as hub:
        show_channel(programs, hub, readers, rounds, 300 if arguments.quick else 1000)


def compiled():
    source = pathlib.Path("loadtest/bench/event_readers.c").resolve()
    program = pathlib.Path(".build/bench/event_readers").resolve()
    program.parent.mkdir(parents=True, exist_ok=True)
    outcome = subprocess.run(["cc", "-O2", "-o", program, source], capture_output=True, text=True)
    if outcome.returncode != 0:
        raise BenchError(f"{source.name} does not compile: {outcome.stderr.strip()[-300:]}")
    return program


class Writer:
    """Appends by short requests on a connection that is kept."""

    def __init__(self, hub):
        self.hub, self.names = hub, 0
        self.connection = http.client.HTTPConnection("127.0.0.1", hub.port)
        self.headers = {"Authorization": f"Bearer {hub.token}", "Content-Type": "text/plain"}

    def request(self, method, path, body=b"", **headers):
        self.connection.request(method, path, body, {**self.headers, **headers})
        answer = self.connection.getresponse()
        answer.read()
        if answer.status >= 300:
            raise BenchError(f"{method} {path} was answered {answer.status}")

    def stream(self):
        self.names += 1
        path = f"/streams/bench/{self.names}"
        self.request("PUT", path)
        return path


class Readers:
    """`event_readers`, connected when entered."""

    def __init__(self, program, hub, path, count, pieces, rate=None, size=PIECE, channel=None):
        where = ["-e", channel] if channel else ["-s", path]
        self.command = [program, "-p", hub.port, *where, "-t", hub.token, "-n", count, "-m", pieces, "-z", size,
                        *(["-r", rate] if rate else [])]

    def __enter__(self):
        self.process = subprocess.Popen([str(part) for part in self.command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if line != "ready\n":
            raise BenchError(f"the readers did not begin: {line}")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def run(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        result = json.loads(self.process.stdout.readline())
        if "error" in result:
            raise BenchError(result["error"])
        return result


def show_latency(programs, hub, writer, program, rounds, seconds):
    """The limit's is from a frame at its publisher to the same frame at a subscriber: it writes nothing down."""
    found, limits = [], []
    for _ in range(rounds):
        if programs.wsload:
            with Rawfan(programs, 1) as rawfan:
                limit = load(programs, "rawfan", rawfan.port, rawfan.process.pid, READERS, RATE * seconds, 1, 276, ("-r", RATE))
                limits.append((limit["p50_us"] / 1000, limit["p99_us"] / 1000, limit["cpu_us_per_delivery"]))
        with Readers(program, hub, writer.stream(), READERS, RATE * seconds, RATE) as readers:
            before = cpu_us(hub.pid)
            result = readers.run()
            found.append((result["p50"] / 1000, result["p99"] / 1000, (cpu_us(hub.pid) - before) / result["deliveries"]))
    p50, p99, cost = zip(*found)
    least = [spread(column) for column in zip(*limits)] if limits else [""] * 3
    show(f"{RATE} appends/s of {PIECE} bytes, {READERS} readers of events, one process each; median (least–most) of {rounds} rounds of {seconds} s",
         ["", "limit (rawfan)", "roost", "budget", ""],
         [["append sent → read, p50 ms", least[0], spread(p50), "≤ 2.5", verdict(statistics.median(p50) <= 2.5)],
          ["append sent → read, p99 ms", least[1], spread(p99), "≤ 4.5", verdict(statistics.median(p99) <= 4.5)],
          ["CPU µs per delivery", least[2], spread(cost), "", ""]])


def show_cost(programs, hub, writer, program, rounds, pieces):
    """One after the other, as the limit is measured: the next append when all have the last one."""
    ours, limits, size = [], [], 0
    with Rawfan(programs, 1) as rawfan:
        for _ in range(rounds):
            with Readers(program, hub, writer.stream(), READERS, pieces, size=150) as readers:
                before = cpu_us(hub.pid)
                result = readers.run()
                ours.append((cpu_us(hub.pid) - before) / result["deliveries"])
                size = result["bytes"] // result["deliveries"]
            limit = load(programs, "rawfan", rawfan.port, rawfan.process.pid, READERS, pieces, 1, size - 4)
            limits.append(limit["cpu_us_per_delivery"])
    ratios = [mine / limit for mine, limit in zip(ours, limits)]
    show(f"CPU µs per delivery of {size} bytes to {READERS} readers of events, beside the limit (rawfan, WebSockets); {rounds} interleaved rounds",
         ["limit (rawfan)", "roost", "ratio per round", "≤ 1.10"],
         [[spread(limits), spread(ours), spread(ratios), verdict(statistics.median(ratios) <= 1.10)]])


def resident(pid):
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * 4096


def show_channel(programs, hub, program, rounds, pieces):
    """Subscriptions over HTTP: kept broadcasts, so that each event has its own line of where the reader is before it."""
    open_ones, rows, total, before = [], [], 0, resident(hub.pid)
    try:
        for count in (1000, 9000):
            open_ones.append(Readers(program, hub, "", count, 1, channel="idle").__enter__())
            total += count
            each = (resident(hub.pid) - before) / total
            rows.append([total, f"{each / 1000:.1f}", verdict(each <= 3000)])
    finally:
        for readers in open_ones:
            readers.__exit__()
    show("Memory of the hub for each idle subscription over HTTP", ["readers", "kB each", "≤ 3 kB"], rows)
    if not programs.wsload:
        return
    ours, limits, size = [], [], 0
    with Rawfan(programs, 1) as rawfan:
        for number in range(rounds):
            with Readers(program, hub, "", READERS, pieces, size=150, channel=f"sse{number}") as readers:
                before = cpu_us(hub.pid)
                result = readers.run()
                ours.append((cpu_us(hub.pid) - before) / result["deliveries"])
                size = result["bytes"] // result["deliveries"]
            limit = load(programs, "rawfan", rawfan.port, rawfan.process.pid, READERS, pieces, 1, size - 4)
            limits.append(limit["cpu_us_per_delivery"])
    ratios = [mine / limit for mine, limit in zip(ours, limits)]
    show(f"CPU µs per delivery of {size} bytes to {READERS} subscriptions over HTTP, beside the limit; {rounds} interleaved rounds",
         ["limit (rawfan)", "roost", "ratio per round"], [[spread(limits), spread(ours), spread(ratios)]])


def show_weight(hub, writer, program, counts):
    path, rows, before, open_ones = writer.stream(), [], resident(hub.pid), []
    try:
        total = 0
        for count in counts:
            open_ones.append(Readers(program, hub, path, count, 1).__enter__())
            total += count
            each = (resident(hub.pid) - before) / total
            rows.append([total, f"{each / 1000:.1f}", verdict(each <= 3000)])
    finally:
        for readers in open_ones:
            readers.__exit__()
    show("Memory of the hub for each idle reader of events", ["readers", "kB each", "≤ 3 kB"], rows)


def show_appends(hub, writer, rounds):
    p50, p99 = [], []
    for _ in range(rounds):
        path, took = writer.stream(), []
        for _ in range(3000):
            start = time.monotonic_ns()
            writer.request("POST", path, b"x" * 256)
            took.append((time.monotonic_ns() - start) / 1e6)
        took.sort()
        p50.append(took[1500])
        p99.append(took[2970])
    rates = []
    for _ in range(rounds):
        path, chunk, count = writer.stream(), b"10\r\n" + b"x" * 16 + b"\r\n", 500_000
        with socket.create_connection(("127.0.0.1", hub.port)) as made:
            made.sendall(f"POST {path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {hub.token}\r\ncontent-type: text/plain\r\n"
                         "transfer-encoding: chunked\r\n\r\n".encode())
            start = time.monotonic()
            for _ in range(count // 1000):
                made.sendall(chunk * 1000)
            made.sendall(b"0\r\n\r\n")
            if not made.recv(4096).startswith(b"HTTP/1.1 204"):
                raise BenchError("the long request was refused")
            rates.append(count / (time.monotonic() - start))
    show(f"One producer; median (least–most) of {rounds} rounds", ["", "", "budget", ""],
         [["short appends of 256 bytes, acknowledged, p50 ms", spread(p50), "", ""],
          ["– p99 ms (Python's http.client included)", spread(p99), "≤ 1", verdict(statistics.median(p99) <= 1)],
          ["pieces of 16 bytes by one long request, per second", spread(rates), "≥ 100000", verdict(statistics.median(rates) >= 100_000)]])


def show_late(hub, writer, program):
    path, took = writer.stream(), []
    writer.request("POST", path, b"x" * 65_536)
    request = (f"GET {path}?offset=-1&live=sse HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {hub.token}\r\n\r\n").encode()
    with Readers(program, hub, path, 100, 1):
        for _ in range(300):
            start, got = time.monotonic_ns(), 0
            with socket.create_connection(("127.0.0.1", hub.port)) as made:
                made.sendall(request)
                while got < 65_536:
                    got += len(made.recv(262_144))
            took.append((time.monotonic_ns() - start) / 1e6)
    took.sort()
    show("A late reader of 64 KB among 100, from its connection to the last byte", ["p50 ms", "p99 ms", "≤ 5 ms"],
         [[f"{took[150]:.2f}", f"{took[297]:.2f}", verdict(took[297] <= 5)]])


def show_wire(hub, writer):
    """A reply of 2,000 characters, 100 tokens a second, watched over the WebSocket."""
    path, token = writer.stream(), "word"
    name = urllib.parse.unquote(path.removeprefix("/streams/"))
    connection = websocket.Connection(hub.port, hub.token)
    connection.push(f"realtime:stream:{name}", "phx_join", {"config": {"private": True}})
    connection.wait_for(b'"status":"open"')
    start = time.monotonic()
    for number in range(500):
        time.sleep(max(0, start + number / 100 - time.monotonic()))
        writer.request("POST", path, token.encode())
    writer.request("POST", path, b"", **{"Stream-Closed": "true"})
    received = len(connection.wait_for(b'"complete"'))
    connection.close()
    show("Bytes on the WebSocket for a reply of 2,000 characters at 100 tokens/s", ["bytes", "× the text", "≤ 8"],
         [[received, f"{received / 2000:.1f}", verdict(received <= 16_000)]])
