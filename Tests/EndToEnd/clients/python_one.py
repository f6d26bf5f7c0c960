"""PyPI realtime 1.0.6.

Read: the package (realtime/connection.py, channel.py). It joins with an empty payload and no refs, looks at no answer, and hears INSERT, UPDATE and DELETE.
A frame with another key than `event`, `payload`, `ref` and `topic` ends its loop (`Message(**json)`). With `auto_reconnect` it connects again at once,
and whatever fails then ends it.
"""

from clients.channel import Channel, State
from clients.emulator import UNREACHABLE, Emulator
from clients.javascript_one import ROWS_ONLY

ONE_ATTEMPT = "connects again once, at once, and ends if nobody listens at that moment"


class PythonOneChannel(Channel):
    def join(self):
        self.client.push(self.topic, "phx_join", {})
        self.state = State.JOINED
        self.report("SUBSCRIBED")

    def token_changed(self, token):
        """Its URL has the token."""

    async def receive(self, frame):
        if frame.event in ("INSERT", "UPDATE", "DELETE"):
            self.show_row(frame.payload)


class PythonOne(Emulator):
    name, version_read, sources = "realtime (Python) 1", "1.0.6", "the package of PyPI"
    version, heartbeat, reconnect_after = 1, 5, (0,)
    make_channel = PythonOneChannel
    lacks = {"broadcasts": ROWS_ONLY, "presence": ROWS_ONLY, "private channels": ROWS_ONLY, "tokens": "its token is the one of its address"}
    known = {story: ONE_ATTEMPT for story in ("network change", "hub restart", "drain")}

    def full_topic(self, topic):
        return f"realtime:public:kit_message:{topic}"

    def query(self):
        return {"apikey": self.token or self.apikey, "vsn": "1.0.0"}

    def send_heartbeat(self):
        self.push("phoenix", "heartbeat", {})

    async def _reconnect(self):
        try:
            await self.open()
        except UNREACHABLE as error:
            self.gave_up = True
            self.thrown.append(type(error).__name__)

    def form(self, frame):
        return {key: value for key, value in frame.items() if key != "join_ref"}
