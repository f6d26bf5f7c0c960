"""What TLS costs the hub: for a delivery, for a connection, and while many connect at once."""

import contextlib
import statistics
import subprocess

from hub import Hub
from programs import BenchError
from table import show, spread

SOCKETS = 1000
RATE = 100  # messages a second, to all of them


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
    found = {name: [] for name in ways}
    with contextlib.ExitStack() as stack:
        hubs = {}
        for number, (name, settings) in enumerate(ways.items()):
            hub = Hub(programs, cluster, database, arguments.loops)
            # One name for all would be one place in the feed for all.
            hub.environment |= settings | {"ROOST_NODE_NAME": f"hub-{number}"}
            hubs[name] = stack.enter_context(hub)
        # The first round warms up.
        for turn in range(rounds + 1):
            for name, hub in hubs.items():
                figures = [load(programs, hub, "fanout", "--rate", RATE, "--duration", seconds, "--warm-up", 1),
                           load(programs, hub, "idle", "--hold", 0.1)]
                if turn:
                    found[name].append(figures)
    plain = statistics.median(fanout["hub_cpu_us_per_delivery"] for fanout, _ in next(iter(found.values())))
    rows = []
    for name, each in found.items():
        deliveries = [fanout["hub_cpu_us_per_delivery"] for fanout, _ in each]
        rows.append([name, spread(deliveries, 2), f"{statistics.median(deliveries) / plain:.2f}",
                     spread([idle["hub_join_us"] for _, idle in each], 0)])
    show(f"{SOCKETS:,} sockets, {RATE} messages/s of 150 bytes to all, one loop; CPU µs of the hub, median of {rounds} interleaved "
         "rounds", ["", "per delivery", "ratio", "per connect and join"], rows)


def load(programs, hub, scenario, *options):
    url = hub.url.replace("ws://", "wss://") if "ROOST_TLS_KEY" in hub.environment else hub.url
    return programs.json_of([
        programs.roost_load, scenario, "--url", url, "--token", hub.token, "--insecure", "--sockets", SOCKETS, "--pid",
        f"hub={hub.pid}", "--json", *options])


def make_pair(folder):
    certificate, key = folder / "tls.pem", folder / "tls.key"
    outcome = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost",
         "-days", "2", "-out", certificate, "-keyout", key], capture_output=True, text=True)
    if outcome.returncode != 0:
        raise BenchError(f"openssl made no certificate: {outcome.stderr.strip()[-300:]}")
    return str(certificate), str(key)
