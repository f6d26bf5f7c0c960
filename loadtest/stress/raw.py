"""A client that speaks the protocol by hand and behaves as the Supabase clients do (wire-protocol A3, A10)."""

import asyncio
import json

from channel import Channel
from journal import Journal
from websocket import VERSION_1, VERSION_2
from wire import Wire

HEARTBEAT = 25
PING, PONG_DEADLINE = 20, 20


class RawClient:
    """Version 2 is realtime-js: an unanswered heartbeat ends the socket. Version 1 is realtime-py: a ping does."""

    RECONNECT_DELAYS = (1, 2, 5, 10)

    def __init__(self, name, version, port, token, habit="counts"):
        self.habit = habit  # "counts": refs go on over reconnects; "anew": they begin with 1; "page": it is reloaded, too
        self.name, self.version, self.port, self.token = name, version, port, token
        self._pace = None
        self.channels = {}
        self.journal = Journal()
        self.tamper = None  # see selftest.py
        self.is_open = False
        self._wire = None
        self._deaf = []  # sockets that it gave up on without closing them
        self._ended = False
        self._refs, self._tries = 0, 0
        self._unanswered = None  # the heartbeat's ref
        self._timers = {}
        self._retry = None

    def add(self, topic, subscription, on_live):
        self.channels[topic] = Channel(self, topic, subscription, on_live)

    @property
    def subscriptions(self):
        return [channel.subscription for channel in self.channels.values()]

    @property
    def is_settled(self):
        return self.is_open and all(channel.state == "joined" for channel in self.channels.values())

    # Faults

    def cut(self):
        if self._wire:
            self._wire.reset()

    def pause(self):
        if self._wire:
            self._wire.pause()
        return self._wire

    def resume(self, wire):
        wire.resume()

    def abandon(self):
        """Half-open: the old socket stays, unread and unanswered, and a new one is opened."""
        if not self._wire or not self.is_open:
            return
        self._wire.pause()
        self._wire.forget()
        self._deaf.append(self._wire)
        self.lost("abandoned")

    def reload(self):
        """As a browser does: the socket is closed with 1001, and what comes then knows nothing of before."""
        if self.habit != "page" or not self._wire or not self.is_open:
            return
        wire = self._wire
        wire.forget()
        wire.close(1001)
        self._refs = 0
        for channel in self.channels.values():
            channel.subscription.begin_anew()
        self.lost("reloaded", at_once=True)

    def slow_down(self, pace):
        self._pace = pace
        if self._wire:
            self._wire.slow_down(pace)

    # Life

    def start(self):
        self._retry = asyncio.ensure_future(self._connect())

    async def _connect(self):
        try:
            self._wire = await Wire.open(self, self.port, self.token, VERSION_2 if self.version == 2 else VERSION_1)
            self._wire.slow_down(self._pace)
        except OSError as error:
            self.lost(f"not reached: {type(error).__name__}")

    def end(self):
        self._ended = True
        if self._retry:
            self._retry.cancel()
        self._stop_timers()
        for channel in self.channels.values():
            channel.disconnected()
        for wire in self._deaf:
            wire.reset()
        if self._wire:
            self._wire.forget()
            self._wire.close()

    def opened(self):
        self.journal.note("connected")
        self.is_open, self._tries = True, 0
        if self.habit == "anew":
            self._refs = 0
        self._after(HEARTBEAT, self._beat)
        if self.version == 1:
            self._beat_now()
            self._after(PING, self._ping)
        for channel in self.channels.values():
            if channel.state == "errored":
                channel.join()

    def lost(self, reason, at_once=False):
        was_open, self.is_open, self._wire = self.is_open, False, None
        self._stop_timers()
        if self._ended:
            return
        self.journal.note("lost" if was_open else "not connected", reason)
        for channel in self.channels.values():
            channel.disconnected()
        delay = 0 if at_once else self.RECONNECT_DELAYS[min(self._tries, len(self.RECONNECT_DELAYS) - 1)]
        self._tries += 1
        self._retry = asyncio.ensure_future(self._reconnect(delay))

    async def _reconnect(self, delay):
        await asyncio.sleep(delay)
        await self._connect()

    # Frames

    def ref(self):
        self._refs += 1
        return str(self._refs)

    def push(self, topic, event, payload, ref, join_ref=None):
        if not self._wire:
            return
        frame = ([join_ref, ref, topic, event, payload] if self.version == 2 else
                 {"topic": topic, "event": event, "payload": payload, "ref": ref, "join_ref": join_ref})
        self._wire.send(json.dumps(frame))

    def took(self, text):
        frame = json.loads(text)
        if self.version == 2:
            join_ref, ref, topic, event, payload = frame
        else:
            ref, topic, event, payload = frame["ref"], frame["topic"], frame["event"], frame["payload"]
            # Here the end of a channel names its join in this place.
            join_ref = ref if event in ("phx_close", "phx_error") else None
        if topic == "phoenix":
            if ref == self._unanswered:
                self._unanswered = None
            return
        channel = self.channels.get(topic)
        if channel is None:
            return
        if self.tamper and event == "postgres_changes" and channel.accepts(payload):
            for changed in self.tamper(channel, payload):
                channel.took(event, changed, ref, join_ref)
        else:
            channel.took(event, payload, ref, join_ref)

    # Signs of life

    def _beat(self):
        if self.version == 2 and self._unanswered is not None:
            self._give_up("heartbeat timeout")
            return
        self._beat_now()
        self._after(HEARTBEAT, self._beat)

    def _beat_now(self):
        self._unanswered = self.ref() if self.version == 2 else None
        self.push("phoenix", "heartbeat", {}, self._unanswered)

    def _ping(self):
        self._wire.ping()
        self._after(PONG_DEADLINE, self._without_pong)

    def _without_pong(self):
        self._give_up("no pong")

    def ponged(self):
        timer = self._timers.pop("_without_pong", None)
        if timer:
            timer.cancel()
            self._after(PING, self._ping)

    def _give_up(self, why):
        wire = self._wire
        wire.forget()
        wire.close()
        self.lost(why)

    def _after(self, delay, call):
        self._timers[call.__name__] = asyncio.get_running_loop().call_later(delay, call)

    def _stop_timers(self):
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._unanswered = None
