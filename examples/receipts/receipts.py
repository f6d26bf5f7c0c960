"""Read receipts and last seen, as rows: `pip install realtime==2.34.1`, and the demo (`make run`) beside it.

    python3 examples/receipts/receipts.py Grace       # reads whatever comes, and says who has read what
    python3 examples/receipts/receipts.py Ada         # in another terminal

Receipts are rows of a table (message, user, delivered_at, read_at), so they are there for whoever opens the chat later, and
row level security says who sees them. Last seen is a column of `users` that the hub itself writes: `users.statement` in its
configuration, docs/presence.md. Both tables are watched (`roost watch public.read_receipts`), and clients see their changes.

The tables are those of Sources/Demo/SQL/chat.sql. Marking as read is a call of your own API; here that is the demo's.
"""

import asyncio
import json
import os
import sys
import urllib.request

from realtime import AsyncRealtimeClient, RealtimeSubscribeStates

HUB = os.environ.get("HUB", "http://127.0.0.1:4000")


def call(method, path, token=None, body=None):
    """A call of the application's own API."""
    request = urllib.request.Request(
        f"{HUB}/demo/api/{path}", method=method, data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {token}"} if token else {})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


class Reader:
    def __init__(self, me, people):
        self.me, self.names = me, {person["id"]: person["name"] for person in people}
        self.bodies = {}        # of messages, by id
        self.told = set()       # receipts that were told of: what comes after a lost connection may come twice
        self.is_loading = False

    async def ask(self, method, path, body=None):
        return await asyncio.to_thread(call, method, path, self.me["token"], body)

    async def run(self):
        conversation = (await self.ask("GET", "conversations"))[0]
        self.conversation = conversation["id"]
        client = AsyncRealtimeClient(f"{HUB}/realtime/v1".replace("http", "ws", 1), self.me["token"], max_retries=1000)
        only = f"conversation_id=eq.{self.conversation}"
        # First the rows that are there, then what changes: nothing falls in between (docs/rows.md).
        rows = [{"table": "messages", "filter": only, "order": "id.desc", "limit": 50},
                {"table": "read_receipts", "filter": only, "order": "message_id.desc", "limit": 200}]
        channel = client.channel(f"receipts:{self.conversation}", {"config": {
            "broadcast": {"ack": False, "self": False, "rows": rows}, "presence": {"key": "", "enabled": False},
            "private": False}})
        channel.on_system(self.system)
        channel.on_postgres_changes("INSERT", schema="public", table="messages", filter=only, callback=self.message)
        channel.on_postgres_changes("*", schema="public", table="read_receipts", filter=only, callback=self.receipt)
        channel.on_postgres_changes("UPDATE", schema="public", table="users", callback=self.person)
        for person in conversation["participants"]:
            print(f"{person['name']} was last seen {person['last_seen'] or 'never'}", flush=True)
        await channel.subscribe(
            lambda status, error: None if status == RealtimeSubscribeStates.SUBSCRIBED else print(status, error))
        await asyncio.Event().wait()

    async def mark(self, message):
        """All up to this message at once: one call and one statement, however many were unread."""
        await self.ask("POST", "receipts", {
            "conversation_id": self.conversation, "up_to_message_id": message, "state": "read"})

    # What the hub tells

    def system(self, news):
        if news.message == "Rows begin":
            self.is_loading = True
        elif news.message == "Rows are there":
            self.is_loading = False
            if self.bodies:
                self.marking = asyncio.ensure_future(self.mark(max(self.bodies)))
            print("following; Ctrl-C ends it", flush=True)

    def message(self, change):
        row = change["data"]["record"]
        self.bodies[row["id"]] = row["body"]
        if self.is_loading:
            return
        print(f"{self.names.get(row['sender_id'], 'Somebody')}: {row['body']}", flush=True)
        if row["sender_id"] != self.me["id"]:
            # Held by the loop until it is done. An app does this when the message is on the screen.
            self.marking = asyncio.ensure_future(self.mark(row["id"]))

    def receipt(self, change):
        if change["data"]["type"] != "DELETE":
            self.tell(change["data"]["record"])

    def tell(self, receipt):
        state = "read" if receipt["read_at"] else "got"
        key = receipt["message_id"], receipt["user_id"], state
        if key in self.told or receipt["user_id"] == self.me["id"]:
            return
        self.told.add(key)
        body = self.bodies.get(receipt["message_id"], f"message {receipt['message_id']}")
        print(f"{self.names.get(receipt['user_id'], 'Somebody')} has {state}: {body}", flush=True)

    def person(self, change):
        row = change["data"]["record"]
        seen = "is online" if row["status"] == "online" else f"was last seen {row['last_seen']}"
        print(f"{row['name']} {seen}", flush=True)


async def main():
    people = (await asyncio.to_thread(call, "GET", "session"))["users"]
    name = sys.argv[1] if len(sys.argv) > 1 else "Grace"
    await Reader(next(person for person in people if person["name"] == name), people).run()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        pass
