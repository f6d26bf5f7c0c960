"""The must-show: whoever is removed gets nothing from the next commit on, whoever is added gets all of it, under load."""

import asyncio
import itertools
import os
import threading
import time

import psycopg
import pytest

from support.chat import Principal, install, person
from support.deadline import PATIENCE, eventually
from support.epochs import Epoch, Span, Timeline
from support.markers import Markers
from support.wsclient import Client

SECONDS = float(os.environ.get("ROOST_E2E_REVOCATION_SECONDS", "5"))
CONVERSATIONS = [f"c0000000-0000-4000-8000-{n:012d}" for n in range(3)]
MEMBERS = 52  # of each conversation; users below this number
KEEPERS = range(3)  # members throughout, one of each conversation has a socket
FLICKERERS = range(3, 9)  # added and removed all the time
STRANGER = MEMBERS  # never a member
WRITERS = 4
LOCK = 7_700_077
ENOUGH = 60  # comings and goings that prove something: ten messages and more are said between two
BACKLOG = 400  # messages that are written before the tests' own sockets have taken them

SCHEMA = f"""
    insert into users (id, name) select ('11111111-0000-4000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'User ' || n
        from generate_series(0, {MEMBERS}) n;
    insert into conversations (id, kind, title) values {", ".join(f"('{c}', 'group', 'One of three')" for c in CONVERSATIONS)};
    insert into conversation_participants (conversation_id, user_id) select c.id, u.id from conversations c, users u
        where u.id <> '{person(STRANGER)}';
    create sequence commit_order cache 1;
"""


class Numbers:
    """What was written when, shared between the threads."""

    def __init__(self, takes_turns):
        self.takes_turns = takes_turns
        self.messages = {c: {} for c in CONVERSATIONS}  # number → span
        self.taken = 0  # by the keepers
        self.ended = threading.Event()
        self._numbers = itertools.count(1)

    def write(self, connection, conversation, sender, statements=(), exclusive=False):
        """Statements and a message in one transaction. The message's number and the span of the transaction.

        Where writers take turns with those who change members, a number that a sequence gives under the lock tells the
        order of the commits; elsewhere the clock does, as far as it can.
        """
        began = time.monotonic()
        with connection.transaction():
            if self.takes_turns:
                connection.execute(f"select pg_advisory_xact_lock{'' if exclusive else '_shared'}(%s)", [LOCK])
            for statement in statements:
                connection.execute(*statement)
            number = next(self._numbers)
            if conversation:
                connection.execute(
                    "insert into messages (id, conversation_id, sender_id, body) values (%s, %s, %s, 'x')",
                    [number, conversation, sender])
            order = connection.execute("select nextval('commit_order')").fetchone()[0] if self.takes_turns else None
        span = Span(order, order) if order else Span(began, time.monotonic())
        if conversation:
            self.messages[conversation][number] = span
        return number, span

    @property
    def backlog(self):
        return sum(map(len, self.messages.values())) - self.taken


class Writer(threading.Thread):
    def __init__(self, url, numbers, number):
        super().__init__(daemon=True)
        self.url, self.numbers, self.number, self.failure = url, numbers, number, None

    def run(self):
        try:
            with psycopg.connect(self.url, autocommit=True) as connection:
                for turn in itertools.count(self.number):
                    while self.numbers.backlog > BACKLOG and not self.numbers.ended.is_set():
                        time.sleep(0.001)
                    if self.numbers.ended.is_set():
                        return
                    self.numbers.write(connection, CONVERSATIONS[turn % 3], person(turn % MEMBERS))
        except BaseException as failure:  # shown by the test
            self.failure = failure


class Socket:
    """One user's; all that the policies let through, by conversation."""

    def __init__(self, user, numbers):
        self.user, self.numbers = user, numbers
        self.received = {c: set() for c in CONVERSATIONS}
        self.is_keeper = user in KEEPERS
        self._news = asyncio.Event()

    async def open(self, hub):
        self.client = await Client.connect(hub.port, apikey=Principal("member", sub=person(self.user)).token())
        await Markers.follow(self.client)
        for conversation in CONVERSATIONS:
            await self.client.watch(f"realtime:{conversation}", {
                "event": "INSERT", "schema": "public", "table": "messages", "filter": f"conversation_id=eq.{conversation}"})
        self.client.on_message = self._take

    def _take(self, message):
        if message.topic == "realtime:marker":
            self.client.messages.append(message)
            self.client._news.set()
            return
        record = message.payload["data"]["record"]
        received = self.received[record["conversation_id"]]
        assert record["id"] not in received, "a message came twice"
        received.add(record["id"])
        # The keeper of a conversation is who tells how far its delivery has come.
        if self.is_keeper and record["conversation_id"] == CONVERSATIONS[self.user]:
            self.numbers.taken += 1
        self._news.set()

    async def has(self, conversation, number, within=PATIENCE):
        async with asyncio.timeout(within):
            while number not in self.received[conversation]:
                self._news.clear()
                await self._news.wait()


