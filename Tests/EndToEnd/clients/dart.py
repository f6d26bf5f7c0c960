"""realtime_client (Dart, every Flutter app) 2.13.

Read: supabase/supabase-flutter realtime_client-v2.9.1; what 2.13 sends stands in the notes of protocol-2026. Its broadcasts are text, with the
payload's own keys beside `type` and `event`.
"""

from clients.channel import State
from clients.emulator import Emulator
from clients.rejoining import SelfLeavingChannel

LEAVES_ITSELF = ("a join that is refused leaves it `joining`, and its timer then takes the channel for a duplicate and leaves it "
                 "(mended in 3.0.0-dev.9, supabase-flutter #1949)")


class DartChannel(SelfLeavingChannel):
    has_version = False

    def join_payload(self):
        return {**super().join_payload(), **({"version": "realtime-dart/2.13.0"} if self.has_version else {})}

    def token_changed(self, token):
        self.has_version = True
        super().token_changed(token)

    def broadcast(self, event, payload):
        ref = self.client.make_ref()
        if self.wishes.ack:
            self.answers[ref] = self.seen.answers.append
        self.client.push(self.topic, "broadcast", {**payload, "type": "broadcast", "event": event}, ref, self.join_ref)

    def is_mine(self, frame):
        """`trigger` looks at the ref of these two and at no join_ref."""
        return frame.event not in ("phx_close", "phx_error") or frame.ref in (None, self.join_ref)

    def told(self, payload):
        super().told(payload)
        if payload.get("status") == "error":
            self.report("CHANNEL_ERROR")

    def track(self, payload):
        if self.state is State.JOINED:
            super().track(payload)


class Dart(Emulator):
    name, version_read = "realtime_client (Dart, Flutter)", "2.13.0"
    sources = "supabase/supabase-flutter realtime_client-v2.9.1; 2.13 by its frames"
    make_channel = DartChannel
    known = {"policy change": LEAVES_ITSELF}
