"""supabase-swift 3.0.0-alpha.2, rewritten.

Read: supabase/supabase-swift Sources/Realtime/Engine: ChannelMachine.swift (0df2e36), ConnectionMachine.swift (33e7401), RealtimeEngine.swift (0236e94),
RealtimeError.swift (stored file 70177300185).

A `system` error, `phx_close` and `phx_error` all make it join again, by reasons: at once with a fresh token, after 30 s, or never.
"""

from clients.channel import Channel, State
from clients.dart_three import is_fatal
from clients.emulator import Emulator

LAST_WORD = "takes `Unauthorized` for the last word, by design: the app subscribes anew when the right is back"


class SwiftThreeChannel(Channel):
    patience = 15
    is_over = False

    def join_payload(self):
        return {**super().join_payload(), "version": "realtime-swift/3.0.0-alpha.2"}

    def refused(self, response):
        self.state = State.ERRORED
        self.report("resubscribing")
        self.seen.refusals.append(str(response.get("reason")))
        self.come_back(self.seen.refusals[-1])

    def come_back(self, reason):
        """By what the reason says of another attempt (`classify`)."""
        if "expired" in reason:
            # `refreshToken`: the app's provider is asked, and the join sent.
            self.rejoin_later(0)
        elif is_fatal(reason) or "You no longer have permission" in reason:
            self.is_over = True
            self.report("failed")
        else:
            self.rejoin_later(30 if "RateLimitReached" in reason else None)

    def told(self, payload):
        super().told(payload)
        if payload.get("status") == "error" and self.state is State.JOINED:
            self.state = State.ERRORED
            self.come_back(payload.get("message", ""))

    def close(self):
        if self.state is State.JOINED:
            self.errored({})
        elif self.state is State.LEAVING:
            super().close()

    def socket_opened(self):
        if not self.is_over:
            super().socket_opened()


class SwiftThree(Emulator):
    name, version_read, sources = "supabase-swift 3", "3.0.0-alpha.2", "supabase/supabase-swift, Engine 0236e94, autumn 2026"
    # Full jitter from 1 s to 30 s: half of each.
    reconnect_after = (0.5, 1, 2, 4, 8, 15)
    make_channel = SwiftThreeChannel
    known = {"policy change": LAST_WORD}
