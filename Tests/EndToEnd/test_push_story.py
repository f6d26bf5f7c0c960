"""A phone's day: everything that the hub asks Apple to bring to it, and nothing else."""

import asyncio
import os
import time

from support.apns import BUNDLE
from support.bounds import Elapsed
from support.chat import A, ADA, GRACE
from support.deadline import eventually
from support.push_hub import WINDOWS, Phone, PushHub, shown

#: With ROOST_E2E_REAL_TIMES=1 the windows that a hub has by itself, and the times of the issue; otherwise a quarter.
IS_REAL = os.environ.get("ROOST_E2E_REAL_TIMES") == "1"
GRACE_OF = {"active": 2, "inactive": 12, "background": 20} if IS_REAL else WINDOWS
LOCKED = 10 if IS_REAL else 2
#: Seconds that a change is held back in case there is another, and how exact the hub's times are to be.
DEBOUNCE, MARGIN = 2, 1.5


async def test_a_phones_day(cluster, name):
    with PushHub(cluster, name, grace=GRACE_OF) as chat, chat.sql() as sql:
        day = Day(chat, sql)
        try:
            for part in (day.foreground, day.locked, day.background, day.messages, day.terminated, day.registered_again,
                         day.foreground_again):
                began = time.monotonic()
                await part()
                print(f"{part.__name__}: {time.monotonic() - began:.1f} s, {len(chat.apns.pushes)} requests so far")
        finally:
            await day.phone.close()
        assert day.expected == [] and chat.apns.violations == []


