"""Sockets of one process that join channels, publish, and count what comes; rooms.py starts it and talks to it in JSON.

A message's number is the time, in nanoseconds, at which it was due: so a delivery tells how late it is, and the order of those
that one sender sent. What is read is searched for numbers and not decoded. One epoll loop and no library.
"""

import array
import bisect
import collections
import itertools
import json
import os
import re
import resource
import select
import socket
import sys
import time

from storm_crowd import masked

NUMBER = re.compile(rb'"(?:n|stamp)":"(\d{12,})"')
ANSWER = re.compile(rb'"phx_reply"|"Subscribed to|"status":"error"')
#: Members that wait for an answer at a time.
RAMP = 64
#: The longest beginning of a pattern that may stand at the end of what was read.
OVERLAP = 40


class Member:
    __slots__ = ("number", "socket", "rest", "owed", "to_join", "last", "count", "ref")

    def __init__(self, number):
        self.number, self.socket, self.rest, self.to_join = number, None, b"", collections.deque()
        self.owed = self.ref = self.last = self.count = 0  # answers, the newest join's ref, the newest number, messages


class Crowd:
    def __init__(self, port, token):
        self.port, self.token = port, token
        self.epoll = select.epoll()
        self.members, self.by_file = [], {}
        self.buffer = bytearray(1 << 20)
        self.view = memoryview(self.buffer)
        self.numbers, self.delays = array.array("q"), array.array("q")
        self.errors = collections.Counter()
        self.delivered = self.disorder = self.joining = self.closed = 0
        self.late, self.beat_every, self.next_beat, self.beater = 0, 0, 0, 0

    def run(self):
        for line in sys.stdin:
            command = json.loads(line)
            answer = getattr(self, command.pop("do"))(**command) or {}
            print(json.dumps(answer | {"delivered": self.delivered, "disorder": self.disorder, "errors": self.errors,
                                       "cpu": time.process_time()}), flush=True)

    # Commands

    def connect(self, count):
        for _ in range(count):
            member = Member(len(self.members))
            member.socket = socket.create_connection(("127.0.0.1", self.port))
            member.socket.sendall((
                f"GET /realtime/v1/websocket?vsn=2.0.0&apikey={self.token} HTTP/1.1\r\n"
                f"Host: 127.0.0.1:{self.port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                piece = member.socket.recv(4096)
                if not piece:
                    sys.exit(f"the hub closed socket {member.number} instead of upgrading it")
                head += piece
            if b" 101 " not in head[:20]:
                sys.exit(f"the hub refused socket {member.number}: {head[:40].decode('latin-1')}")
            member.socket.setblocking(False)
            self.members.append(member)
            self.by_file[member.socket.fileno()] = member
            self.epoll.register(member.socket.fileno(), select.EPOLLIN)

    def join(self, channels):
        """By member, the channels that it joins, each a topic and a config. Returns when all were answered."""
        waiting = [member for member, wanted in zip(self.members, channels) if wanted]
        for member in waiting:
            member.to_join.extend(channels[member.number])
        waiting.reverse()
        deadline = time.monotonic() + 60 + len(waiting) / 100
        while waiting or self.joining:
            if time.monotonic() > deadline:
                sys.exit("the hub left joins without an answer")
            while waiting and self.joining < RAMP:
                self.joining += 1
                self.join_next(waiting.pop())
            self.turn(1)

    def publish(self, topics, times, window, expected, size=150):
        """So many at a time, each to the next topic by the member whose number comes with it; the next ones when all of these
        have come to as many members as expected."""
        filler = "x" * (size - 30)
        turn = itertools.cycle(topics)
        for _ in range(times):
            sent = collections.defaultdict(list)
            for _ in range(window):
                topic, sender = next(turn)
                sent[sender].append(message(topic, time.monotonic_ns(), filler))
            target = self.delivered + window * expected
            for sender, frames in sent.items():
                self.say(self.members[sender], b"".join(frames))
            deadline = time.monotonic() + 30
            while self.delivered < target:
                self.turn(0.1)
                if time.monotonic() > deadline:
                    return {"missing": target - self.delivered}
        return {"missing": 0}

    def pace(self, topic, rate, seconds, size=150):
        """The last member publishes at an even pace, whatever comes of it."""
        filler, began = "x" * (size - 30), time.monotonic_ns()
        count = int(rate * seconds)
        for number in range(count):
            due = began + int(number * 1e9 / rate)
            while (now := time.monotonic_ns()) < due:
                self.turn((due - now) / 1e9)
            self.late = max(self.late, now - due)
            self.say(self.members[-1], message(topic, due, filler))
        return {"sent": count}

    def listen(self, seconds, until=None):
        """For so long, or until so many were delivered."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and (until is None or self.delivered < until):
            self.turn(min(0.05, max(0, end - time.monotonic())))

    def beat(self, period):
        """From now on every member sends a heartbeat so often, in seconds."""
        self.beat_every, self.next_beat = period / len(self.members), time.monotonic()

    def points(self, commits=()):
        """How late deliveries were since this was last asked, in ms: from when they were due, or else from the commit of the
        newest transaction that began with no higher number; `commits` has the two by transaction."""
        if commits:
            starts, ends = zip(*commits)
            self.delays = [number + delay - ends[bisect.bisect(starts, number) - 1]
                           for number, delay in zip(self.numbers, self.delays)]
        delays = sorted(self.delays)
        answer = {f"p{share:g}": delays[min(len(delays) - 1, int(len(delays) * share / 100))] / 1e6
                  for share in (50, 99, 99.9, 100)} if delays else {}
        answer |= {"late": self.late / 1e6, "since": len(delays)}
        self.numbers, self.delays, self.late = array.array("q"), array.array("q"), 0
        return answer

    def counts(self):
        """How many messages each member was delivered."""
        return {"counts": [member.count for member in self.members]}

    # Sockets

    def join_next(self, member):
        topic, config = member.to_join.popleft()
        member.ref += 1
        # Row changes are live when the second answer says so.
        member.owed = 2 if config.get("postgres_changes") else 1
        ref = str(member.ref)
        self.say(member, masked(1, json.dumps([ref, ref, topic, "phx_join", {"config": config}]).encode()))

    def say(self, member, data):
        member.socket.setblocking(True)
        member.socket.sendall(data)
        member.socket.setblocking(False)

    def turn(self, timeout):
        for file, _ in self.epoll.poll(timeout, 512):
            self.read(self.by_file[file])
        while self.beat_every and time.monotonic() >= self.next_beat:
            self.say(self.members[self.beater], masked(1, b'[null,"0","phoenix","heartbeat",{}]'))
            self.beater = (self.beater + 1) % len(self.members)
            self.next_beat += self.beat_every

    def read(self, member):
        kept = len(member.rest)
        if kept:
            self.buffer[:kept] = member.rest
        try:
            count = member.socket.recv_into(self.view[kept:])
        except BlockingIOError:
            return
        except OSError as error:
            count = 0
            self.errors[type(error).__name__] += 1
        if not count:
            self.errors["closed"] += 1
            self.epoll.unregister(member.socket.fileno())
            return
        now, end, taken = time.monotonic_ns(), kept + count, 0
        for match in (ANSWER if member.owed else NUMBER).finditer(self.view[:end]):
            taken = match.end()
            if member.owed:
                self.answered(member, match[0])
            else:
                number = int(match[1])
                self.disorder += number <= member.last
                member.last = number
                member.count += 1
                self.delivered += 1
                self.numbers.append(number)
                self.delays.append(now - number)
        member.rest = bytes(self.view[max(taken, end - OVERLAP):end])

    def answered(self, member, what):
        if what == b'"status":"error"':
            self.errors["refused"] += 1
            sys.exit("the hub refused a join")
        member.owed -= 1
        if member.owed == 0 and member.to_join:
            self.join_next(member)
        elif member.owed == 0:
            self.joining -= 1


def message(topic, number, filler):
    return masked(1, f'["1",null,"{topic}","broadcast",{{"type":"broadcast","event":"m","payload":{{"n":"{number}",'
                     f'"x":"{filler}"}}}}]'.encode())


if __name__ == "__main__":
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    os.environ.pop("PYTHONPATH", None)
    Crowd(int(sys.argv[1]), sys.argv[2]).run()
