"""The hub's pushes: who may register what, who is told of which message, and what a killed hub leaves behind."""

import asyncio
import time
import uuid
from urllib.parse import quote

import pytest

from support.apns import new_token
from support.apns_client import APNsClient
from support.chat import A, ADA, B, GRACE, LINUS, OUTSIDER
from support.deadline import eventually
from support.push_hub import STATEMENTS, Phone, PushHub, call
from support.tokens import token

REGISTER, REGISTRATIONS = "/api/live-activity/register", "/api/live-activity/registrations"
UPDATE, START, BROADCAST = "/api/live-activity/update", "/api/live-activity/start", "/api/live-activity/broadcast"


@pytest.fixture(scope="module")
def chat(cluster):
    with PushHub(cluster, "push_hub") as chat:
        yield chat
        assert chat.apns.violations == []


@pytest.fixture
def sql(chat):
    with chat.sql() as connection:
        yield connection


async def phone_of(chat, who):
    return await Phone(chat, who).register()


# Registrations


async def test_whoever_registers_sees_their_own_and_only_a_prefix_of_the_token(chat):
    grace, ada = Phone(chat, GRACE), Phone(chat, ADA)
    await grace.show_activity(environment="production")
    await ada.show_activity(conversation=None)
    for path in REGISTRATIONS, "/realtime/v1" + REGISTRATIONS, f"{REGISTRATIONS}?token={grace.bearer}":
        answer = await call(chat.hub, "GET", path, None if "?" in path else grace.bearer)
        assert grace.activity_token not in answer.body.decode()
        [mine] = [each for each in answer.json["registrations"] if each["activityId"] == grace.activity]
        assert len(mine["tokenPrefix"]) <= 8 and grace.activity_token.startswith(mine["tokenPrefix"])
        assert (mine["conversationId"], mine["environment"]) == (A, "production")
        assert ada.activity not in answer.body.decode()
    # Another user's activity: not to be taken over, not to be ended.
    taken = await ada.api("POST", REGISTER, {"activityId": grace.activity, "activityPushToken": new_token()})
    assert taken.status in (403, 409) and grace.activity_token not in taken.body.decode()
    assert (await ada.api("DELETE", f"{REGISTER}?activityId={grace.activity}")).status == 404
    assert [each["activityId"] for each in await grace.registrations()] == [grace.activity]
    # A new token takes the place of the old one.
    old = grace.activity_token
    await grace.show_activity()
    [mine] = await grace.registrations()
    assert grace.activity_token.startswith(mine["tokenPrefix"]) and not old.startswith(mine["tokenPrefix"])
    assert (await grace.api("DELETE", f"{REGISTRATIONS}/{grace.activity}")).status == 204
    assert await grace.registrations() == []
    assert (await ada.api("DELETE", f"{REGISTER}?activityId={ada.activity}")).status == 204
    assert grace.activity_token not in chat.hub.log and grace.activity_token not in chat.hub.ops("/metrics")[1]


async def test_an_activity_is_named_by_bytes(chat):
    grace = Phone(chat, GRACE)
    for grace.activity in ("\u0301e", "Jose\u0301", "a/b"):
        await grace.show_activity()
        assert (await grace.api("DELETE", f"{REGISTRATIONS}/{quote(grace.activity)}")).status == 204
    assert await grace.registrations() == []


async def test_who_is_not_somebody_is_refused(chat):
    body = {"activityId": "x", "activityPushToken": new_token()}
    for bearer, statuses in (None, (401,)), ("nonsense", (401,)), (token("anon"), (403,)), (token(lifetime=-5, sub=ADA.sub), (401,)):
        for method, path, sent in (
            ("POST", REGISTER, body), ("GET", REGISTRATIONS, None), ("DELETE", f"{REGISTER}?activityId=x", None),
            ("POST", "/api/devices", {"token": new_token()}), ("DELETE", f"/api/devices?token={new_token()}", None),
        ):
            answer = await call(chat.hub, method, path, bearer, sent)
            assert answer.status in statuses, (bearer, method, path, answer.body)
            assert answer.json["message"]
    for path in UPDATE, START, BROADCAST:
        answer = await call(chat.hub, "POST", path, ADA.token(), {"activityId": "x", "contentState": {}})
        assert answer.status == 403