class Day:
    def __init__(self, chat, sql):
        self.chat, self.sql, self.apns = chat, sql, chat.apns
        self.phone = Phone(chat, GRACE)
        self.seen = 0  # requests that were looked at
        self.expected = []
        self.last = {"timestamp": 0, "version": 0}

    def new(self):
        """The requests since the last call. All of them are looked at, one way or another."""
        pushes = self.apns.pushes
        new, self.seen = pushes[self.seen:], len(pushes)
        return new

    def nothing(self):
        new = self.new()
        assert new == [], [(push["status"], push["payload"]) for push in new]

    def says(self, body):
        return self.chat.say(self.sql, ADA, body)

    def check_update(self, push, connected, unread, priority="5"):
        """An update of the activity, newer than the last."""
        headers, aps = push["headers"], push["payload"]["aps"]
        assert push["token"] == self.phone.activity_token
        assert headers["apns-push-type"] == "liveactivity"
        assert headers["apns-topic"] == f"{BUNDLE}.push-type.liveactivity" and headers["apns-priority"] == priority
        assert aps["event"] == "update" and aps["stale-date"] > aps["timestamp"]
        assert abs(aps["timestamp"] - push["at"]) < 60
        state = aps["content-state"]
        assert (state["connected"], state["unread"], state["conversationId"]) == (connected, unread, A)
        assert aps["timestamp"] > self.last["timestamp"] and state["version"] > self.last["version"]
        self.last = {"timestamp": aps["timestamp"], "version": state["version"]}
        return state

    def check_alert(self, push, body, badge, message):
        headers, payload = push["headers"], push["payload"]
        aps = payload["aps"]
        assert push["token"] == self.phone.device
        assert headers["apns-push-type"] == "alert" and headers["apns-topic"] == BUNDLE and headers["apns-priority"] == "10"
        assert 3600 < int(headers["apns-expiration"]) - push["at"] < 7 * 86400
        assert headers.get("apns-collapse-id")
        assert aps["alert"] == {"title": "A", "body": f"Ada: {body}"}
        assert (aps["badge"], aps["thread-id"], aps["mutable-content"], aps["sound"]) == (badge, A, 1, "default")
        assert payload["conversationId"] == A and payload["messageId"] == str(message)

    # The parts

    async def foreground(self):
        """The socket lives: it is told, and Apple is not."""
        phone = await self.phone.register()
        await phone.show_activity()
        await phone.open()
        self.says("in the foreground")
        await phone.sees(lambda state: state["unread"] == 1 and "foreground" in state["preview"], "the message")
        assert all(summary["activityId"] == phone.activity for summary in phone.summaries)
        self.chat.read(self.sql, GRACE)
        self.nothing()

    async def locked(self):
        """Shorter than the window: nothing, also of what was said meanwhile."""
        await self.phone.is_now("inactive")
        self.phone.cut()
        await asyncio.sleep(LOCKED / 2)
        self.says("while it was locked")
        await asyncio.sleep(LOCKED / 2)
        self.nothing()
        await self.phone.open()
        await self.phone.sees(lambda state: state["unread"] == 1 and "locked" in state["preview"], "what it missed")
        # What was held for it is dropped, and not only late.
        await asyncio.sleep(2)
        self.nothing()

    async def background(self):
        """When the window is over, one update says that the app is not connected."""
        await self.phone.is_now("background")
        elapsed, lost = Elapsed(), self.phone.cut()
        await eventually(lambda: len(self.apns.pushes) > self.seen, 60, "the update", every=0.05)
        elapsed.assert_at_most(GRACE_OF["background"] + DEBOUNCE + MARGIN, "the update")
        [push] = self.new()
        self.check_update(push, connected=False, unread=1)
        assert push["at"] - lost > GRACE_OF["background"] - 0.1, f"{push['at'] - lost:.2f} s"
        # Any more would be among what comes next.

    async def messages(self):
        """An alert each, with a badge that rises, and few updates for all of them."""
        said, began, elapsed, alerted = [], time.time(), Elapsed(), len(self.phone.alerts)
        for number in range(5):
            said.append((f"number {number}", self.says(f"number {number}")))
            await asyncio.sleep(0.3)
        await eventually(lambda: self.last_state().get("unread") == 6 and len(self.phone.alerts) >= alerted + 5, what="the last update",
                         every=0.1)
        elapsed.assert_at_most(1.5 + DEBOUNCE + MARGIN + 1, "the last update")
        new = self.new()
        alerts = [push for push in new if push["token"] == self.phone.device]
        updates = [push for push in new if push["token"] == self.phone.activity_token]
        assert len(alerts) + len(updates) == len(new)
        assert len(alerts) == 5 and len({push["headers"]["apns-collapse-id"] for push in alerts}) == 5
        assert len({push["headers"]["apns-id"] for push in new}) == len(new)
        for push, (number, (body, message)) in zip(alerts, enumerate(said)):
            self.check_alert(push, body, 2 + number, message)
        # Five messages within 1.5 s are one change: each comes before two seconds have passed since the last, but on a machine that
        # stood still.
        assert 1 <= len(updates) <= max(1, int((updates[-1]["at"] - began) / DEBOUNCE)), [shown(update) for update in updates]
        for update in updates[:-1]:
            self.check_update(update, connected=False, unread=update["payload"]["aps"]["content-state"]["unread"])
        state = self.check_update(updates[-1], connected=False, unread=6)
        assert state["preview"] == "number 4" and state["sender"] == "Ada"

    def last_state(self):
        updates = self.phone.updates
        return updates[-1]["content-state"] if updates else {}

    async def terminated(self):
        """The app was taken from the phone: Apple says since when, and both tokens are dropped."""
        since = int(time.time() * 1000)
        for token in self.phone.device, self.phone.activity_token:
            self.apns.tell(token, gone=since)
        await asyncio.sleep(0.05)
        self.says("to nobody")
        await eventually(lambda: len(self.apns.pushes) >= self.seen + 2, what="both attempts", every=0.1)
        new = self.new()
        assert sorted(push["token"] for push in new) == sorted([self.phone.device, self.phone.activity_token])
        assert [(push["status"], push["reason"]) for push in new] == [(410, "Unregistered")] * 2
        await self.phone.has_no_registration()
        self.says("to nobody, again")
        await asyncio.sleep(DEBOUNCE + 1.5)
        self.nothing()

    async def registered_again(self):
        """A registration that is newer than what Apple says of the token stays; one alert was in vain."""
        old = int(time.time() * 1000) - 5_000
        self.apns.tell(self.phone.device, gone=old)
        await self.phone.register()
        for body in "one", "two":
            self.says(body)
            await eventually(lambda: len(self.apns.pushes) > self.seen, what=f"the attempt of {body}", every=0.05)
            [push] = self.new()
            assert (push["token"], push["status"]) == (self.phone.device, 410), "it is still tried"
        self.apns.tell(self.phone.device)
        message = self.says("three")
        await eventually(lambda: len(self.apns.pushes) > self.seen, what="the alert", every=0.05)
        [push] = self.new()
        self.check_alert(push, "three", 11, message)

    async def foreground_again(self):
        """With a new activity, and nothing for Apple to do."""
        phone = self.phone
        phone.activity = None
        self.last = {"timestamp": 0, "version": 0}
        await phone.open()
        await phone.show_activity()
        await phone.socket.join(phone.topic)
        self.says("in the foreground again")
        await phone.sees(lambda state: state["unread"] == 12 and "again" in state["preview"], "the message")
        await asyncio.sleep(1)
        self.nothing()
