"""Our own load client, in its scenario `fanout` with frames of the server's protocol."""

import json
import subprocess

from failure import Failure, Undelivered, said
from figures import Figures

#: Deliveries a second: little enough for the slowest, whose messages would otherwise pile up and share writes.
PACE = 15_000
WRONG = {"lost": "were lost", "repeated": "came twice", "out_of_order": "came out of order",
         "wrong": "came to sockets that did not ask"}


class RoostLoad:
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
        outcome = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        try:
            found = json.loads(outcome.stdout.strip().splitlines()[-1])
        except (ValueError, IndexError):
            raise Undelivered(f"roost-load printed no result: {said(outcome)}") from None
        check(found, shape)

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


def check(found, shape):
    if found["refused_joins"] or found["closed_sockets"]:
        raise Undelivered(f"{found['refused_joins']:,.0f} of {shape.sockets:,} sockets were refused, and "
                          f"{found['closed_sockets']:,.0f} closed.")
    for name, what in WRONG.items():
        if found[name]:
            raise Undelivered(f"{found[name]:,.0f} of {found['expected']:,.0f} messages {what}.")
    if not found["expected"] or found["delivered"] != found["expected"]:
        raise Undelivered(f"{found['delivered']:,.0f} of {found['expected']:,.0f} messages arrived.")
