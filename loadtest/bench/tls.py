"""What TLS costs the hub: for a delivery, for a connection, and what others notice while many connect at once."""

import contextlib
import http.client
import ssl
import statistics
import subprocess
import threading
import time

from hub import Hub
from programs import BenchError
from table import show, spread

SOCKETS = 1000
RATE = 100  # messages a second, to all of them
STORM = 3000  # sockets that connect at once


def measure(programs, cluster, arguments):
    rounds = arguments.rounds or (3 if arguments.quick else 5)
    seconds = 3 if arguments.quick else 10
    database = cluster.create("tls")
    certificate, key = make_pair(cluster.folder)
    ways = {
        "plain, io_uring": {},
        "plain, send": {"ROOST_IO_URING": "false"},
        "TLS 1.3, ECDSA P-256": {"ROOST_TLS_CERTIFICATE": certificate, "ROOST_TLS_KEY": key},
    }
    found, waits = {name: [] for name in ways}, {name: [] for name in ways}
    with contextlib.ExitStack() as stack:
        hubs = {}
        for number, (name, settings) in enumerate(ways.items()):
            # One name for all would be one place in the feed for all.
            settings = settings | {"ROOST_NODE_NAME": f"hub-{number}"}
            hubs[name] = stack.enter_context(Hub(programs, cluster, database, arguments.loops, **settings))
        # The first round warms up.
        for turn in range(rounds + 1):
            for name, hub in hubs.items():
                figures = [load(programs, hub, "fanout", "--rate", RATE, "--duration", seconds, "--warm-up", 1),
                           load(programs, hub, "idle", "--hold", 0.1)]
                with bystander(hub) as times:
                    load(programs, hub, "idle", "--hold", 0.1, "--ramp", STORM, sockets=STORM)
                if turn:
                    found[name].append(figures)
                    waits[name].append(sorted(times)[len(times) * 99 // 100])
    plain = statistics.median(fanout["hub_cpu_us_per_delivery"] for fanout, _ in next(iter(found.values())))
    rows = []
    for name, each in found.items():
        deliveries = [fanout["hub_cpu_us_per_delivery"] for fanout, _ in each]
        rows.append([name, spread(deliveries, 2), f"{statistics.median(deliveries) / plain:.2f}",
                     spread([idle["hub_join_us"] for _, idle in each], 0), spread(waits[name])])
    show(f"{SOCKETS:,} sockets, {RATE} messages/s of 150 bytes to all, one loop; CPU µs of the hub, median of {rounds} interleaved "
         "rounds", ["", "per delivery", "ratio", "per connect and join",
                    f"p99 of a request, ms, while {STORM:,} connect"], rows)


@contextlib.contextmanager
def bystander(hub):
    """Asks the clients' port over a connection that is open, time and again: how many ms each answer took."""
    times, end, failures = [], threading.Event(), []
    connection = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=30)
    if "ROOST_TLS_KEY" in hub.environment:
        # The pair is made here, and nobody stands in between.
        context = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection("127.0.0.1", hub.port, timeout=30, context=context)

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


def load(programs, hub, scenario, *options, sockets=SOCKETS):
    url = hub.url.replace("ws://", "wss://") if "ROOST_TLS_KEY" in hub.environment else hub.url
    return programs.json_of([
        programs.roost_load, scenario, "--url", url, "--token", hub.token, "--insecure", "--sockets", sockets, "--pid",
        f"hub={hub.pid}", "--json", *options])


def make_pair(folder):
    certificate, key = folder / "tls.pem", folder / "tls.key"
    outcome = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost",
         "-days", "2", "-out", certificate, "-keyout", key], capture_output=True, text=True)
    if outcome.returncode != 0:
        raise BenchError(f"openssl made no certificate: {outcome.stderr.strip()[-300:]}")
    return str(certificate), str(key)
