"""What one subscription of one client was told, and what it should have been."""

import time
from dataclasses import dataclass

#: A key of a change: the row's id and its version. The version of a row that is gone is not known to those who are only
#: told its primary key, so it has a place of its own, above all others.
VERSIONS = 1 << 20
GONE = VERSIONS - 1


def key(identity, version):
    return identity * VERSIONS + version


def named(value):
    identity, version = divmod(value, VERSIONS)
    return f"row {identity} " + ("deleted" if version == GONE else f"version {version}")


@dataclass
class Disorder:
    """A change that first came when a later one of its row was there."""
    key: int
    later: int  # version
    later_at: float
    at: float

    def __str__(self):
        return f"{named(self.key)} first came {self.at - self.later_at:.3f} s after version {self.later}"


class Subscription:
    """`event`, `conversation` (None is every one) and the user's conversations decide what it is entitled to.

    Keeps what came in the shape in which it is judged: which changes, and each row's highest and latest version.
    """

    def __init__(self, event, conversation, memberships):
        self.event, self.conversation, self.memberships = event, conversation, memberships
        self.since = None  # the snapshot that was taken when it was first live; None: before anything was written
        self.lives = 0
        self.received = set()
        self.repeats = 0
        self.out_of_order = []
        self.garbled = []
        self._highest, self.latest = {}, {}

    def begin_anew(self):
        """Another client, which knows nothing and is owed what comes from when it is live."""
        from cast import Everything
        self.since = Everything
        self.lives += 1
        self.received = set()
        self._highest, self.latest = {}, {}

    @property
    def binding(self):
        """As clients write it."""
        binding = {"event": self.event, "schema": "public", "table": "messages"}
        if self.conversation is not None:
            binding["filter"] = f"conversation_id=eq.{self.conversation}"
        return binding

    @property
    def bindings(self):
        return [self.binding]

    def includes(self, change):
        """Whether a committed change is this subscription's: its filter, and what SELECT would show its user, or would have shown before the
        row was deleted (docs/visibility.md)."""
        return (self.event in ("*", change.event)
                and (self.conversation is None or change.conversation == self.conversation)
                and change.conversation in self.memberships)

    def must_have(self, change):
        return self.includes(change) and (self.since is None or not self.since.sees(change.transaction))

    def take(self, data):
        """A change as the event's `data`."""
        if data["type"] == "DELETE":
            identity, version = data["old_record"]["id"], GONE
        else:
            record = data["record"]
            identity, version = record["id"], record["version"]
            if not record["body"].startswith(f"{identity}.{version} "):
                self.garbled.append(f"row {identity} version {version} says {record['body'][:60]!r}")
        value = key(identity, version)
        if value in self.received:
            self.repeats += 1
        else:
            self.received.add(value)
            highest, at = self._highest.get(identity, (-1, 0))
            if version <= highest:
                self.out_of_order.append(Disorder(value, highest, at, time.time()))
            else:
                self._highest[identity] = version, time.time()
        self.latest[identity] = version
