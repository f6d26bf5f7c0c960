"""supabase-js 2.112 and later: realtime-js, which runs on phoenix.js (@supabase/phoenix 0.4.5).

Read: supabase/supabase-js 381bded (2026-08-07), packages/core/realtime-js/src/RealtimeClient.ts and RealtimeChannel.ts; 2.113's
`postgres_changes_options` in PR 2630. The machine of clients/channel.py is this one's.
"""

from clients.channel import Channel
from clients.emulator import Emulator


class JavaScriptChannel(Channel):
    def token_changed(self, token):
        # `_performAuth`: rejoins carry the version, too.
        self.has_version = True
        super().token_changed(token)

    has_version = False

    def join_payload(self):
        return {**super().join_payload(), **({"version": "realtime-js/2.113.0"} if self.has_version else {})}


class JavaScript(Emulator):
    name, version_read, sources = "supabase-js", "2.112, 2.113", "supabase/supabase-js 381bded, 2026-08-07, and its pull request 2630"
    make_channel = JavaScriptChannel
