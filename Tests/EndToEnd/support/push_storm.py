"""Messages to phones that are stopped, cut off, switched and killed at random, while hubs and Postgres are: who was told?

Each message is for the users of one conversation. At the end each of them has read it in an app, or was alerted of it; what is neither is a
fault, but for alerts that a hub had taken when it was killed: it may have sent them, and nothing is sent twice (docs/push.md).

An app has read what its process took from the socket while it ran. What lies in the kernel's buffer of one that is stopped is not read.
"""

import asyncio
import collections
import contextlib
import random
import signal
import time
import uuid
from dataclasses import dataclass, field

import psycopg

from support.apns import new_token
from support.chat import ADA, Principal
from support.deadline import PATIENCE, eventually
from support.push_hub import Phone, PushHub
from support.websocket import Closed, Refused
from support.wsclient import Client

#: Seconds that a phone may be gone (presence.grace), and that its proof is waited for (alerts.proof_seconds).
WINDOWS = {"active": 2, "inactive": 4, "background": 8}
PROOF = 3
#: Users of one conversation.
MEMBERS = 5
#: What happens to an app, and how often: it is stopped and later goes on, its socket is reset, it changes networks, its process ends, it
#: goes to the background and comes back, or it opens another conversation.
EVENTS = {"stop": 4, "cut": 3, "switch": 3, "kill": 2, "leave": 1, "hide": 2, "elsewhere": 1}
#: What happens to what serves them.
FAULTS = "kill", "stop", "postgres", "both"
#: What a client may be refused by while hubs come and go.
REFUSALS = ConnectionError, Closed, Refused, TimeoutError, AssertionError, asyncio.IncompleteReadError, OSError


@dataclass
class User:
    """Somebody, and what the apps of all of this user's phones have read."""
    who: Principal
    conversation: str
    #: Message → when (seconds since 1970), and in which state the app was.
    read: dict = field(default_factory=dict)
    phones: list = field(default_factory=list)


