"""supabase-swift 2.55.

Read: supabase/supabase-swift RealtimeClientV2.swift (01a626b), RealtimeChannelV2.swift (010b300).

It is subscribed at an answer with `postgres_changes`, or at any `system` message that says `ok`. An error reply is not looked at: the join runs into its
time, five times, and then gives up. After `phx_error` it does not join again.
"""

from clients.channel import Channel, State
from clients.emulator import Emulator

NOT_AFTER_ERRORS = "does not join again after `phx_error`: the app calls `subscribeWithError()` when the status is `unsubscribed`"
MOST_ATTEMPTS = 5


class SwiftChannel(Channel):
    attempts = 0
    answered = None  # the status that a join got

    def join_payload(self):
        return {**super().join_payload(), "version": "realtime-swift/2.55.6"}

    def join(self):
        self.attempts += 1
        super().join()

    def join_answered(self, payload):
        if payload["status"] == "ok" and "postgres_changes" in payload["response"]:
            if self.state is State.JOINING:
                self.stop_timers()
                self.joined(payload["response"])
        elif payload["status"] == "error":
            self.seen.refusals.append(str(payload["response"].get("reason")))
            self.stop_timers()
            self.rejoining = self.client.start(self.attempt_later(self.patience))

    async def attempt_later(self, seconds):
        """What is left of the join's time, which nothing shortens, and the pause behind it."""
        await self.client.clock.wait(seconds + min(2 ** (self.attempts - 1), 30))
        self.rejoining = None
        self.attempt_again()

    def attempt_again(self):
        if self.attempts >= MOST_ATTEMPTS or not self.client.is_open:
            self.state = State.CLOSED
            self.report("unsubscribed")
        else:
            self.join()

    def join_expired(self):
        self.rejoining = self.client.start(self.attempt_later(0))

    def joined(self, response):
        self.attempts = 0
        # Server entries are matched by content (wire-protocol A4).
        self.ids = [entry["id"] for entry in response["postgres_changes"]]
        self.state = State.JOINED
        self.report("SUBSCRIBED")

    def told(self, payload):
        super().told(payload)
        if payload.get("status") == "ok" and self.state is State.JOINING:
            self.state = State.JOINED
            self.report("SUBSCRIBED")

    def errored(self, payload):
        self.state = State.CLOSED
        self.report("unsubscribed")

    def socket_lost(self):
        super().socket_lost()
        self.attempts = 0

    def presence_state(self, payload):
        """It keeps no list: what is in a state is told as joins."""
        self.apply_diff({"joins": payload, "leaves": {}})

    def presence_diff(self, payload):
        self.apply_diff(payload)


class Swift(Emulator):
    name, version_read, sources = "supabase-swift", "2.55.6", "supabase/supabase-swift, RealtimeClientV2 01a626b and RealtimeChannelV2 010b300"
    reconnect_after = (7, 14, 28, 30)
    make_channel = SwiftChannel
    known = {"policy change": NOT_AFTER_ERRORS}

    def comes_back(self, code):
        return code is None or not 4000 <= code < 5000
