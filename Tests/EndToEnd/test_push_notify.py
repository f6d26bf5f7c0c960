"""Notifications of backends, phones that the application keeps, and templates of single tables (docs/push.md)."""

import asyncio
import collections
import json
import time
import uuid

import psycopg
import pytest

from support.apns import new_token
from support.chat import A, ADA, GRACE, LINUS, OUTSIDER
from support.deadline import eventually
from support.push_hub import Phone, PushHub, call
from support.tokens import token

NOTIFY = "/api/notify"
#: As many as one call may name.
MOST = 1000


@pytest.fixture(scope="module")
def chat(cluster):
    with PushHub(cluster, "push_notify") as chat:
        with chat.sql() as sql:
            sql.execute("grant usage on schema roost to service_role; grant execute on function roost.notify(jsonb) to service_role")
        yield chat
        assert chat.apns.violations == []


@pytest.fixture
def sql(chat):
    with chat.sql() as connection:
        yield connection


async def phone_of(chat, who):
    return await Phone(chat, who).register()


async def forget(*phones):
    for phone in phones:
        await phone.api("DELETE", f"/api/devices?token={phone.device}")


async def told(chat, body, **more):
    answer = await chat.backend(NOTIFY, body, **more)
    assert answer.status == 202, (answer.status, answer.body)
    return answer.json


def in_sql(sql, notification, role=None):
    with sql.transaction():
        if role:
            sql.execute(f"set local role {role}")
        return sql.execute("select roost.notify(%s::jsonb)", [json.dumps(notification)]).fetchone()[0]


def titles(phone):
    return [push["payload"]["aps"]["alert"]["title"] for push in phone.alerts]


async def has_titles(phone, *wanted):
    await eventually(lambda: len(phone.alerts) >= len(wanted), what=lambda: f"{wanted}, came {titles(phone)}", every=0.05)
    assert titles(phone) == list(wanted)


# What a backend says, and what it is told


async def test_a_notification_says_what_the_backend_says(chat):
    phone = await phone_of(chat, GRACE)
    sent = {"userId": GRACE.sub, "title": "Order 7", "subtitle": "Paid", "body": "On its way 🚚", "data": {"order": 7, "deep": {"b": [1]}},
            "conversationId": A, "badge": 3, "sound": "bell.caf", "category": "ORDER", "interruptionLevel": "time-sensitive",
            "relevanceScore": 0.5, "collapseId": "order-7"}
    answer = await told(chat, sent)
    assert answer["users"] == [{"userId": GRACE.sub, "status": "queued", "phones": 1}]
    [push] = await asyncio.to_thread(chat.apns.wait_for, phone.device, 1)
    assert push["payload"] == {
        "aps": {"alert": {"title": "Order 7", "subtitle": "Paid", "body": "On its way 🚚"}, "badge": 3, "sound": "bell.caf", "thread-id": A,
                "category": "ORDER", "interruption-level": "time-sensitive", "relevance-score": 0.5, "mutable-content": 1},
        "conversationId": A, "notificationId": answer["id"], "order": 7, "deep": {"b": [1]}}
    assert push["headers"]["apns-collapse-id"] == "order-7" and push["headers"]["apns-priority"] == "10"
    await forget(phone)


async def test_what_becomes_of_it_is_answered_for_each_user(chat):
    phones = [await phone_of(chat, GRACE) for _ in range(2)]
    activity = Phone(chat, LINUS)
    await activity.show_activity(conversation=None)
    stranger = str(uuid.uuid4())
    sent = {"id": f"id-{stranger}", "userIds": [GRACE.sub, LINUS.sub, stranger], "body": "B"}
    answer = await told(chat, sent)
    assert answer == {"id": sent["id"], "users": [
        {"userId": GRACE.sub, "status": "queued", "phones": 2}, {"userId": LINUS.sub, "status": "no_phone"},
        {"userId": stranger, "status": "unknown"}]}
    for phone in phones:
        await eventually(lambda: phone.alerts, what="the push", every=0.05)
    # The same id again sends nothing twice, by whatever way it comes.
    again = await told(chat, {**sent, "title": "other"})
    assert again["users"][0] == {"userId": GRACE.sub, "status": "repeated"}
    with chat.sql() as sql:
        in_sql(sql, sent)
    await told(chat, {"userId": GRACE.sub, "title": "behind it"})
    for phone in phones:
        await eventually(lambda: len(phone.alerts) == 2, what="the one behind it", every=0.05)
        assert titles_and_bodies(phone) == [(None, "B"), ("behind it", None)]
    await activity.api("DELETE", f"/api/live-activity/register?activityId={activity.activity}")
    await forget(*phones)


