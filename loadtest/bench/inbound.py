"""Broadcasts from clients: how many frames a second one loop takes in that go to nobody else."""

import selectors
import socket
import statistics
import time

from hub import NO_LIMITS, Hub, token
from processes import cpu_us
from programs import BenchError
from table import show, spread, verdict
from websocket import BINARY, TEXT, VERSION_1, VERSION_2, Connection, frame

SENDERS = 50
SIZE = 150
BUDGET = 50_000
AT_ONCE = 128  # frames in one write of a sender
MASK = b"\x37\xfa\x21\x3d"  # One of zeros would spare the hub its work.


def measure(programs, cluster, arguments):
    rounds = arguments.rounds or (3 if arguments.quick else 5)
    frames = 200_000 if arguments.quick else 1_000_000
    forms = {"version 1, text": (VERSION_1, text_1), "version 2, text": (VERSION_2, text_2), "version 2, binary": (VERSION_2, binary)}
    ways = {f"{name}, {what}": (version, form, at_once) for name, (version, form) in forms.items()
            for what, at_once in ((f"{AT_ONCE} in a write", AT_ONCE), ("one in a write", 1))}
    found = {name: [] for name in ways}
    with Hub(programs, cluster, cluster.create("inbound"), arguments.loops, **NO_LIMITS) as hub:
        for name, (version, form, _) in ways.items():
            check(hub, version, form)
        for _ in range(rounds):
            for name, (version, form, at_once) in ways.items():
                found[name].append(send(hub, version, form, at_once, frames if at_once > 1 else frames // 5))
    rows = []
    for name, results in found.items():
        costs, rates = [cost for cost, _ in results], [rate for _, rate in results]
        capacity = 1e6 / statistics.median(costs)
        rows.append([name, spread(costs, 2), f"{capacity:,.0f}", verdict(capacity >= BUDGET), spread(rates, 0)])
    show(f"{SENDERS} senders, frames of {SIZE} bytes to channels where nobody else is; median of {rounds} interleaved rounds",
         ["frames", "hub CPU µs per frame", "so one loop takes, frames/s", f"≥ {BUDGET:,}", "frames/s seen"], rows)
    print("\nEvery sender had its last frame answered behind the others; 500 frames of each form that had a reader came once "
          "and in order")


# Frames


def padded(head, number, tail):
    return head + b"%09d" % number + b"x" * (SIZE - len(head) - len(tail) - 9) + tail


def text_1(topic, number):
    head = b'{"topic":"%s","event":"broadcast","payload":{"type":"broadcast","event":"m","payload":{"n":"' % topic
    return frame(TEXT, padded(head, number, b'"}},"ref":"5","join_ref":"1"}'), MASK)


def text_2(topic, number):
    head = b'["1","5","%s","broadcast",{"type":"broadcast","event":"m","payload":{"n":"' % topic
    return frame(TEXT, padded(head, number, b'"}}]'), MASK)


def binary(topic, number):
    head = bytes([3, 1, 1, len(topic), 1, 0, 1]) + b"15" + topic + b"m"
    return frame(BINARY, padded(head + b'{"n":"', number, b'"}'), MASK)


# Sockets


def joined(hub, version, topic):
    """A connection that has joined a channel."""
    connection = Connection(hub.port, token("sender"), version)
    connection.push(topic.decode(), "phx_join", {"config": {}})
    connection.wait_for(b"phx_reply")
    return connection


def send(hub, version, form, at_once, frames):
    """CPU µs per frame, and frames/s. Only the last is answered, and so all before it are done."""
    selector, senders = selectors.DefaultSelector(), []
    for topic in (b"realtime:inbound %02d" % number for number in range(SENDERS)):
        sender = Sender(joined(hub, version, topic), form(topic, 0) * at_once, frames // SENDERS // at_once)
        selector.register(sender.socket, selectors.EVENT_WRITE, sender)
        senders.append(sender)
    before, began = cpu_us(hub.pid), time.monotonic()
    while selector.get_map():
        for key, _ in selector.select():
            if key.data.write():
                selector.unregister(key.fileobj)
    for sender in senders:
        sender.socket.setblocking(True)
        sender.connection.push("phoenix", "heartbeat", {})
    for sender in senders:
        sender.connection.wait_for(b"phx_reply")
    spent, seconds, sent = cpu_us(hub.pid) - before, time.monotonic() - began, frames // SENDERS // at_once * at_once * SENDERS
    for sender in senders:
        sender.connection.close()
    return spent / sent, sent / seconds


class Sender:
    """Writes the same bytes so many times, as fast as they are taken."""

    def __init__(self, connection, data, times):
        self.connection, self.socket, self.data, self.times, self.at = connection, connection.socket, memoryview(data), times, 0
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def write(self):
        """Whether all is written."""
        try:
            self.at += self.socket.send(self.data[self.at:])
        except BlockingIOError:
            return False
        if self.at == len(self.data):
            self.at, self.times = 0, self.times - 1
        return not self.times


def check(hub, version, form, count=500):
    """That what is measured is a broadcast: a reader gets each once and in order."""
    topic = b"realtime:checked"
    reader, sender = joined(hub, VERSION_2, topic), joined(hub, version, topic)
    sender.socket.sendall(b"".join(form(topic, number) for number in range(count)))
    seen = reader.wait_for(b'"n":"', count)
    numbers = [int(piece[:9]) for piece in seen.split(b'"n":"')[1:] if len(piece) >= 9]
    if numbers[:count - 1] != list(range(count - 1)):
        raise BenchError("a reader did not get every frame once and in order")
    for connection in (reader, sender):
        connection.close()
