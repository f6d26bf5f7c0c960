"""Sockets that join channels, publish, and count what comes.

A message's number is the time, in nanoseconds, at which it was due: so a delivery tells how late it is, and the order of those
that one sender sent. What is read is searched for numbers and not decoded."""

import array
import bisect
import collections
import itertools
import re
import sys
import time

from fleet import OPEN, Client, Fleet
from websocket import TEXT, frame, message

NUMBER = re.compile(rb'"(?:n|stamp)":"(\d{12,})"')
ANSWER = re.compile(rb'"phx_reply"|"Subscribed to|"status":"error"')
#: Members that wait for an answer at a time.
RAMP = 64
#: The longest beginning of a pattern that may stand at the end of what was read.
OVERLAP = 40


class Member(Client):
    __slots__ = ("owed", "to_join", "last", "ref")

    def __init__(self, number, token):
        super().__init__(number, token)
        self.to_join = collections.deque()
        self.owed = self.ref = self.last = 0  # answers that are to come, the newest join's ref, the newest number


class RoomCrowd(Fleet):
    def __init__(self, port, token):
        super().__init__(port)
        self.token, self.members = token, []
        self.numbers, self.delays = array.array("q"), array.array("q")
        self.delivered = self.disorder = self.joining = 0
        self.late, self.heartbeat_every, self.next_heartbeat, self.next_member = 0, 0, 0, 0

    def serve(self):
        # A command takes its time: sockets are read while one is executed, and not in between.
        for line in sys.stdin:
            self.execute(line)

    def state(self):
        return super().state() | {"delivered": self.delivered, "disorder": self.disorder}

    # Commands

    def connect(self, count):
        for _ in range(count):
            member = Member(len(self.members), self.token)
            self.members.append(member)
            self.dial(member)
            while member.phase != OPEN:
                self.turn(1)
                if self.errors:
                    sys.exit(f"the hub refused socket {member.number}: {dict(self.errors)}")

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
                sent[sender].append(broadcast(topic, time.monotonic_ns(), filler))
            target = self.delivered + window * expected
            for sender, each in sent.items():
                self.send(self.members[sender], b"".join(each))
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
            self.send(self.members[-1], broadcast(topic, due, filler))
        return {"sent": count}

    def listen(self, seconds, until=None):
        """For so long, or until so many were delivered."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and (until is None or self.delivered < until):
            self.turn(min(0.05, max(0, end - time.monotonic())))

    def keep_alive(self, period):
        """From now on every member sends a heartbeat so often, in seconds."""
        self.heartbeat_every, self.next_heartbeat = period / len(self.members), time.monotonic()

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

    # Sockets

    def join_next(self, member):
        topic, config = member.to_join.popleft()
        member.ref += 1
        # Row changes are live when the second answer says so.
        member.owed = 2 if config.get("postgres_changes") else 1
        ref = str(member.ref)
        self.send(member, message(topic, "phx_join", {"config": config}, ref, ref))

    def turn(self, timeout):
        is_open = super().turn(timeout)
        while self.heartbeat_every and time.monotonic() >= self.next_heartbeat:
            self.send(self.members[self.next_member], message("phoenix", "heartbeat", {}, "0", None))
            self.next_member = (self.next_member + 1) % len(self.members)
            self.next_heartbeat += self.heartbeat_every
        return is_open

    def take(self, member, start, end):
        now, taken = time.monotonic_ns(), start
        for match in (ANSWER if member.owed else NUMBER).finditer(self.buffer, start, end):
            taken = match.end()
            if member.owed:
                self.answered(member, match[0])
            else:
                number = int(match[1])
                self.disorder += number <= member.last
                member.last = number
                self.delivered += 1
                self.numbers.append(number)
                self.delays.append(now - number)
        return max(taken, end - OVERLAP)

    def answered(self, member, what):
        if what == b'"status":"error"':
            sys.exit("the hub refused a join")
        member.owed -= 1
        if member.owed == 0 and member.to_join:
            self.join_next(member)
        elif member.owed == 0:
            self.joining -= 1


def broadcast(topic, number, filler):
    return frame(TEXT, f'["1",null,"{topic}","broadcast",{{"type":"broadcast","event":"m","payload":{{"n":"{number}",'
                       f'"x":"{filler}"}}}}]'.encode())


if __name__ == "__main__":
    RoomCrowd(int(sys.argv[1]), sys.argv[2]).serve()
