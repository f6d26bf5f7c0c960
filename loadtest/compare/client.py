"""The load client: what it does to a server, and what it has found then."""

import dataclasses
import json
import subprocess

from failure import Failure, Undelivered, said

#: Loopback addresses that wsload's sockets come from in a run.
SOURCES = 4
#: Deliveries a second: little enough for the slowest, whose messages would otherwise pile up and share writes.
PACE = 15_000
WRONG = {"lost": "were lost", "repeated": "came twice", "out_of_order": "came out of order",
         "wrong": "came to sockets that did not ask"}


@dataclasses.dataclass(frozen=True)
class Figures:
    """Of the server, except for the latencies, which the client saw, and what the client itself used."""
    cpu_us_per_delivery: float
    client_us_per_delivery: float
    p50_us: float
    p99_us: float
    connect_cpu_us: float
    kb_per_socket: float
    deliveries: int


def client(tools):
    """The referee's where there is one, else ours."""
    if tools.wsload:
        return Wsload(tools.wsload)
    if tools.roost_load.exists():
        return RoostLoad(tools.roost_load)
    raise Failure("there is no load client: build .build/release/roost-load (make build)", 69)


def result(name, command):
    """The JSON of a program's last line, and what it complained of."""
    outcome = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    try:
        return json.loads(outcome.stdout.strip().splitlines()[-1]), said(outcome)
    except (ValueError, IndexError):
        raise Undelivered(f"{name} printed no result: {said(outcome)}") from None


class Wsload:
    """The referee's load client."""
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
        found, complaint = result(self.name, command)
        check_wsload(found, shape, complaint)
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


def check_wsload(found, shape, complaint):
    if found["ready"] != shape.sockets or found["failed"]:
        raise Undelivered(f"only {found['ready']:,} of {shape.sockets:,} sockets were ready: {complaint}.")
    if found.get("error") == "publisher":
        raise Undelivered(f"the publisher was not let in: {complaint}.")
    expected = shape.messages * shape.sockets
    if found.get("error") or found["deliveries"] != expected:
        raise Undelivered(f"{found['deliveries']:,} of {expected:,} messages arrived within {shape.timeout} s.")
    if found["closed"]:
        raise Undelivered(f"{found['closed']:,} of {shape.sockets:,} sockets were closed.")


class RoostLoad:
    """Our own load client, in its scenario `fanout` with frames of the server's protocol."""
    name = "roost-load"
    pacing = f"at {PACE:,} deliveries a second, whether they keep up or not"

    def __init__(self, program):
        self.program = program
        usage = subprocess.run([program, "fanout", "--help"], capture_output=True, text=True).stdout
        if "--publish-prefix" not in usage:
            raise Failure("roost-load is older than loadtest/compare: make build", 69)

    def measure(self, server, traffic, shape):
        """One run against a fresh server; Undelivered if not every message reached every socket."""
        rate = PACE / shape.sockets
        # Whole bursts: those of the warm-up are not to reach into what is measured.
        warm_messages = -(-shape.warm_messages // shape.window) * shape.window
        processes = [f"server{number}" for number in range(len(server.pids))]
        command = [self.program, "fanout", "--url", f"ws://127.0.0.1:{server.port}", "--sockets", shape.sockets,
                   "--size", shape.size, "--burst", shape.window, "--rate", rate, "--warm-up", warm_messages / rate,
                   "--duration", shape.messages / rate, "--settle", shape.timeout, "--heartbeat", 0, "--json", "--quiet",
                   *self.flags(traffic)]
        for name, pid in zip(processes, server.pids):
            command += ["--pid", f"{name}={pid}"]
        found, _ = result(self.name, command)
        check_roost_load(found, shape)

        def total(figure):
            return sum(found[f"{name}_{figure}"] for name in processes)
        return Figures(
            cpu_us_per_delivery=total("cpu_us_per_delivery"), client_us_per_delivery=found["tester_receiving_us_per_delivery"],
            p50_us=found["sent_p50_us"], p99_us=found["sent_p99_us"], connect_cpu_us=total("join_us"),
            kb_per_socket=total("kb_per_socket"), deliveries=int(found["delivered"]))

    @staticmethod
    def flags(traffic):
        flags = ["--path", traffic.path, "--acks", traffic.answers, "--publisher-acks", traffic.publisher_answers]
        if traffic.subprotocol:
            flags += ["--subprotocol", traffic.subprotocol]
        if traffic.is_binary:
            flags.append("--binary-frames")
        for frame in traffic.subscribe:
            flags += ["--subscribe-frame", escaped(frame)]
        for frame in traffic.publisher:
            flags += ["--publisher-frame", escaped(frame)]
        return [*flags, "--publish-prefix", escaped(traffic.prefix), "--publish-suffix", escaped(traffic.suffix)]


def escaped(frame):
    return "".join(chr(byte) if 32 <= byte < 127 and byte != ord("\\") else f"\\x{byte:02x}" for byte in frame)


def check_roost_load(found, shape):
    if found["refused_joins"] or found["closed_sockets"]:
        raise Undelivered(f"{found['refused_joins']:,.0f} of {shape.sockets:,} sockets were refused, and "
                          f"{found['closed_sockets']:,.0f} closed.")
    for name, what in WRONG.items():
        if found[name]:
            raise Undelivered(f"{found[name]:,.0f} of {found['expected']:,.0f} messages {what}.")
    if not found["expected"] or found["delivered"] != found["expected"]:
        raise Undelivered(f"{found['delivered']:,.0f} of {found['expected']:,.0f} messages arrived.")