def titles_and_bodies(phone):
    alerts = [push["payload"]["aps"]["alert"] for push in phone.alerts]
    return [(alert.get("title"), alert.get("body")) for alert in alerts]


async def test_always_goes_to_whoever_is_there_and_unseen_does_not(chat, sql):
    phone = await phone_of(chat, LINUS)
    await phone.open()
    try:
        await phone.is_online(sql)
        for condition in "unseen", "unreceived", None:
            answer = await told(chat, {"userId": LINUS.sub, "title": str(condition), "when": condition})
            assert answer["users"][0]["status"] == "queued"
        await told(chat, {"userId": LINUS.sub, "title": "always", "when": "always"})
        # It is behind the others.
        await has_titles(phone, "always")
    finally:
        await phone.close()
        await forget(phone)


async def test_an_audience_is_who_would_hear_of_such_a_row(chat):
    grace, ada = await phone_of(chat, GRACE), await phone_of(chat, ADA)
    row = {"table": "public.messages", "record": {"conversation_id": A, "sender_id": ADA.sub}}
    answer = await told(chat, {"audience": row, "title": "to all of A"})
    assert [(user["userId"], user["status"]) for user in answer["users"]] == [(GRACE.sub, "queued")]
    await has_titles(grace, "to all of A")
    assert ada.alerts == []
    answer = await chat.backend(NOTIFY, {"audience": {**row, "record": {"conversation_id": "none"}}, "title": "T"})
    assert answer.status == 400 and "alerts.audience" in answer.json["message"]
    await forget(grace, ada)


async def test_who_is_no_backend_is_refused(chat):
    body = {"userId": GRACE.sub, "title": "T"}
    for bearer, status in (None, 401), ("nonsense", 401), (GRACE.token(), 403), (token("anon"), 403):
        answer = await call(chat.hub, "POST", NOTIFY, bearer, body)
        assert answer.status == status and answer.json["message"], answer.body
    answer = await call(chat.hub, "GET", NOTIFY, token("service_role"))
    assert answer.status == 405


@pytest.mark.parametrize("body, named", [
    (b"", "JSON"), (b"{", "JSON"), ([], "object"), ({}, "userId"), ({"userId": "a"}, "title"), ({"userId": "a", "userIds": ["b"], "title": "T"}, "one of"),
    ({"userIds": ["a"] * (MOST + 1), "title": "T"}, str(MOST)), ({"userId": "a", "title": "T", "when": "never"}, "when"),
    ({"userId": "a", "title": "T", "data": {"aps": {}}}, "aps"), ({"userId": "a", "title": "T", "data": {"x": "y" * 4096}}, "4096"),
    ({"userId": "a", "title": "T", "badge": "3"}, "badge")])
async def test_what_is_no_notification_is_refused_with_a_sentence(chat, body, named):
    answer = await chat.backend(NOTIFY, body)
    assert answer.status == 400 and named in answer.json["message"] and answer.json["message"].endswith("."), answer.body


async def test_what_jsonb_does_not_take_is_the_callers_fault(chat):
    phone = await phone_of(chat, OUTSIDER)
    answer = await chat.backend(NOTIFY, f'{{"userId": "{OUTSIDER.sub}", "title": "T", "data": {{"x": "\\u0000"}}}}'.encode())
    assert answer.status == 400 and "Postgres" in answer.json["message"]
    await told(chat, {"userId": OUTSIDER.sub, "title": "next"})
    await has_titles(phone, "next")
    await forget(phone)


