"""What was committed, when, and who could see it: the model that clients are held against."""

from dataclasses import dataclass

from truth import Snapshot

__all__ = ["Snapshot"]

KEYS = {"messages": ("id",), "notes": ("id",), "posts": ("id",), "events": ("part", "id")}
COLUMNS = {
    "messages": ("id", "room", "n", "tag", "body", "version"), "notes": ("id", "owner", "n", "body", "version"),
    "posts": ("id", "owner", "is_public", "kind", "n", "version"), "events": ("part", "id", "n", "body", "version"),
}
#: Those that show no more than the key of a row that is gone or was hidden.
GUARDED = ("messages", "notes", "posts")
#: Policies that changed count within a second (docs/visibility.md).
TOLERANCE = 1.0
NEVER, MAY, MUST = range(3)
ALWAYS, END = float("-inf"), float("inf")


def key_of(table, row):
    return tuple(row[column] for column in KEYS[table])


@dataclass(slots=True)
class Change:
    number: int
    table: str
    event: str
    old: dict
    new: dict
    transaction: int
    #: Bounds of the commit, by this machine's clock.
    before: float
    after: float


@dataclass(slots=True)
class Stay:
    """A time in which something held: it began and ended within the bounds of a commit each."""
    transaction: int
    began: tuple
    ended: tuple = (END, END)

    def may_meet(self, start, end):
        return self.began[0] <= end and self.ended[1] >= start


class Truth:
    """`bounds` tells when a transaction was committed; `policy` is what the policy of posts allowed besides, over time."""

    def __init__(self, connection, bounds, policies, began):
        self.began = began
        self.changes, self.by_version, self.by_table = [], {}, {table: [] for table in KEYS}
        self.gone = {table: set() for table in KEYS}
        self.unknown = []
        self._stays = {}
        self._former = {}  # of each transaction, in events
        for number, place, event, old, new, transaction in connection.execute(
                "select number, place, event, old, new, transaction::text::bigint from model.log order by number"):
            before, after = bounds.get(transaction, (None, None))
            if before is None:
                self.unknown.append(f"nobody knows of transaction {transaction} ({event} of {place})")
                before, after = ALWAYS, END
            change = Change(number, place, event, old, new, transaction, before, after)
            if place == "members":
                self._note(change)
                continue
            self._add(change)
        #: Of the wide policy of posts: from when until when it was in force.
        self._wide = [Stay(0, *pair) for pair in policies]

    def _add(self, change):
        place = change.table
        former = self._former.get(change.transaction) if place == "events" else None
        if change.event == "INSERT" and former and former.event == "DELETE" and former.old["id"] == change.new["id"]:
            # A row that went to another partition, which triggers tell as what it is, and the WAL as two changes.
            former.event, former.new = "UPDATE", change.new
            change = former
        else:
            self.changes.append(change)
            self.by_table[place].append(change)
        if place == "events":
            self._former[change.transaction] = change
        old, new = change.old, change.new
        if new:
            self.by_version[new["version"]] = change
        if old and (not new or key_of(place, old) != key_of(place, new)):
            self.gone[place].add(key_of(place, old))

    def _note(self, change):
        row = change.new or change.old
        stays = self._stays.setdefault((row["room"], row["member"]), [])
        if change.event == "INSERT":
            stays.append(Stay(change.transaction, (change.before, change.after)))
        else:
            stays[-1].ended = (change.before, change.after)

    # Who sees a row

    def grade(self, table, row, user, change, until=END):
        """Whether `user` must be shown a version of a row that `change` wrote, may be, or must not. What a policy says counts
        from the commit on until it is sent, and that was before `until`."""
        if table == "messages":
            return self._grade_of_stays(self._stays.get((row["room"], user.sub), ()), change, until) if user.is_known else NEVER
        if table == "notes":
            return MUST if user.is_known and row["owner"] == user.sub else NEVER
        if table == "posts":
            if row["is_public"] or user.is_known and row["owner"] == user.sub:
                return MUST
            return self._grade_of_policy(change, until) if row["kind"] == "open" else NEVER
        return MUST

    @staticmethod
    def _grade_of_stays(stays, change, until):
        for stay in stays:
            if stay.ended[1] == END and (stay.began[1] <= change.before or stay.transaction == change.transaction):
                return MUST
        return MAY if any(stay.may_meet(change.before, until) for stay in stays) else NEVER

    def _grade_of_policy(self, change, until):
        since = change.before - TOLERANCE
        if any(stay.began[1] < since and stay.ended[1] == END for stay in self._wide):
            return MUST
        return MAY if any(stay.may_meet(since, until) for stay in self._wide) else NEVER
