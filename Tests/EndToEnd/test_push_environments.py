"""Apple's two services: a token is found where it is, once, whatever the registration and the configuration say."""

import asyncio
import collections

import pytest

from support.apns import APNs, new_token
from support.chat import A, ADA, GRACE, LINUS, OUTSIDER
from support.deadline import eventually
from support.push_hub import Phone, PushHub
from support.push_line import Pushes, line

START = "/api/live-activity/start"
#: Whom `roost doctor` sends a push to.
NOBODY = "0" * 64
#: The hub's configuration says sandbox (support/apns.py).
LOST, FOUND = ("sandbox", "BadDeviceToken"), ("production", 200)


@pytest.fixture
def apns():
    with APNs(both=True) as apns:
        yield apns
        assert apns.violations == []


async def phone_of(chat, who, **facts):
    phone = Phone(chat, who)
    chat.apns.tell(phone.device, **facts)
    return await phone.register()


def once_each(apns):
    """No message was shown twice by a phone."""
    times = collections.Counter((push["token"], push["payload"].get("messageId")) for push in apns.taken if "aps" in push["payload"]
                                and "event" not in push["payload"]["aps"])
    assert not [each for each, count in times.items() if count > 1]


async def test_a_token_is_found_once_and_stays_there(cluster, name, apns):
    async with PushHub(cluster, name, apns=apns) as chat:
        with chat.sql() as sql:
            phone = await phone_of(chat, GRACE, environment="production")
            for number in range(5):
                chat.say(sql, ADA, f"{number}")
            await phone.has_alerts(*"01234")
            assert apns.asked_of(phone.device) == [LOST] + 5 * [FOUND]
            ids = [push["headers"]["apns-id"] for push in apns.pushes]
            assert ids[0] == ids[1], "the same push"
            row = "select environment, environment_found from roost.push_device where token = %s"
            await eventually(lambda: sql.execute(row, [phone.device]).fetchall() == [("production", True)], what="it kept")
            assert f"Apple knows the token {phone.device[:8]}… in production and not in the sandbox" in chat.hub.log
            # Neither a restart, nor a registration that says nothing, nor one that says otherwise moves it.
            await asyncio.to_thread(chat.hub.kill)
            await asyncio.to_thread(chat.hub.start)
            chat.say(sql, ADA, "5")
            await phone.has_alerts(*"012345")
            for more in {}, {"environment": "sandbox"}:
                answer = await phone.api("POST", "/api/devices", {"token": phone.device, **more})
                assert answer.json["environment"] == "production"
            chat.say(sql, ADA, "6")
            await phone.has_alerts(*"0123456")
            # In other hands, whose alerts for the same messages the phone has shown.
            other = Phone(chat, LINUS)
            other.device = phone.device
            await other.register()
            assert apns.asked_of(phone.device) == [LOST] + 7 * [FOUND]
            once_each(apns)
            # One that says where it is, is asked there alone.
            sandboxed, said = new_token(), Phone(chat, GRACE)
            said.device = sandboxed
            apns.tell(sandboxed, environment="production")
            await said.register(environment="production")
            chat.say(sql, ADA, "7")
            await said.has_alerts("7")
            assert apns.asked_of(sandboxed) == [FOUND]


async def test_starts_and_live_activities_are_found_too(cluster, name, apns):
    async with PushHub(cluster, name, apns=apns) as chat:
        with chat.sql() as sql:
            start, phone = new_token(), Phone(chat, OUTSIDER)
            apns.tell(start, environment="production", kind="start")
            await phone.api("POST", "/api/devices", {"token": start, "kind": "start", "attributesType": "Trip"})
            wanted = {"userId": OUTSIDER.sub, "attributesType": "Trip", "attributes": {}, "contentState": {"n": 1},
                      "alert": {"title": "T", "body": "B"}}
            for count in 1, 2:
                assert (await chat.backend(START, wanted)).json == {"pushes": 1}
                await asyncio.to_thread(apns.wait_for, start, count)
            assert apns.asked_of(start) == [LOST, FOUND, FOUND]

            card = Phone(chat, GRACE)
            chat.read(sql, GRACE)
            first = card.activity_token = new_token()
            apns.tell(first, environment="production", kind="activity")
            await register(card)
            await eventually(lambda: card.updates, what="the first state")
            chat.say(sql, ADA, "one")
            await eventually(lambda: card.updates[-1]["content-state"]["unread"] == 1, what="the message")
            assert apns.asked_of(first)[0] == LOST and set(apns.asked_of(first)[1:]) == {FOUND}
            # Apple rotates the token, of the same app on the same phone.
            told = list(card.updates)
            second = card.activity_token = new_token()
            apns.tell(second, environment="production", kind="activity")
            answer = await register(card)
            assert answer.json["environment"] == "production"
            await eventually(lambda: card.updates, what="the state, to the new token")
            assert set(apns.asked_of(second)) == {FOUND}
            stamps = [aps["timestamp"] for aps in told + card.updates]
            assert stamps == sorted(set(stamps))


