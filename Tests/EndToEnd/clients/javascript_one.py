"""supabase-js 1.x: realtime-js 1.7.5, from before there was `config`.

Read: supabase/realtime-js v1.7.5. The topic is the table, and its filter; rows come as events INSERT, UPDATE and DELETE whose payload is
the row's data. It has no broadcasts and no presence.
"""

from clients.emulator import Emulator
from clients.rejoining import SelfLeavingChannel

ROWS_ONLY = "has row changes alone: broadcasts, presence and private channels came with version 2"


class TableChannel(SelfLeavingChannel):
    def join_payload(self):
        return {"user_token": self.client.token} if self.client.token else {}

    def adopt_ids(self, served):
        return True

    def is_mine(self, frame):
        return frame.event not in ("phx_close", "phx_error") or frame.ref in (None, self.join_ref)

    async def receive(self, frame):
        if frame.event in ("INSERT", "UPDATE", "DELETE"):
            self.show_row(frame.payload)
        else:
            await super().receive(frame)


class JavaScriptOne(Emulator):
    name, version_read, sources = "supabase-js 1", "1.x (realtime-js 1.7.5)", "supabase/realtime-js v1.7.5"
    version, heartbeat = 1, 30
    make_channel = TableChannel
    lacks = {"broadcasts": ROWS_ONLY, "presence": ROWS_ONLY, "private channels": ROWS_ONLY}

    def full_topic(self, topic):
        return f"realtime:public:kit_message:{topic}"

    def form(self, frame):
        # lib/push.ts knows no join_ref.
        return {key: value for key, value in frame.items() if key != "join_ref"}
