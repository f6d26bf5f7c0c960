"""Who is alerted: whoever has not certainly been shown the message. An open socket proves nothing.

Each cell of the table is a phone with a user and conversations of its own, and something happens to it before a message comes: its
process is stopped as iOS does, the network drops its packets, its socket is closed, or it changes networks. The hub sees the first two
alike: bytes go out, and nothing comes back.
"""

import asyncio
import contextlib
import itertools
import time
import uuid

import pytest

from support.bounds import taken, watch_the_machine
from support.chat import A, ADA, B, GRACE, Principal
from support.deadline import eventually
from support.proxy import Proxy
from support.push_hub import Phone, PushHub
from support.wsclient import Client

STATES = "active", "inactive", "background"
EVENTS = "stopped", "dropped", "closed", "switched"
OPEN = "conversation", "another", "none"
#: Seconds that an app on the screen has to prove a message (alerts.proof_seconds), and what is allowed from message to alert beyond.
PROOF, PROMPT = 5, 1.5
WINDOWS = {"active": 2, "inactive": 8, "background": 20}


def expected(state, event, opened):
    """Seconds from the message to the alert at most; None: no alert."""
    if event == "closed" and state != "background":
        # Whoever is cut off may be back in the window, with the message.
        return WINDOWS[state] + PROMPT
    if state != "active":
        # iOS shows nothing by itself then.
        return PROMPT
    if opened != "conversation":
        return PROMPT
    return None if event == "switched" else PROOF + PROMPT


class Cell:
    """One phone: its conversation, and another one."""

    def __init__(self, chat, hub, state, event, opened):
        self.chat, self.hub, self.state, self.event, self.opened = chat, hub, state, event, opened
        self.who = Principal(f"{state}, {event}, {opened}", sub=str(uuid.uuid4()))
        self.conversation, self.another = str(uuid.uuid4()), str(uuid.uuid4())
        self.phone = Phone(chat, self.who)
        self.clients = []

    def __repr__(self):
        return repr(self.who)

    def settle_in(self, sql):
        sql.execute("insert into users (id, name) values (%s, 'Somebody')", [self.who.sub])
        for conversation in self.conversation, self.another:
            sql.execute("insert into conversations (id, kind, title, created_by) values (%s, 'group', 'C', %s)",
                        [conversation, ADA.sub])
            sql.execute("insert into conversation_participants (conversation_id, user_id) values (%s, %s) on conflict do nothing",
                        [conversation, self.who.sub])

    async def open(self, port):
        """The app opens what it opens, and says what it is doing."""
        client = await Client.connect(port, apikey=self.phone.bearer)
        self.clients.append(client)
        await client.join("realtime:lobby", config={"app_state": self.state})
        conversation = {"conversation": self.conversation, "another": self.another, "none": None}[self.opened]
        if conversation:
            await client.watch(f"realtime:{conversation}", {
                "event": "INSERT", "schema": "public", "table": "messages", "filter": f"conversation_id=eq.{conversation}"})
        await client.settled()
        return client

    async def begin(self):
        await self.phone.register()
        self.proxy = await Proxy(self.hub.port).__aenter__()
        self.client = await self.open(self.proxy.port)

    async def happen(self):
        if self.event == "stopped":
            self.client._task.cancel()
        elif self.event == "dropped":
            self.proxy.stall()
        elif self.event == "closed":
            await self.client.close()
        elif self.event == "switched":
            self.proxy.stall()
            await self.open(self.hub.port)

    def receive(self, sql):
        self.at = time.time()
        self.chat.say(sql, ADA, f"to {self}", self.conversation)

    @property
    def alerts(self):
        return self.phone.alerts

    @property
    def seconds(self):
        """From the message to the first alert; None while there is none."""
        return self.alerts[0]["at"] - self.at if self.alerts else None

    async def end(self):
        for client in self.clients:
            client._task.cancel()
            with contextlib.suppress(Exception):
                client.socket.abort()
        self.proxy.flow()
        await self.proxy.close()