@pytest.mark.parametrize("body", [
    b"", b"[]", b"{", {}, {"activityId": "x"}, {"activityId": "", "activityPushToken": "ab" * 32},
    {"activityId": "x", "activityPushToken": "xyz"}, {"activityId": "x", "activityPushToken": 7},
    {"activityId": "x" * 300, "activityPushToken": "ab" * 32},
    {"activityId": "x", "activityPushToken": "ab" * 32, "environment": "moon"},
    {"activityId": "x", "activityPushToken": "ab" * 32, "bundleId": "a/../b"}])
async def test_what_is_no_registration_is_refused_with_a_sentence(chat, body):
    answer = await call(chat.hub, "POST", REGISTER, ADA.token(), body)
    assert answer.status == 400 and answer.json["message"].endswith(".")


async def test_a_phone_that_is_unregistered_hears_nothing(chat, sql):
    phone, witness = await phone_of(chat, GRACE), await phone_of(chat, GRACE)
    assert (await call(chat.hub, "DELETE", f"/api/devices?token={phone.device}", ADA.token())).status == 404
    chat.say(sql, ADA, "both")
    for each in phone, witness:
        await each.has_alerts("both")
    assert (await phone.api("DELETE", f"/api/devices?token={phone.device}")).status == 204
    chat.say(sql, ADA, "one")
    await witness.has_alerts("both", "one")
    assert len(phone.alerts) == 1
    await witness.api("DELETE", f"/api/devices?token={witness.device}")


# What a backend posts


async def test_a_backends_summary_is_passed_on_to_the_byte(chat):
    phone = Phone(chat, LINUS)
    await phone.show_activity(conversation=None)
    state = {"ü": "é\u2028 \\ / \" 👩‍🚀", "numbers": [1, 1.50, 1e3, -0.0], "nothing": None, "deep": {"b": 1, "a": 2}}
    now = int(time.time())
    answer = await chat.backend(UPDATE, {"activityId": phone.activity, "contentState": state, "timestamp": now})
    assert (answer.status, answer.json) == (202, {"activityId": phone.activity, "status": "queued"})
    await eventually(lambda: phone.updates, what="the update", every=0.05)
    [aps] = phone.updates
    assert aps["content-state"] == state and aps["timestamp"] == now and aps["event"] == "update"
    assert list(aps["content-state"]["deep"]) == ["b", "a"]
    # Older than what was sent, or no newer.
    for timestamp in now - 1, now:
        answer = await chat.backend(UPDATE, {"activityId": phone.activity, "contentState": {"n": 0}, "timestamp": timestamp})
        assert answer.status == 409 and answer.json["message"]
    answer = await chat.backend(
        UPDATE, {"activityId": phone.activity, "contentState": {"n": 1}, "alert": {"title": "T", "body": "B"}})
    await eventually(lambda: len(phone.updates) == 2, what="the update with an alert, at once", every=0.05)
    alerting = chat.apns.taken_by(phone.activity_token)[1]
    assert alerting["headers"]["apns-priority"] == "10" and phone.updates[1]["alert"] == {"title": "T", "body": "B"}
    await chat.backend(UPDATE, {"activityId": phone.activity, "contentState": {"n": 2}, "event": "end"})
    await eventually(lambda: len(phone.updates) == 3, what="the end", every=0.05)
    assert phone.updates[2]["event"] == "end" and phone.updates[2]["content-state"] == {"n": 2}
    stamps = [aps["timestamp"] for aps in phone.updates]
    assert stamps == sorted(set(stamps))
    await phone.has_no_registration()


