"""Subscribers to rows who come back whenever they are cut, and remember which rows they were brought."""

import json
import re
import sys
import time

from fleet import OPEN, Client, Fleet
from hub import token
from websocket import message

RETRY = 0.25  # seconds; all at once as soon as there is a hub
REJOIN = 1.0
STAMP = re.compile(rb'\\?"stamp\\?":\\?"(\d+)')


class Subscriber(Client):
    """`seen` has when each row first came, by its number."""
    __slots__ = ("conversation", "refs", "is_joined", "seen", "repeats", "joined_at")

    def __init__(self, number, conversation):
        super().__init__(number, token(f"user {number}"))
        self.conversation, self.refs, self.is_joined = conversation, 0, False
        self.seen, self.repeats, self.joined_at = {}, 0, 0


class StormCrowd(Fleet):
    def __init__(self, port, first, count, conversations):
        super().__init__(port)
        self.waiting = []  # (when, subscriber), oldest first
        self.reconnects = self.joined = 0
        self.subscribers = [Subscriber(number, conversations[number % len(conversations)])
                            for number in range(first, first + count)]

    def serve(self):
        for subscriber in self.subscribers:
            self.dial(subscriber)
            # The first time gently; what is measured is the second.
            self.turn(0.0005)
        super().serve()

    # Commands

    def state(self):
        return super().state() | {"joined": self.joined, "reconnects": self.reconnects,
                                  "last": max((subscriber.joined_at for subscriber in self.subscribers), default=0)}

    def judge(self, rows, missed):
        """What is lost of the rows, and when the last came of those that were missed; both by conversation."""
        lost = repeats = 0
        examples, times = [], []
        for subscriber in self.subscribers:
            gone = set(rows.get(subscriber.conversation, ())) - subscriber.seen.keys()
            if gone and len(examples) < 5:
                examples.append([subscriber.number, sorted(gone)[:5]])
            lost += len(gone)
            repeats += subscriber.repeats
            wanted = missed.get(subscriber.conversation, ())
            if wanted and not gone:
                times.append(max(subscriber.seen[number] for number in wanted))
        return {"lost": lost, "examples": examples, "repeats": repeats, "caught_up": max(times, default=0)}

    # Sockets

    def turn(self, timeout):
        now = time.monotonic()
        ready = [subscriber for at, subscriber in self.waiting if at <= now]
        if ready:
            self.waiting = [entry for entry in self.waiting if entry[0] > now]
        for subscriber in ready:
            if subscriber.socket is None:
                self.dial(subscriber)
            elif subscriber.phase == OPEN and not subscriber.is_joined:
                self.join(subscriber)
        return super().turn(timeout)

    def opened(self, subscriber):
        self.join(subscriber)

    def join(self, subscriber):
        subscriber.refs += 1
        ref = str(subscriber.refs)
        binding = {"event": "INSERT", "schema": "public", "table": "roost_load",
                   "filter": f"conversation_id=eq.{subscriber.conversation}"}
        self.send(subscriber, message(f"realtime:{subscriber.conversation}", "phx_join",
                                      {"config": {"postgres_changes": [binding]}}, ref, ref))

    def took(self, subscriber, start, end):
        text = bytes(self.view[start:end])
        if b'"postgres_changes",{"ids"' in text:
            number = int(STAMP.search(text).group(1))
            if not subscriber.is_joined:
                self.errors["change before the reply"] += 1
            elif number in subscriber.seen:
                subscriber.repeats += 1
            else:
                subscriber.seen[number] = time.monotonic()
        elif b'"phx_reply"' in text and not subscriber.is_joined:
            if b'"status":"ok"' in text:
                subscriber.is_joined, subscriber.joined_at = True, time.monotonic()
                self.joined += 1
            else:
                self.errors[f"refused: {json.loads(text)[4]['response'].get('reason', '')[:60]}"] += 1
                self.waiting.append((time.monotonic() + REJOIN, subscriber))
        elif b'"phx_error"' in text:
            self.errors["phx_error"] += 1
            if subscriber.is_joined:
                self.left(subscriber)
                self.waiting.append((time.monotonic() + REJOIN, subscriber))

    def lost(self, subscriber, why):
        super().lost(subscriber, why)
        if subscriber.is_joined:
            self.left(subscriber)
            self.reconnects += 1
        self.waiting.append((time.monotonic() + RETRY, subscriber))

    def left(self, subscriber):
        subscriber.is_joined = False
        self.joined -= 1


if __name__ == "__main__":
    StormCrowd(*map(int, sys.argv[1:4]), sys.argv[4].split(",")).serve()
