"""Clients that begin with rows (docs/rows.md), and what they make of what comes."""

import asyncio

from support.wsclient import Client

TOPIC = "realtime:rows"


def binding(table="t", event="*", **more):
    return {"event": event, "schema": "public", "table": table, **more}


class Fold:
    """An application's state: it applies what comes, and notes what came twice."""

    def __init__(self, key="id"):
        self.key, self.rows, self.twice, self.report = key, {}, [], None
        self.snapshots, self.errors, self.is_reading = 0, [], False
        self.has_begun = asyncio.Event()

    def take(self, message):
        if message.event == "system" and message.payload["extension"] == "rows":
            if message.payload["status"] == "error":
                self.errors.append(message.payload["message"])
            elif message.payload["message"] == "Rows begin":
                self.rows, self.is_reading = {}, True
            else:
                self.is_reading = False
                self.report = message.payload
                self.has_begun.set()
        elif message.event == "postgres_changes":
            data = message.payload["data"]
            is_snapshot = message.payload.get("snapshot", False)
            assert is_snapshot == self.is_reading, "rows come before the report, and changes behind it"
            self.snapshots += is_snapshot
            if data["type"] == "DELETE":
                self.rows.pop(data["old_record"][self.key], None)
                return
            row = data["record"]
            if data["type"] == "INSERT" and row[self.key] in self.rows:
                self.twice.append(row)
            self.rows[row[self.key]] = row


async def begin(hub, rows, changes=None, topic=TOPIC, apikey=None, **config):
    """A client that begins with rows, what it makes of them, and its join's response."""
    client, fold = await Client.connect(hub.port, apikey=apikey), Fold()
    # In the order in which they come, whoever waits for what.
    client.messages = Watched(fold.take)
    _, response = await client.join(topic, changes or [binding()], {"rows": rows, **config})
    return client, fold, response


class Watched(list):
    """A list that tells what is appended."""

    def __init__(self, tell):
        super().__init__()
        self.tell = tell

    def append(self, item):
        self.tell(item)
        super().append(item)
