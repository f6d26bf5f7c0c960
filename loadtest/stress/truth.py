"""What was committed, as the database itself recorded it."""

from dataclasses import dataclass

from subscription import GONE, key, named


@dataclass(slots=True)
class Change:
    identity: int
    version: int
    event: str
    conversation: int
    transaction: int
    written_at: float
    at: float  # when it was committed

    @property
    def key(self):
        return key(self.identity, GONE if self.event == "DELETE" else self.version)


class Snapshot:
    """`pg_current_snapshot()` as text: xmin:xmax:running,…"""

    def __init__(self, text):
        first, end, running = text.split(":")
        self.first, self.end = int(first), int(end)
        self.running = {int(number) for number in running.split(",") if number}

    def sees(self, transaction):
        """Of a transaction that is known to have committed."""
        return transaction < self.first or (transaction < self.end and transaction not in self.running)


class Truth:
    """Every committed version of every row, in the order in which they were written."""

    def __init__(self, connection):
        self.changes = [Change(*row) for row in connection.execute(
            "select identity, version, event, conversation, transaction::text::bigint, extract(epoch from at)::float8, "
            "extract(epoch from pg_xact_commit_timestamp(transaction::xid))::float8 from stress.log order by number")]
        self.by_key = {change.key: change for change in self.changes}
        self._by_conversation = {}
        for change in self.changes:
            self._by_conversation.setdefault(change.conversation, []).append(change)

    def of(self, subscription):
        """What may concern it."""
        conversation = subscription.conversation
        return self.changes if conversation is None else self._by_conversation.get(conversation, [])

    def due(self, subscription):
        """The keys of what it must have."""
        return {change.key for change in self.of(subscription) if subscription.must_have(change)}


@dataclass
class Verdict:
    """Of one subscription; each fault is a sentence."""
    lost: list
    out_of_order: list
    wrong: list

    @property
    def is_good(self):
        return not (self.lost or self.out_of_order or self.wrong)


def judge(truth, subscription):
    due = truth.due(subscription)
    lost = sorted(due - subscription.received, key=lambda value: truth.by_key[value].at)
    # A latecomer may be told of the time before it came, when a hub that was killed starts again: it was promised nothing
    # of that, nor its order.
    out_of_order = [disorder for disorder in subscription.out_of_order if disorder.key in due]
    last = {}
    for change in truth.of(subscription):
        if subscription.includes(change):
            version = GONE if change.event == "DELETE" else change.version
            last[change.identity] = max(last.get(change.identity, -1), version)
    for identity, version in subscription.latest.items():
        # A client shows what came last. Where it never got the last version, that is counted as lost already.
        if identity in last and version != last[identity] and key(identity, last[identity]) in subscription.received:
            out_of_order.append(f"row {identity} ends with version {version} instead of {last[identity]}")
    wrong = list(subscription.garbled)
    for value in subscription.received - due:
        change = truth.by_key.get(value)
        if change is None:
            wrong.append(f"{named(value)} was never committed")
        elif not subscription.includes(change):
            wrong.append(f"{named(value)} ({change.event} in conversation {change.conversation}) is not this client's")
    return Verdict(lost, out_of_order, wrong)
