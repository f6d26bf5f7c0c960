"""Members of channels in one process, who join, track, type and leave on time; members.py starts it and talks to it in JSON.

One epoll loop and no library: what the testers use of the machine, the hub lacks. Frames are counted, not decoded; what the
first member was told of presence and typing is kept and handed over at the end.
"""

import collections
import json
import os
import resource
import select
import socket
import sys
import time

from crowd import token
from storm_crowd import masked

KINDS = (b'"presence_diff"', b'"presence_state"', b'"typing"', b'"typing_state"', b'"phx_reply"')


class Member:
    __slots__ = ("number", "topic", "socket", "buffer", "isOpen")

    def __init__(self, number, topic):
        self.number, self.topic, self.socket, self.buffer, self.isOpen = number, topic, None, b"", False


class Crowd:
    def __init__(self, port, count, channels):
        self.port = port
        self.epoll = select.epoll()
        self.members = [Member(number, f"realtime:room {number % channels}") for number in range(count)]
        self.by_file = {}
        self.agenda = collections.deque()  # (when, what, member), by time
        self.open = 0
        self.forget()

    def forget(self):
        self.frames, self.bytes, self.replies, self.errors = collections.Counter(), 0, 0, collections.Counter()
        self.by_kind = collections.Counter()
        self.kept = []
        self.latest = 0.0  # how late the last thing on the agenda was done, at worst

    # Commands

    def run(self):
        self.epoll.register(0, select.EPOLLIN)
        while self.turn():
            pass

    def command(self, command):
        do = command["do"]
        if do == "connect":
            for member in self.members:
                self.connect(member)
        elif do in ("join", "track", "leave"):
            began, pause, what = time.monotonic(), 1 / command["rate"], getattr(self, do)
            # The first member leaves last: it is the one who is asked what it saw.
            members = reversed(self.members) if do == "leave" else self.members
            self.agenda.extend((began + pause * turn, what, member) for turn, member in enumerate(members))
        elif do == "type":
            # Everybody in turn, so many times a second each, as somebody who types at an even pace.
            began, pause = time.monotonic(), 1 / command["rate"]
            rounds = int(command["seconds"] * command["rate"])
            self.agenda.extend((began + pause * (turn + member.number / len(self.members)), self.type, member)
                               for turn in range(rounds) for member in self.members)
        elif do == "forget":
            self.forget()
        print(json.dumps({
            "open": self.open, "replies": self.replies, "errors": self.errors, "frames": self.frames,
            "bytes": self.bytes, "by_kind": self.by_kind, "to_do": len(self.agenda), "late": self.latest,
            "cpu": time.process_time(), "kept": self.kept if do == "hand over" else []}), flush=True)

    # What members say

    def join(self, member):
        config = {"presence": {"key": f"member {member.number}", "enabled": self.watches}}
        self.say(member, ["1", "1", member.topic, "phx_join", {"config": config}])
        if self.watches:
            self.track(member)

    #: Whether members want lists, and track as soon as they join; otherwise they join, and track when they are told to.
    watches = True

    def track(self, member):
        payload = {"user_id": f"member {member.number}", "name": "A name of some length", "online_at": "2026-01-01T00:00:00Z"}
        self.say(member, ["1", "2", member.topic, "presence", {"type": "presence", "event": "track", "payload": payload}])

    def leave(self, member):
        self.say(member, ["1", "3", member.topic, "phx_leave", {}])

    def type(self, member):
        payload = {"typing": True, "user_id": f"member {member.number}", "name": "A name of some length"}
        self.say(member, ["1", None, member.topic, "broadcast", {"type": "broadcast", "event": "typing", "payload": payload}])

    def say(self, member, frame):
        try:
            member.socket.send(masked(1, json.dumps(frame).encode()))
        except OSError as error:
            self.errors[type(error).__name__] += 1

    # Sockets

    def connect(self, member):
        member.socket = socket.create_connection(("127.0.0.1", self.port))
        member.socket.sendall((
            f"GET /realtime/v1/websocket?vsn=2.0.0&apikey={token(f'user {member.number}')} HTTP/1.1\r\n"
            f"Host: 127.0.0.1:{self.port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        member.socket.setblocking(False)
        self.by_file[member.socket.fileno()] = member
        self.epoll.register(member.socket.fileno(), select.EPOLLIN)

    def turn(self):
        now = time.monotonic()
        while self.agenda and self.agenda[0][0] <= now:
            due, what, member = self.agenda.popleft()
            self.latest = max(self.latest, now - due)
            what(member)
        pause = min(0.05, max(0, self.agenda[0][0] - now)) if self.agenda else 0.05
        for file, _ in self.epoll.poll(pause, 256):
            if file == 0:
                line = sys.stdin.readline()
                if not line:
                    return False
                self.command(json.loads(line))
            else:
                self.read(self.by_file[file])
        return True

    def read(self, member):
        try:
            data = member.socket.recv(1 << 20)
        except BlockingIOError:
            return
        except OSError as error:
            data = b""
            self.errors[type(error).__name__] += 1
        if not data:
            self.errors["closed"] += 1
            self.epoll.unregister(member.socket.fileno())
            return
        if not member.isOpen:
            head, end, data = (member.buffer + data).partition(b"\r\n\r\n")
            if not end:
                member.buffer = head
                return
            self.open += b" 101 " in head[:20]
            member.isOpen, member.buffer = True, b""
        self.bytes += len(data)
        if member.buffer:
            data = member.buffer + data
        position, end = 0, len(data)
        while end - position >= 2:
            opcode, length, head = data[position] & 0x0F, data[position + 1], 2
            if length == 126:
                length, head = int.from_bytes(data[position + 2:position + 4], "big"), 4
            elif length == 127:
                length, head = int.from_bytes(data[position + 2:position + 10], "big"), 10
            if end - position < head + length:
                break
            self.take(member, opcode, data, position + head, length)
            position += head + length
        member.buffer = data[position:]

    def take(self, member, opcode, data, start, length):
        if opcode == 9:
            member.socket.send(masked(10, data[start:start + length]))
            return
        for kind in KINDS:
            if data.find(kind, start, start + 96) >= 0:
                name = kind.decode().strip('"')
                self.frames[name] += 1
                self.by_kind[name] += length
                self.replies += name == "phx_reply"
                if member.number == 0 and name != "phx_reply":
                    self.kept.append(json.loads(data[start:start + length]))
                if name == "phx_reply" and data.find(b'"status":"ok"', start, start + length) < 0:
                    self.errors[data[start:start + length].decode()[:200]] += 1
                return


if __name__ == "__main__":
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    os.environ.pop("PYTHONPATH", None)
    Crowd.watches = sys.argv[4] == "watch"
    Crowd(*map(int, sys.argv[1:4])).run()
