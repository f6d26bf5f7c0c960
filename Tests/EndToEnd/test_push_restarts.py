"""Pushes when hubs are killed, stopped and started, and where there are several: every alert at most once, none lost."""

import asyncio
import collections

from support.chat import ADA, B, GRACE, LINUS
from support.deadline import eventually
from support.push_hub import STATEMENTS, Phone, PushHub

#: Messages that are written while the hub lives, and while it is dead.
ALIVE, DEAD = 20, 3


async def test_a_message_is_told_once_whatever_happens_to_hubs(cluster, name):
    """Each with a database and a stand-in of its own, at the same time."""
    await asyncio.gather(kill(cluster, f"{name}_kill"), restart(cluster, f"{name}_restart"), two_hubs(cluster, f"{name}_two"))


async def phone_of(chat, who):
    return await Phone(chat, who).register()


async def kill(cluster, name):
    """-9 between insert and push: what no hub had taken is told by the next one, and nothing is told twice."""
    async with PushHub(cluster, name) as chat:
        with chat.sql() as sql:
            phones, dead = [await phone_of(chat, GRACE) for _ in range(2)], []
            chat.apns.set(delay=0.02)
            for number in range(3):
                before = len(chat.apns.taken)
                for _ in range(ALIVE):
                    chat.say(sql, ADA)
                await eventually(lambda: len(chat.apns.taken) > before + 4, what="some of them", every=0.01)
                chat.hub.kill()
                dead += [chat.say(sql, ADA) for _ in range(DEAD)]
                await asyncio.to_thread(chat.hub.start)
                last = str(dead[-1])
                await eventually(lambda: all(last in messages(phone) for phone in phones), what="the last one", every=0.1)
            await chat.quiet(1)
            times = collections.Counter((push["token"], push["payload"]["messageId"]) for push in chat.apns.taken)
            assert max(times.values()) == 1, [each for each, count in times.items() if count > 1]
            wanted = {(phone.device, str(number)) for phone in phones for number in range(101, chat.next_message + 1)}
            missing = wanted - set(times)
            print(f"\n{len(times)} alerts came, {len(missing)} were with a hub when it was killed")
            assert not {message for _, message in missing} & set(map(str, dead)), "written while no hub was there"
            # At most once: a hub that had taken an alert may have sent it.
            taken = {(token, message.rpartition(" ")[2]) for token, message in sql.execute(
                "select token, message from roost.alert_device where outcome is distinct from 'delivered'").fetchall()}
            assert missing <= taken
            assert chat.apns.violations == []


async def test_what_never_left_is_given_back_when_the_hub_stops(cluster, name):
    """Apple cannot be reached, or accepts connections and says nothing: no alert's fate is unknown."""
    await asyncio.gather(
        stop_without_apple(cluster, f"{name}_away", lambda apns: apns.kill(), lambda apns: apns.start()),
        stop_without_apple(cluster, f"{name}_frozen", lambda apns: apns.pause(), lambda apns: apns.resume()))


async def stop_without_apple(cluster, name, leave, come_back):
    async with PushHub(cluster, name) as chat:
        with chat.sql() as sql:
            phones = [await phone_of(chat, GRACE) for _ in range(2)]
            await asyncio.to_thread(leave, chat.apns)
            said = {str(chat.say(sql, ADA)) for _ in range(ALIVE)}
            count = "select count(*) from roost.alert_device where outcome is null"
            await eventually(lambda: sql.execute(count).fetchone()[0] > 0, what="alerts that the hub has taken", every=0.05)
            assert await asyncio.to_thread(chat.hub.stop) == 0
            assert sql.execute("select outcome, count(*) from roost.alert_device group by 1").fetchall() == []
            assert sql.execute("select distinct state from roost.alert").fetchall() == [("due",)]
            await asyncio.to_thread(come_back, chat.apns)
            await asyncio.to_thread(chat.hub.start)
            await eventually(lambda: all(messages(phone) == said for phone in phones), 30, "all of them", every=0.1)
            assert max(collections.Counter(
                (push["token"], push["payload"]["messageId"]) for push in chat.apns.taken).values()) == 1
            assert chat.apns.violations == []


def messages(phone):
    return {push["payload"]["messageId"] for push in phone.alerts}


async def restart(cluster, name):
    async with PushHub(cluster, name) as chat:
        with chat.sql() as sql:
            phone = await phone_of(chat, GRACE)
            await phone.show_activity()
            before = await phone.registrations()
            assert await asyncio.to_thread(chat.hub.stop) == 0
            # Older than alerts.hours when a hub comes to read it.
            chat.say(sql, ADA, "yesterday's")
            assert sql.execute("update roost.change set at = at - interval '25 hours' where record is not null").rowcount >= 1
            chat.read(sql, GRACE)
            await asyncio.to_thread(chat.hub.start)
            assert len(before) == 1 and await phone.registrations() == before
            chat.say(sql, ADA, "after the restart")
            await phone.has_alerts("after the restart")
            await eventually(
                lambda: phone.updates and phone.updates[-1]["content-state"]["unread"] == 1, what="the update", every=0.1)
            stamps = [aps["timestamp"] for aps in phone.updates]
            assert stamps == sorted(set(stamps)) and chat.apns.violations == []


async def two_hubs(cluster, name):
    async with PushHub(cluster, name) as chat:
        with chat.sql() as sql:
            other = await asyncio.to_thread(chat.another_hub().start)
            away, there = await phone_of(chat, GRACE), Phone(chat, LINUS)
            there.hub = other
            await there.register()
            await there.open()
            await there.is_online(sql)
            for number in range(20):
                chat.say(sql, ADA, f"A{number}")
                # Linus has his socket at the other hub.
                chat.say(sql, GRACE, f"B{number}", conversation=B)
            await away.has_alerts(*(f"A{number}" for number in range(20)))
            await chat.quiet(2)
            assert there.alerts == []
            await there.close()
            chat.say(sql, GRACE, "gone", conversation=B)
            await there.has_alerts("gone")
            assert chat.apns.violations == []


async def test_one_activity_whose_facts_end_the_session_keeps_no_push(cluster, name):
    """After a restart everybody's activities are asked about before anything is pushed."""
    facts = STATEMENTS["ROOST_LIVE_ACTIVITY_FACTS"].rstrip().rstrip(";")
    async with PushHub(cluster, name, ROOST_LIVE_ACTIVITY_FACTS=f"select f.* from ({facts}) f where is_harmless()") as chat:
        with chat.sql() as sql:
            sql.execute("create function is_harmless() returns boolean language sql as 'select true'")
            phone = await phone_of(chat, GRACE)
            await phone.show_activity()
            assert await asyncio.to_thread(chat.hub.stop) == 0
            sql.execute("create or replace function is_harmless() returns boolean language plpgsql volatile security definer as "
                        "$$ begin perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(60); return true; end $$")
            chat.say(sql, ADA, "after the restart")
            await asyncio.to_thread(chat.hub.start)
            await eventually(lambda: len(phone.alerts) == 1, 60, lambda: f"a push, not {phone.alerts}")
            assert "live_activity.facts costs the session" in chat.hub.log
