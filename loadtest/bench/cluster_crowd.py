"""Sockets at several hubs in one process: who publishes, and a reader at each hub that hears all of it.

A message's number is when it was due, in nanoseconds, and no two have the same; so the readers' times of one message can be
compared: how much later it came at the hub that it was not said at."""

import array
import gc
import sys
import time

from fleet import OPEN, Client, Fleet
from room_crowd import ANSWER, NUMBER, OVERLAP, broadcast
from websocket import message


class Socket(Client):
    __slots__ = ("topic", "owed", "times")

    def __init__(self, number, token):
        super().__init__(number, token)
        self.topic, self.owed = None, 0
        self.times = None  # of a reader: when each message came


class ClusterCrowd(Fleet):
    def __init__(self, token, ports):
        super().__init__(ports[0])
        self.token, self.ports = token, ports
        self.readers, self.speakers = [], []

    def serve(self):
        gc.disable()
        for line in sys.stdin:
            self.execute(line)

    def state(self):
        return super().state() | {"heard": [len(reader.times) for reader in self.readers]}

    # Commands

    def connect(self, speakers, readers):
        """At each hub so many who speak, each in a channel of its own; at the first hubs a reader who is in the channels of all."""
        for hub, port in enumerate(self.ports):
            self.speakers.append([self.open(port, f"realtime:{hub}-{n}") for n in range(speakers)])
        for port in self.ports[:readers]:
            reader = self.open(port)
            reader.times = {}
            self.readers.append(reader)
            for speaker in (speaker for group in self.speakers for speaker in group):
                self.join(reader, speaker.topic)

    def open(self, port, topic=None):
        client = Socket(0, self.token)
        self.port = port
        self.dial(client)
        self.wait_for(lambda: client.phase == OPEN)
        if topic:
            client.topic = topic
            self.join(client, topic)
        return client

    def join(self, client, topic):
        client.owed = 1
        self.send(client, message(topic, "phx_join", {"config": {}}, "1", "1"))
        self.wait_for(lambda: not client.owed)

    def wait_for(self, condition):
        deadline = time.monotonic() + 20
        while not condition():
            self.turn(1)
            if self.errors or time.monotonic() > deadline:
                sys.exit(f"a hub refused a socket: {dict(self.errors)}")

    def speak(self, rate, seconds, at, size=150, burst=1):
        """At an even pace, in turn by the speakers of these hubs; then what readers of each hub heard how late, in µs."""
        speakers = [group[n] for n in range(len(self.speakers[0])) for group in (self.speakers[hub] for hub in at)]
        for reader in self.readers:
            reader.times = {}
        filler, count, step = "x" * (size - 30), int(rate * seconds), 1e9 / rate
        began, latest = time.monotonic_ns() + 1_000_000, 0
        said = {}
        for first in range(0, count, burst):
            due = began + int(first * step)
            while (now := time.monotonic_ns()) < due:
                self.turn((due - now) / 1e9 if due - now > 200_000 else 0)
            latest = max(latest, now - due)
            for number in range(first, min(first + burst, count)):
                # Which of its numbers a hub said: by the place in the turn.
                stamp = time.monotonic_ns()
                said[stamp] = at[number % len(at)]
                speaker = speakers[number % len(speakers)]
                self.send(speaker, broadcast(speaker.topic, stamp, filler))
            if not first % 16:
                self.turn(0)
        deadline = time.monotonic() + 10
        while any(len(reader.times) < len(said) for reader in self.readers) and time.monotonic() < deadline:
            self.turn(0.05)
        return {"sent": len(said), "latest": latest / 1e3, "seconds": (time.monotonic_ns() - began) / 1e9} | self.delays(said)

    def delays(self, said):
        """Of messages that both readers had: at the hub where they were said, at the other, and the difference."""
        same, other, added = array.array("q"), array.array("q"), array.array("q")
        missing = 0
        for number, hub in said.items():
            arrivals = [reader.times.get(number) for reader in self.readers]
            missing += arrivals.count(None)
            if None in arrivals or hub >= len(arrivals):
                continue
            for there, arrival in enumerate(arrivals):
                if there == hub:
                    same.append(arrival - number)
                else:
                    other.append(arrival - number)
                    added.append(arrival - arrivals[hub])
        return {"missing": missing, "same": shares(same), "other": shares(other), "added": shares(added)}

    # Sockets

    def take(self, client, start, end):
        now, taken = time.monotonic_ns(), start
        if client.owed:
            for match in ANSWER.finditer(self.buffer, start, end):
                client.owed, taken = 0, match.end()
            return max(taken, end - OVERLAP)
        times = client.times
        for match in NUMBER.finditer(self.buffer, start, end):
            taken = match.end()
            if times is not None:
                times[int(match[1])] = now
        return max(taken, end - OVERLAP)


def shares(values):
    values = sorted(values)
    return {f"p{share:g}": values[min(len(values) - 1, int(len(values) * share / 100))] / 1e3
            for share in (50, 99, 99.9)} if values else {}


if __name__ == "__main__":
    ClusterCrowd(sys.argv[1], [int(port) for port in sys.argv[2:]]).serve()