async def test_long_texts_are_cut_and_fit(chat):
    phone = await phone_of(chat, OUTSIDER)
    await told(chat, {"userId": OUTSIDER.sub, "title": "T", "body": "👩‍🚀" * 1000, "data": {"x": "y" * 1000}})
    [push] = await asyncio.to_thread(chat.apns.wait_for, phone.device, 1)
    assert push["size"] <= 4096 and push["payload"]["x"] == "y" * 1000
    assert push["payload"]["aps"]["alert"]["body"].startswith("👩‍🚀👩‍🚀") and push["payload"]["aps"]["alert"]["body"].endswith("…")
    await forget(phone)


async def test_backends_together_have_so_many_users_notified(cluster):
    """On a hub of its own: what is used up here would be missed by other tests."""
    async with PushHub(cluster, "push_rate") as chat:
        body = {"userIds": [str(number) for number in range(MOST)], "title": "T"}
        answers = await asyncio.gather(*(chat.backend(NOTIFY, body) for _ in range(60)))
        refused = [answer for answer in answers if answer.status == 429]
        assert {answer.status for answer in answers} == {202, 429}
        assert all(answer.json["message"] and int(answer.headers["retry-after"]) >= 1 for answer in refused)

        async def again():
            return (await chat.backend(NOTIFY, {"userId": "a", "title": "T"})).status == 202
        await eventually(again, what="some budget")


# By SQL


async def test_sql_sends_after_the_commit_and_nothing_after_a_rollback(chat, sql):
    phone = await phone_of(chat, GRACE)
    with chat.sql() as other:
        other.execute("begin")
        other.execute("select roost.notify(%s::jsonb)", [json.dumps({"userId": GRACE.sub, "title": "rolled back"})])
        sql.execute("begin")
        key = sql.execute("select roost.notify(%s::jsonb)", [json.dumps({"userId": GRACE.sub, "title": "committed"})]).fetchone()[0]
        # What was committed meanwhile is sent, and what was not is not.
        await told(chat, {"userId": GRACE.sub, "title": "between"})
        await has_titles(phone, "between")
        other.execute("rollback")
        sql.execute("commit")
    await has_titles(phone, "between", "committed")
    assert phone.alerts[1]["payload"]["notificationId"] == key
    await forget(phone)


async def test_sql_of_users_may_not(chat, sql):
    phone = await phone_of(chat, GRACE)
    for role in "anon", "authenticated":
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            in_sql(sql, {"userId": GRACE.sub, "title": role}, role)
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="roost.notify: "):
        in_sql(sql, {"userId": GRACE.sub})
    in_sql(sql, {"userId": GRACE.sub, "title": "service_role"}, "service_role")
    await has_titles(phone, "service_role")
    await forget(phone)


async def test_notifications_and_messages_come_in_their_order(chat, sql):
    phone = await phone_of(chat, GRACE)
    for number in range(10):
        chat.say(sql, ADA, f"message {number}")
        in_sql(sql, {"userId": GRACE.sub, "title": "-", "body": f"x: sql {number}"})
        await told(chat, {"userId": GRACE.sub, "title": "-", "body": f"x: http {number}"})
    wanted = [f"{kind} {number}" for number in range(10) for kind in ("message", "sql", "http")]

    def came():
        return [push["payload"]["aps"]["alert"]["body"].rpartition(": ")[2] for push in phone.alerts]
    await eventually(lambda: len(phone.alerts) == len(wanted), what=lambda: f"{wanted}, came {came()}", every=0.1)
    assert came() == wanted
    await forget(phone)


async def test_a_trigger_notifies_of_what_users_write(chat, sql):
    """Its function is `security definer`, as users may not notify anybody."""
    phone = await phone_of(chat, OUTSIDER)
    sql.execute(
        "create table orders (id int, user_id text); grant insert on orders to authenticated; create function on_order() returns trigger "
        "language plpgsql security definer set search_path = pg_catalog, pg_temp as $$ begin perform roost.notify(jsonb_build_object("
        "'userId', new.user_id, 'title', 'order ' || new.id, 'id', 'order ' || new.id)); return null; end $$; "
        "create trigger ordered after insert on orders for each row execute function on_order()")
    for number in 1, 2, 2:
        with sql.transaction():
            sql.execute("set local role authenticated")
            sql.execute("insert into orders values (%s, %s)", [number, OUTSIDER.sub])
    in_sql(sql, {"userId": OUTSIDER.sub, "title": "last"})
    await has_titles(phone, "order 1", "order 2", "last")
    await forget(phone)


