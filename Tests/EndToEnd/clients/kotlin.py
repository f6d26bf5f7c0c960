"""supabase-kt 3.7.0, every Android app.

Read: supabase-community/supabase-kt dbe9ba2 (2026-08-19), Realtime/src/commonMain: RealtimeImpl.kt, RealtimeChannelImpl.kt, event/*.kt.

**How it freezes**: one coroutine reads the socket and handles each frame before it reads the next. A frame with `payload.status == "error"`
(RErrorEvent), or a `phx_error`, is handled by waiting 2 s, sending `phx_leave`, and waiting until the channel is `UNSUBSCRIBED`, which only the
answer can bring, which nobody reads. The socket is deaf until its heartbeat fails.
"""

import asyncio
import struct

from clients.channel import Channel, State
from clients.emulator import Emulator
from support.websocket import CLOSE

#: Attempts to join after errors (Realtime.Config.maxAttempts).
MOST_ATTEMPTS = 5
REJOIN_DELAY = 2
FREEZES = ("freezes at any error until its heartbeat fails, and leaves the channel before that: what it misses meanwhile is not brought. It does "
           "not happen to an app that refreshes its token in time, as supabase-kt does")


class KotlinChannel(Channel):
    attempts = 0

    def config(self):
        rows = [{key: wish[key] for key in ("schema", "table", "filter", "event") if key in wish} for wish in self.wishes.rows]
        return {
            "broadcast": {"ack": self.wishes.ack, "self": False, "replication_ready": False},
            "presence": {"key": self.wishes.presence, "enabled": bool(self.wishes.presence)}, "postgres_changes": rows,
            "private": self.wishes.is_private,
        }

    def join(self):
        """ref and join_ref differ, and nothing waits for the answer."""
        self.join_ref = self.client.make_ref()
        self.state = State.JOINING
        self.client.push(self.topic, "phx_join", self.join_payload(), self.client.make_ref(), self.join_ref)

    def leave(self):
        self.state = State.LEAVING
        self.client.push(self.topic, "phx_leave", {}, self.client.make_ref())

    def token_changed(self, token):
        if self.state is State.JOINED:
            self.client.push(self.topic, "access_token", {"access_token": token}, self.client.make_ref())

    def socket_lost(self):
        """`disconnect` calls every channel unsubscribed; the next socket subscribes all of them."""
        self.state = State.CLOSED

    def socket_opened(self):
        if self.wanted:
            self.join()

    wanted = False

    def subscribe(self):
        self.wanted = True
        self.join()

    async def receive(self, frame):
        """The events in the order in which the library asks whose the frame is. No ref is looked at."""
        payload = frame.payload
        match frame.event:
            case "broadcast": self.broadcast_came(payload)
            case "phx_close": self.close()
            case _ if frame.event == "phx_error" or payload.get("status") == "error": await self.errored_inside(frame)
            case "postgres_changes": self.row_came(payload)
            case "phx_reply" if "postgres_changes" in payload["response"]: self.served(payload["response"]["postgres_changes"])
            case "presence_state": self.apply_state(payload)
            case "presence_diff": self.apply_diff(payload)
            case "system":
                self.told(payload)
                self.subscribed()
            case "phx_reply":
                if self.state is State.LEAVING:
                    self.state = State.CLOSED

    def served(self, entries):
        """Entries with keys that it does not know throw (kotlinx.serialization without ignoreUnknownKeys)."""
        for entry in entries:
            unknown = set(entry) - {"schema", "table", "filter", "event", "id"}
            assert not unknown, f"SerializationException: {unknown}"
        self.ids = [entry["id"] for entry in entries]
        self.subscribed()

    def subscribed(self):
        if self.state is not State.JOINED:
            self.report("SUBSCRIBED")
        self.state, self.attempts = State.JOINED, 0

    async def errored_inside(self, frame):
        self.attempts += 1
        self.report("CHANNEL_ERROR")
        if frame.event == "phx_reply" and (reason := frame.payload["response"].get("reason")):
            self.seen.refusals.append(reason)
        if self.attempts >= MOST_ATTEMPTS:
            self.state = State.CLOSED
            return
        await self.client.clock.wait(REJOIN_DELAY)
        self.leave()
        self.client.freezes.append(f"{frame.event} {frame.payload}")
        self.client.waits_for_itself = True
        await asyncio.Event().wait()

    def apply_state(self, payload):
        """Shown as joins; nothing that is missing in it is taken away."""
        self.apply_diff({"joins": payload, "leaves": {}})

    def apply_diff(self, payload):
        presence = {key: value for key, value in self.seen.presence.items() if key not in payload["leaves"]}
        self.seen.show_presence({**presence, **{key: value["metas"] for key, value in payload["joins"].items()}})


class Kotlin(Emulator):
    name, version_read, sources = "supabase-kt (Kotlin, Android)", "3.7.0", "supabase-community/supabase-kt dbe9ba2, 2026-08-19"
    heartbeat, reconnect_after = 15, (7,)
    make_channel = KotlinChannel
    keeps_absent = True
    known = {"token expiry": FREEZES}

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._refs = -1  # `makeRef` begins with "0"
        self.reader = None
        self.waits_for_itself = False

    @property
    def is_frozen(self):
        return self.reader is not None and self.waits_for_itself

    async def _read(self, socket):
        self.waits_for_itself = False
        self.reader = asyncio.current_task()
        await super()._read(socket)

    def drop(self):
        """The coroutine that reads is cancelled, frozen or not."""
        reader = self.reader
        super().drop()
        if reader and reader is not asyncio.current_task():
            reader.cancel()

    def sign_out(self):
        """`disconnectOnSessionLoss`: the socket is closed, and no channel is subscribed any more."""
        self.token = None
        self.is_wanted = False
        self.socket.send(CLOSE, struct.pack(">H", 1000))
        self.drop()
        for channel in self.channels.values():
            channel.wanted = False