async def test_an_activity_that_nobody_knows_is_told_to_nobody(chat):
    before = len(chat.apns.pushes)
    unknown = str(uuid.uuid4())
    answer = await chat.backend(UPDATE, {"activityId": unknown, "contentState": {"n": 1}})
    assert answer.status == 404 and answer.json["message"]
    await eventually(lambda: unknown in chat.hub.log, what="a line about it")
    assert not any("n" in push["payload"]["aps"].get("content-state", {}) for push in chat.apns.pushes[before:])


async def test_a_live_phone_is_told_by_its_socket(chat):
    phone = Phone(chat, LINUS)
    await phone.show_activity(conversation=None)
    await phone.open()
    try:
        # It may not have heard of the socket yet, and says "queued" then; nothing is pushed all the same.
        answer = await chat.backend(UPDATE, {"activityId": phone.activity, "contentState": {"n": 1}})
        assert answer.status == 202
        await phone.sees(lambda state: state == {"n": 1}, "the summary")
        # Another user who joins that topic sees nothing of it.
        other = Phone(chat, ADA)
        other.activity = phone.activity
        await other.open()
        answer = await chat.backend(UPDATE, {"activityId": phone.activity, "contentState": {"n": 2}})
        assert (answer.status, answer.json["status"]) == (202, "withheld")
        await phone.sees(lambda state: state == {"n": 2}, "the summary")
        await other.socket.settled()
        assert other.summaries == [] and phone.updates == []
        await other.close()
    finally:
        await phone.close()
        await phone.api("DELETE", f"{REGISTER}?activityId={phone.activity}")


async def test_an_app_that_joins_is_shown_what_it_missed(chat):
    phone = Phone(chat, LINUS)
    await phone.show_activity(conversation=None)
    shown, phone.activity = phone.activity, None
    await phone.open()
    try:
        phone.activity = shown
        answer = await chat.backend(UPDATE, {"activityId": shown, "contentState": {"n": 1}})
        assert answer.status == 202
        # Long after the state was told to nobody.
        await asyncio.sleep(4)
        await phone.see_activity()
        await phone.sees(lambda state: state == {"n": 1}, "the state from before")
        assert phone.updates == []
    finally:
        await phone.close()
        await phone.api("DELETE", f"{REGISTER}?activityId={shown}")


async def test_what_no_message_says_is_noticed(chat, sql):
    phone = Phone(chat, GRACE)
    chat.read(sql, GRACE)
    await phone.show_activity()
    chat.say(sql, ADA, "unread")
    await eventually(lambda: [aps for aps in phone.updates if aps["content-state"]["unread"] == 1],
                     what=lambda: f"1 unread among {phone.updates}")
    # On another device.
    chat.read(sql, GRACE)
    await eventually(lambda: phone.updates[-1]["content-state"]["unread"] == 0, what=lambda: f"none unread: {phone.updates}")
    sql.execute("delete from conversation_participants where user_id = %s and conversation_id = %s", [GRACE.sub, A])
    try:
        await eventually(lambda: phone.updates[-1]["event"] == "end", what=lambda: f"an end: {phone.updates}")
        assert phone.updates[-1]["content-state"]["preview"] == "unread"
        await phone.has_no_registration()
    finally:
        sql.execute("insert into conversation_participants (user_id, conversation_id) values (%s, %s)", [GRACE.sub, A])


async def test_start_by_push(chat):
    phone, start = Phone(chat, OUTSIDER), new_token()
    answer = await phone.api("POST", "/api/devices", {"token": start, "kind": "start", "attributesType": "ChatAttributes"})
    assert answer.status == 200, answer.body
    chat.apns.tell(start, kind="start")
    wanted = {"userId": OUTSIDER.sub, "attributesType": "ChatAttributes", "attributes": {"id": A}, "contentState": {"n": 1},
              "alert": {"title": "T", "body": "B"}, "inputPushToken": 1}
    answer = await chat.backend(START, wanted)
    assert (answer.status, answer.json) == (202, {"pushes": 1})
    [push] = await asyncio.to_thread(chat.apns.wait_for, start, 1)
    aps = push["payload"]["aps"]
    assert (aps["event"], aps["attributes-type"], aps["attributes"]) == ("start", "ChatAttributes", {"id": A})
    assert (aps["content-state"], aps["alert"], aps["input-push-token"]) == ({"n": 1}, {"title": "T", "body": "B"}, 1)
    assert push["headers"]["apns-push-type"] == "liveactivity" and push["headers"]["apns-priority"] == "10"
    for wrong in {"alert": None}, {"attributes": None}, {"inputPushChannel": "YQ=="}:
        assert (await chat.backend(START, {**wanted, **wrong})).status == 400
    assert (await chat.backend(START, {**wanted, "attributesType": "Other"})).status == 404
    assert len(chat.apns.taken_by(start)) == 1


