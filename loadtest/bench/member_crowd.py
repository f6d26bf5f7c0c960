"""Members of channels, who join, track, type and leave on time.

Frames are counted, not decoded; what the first member was told of presence and typing is kept and handed over at the end."""

import collections
import json
import sys
import time

from fleet import Client, Fleet
from hub import token
from websocket import message

KINDS = (b'"presence_diff"', b'"presence_state"', b'"typing"', b'"typing_state"', b'"phx_reply"')


class Member(Client):
    __slots__ = ("topic",)

    def __init__(self, number, channels):
        super().__init__(number, token(f"user {number}"))
        self.topic = f"realtime:room {number % channels}"


class MemberCrowd(Fleet):
    """`watches`: members want lists, and track as soon as they join; otherwise they join, and track when they are told to."""

    def __init__(self, port, count, channels, watches):
        super().__init__(port)
        self.members, self.watches, self.open = [Member(number, channels) for number in range(count)], watches, 0
        self.agenda = collections.deque()  # (when, what, member), by time
        self.forget()

    def forget(self):
        """All counts begin anew."""
        self.frames, self.bytes_by_kind = collections.Counter(), collections.Counter()
        self.bytes = self.replies = 0
        self.errors.clear()
        self.kept = []
        self.latest = 0.0  # seconds that the last thing on the agenda was late, at worst

    def state(self):
        return super().state() | {
            "open": self.open, "replies": self.replies, "frames": self.frames,
            "bytes": self.bytes, "by_kind": self.bytes_by_kind, "to_do": len(self.agenda), "late": self.latest}

    # Commands

    def connect(self):
        for member in self.members:
            self.dial(member)
            # Those before are let in meanwhile, so that the hub's queue of connections does not overflow.
            self.turn(0)

    def join(self, rate):
        self.plan(self.joins, self.members, rate)

    def track(self, rate):
        self.plan(self.tracks, self.members, rate)

    def leave(self, rate):
        # The first member leaves last: it is the one who is asked what it saw.
        self.plan(self.leaves, reversed(self.members), rate)

    def type(self, rate, seconds):
        """Everybody in turn, so many times a second each, as somebody who types at an even pace."""
        began, pause = time.monotonic(), 1 / rate
        self.agenda.extend((began + pause * (turn + member.number / len(self.members)), self.types, member)
                           for turn in range(int(seconds * rate)) for member in self.members)

    def hand_over(self):
        return {"kept": self.kept}

    def plan(self, what, members, rate):
        began, pause = time.monotonic(), 1 / rate
        self.agenda.extend((began + pause * turn, what, member) for turn, member in enumerate(members))

    # What members say

    def joins(self, member):
        config = {"presence": {"key": f"member {member.number}", "enabled": self.watches}}
        self.send(member, message(member.topic, "phx_join", {"config": config}))
        if self.watches:
            self.tracks(member)

    def tracks(self, member):
        payload = {"user_id": f"member {member.number}", "name": "A name of some length", "online_at": "2026-01-01T00:00:00Z"}
        self.send(member, message(member.topic, "presence", {"type": "presence", "event": "track", "payload": payload}, "2"))

    def leaves(self, member):
        self.send(member, message(member.topic, "phx_leave", {}, "3"))

    def types(self, member):
        payload = {"typing": True, "user_id": f"member {member.number}", "name": "A name of some length"}
        self.send(member, message(member.topic, "broadcast", {"type": "broadcast", "event": "typing", "payload": payload}, None))

    # What they are told

    def opened(self, member):
        self.open += 1

    def turn(self, timeout):
        now = time.monotonic()
        while self.agenda and self.agenda[0][0] <= now:
            due, what, member = self.agenda.popleft()
            self.latest = max(self.latest, now - due)
            what(member)
        return super().turn(min(timeout, max(0, self.agenda[0][0] - now)) if self.agenda else timeout)

    def took(self, member, start, end):
        for kind in KINDS:
            if self.buffer.find(kind, start, start + 96) >= 0:
                name = kind.decode().strip('"')
                self.frames[name] += 1
                self.bytes_by_kind[name] += end - start
                if name != "phx_reply":
                    if member.number == 0:
                        self.kept.append(json.loads(self.buffer[start:end]))
                    return
                self.replies += 1
                if self.buffer.find(b'"status":"ok"', start, end) < 0:
                    self.errors[self.buffer[start:end].decode()[:200]] += 1
                return


if __name__ == "__main__":
    MemberCrowd(*map(int, sys.argv[1:4]), watches=sys.argv[4] == "watch").serve()
