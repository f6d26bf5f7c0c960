"""A hub that pushes to the stand-in, on the sample chat, and a phone of one of its people."""

import asyncio
import contextlib
import time
import uuid

from support.apns import APNs, new_token
from support.chat import A, install, statement
from support.deadline import PATIENCE, eventually
from support.http import HTTPConnection
from support.hub import Hub
from support.tokens import token
from support.wsclient import Client

STATEMENTS = {
    "ROOST_ALERTS_AUDIENCE": statement("AudienceOfSampleChat"),
    "ROOST_LIVE_ACTIVITY_FACTS": statement("FactsOfSampleChat"),
}
#: Seconds that a phone may be gone and still count as there, by the state of its app: shorter than anybody would have them, but for
#: the one that tests come back in.
WINDOWS = {"active": 1, "inactive": 60, "background": 5}
#: Nobody may read these.
SECRETS = "create policy secrets on messages as restrictive for select to authenticated using (body not like 'secret%')"
#: Seconds in which everybody may come back to a hub that has just started: it takes nobody for away before.
RESTART = 1


#: Seconds between two looks at what no message says.
REFRESH = 2


def windows(seconds):
    return {"ROOST_PRESENCE_RESTART_SECONDS": str(RESTART), "ROOST_LIVE_ACTIVITY_REFRESH_SECONDS": str(REFRESH), **{
        f"ROOST_PRESENCE_GRACE_{state.upper()}_SECONDS": str(each) for state, each in seconds.items()}}


class PushHub:
    """`with PushHub(cluster, "name") as chat`: the hub, the stand-in and the database."""

    def __init__(self, cluster, name, apns=None, grace=WINDOWS, **settings):
        self.cluster, self.name = cluster, name
        self.owns_apns, self.apns = apns is None, apns or APNs()
        self.url = cluster.create_database(name)
        self.settings = {**STATEMENTS, **windows(grace), **settings}
        self.hubs, self.next_message = [], 100

    def __enter__(self):
        if self.owns_apns:
            self.apns.start()
        self.hub = self.another_hub()
        self.hub.run("migrate")
        with self.sql() as sql:
            install(sql)
            # What was said before is read, so that counts of unread messages begin with 0.
            sql.execute("update conversation_participants set last_read_at = clock_timestamp()")
            sql.execute(SECRETS)
        self.hub.watch("public.messages")
        self.hub.start()
        time.sleep(RESTART + 0.2)
        return self

    def __exit__(self, kind, *_):
        for hub in self.hubs:
            if kind:
                print("a hub's log:", hub.log[-4000:])
            hub.remove()
        if kind:
            print("the stand-in:", self.apns.violations, self.apns.errors[-2000:])
        if self.owns_apns:
            self.apns.remove()

    async def __aenter__(self):
        """As `with`, while others go on."""
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(self, *failure):
        await asyncio.to_thread(self.__exit__, *failure)

    def another_hub(self):
        """On the same database, under a name of its own; not started."""
        name = f"hub-{len(self.hubs) + 1}"
        self.hubs.append(Hub(self.url, ROOST_NODE_NAME=name, **self.apns.environment, **self.settings))
        return self.hubs[-1]

    def sql(self):
        return self.cluster.connect(self.name)

    def say(self, sql, sender, body="Hello", conversation=A):
        """A message; its id."""
        self.next_message += 1
        sql.execute("insert into messages (id, conversation_id, sender_id, body) values (%s, %s, %s, %s)",
                    [self.next_message, conversation, sender.sub, body])
        return self.next_message

    def read(self, sql, who, conversation=A):
        sql.execute("update conversation_participants set last_read_at = clock_timestamp() "
                    "where user_id = %s and conversation_id = %s", [who.sub, conversation])

    async def backend(self, path, body, hub=None, **claims):
        """As the application's own server."""
        return await call(hub or self.hub, "POST", path, token("service_role", **claims), body)

    async def quiet(self, seconds=1.5):
        """Nothing more is pushed for so long. What was pushed until then."""
        before = len(self.apns.pushes)
        await asyncio.sleep(seconds)
        pushes = self.apns.pushes
        assert len(pushes) == before, [shown(push) for push in pushes[before:]]
        return pushes


