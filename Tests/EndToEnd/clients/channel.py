"""The state machine of a channel as phoenix.js has it, from which most libraries are translated; each client's file has what differs.

Facts, not code, from the sources that each file names: what is sent when, what is waited for, what ends it.
"""

import enum
from dataclasses import dataclass, field

from clients.frames import write_broadcast
from clients.seen import Seen


class State(enum.StrEnum):
    CLOSED = "closed"
    JOINING = "joining"
    JOINED = "joined"
    ERRORED = "errored"
    LEAVING = "leaving"


@dataclass
class Wishes:
    """What an app asks of a channel."""
    #: Entries of `postgres_changes`.
    rows: list = field(default_factory=list)
    presence: str = ""
    is_private: bool = False
    ack: bool = False


class Channel:
    #: Seconds before the attempts to rejoin; the last one for all that follow.
    rejoin_after = (1, 2, 5, 10)
    #: Seconds that a join's answer may take.
    patience = 10

    def __init__(self, client, topic, wishes):
        self.client, self.topic, self.wishes = client, topic, wishes
        self.state = State.CLOSED
        self.join_ref = None
        self.tries = 0
        self.ids = []
        self.seen = Seen()
        self.on_subscribed = None  # the app's callback
        self.answers = {}  # what is called with the payload of a reply, by its ref
        self.rejoining = self.deadline = None
        self.presence_ref = None  # of the join that the presence list belongs to
        self.early_diffs = []
        #: The library took itself for a duplicate, or left for another reason of its own.
        self.left_by_itself = 0

    def report(self, state):
        """What the library tells its app of the subscription."""
        self.seen.states.append(state)
        if state == "SUBSCRIBED" and self.on_subscribed:
            self.on_subscribed()

    # What the app does

    def subscribe(self):
        self.join()

    def leave(self):
        self.state = State.LEAVING
        self.stop_timers()
        self.push("phx_leave", {}, self.close)

    def broadcast(self, event, payload):
        """By a frame of kind 3 in version 2, in version 1 by text."""
        ref = self.client.make_ref()
        if self.wishes.ack:
            self.answers[ref] = self.seen.answers.append
        if self.client.version == 2:
            self.client.send_binary(write_broadcast(self.join_ref, ref, self.topic, event, payload))
        else:
            self.client.push(self.topic, "broadcast", {"type": "broadcast", "event": event, "payload": payload}, ref, self.join_ref)

    def track(self, payload):
        self.push("presence", {"type": "presence", "event": "track", "payload": payload})

    def token_changed(self, token):
        """The app has another token. Joined channels are told at once, the others with their next join."""
        if self.state is State.JOINED:
            self.push("access_token", {"access_token": token})

    @property
    def is_joined(self):
        return self.state is State.JOINED

    # Joining

    def config(self):
        wishes = self.wishes
        return {
            "broadcast": {"ack": wishes.ack, "self": False}, "presence": {"key": wishes.presence, "enabled": bool(wishes.presence)},
            "postgres_changes": wishes.rows, "private": wishes.is_private,
        }

    def join_payload(self):
        return {"config": self.config(), **({"access_token": self.client.token} if self.client.token else {})}

    def join(self):
        self.stop_timers()
        self.state = State.JOINING
        self.join_ref = ref = self.client.make_ref()
        self.answers[ref] = self.join_answered
        self.client.push(self.topic, "phx_join", self.join_payload(), ref, self.join_ref)
        self.deadline = self.client.start(self.expire(ref))

    async def expire(self, ref):
        await self.client.clock.race(self.patience)
        if self.join_ref == ref and self.state is State.JOINING:
            self.answers.pop(ref, None)
            self.join_expired()

    def join_expired(self):
        self.report("TIMED_OUT")
        self.push("phx_leave", {})
        self.state = State.ERRORED
        self.rejoin_later()

    def join_answered(self, payload):
        if self.state is not State.JOINING:
            return
        self.stop_timers()
        if payload["status"] == "ok":
            self.joined(payload["response"])
        else:
            self.refused(payload["response"])

    def joined(self, response):
        self.state, self.tries = State.JOINED, 0
        if self.adopt_ids(response.get("postgres_changes")):
            self.report("SUBSCRIBED")

    def adopt_ids(self, served):
        """Bindings are compared one by one, by their place; false where they differ, which ends the channel."""
        served = served or []
        for place, wish in enumerate(self.wishes.rows):
            entry = served[place] if place < len(served) else {}
            if any(entry.get(key) != wish.get(key) for key in ("event", "schema", "table", "filter")):
                self.left_by_itself += 1
                self.leave()
                self.state = State.ERRORED
                self.report("CHANNEL_ERROR")
                return False
        self.ids = [entry["id"] for entry in served]
        return True

    def refused(self, response):
        self.state = State.ERRORED
        self.report("CHANNEL_ERROR")
        self.seen.refusals.append(", ".join(str(value) for value in response.values()))
        self.rejoin_later()

    def rejoin_later(self, seconds=None):
        if self.rejoining:
            self.rejoining.cancel()
        seconds = self.rejoin_after[min(self.tries, len(self.rejoin_after) - 1)] if seconds is None else seconds
        self.tries += 1
        self.rejoining = self.client.start(self.rejoin(seconds))

    async def rejoin(self, seconds):
        await self.client.clock.wait(seconds)
        self.rejoining = None
        if self.state is State.ERRORED and self.client.is_open:
            self.join()

    def stop_timers(self):
        for timer in (self.rejoining, self.deadline):
            if timer:
                timer.cancel()
        self.rejoining = self.deadline = None

    # The socket

    def socket_lost(self):
        self.answers = {}
        if self.state in (State.JOINING, State.JOINED):
            self.stop_timers()
            self.state = State.ERRORED
            self.report("CHANNEL_ERROR")

    def socket_opened(self):
        if self.state is State.ERRORED:
            self.tries = 0
            self.join()

    # What comes

    def push(self, event, payload, answered=None):
        ref = self.client.make_ref()
        if answered:
            self.answers[ref] = lambda _: answered()
        self.client.push(self.topic, event, payload, ref, self.join_ref)

    def is_mine(self, frame):
        """Whether it belongs to the present join."""
        if frame.event in ("phx_close", "phx_error") and frame.ref != self.join_ref:
            return False
        return frame.join_ref is None or frame.join_ref == self.join_ref

    async def receive(self, frame):
        if not self.is_mine(frame):
            return
        match frame.event:
            case "phx_reply":
                answer = self.answers.pop(frame.ref, None)
                if answer:
                    answer(frame.payload)
            case "phx_close": self.close()
            case "phx_error": self.errored(frame.payload)
            case "system": self.told(frame.payload)
            case "presence_state": self.presence_state(frame.payload)
            case "presence_diff": self.presence_diff(frame.payload)
            case "broadcast": self.broadcast_came(frame.payload)
            case "postgres_changes": self.row_came(frame.payload)

    def close(self):
        """Final: the channel is forgotten."""
        self.stop_timers()
        self.state = State.CLOSED
        self.report("CLOSED")
        self.client.channels.pop(self.topic, None)

    def errored(self, payload):
        if self.state in (State.LEAVING, State.CLOSED):
            return
        self.state = State.ERRORED
        self.report("CHANNEL_ERROR")
        self.rejoin_later()

    def told(self, payload):
        self.seen.systems.append((payload.get("status"), payload.get("message")))

    def broadcast_came(self, payload):
        """Some senders write their own keys beside `type` and `event`, and no `payload`."""
        self.seen.broadcasts.append(payload.get("payload", payload))

    def row_came(self, payload):
        if any(id in self.ids for id in payload["ids"]):
            self.show_row(payload["data"])

    def show_row(self, data):
        self.seen.rows.append((data.get("record") or data["old_record"])["id"])

    # Presence: diffs wait until a list has come for the present join

    def presence_state(self, payload):
        self.presence_ref = self.join_ref
        self.seen.show_presence({key: metas(value) for key, value in payload.items()})
        early, self.early_diffs = self.early_diffs, []
        for diff in early:
            self.apply_diff(diff)

    def presence_diff(self, payload):
        if self.presence_ref != self.join_ref:
            self.early_diffs.append(payload)
        else:
            self.apply_diff(payload)

    def apply_diff(self, payload):
        presence = {key: list(value) for key, value in self.seen.presence.items()}
        for key, value in payload["joins"].items():
            added = metas(value)
            refs = [meta["phx_ref"] for meta in added]
            presence[key] = [meta for meta in presence.get(key, []) if meta["phx_ref"] not in refs] + added
        for key, value in payload["leaves"].items():
            refs = [meta["phx_ref"] for meta in metas(value)]
            left = [meta for meta in presence.pop(key, []) if meta["phx_ref"] not in refs]
            presence |= {key: left} if left else {}
        self.seen.show_presence(presence)


def metas(entry):
    return entry["metas"]