async def test_a_broadcast_to_a_channel(chat):
    with APNsClient(chat.apns) as apple:
        made = apple.push("", {"message-storage-policy": 1, "push-type": "LiveActivity"}, path="/1/apps/com.example.roost/channels")
        channel = made.headers["apns-channel-id"]
    answer = await chat.backend(BROADCAST, {"channelId": channel, "contentState": {"score": 3}})
    assert answer.status == 202, answer.body
    await eventually(lambda: [push for push in chat.apns.taken if push.get("channel") == channel], what="the broadcast", every=0.05)
    [push] = [push for push in chat.apns.taken if push.get("channel") == channel]
    assert push["payload"]["aps"]["content-state"] == {"score": 3} and push["payload"]["aps"]["event"] == "update"


# Who hears of a message


async def test_every_participant_who_is_away_and_wants_to_know(chat, sql):
    """Not the sender, not who is there, not who has muted it, not who may not read it, nobody else."""
    ada, grace, linus, outsider = [await phone_of(chat, who) for who in (ADA, GRACE, LINUS, OUTSIDER)]
    second = await phone_of(chat, GRACE)
    mute = "update conversation_participants set muted = %s where user_id = %s and conversation_id = %s"
    try:
        chat.say(sql, ADA, "to A")
        for each in grace, second:
            await each.has_alerts("to A")
        # Linus is in B and is there.
        await linus.open()
        await linus.is_online(sql)
        chat.say(sql, GRACE, "to B", conversation=B)
        sql.execute(mute, [True, GRACE.sub, A])
        chat.say(sql, ADA, "muted")
        # What comes after it is through, so nothing more comes of what was before.
        chat.say(sql, LINUS, "not muted", conversation=B)
        await grace.has_alerts("to A", "not muted")
        sql.execute(mute, [False, GRACE.sub, A])
        chat.say(sql, ADA, "secret")
        chat.say(sql, ADA, "readable")
        for each in grace, second:
            await each.has_alerts("to A", "not muted", "readable")
        assert linus.alerts == [] and outsider.alerts == []
        assert [push["payload"]["aps"]["alert"]["title"] for push in grace.alerts] == ["A", "B", "A"]
        assert ada.alerts == [], "she wrote them, or was not in B"
    finally:
        await linus.close()
        for each in ada, grace, second, linus, outsider:
            await each.api("DELETE", f"/api/devices?token={each.device}")


async def test_a_token_belongs_to_who_registered_it_last(chat, sql):
    """A phone that another person signs in on does not show the first one's messages."""
    phone = await phone_of(chat, GRACE)
    other = Phone(chat, OUTSIDER)
    other.device = phone.device
    await other.register()
    witness = await phone_of(chat, GRACE)
    chat.say(sql, ADA, "private")
    await witness.has_alerts("private")
    assert phone.alerts == []
    for each in other, witness:
        await each.api("DELETE", f"/api/devices?token={each.device}")


async def test_long_messages_are_cut_and_fit(chat, sql):
    phone = await phone_of(chat, GRACE)
    chat.say(sql, ADA, "👩‍🚀" * 800)
    await eventually(lambda: phone.alerts, what="the alert", every=0.05)
    [push] = phone.alerts
    assert push["size"] <= 4096 and push["payload"]["aps"]["alert"]["body"].startswith("Ada: 👩‍🚀👩‍🚀")
    await phone.api("DELETE", f"/api/devices?token={phone.device}")