async def test_the_command_does_the_same(chat):
    phone = await phone_of(chat, GRACE)
    stranger = str(uuid.uuid4())
    hub = ["--url", f"http://127.0.0.1:{chat.hub.port}"]
    options = ["--user", GRACE.sub, "--user", stranger, "--title", "T", "--body", "B", "--data", '{"x": 1}', "--when", "always", "--id", "one"]
    result = await asyncio.to_thread(chat.hub.run, "notify", *options, *hub)
    assert result.stdout.splitlines() == [f"{GRACE.sub}\tqueued for 1 phone", f"{stranger}\tunknown"]
    # It is known as sent when a hub has read it.
    [push] = await asyncio.to_thread(chat.apns.wait_for, phone.device, 1)
    result = await asyncio.to_thread(chat.hub.run, "notify", *options, *hub, "--json")
    assert json.loads(result.stdout)["users"][0] == {"userId": GRACE.sub, "status": "repeated"}
    assert push["payload"]["x"] == 1 and push["payload"]["notificationId"] == "one"
    result = await asyncio.to_thread(chat.hub.run, "notify", "--user", GRACE.sub, "--title", "T", "--when", "never", *hub, check=False)
    assert result.returncode not in (0, 64) and "when is none of" in result.stderr
    await forget(phone)


# Kills, and several hubs


async def test_each_comes_once_over_kills_and_several_hubs(cluster, name):
    async with PushHub(cluster, name) as chat:
        with chat.sql() as sql:
            other = await asyncio.to_thread(chat.another_hub().start)
            phones, sent = [await phone_of(chat, GRACE) for _ in range(2)], []
            chat.apns.set(delay=0.02)
            for turn in range(3):
                before = len(chat.apns.taken)
                for number in range(12):
                    sent.append(f"{turn}-{number}")
                    body = {"userId": GRACE.sub, "title": sent[-1], "id": sent[-1], "when": "always" if number % 2 else "unseen"}
                    if number % 3:
                        # A backend that repeats its call, at either hub.
                        for hub in chat.hub, other:
                            await taken_by(chat, body, hub)
                    else:
                        in_sql(sql, body)
                await eventually(lambda: len(chat.apns.taken) > before + 4, what="some of them", every=0.01)
                killed = (chat.hub, other)[turn % 2]
                killed.kill()
                sent.append(in_sql(sql, {"userId": GRACE.sub, "title": f"dead {turn}", "id": f"dead {turn}"}))
                await asyncio.to_thread(killed.start)
            await eventually(lambda: all("dead 2" in titles(phone) for phone in phones), 60, "the last one", every=0.1)
            await chat.quiet(1)
            times = collections.Counter((push["token"], push["payload"]["notificationId"]) for push in chat.apns.taken)
            assert max(times.values()) == 1, [each for each, count in times.items() if count > 1]
            missing = {(phone.device, key) for phone in phones for key in sent} - set(times)
            print(f"\n{len(times)} came, {len(missing)} were with a hub when it was killed")
            # At most once: a hub that had taken one may have sent it.
            taken = {(device, message.removeprefix("notify:")) for device, message in sql.execute(
                "select token, message from roost.alert_device where outcome is distinct from 'delivered'").fetchall()}
            assert missing <= taken and chat.apns.violations == []


async def taken_by(chat, body, hub):
    """A hub that has just been started may not have its database yet, which a backend hears of as 503."""
    async def is_taken():
        return (await chat.backend(NOTIFY, body, hub=hub)).status == 202
    await eventually(is_taken, what="an answer", every=0.1)


# Phones that the application keeps


