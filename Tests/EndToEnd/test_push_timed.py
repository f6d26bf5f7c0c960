"""Rows that are pushed when a time in them has come, and not when they are written (`alerts.timed`)."""

import asyncio
import time

import pytest

from support.bounds import Elapsed
from support.chat import ADA, GRACE, LINUS
from support.deadline import eventually
from support.push_hub import Phone
from support.timed_rows import LATE, SETTINGS, TimedHub, TimedRun, due_of, titles


@pytest.fixture(scope="module")
def chat(cluster):
    with TimedHub(cluster, "push_timed") as chat:
        yield chat
        assert chat.apns.violations == []


@pytest.fixture
def sql(chat):
    with chat.sql() as connection:
        yield connection
        connection.execute("delete from reminders")


@pytest.fixture
async def phone(chat):
    phone = await Phone(chat, GRACE).register()
    yield phone
    await phone.close()
    await phone.api("DELETE", f"/api/devices?token={phone.device}")


async def has(phone, *wanted):
    """Pushes with these texts, in any order, and no others; none of them early."""
    await eventually(lambda: len(phone.alerts) >= len(wanted), what=lambda: f"{wanted}, came {titles(phone.alerts)}", every=0.05)
    assert sorted(titles(phone.alerts)) == sorted(wanted)
    for push in phone.alerts:
        assert push["at"] >= due_of(push)


async def test_a_row_is_pushed_at_its_time_and_not_before(chat, sql, phone):
    number = chat.remind(sql, GRACE, 3, "Tea")
    chat.remind(sql, GRACE, 3600, "Coffee")
    elapsed = Elapsed()
    await has(phone, "Tea")
    elapsed.assert_at_most(3 + LATE, "the reminder")
    [push] = phone.alerts
    assert push["payload"]["messageId"] == str(number)
    await chat.quiet(1)


async def test_the_row_at_its_time_decides(chat, sql, phone):
    """Moved to later and to sooner, deleted, done, changed, and the writers' own messages besides."""
    moved, sooner, deleted, done, changed = [
        chat.remind(sql, GRACE, seconds, title) for seconds, title in ((2, "a"), (3600, "b"), (2, "c"), (2, "d"), (2, "e"))]
    sql.execute("update reminders set reminder_time = reminder_time + interval '3 s' where id = %s", [moved])
    sql.execute("update reminders set reminder_time = clock_timestamp() + interval '2 s' where id = %s", [sooner])
    sql.execute("delete from reminders where id = %s", [deleted])
    sql.execute("update reminders set done_at = clock_timestamp() where id = %s", [done])
    sql.execute("update reminders set title = 'E' where id = %s", [changed])
    await has(phone, "a", "b", "E")
    # A row that is moved may be pushed again, at another time and not at the same one.
    sql.execute("update reminders set reminder_time = clock_timestamp() + interval '1 s' where id = %s", [sooner])
    await has(phone, "a", "b", "E", "b")
    sql.execute("update reminders set title = 'again' where id = any (%s)", [[moved, changed]])
    await chat.quiet(2)
    assert chat.outcomes(sql).get(done) == "done" and deleted not in chat.outcomes(sql)


async def test_who_is_connected_hears_of_it_too(chat, sql, phone):
    """Of a time that has come nothing goes by socket."""
    await phone.open()
    await phone.is_online(sql)
    chat.remind(sql, GRACE, 1, "there")
    await has(phone, "there")


async def test_only_who_may_read_the_row(chat, sql, phone):
    """The audience names somebody whose policies hide the row."""
    other = await Phone(chat, LINUS).register()
    try:
        sql.execute("alter table reminders add audience text")
        number = chat.remind(sql, GRACE, 1, "private")
        sql.execute("update reminders set audience = %s where id = %s", [LINUS.sub, number])
        chat.remind(sql, GRACE, 2, "mine")
        await has(phone, "mine")
        await chat.quiet(1)
        assert other.alerts == []
    finally:
        await other.api("DELETE", f"/api/devices?token={other.device}")


