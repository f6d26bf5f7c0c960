"""One subscription of one client: what it was told, and what it shows because of that."""

import time
from dataclasses import dataclass

from model_truth import COLUMNS, GUARDED, KEYS, key_of


@dataclass(slots=True)
class Reload:
    """A load of the data by SELECT; `why` is what the hub had said, "" for the first."""
    snapshot: object
    why: str
    at: float
    #: What had come until then.
    received: frozenset


class Fold:
    """Rows by their key, as an application has them that loads its data, folds every change in, and loads again when it
    is told that changes are missing."""

    def __init__(self, table, filter, columns=None):
        self.table, self.filter = table, filter
        self.columns = columns or COLUMNS[table]
        self.is_selective = columns is not None
        self.begin_anew()

    def __str__(self):
        chosen = f" select {','.join(self.columns)}" if self.is_selective else ""
        return f"{self.table} {self.filter}{chosen}"

    def begin_anew(self):
        """Another client, which knows nothing of before."""
        self.rows, self.loaded = {}, {}
        self.reloads = []
        self.received = set()  # versions
        self.received_since, self.gone_since = set(), set()  # since the last load: versions, and keys of rows that went
        self.events = getattr(self, "events", [])
        self.since = None

    @property
    def binding(self):
        """As clients write it."""
        return {"event": "*", "schema": "public", "table": self.table,
                **({"filter": str(self.filter)} if self.filter.conditions else {}),
                **({"select": list(self.columns)} if self.is_selective else {})}

    @property
    def query(self):
        """What an application loads."""
        return (f"select row_to_json(shown) from "
                f"(select {', '.join(self.columns)} from public.{self.table} where {self.filter.sql}) shown")

    def shown(self, row):
        return {column: row[column] for column in self.columns}

    def load(self, snapshot, rows, why):
        self.reloads.append(Reload(snapshot, why, time.monotonic(), frozenset(self.received)))
        self.since = snapshot
        self.loaded = {key_of(self.table, row): row for row in rows}
        self.rows = dict(self.loaded)
        self.received_since, self.gone_since = set(), set()

    def note(self, data, at):
        """A change that came, as the event's `data`, and need not be shown any more."""
        self.events.append((at, data))
        if data["type"] != "DELETE":
            self.received.add(data["record"]["version"])

    def take(self, data, at):
        self.note(data, at)
        old, record = data.get("old_record"), data.get("record")
        if data["type"] != "INSERT":
            key = key_of(self.table, old)
            if data["type"] == "DELETE" or key != key_of(self.table, record):
                self.rows.pop(key, None)
                self.gone_since.add(key)
        if data["type"] != "DELETE":
            self.rows[key_of(self.table, record)] = record
            self.received_since.add(record["version"])

    @property
    def is_guarded(self):
        return self.table in GUARDED

    @property
    def key_columns(self):
        return set(KEYS[self.table])