TOKENS = "select id as user_id, push_token as token from users where id = any ($1::uuid[])"
#: Without the sample's look at who is registered, as nobody is.
AUDIENCE = (
    "select n.row, p.user_id, p.conversation_id, m.sender_id, m.body, c.title as conversation_name, m.sender_id::text as sender_name "
    "from jsonb_to_recordset($1) n (row int, record jsonb) "
    "cross join jsonb_to_record(n.record) m (conversation_id uuid, sender_id uuid, body text) "
    "join conversation_participants p on p.conversation_id = m.conversation_id and p.user_id <> m.sender_id "
    "join conversations c on c.id = m.conversation_id")


async def test_phones_of_the_applications_own_table(cluster):
    settings = {"ROOST_ALERTS_TOKENS": TOKENS, "ROOST_ALERTS_AUDIENCE": AUDIENCE}
    async with PushHub(cluster, "push_tokens", **settings) as chat:
        with chat.sql() as sql:
            sql.execute("alter table users add push_token text")
            first, second, registered = new_token(), new_token(), await phone_of(chat, GRACE)

            def keep(value):
                sql.execute("update users set push_token = %s where id = %s", [value, GRACE.sub])

            async def arrives(device, *bodies):
                def came():
                    return [push["payload"]["aps"]["alert"]["body"].rpartition(": ")[2] for push in chat.apns.taken_by(device)]
                await eventually(lambda: len(came()) >= len(bodies), what=lambda: f"{bodies}, came {came()}", every=0.05)
                assert came() == list(bodies)

            keep(first)
            chat.say(sql, ADA, "one")
            await arrives(first, "one")
            await arrives(registered.device, "one")
            # Row level security counts for them, too: by the user's id.
            chat.say(sql, ADA, "secret")
            # Another value, from one message to the next.
            keep(second.upper())
            chat.say(sql, ADA, "two")
            await arrives(second, "two")
            # Dead by Apple's word, for as long as the application has it.
            chat.apns.tell(second, gone=int(time.time() * 1000) + 1000)
            chat.say(sql, ADA, "three")
            await arrives(registered.device, "one", "two", "three")
            dead = "select count(*) from roost.push_device where kind = 'gone'"
            await eventually(lambda: sql.execute(dead).fetchone()[0] == 1, what="a word of the dead token", every=0.05)
            before = len([push for push in chat.apns.pushes if push["token"] == second])
            answer = await told(chat, {"userId": GRACE.sub, "title": "T", "body": "four"})
            assert answer["users"] == [{"userId": GRACE.sub, "status": "queued", "phones": 1}]
            await arrives(registered.device, "one", "two", "three", "four")
            assert len([push for push in chat.apns.pushes if push["token"] == second]) == before
            assert sql.execute("select push_token from users where id = %s", [GRACE.sub]).fetchone()[0] == second.upper()
            keep(first)
            chat.say(sql, ADA, "five")
            await arrives(first, "one", "five")
            await arrives(second, "two")
            assert sql.execute(dead).fetchone()[0] == 0 and chat.apns.violations == []
            checked = await asyncio.to_thread(chat.hub.run, "doctor", check=False)
            assert "alerts.tokens fits the database" in checked.stdout


# Templates of single tables


REMINDERS = """
alerts:
  tables: public.messages, public.reminders
  templates:
    public.reminders:
      title: Reminder
      body: '{text}'
      sound: bell.caf
      category: REMINDER
      interruption_level: '{level}'
      relevance_score: 0.9
      thread: reminders
      payload: {reminderId: '{id}', kind: reminder}
"""
AUDIENCE_OF_BOTH = (
    "select n.row, p.user_id, p.conversation_id, m.sender_id, m.body, 'A' as conversation_name, 'Ada' as sender_name, null as text, "
    "null as level, null::int as id, null::jsonb as payload "
    "from jsonb_to_recordset($1) n (row int, \"table\" text, record jsonb) "
    "cross join jsonb_to_record(n.record) m (conversation_id uuid, sender_id uuid, body text) "
    "join conversation_participants p on p.conversation_id = m.conversation_id and p.user_id <> m.sender_id "
    "where n.\"table\" = 'messages' union all "
    "select n.row, r.user_id, null, null, null, null, null, r.text, r.level, r.id, jsonb_build_object('due', r.due) "
    "from jsonb_to_recordset($1) n (row int, \"table\" text, record jsonb) "
    "cross join jsonb_to_record(n.record) r (id int, user_id uuid, text text, level text, due int) where n.\"table\" = 'reminders'")