@pytest.mark.parametrize("hubs", [1, 2], ids=["one hub", "two hubs"])
async def test_who_is_alerted_when_by_what_the_app_does_and_what_happens_to_it(cluster, hubs):
    watch_the_machine()
    async with PushHub(cluster, f"push_receipts_{hubs}", grace=WINDOWS) as chat:
        if hubs == 2:
            await asyncio.to_thread(chat.another_hub().start)
            # It takes nobody for away before.
            await asyncio.sleep(1.2)
        # With two, the phones are at the second one, and either may read a message first.
        cells = [Cell(chat, chat.hubs[-1], *each) for each in itertools.product(STATES, EVENTS, OPEN)]
        with chat.sql() as sql:
            for cell in cells:
                cell.settle_in(sql)
            for cell in cells:
                await cell.begin()
            for cell in cells:
                await cell.phone.is_online(sql)
            try:
                for cell in cells:
                    await cell.happen()
                since = time.monotonic()
                for cell in cells:
                    cell.receive(sql)
                to_come = [cell for cell in cells if expected(cell.state, cell.event, cell.opened) is not None]
                await eventually(lambda: all(cell.alerts for cell in to_come), what=lambda: [c for c in to_come if not c.alerts], every=0.1)
                # Whoever is not alerted has proven the message; the wait for a proof is over for all of them.
                await eventually(lambda: sql.execute(
                    "select count(*) from roost.alert where state in ('due', 'held', 'elsewhere')").fetchone() == (0,),
                    what="nothing waits")
                lost = taken(since, time.monotonic(), PROOF)
                for cell in cells:
                    within = expected(cell.state, cell.event, cell.opened)
                    [(reason,)] = sql.execute(
                        "select reason from roost.alert where user_id = %s", [cell.who.sub]).fetchall()
                    print(f"{cell!r:36} {'no alert' if cell.seconds is None else f'{cell.seconds:5.1f} s':>9}  {reason}")
                    if within is None:
                        assert cell.alerts == [] and reason == "shown", cell
                    else:
                        assert len(cell.alerts) == 1, cell
                        assert cell.seconds <= within + lost, (cell, cell.seconds, within, lost)
            finally:
                for cell in cells:
                    await cell.end()
        assert chat.apns.violations == []


async def reason(sql, message):
    """Why the alert of a message is where it is, once that is decided."""
    query = "select reason from roost.alert where message = %s and state not in ('due', 'held', 'elsewhere')"
    await eventually(lambda: sql.execute(query, [f"public.messages {message}"]).fetchone(), what=f"a decision on {message}")
    return sql.execute(query, [f"public.messages {message}"]).fetchone()[0]


async def test_an_app_in_the_background_that_answers_has_received_the_message(cluster):
    async with PushHub(cluster, "push_unreceived", ROOST_ALERTS_WHEN="unreceived") as chat:
        phone = await Phone(chat, GRACE).register()
        await phone.open(state="background")
        with chat.sql() as sql:
            assert await reason(sql, chat.say(sql, ADA, "received")) == "received"
            # An answer is what counts: whoever reads no more is alerted.
            phone.socket._task.cancel()
            assert await reason(sql, chat.say(sql, ADA, "not received")) == "unproven"
        await phone.has_alerts("not received")
        phone.cut()


async def test_an_open_socket_is_enough_where_the_operator_says_so(cluster):
    async with PushHub(cluster, "push_away", ROOST_ALERTS_WHEN="away") as chat:
        phone = await Phone(chat, GRACE).register()
        await phone.open()
        phone.socket._task.cancel()
        with chat.sql() as sql:
            assert await reason(sql, chat.say(sql, ADA, "to a socket")) == "connected"
            phone.cut()
            assert await reason(sql, chat.say(sql, ADA, "to nobody")) == "away"
        await phone.has_alerts("to nobody")


@pytest.mark.parametrize("hubs", [1, 2], ids=["one hub", "two hubs"])
async def test_phones_of_one_user_are_judged_one_by_one_where_the_operator_says_so(cluster, hubs):
    async with PushHub(cluster, f"push_devices_{hubs}", ROOST_ALERTS_DEVICES="each") as chat:
        if hubs == 2:
            await asyncio.to_thread(chat.another_hub().start)
        phone, tablet = Phone(chat, GRACE), Phone(chat, GRACE)
        # It registers no token.
        laptop = Phone(chat, GRACE)
        tablet.hub = chat.hubs[-1]
        for each in phone, tablet:
            await each.register()
        with chat.sql() as sql:
            await tablet.open()
            await tablet.is_online(sql)
            assert await reason(sql, chat.say(sql, ADA, "shown by the tablet")) == "away"
            await phone.has_alerts("shown by the tablet")
            await laptop.open()
            await tablet.close()
            chat.say(sql, ADA, "shown by the laptop")
            await tablet.has_alerts("shown by the laptop")
            await phone.has_alerts("shown by the tablet", "shown by the laptop")
            await phone.open()
            await tablet.open()
            both = chat.say(sql, ADA, "shown by both")
            await reason(sql, both)
            outcomes = sql.execute("select outcome from roost.alert_device where message = %s", [f"public.messages {both}"]).fetchall()
            assert outcomes == [("shown",), ("shown",)]
            await phone.is_now("background")
            await reason(sql, chat.say(sql, ADA, "hidden on the phone"))
        await phone.has_alerts("shown by the tablet", "shown by the laptop", "hidden on the phone")
        await tablet.has_alerts("shown by the laptop")
        for each in phone, tablet, laptop:
            await each.close()


