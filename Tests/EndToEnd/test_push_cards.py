"""Live Activities that a backend and the hub fill together."""

import asyncio
import uuid

import pytest

from support.chat import A, ADA, GRACE, LINUS
from support.deadline import eventually
from support.push_hub import Phone, PushHub

UPDATE = "/api/live-activity/update"


@pytest.fixture(scope="module")
def chat(cluster):
    with PushHub(cluster, "push_cards") as chat:
        yield chat
        assert chat.apns.violations == []


@pytest.fixture
def sql(chat):
    with chat.sql() as connection:
        yield connection


async def post(chat, phone, state, hub=None, to=None, **more):
    body = {"activityId": phone.activity, "contentState": state, **({} if hub is None else {"hub": hub}), **more}
    return await chat.backend(UPDATE, body, hub=to)


async def is_pushed(phone, **members):
    """The state that was pushed last has these members."""
    def fits():
        return bool(phone.updates) and all(
            phone.updates[-1]["content-state"].get(key) == value for key, value in members.items())

    await eventually(fits, what=lambda: f"{members}, not {phone.updates[-3:]}", every=0.05)
    return phone.updates[-1]


def stamps_increase(phone):
    """By push and by socket in one sequence, and nothing twice in a row by push."""
    pushed, shown = [aps["timestamp"] for aps in phone.updates], [each["timestamp"] for each in phone.summaries]
    assert pushed == sorted(set(pushed)) and shown == sorted(set(shown)) and not set(pushed) & set(shown)


async def test_a_card_goes_on_while_the_phone_comes_and_goes(chat, sql):
    phone = Phone(chat, GRACE)
    chat.read(sql, GRACE)
    await phone.show_activity()
    await phone.open()
    ride = {"driver": "Ada", "eta": 1.50, "connected": "?", "line": "{unread} from {sender_name}", "plain": "{unread}"}
    answer = await post(chat, phone, ride, ["connected", "line", "unread", "present_count"])
    assert answer.status == 202, answer.body
    await phone.sees(lambda state: state == {
        **ride, "connected": True, "line": "0 from Ada", "unread": 0, "present_count": 0}, "the backend's and the hub's")
    # The phone is locked: what the backend said of its connection is not said for ever.
    phone.cut()
    await is_pushed(phone, connected=False, driver="Ada", plain="{unread}")
    chat.say(sql, ADA, "Here")
    aps = await is_pushed(phone, connected=False, unread=1, line="1 from Ada")
    assert aps["content-state"]["eta"] == 1.5
    # Another device has read it.
    chat.read(sql, GRACE)
    await is_pushed(phone, unread=0, line="0 from Ada")
    # The hub goes on where it was.
    before = len(phone.updates)
    await asyncio.to_thread(chat.hub.kill)
    await asyncio.to_thread(chat.hub.start)
    chat.say(sql, ADA, "Still here")
    await is_pushed(phone, unread=1, driver="Ada", connected=False)
    states = [aps["content-state"] for aps in phone.updates[before - 1:]]
    assert all(one != next for one, next in zip(states, states[1:])), "an equal state was sent again"
    stamps_increase(phone)
    await phone.open()
    try:
        await phone.sees(lambda state: state.get("connected") is True and state.get("unread") == 1, "the state of now")
        stamps_increase(phone)
    finally:
        await phone.close()
        await phone.api("DELETE", f"/api/live-activity/registrations/{phone.activity}")


async def test_what_is_withheld_survives_a_restart(chat, sql):
    """The post went by socket alone."""
    phone = Phone(chat, LINUS)
    await phone.show_activity(conversation=None)
    await phone.open()
    assert (await post(chat, phone, {"gate": "B7"}, ["connected"])).json["status"] in ("withheld", "queued")
    await phone.sees(lambda state: state == {"gate": "B7", "connected": True}, "the post")
    await asyncio.to_thread(chat.hub.kill)
    phone.cut()
    await asyncio.to_thread(chat.hub.start)
    await is_pushed(phone, gate="B7", connected=False)
    # A backend that takes all back.
    assert (await post(chat, phone, {"gate": "B8", "connected": "{connected}"})).status == 202
    await is_pushed(phone, gate="B8", connected="{connected}")
    await phone.api("DELETE", f"/api/live-activity/registrations/{phone.activity}")


async def test_another_hub_goes_on_with_it(cluster, name):
    async with PushHub(cluster, name) as chat:
        with chat.sql() as sql:
            other = await asyncio.to_thread(chat.another_hub().start)
            phone = Phone(chat, GRACE)
            chat.read(sql, GRACE)
            await phone.show_activity()
            assert (await post(chat, phone, {"gate": "B7"}, ["connected", "unread"])).status == 202
            await is_pushed(phone, gate="B7", connected=False, unread=0)
            # The phone comes back at the other hub, which has cards, and takes this one over.
            neighbour = Phone(chat, LINUS)
            phone.hub = neighbour.hub = other
            await neighbour.show_activity(conversation=None)
            await phone.open()
            await phone.sees(lambda state: state == {"gate": "B7", "connected": True, "unread": 0}, "the card, taken over", 30)
            await asyncio.to_thread(chat.hub.kill)
            phone.cut()
            chat.say(sql, ADA, "Here")
            await is_pushed(phone, gate="B7", connected=False, unread=1)
            stamps_increase(phone)
            assert chat.apns.violations == []


@pytest.mark.parametrize("state, hub, sentence", [
    ({"a": 1}, ["a"], 'hub names "a", which is no variable'), ({}, ["nothing"], 'hub names "nothing"'),
    ({"a": "{nothing}"}, ["a"], 'The member "a" of contentState is no template'),
    ({"connected": "{"}, ["connected"], 'The member "connected" of contentState is no template'),
    ({}, "connected", "hub is not a list"), ({}, [1], "hub is not a list"), ({}, {"connected": True}, "hub is not a list"),
    ({}, ["connected"] * 33, "hub is not a list"), ([], ["connected"], "contentState is missing, or is not a JSON object"),
    ("{connected}", ["connected"], "contentState is missing, or is not a JSON object"),
    ({"a": "x" * 4000}, ["connected"], "make the content smaller"),
])
async def test_what_the_hub_cannot_fill_is_refused_with_a_sentence(chat, state, hub, sentence):
    phone = Phone(chat, LINUS)
    phone.activity = "refused"
    await phone.show_activity(conversation=None)
    answer = await post(chat, phone, state, hub)
    assert answer.status == 400 and sentence in answer.json["message"] and answer.json["message"].endswith("."), answer.body
    assert "content-state" not in str(phone.updates)
    await phone.api("DELETE", f"/api/live-activity/registrations/{phone.activity}")


async def test_nobodys_card_is_404(chat):
    phone = Phone(chat, LINUS)
    phone.activity = str(uuid.uuid4())
    assert (await post(chat, phone, {}, ["connected"])).status == 404
