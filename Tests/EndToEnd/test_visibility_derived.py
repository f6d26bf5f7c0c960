"""A derived scope while its policies and members change under load: no row too many, and none too few."""

import asyncio
import itertools
import time

import pytest

from support.bounds import Elapsed
from support.chat import A, ADA, GRACE, OUTSIDER, Principal, install, message, person
from support.markers import TOPIC, Markers
from support.wsclient import Client

SECOND = 1.0  # within which changed policies count
MEMBER = "conversation_id in (select my_conversations())"

#: In turn: what the policy says, and which texts members see by it. The second reads two columns, the third cannot be
#: derived, as no two rows have the same id, and the fourth neither, as it looks at the clock.
POLICIES = [
    (MEMBER, {"plain", "secret"}),
    (f"{MEMBER} and body <> 'secret'", {"plain"}),
    (f"{MEMBER} and id > 0 and body = 'secret'", {"secret"}),
    (f"{MEMBER} and body = 'plain' and now() > '2020-01-01'", {"plain"}),
]


@pytest.fixture
def chat(own_hub, cluster):
    with cluster.connect(own_hub.database) as sql:
        install(sql)
        own_hub.run("watch", "messages")
        own_hub.watch("aside.marker")
        own_hub.start()
        yield sql


class Writer:
    """One session that writes rows all the time; in the midst of them one user leaves and one comes."""

    def __init__(self, sql):
        self.sql = sql
        self.texts = POLICIES[0][1]
        self.before = self.texts
        self.is_settled = True
        #: For each message whether a member sees it; None where the policy had just changed.
        self.seen = {}
        self.numbers = itertools.count(100)
        #: The first message after each user left or came.
        self.left, self.came = {}, {}

    def change(self, policy, texts):
        """All that was written before has been judged."""
        self.sql.execute(f'alter policy "members read" on messages using ({policy})')
        self.before, self.texts, self.is_settled = self.texts, texts, False

    def write_for(self, seconds):
        """The number of the last."""
        end = time.monotonic() + seconds
        while (last := self.write()) and time.monotonic() < end:
            pass
        return last + 1

    def come_and_go(self, leaver, comer):
        self.is_settled = True
        for _ in range(20):
            self.write()
        self.sql.execute(f"delete from conversation_participants where user_id = '{leaver.sub}'")
        self.left[leaver] = self.write()
        self.sql.execute(f"insert into conversation_participants (conversation_id, user_id) values ('{A}', '{comer.sub}')")
        self.came[comer] = self.write()
        for _ in range(20):
            self.write()

    def write(self):
        """Two rows. The number of the first."""
        first = next(self.numbers)
        for number, body in ((first, "plain"), (next(self.numbers), "secret")):
            self.sql.execute(message(number, A, ADA.sub, body))
            by_old, by_new = body in self.before, body in self.texts
            self.seen[number] = by_new if self.is_settled or by_old == by_new else None
        # What no policy reads concerns nobody's answers.
        self.sql.execute(f"update conversation_participants set last_read_at = now() where user_id = '{GRACE.sub}'")
        return first


async def test_policies_and_members_that_change_under_load_show_no_row_too_many(chat, own_hub):
    turns = [*POLICIES, POLICIES[0]]
    leavers = [Principal(f"leaver {n}", sub=person(100 + n)) for n in range(len(turns))]
    comers = [Principal(f"comer {n}", sub=person(200 + n)) for n in range(len(turns))]
    for someone in leavers + comers:
        chat.execute(f"insert into users (id, name) values ('{someone.sub}', '{someone}')")
    for leaver in leavers:
        chat.execute(f"insert into conversation_participants (conversation_id, user_id) values ('{A}', '{leaver.sub}')")
    markers = Markers(chat)
    clients, came = {}, {}
    for someone in [GRACE, OUTSIDER, *leavers, *comers]:
        clients[someone] = await Client.connect(own_hub.port, apikey=someone.token())
        came[someone] = []
        await markers.follow(clients[someone])
        await clients[someone].watch("realtime:all", {"event": "INSERT", "schema": "public", "table": "messages"})
    writer = Writer(chat)

    async def take(*people):
        marker = markers.write()
        for someone in people:
            # Markers of those who were taken alone may be among them.
            came[someone] += [frame.payload["data"]["record"]["id"] for frame in await markers.reach(clients[someone], marker)
                              if frame.topic != TOPIC]

    for (policy, texts), leaver, comer in zip(turns, leavers, comers):
        await asyncio.to_thread(writer.change, policy, texts)
        changed, is_in_force = Elapsed(), False
        await asyncio.to_thread(writer.write_for, SECOND)
        # It is in force now, but on a machine that stood still meanwhile.
        while not is_in_force:
            began = changed.seconds
            last = await asyncio.to_thread(writer.write_for, 0)
            await take(GRACE)
            is_in_force = {last - 1, last} & set(came[GRACE]) == {
                n for n, text in ((last - 1, "plain"), (last, "secret")) if text in texts}
            if not is_in_force:
                changed.assert_at_most(SECOND, "the new policy", changed.since + began)
        await asyncio.to_thread(writer.come_and_go, leaver, comer)
        await take(*clients)
    assert own_hub.metric("roost_visibility_kept_total") > 0, "a scope was in use"
    visible = {n for n, seen in writer.seen.items() if seen}
    hidden = {n for n, seen in writer.seen.items() if seen is False}
    assert len(visible) > 100 and len(hidden) > 100, "it was neither all nor nothing"
    for someone, rows in came.items():
        assert rows == sorted(set(rows)), f"{someone}: each once, in order"
        assert not hidden & set(rows), f"{someone} was shown what the policy hides"
    assert not came[OUTSIDER]
    assert visible <= set(came[GRACE])
    for leaver, first in writer.left.items():
        assert not [n for n in came[leaver] if n >= first], f"{leaver} was shown what was written after that"
    for comer, first in writer.came.items():
        assert {n for n in visible if n >= first} <= set(came[comer]), f"{comer} missed what was written after that"
    for client in clients.values():
        await client.close()
