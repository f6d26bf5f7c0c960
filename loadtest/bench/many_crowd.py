"""As many sockets as a process may have files, in one channel."""

import gc
import socket
import sys
import time

from fleet import CONNECTING, OPEN, Client, Fleet
from room_crowd import ANSWER, broadcast
from websocket import message

#: Sockets that connect or wait for an answer at a time.
RAMP = 128
IP_BIND_ADDRESS_NO_PORT = 24


class Seat(Client):
    __slots__ = ("is_in",)

    def __init__(self, number, token):
        super().__init__(number, token)
        self.is_in = False


class ManyCrowd(Fleet):
    def __init__(self, port, token, source):
        super().__init__(port)
        self.token, self.source = token, source
        self.seats, self.entered, self.heard, self.last = [], 0, 0, 0
        self.topic = None

    def serve(self):
        gc.disable()
        for line in sys.stdin:
            self.execute(line)

    # Commands

    def enter(self, count, topic):
        """Connects so many, and lets each join. Returns when all are in."""
        self.topic, began = topic, time.monotonic()
        while self.entered < count:
            while len(self.seats) < count and len(self.seats) - self.entered < RAMP:
                seat = Seat(len(self.seats), self.token)
                self.seats.append(seat)
                self.dial(seat)
            before = self.entered
            self.turn(1)
            if self.errors or (self.entered == before and time.monotonic() - began > 300):
                sys.exit(f"the hub refused sockets: {dict(self.errors)}; {self.entered} are in")
        gc.freeze()

    def say(self, topic):
        """The first one publishes, the others are to hear it."""
        self.heard = 0
        said = time.monotonic_ns()
        self.send(self.seats[0], broadcast(topic, said, "x" * 120))
        return self.wait(len(self.seats) - 1, 60) | {"said": said}

    def await_all(self, seconds):
        """Until one message has come to all."""
        self.heard = 0
        return self.wait(len(self.seats), seconds)

    def wait(self, wanted, seconds):
        deadline = time.monotonic() + seconds
        while self.heard < wanted and time.monotonic() < deadline:
            self.turn(0.1)
        return {"missing": wanted - self.heard, "last": self.last}

    # Sockets

    def dial(self, client):
        made = socket.socket()
        made.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
        made.bind((self.source, 0))
        made.setblocking(False)
        made.connect_ex(("127.0.0.1", self.port))
        client.socket, client.phase, client.rest = made, CONNECTING, b""
        self.by_file[made.fileno()] = client
        # Level-triggered for writing until it is connected.
        self.epoll.register(made.fileno(), 4)

    def opened(self, seat):
        self.send(seat, message(self.topic, "phx_join", {"config": {}}, "1", "1"))

    def take(self, seat, start, end):
        if seat.is_in:
            if self.buffer.find(b'"n":"', start, end) >= 0:
                self.heard += 1
                self.last = time.monotonic_ns()
            return end
        if ANSWER.search(self.buffer, start, end):
            seat.is_in = True
            self.entered += 1
            return end
        return start


if __name__ == "__main__":
    ManyCrowd(int(sys.argv[1]), sys.argv[2], sys.argv[3]).serve()
