"""One channel of a raw client: joins, and joins again, as the Supabase clients do (wire-protocol A10)."""

import asyncio

JOIN_TIMEOUT = 10


class Channel:
    """Knows nothing of cursors. Counts a change only where the client it stands for would show it: on a channel that is
    joined, under an id that the reply to this join gave."""

    REJOIN_DELAYS = (1, 2, 5, 10)

    def __init__(self, client, topic, subscription, on_live):
        self.client, self.topic, self.subscription, self.on_live = client, topic, subscription, on_live
        self.state = "errored"
        self.join_ref = None
        self._ids = set()
        self._tries = 0
        self._timer = None

    def join(self):
        self._cancel()
        self.state, self.join_ref = "joining", self.client.ref()
        self.client.push(
            self.topic, "phx_join", {"config": self.config(), "access_token": self.client.token}, self.join_ref, self.join_ref)
        self._timer = asyncio.get_running_loop().call_later(JOIN_TIMEOUT, self._timed_out)

    def config(self):
        return {"broadcast": {"ack": False, "self": False}, "presence": {"key": "", "enabled": False},
                "postgres_changes": self.subscription.bindings, "private": False}

    def disconnected(self):
        self._cancel()
        if self.state != "closed":
            self.state = "errored"

    def took(self, event, payload, ref, join_ref):
        if event == "postgres_changes":
            if self.accepts(payload):
                self.take(payload)
            else:
                self.client.journal.note("unwanted change", f"{self.topic} while {self.state}")
        elif event == "phx_reply":
            if ref == self.join_ref and self.state == "joining":
                self._answered(payload)
        elif event == "phx_error":
            # Version 2 names the join that it ends.
            if self.state != "closed" and join_ref in (None, self.join_ref):
                self._failed(f"phx_error {payload}")
        elif event == "phx_close":
            if join_ref in (None, self.join_ref):
                self._cancel()
                self.state = "closed"
                self.client.journal.note("phx_close", self.topic)
        elif event == "system" and payload.get("status") == "error" and self.client.version == 1:
            # The Python client takes any such message for the end of its channel.
            self._failed(f"system {payload.get('message')}")

    def take(self, payload):
        self.subscription.take(payload["data"])

    def accepts(self, payload):
        """Whether a change is for this channel, by the ids of its bindings."""
        return self.state == "joined" and not self._ids.isdisjoint(payload["ids"])

    def _answered(self, payload):
        self._cancel()
        if payload["status"] != "ok":
            self._failed(f"refused {payload['response']}")
            return
        bindings = payload["response"]["postgres_changes"]
        self._ids = {binding["id"] for binding in bindings}
        self.state, self._tries = "joined", 0
        self.client.journal.note("joined", self.topic)
        self.on_live(self.subscription)

    def _timed_out(self):
        self.client.journal.note("join timed out", self.topic)
        if self.client.version == 2:
            # As realtime-js does.
            self.client.push(self.topic, "phx_leave", {}, self.client.ref(), self.join_ref)
            # And it forgets that join, so that the end of it, which the hub tells, is not this channel's.
            self.join_ref = None
        self._failed("timeout")

    def _failed(self, why):
        self._cancel()
        self.state = "errored"
        self.client.journal.note("channel error", f"{self.topic}: {why}")
        delay = self.REJOIN_DELAYS[min(self._tries, len(self.REJOIN_DELAYS) - 1)]
        self._tries += 1
        self._timer = asyncio.get_running_loop().call_later(delay, self._rejoin)

    def _rejoin(self):
        if self.state == "errored" and self.client.is_open:
            self.join()

    def _cancel(self):
        if self._timer:
            self._timer.cancel()
            self._timer = None
