"""The referee's load client."""

import json
import subprocess

from failure import Undelivered, said
from figures import Figures

SOURCES = 4


class Wsload:
    name = "wsload"
    pacing = "the next when every socket has got these"

    def __init__(self, program):
        self.program, self.runs = program, 0

    def measure(self, server, traffic, shape):
        """One run against a fresh server; Undelivered if not every message reached every socket."""
        # Other addresses than the last runs, whose ports the kernel still holds back.
        self.runs += 1
        sources = ["-src", SOURCES, "-srcbase", SOURCES * (self.runs % 200)]
        command = [self.program, "-p", server.port, "-P", ",".join(map(str, server.pids)), "-n", shape.sockets,
                   "-m", shape.messages, "-w", shape.window, "-z", shape.size, "-warm", shape.warm_messages,
                   "-settle", shape.settle_milliseconds, "-t", shape.timeout, *sources, *self.flags(traffic)]
        outcome = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        try:
            found = json.loads(outcome.stdout.strip().splitlines()[-1])
        except (ValueError, IndexError):
            raise Undelivered(f"wsload printed no result: {said(outcome)}") from None
        check(found, shape, said(outcome))
        return Figures(
            cpu_us_per_delivery=found["cpu_us_per_delivery"], client_us_per_delivery=found["client_us_per_delivery"],
            p50_us=found["p50_us"], p99_us=found["p99_us"], connect_cpu_us=found["connect_cpu_us"],
            kb_per_socket=found["rss_kb_per_conn"], deliveries=found["deliveries"])

    @staticmethod
    def flags(traffic):
        def payload(flag, data):
            return [f"{flag}x", data.hex()] if traffic.is_binary else [flag, data.decode()]
        flags = ["-u", traffic.path, "-ack", traffic.answers, "-pack", traffic.publisher_answers]
        if traffic.subprotocol:
            flags += ["-sp", traffic.subprotocol]
        for frame in traffic.subscribe:
            flags += payload("-sub", frame)
        for frame in traffic.publisher:
            flags += payload("-pinit", frame)
        return [*flags, *payload("-ppre", traffic.prefix), *payload("-psuf", traffic.suffix)]


def check(found, shape, complaint):
    if found["ready"] != shape.sockets or found["failed"]:
        raise Undelivered(f"only {found['ready']:,} of {shape.sockets:,} sockets were ready: {complaint}.")
    if found.get("error") == "publisher":
        raise Undelivered(f"the publisher was not let in: {complaint}.")
    expected = shape.messages * shape.sockets
    if found.get("error") or found["deliveries"] != expected:
        raise Undelivered(f"{found['deliveries']:,} of {expected:,} messages arrived within {shape.timeout} s.")
    if found["closed"]:
        raise Undelivered(f"{found['closed']:,} of {shape.sockets:,} sockets were closed.")
