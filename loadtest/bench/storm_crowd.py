"""Thousands of sockets of one process that come back whenever they are cut; storm.py starts it and talks to it in JSON.

One epoll loop and no library: what the testers use of the machine, the hub lacks.
"""

import json
import os
import re
import resource
import select
import socket
import sys
import time

from crowd import token

RETRY = 0.25  # seconds; all at once as soon as there is a hub
REJOIN = 1.0
STAMP = re.compile(rb'\\?"stamp\\?":\\?"(\d+)')
CONNECTING, UPGRADING, JOINING, JOINED = range(4)


def masked(opcode, payload):
    """A client's frame; a mask of zeros leaves the payload as it is."""
    length = len(payload)
    size = bytes([0x80 | length]) if length < 126 else b"\xFE" + length.to_bytes(2, "big")
    return bytes([0x80 | opcode]) + size + b"\0\0\0\0" + payload


class Subscriber:
    __slots__ = ("number", "conversation", "request", "refs", "socket", "state", "buffer", "seen", "repeats",
                 "joined_at")

    def __init__(self, number, conversation, request):
        self.number, self.conversation, self.request = number, conversation, request
        self.refs, self.socket, self.state, self.buffer = 0, None, None, b""
        self.seen, self.repeats, self.joined_at = {}, 0, None

    def join(self):
        self.refs += 1
        ref = str(self.refs)
        binding = {"event": "INSERT", "schema": "public", "table": "roost_load",
                   "filter": f"conversation_id=eq.{self.conversation}"}
        frame = [ref, ref, f"realtime:{self.conversation}", "phx_join", {"config": {"postgres_changes": [binding]}}]
        return masked(1, json.dumps(frame).encode())


