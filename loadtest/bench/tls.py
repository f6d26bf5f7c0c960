"""What TLS costs, ended by the hub and by HAProxy in front of it: for a delivery, for a connection, for a socket that is open, and what
others notice while many connect at once."""

import contextlib
import http.client
import os
import pathlib
import shutil
import socket
import ssl
import statistics
import subprocess
import threading
import time

from hub import Hub
from programs import BenchError, free_port
from table import show, spread

SOCKETS = 1000
RATE = 100  # messages a second, to all of them
STORM = 3000  # sockets that connect at once
HELD = 5  # seconds for which sockets are open that do nothing
HAPROXY = """global
    maxconn 8000
    nbthread 1
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    timeout tunnel 90s
frontend clients
    bind 127.0.0.1:{port} ssl crt {pem}
    option forwardfor
    default_backend hub
backend hub
    server hub 127.0.0.1:{hub}
"""


class Way:
    """A hub, with what stands in front of it."""

    def __init__(self, name, hub, proxy=None):
        self.name, self.hub, self.proxy = name, hub, proxy
        self.is_secure = proxy is not None or "ROOST_TLS_KEY" in hub.environment
        self.port = proxy.port if proxy else hub.port
        self.processes = {"hub": hub.pid, **({"proxy": proxy.process.pid} if proxy else {})}
        self.figures, self.waits = [], []

    def sum_of(self, result, figure):
        return sum(result[f"{process}_{figure}"] for process in self.processes)

    def files(self):
        return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in self.processes.values())


class HAProxy:
    """Ends TLS in front of a hub."""

    def __init__(self, program, folder, hub, certificate, key):
        self.port = free_port()
        pem, configuration = folder / "haproxy.pem", folder / "haproxy.cfg"
        pem.write_text(pathlib.Path(certificate).read_text() + pathlib.Path(key).read_text())
        configuration.write_text(HAPROXY.format(port=self.port, pem=pem, hub=hub.port))
        self.process = subprocess.Popen([program, "-db", "-f", configuration], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        end = time.monotonic() + 10
        while time.monotonic() < end:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            time.sleep(0.05)
        raise BenchError("HAProxy did not start")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def measure(programs, cluster, arguments):
    rounds = arguments.rounds or (3 if arguments.quick else 5)
    seconds = 3 if arguments.quick else 10
    database = cluster.create("tls")
    certificate, key = make_pair(cluster.folder)
    encrypted = {"ROOST_TLS_CERTIFICATE": certificate, "ROOST_TLS_KEY": key}
    haproxy = shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin")
    settings = {"plain, io_uring": {}, "plain, send": {"ROOST_IO_URING": "false"}, "TLS 1.3, ECDSA P-256": encrypted,
                **({"TLS 1.3 by HAProxy": {}} if haproxy else {})}
    ways = []
    with contextlib.ExitStack() as stack:
        for number, (name, its) in enumerate(settings.items()):
            # One name for all would be one place in the feed for all.
            hub = stack.enter_context(Hub(programs, cluster, database, arguments.loops, **its, ROOST_NODE_NAME=f"hub-{number}"))
            proxy = stack.enter_context(HAProxy(haproxy, cluster.folder, hub, certificate, key)) if "HAProxy" in name else None
            ways.append(Way(name, hub, proxy))
        # While all are fresh, as memory that was left behind is used again.
        held = {way: hold(programs, way) for way in ways}
        # The first round warms up.
        for turn in range(rounds + 1):
            for way in ways:
                figures = [load(programs, way, "fanout", "--rate", RATE, "--duration", seconds, "--warm-up", 1),
                           load(programs, way, "idle", "--hold", 0.1)]
                with bystander(way) as times:
                    load(programs, way, "idle", "--hold", 0.1, "--ramp", STORM, sockets=STORM)
                if turn:
                    way.figures.append(figures)
                    way.waits.append(sorted(times)[len(times) * 99 // 100])
    rows = []
    for way in ways:
        deliveries = [way.sum_of(fanout, "cpu_us_per_delivery") for fanout, _ in way.figures]
        plain = statistics.median(ways[0].sum_of(fanout, "cpu_us_per_delivery") for fanout, _ in ways[0].figures)
        rows.append([way.name, spread(deliveries, 2), f"{statistics.median(deliveries) / plain:.2f}",
                     spread([way.sum_of(idle, "join_us") for _, idle in way.figures], 0), *held[way], spread(way.waits)])
    show(f"{SOCKETS:,} sockets, {RATE} messages/s of 150 bytes to all, one loop; CPU µs of the hub and of the proxy, median of {rounds} "
         "interleaved rounds",
         ["", "per delivery", "ratio", "per connect and join", "KB of an idle socket", "files of a socket",
          f"p99 of a request, ms, while {STORM:,} connect"], rows)


def hold(programs, way):
    """KB of an open socket, and descriptors."""
    before, most = way.files(), 0
    end = threading.Event()

    def watch():
        nonlocal most
        while not end.wait(0.2):
            most = max(most, way.files())
    thread = threading.Thread(target=watch)
    thread.start()
    result = load(programs, way, "idle", "--hold", HELD)
    end.set()
    thread.join()
    return f"{way.sum_of(result, 'kb_per_socket'):.1f}", f"{(most - before) / SOCKETS:.1f}"


@contextlib.contextmanager
def bystander(way):
    """Asks the clients' port over a connection that is open, time and again: how many ms each answer took."""
    times, end, failures = [], threading.Event(), []
    connection = http.client.HTTPConnection("127.0.0.1", way.port, timeout=30)
    if way.is_secure:
        # The pair is made here, and nobody stands in between.
        context = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection("127.0.0.1", way.port, timeout=30, context=context)

    def work():
        try:
            while not end.wait(0.01):
                began = time.monotonic()
                connection.request("GET", "/healthcheck")
                connection.getresponse().read()
                times.append((time.monotonic() - began) * 1000)
        except (OSError, http.client.HTTPException) as error:
            failures.append(error)
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield times
    finally:
        end.set()
        thread.join()
        connection.close()
    if failures or not times:
        raise BenchError(f"the hub did not answer beside the storm: {failures}")


def load(programs, way, scenario, *options, sockets=SOCKETS):
    url = f"{'wss' if way.is_secure else 'ws'}://127.0.0.1:{way.port}/realtime/v1/websocket"
    processes = [part for name, pid in way.processes.items() for part in ("--pid", f"{name}={pid}")]
    return programs.json_of([
        programs.roost_load, scenario, "--url", url, "--token", way.hub.token, "--insecure", "--sockets", sockets, *processes,
        "--json", *options])


def make_pair(folder):
    certificate, key = folder / "tls.pem", folder / "tls.key"
    outcome = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost",
         "-days", "2", "-out", certificate, "-keyout", key], capture_output=True, text=True)
    if outcome.returncode != 0:
        raise BenchError(f"openssl made no certificate: {outcome.stderr.strip()[-300:]}")
    return str(certificate), str(key)