async def test_a_hub_that_is_told_nothing_of_apns_says_so(hub):
    for method, path, bearer, body in (
        ("POST", REGISTER, ADA.token(), {"activityId": "x", "activityPushToken": new_token()}),
        ("GET", REGISTRATIONS, ADA.token(), None), ("POST", "/api/devices", ADA.token(), {"token": new_token()}),
        ("POST", UPDATE, token("service_role"), {"activityId": "x", "contentState": {}}),
    ):
        answer = await call(hub, method, path, bearer, body)
        assert answer.status == 501 and "apns" in answer.json["message"]


# Calls a function where there is a message that says "poison".
POISONED = (
    f"select a.* from ({STATEMENTS['ROOST_ALERTS_AUDIENCE'].rstrip().rstrip(';')}) a where (select bool_and(case when r -> 'record' "
    "->> 'body' = 'poison' then end_session() else true end) from jsonb_array_elements($1::jsonb) r)")


async def test_a_message_whose_audience_ends_its_session_keeps_no_other(cluster):
    async with PushHub(cluster, "push_poison", ROOST_ALERTS_AUDIENCE=POISONED) as chat:
        with chat.sql() as sql:
            sql.execute("create function end_session() returns boolean language plpgsql volatile security definer as "
                        "$$ begin perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(60); return true; end $$")
            phone = await phone_of(chat, GRACE)
            for body in "before", "poison", "after":
                chat.say(sql, ADA, body)
            # Each session that is lost is followed by a longer pause.
            await eventually(lambda: len(phone.alerts) == 2, 60, lambda: f"the others' pushes, not {phone.alerts}")
            await phone.has_alerts("before", "after")
            assert "is not pushed: Postgres refused what its alerts need" in chat.hub.log


@pytest.mark.parametrize(
    "name, harm", [("waits", "perform from held"), ("fails", "raise exception 'not now' using errcode = '40001'")])
async def test_a_message_whose_audience_waits_keeps_no_other(cluster, name, harm):
    async with PushHub(cluster, f"push_{name}", ROOST_ALERTS_AUDIENCE=POISONED) as chat:
        with chat.sql() as sql, chat.sql() as locker:
            sql.execute("create table held (x int); create function end_session() returns boolean language plpgsql volatile as "
                        f"$$ begin {harm}; return true; end $$")
            locker.execute("begin; lock table held")
            phone = await phone_of(chat, GRACE)
            for body in "before", "poison", "after":
                chat.say(sql, ADA, body)
            await eventually(lambda: len(phone.alerts) == 2, 60, lambda: f"the others' pushes, not {phone.alerts}")
            await phone.has_alerts("before", "after")
            if "held" in harm:
                locker.execute("rollback")
                await eventually(lambda: len(phone.alerts) == 3, 60, lambda: f"all pushes, not {phone.alerts}")
            else:
                await eventually(lambda: "are not pushed, or not to everybody" in chat.hub.log, 60, lambda: chat.hub.log)


async def test_a_message_whose_alert_cannot_be_stored_keeps_no_other(cluster):
    async with PushHub(cluster, "push_refused") as chat:
        with chat.sql() as sql:
            sql.execute("create function refuses() returns trigger language plpgsql as "
                        "$$ begin raise exception 'not now' using errcode = '55000'; end $$; create trigger refuses before insert on "
                        "roost.alert for each row when (new.variables::text like '%poison%') execute function refuses()")
            phone = await phone_of(chat, GRACE)
            for body in "before", "poison", "after":
                chat.say(sql, ADA, body)
            # The error says that asking again helps, which is believed for half a minute.
            await eventually(lambda: len(phone.alerts) == 2, 120, lambda: f"the others' pushes, not {phone.alerts}")
            await phone.has_alerts("before", "after")
            assert "is not pushed: Postgres refused what its alerts need" in chat.hub.log
