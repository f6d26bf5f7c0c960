"""supabase_realtime (Dart) 3, in development.

Read: supabase/supabase-flutter 6969eb3 (2026-08-21), packages/supabase_realtime; what came after it by its pull requests: no version 1 (#1956), a
timer that stops while a join is under way (#1949), reasons after which it does not join again (#2125), the reconnect of the specification (#2114).
"""

from clients.channel import Channel
from clients.emulator import Emulator

#: Codes of refused joins that are the last word. Pull request 2125 was not to be had; these are the ones that supabase-swift 3's
#: RealtimeError.swift calls fatal, after the same specification.
FATAL = ("TopicNameRequired", "MalformedJWT", "JwtSignatureError", "JwtSignerError", "InvalidJWTToken", "Unauthorized", "PrivateOnly",
         "TenantNotFound", "RealtimeDisabledForTenant", "RealtimeDisabledForConfiguration", "UnableToReplayMessages")
LAST_WORD = "takes `Unauthorized` for the last word, by design: the app subscribes anew when the right is back"


def is_fatal(reason):
    return reason.startswith(FATAL) and "expired" not in reason


class DartThreeChannel(Channel):
    is_over = False

    def refused(self, response):
        super().refused(response)
        if is_fatal(self.seen.refusals[-1]):
            self.is_over = True
            self.stop_timers()

    def socket_opened(self):
        if not self.is_over:
            super().socket_opened()

    def told(self, payload):
        super().told(payload)
        if payload.get("status") == "error":
            self.report("CHANNEL_ERROR")


class DartThree(Emulator):
    name, version_read = "supabase_realtime (Dart, Flutter)", "3.0.0-dev"
    sources = "supabase/supabase-flutter 6969eb3, 2026-08-21; later changes by their descriptions"
    make_channel = DartThreeChannel
    known = {"policy change": LAST_WORD}
