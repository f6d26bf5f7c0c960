"""Many sockets of one process in one epoll loop.

A crowd is a subclass in a script of its own, which `crowd.py` starts and talks to in lines of JSON: `do` names the method, the
rest are its arguments. The answer is the state, and what the method returned."""

import collections
import json
import select
import socket
import sys
import time

from websocket import CLOSE, PING, PONG, TEXT, frame, frames, upgrade

CONNECTING, UPGRADING, OPEN = range(3)


class Client:
    """One socket; `rest` is the beginning of what was not read to its end."""
    __slots__ = ("number", "token", "socket", "phase", "rest")

    def __init__(self, number, token):
        self.number, self.token, self.socket, self.phase, self.rest = number, token, None, None, b""


class Fleet:
    def __init__(self, port):
        self.port = port
        self.epoll = select.epoll()
        self.by_file = {}
        self.buffer = bytearray(1 << 22)  # what a socket reads, behind what it had kept; shared by all
        self.view = memoryview(self.buffer)
        self.bytes = 0
        self.errors = collections.Counter()

    # Commands

    def serve(self):
        """Serves sockets and commands until standard input ends."""
        self.epoll.register(0, select.EPOLLIN)
        while self.turn(0.02):
            pass

    def execute(self, line):
        command = json.loads(line)
        answer = getattr(self, command.pop("do"))(**command) or {}
        print(json.dumps(self.state() | answer), flush=True)

    def report(self):
        """The command that does nothing: its answer is the state."""

    def state(self):
        return {"errors": self.errors, "cpu": time.process_time()}

    # Sockets

    def dial(self, client):
        made = socket.socket()
        made.setblocking(False)
        made.connect_ex(("127.0.0.1", self.port))
        client.socket, client.phase, client.rest = made, CONNECTING, b""
        self.by_file[made.fileno()] = client
        self.epoll.register(made.fileno(), select.EPOLLOUT)

    def turn(self, timeout):
        """Waits for so many seconds until something can be read; False when standard input has ended."""
        for file, event in self.epoll.poll(timeout, 512):
            if file == 0:
                line = sys.stdin.readline()
                if not line:
                    return False
                self.execute(line)
            elif client := self.by_file.get(file):
                if client.phase != CONNECTING:
                    self.read(client)
                elif event & (select.EPOLLERR | select.EPOLLHUP):
                    self.lost(client, "not reached")
                else:
                    client.phase = UPGRADING
                    self.epoll.modify(file, select.EPOLLIN)
                    self.send(client, upgrade(self.port, client.token))
        return True

    def send(self, client, data):
        if client.socket is None:
            return
        try:
            try:
                sent = client.socket.send(data)
            except BlockingIOError:
                sent = 0
            if sent < len(data):
                client.socket.setblocking(True)
                client.socket.sendall(data[sent:])
                client.socket.setblocking(False)
        except OSError:
            pass  # The next read says that it is lost.

    def read(self, client):
        kept = len(client.rest)
        if kept == len(self.buffer):
            return self.lost(client, "sent a frame that is larger than the buffer")
        self.buffer[:kept] = client.rest
        try:
            count = client.socket.recv_into(self.view[kept:])
        except BlockingIOError:
            return
        except OSError:
            count = 0
        if not count:
            return self.lost(client, "cut")
        self.bytes += count
        start, end = 0, kept + count
        if client.phase == UPGRADING:
            start = self.buffer.find(b"\r\n\r\n", 0, end) + 4
            if start < 4:
                client.rest = bytes(self.view[:end])
                return
            if b" 101 " not in self.buffer[:20]:
                return self.lost(client, self.buffer[:40].decode("latin-1"))
            client.phase = OPEN
            self.opened(client)
        taken = self.take(client, start, end)
        client.rest = bytes(self.view[taken:end])

    # What a crowd makes of it

    def opened(self, client):
        """The hub has let a socket in."""

    def take(self, client, start, end):
        """Bytes came, and stand in the buffer there. Returns where those begin that are to be kept for the next time."""
        for opcode, begin, stop in frames(self.buffer, start, end):
            start = stop
            if opcode == TEXT:
                self.took(client, begin, stop)
            elif opcode == PING:
                self.send(client, frame(PONG, bytes(self.view[begin:stop])))
            elif opcode == CLOSE:
                payload = bytes(self.view[begin:stop])
                self.send(client, frame(CLOSE, payload))
                self.lost(client, f"closed {int.from_bytes(payload[:2], 'big')}")
                return end
        return start

    def took(self, client, start, end):
        """A text message came, and stands in the buffer there."""

    def lost(self, client, why):
        """A socket was not reached, refused or ended."""
        self.errors[why] += 1
        del self.by_file[client.socket.fileno()]
        client.socket.close()
        client.socket = client.phase = None
