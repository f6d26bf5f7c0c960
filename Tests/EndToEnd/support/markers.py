"""Rows that everybody may see: what a socket has when one arrives is all it will ever get of what came before."""

import itertools

from support.deadline import PATIENCE

TOPIC = "realtime:marker"


class Markers:
    def __init__(self, connection):
        self.connection = connection
        self._numbers = itertools.count(1)

    @staticmethod
    async def follow(client):
        """Must be called before the client's other subscriptions are of interest."""
        await client.watch(TOPIC, {"event": "INSERT", "schema": "aside", "table": "marker"})

    def write(self):
        number = next(self._numbers)
        self.connection.execute("insert into aside.marker values (%s)", [number])
        return number

    @staticmethod
    async def reach(client, number, within=PATIENCE):
        """Waits for a marker. The row changes that came before it, in order; they are taken from the client."""
        await client.next(
            "postgres_changes", TOPIC, within=within, where=lambda m: m.payload["data"]["record"] == {"id": number})
        changes = [m for m in client.messages if m.event == "postgres_changes"]
        client.messages = [m for m in client.messages if m.event != "postgres_changes"]
        return changes

    async def pass_by(self, client, within=PATIENCE):
        """What the client was told of all that is committed."""
        return await self.reach(client, self.write(), within)
