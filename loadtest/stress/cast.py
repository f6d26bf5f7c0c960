"""Who talks to whom: users, conversations, and what each client subscribes to; decided by the seed."""

import random
import uuid

from subscription import Subscription
from support.tokens import token

from packaged import PackagedClient
from raw import RawClient

#: As clients do it: see RawClient.
HABITS = ("counts", "anew", "page")
EVENTS = ("INSERT", "UPDATE", "DELETE")


class Everything:
    """The snapshot of a subscription that is not live yet: all that was written so far is none of its business."""

    @staticmethod
    def sees(transaction):
        return True


class Cast:
    def __init__(self, seed, count, packaged, hub):
        self.chance = random.Random(seed)
        self.conversations = list(range(1, max(4, count // 7) + 1))
        self.members = []  # (conversation, user)
        self.raw, self.packaged, self.late = [], [], []
        previous = None
        for number in range(count):
            # One in eight is another device of the user before it, with the same subscriptions.
            if number % 8 != 7 or previous is None:
                previous = self._user(number)
            user, mine, wanted = previous
            if number < packaged:
                client = PackagedClient(f"{number} (PyPI)", hub.url, token(sub=user))
                self.packaged.append(client)
            else:
                version = 1 + number % 2
                # Every other one has a sign-in of its own; those of the demo's tokens have none.
                sign_in = {"session_id": f"sign-in {number}"} if number % 4 < 2 else {}
                habit = HABITS[number % 3]
                client = RawClient(f"{number} (version {version}, {habit})", version, hub.port,
                                   token(sub=user, **sign_in), habit)
                self.raw.append(client)
                if self.chance.random() < 0.1:
                    self.late.append(client)
            for topic, event, conversation in wanted:
                subscription = Subscription(event, conversation, mine)
                if client in self.late:
                    subscription.since = Everything
                client.add(topic, subscription, self._became_live)
        self.on_late = None  # called with the subscription of a latecomer that went live

    def _user(self, number):
        user = str(uuid.UUID(int=0x11111111_0000_4000_8000_000000000000 + number))
        mine = set(self.chance.sample(self.conversations, 3))
        self.members += [(conversation, user) for conversation in sorted(mine)]
        wanted = [(f"realtime:conversation:{conversation}", self._event(), conversation)
                  for conversation in self.chance.sample(sorted(mine), self.chance.randint(1, 2))]
        if self.chance.random() < 0.1:
            wanted.append(("realtime:all", "*", None))
        if self.chance.random() < 0.1:
            # Not a member: SELECT shows nothing of it.
            foreign = [conversation for conversation in self.conversations if conversation not in mine]
            conversation = self.chance.choice(foreign)
            wanted.append((f"realtime:foreign:{conversation}", "*", conversation))
        return user, mine, wanted

    def _event(self):
        return "*" if self.chance.random() < 0.8 else self.chance.choice(EVENTS)

    def _became_live(self, subscription):
        if subscription.since is Everything and self.on_late:
            self.on_late(subscription)

    @property
    def clients(self):
        return self.raw + self.packaged
