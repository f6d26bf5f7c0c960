"""The unmodified client of PyPI, and what it reports."""

import contextlib
import re

from realtime import AsyncRealtimeClient

from support.deadline import PATIENCE, eventually
from support.tokens import token


@contextlib.asynccontextmanager
async def python_client(hub, apikey=None, **options):
    # Its own pauses are made for the internet.
    client = AsyncRealtimeClient(hub.url, apikey or token(), initial_backoff=0.1, max_retries=20, **options)
    try:
        yield client
    finally:
        await client.close()


class Listener:
    """One channel, with all that its callbacks were told, in order."""

    def __init__(self, client, topic, broadcast_self=False, ack=False, presence_key="", presence=False, private=False):
        self.channel = client.channel(topic, {"config": {
            "broadcast": {"ack": ack, "self": broadcast_self},
            "presence": {"key": presence_key, "enabled": presence},
            "private": private,
        }})
        self.states, self.changes, self.broadcasts, self.systems = [], [], [], []
        self.syncs, self.joins, self.leaves = [], [], []
        self.channel.on_system(self.systems.append)
        if presence:
            self.channel.on_presence_sync(lambda: self.syncs.append(sorted(self.channel.presence_state())))
            self.channel.on_presence_join(lambda key, _, new: self.joins.append((key, new)))
            self.channel.on_presence_leave(lambda key, _, left: self.leaves.append((key, left)))

    def on_changes(self, event="*", into=None, **binding):
        into = self.changes if into is None else into
        self.channel.on_postgres_changes(event, callback=into.append, **binding)
        return self

    def on_broadcast(self, event):
        self.channel.on_broadcast(event, self.broadcasts.append)
        return self

    async def subscribe(self):
        """Subscribes, and expects it to work."""
        await self.channel.subscribe(lambda state, error: self.states.append((state.value, str(error) if error else None)))
        assert self.states[-1] == ("SUBSCRIBED", None), self.states
        return self

    async def attempt(self):
        """Subscribes; the state that the client reports, and its error."""
        await self.channel.subscribe(lambda state, error: self.states.append((state.value, str(error) if error else None)))
        return self.states[-1]

    async def wait_for_state(self, state, after=0, within=PATIENCE):
        await eventually(
            lambda: any(seen == state for seen, _ in self.states[after:]), within, lambda: f"{state} among {self.states}")

    async def take(self, count=1, within=PATIENCE, of=None):
        """The next `count` row changes' data; fails if more came with them."""
        changes = self.changes if of is None else of
        await eventually(lambda: len(changes) >= count, within, lambda: f"{count} changes among {changes}")
        taken = [change["data"] for change in changes]
        changes.clear()
        assert len(taken) == count, taken
        return taken

    async def take_until(self, is_last, within=PATIENCE):
        """The row changes' data before the one that `is_last`; that one is taken, too."""
        def place():
            return next((n for n, change in enumerate(self.changes) if is_last(change["data"])), None)
        await eventually(lambda: place() is not None, within, lambda: f"the last of {self.changes}")
        end = place()
        taken = [change["data"] for change in self.changes[:end]]
        del self.changes[:end + 1]
        return taken


TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
