"""One client app: its socket, its heartbeat, its channels, as its library runs them.

An emulator sends what the library sends, waits as it waits (on a `Clock`), and has its ways to get stuck as state: `freezes`,
`Channel.left_by_itself`, `thrown`, `gave_up`.
"""

import asyncio
import json
import time
import urllib.parse

from clients.channel import Channel, Wishes
from clients.clock import Clock
from clients.frames import Undecodable, read
from support.deadline import patience
from support.websocket import BINARY, TEXT, Closed, Refused, WebSocket

#: What an attempt to connect fails with where nobody listens, or whoever does ends at once.
UNREACHABLE = (OSError, asyncio.IncompleteReadError, Refused, TimeoutError)


#: Seconds that an answer to a heartbeat has at least, however quickly the client's time goes by: the machine may be busy.
LEAST = 3


class Thrown(Exception):
    """The library throws this at its app."""


class Emulator:
    #: As the page of compatibility has it: name, version, and which sources were read.
    name = version_read = sources = ""
    #: Of the protocol.
    version = 2
    #: Seconds between heartbeats.
    heartbeat = 25
    #: Seconds before the attempts to connect again; the last one for all that follow.
    reconnect_after = (1, 2, 5, 10)
    make_channel = Channel
    #: Whether its list keeps members who left while it was away: a state takes none out of it.
    keeps_absent = False
    #: Of `broadcasts`, `presence`, `private channels` and `tokens`: what the library does not have, with the reason.
    lacks = {}
    #: Stories that end badly by the client's own doing, with the reason; a test holds them against what happens.
    known = {}

    def __init__(self, port, apikey, token=None, clock=None):
        self.port, self.apikey, self.token = port, apikey, token
        self.clock = clock or Clock()
        self.socket = None
        self.is_open = self.is_wanted = False
        self.channels = {}
        self.pending_heartbeat = None
        self.sent = []  # frames, as they were encoded
        self.log = []  # frames that came, for whoever looks at the client from outside
        self.freezes = []  # frames that kept the read loop from all others
        self.thrown = []
        self.gave_up = False
        self._refs = 0
        self._tasks = set()
        self._asked = {}
        self._beat_at = 0.0
        self._runs = asyncio.Event()
        self._runs.set()

    @property
    def is_frozen(self):
        """Whether its read loop waits for what only the loop can bring."""
        return False

    # The app

    async def connect(self):
        self.is_wanted = True
        await self.open()

    def channel(self, topic, wishes=None):
        topic = self.full_topic(topic)
        channel = self.channels[topic] = self.make_channel(self, topic, wishes or Wishes())
        return channel

    def full_topic(self, topic):
        return f"realtime:{topic}"

    def set_token(self, token):
        self.token = token
        for channel in list(self.channels.values()):
            channel.token_changed(token)

    def sign_out(self):
        """The libraries go on with the project's key."""
        self.set_token(self.apikey)

    def freeze(self):
        """The operating system takes the app off the processor: it reads nothing, and no timer of it runs."""
        self._runs.clear()
        if self.socket:
            self.socket.writer.transport.pause_reading()

    def thaw(self):
        self._runs.set()
        if self.socket and not self.socket.writer.transport.is_closing():
            self.socket.writer.transport.resume_reading()

    async def close(self):
        self.is_wanted = self.is_open = False
        self.thaw()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.socket:
            await self.socket.close()

    async def settled(self):
        """All that the hub had to say before this call has come. Not the library's: its ref is one that no library makes."""
        ref = f"kit:{len(self._asked)}"
        answered = self._asked[ref] = asyncio.Event()
        self.write({"topic": "phoenix", "event": "heartbeat", "payload": {}, "ref": ref, "join_ref": None})
        async with patience():
            await answered.wait()

    # The socket

    def query(self):
        return {"apikey": self.apikey, "vsn": f"{self.version}.0.0"}

    def headers(self):
        return {}

    async def open(self):
        socket = await WebSocket.open(self.port, f"/realtime/v1/websocket?{urllib.parse.urlencode(self.query())}", self.headers())
        self.socket, self.is_open, self.pending_heartbeat = socket, True, None
        self.start(self._read(socket))
        self.start(self._beat(socket))
        self.opened()

    def opened(self):
        for channel in list(self.channels.values()):
            channel.socket_opened()

    async def _read(self, socket):
        try:
            while True:
                opcode, data = await socket.receive()
                await self._runs.wait()
                try:
                    frame = read(self.version, opcode, data)
                except Undecodable as error:
                    self.thrown.append(str(error))
                    continue
                if frame.ref in self._asked:
                    self._asked[frame.ref].set()
                    continue
                self.log.append(frame)
                await self.receive(frame)
        except Closed as end:
            await self._runs.wait()
            self.lost(socket, end.code)
        except Thrown as error:
            self.thrown.append(str(error))

    async def receive(self, frame):
        if frame.ref is not None and frame.ref == self.pending_heartbeat:
            self.pending_heartbeat = None
        channel = self.channels.get(frame.topic)
        if channel:
            await channel.receive(frame)

    def lost(self, socket, code):
        if socket is not self.socket:
            return
        self.is_open, self.socket = False, None
        socket.writer.close()
        for channel in list(self.channels.values()):
            channel.socket_lost()
        if self.is_wanted and self.comes_back(code):
            self.start(self._reconnect())

    def comes_back(self, code):
        """Whether it connects again after this close code."""
        return True

    async def _reconnect(self):
        attempt = 0
        while self.is_wanted and not self.is_open:
            await self.clock.wait(self.reconnect_after[min(attempt, len(self.reconnect_after) - 1)])
            await self._runs.wait()
            attempt += 1
            try:
                await self.open()
            except UNREACHABLE:
                continue

    def drop(self):
        """The library gives its socket up."""
        socket = self.socket
        if socket:
            self.lost(socket, None)

    # Heartbeats

    async def _beat(self, socket):
        while socket is self.socket:
            await self.clock.wait(self.heartbeat)
            await self._runs.wait()
            if socket is not self.socket:
                return
            if self.pending_heartbeat is None:
                self._beat_at = time.monotonic()
                self.send_heartbeat()
            elif time.monotonic() - self._beat_at >= LEAST:
                self.heartbeat_failed()

    def send_heartbeat(self):
        self.pending_heartbeat = self.make_ref()
        self.push("phoenix", "heartbeat", {}, self.pending_heartbeat)

    def heartbeat_failed(self):
        self.drop()

    # Sending

    def make_ref(self):
        self._refs += 1
        return str(self._refs)

    def push(self, topic, event, payload, ref=None, join_ref=None):
        self.write({"topic": topic, "event": event, "payload": payload, "ref": ref, "join_ref": join_ref})

    def write(self, frame):
        """Encodes and sends it; what is sent while there is no socket is gone."""
        form = self.form(frame)
        if not frame["ref"] or not str(frame["ref"]).startswith("kit:"):
            self.sent.append(form)
        if self.socket:
            self.socket.send(TEXT, json.dumps(form))

    def form(self, frame):
        if self.version == 1:
            return frame
        return [frame[key] for key in ("join_ref", "ref", "topic", "event", "payload")]

    def send_binary(self, data):
        self.sent.append(data)
        if self.socket:
            self.socket.send(BINARY, data)

    # Tasks

    def start(self, coroutine):
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task):
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self.thrown.append(f"{type(error).__name__}: {error}")
