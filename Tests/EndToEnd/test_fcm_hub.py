"""The hub pushes to Android: who may register what, what devices are sent, and which are forgotten."""

import asyncio
import json
import uuid

import pytest

from support.apns import new_token as apple_token
from support.chat import A, ADA, GRACE, LINUS
from support.deadline import eventually
from support.fcm import FCM, new_token
from support.push_hub import Phone, PushHub


@pytest.fixture(scope="module")
def fcm():
    with FCM() as standin:
        yield standin
        assert standin.violations == []


@pytest.fixture(scope="module")
def chat(cluster, fcm):
    with PushHub(cluster, "fcm_hub", apns=fcm, ROOST_FCM_CHANNEL="messages") as chat:
        yield chat


@pytest.fixture
def sql(chat):
    with chat.sql() as connection:
        yield connection


async def android(chat, who, token=None, **more):
    phone = Phone(chat, who)
    phone.device = token or new_token()
    answer = await phone.api("POST", "/api/devices", {"kind": "fcm", "token": phone.device, **more})
    assert answer.status == 200 and answer.json == {"kind": "fcm", "tokenPrefix": phone.device[:8]}, answer.body
    return phone


def outcomes(sql, token):
    return [outcome for (outcome,) in sql.execute("select outcome from roost.alert_device where token = %s order by registered_at", [token])]


async def test_a_message_is_shown_on_android(chat, fcm, sql):
    phone = await android(chat, GRACE)
    number = chat.say(sql, ADA, "Hello")
    [push] = await eventually_taken(fcm, phone.device, 1)
    message = push["payload"]
    assert message["notification"]["body"].endswith("Hello")
    assert message["data"] | {"conversationId": A, "messageId": str(number), "threadId": A} == message["data"]
    assert message["android"]["priority"] == "HIGH" and "collapse_key" not in message["android"]
    assert message["android"]["notification"]["channel_id"] == "messages"
    assert 0 < int(message["android"]["ttl"][:-1]) <= 86400
    await eventually_says(sql, phone.device, ["delivered"])
    assert phone.device not in chat.hub.log


async def eventually_taken(fcm, token, count):
    await eventually(lambda: len(fcm.taken_by(token)) >= count, what=f"{count} pushes")
    return fcm.taken_by(token)


async def eventually_says(sql, token, said):
    await eventually(lambda: outcomes(sql, token) == said, what=lambda: f"{said}, not {outcomes(sql, token)}")


async def test_a_device_that_is_gone_is_forgotten(chat, fcm, sql):
    phone = await android(chat, GRACE)
    fcm.tell(phone.device, gone=True)
    chat.say(sql, ADA, "Anybody?")
    await eventually_says(sql, phone.device, ["unregistered"])
    await eventually(lambda: sql.execute("select from roost.push_device where token = %s", [phone.device]).fetchone() is None,
                     what="the token is dropped")


async def test_a_device_that_was_registered_again_meanwhile_lives(chat, fcm, sql):
    phone = await android(chat, GRACE)
    fcm.script({"match": {"token": phone.device}, "times": 1, "do": {"answer": "UNREGISTERED"}})
    with fcm_frozen(fcm):
        chat.say(sql, ADA, "Anybody?")
        await eventually(lambda: outcomes(sql, phone.device) == [None], what="the alert is on its way")
        await android(chat, GRACE, phone.device)
    await eventually_says(sql, phone.device, ["unregistered"])
    await chat.hub.settled()
    assert sql.execute("select from roost.push_device where token = %s", [phone.device]).fetchone() is not None
    fcm.forget_script()


class fcm_frozen:
    """The stand-in does not answer meanwhile."""

    def __init__(self, fcm):
        self.fcm = fcm

    def __enter__(self):
        self.fcm.pause()

    def __exit__(self, *_):
        self.fcm.resume()