async def test_a_time_that_has_passed_when_it_is_written(chat, sql, phone):
    """At once, if it is younger than alerts.hours; else never."""
    chat.remind(sql, GRACE, -7200, "too early for this hub")
    sql.execute("update roost.timed_source set since = now() - interval '3 days'")
    elapsed = Elapsed()
    chat.remind(sql, GRACE, -3600, "an hour ago")
    chat.remind(sql, GRACE, -25 * 3600, "yesterday")
    chat.remind(sql, GRACE, 2, "next")
    await eventually(lambda: "next" in titles(phone.alerts), what="the next one")
    await eventually(lambda: "an hour ago" in titles(phone.alerts), what="the last hour's")
    assert "yesterday" not in titles(phone.alerts)
    assert "are pushed late" in chat.hub.log
    assert chat.hub.metric("roost_push_timed_rows_late_total") >= 1 and chat.hub.metric("roost_push_timed_rows_lost_total") == 0
    said = (await asyncio.to_thread(chat.hub.run, "doctor", check=False)).stdout
    assert "public.reminders.reminder_time were pushed late" in said


async def test_what_one_user_writes_costs_others_nothing(chat, sql, phone):
    """A thousand reminders for one second, times at the ends of time, and a key that no index takes."""
    ada = await Phone(chat, ADA).register()
    try:
        withheld = chat.hub.metric("roost_push_timed_alerts_withheld_total")
        sql.execute(
            "insert into reminders select 100000 + i, %s, 'flood', date_trunc('second', clock_timestamp()) + interval '3 s' "
            "from generate_series(1, 1000) i", [ADA.sub])
        for time_ in "infinity", "-infinity", "9999-12-31", "294276-12-31", "4713-01-01 BC":
            sql.execute("insert into reminders select coalesce(max(id), 0) + 1, %s, 'odd', %s from reminders", [ADA.sub, time_])
        elapsed = Elapsed()
        chat.remind(sql, GRACE, 4, "Tea")
        await has(phone, "Tea")
        elapsed.assert_at_most(4 + LATE, "another user's reminder")
        await eventually(lambda: chat.hub.metric("roost_push_timed_alerts_withheld_total") >= withheld + 800, what="the end of the flood")
        waiting = ("select (select count(*) from roost.timed_row where outcome is null) + (select count(*) from roost.alert where state "
                   "in ('due', 'held', 'elsewhere')) + (select count(*) from roost.alert_device where outcome is null)")
        await eventually(lambda: sql.execute(waiting).fetchone() == (0,), what="all that is due is sent")
        await chat.quiet(2)
        # A minute may begin meanwhile.
        assert 60 <= len(ada.alerts) <= 2 * 60 and set(titles(ada.alerts)) == {"flood"}
        assert "60 in a minute are the most" in chat.hub.log
    finally:
        await ada.api("DELETE", f"/api/devices?token={ada.device}")


async def test_late_when_nobody_could_send_and_then_it_says_so(cluster, name):
    async with TimedHub(cluster, name) as chat:
        with chat.sql() as sql:
            phone = await Phone(chat, GRACE).register()
            # Apple is away when it is due; meanwhile one of them is deleted.
            chat.apns.kill()
            kept, gone = chat.remind(sql, GRACE, 1, "kept"), chat.remind(sql, GRACE, 1, "gone")
            waits = "select count(*) from roost.timed_row where outcome = 'alerted'"
            await eventually(lambda: sql.execute(waits).fetchone()[0] == 2, what="alerts that wait")
            await asyncio.to_thread(chat.hub.stop)
            sql.execute("delete from reminders where id = %s", [gone])
            # No hub is there when these are due; one is too old when there is one.
            chat.remind(sql, GRACE, 1, "while nobody was there")
            never = chat.remind(sql, GRACE, 1, "while nobody was there for a day")
            sql.execute("update reminders set reminder_time = now() - interval '30 h' where id = %s", [never])
            sql.execute("update roost.timed_source set since = now() - interval '3 days', looked_at = now() - interval '2 days'")
            await asyncio.sleep(12)
            await asyncio.to_thread(chat.apns.start)
            await asyncio.to_thread(chat.hub.start)
            await has(phone, "kept", "while nobody was there")
            await chat.quiet(1)
            assert "are pushed late" in chat.hub.log
            assert "1 rows of public.reminders.reminder_time fell due while no hub could send, and are not pushed" in chat.hub.log
            assert chat.hub.metric("roost_push_timed_rows_lost_total") == 1
            outcomes = sql.execute("select distinct outcome from roost.alert_device where message like %s", [f"% [[]{gone}] %"]).fetchall()
            assert outcomes in ([("withdrawn",)], []), outcomes
            assert kept in chat.outcomes(sql)


