"""supabase_realtime for Elixir (realtime-ex).

Read: supabase-community/realtime-ex 12af884, 15fdaab and 4a4f9ab (2026-04-07), lib/supabase/realtime: connection.ex, channel/registry.ex, message.ex.

After a lost socket it connects again, and joins nothing. The ref of whatever it sent last is its channel's `join_ref`, so any error reply marks
the channel as errored. A `phx_close` whose payload has no `status` ends the process that keeps the channels.
"""

import secrets

from clients.channel import Channel, State
from clients.emulator import Emulator, Thrown

NEVER_REJOINS = "connects again after a lost socket, and joins nothing: the app has to subscribe anew"
NOT_TOLD = "looks at no `phx_error`, so it takes a channel for joined that has ended"
NO_PRESENCE = "has no `track`"


class ElixirChannel(Channel):
    def config(self):
        return {"broadcast": {"ack": self.wishes.ack, "self": False}, "presence": {"key": self.wishes.presence},
                "private": self.wishes.is_private, "postgres_changes": self.wishes.rows}

    def join_payload(self):
        return {"config": self.config()}

    def join(self):
        self.state = State.JOINING
        self.push("phx_join", self.join_payload())

    def push(self, event, payload, answered=None):
        self.join_ref = self.client.make_ref()
        self.client.push(self.topic, event, payload, self.join_ref)

    def broadcast(self, event, payload):
        self.push("broadcast", {"type": "broadcast", "event": event, "payload": payload})

    def track(self, payload):
        """It has none."""

    async def receive(self, frame):
        match frame.event:
            case "phx_reply":
                if frame.ref == self.join_ref:
                    self.replied(frame.payload["status"])
            case "phx_close":
                if "status" not in frame.payload:
                    raise Thrown("MatchError in Channel.Registry")
            case "broadcast": self.broadcast_came(frame.payload)
            case "postgres_changes": self.show_row(frame.payload["data"])
            case "system": self.told(frame.payload)

    def replied(self, status):
        if status == "ok":
            if self.state is not State.JOINED:
                self.report("SUBSCRIBED")
            self.state = State.JOINED
        else:
            self.state = State.ERRORED
            self.report("CHANNEL_ERROR")

    def socket_lost(self):
        """The store goes on calling it joined."""

    def socket_opened(self):
        """Nothing is joined."""


class Elixir(Emulator):
    name, version_read, sources = "supabase_realtime (Elixir)", "4a4f9ab", "supabase-community/realtime-ex 12af884, 15fdaab, spring 2026"
    version, heartbeat = 1, 30
    # min(10 s, 2 s to the power of the attempts)
    reconnect_after = (1, 2, 4, 8, 10)
    make_channel = ElixirChannel
    lacks = {"presence": NO_PRESENCE}
    known = {story: NEVER_REJOINS for story in ("background", "network change", "hub restart", "drain")} | {
        "policy change": NOT_TOLD}

    def headers(self):
        return {"authorization": f"Bearer {self.token or self.apikey}"}

    def make_ref(self):
        return f"msg:{secrets.token_hex(10)}"

    def form(self, frame):
        return {key: value for key, value in frame.items() if key != "join_ref"}

    def heartbeat_failed(self):
        """Never looked at."""
        self.send_heartbeat()