async def test_an_activity_of_android_gets_its_states_as_data(chat, fcm, sql):
    phone = Phone(chat, GRACE)
    phone.activity, phone.activity_token = str(uuid.uuid4()), new_token()
    answer = await phone.api("POST", "/api/live-activity/register", {
        "kind": "fcm", "activityId": phone.activity, "activityPushToken": phone.activity_token, "conversationId": A})
    assert answer.status == 200 and answer.json == {"activityId": phone.activity, "kind": "fcm"}, answer.body
    for step in range(3):
        answer = await chat.backend("/api/live-activity/update", {"activityId": phone.activity, "contentState": {"step": step}})
        assert answer.status == 202, answer.body

    def last():
        data = fcm.data(phone.activity_token)
        return json.loads(data[-1]["contentState"]) if data else None

    await eventually(lambda: last() == {"step": 2}, what=lambda: f"the latest state, not {last()}")
    pushes = fcm.taken_by(phone.activity_token)
    assert len({push["payload"]["android"]["collapse_key"] for push in pushes}) == 1
    times = [int(data["timestamp"]) for data in fcm.data(phone.activity_token)]
    assert times == sorted(set(times)) and {data["activityId"] for data in fcm.data(phone.activity_token)} == {phone.activity}
    answer = await chat.backend(
        "/api/live-activity/update", {"activityId": phone.activity, "event": "end", "contentState": {"step": 3}})
    assert answer.status == 202
    await eventually(lambda: fcm.data(phone.activity_token)[-1]["event"] == "end", what="the end")
    assert fcm.taken_by(phone.activity_token)[-1]["payload"]["android"]["priority"] == "HIGH"


@pytest.mark.parametrize("body, status, words", [
    ({"kind": "fcm"}, 400, "token is missing"), ({"kind": "fcm", "token": "short"}, 400, "FirebaseMessaging.getToken()"),
    ({"kind": "fcm", "token": "x" * 1025}, 400, "not a token"), ({"kind": "fcm", "token": "a b" * 20}, 400, "not a token"),
    ({"kind": "fcm", "token": "a\"b" * 20}, 400, "not a token"), ({"kind": "gcm", "token": "x" * 30}, 400, "none of alert"),
    ({"kind": "web", "subscription": {}}, 400, "kind web"), ({"token": "ab" * 32}, 400, "kind apns"),
], ids=str)
async def test_what_a_client_may_not_register(chat, body, status, words):
    answer = await Phone(chat, GRACE).api("POST", "/api/devices", body)
    assert answer.status == status and words in answer.json["message"], answer.body


async def test_a_device_is_one_users_and_bounded(chat, sql):
    first = await android(chat, GRACE)
    await android(chat, ADA, first.device)
    assert sql.execute("select user_id from roost.push_device where token = %s", [first.device]).fetchone() == (ADA.sub,)
    for _ in range(22):
        await android(chat, LINUS)
    assert sql.execute("select count(*) from roost.push_device where user_id = %s", [LINUS.sub]).fetchone() == (20,)
    assert (await Phone(chat, GRACE).api("DELETE", f"/api/devices?token={first.device}")).status == 404
    assert (await Phone(chat, ADA).api("DELETE", f"/api/devices?token={first.device}")).status == 204


async def test_doctor_asks_google(chat, fcm):
    def doctor():
        result = chat.hub.run("doctor", check=False)
        return result.stdout + result.stderr

    assert "Google takes the service account of project roost-standin" in await asyncio.to_thread(doctor)
    fcm.script({"do": {"answer": "PERMISSION_DENIED"}})
    try:
        said = await asyncio.to_thread(doctor)
    finally:
        fcm.forget_script()
    assert "Google refuses the service account of project roost-standin" in said and "PERMISSION_DENIED" in said, said


async def test_both_kinds_of_one_user_are_told(cluster):
    """And while one service is away, whoever has no device of it is told by the other."""
    with FCM() as fcm, PushHub(cluster, "fcm_and_apns", **fcm.environment) as chat, chat.sql() as sql:
        phone, pad = await android(chat, GRACE), await Phone(chat, GRACE).register()
        only_apple = await Phone(chat, ADA).register()
        chat.say(sql, ADA, "first")
        await eventually_taken(fcm, phone.device, 1)
        await pad.has_alerts("first")
        with fcm_frozen(fcm):
            chat.say(sql, ADA, "second")
            for number in range(5):
                chat.say(sql, GRACE, f"more {number}")
            await only_apple.has_alerts(*(f"more {number}" for number in range(5)))
            await pad.has_alerts("first", "second")
        assert chat.apns.violations == [] and fcm.violations == []
