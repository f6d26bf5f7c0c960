"""Compares Roost with the limit (the least a fan-out server can do) and with its peers among Debian's packages, in
interleaved rounds on this machine, and prints tables."""

import os
import pathlib
import signal
import sys
import tempfile
import time

# The hub, its Postgres and the way figures are written are the benchmark's.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "bench"))

import document
import machine
import namespace
import peers
import rounds
import selftest
import tables
from client import client
from failure import Failure
from options import parse_options
from programs import BenchError
from record import Record
from tools import Tools


def main():
    # Ended from outside, what was started must end, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = parse_options(__doc__)
    try:
        if options.list_missing_packages:
            print(*peers.missing_packages(options))
        elif options.tables:
            publish(Record.load(options.tables), options)
        else:
            with tempfile.TemporaryDirectory(prefix="roost-compare-") as folder:
                compare(options, pathlib.Path(folder))
    except (BenchError, Failure) as error:
        print(f"compare: {error}", file=sys.stderr)
        sys.exit(getattr(error, "code", 1))
    except KeyboardInterrupt:
        sys.exit(130)


def compare(options, folder):
    # A server may run as a user of its own.
    folder.chmod(0o755)
    if options.write:
        document.check(options.write)
    is_alone = namespace.enter()
    tools = Tools(options, folder, is_alone)
    load = client(tools)
    chosen, left_out = peers.available(options, tools)
    for sentence in left_out:
        print(f"compare: {sentence}", file=sys.stderr)
    if not chosen:
        raise Failure("there is no server here to measure", 69)
    if options.self_test:
        sys.exit(selftest.run(chosen, load))
    record = Record.begin(options, chosen, left_out, load, is_alone)
    began = time.monotonic()
    rounds.run(options.plan, chosen, load, record, options.json)
    record.conditions.extend([["Load average at the end", machine.load_average()],
                              ["Duration", f"{(time.monotonic() - began) / 60:.0f} minutes"]])
    record.save(options.json)
    publish(record, options)


def publish(record, options):
    text = tables.text(record)
    print(text)
    if options.write:
        document.write(options.write, text)
        print(f"compare: the tables are in {os.path.relpath(options.write)}", file=sys.stderr)


main()