class Crowd:
    def __init__(self, port, first, count, conversations):
        self.port = port
        self.epoll = select.epoll()
        self.by_file = {}
        self.waiting = []  # (when, subscriber), oldest first
        self.errors = {}
        self.reconnects = self.joined = 0
        self.subscribers = []
        for number in range(first, first + count):
            request = (f"GET /realtime/v1/websocket?vsn=2.0.0&apikey={token(f'user {number}')} HTTP/1.1\r\n"
                       f"Host: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                       "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n").encode()
            self.subscribers.append(Subscriber(number, conversations[number % len(conversations)], request))

    # Commands

    def run(self):
        self.epoll.register(0, select.EPOLLIN)
        for subscriber in self.subscribers:
            self.connect(subscriber)
            # The first time gently; what is measured is the second.
            self.turn(0.0005)
        while self.turn(0.02):
            pass

    def command(self, line):
        command = json.loads(line)
        if command["do"] == "state":
            answer = {"joined": self.joined, "reconnects": self.reconnects, "errors": self.errors,
                      "cpu": time.process_time(), "last": max((s.joined_at or 0 for s in self.subscribers), default=0)}
        else:
            answer = self.verdict(command["rows"], command["missed"])
        print(json.dumps(answer), flush=True)

    def verdict(self, rows, missed):
        lost = repeats = delivered = 0
        examples, times = [], []
        for subscriber in self.subscribers:
            due = set(rows.get(subscriber.conversation, ()))
            gone = due - subscriber.seen.keys()
            if gone and len(examples) < 5:
                examples.append([subscriber.number, sorted(gone)[:5]])
            lost += len(gone)
            delivered += len(subscriber.seen) + subscriber.repeats
            repeats += subscriber.repeats
            wanted = missed.get(subscriber.conversation, ())
            if wanted and not gone:
                times.append(max(subscriber.seen[number] for number in wanted))
        return {"lost": lost, "examples": examples, "repeats": repeats, "delivered": delivered,
                "caught_up": max(times, default=0)}

    # Sockets

    def connect(self, subscriber):
        made = socket.socket()
        made.setblocking(False)
        made.connect_ex(("127.0.0.1", self.port))
        subscriber.socket, subscriber.state, subscriber.buffer = made, CONNECTING, b""
        self.by_file[made.fileno()] = subscriber
        self.epoll.register(made.fileno(), select.EPOLLOUT)

    def lost(self, subscriber, why):
        if subscriber.state == JOINED:
            self.joined -= 1
            self.reconnects += 1
        self.errors[why] = self.errors.get(why, 0) + 1
        del self.by_file[subscriber.socket.fileno()]
        subscriber.socket.close()
        subscriber.socket = subscriber.state = None
        self.waiting.append((time.monotonic() + RETRY, subscriber))

    def turn(self, timeout):
        now = time.monotonic()
        ready = [subscriber for at, subscriber in self.waiting if at <= now]
        if ready:
            self.waiting = [entry for entry in self.waiting if entry[0] > now]
        for subscriber in ready:
            if subscriber.socket is None:
                self.connect(subscriber)
            elif subscriber.state == JOINING:
                self.send(subscriber, subscriber.join())
        for file, event in self.epoll.poll(timeout, 4096):
            if file == 0:
                line = sys.stdin.readline()
                if not line:
                    return False
                self.command(line)
                continue
            subscriber = self.by_file.get(file)
            if subscriber is None:
                continue
            if event & (select.EPOLLERR | select.EPOLLHUP) and subscriber.state == CONNECTING:
                self.lost(subscriber, "not reached")
            elif subscriber.state == CONNECTING:
                subscriber.state = UPGRADING
                self.epoll.modify(file, select.EPOLLIN)
                self.send(subscriber, subscriber.request)
            else:
                self.read(subscriber)
        return True

    def send(self, subscriber, data):
        try:
            subscriber.socket.send(data)
        except OSError:
            pass  # told by the next read

    def read(self, subscriber):
        try:
            data = subscriber.socket.recv(262144)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.lost(subscriber, "cut")
            return
        subscriber.buffer += data
        if subscriber.state == UPGRADING:
            head, end, rest = subscriber.buffer.partition(b"\r\n\r\n")
            if not end:
                return
            if b" 101 " not in head[:20]:
                self.lost(subscriber, head[:40].decode("latin-1"))
                return
            subscriber.state, subscriber.buffer = JOINING, rest
            self.send(subscriber, subscriber.join())
        self.frames(subscriber)

    def frames(self, subscriber):
        buffer, position = subscriber.buffer, 0
        while len(buffer) - position >= 2:
            opcode, length, head = buffer[position] & 0x0F, buffer[position + 1], 2
            if length == 126:
                length, head = int.from_bytes(buffer[position + 2:position + 4], "big"), 4
            elif length == 127:
                length, head = int.from_bytes(buffer[position + 2:position + 10], "big"), 10
            if len(buffer) - position < head + length:
                break
            payload = buffer[position + head:position + head + length]
            position += head + length
            if opcode == 1:
                self.take(subscriber, payload)
            elif opcode == 9:
                self.send(subscriber, masked(10, payload))
            elif opcode == 8:
                self.send(subscriber, masked(8, payload))
                self.lost(subscriber, f"closed {int.from_bytes(payload[:2], 'big')}")
                return
        subscriber.buffer = buffer[position:]

    def take(self, subscriber, text):
        if b'"postgres_changes",{"ids"' in text:
            number = int(STAMP.search(text).group(1))
            if subscriber.state != JOINED:
                self.errors["change before the reply"] = self.errors.get("change before the reply", 0) + 1
            elif number in subscriber.seen:
                subscriber.repeats += 1
            else:
                subscriber.seen[number] = time.monotonic()
        elif b'"phx_reply"' in text and subscriber.state == JOINING:
            if b'"status":"ok"' in text:
                subscriber.state, subscriber.joined_at = JOINED, time.monotonic()
                self.joined += 1
            else:
                why = f"refused: {json.loads(text)[4]['response'].get('reason', '')[:60]}"
                self.errors[why] = self.errors.get(why, 0) + 1
                self.waiting.append((time.monotonic() + REJOIN, subscriber))
        elif b'"phx_error"' in text:
            self.errors["phx_error"] = self.errors.get("phx_error", 0) + 1
            if subscriber.state == JOINED:
                self.joined -= 1
                subscriber.state = JOINING
                self.waiting.append((time.monotonic() + REJOIN, subscriber))


if __name__ == "__main__":
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    os.environ.pop("PYTHONPATH", None)
    port, first, count = map(int, sys.argv[1:4])
    Crowd(port, first, count, sys.argv[4].split(",")).run()
