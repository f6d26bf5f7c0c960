"""Short requests on connections that are kept: what a broadcast by HTTP costs, beside the least a server can do."""

import contextlib
import pathlib
import select
import socket
import statistics
import subprocess
import time

from hub import NO_LIMITS, Hub, token
from processes import cpu_us
from programs import BenchError, free_port
from table import show, spread, verdict

SENDERS = 50
SIZE = 150
BUDGET = 6  # µs more than the limit's


def measure(programs, cluster, arguments):
    rounds = arguments.rounds or (3 if arguments.quick else 7)
    bursts = 400 if arguments.quick else 2_000
    body = b'{"text":"' + b"x" * (SIZE - 11) + b'"}'
    mine = token("sender")
    requests = {
        "a broadcast": (request("POST /api/broadcast/posts/events/m", mine, body), 202),
        "a broadcast, as a list": (request("POST /api/broadcast", mine, as_list(body)), 202),
        "a broadcast without a token": (request("POST /api/broadcast/posts/events/m", None, body), 401),
        "GET /healthcheck": (request("GET /healthcheck", None, b""), 200),
    }
    broadcast = requests["a broadcast"][0]
    with Hub(programs, cluster, cluster.create("posts"), arguments.loops, **NO_LIMITS) as hub, limit() as least:
        ways = {"the limit": (least, broadcast, 202)} | {
            name: (hub, data, status) for name, (data, status) in requests.items()}
        found = {(name, senders): [] for name in ways for senders in (SENDERS, 1)}
        for turn in range(rounds + 1):
            for (name, senders), costs in found.items():
                server, data, status = ways[name]
                cost = send(server, data, status, senders, bursts if senders > 1 else bursts * 5)
                if turn:  # The first is a rehearsal.
                    costs.append(cost)
    rows = []
    for (name, senders), costs in found.items():
        more = [cost - least for cost, least in zip(costs, found["the limit", senders])]
        said = verdict(statistics.median(more) <= BUDGET) if name.startswith("a broadcast") else ""
        rows.append([name, senders, spread(costs), "" if name == "the limit" else spread(more), said])
    show(f"Requests with {SIZE} bytes of payload to a channel where nobody is, on connections that are kept; median of "
         f"{rounds} interleaved rounds",
         ["request", "at once", "server CPU µs each", "more than the limit", f"≤ {BUDGET}"], rows)


def request(first, bearer, body):
    lines = [f"{first} HTTP/1.1", "host: 127.0.0.1", "accept: */*", "content-type: application/json",
             *([f"authorization: Bearer {bearer}"] if bearer else []), *([f"content-length: {len(body)}"] if body else [])]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def as_list(payload):
    return b'{"messages":[{"topic":"posts","event":"m","payload":' + payload + b"}]}"


@contextlib.contextmanager
def limit():
    source = pathlib.Path("loadtest/limit/posts.c").resolve()
    program = pathlib.Path(".build/bench/posts").resolve()
    program.parent.mkdir(parents=True, exist_ok=True)
    outcome = subprocess.run(["cc", "-O2", "-o", program, source], capture_output=True, text=True)
    if outcome.returncode != 0:
        raise BenchError(f"{source.name} does not compile: {outcome.stderr.strip()[-300:]}")
    port = free_port()
    process = subprocess.Popen([program, "-p", str(port)])
    process.port = port
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def connected(port):
    deadline = time.monotonic() + 10
    while True:
        try:
            made = socket.create_connection(("127.0.0.1", port))
            break
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise BenchError(f"nobody listens on port {port}") from None
            time.sleep(0.05)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.settimeout(60)
    return made


def send(server, data, status, senders, bursts):
    """CPU µs of each request: every sender sends one, then every answer is read, so that all servers get them alike."""
    sockets = [connected(server.port) for _ in range(senders)]
    head, size = b"HTTP/1.1 %d " % status, 0

    def burst():
        for made in sockets:
            made.sendall(data)
        # Woken once, by the last answer: a server that is quicker than this loop would else wake nobody, and another many.
        select.select(sockets[-1:], [], [], 60)
        return [made.recv(4096) for made in sockets]

    for answer in burst():
        size = size or len(answer)
        if not answer.startswith(head) or len(answer) != size:
            raise BenchError(f"instead of {status} came {answer[:200]!r}")
    before = cpu_us(server.pid)
    for _ in range(bursts):
        for answer in burst():
            if len(answer) != size:
                raise BenchError(f"an answer is not like the first: {answer[:200]!r}")
    spent = cpu_us(server.pid) - before
    for made in sockets:
        made.close()
    return spent / (bursts * senders)