class App:
    """One phone and its app, which lives as `Storm` has it."""

    def __init__(self, storm, user, number):
        self.storm, self.user, self.random = storm, user, random.Random(f"{storm.seed} phone {number}")
        self.phone = Phone(storm.chat, user.who)
        self.state, self.client, self.refs, self.old = "active", None, 0, []
        #: When something happened to it, in seconds since 1970, and until when; the last one goes on.
        self.troubles, self.counts = [[time.time(), None]], collections.Counter()

    def begin_trouble(self):
        if self.troubles[-1][1] is not None:
            self.troubles.append([time.time(), None])

    def end_trouble(self):
        self.troubles[-1][1] = time.time()

    def was_in_trouble(self, since, until):
        return any(begin <= until and (end is None or end >= since) for begin, end in self.troubles)

    # The socket

    async def open(self, conversation):
        """As a client's library does: until it works."""
        self.begin_trouble()
        # Whoever counts its refs on is known by them, and who begins anew by the sign-in.
        self.refs = self.refs if self.random.random() < 0.7 else 0
        while True:
            hub = self.random.choice(self.storm.chat.hubs)
            try:
                async with asyncio.timeout(PATIENCE):
                    self.client = await Client.connect(hub.port, apikey=self.phone.bearer)
                    self.client.on_message, self.client._refs = self.take, self.refs
                    await self.client.join("realtime:lobby", config={"app_state": self.state})
                    await self.client.watch(f"realtime:{conversation}", {
                        "event": "INSERT", "schema": "public", "table": "messages", "filter": f"conversation_id=eq.{conversation}"})
                    self.refs = self.client._refs
                return self.end_trouble()
            except REFUSALS as refusal:
                self.storm.refusals[repr(refusal)[:200]] += 1
                self.drop()
                await asyncio.sleep(self.random.uniform(0.2, 1))

    def take(self, message):
        self.user.read.setdefault(message.payload["data"]["record"]["id"], (time.time(), self.state))

    def halt(self):
        """The process does nothing more; its socket stays open."""
        if self.client:
            self.client._task.cancel()
            self.refs = max(self.refs, self.client._refs)
            self.old.append(self.client)
        return self.client

    def drop(self):
        """The system ends the socket."""
        if client := self.halt():
            client.socket.abort()
            self.old.remove(client)
        self.client = None

    def say(self, state):
        self.state = state
        self.client.push("realtime:lobby", "broadcast", {
            "type": "broadcast", "event": "app_state", "payload": {"type": "app_state", "state": state}}, self.client.ref())

    # Its life

    async def live(self):
        try:
            await self.open(self.user.conversation)
            await self.storm.begins.wait()
            while not self.storm.is_calm:
                await self.rest(self.random.expovariate(1 / self.storm.every))
                if self.storm.is_calm:
                    return
                await getattr(self, self.random.choices(list(EVENTS), EVENTS.values())[0])()
        finally:
            for client in [*self.old, *([self.client] if self.client else [])]:
                client._task.cancel()
                client.socket.abort()

    async def rest(self, seconds):
        """Goes on; a socket that ends is opened anew, as long as the process lives."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    await asyncio.wait([self.client._task])
                    self.counts["ended"] += 1
                    await self.open(self.user.conversation)

    async def away(self):
        await self.storm.sleep(self.random.uniform(0, 2 * self.storm.every))

    async def stop(self):
        self.counts["stop"] += 1
        self.begin_trouble()
        stopped = self.halt()
        await self.away()
        if self.random.random() < 0.5:
            # It goes on where it was, with what lies in the buffer.
            self.old.remove(stopped)
            stopped._task = asyncio.create_task(stopped._read())
            return self.end_trouble()
        await self.open(self.user.conversation)

    async def cut(self):
        self.counts["cut"] += 1
        self.begin_trouble()
        self.drop()
        await self.storm.sleep(self.random.choice([0, 0.5, 3]))
        await self.open(self.user.conversation)

    async def switch(self):
        self.counts["switch"] += 1
        self.begin_trouble()
        self.halt()
        await self.open(self.user.conversation)

    async def kill(self):
        self.counts["kill"] += 1
        self.begin_trouble()
        self.drop()
        await self.away()
        self.refs = 0
        await self.open(self.user.conversation)

    async def leave(self):
        self.counts["leave"] += 1
        self.begin_trouble()
        with contextlib.suppress(*REFUSALS):
            await self.client.close()
        self.drop()
        await self.away()
        await self.open(self.user.conversation)

    async def hide(self):
        self.counts["hide"] += 1
        self.begin_trouble()
        self.say(self.random.choice(["inactive", "background"]))
        if self.random.random() < 0.5:
            await self.rest(self.random.uniform(0, self.storm.every))
        else:
            self.halt()
            await self.away()
            self.state = "active"
            return await self.open(self.user.conversation)
        self.say("active")
        self.end_trouble()

    async def elsewhere(self):
        self.counts["elsewhere"] += 1
        self.begin_trouble()
        self.drop()
        others = [user.conversation for user in self.storm.users if user.conversation != self.user.conversation]
        await self.open(self.random.choice(others or [str(uuid.uuid4())]))
        self.begin_trouble()
        await self.storm.sleep(self.random.uniform(0, self.storm.every))
        self.drop()
        await self.open(self.user.conversation)


class Storm:
    """`await Storm(cluster, "name", seed=1, messages=2000, phones=200).run()`: a `Report`. The cluster must be nobody else's."""

    def __init__(self, cluster, name, seed, messages, phones, rate=20, faults=8, every=8.0, capture="triggers"):
        self.cluster, self.name, self.seed, self.count, self.phones = cluster, name, seed, messages, phones
        self.rate, self.faults, self.every, self.capture = rate, faults, every, capture
        self.random, self.is_calm = random.Random(f"{seed} storm"), False
        self.begins, self.calm = asyncio.Event(), asyncio.Event()
        self.written, self.writer = {}, None
        #: Why connections did not come about.
        self.refusals = collections.Counter()
        #: When a hub or Postgres was away, and which.
        self.outages = []

    async def sleep(self, seconds):
        """As long as the storm lasts."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.calm.wait()

    async def run(self):
        settings = {"ROOST_ALERTS_PROOF_SECONDS": str(PROOF), "ROOST_FEED_CAPTURE": self.capture}
        chat = PushHub(self.cluster, self.name, grace=WINDOWS, **settings)
        with self.cluster.connect(self.name) as sql:
            # Tests do without (support/cluster.py); a commit that Postgres forgets as it is killed is no message.
            sql.execute(f"alter database {self.name} set synchronous_commit = on")
        async with chat as self.chat:
            await asyncio.to_thread(self.chat.another_hub().start)
            self.people()
            apps = [app for user in self.users for app in user.phones]
            for app in apps:
                await app.phone.register()
            lives = [asyncio.create_task(app.live()) for app in apps]
            try:
                await eventually(lambda: all(app.troubles[-1][1] for app in apps), 120, lambda: f"all of them are connected: {self.refusals}")
                with self.chat.sql() as sql:
                    await eventually(lambda: sql.execute("select count(distinct user_id) from roost.online_user").fetchone() == (len(self.users),),
                                     what="each hub knows who is at the other one")
                self.began = time.time()
                self.begins.set()
                breaking = asyncio.create_task(self.break_things())
                await self.write()
                print(f"{time.time() - self.began:6.1f} s  all is written", flush=True)
                self.is_calm = True
                self.calm.set()
                await breaking
                await self.settle()
                return Report(self, apps)
            finally:
                if self.writer:
                    self.writer.close()
                for life in lives:
                    life.cancel()
                await asyncio.gather(*lives, return_exceptions=True)

    def people(self):
        devices = random.Random(f"{self.seed} people")
        self.users, left = [], self.phones
        with self.chat.sql() as sql:
            while left:
                if len(self.users) % MEMBERS == 0:
                    conversation = str(uuid.uuid4())
                    sql.execute("insert into conversations (id, kind, title, created_by) values (%s, 'group', 'C', %s)",
                                [conversation, ADA.sub])
                user = User(Principal(f"user {len(self.users)}", sub=str(uuid.uuid4())), conversation)
                sql.execute("insert into users (id, name) values (%s, 'Somebody')", [user.who.sub])
                sql.execute("insert into conversation_participants (conversation_id, user_id) values (%s, %s)",
                            [conversation, user.who.sub])
                self.users.append(user)
                for _ in range(min(left, 2 if devices.random() < 0.1 else 1)):
                    user.phones.append(App(self, user, left))
                    left -= 1

    # What is done

    async def write(self):
        conversations = sorted({user.conversation for user in self.users})
        for number in range(1000, 1000 + self.count):
            conversation = self.random.choice(conversations)
            await asyncio.to_thread(self.insert, number, conversation)
            await asyncio.sleep(self.random.expovariate(self.rate))

    def insert(self, number, conversation):
        """A writer of the application, who tries until it is there."""
        while True:
            try:
                self.writer = self.writer or psycopg.connect(self.cluster.url(self.name), autocommit=True)
                self.writer.execute(
                    "insert into messages (id, conversation_id, sender_id, body) values (%s, %s, %s, %s) on conflict do nothing",
                    [number, conversation, ADA.sub, f"message {number}"])
                self.written[number] = time.time(), conversation
                return
            except psycopg.OperationalError:
                self.writer = None
                time.sleep(0.1)

    async def break_things(self):
        faults = random.Random(f"{self.seed} faults")
        span = self.count / self.rate
        for number in range(self.faults):
            await self.sleep(faults.uniform(0.5, 1.5) * span / (self.faults + 1))
            if self.is_calm:
                return
            kind, down = FAULTS[number % len(FAULTS)], faults.uniform(0.2, 3)
            print(f"{time.time() - self.began:6.1f} s  {kind}, for {down:.1f} s", flush=True)
            outage = [time.time(), None]
            self.outages.append(outage)
            hub = faults.choice(self.chat.hubs)
            if kind == "postgres":
                await asyncio.to_thread(self.cluster.stop, "immediate")
                await asyncio.sleep(down)
                await asyncio.to_thread(self.cluster.start, False)
            else:
                hubs = self.chat.hubs if kind == "both" else [hub]
                for each in hubs:
                    if kind == "stop":
                        await asyncio.to_thread(each._end, signal.SIGTERM, 30)
                    else:
                        await asyncio.to_thread(each.kill)
                await asyncio.sleep(down)
                for each in hubs:
                    await asyncio.to_thread(each.start)
            outage[1] = time.time()

    async def settle(self):
        """Nothing waits any more, nor is on its way, but for what a killed hub had."""
        await asyncio.gather(*(hub.settled() for hub in self.chat.hubs))
        with self.chat.sql() as sql:
            def waiting():
                return sql.execute("select state, reason, node, count(*), min(due_at - clock_timestamp()) from roost.alert "
                                   "where state in ('due', 'held', 'elsewhere') group by 1, 2, 3").fetchall()
            began = time.monotonic()
            await eventually(lambda: not waiting(), 120, lambda: f"nothing waits: {waiting()}", every=0.2)
            await eventually(lambda: sql.execute("select count(*) from roost.alert_device where outcome is null").fetchone() == (0,), 30,
                             "no alert is on its way", every=0.2)
            self.settled_after = time.monotonic() - began


class Report:
    """What became of each message for each of its users."""

    def __init__(self, storm, apps):
        self.storm, self.apps = storm, apps
        with storm.chat.sql() as sql:
            known = {(message.rpartition(" ")[2], user): (state, reason) for message, user, state, reason in sql.execute(
                "select message, user_id, state, reason from roost.alert").fetchall()}
            outcomes = {(message.rpartition(" ")[2], token): outcome for message, token, outcome in sql.execute(
                "select message, token, outcome from roost.alert_device").fetchall()}
        pushes = collections.defaultdict(list)
        for push in storm.chat.apns.taken:
            if "messageId" in push["payload"]:
                pushes[int(push["payload"]["messageId"]), push["token"]].append(push["at"])
        #: A message came twice to a phone.
        self.twice = {each: times for each, times in pushes.items() if len(times) > 1}
        self.pairs = self.received = self.alerted = 0
        #: Received and alerted: by the reason of the alert, and those of which neither phone nor hub was in trouble.
        self.both, self.unexplained = collections.Counter(), []
        #: Neither: with a hub when it was killed; and faults.
        self.unknown, self.neither = [], []
        for number, (at, conversation) in storm.written.items():
            for user in storm.users:
                if user.conversation != conversation:
                    continue
                self.pairs += 1
                times = [pushes[number, app.phone.device][0] for app in user.phones if pushes[number, app.phone.device]]
                read = user.read.get(number)
                self.received += read is not None
                self.alerted += bool(times)
                state, reason = known.get((str(number), user.who.sub), (None, None))
                if read and times:
                    self.both[reason] += 1
                    if read[1] == "active" and not self.was_in_trouble(user, at - 1, min(times)):
                        self.unexplained.append((number, user.who, reason, round(read[0] - at, 2), round(min(times) - at, 2)))
                elif not read and not times:
                    fates = {outcomes.get((str(number), app.phone.device)) for app in user.phones}
                    if state == "taken" and fates <= {"unknown"}:
                        self.unknown.append((number, user.who))
                    else:
                        self.neither.append((number, user.who, state, reason, fates))

    def was_in_trouble(self, user, since, until):
        return (any(app.was_in_trouble(since, until) for app in user.phones)
                or any(begin <= until and (end is None or end + 10 >= since) for begin, end in self.storm.outages))

    def __str__(self):
        events = sum((app.counts for app in self.apps), collections.Counter())
        return "\n".join([
            f"seed {self.storm.seed}: {len(self.storm.written)} messages, {len(self.apps)} phones of {len(self.storm.users)} users, "
            f"{len(self.storm.outages)} faults, events {dict(events)}",
            f"{self.pairs} for a user each: {self.received} received, {self.alerted} alerted, {sum(self.both.values())} both "
            f"({dict(self.both)}, {len(self.unexplained)} of them without trouble), {len(self.neither)} neither, "
            f"{len(self.unknown)} with a hub that was killed, {len(self.twice)} alerted twice; settled after {self.storm.settled_after:.0f} s"])

    def verify(self):
        assert not self.twice, self.twice
        assert not self.neither, f"{len(self.neither)} neither received nor alerted: {self.neither[:20]}"
        assert self.storm.chat.apns.violations == []