async def call(hub, method, path, bearer, body=None):
    headers = {"authorization": f"Bearer {bearer}"} if bearer else {}
    async with await HTTPConnection.open(hub.port) as http:
        return await http.request(method, path, body, content_type="application/json", **headers)


def shown(push):
    """What a failed assertion says of a push."""
    return push["status"], push["reason"], push.get("token", push.get("channel"))[:8], push["payload"]["aps"]


class Phone:
    """A phone: its tokens, what it registers, and its app's socket."""

    def __init__(self, chat, who, session=None):
        self.chat, self.who, self.hub = chat, who, chat.hub
        self.session = session or str(uuid.uuid4())
        self.device, self.activity, self.activity_token = new_token(), None, None
        self.socket = None

    @property
    def bearer(self):
        return self.who.token(session_id=self.session)

    async def api(self, method, path, body=None):
        return await call(self.hub, method, path, self.bearer, body)

    async def register(self, **more):
        answer = await self.api("POST", "/api/devices", {"token": self.device, **more})
        assert answer.status == 200, answer.body
        return self

    async def show_activity(self, conversation=A, **more):
        """Registers a Live Activity, or a new token of the one that there is."""
        self.activity, self.activity_token = self.activity or str(uuid.uuid4()).upper(), new_token()
        body = {"activityId": self.activity, "activityPushToken": self.activity_token, **more}
        answer = await self.api(
            "POST", "/api/live-activity/register", {**body, **({"conversationId": conversation} if conversation else {})})
        assert answer.status == 200, answer.body
        assert answer.json == {"activityId": self.activity, "environment": more.get("environment", "sandbox")}
        return self

    async def registrations(self):
        answer = await self.api("GET", "/api/live-activity/registrations")
        assert answer.status == 200, answer.body
        return answer.json["registrations"]

    async def has_no_registration(self):
        """The hub drops a registration after Apple's answer to the push that ends it, and the stand-in counts a push before it answers."""
        async def none():
            return await self.registrations() == []

        await eventually(none, what="no registration")

    # The app

    @property
    def topic(self):
        return f"realtime:live-activity:{self.activity}"

    async def open(self, state="active"):
        """The app comes to the foreground, with all conversations open; `state` is what it says of itself."""
        self.socket = await Client.connect(self.hub.port, apikey=self.bearer)
        await self.socket.watch(
            "realtime:lobby", {"event": "*", "schema": "public", "table": "messages"}, config={"app_state": state})
        if self.activity:
            await self.socket.join(self.topic)
        return self

    async def see_activity(self):
        """The app joins the channel of its activity."""
        await self.socket.join(self.topic)

    async def is_online(self, sql):
        """The hubs have heard of this phone's socket: they write it down for one another."""
        query = "select from roost.online_user where user_id = %s"
        await eventually(lambda: sql.execute(query, [self.who.sub]).fetchone() is not None, what="a word of the socket")

    async def is_now(self, state):
        await self.socket.ask("realtime:lobby", "app_state", {"type": "app_state", "state": state})

    def cut(self):
        """The system takes the app's socket. When, in seconds since 1970."""
        self.socket._task.cancel()
        self.socket.socket.abort()
        return time.time()

    async def close(self):
        with contextlib.suppress(Exception):
            await self.socket.close()

    @property
    def summaries(self):
        """What the socket was told of the activity, in order."""
        return [message.payload["payload"] for message in self.socket.messages
                if message.event == "broadcast" and message.payload["event"] == "summary"]

    async def sees(self, fits, what, within=PATIENCE):
        """A summary that fits comes by the socket."""
        await eventually(lambda: any(fits(each["contentState"]) for each in self.summaries), within,
                         lambda: f"{what} among {self.summaries}")

    # What Apple was asked to bring here

    @property
    def alerts(self):
        return self.chat.apns.taken_by(self.device)

    @property
    def updates(self):
        return self.chat.apns.aps(self.activity_token)

    async def has_alerts(self, *bodies, within=PATIENCE):
        """Alerts with these texts at their ends, in any order, and no others."""
        def texts():
            return sorted(push["payload"]["aps"]["alert"]["body"].rpartition(": ")[2] for push in self.alerts)
        await eventually(lambda: len(self.alerts) >= len(bodies), within, lambda: f"{sorted(bodies)}, came {texts()}", every=0.05)
        assert texts() == sorted(bodies), texts()
