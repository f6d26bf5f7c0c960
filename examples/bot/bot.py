"""A bot in the chat of examples/web/chat.html: `pip install realtime==2.34.1`, PyPI's client of Supabase Realtime, unmodified.

    export HUB=ws://127.0.0.1:4000/realtime/v1 TOKEN=…        # examples/README.md says where a token comes from
    python3 examples/bot/bot.py

It greets whoever comes, and answers !who, !dice and !help.
"""

import asyncio
import os
import random
import uuid

from realtime import AsyncRealtimeClient, RealtimeSubscribeStates

NAME = "Bot"


class Bot:
    def __init__(self, client):
        self.channel = client.channel("chat", {"config": {
            # `self` is False: a bot that hears itself may answer itself for ever.
            "broadcast": {"ack": False, "self": False},
            "presence": {"key": "bot", "enabled": True},
            "private": False,
        }})
        self.known = None        # who was here already, so that only those who come are greeted
        self.tasks = set()

    async def start(self):
        self.channel.on_broadcast("message", self.heard)
        self.channel.on_presence_sync(self.look_round)
        # Called again after each reconnect: what was tracked was that connection's.
        await self.channel.subscribe(self.subscribed)

    def subscribed(self, status, error):
        print(status.value, error or "", flush=True)
        if status == RealtimeSubscribeStates.SUBSCRIBED:
            self.begin(self.channel.track({"name": NAME}))

    def begin(self, work):
        """Callbacks are no coroutines. A task that nobody holds may be collected before it is done."""
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def people(self):
        return {key: entries[0].get("name", key) for key, entries in self.channel.presence_state().items() if key != "bot"}

    def look_round(self):
        people = self.people()
        if self.known is not None:
            for key in people.keys() - self.known.keys():
                self.say(f"Hello, {people[key]}!")
        self.known = people

    def heard(self, message):
        said = message["payload"]
        # Anybody may send anything in a public channel: take nothing for granted.
        text = said.get("text") if isinstance(said, dict) else None
        match text.split() if isinstance(text, str) else []:
            case ["!who"]:
                self.say("Here: " + ", ".join(sorted(self.people().values())))
            case ["!dice"]:
                self.say(f"A {random.randint(1, 6)}")
            case ["!help"]:
                self.say("I know !who, !dice and !help")

    def say(self, text):
        # The id lets pages drop what comes twice: after a reconnect a message may be repeated, and is never lost.
        self.begin(self.channel.send_broadcast("message", {"id": str(uuid.uuid4()), "from": NAME, "text": text}))


async def main():
    # By default the client gives up after five attempts; a bot should not.
    client = AsyncRealtimeClient(os.environ["HUB"], os.environ["TOKEN"], max_retries=1000)
    await Bot(client).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        pass