async def test_a_message_that_waits_for_a_filter_is_under_way(cluster):
    """Whoever is sent it when the filter is decided is not alerted of it before."""
    async with PushHub(cluster, "push_undecided", ROOST_ALERTS_PROOF_SECONDS="30") as chat:
        phone = await Phone(chat, GRACE).register()
        with chat.sql() as sql, chat.sql() as holder:
            sql.execute("""
                create type mood as (v text);
                create function is_mood(a mood, b mood) returns boolean language plpgsql strict as $$
                begin
                    perform pg_advisory_lock_shared(7), pg_advisory_unlock_shared(7);
                    return (a).v = (b).v;
                end $$;
                create operator = (leftarg = mood, rightarg = mood, function = is_mood);
                alter table messages add column mood mood;
                """)
            client = await Client.connect(chat.hub.port, apikey=phone.bearer)
            await client.watch("realtime:a", {"event": "INSERT", "schema": "public", "table": "messages", "filter": "mood=eq.(good)"},
                               config={"app_state": "active"})
            for number, (mood, expected) in enumerate([("good", "shown"), ("bad", "unheard")], 1000):
                holder.execute("select pg_advisory_lock(7)")
                sql.execute("insert into messages (id, conversation_id, sender_id, body, mood) values (%s, %s, %s, %s, row(%s))",
                            [number, A, ADA.sub, mood, mood])
                message = f"public.messages {number}"
                await eventually(lambda: sql.execute("select state from roost.alert where message = %s", [message]).fetchone(),
                                 what="the alert, which is held")
                holder.execute("select pg_advisory_unlock(7)")
                assert await reason(sql, number) == expected
        await phone.has_alerts("bad")
        await client.close()


async def test_a_command_says_why(cluster):
    async with PushHub(cluster, "push_why") as chat:
        phone = await Phone(chat, GRACE).register()
        with chat.sql() as sql:
            away = chat.say(sql, ADA, "to nobody")
            assert await reason(sql, away) == "away"
            await phone.has_alerts("to nobody")
            await phone.open()
            shown = chat.say(sql, ADA, "to the app")
            assert await reason(sql, shown) == "shown"
        try:
            await eventually(lambda: "delivered" in chat.hub.run("alerts", str(away)).stdout, what="Apple's answer")
            [line] = chat.hub.run("alerts", f"public.messages {away}").stdout.splitlines()
            assert line.endswith(f": the user had no socket ({phone.device[:8]}... delivered)") and GRACE.sub in line
            lines = chat.hub.run("alerts", "--user", GRACE.sub).stdout.splitlines()
            assert [f"public.messages {each}" in line for each, line in zip((shown, away), lines)] == [True, True]
            assert lines[0].endswith("not sent: an app on the screen proved that it arrived")
            unknown = chat.hub.run("alerts", "nothing", check=False)
            assert unknown.returncode == 1 and unknown.stderr.startswith("Error: No alert is remembered of that")
            assert chat.hub.run("alerts", check=False).returncode == 64
            bare = chat.hub.run("alerts", "1", check=False, ROOST_DATABASE_URL=cluster.create_database("push_why_bare"))
            assert (bare.returncode, "run `roost migrate`" in bare.stderr) == (69, True), bare.stderr
            # Whatever else it says of this machine.
            doctor = chat.hub.run("doctor", check=False).stdout
            assert "ok       alerts: alerts.when is unseen: " in doctor
            assert "ok       alerts: No alert waits for a hub that says nothing." in doctor
            assert "to prove 1 message in the last day; 0 were alerted for want of a proof." in doctor
        finally:
            await phone.close()


async def test_a_conversation_that_is_not_open_is_alerted_at_once(cluster):
    async with PushHub(cluster, "push_unheard") as chat:
        phone = await Phone(chat, GRACE).register()
        client = await Client.connect(chat.hub.port, apikey=phone.bearer)
        await client.watch("realtime:b", {"event": "INSERT", "schema": "public", "table": "messages", "filter": f"conversation_id=eq.{B}"})
        with chat.sql() as sql:
            assert await reason(sql, chat.say(sql, ADA, "in A")) == "unheard"
        await phone.has_alerts("in A")
        await client.close()
