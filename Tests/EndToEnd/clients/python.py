"""PyPI realtime 2.34.1.

Read: the package itself, realtime/_async. A test holds this emulator against it (test_client_emulators.py).

A `system` error ends the channel for it, and it joins again after a second. Its heartbeat has no ref, and no answer is waited for; its WebSocket pings.
"""

from clients.channel import Channel, State
from clients.emulator import Emulator

#: Of errors that are of rates, the pause before the next join.
RATES = ("ChannelRateLimitReached", "ConnectionRateLimitReached", "ClientJoinRateLimitReached", "DatabaseConnectionRateLimitReached")


class PythonChannel(Channel):
    def config(self):
        rows = [{"select": None, "filter": None, "table": None, "schema": None, **wish} for wish in self.wishes.rows]
        return {**super().config(), "postgres_changes": [{key: value for key, value in row.items() if value is not None} for row in rows]}

    def track(self, payload):
        self.push("presence", {"event": "track", "payload": payload})

    def join_expired(self):
        self.report("TIMED_OUT")
        self.state = State.ERRORED
        self.rejoin_later()

    def refused(self, response):
        super().refused(response)
        if self.seen.refusals[-1].startswith(RATES):
            self.rejoin_later(30)

    def told(self, payload):
        super().told(payload)
        if payload["status"] == "error":
            self.errored(payload)

    def is_mine(self, frame):
        """Whose a frame is is asked of its topic alone."""
        return True

    def presence_state(self, payload):
        self.seen.show_presence({key: value["metas"] for key, value in payload.items()})

    def presence_diff(self, payload):
        self.apply_diff(payload)


class Python(Emulator):
    name, version_read, sources = "realtime (Python)", "2.34.1", "the package of PyPI"
    version = 1
    # With max_retries as docs/clients.md advises: by itself it raises after five attempts.
    reconnect_after = (0, 1, 2, 4, 8, 16, 32, 60)
    make_channel = PythonChannel

    def __init__(self, port, apikey, token=None, clock=None):
        # Its token is the key it was made with until `set_auth`.
        super().__init__(port, apikey, token or apikey, clock)

    def opened(self):
        self.send_heartbeat()
        super().opened()

    def send_heartbeat(self):
        self.push("phoenix", "heartbeat", {})