async def register(card):
    card.activity = card.activity or "card"
    answer = await card.api("POST", "/api/live-activity/register", {
        "activityId": card.activity, "activityPushToken": card.activity_token, "conversationId": A})
    assert answer.status == 200, answer.body
    return answer


async def test_a_token_that_is_bad_at_both_is_bad(cluster, name, apns):
    async with PushHub(cluster, name, apns=apns) as chat:
        with chat.sql() as sql:
            bad, witness = await phone_of(chat, GRACE, bad=True), await phone_of(chat, GRACE)
            card, another = Phone(chat, GRACE), Phone(chat, GRACE)
            chat.read(sql, GRACE)
            card.activity_token, both = new_token(), [LOST, ("production", "BadDeviceToken")]
            apns.tell(card.activity_token, bad=True)
            await register(card)
            await another.show_activity()
            for number in range(3):
                chat.say(sql, ADA, f"{number}")
                await witness.has_alerts(*map(str, range(number + 1)))
                # What the one is told, the other would be.
                await eventually(lambda: another.updates and another.updates[-1]["content-state"]["unread"] == number + 1,
                                 what=lambda: f"{number + 1} unread: {another.updates}")
                await eventually(lambda: apns.asked_of(bad.device) == both and apns.asked_of(card.activity_token) == both,
                                 what=lambda: f"{apns.asked_of(bad.device)}, {apns.asked_of(card.activity_token)}")
            # Registered again, it is tried again, and gets what it missed.
            apns.tell(card.activity_token, environment="production")
            await register(card)
            await eventually(lambda: card.updates, what="the state")
            assert card.updates[-1]["content-state"]["unread"] == 3
            assert apns.asked_of(card.activity_token) == both + [LOST, FOUND]


async def test_a_key_for_one_environment(cluster, name):
    with APNs("--key-environment", "production", both=True) as apns:
        async with PushHub(cluster, name, apns=apns) as chat:
            with chat.sql() as sql:
                phones = [await phone_of(chat, GRACE, environment="production") for _ in range(3)]
                xcode = await phone_of(chat, GRACE, environment="sandbox")
                for number in range(3):
                    chat.say(sql, ADA, f"{number}")
                for phone in phones:
                    await phone.has_alerts(*"012")
                    assert [each for each in apns.asked_of(phone.device) if each[0] == "production"] == 3 * [FOUND]
                refused = [push for push in apns.pushes if push["environment"] == "sandbox"]
                assert [push["reason"] for push in refused] == ["BadEnvironmentKeyInToken"]
                assert xcode.alerts == [] and len(apns.asked_of(xcode.device)) <= 2
                said = [each for each in chat.hub.log.splitlines() if "BadEnvironmentKeyInToken)" in each and "alone" in each]
                assert len(said) == 1 and "phones whose app is of the sandbox get no pushes" in said[0]
                assert 'roost_push_circuit_open{kind="apns"} 0\n' in chat.hub.ops("/metrics")[1]
                apns.tell(NOBODY, bad=True)
                doctor = await asyncio.to_thread(chat.hub.run, "doctor", check=False)
                assert "The key is for production alone (BadEnvironmentKeyInToken), and apns.environment says sandbox" in (
                    doctor.stdout + doctor.stderr)
                once_each(apns)
        assert apns.violations == []


def test_by_hand(apns):
    """`roost push` says where the token was."""
    found, bad = new_token(), new_token()
    apns.tell(found, environment="production")
    apns.tell(bad, bad=True)
    lines = [line(found), line(bad), line(new_token())]
    outcomes = Pushes(apns, lines).run()
    said = [outcomes[each["id"]] for each in lines]
    assert (said[0]["outcome"], said[0]["environment"]) == ("delivered", "production")
    assert (said[1]["outcome"], said[1]["reason"]) == ("badToken", "BadDeviceToken")
    assert said[2]["outcome"] == "delivered" and "environment" not in said[2]


async def test_doctor(cluster, name, apns):
    async with PushHub(cluster, name, apns=apns) as chat:
        phone = new_token()
        apns.tell(phone, environment="production")
        apns.tell(NOBODY, bad=True)
        for options, sentence in (
            (("--push-token", phone), "Apple took the test push in production, although apns.environment says sandbox"),
            ((), "Apple takes the key and the topic"),
        ):
            doctor = await asyncio.to_thread(chat.hub.run, "doctor", *options, check=False)
            assert sentence in doctor.stdout + doctor.stderr
