"""Broadcasts from clients: how many frames a second one loop takes in that go to nobody else."""

import selectors
import socket
import statistics
import time

from crowd import token
from members import cpu_us, started
from programs import BenchError
from storm_crowd import masked
from table import show, spread, verdict

SENDERS = 50
SIZE = 150
BUDGET = 50_000
AT_ONCE = 128  # frames in one write of a sender
NO_LIMITS = {"ROOST_LIMITS_MESSAGES_PER_SECOND": 0, "ROOST_LIMITS_BYTES_PER_SECOND": 0}


def measure(programs, cluster, arguments):
    rounds = arguments.rounds or (3 if arguments.quick else 5)
    frames = 200_000 if arguments.quick else 1_000_000
    forms = {"version 1, text": ("1.0.0", text_1), "version 2, text": ("2.0.0", text_2), "version 2, binary": ("2.0.0", binary)}
    ways = {f"{name}, {what}": (version, form, at_once) for name, (version, form) in forms.items()
            for what, at_once in ((f"{AT_ONCE} in a write", AT_ONCE), ("one in a write", 1))}
    found = {name: [] for name in ways}
    with started(programs, cluster, cluster.create("inbound"), arguments, **NO_LIMITS) as hub:
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


def key_masked(payload, opcode=1, key=b"\x37\xfa\x21\x3d"):
    """As clients send it. A mask of zeros would spare the hub its work."""
    pattern = (key * (len(payload) // 4 + 1))[:len(payload)]
    covered = (int.from_bytes(payload, "big") ^ int.from_bytes(pattern, "big")).to_bytes(len(payload), "big")
    head = masked(opcode, payload)
    return head[:len(head) - len(payload) - 4] + key + covered


def padded(head, number, tail):
    return head + b"%09d" % number + b"x" * (SIZE - len(head) - len(tail) - 9) + tail


def text_1(topic, number):
    head = b'{"topic":"%s","event":"broadcast","payload":{"type":"broadcast","event":"m","payload":{"n":"' % topic
    return key_masked(padded(head, number, b'"}},"ref":"5","join_ref":"1"}'))


def text_2(topic, number):
    head = b'["1","5","%s","broadcast",{"type":"broadcast","event":"m","payload":{"n":"' % topic
    return key_masked(padded(head, number, b'"}}]'))


def binary(topic, number):
    head = bytes([3, 1, 1, len(topic), 1, 0, 1]) + b"15" + topic + b"m"
    return key_masked(padded(head + b'{"n":"', number, b'"}'), opcode=2)


# Sockets


def joined(hub, version, topic):
    """A socket that has joined a channel."""
    made = socket.create_connection(("127.0.0.1", hub.port))
    made.settimeout(60)
    made.sendall(f"GET /realtime/v1/websocket?vsn={version}&apikey={token('sender')} HTTP/1.1\r\nHost: 127.0.0.1:{hub.port}\r\n"
                 "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                 "Sec-WebSocket-Version: 13\r\n\r\n".encode())
    wait_for(made, b"\r\n\r\n")
    say(made, version, topic.decode(), "phx_join", '{"config":{}}')
    wait_for(made, b"phx_reply")
    return made


def say(made, version, topic, event, payload):
    made.sendall(masked(1, (
        f'{{"topic":"{topic}","event":"{event}","payload":{payload},"ref":"1","join_ref":"1"}}' if version == "1.0.0"
        else f'["1","1","{topic}","{event}",{payload}]').encode()))


def wait_for(made, wanted, times=1):
    seen = b""
    while seen.count(wanted) < times:
        try:
            data = made.recv(1 << 18)
        except TimeoutError:
            raise BenchError("the hub did not answer within a minute") from None
        if not data:
            raise BenchError("the hub closed a socket")
        seen += data
    return seen


def send(hub, version, form, at_once, frames):
    """CPU µs per frame, and frames/s. Only the last is answered, and so all before it are done."""
    senders = [(joined(hub, version, topic), form(topic, 0) * at_once)
               for topic in (b"realtime:inbound %02d" % number for number in range(SENDERS))]
    due = {made: frames // SENDERS // at_once for made, _ in senders}
    at = dict.fromkeys(due, 0)
    selector = selectors.DefaultSelector()
    for made, data in senders:
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        selector.register(made, selectors.EVENT_WRITE, memoryview(data))
    before, began = cpu_us(hub), time.monotonic()
    while selector.get_map():
        for key, _ in selector.select():
            made, data = key.fileobj, key.data
            try:
                at[made] += made.send(data[at[made]:])
            except BlockingIOError:
                continue
            if at[made] == len(data):
                at[made] = 0
                due[made] -= 1
                if not due[made]:
                    selector.unregister(made)
    for made, _ in senders:
        made.setblocking(True)
        say(made, version, "phoenix", "heartbeat", "{}")
    for made, _ in senders:
        wait_for(made, b"phx_reply")
    spent, seconds, sent = cpu_us(hub) - before, time.monotonic() - began, frames // SENDERS // at_once * at_once * SENDERS
    for made, _ in senders:
        made.close()
    return spent / sent, sent / seconds


def check(hub, version, form, count=500):
    """That what is measured is a broadcast: a reader gets each once and in order."""
    topic = b"realtime:checked"
    reader, sender = joined(hub, "2.0.0", topic), joined(hub, version, topic)
    sender.sendall(b"".join(form(topic, number) for number in range(count)))
    seen = wait_for(reader, b'"n":"', count)
    numbers = [int(piece[:9]) for piece in seen.split(b'"n":"')[1:] if len(piece) >= 9]
    if numbers[:count - 1] != list(range(count - 1)):
        raise BenchError("a reader did not get every frame once and in order")
    for made in (reader, sender):
        made.close()
