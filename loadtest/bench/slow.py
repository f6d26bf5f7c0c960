"""One reader stalls while its channel carries 5,000 messages a second: what the others notice, and what it costs in memory.

Sockets in three parts: ten read the busy channel (broadcasts and row changes), the rest a calm one, and the stalled one
joined the busy channel and reads nothing. Three runs: without it; with it; with another one as soon as one was ended.
"""

import json
import os
import re
import selectors
import threading
import time

from hub import Hub
from programs import BenchError
from table import show
from websocket import TEXT, Connection, frame, message

SOCKETS = 500
BUSY = 10
RATE = 5000
CHANGES = 100
HEARTBEAT = 20  # seconds; the hub ends sockets that were silent for 60
STAMP = re.compile(rb'"(b|c|stamp)":"(\d{10,})"')


def measure(programs, cluster, arguments):
    seconds = 15 if arguments.quick else 60
    runs = []
    for number, (name, stalled) in enumerate((("without", 0), ("one stalled", 1), ("one after the other", 1000))):
        database = cluster.create(f"slow{number}")
        with Hub(programs, cluster, database, arguments.loops, watch=["public.roost_load"], ops=True) as hub:
            runs.append((name, Run(hub, cluster, database, seconds, stalled).run()))
    rows = []
    for name, run in runs:
        for kind, title in ((b"b", "busy broadcasts"), (b"stamp", "row changes"), (b"c", "calm broadcasts")):
            rows.append([name, title, f"{len(run.delays[kind]):,}", *run.points(kind)])
    show(f"{SOCKETS} sockets, {RATE:,} broadcasts and {CHANGES} row changes a second for {seconds} s; ms from sent to read",
         ["stalled readers", "messages", "deliveries", "p50", "p99", "p99.9", "max"], rows)
    show("What the hub did", ["stalled readers", "of them", "closed", "cut off", "written off", "changes held, ms",
                              "memory at first, MB", "at most", "at the end", "lost"],
         [[name, run.stalled, *(int(run.figures.get(f"roost_slow_reader_{what}_total", 0)) for what in ("closed", "cut", "written_off")),
           int(1000 * run.figures.get("roost_changes_held_seconds_total", 0)), f"{run.memory[0]:.1f}", f"{max(run.memory):.1f}",
           f"{run.memory[-1]:.1f}", run.lost] for name, run in runs])
    for name, run in runs:
        step = max(1, len(run.memory) // 12)
        print(f"\nMemory, {name}, MB every {step} s: " + " ".join(f"{value:.1f}" for value in run.memory[::step]))


class Reader:
    """A connection to a channel, which reads what comes and notes how old it is."""

    def __init__(self, hub, topic, changes, receive_buffer=None):
        self.connection = Connection(hub.port, hub.token, receive_buffer=receive_buffer)
        self.socket = self.connection.socket
        bindings = [{"event": "INSERT", "schema": "public", "table": "roost_load"}] if changes else []
        self.connection.push(topic, "phx_join", {"config": {"postgres_changes": bindings}})
        self.connection.wait_for(b"Subscribed" if changes else b"phx_reply")
        self.rest = b""
        self.socket.setblocking(False)

    def read(self, delays):
        try:
            data = self.socket.recv(1 << 18)
        except BlockingIOError:
            return True
        if not data:
            return False
        now = time.monotonic_ns()
        data = self.rest + data
        end = 0
        for match in STAMP.finditer(data):
            delays[match[1]].append(now - int(match[2]))
            end = match.end()
        # A stamp may be cut in two by the end of what came.
        self.rest = data[max(end, len(data) - 40):]
        return True


def broadcast(topic, **payload):
    return frame(TEXT, json.dumps([None, None, topic, "broadcast", {"type": "broadcast", "event": "m", "payload": payload}],
                                  separators=(",", ":")).encode())


class Run:
    def __init__(self, hub, cluster, database, seconds, stalled):
        self.hub, self.cluster, self.database, self.seconds, self.most = hub, cluster, database, seconds, stalled
        self.delays = {b"b": [], b"c": [], b"stamp": []}
        self.memory, self.stalled, self.sent = [], 0, {b"b": 0, b"c": 0, b"stamp": 0}
        self.is_over, self.failure = False, None

    def run(self):
        busy = [Reader(self.hub, "realtime:busy", True) for _ in range(BUSY)]
        calm = [Reader(self.hub, "realtime:calm", False) for _ in range(SOCKETS - BUSY - 3)]
        publisher, quiet = Reader(self.hub, "realtime:busy", False), Reader(self.hub, "realtime:calm", False)
        threads = [threading.Thread(target=target, daemon=True) for target in (
            lambda: self.publish(publisher), lambda: self.publish_calmly(quiet), self.insert, self.stall, self.watch)]
        reader = threading.Thread(target=self.read, args=(busy + calm, [publisher, quiet]), daemon=True)
        reader.start()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        expected = {b"b": len(busy), b"stamp": len(busy), b"c": len(calm)}

        def missing():
            return sum(self.sent[kind] * readers - len(self.delays[kind]) for kind, readers in expected.items())
        # What is late is not lost; the gauges are a second old.
        end = time.monotonic() + 15
        while missing() and time.monotonic() < end and not self.failure:
            time.sleep(0.1)
        time.sleep(2)
        self.is_over = True
        reader.join()
        if self.failure:
            raise BenchError(self.failure)
        self.figures, self.lost = self.hub.figures(), missing()
        for one in (*busy, *calm, publisher, quiet):
            one.connection.close()
        return self

    def points(self, kind):
        delays = sorted(self.delays[kind])
        if not delays:
            raise BenchError("nothing was delivered")
        return [f"{delays[min(len(delays) - 1, int(len(delays) * share))] / 1e6:.1f}" for share in (0.5, 0.99, 0.999, 1)]

    def read(self, sockets, senders):
        selector = selectors.DefaultSelector()
        for one in sockets:
            selector.register(one.socket, selectors.EVENT_READ, one)
        beat = time.monotonic() + HEARTBEAT
        while not self.is_over:
            if time.monotonic() > beat:
                beat += HEARTBEAT
                for one in (*sockets, *senders):
                    one.socket.sendall(message("phoenix", "heartbeat", {}, "9", None))
            for key, _ in selector.select(0.1):
                if not key.data.read(self.delays):
                    self.failure = ("the hub closed a socket that reads: this tester was itself too slow, the machine is busy; "
                                    "run it again when it is not")
                    return

    def paced(self, rate, batch, send):
        began = time.monotonic()
        for number in range(self.seconds * rate // batch):
            pause = began + number * batch / rate - time.monotonic()
            if pause > 0:
                time.sleep(pause)
            send(batch)

    def publish(self, sender):
        sender.socket.setblocking(True)
        filler = "y" * 100

        def send(batch):
            sender.socket.sendall(broadcast("realtime:busy", b=str(time.monotonic_ns()), x=filler) * batch)
            self.sent[b"b"] += batch
        self.paced(RATE, 25, send)

    def publish_calmly(self, sender):
        sender.socket.setblocking(True)

        def send(batch):
            sender.socket.sendall(broadcast("realtime:calm", c=str(time.monotonic_ns())))
            self.sent[b"c"] += 1
        self.paced(5, 1, send)

    def insert(self):
        with self.cluster.session(self.database) as session:
            def send(batch):
                session.stdin.write("insert into roost_load (conversation_id, stamp) values "
                                    f"(gen_random_uuid(), '{time.monotonic_ns()}');\n")
                session.stdin.flush()
                self.sent[b"stamp"] += 1
            self.paced(CHANGES, 1, send)
            session.stdin.close()

    def stall(self):
        """Stalled readers, each opened when the hub has ended the one before."""
        end = time.monotonic() + self.seconds
        held = []
        while self.most > self.stalled and time.monotonic() < end - 1:
            if self.hub.figures().get("roost_slow_reader_cut_total", 0) >= self.stalled:
                # What this reader's kernel takes is not what is measured.
                held.append(Reader(self.hub, "realtime:busy", True, receive_buffer=16_384))
                self.stalled += 1
            time.sleep(0.2)
        time.sleep(max(0, end - time.monotonic()))
        for one in held:
            one.connection.close()

    def watch(self):
        for _ in range(self.seconds):
            with open(f"/proc/{self.hub.pid}/statm") as file:
                self.memory.append(int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6)
            time.sleep(1)
