"""realtime-csharp 7.3.0.

Read: supabase-community/realtime-csharp 8f34dfe (2026-07-21): RealtimeSocket.cs, RealtimeChannel.cs, Channel/Push.cs.

It joins without a token and sends it when it has the `ok`. With row changes it is joined when a `system` message says `ok`; one that says `error`
before throws out of `Subscribe()`. A `presence_diff` that comes while a join is under way counts as its answer (Push.cs), and the real answer is
then passed over. Its heartbeats are never checked.
"""

import uuid

from clients.channel import Channel, State
from clients.emulator import Emulator, Thrown

NO_PRIVATE = "its joins have no `private`"


class CSharpChannel(Channel):
    is_answered = True

    def join_payload(self):
        wishes = self.wishes
        presence = {"presence": {"key": wishes.presence}} if wishes.presence else {}
        return {"config": {"broadcast": {"self": False, "ack": wishes.ack}, **presence, "postgres_changes": wishes.rows}}

    def join(self):
        self.is_answered = False
        super().join()

    def push(self, event, payload, answered=None):
        # Only a join has a join_ref; a leave has no payload.
        ref = self.client.make_ref()
        self.client.push(self.topic, event, None if event == "phx_leave" else payload, ref)

    def leave(self):
        """Closed at once: nothing waits for the answer."""
        self.push("phx_leave", None)
        self.close()

    def token_changed(self, token):
        if self.state is State.JOINED:
            self.push("access_token", {"access_token": token})

    async def receive(self, frame):
        if frame.event == "presence_diff" and not self.is_answered:
            self.is_answered = True
            self.answers.pop(self.join_ref, None)
        await super().receive(frame)

    def join_answered(self, payload):
        if self.is_answered:
            return
        self.is_answered = True
        super().join_answered(payload)

    def joined(self, response):
        """Bindings are found by their content, not by their place."""
        self.ids = [entry["id"] for entry in response.get("postgres_changes") or []]
        if self.client.token:
            self.push("access_token", {"access_token": self.client.token})
        if not self.wishes.rows:
            self.is_live()

    def is_live(self):
        self.state, self.tries = State.JOINED, 0
        self.report("SUBSCRIBED")

    def told(self, payload):
        super().told(payload)
        if self.state is not State.JOINING:
            return
        if payload["status"] == "ok":
            self.is_live()
        else:
            self.state = State.ERRORED
            raise Thrown(f"Subscribe(): {payload['message']}")

    def is_mine(self, frame):
        return True

    def presence_state(self, payload):
        self.seen.show_presence({key: value["metas"] for key, value in payload.items()})

    def presence_diff(self, payload):
        self.apply_diff(payload)

    def errored(self, payload):
        """`phx_error` is no event that it knows."""

    def close(self):
        self.state = State.CLOSED


class CSharp(Emulator):
    name, version_read, sources = "realtime-csharp (C#)", "7.3.0", "supabase-community/realtime-csharp 8f34dfe, 2026-07-21"
    version, heartbeat = 1, 20
    # Websocket.Client: at once, and 30 s after an attempt that failed.
    reconnect_after = (0, 30)
    make_channel = CSharpChannel
    lacks = {"private channels": NO_PRIVATE}

    def query(self):
        return {"token": self.apikey, "apikey": self.apikey, "vsn": "1.0.0"}

    def make_ref(self):
        return str(uuid.uuid4())

    def form(self, frame):
        # Empty members are left out, but for the payload.
        return {key: value for key, value in frame.items() if value is not None or key in ("payload", "topic", "event")}

    def heartbeat_failed(self):
        """Never asked."""
        self.send_heartbeat()