async def test_a_table_of_messages_may_have_timed_rows(cluster, name):
    """Its rows are pushed when they are written as well."""
    settings = {**SETTINGS, "ROOST_ALERTS_TABLES": "public.messages, public.reminders"}
    async with TimedHub(cluster, name, **settings) as chat:
        with chat.sql() as sql:
            phone = await Phone(chat, GRACE).register()
            chat.remind(sql, GRACE, 2, "both")
            await eventually(lambda: len(phone.alerts) == 2, what=lambda: f"two of {titles(phone.alerts)}")
            first, second = phone.alerts
            assert first["payload"]["messageId"] == second["payload"]["messageId"]
            assert first["at"] < due_of(first) == due_of(second) <= second["at"]


# Ends the session that asks for the audience of a row that says "poison".
POISONED = SETTINGS["ROOST_ALERTS_AUDIENCE"] + " and (case when r.title = 'poison' then end_session() else true end)"


async def test_a_row_whose_audience_ends_its_session_keeps_no_other(cluster, name):
    async with TimedHub(cluster, name, ROOST_ALERTS_AUDIENCE=POISONED) as chat:
        with chat.sql() as sql:
            sql.execute("create function end_session() returns boolean language plpgsql volatile security definer as "
                        "$$ begin perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(60); return true; end $$")
            phone = await Phone(chat, GRACE).register()
            for title in "before", "poison", "after":
                chat.remind(sql, GRACE, 1, title)
            # Each session that is lost is followed by a longer pause.
            await eventually(lambda: len(phone.alerts) == 2, 60, lambda: f"the others' pushes, not {titles(phone.alerts)}")
            await has(phone, "before", "after")
            await eventually(lambda: "is not pushed: Postgres refused what its alerts need" in chat.hub.log, 60, lambda: chat.hub.log)
            assert chat.hub.metric("roost_push_timed_rows_lost_total") == 1


async def test_a_table_that_is_locked_or_altered_is_waited_for(chat, sql, phone):
    with chat.sql() as locker:
        locker.execute("begin; lock table reminders")
        await eventually(lambda: "are not looked at, so what is due waits" in chat.hub.log, what="a word of it")
        locker.execute("alter table reminders rename reminder_time to at; alter table reminders add more text; commit")
    problem = "public.reminders has no column reminder_time"
    await eventually(lambda: problem in chat.hub.log, what=problem)
    sql.execute("insert into reminders (id, user_id, title, at) values (900001, %s, 'waits', clock_timestamp())", [GRACE.sub])
    sql.execute("alter table reminders rename at to reminder_time")
    await has(phone, "waits")
    chat.remind(sql, GRACE, 1, "next")
    await has(phone, "waits", "next")


def test_what_cannot_be_is_refused_with_what_to_write_instead(chat):
    for wrong, says in ("reminders.reminder_time", "SCHEMA.TABLE.COLUMN"), ("public.reminders.reminder_time unless", "no condition"):
        result = chat.hub.run("config", "check", check=False, ROOST_ALERTS_TIMED=wrong)
        assert result.returncode and "ROOST_ALERTS_TIMED" in result.stdout + result.stderr and says in result.stdout + result.stderr
    said = chat.hub.run("doctor", check=False, ROOST_ALERTS_TIMED="public.reminders.title; public.nowhere.at").stdout
    assert "public.reminders.title is of the type text, which says no time" in said
    assert "public.nowhere is not watched" in said


async def test_every_row_is_pushed_once_over_kills_moves_and_deletions(cluster, name):
    """A small one of loadtest/timed.sh."""
    async with TimedHub(cluster, name) as chat:
        found = await TimedRun(chat, rows=300, people=30, seconds=12, kills=2).run()
        print(found)
        assert found["late by more than 2 s"] == 0, found
        assert found["moved"] and found["deleted"] and found["done"], found
