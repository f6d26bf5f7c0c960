"""supabase-realtime-rs for Rust.

Read: scaraude/supabase-realtime-rs 3de2771 and before: channel/core.rs, client/client.rs, messaging/router.rs.

A channel is `Joined` when its join has been sent, whatever is answered, and stays it without a socket: `resubscribe_all_channels` finds nothing to do.
Broadcasts go to a topic of their own (`TOPIC:broadcast`), which nobody has joined on either server. A token is set once, when the client is made.
"""

import uuid

from clients.channel import Channel, State
from clients.emulator import Emulator

NEVER_REJOINS = "takes a channel for joined without a socket, so it does not join again"
NO_TOKENS = "its token is fixed when it is made"


class RustChannel(Channel):
    def join(self):
        self.join_ref = self.client.make_ref()
        self.client.push(self.topic, "phx_join", self.join_payload(), self.client.make_ref(), self.join_ref)
        self.state = State.JOINED
        self.report("SUBSCRIBED")

    def config(self):
        wishes = self.wishes
        rows = {"postgres_changes": wishes.rows} if wishes.rows else {}
        return {"broadcast": {"self": False, "ack": wishes.ack}, "presence": {"key": wishes.presence or None, "enabled": bool(wishes.presence)},
                "private": wishes.is_private, **rows}

    def broadcast(self, event, payload):
        self.client.push(f"{self.topic}:broadcast", event, {"type": "broadcast", "payload": payload})

    def track(self, payload):
        self.client.push(self.topic, "presence", {"type": "presence", "event": "track", "payload": payload}, str(uuid.uuid4()))

    def leave(self):
        self.client.push(self.topic, "phx_leave", {})
        self.state = State.CLOSED

    def token_changed(self, token):
        """Nobody is told."""

    def row_came(self, payload):
        """Found by schema, table and event; an id has 32 bits."""
        assert all(id < 1 << 31 for id in payload["ids"]), "an id has to fit into an i32"
        self.show_row(payload["data"])

    def is_mine(self, frame):
        return True

    def close(self):
        """`phx_close` and `phx_error` are events like others."""

    def errored(self, payload):
        """The same."""

    def socket_lost(self):
        """It is still called joined."""

    def socket_opened(self):
        """So it is not joined."""


class Rust(Emulator):
    name, version_read, sources = "supabase-realtime-rs (Rust)", "3de2771", "scaraude/supabase-realtime-rs, channel 3de2771"
    version = 1
    make_channel = RustChannel
    lacks = {"broadcasts": "sends them to a topic of its own, which nobody has joined", "tokens": NO_TOKENS}
    known = {story: NEVER_REJOINS for story in ("background", "network change", "hub restart", "drain")}

    def query(self):
        return {"apikey": self.apikey}

    def form(self, frame):
        return {key: value for key, value in frame.items() if value is not None}
