"""Read elsewhere: what a user has read on one device is not alerted on the others, and their icons follow."""

import asyncio

from support.chat import ADA, GRACE, statement
from support.deadline import eventually
from support.push_hub import Phone, PushHub

SETTINGS = {
    "ROOST_ALERTS_READ_POSITION": "public.conversation_participants.last_read_at",
    "ROOST_ALERTS_BADGE": statement("BadgeOfSampleChat"),
    "ROOST_ALERTS_BADGES_PER_MINUTE": "20",
}


class Reading(PushHub):
    def __init__(self, cluster, name, **settings):
        super().__init__(cluster, name, **SETTINGS, **settings)

    def __enter__(self):
        super().__enter__()
        self.hub.watch("public.conversation_participants")
        return self


def badges(phone):
    """What a phone's icon was told apart from alerts."""
    return [push for push in phone.chat.apns.taken_by(phone.device) if "alert" not in push["payload"]["aps"]]


async def test_a_waiting_alert_is_withdrawn_and_other_phones_icons_follow(cluster):
    async with Reading(cluster, "push_reading") as chat:
        phone, tablet = await Phone(chat, GRACE).register(), await Phone(chat, GRACE).register()
        with chat.sql() as sql:
            # An alert that Apple got: both icons say one.
            chat.say(sql, ADA, "first")
            await phone.has_alerts("first")
            await tablet.has_alerts("first")
            # The tablet is on the screen, in another conversation; the next alert waits for proof, and Grace reads meanwhile.
            await tablet.open("inactive")
            await tablet.is_online(sql)
            tablet.cut()
            number = chat.say(sql, ADA, "second")
            await eventually(lambda: sql.execute(
                "select state from roost.alert where message like %s", [f"% {number}"]).fetchall() == [("held",)], what="an alert that waits")
            chat.read(sql, GRACE)
            await eventually(lambda: sql.execute(
                "select state, reason from roost.alert where message like %s", [f"% {number}"]).fetchall() == [("dropped", "read")],
                what="the alert is withdrawn")
            for each in phone, tablet:
                await eventually(lambda: len(badges(each)) >= 1, what="a badge")
                [push] = badges(each)
                assert push["payload"] == {"aps": {"badge": 0}}
                assert (push["headers"]["apns-push-type"], push["headers"]["apns-priority"]) == ("alert", "5")
            assert [len(each.alerts) for each in (phone, tablet)] == [2, 2], "one alert and one badge each"
            # The same number is not told again, nor for a mute.
            chat.read(sql, GRACE)
            sql.execute("update conversation_participants set muted = true where user_id = %s", [GRACE.sub])
            sql.execute("update conversation_participants set muted = false where user_id = %s", [GRACE.sub])
            await chat.quiet(3)
        assert chat.apns.violations == []


async def test_the_phone_that_reads_is_left_alone_and_pushes_are_few(cluster):
    async with Reading(cluster, "push_reading_few") as chat:
        hub = chat.another_hub()
        await asyncio.to_thread(hub.start)
        phone, tablet = await Phone(chat, GRACE).register(), await Phone(chat, GRACE).register()
        await tablet.open("active")
        with chat.sql() as sql:
            await tablet.is_online(sql)
            for count in range(12):
                chat.say(sql, ADA, f"message {count}")
                chat.read(sql, GRACE)
                # The icon has to change each time, or nothing would be told.
                sql.execute("update conversation_participants set last_read_at = %s where user_id = %s", [
                    "-infinity" if count % 2 else "now", GRACE.sub])
                await asyncio.sleep(0.5)
            sql.execute("update conversation_participants set last_read_at = now() where user_id = %s", [GRACE.sub])
            await eventually(lambda: badges(phone) and badges(phone)[-1]["payload"]["aps"]["badge"] == 0, what="the last number")
            times = [push["at"] for push in badges(phone)]
            # Twenty in a minute are one in three seconds; two hubs saw each change.
            assert all(later - earlier > 2.5 for earlier, later in zip(times, times[1:])), times
            assert badges(tablet) == [], "it is the one that reads"
        assert chat.apns.violations == []