async def test_a_reminder_does_not_read_as_a_message(cluster):
    async with PushHub(cluster, "push_templates", ROOST_ALERTS_AUDIENCE=AUDIENCE_OF_BOTH) as chat:
        with chat.sql() as sql:
            sql.execute("create table reminders (id int primary key, user_id uuid, text text, level text, due int); "
                        "grant select on reminders to authenticated")
            chat.hub.watch("public.reminders")
            await asyncio.to_thread(chat.hub.stop)
            with open(f"{chat.hub.folder}/reminders.yaml", "w") as file:
                file.write(REMINDERS)
            chat.hub.environment["ROOST_CONFIG"] = file.name
            await asyncio.to_thread(chat.hub.start)
            phone = await phone_of(chat, GRACE)
            chat.say(sql, ADA, "hello")
            sql.execute("insert into reminders values (7, %s, 'Call Ann', 'time-sensitive', 12), (8, %s, 'Buy milk', null, 13)",
                        [GRACE.sub, GRACE.sub])
            await eventually(lambda: len(phone.alerts) == 3, what=lambda: f"three alerts, came {phone.alerts}", every=0.05)
            message, urgent, plain = [push["payload"] for push in phone.alerts]
            assert message["aps"]["alert"] == {"title": "A", "body": "Ada: hello"} and message["aps"]["thread-id"] == A
            assert set(message["aps"]) == {"alert", "sound", "thread-id", "mutable-content"}
            assert urgent == {
                "aps": {"alert": {"title": "Reminder", "body": "Call Ann"}, "sound": "bell.caf", "thread-id": "reminders",
                        "category": "REMINDER", "interruption-level": "time-sensitive", "relevance-score": 0.9, "mutable-content": 1},
                "messageId": "7", "reminderId": 7, "kind": "reminder", "due": 12}
            assert plain["reminderId"] == 8 and "interruption-level" not in plain["aps"] and chat.apns.violations == []
            # Reloaded, as the other texts are.
            with open(file.name, "w") as again:
                again.write(REMINDERS.replace("title: Reminder", "title: Due"))
            chat.hub.process.send_signal(1)
            await eventually(lambda: "The configuration was reloaded: alerts.templates." in chat.hub.log, what="the reload")
            sql.execute("insert into reminders values (9, %s, 'Sleep', null, 14)", [GRACE.sub])
            await eventually(lambda: len(phone.alerts) == 4, what="the fourth", every=0.05)
            assert phone.alerts[3]["payload"]["aps"]["alert"]["title"] == "Due"
            checked = await asyncio.to_thread(chat.hub.run, "doctor", check=False)
            assert "alerts.templates fits alerts.audience" in checked.stdout
            shown = await asyncio.to_thread(chat.hub.run, "config", "print")
            assert "templates:" in shown.stdout and "public.reminders" in shown.stdout


@pytest.mark.parametrize("section, named", [
    ('{"reminders": {}}', "the section of reminders"), ('{"a.b": {"titel": "x"}}', "titel"), ('{"a.b": {"title": "{"}}', "title, character 1"),
    ('{"a.b": {"interruption_level": "urgent"}}', "interruption_level"), ('{"a.b": {"payload": {"aps": {}}}}', "payload")])
def test_a_section_that_cannot_be_right_ends_with_78(chat, section, named):
    result = chat.hub.run("config", "check", check=False, ROOST_ALERTS_TEMPLATES=section)
    assert result.returncode == 78 and result.stderr.startswith("Error: ROOST_ALERTS_TEMPLATES: "), result.stderr
    assert named in result.stderr and result.stderr.count("\n") == 1
