"""Runs the measurements one after the other and prints their tables."""

import argparse
import contextlib
import os
import pathlib
import platform
import signal
import subprocess
import sys
import time

import bigtx
import changes
import channels
import fanout
import first_rows
import hostile
import idle
import inbound
import loops
import members
import posts
import push
import quiet
import receipts
import rows
import scrape
import slow
import sockets
import storm
import streams
import subscriptions
import tls
import together
import visibility
import writers
from cluster import Cluster
from programs import BenchError, Programs

PARTS = {"fanout": fanout.measure, "sockets": sockets.measure, "changes": changes.measure, "writers": writers.measure,
         "visibility": visibility.measure, "storm": storm.measure, "slow": slow.measure,
         "receipts": receipts.measure, "presence": members.presence, "typing": members.typing, "push": push.measure, "channels": channels.measure,
         "idle": idle.measure, "inbound": inbound.measure, "posts": posts.measure, "rows": rows.measure, "bigtx": bigtx.measure,
         "loops": loops.measure, "scrape": scrape.measure, "tls": tls.measure, "hostile": hostile.measure, "quiet": quiet.measure,
         "streams": streams.measure, "cluster": together.measure, "cluster-latency": together.latency,
         "cluster-busy": together.saturation, "cluster-linear": together.linear, "cluster-sockets": together.crowded,
         "cluster-streams": together.sharing, "first-rows": first_rows.measure, "subscriptions": subscriptions.measure}
#: These take minutes, or kill hubs, stall readers and fill channels.
BY_NAME = ("storm", "slow", "receipts", "presence", "typing", "push", "channels", "idle", "inbound", "posts", "rows", "bigtx", "loops",
           "scrape", "tls", "hostile", "quiet", "streams", "cluster", "cluster-latency", "cluster-busy", "cluster-linear",
           "cluster-sockets", "cluster-streams", "first-rows", "subscriptions")


def parse_arguments():
    parser = argparse.ArgumentParser(prog="loadtest/bench.sh", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"only these of {', '.join(PARTS)}; "
                        f"{', '.join(BY_NAME)} only run when named")
    parser.add_argument("--quick", action="store_true", help="about three minutes: fewer rounds, shorter runs")
    parser.add_argument("--rounds", type=int, help="interleaved rounds instead of 5 (fan-out) and 3 (the rest)")
    parser.add_argument("--minutes", type=int, help="how long the part quiet lasts instead of 60")
    parser.add_argument("--sockets", type=int, help="how many the parts cluster-sockets and subscriptions have instead of 100,000 and "
                        "10,000")
    parser.add_argument("--rows", type=int, default=10_000_000, help="how many the table of the part first-rows has")
    parser.add_argument("--cluster", type=pathlib.Path, help="a folder that keeps the databases for the next run")
    parser.add_argument("--roost", type=pathlib.Path, default=".build/release/roost", help="the hub to measure")
    parser.add_argument("--roost-load", type=pathlib.Path, default=".build/release/roost-load", help="the load tester")
    parser.add_argument("--referee", type=pathlib.Path, default="../shared/bench", help="the folder of rawfan and wsload")
    parser.add_argument("--loops", type=int, default=1, help="the hub's loops; 1, so that CPU per message compares with "
                        "rawfan, which has one thread")
    arguments = parser.parse_args()
    for part in arguments.parts:
        if part not in PARTS:
            parser.error(f"there is no part {part}; there are {', '.join(PARTS)}")
    return arguments


def conditions(programs, loops):
    """What the figures were taken on."""
    cpu = next((line.split(":")[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")), "unknown")
    version = subprocess.run([programs.roost, "--version"], capture_output=True, text=True).stdout.strip()
    return (f"roost {version} with {loops} loop{'s' if loops != 1 else ''}, {time.strftime('%Y-%m-%d %H:%M')}; "
            f"{os.cpu_count()} × {cpu}, Linux {platform.release()}; "
            f"load average at the start {os.getloadavg()[0]:.1f} (figures taken on a busy machine are noise)")


def main():
    # Ended from outside, what was started must end, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    arguments = parse_arguments()
    try:
        programs = Programs(arguments.roost, arguments.roost_load, arguments.referee)
        print(conditions(programs, arguments.loops))
        with contextlib.ExitStack() as stack:
            cluster = stack.enter_context(Cluster(arguments.cluster))
            for name in arguments.parts or [part for part in PARTS if part not in BY_NAME]:
                PARTS[name](programs, cluster, arguments)
        print(f"\nLoad average at the end: {os.getloadavg()[0]:.1f}")
    except BenchError as error:
        sys.exit(f"bench: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


main()