async def flicker(url, numbers, socket, keeper, conversation, timeline):
    """Removes and adds one user of one conversation until the end."""
    def change(is_member):
        statement = ("insert into conversation_participants (conversation_id, user_id) values (%s, %s)" if is_member else
                     "delete from conversation_participants where conversation_id = %s and user_id = %s")
        _, span = numbers.write(connection, None, None, [(statement, [conversation, person(socket.user)])], exclusive=True)
        timeline.epochs.append(Epoch(is_member, span))

    def ring():
        return numbers.write(connection, conversation, person(0), exclusive=True)

    with psycopg.connect(url, autocommit=True) as connection:
        for turn in itertools.count():
            is_member = turn % 2 == 1
            await asyncio.to_thread(change, is_member)
            # The epoch lasts until more was said and a bell is heard, by the user, or by another in the user's place.
            said = len(numbers.messages[conversation])
            await eventually(
                lambda: len(numbers.messages[conversation]) >= said + 10 or numbers.ended.is_set(), what="writers that write")
            number, span = await asyncio.to_thread(ring)
            try:
                await (socket if is_member else keeper).has(conversation, number)
            except TimeoutError:
                raise AssertionError(f"{'the added user' if is_member else 'the keeper'} did not get message {number}") from None
            timeline.epochs[-1].bell = span
            if numbers.ended.is_set():
                return


@pytest.mark.parametrize("order", ["turns", "free"])
@pytest.mark.parametrize("scope", [True, False], ids=["derived", "rows"])
async def test_members_come_and_go_while_everybody_writes(own_hub, cluster, scope, order):
    url = own_hub.environment["ROOST_DATABASE_URL"]
    with cluster.connect(own_hub.database) as sql:
        install(sql, SCHEMA)
        own_hub.run("watch", "messages", *([] if scope else ["--no-scope"]))
        own_hub.watch("aside.marker")
        own_hub.start()
        numbers = Numbers(takes_turns=order == "turns")
        sockets = {user: Socket(user, numbers) for user in [*KEEPERS, *FLICKERERS, STRANGER, *range(9, 27)]}
        for socket in sockets.values():
            await socket.open(own_hub)
        writers = [Writer(url, numbers, number) for number in range(WRITERS)]
        for writer in writers:
            writer.start()
        timelines = {(user, CONVERSATIONS[user % 3]): Timeline() for user in FLICKERERS}
        flickers = [asyncio.ensure_future(flicker(url, numbers, sockets[user], sockets[CONVERSATIONS.index(c)], c, timeline))
                    for (user, c), timeline in timelines.items()]
        try:
            await asyncio.wait(flickers, timeout=SECONDS, return_when=asyncio.FIRST_EXCEPTION)
            # On a busy machine so much takes longer.
            await eventually(lambda: any(each.done() for each in flickers) or sum(
                len(timeline.epochs) for timeline in timelines.values()) >= ENOUGH, 120, "enough that come and go")
            numbers.ended.set()
            await asyncio.gather(*flickers)
        finally:
            numbers.ended.set()
            for writer in writers:
                await asyncio.to_thread(writer.join, 20)
        assert [writer.failure for writer in writers if writer.failure] == []
        markers = Markers(sql)
        marker = markers.write()
        for socket in sockets.values():
            await markers.reach(socket.client, marker, within=30)

    shown = hidden = removals = 0
    for (user, conversation), timeline in timelines.items():
        timeline.received = sockets[user].received[conversation]
        gained, withheld = timeline.verdict(numbers.messages[conversation])
        shown, hidden, removals = shown + gained, hidden + withheld, removals + len(timeline.epochs) // 2
    written = sum(map(len, numbers.messages.values()))
    print(f"\n{written} messages in {SECONDS:.0f} s, {removals} removals; certain: {shown} deliveries to added users, {hidden} "
          f"withheld from removed ones")
    assert removals >= 6 and shown > 100 and hidden > 100, "too little happened to prove anything"
    for user in (*KEEPERS, *range(9, 27)):
        for conversation in CONVERSATIONS:
            assert sockets[user].received[conversation] == set(numbers.messages[conversation]), f"member {user}"
    assert not any(sockets[STRANGER].received.values()), "a stranger received something"
    for socket in sockets.values():
        await socket.client.close()
