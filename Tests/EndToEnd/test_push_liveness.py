"""A Live Activity on a phone that is stopped without a word says so in time; a phone that answers late was never gone."""

import asyncio
import time

import pytest

from support.bounds import Elapsed
from support.chat import GRACE
from support.deadline import eventually
from support.push_hub import Phone, PushHub
from support.websocket import PONG

#: The hub's own (presence.grace).
WINDOWS = {"active": 2, "inactive": 12, "background": 20}
#: Seconds from the stop, and from the return, to the card that is right.
GONE, BACK = 25, 3
#: Seconds after which a phone on a bad network answers a ping.
LATE = 4


def answer_late(client):
    send = client.socket.send

    def send_late(opcode, payload, **form):
        if opcode == PONG:
            asyncio.get_running_loop().call_later(LATE, lambda: send(opcode, payload, **form))
        else:
            send(opcode, payload, **form)

    client.socket.send = send_late


async def show_card(chat, sql, state):
    """A phone of its own, whose app is in a state and whose card says that it is connected."""
    phone = Phone(chat, GRACE)
    await phone.show_activity()
    await phone.open(state)
    await phone.is_online(sql)
    await phone.sees(lambda card: card["connected"], "a card that says that the app is connected")
    return phone


@pytest.mark.clock
async def test_a_card_is_right_within_seconds_of_a_phones_end_and_return(cluster, name):
    async with PushHub(cluster, name, grace=WINDOWS) as chat:
        with chat.sql() as sql:
            phones = {state: await show_card(chat, sql, state) for state in WINDOWS}
            late = await show_card(chat, sql, "active")
            answer_late(late.socket)
            stopped = Elapsed()
            offset = time.time() - time.monotonic()
            for phone in phones.values():
                phone.socket._task.cancel()
            await eventually(lambda: all(phone.updates for phone in phones.values()), what="the cards of all who are gone", every=0.1)
            for state, phone in phones.items():
                [push] = chat.apns.taken_by(phone.activity_token)
                assert push["payload"]["aps"]["content-state"]["connected"] is False
                until = push["at"] - offset
                print(f"{state}: the card said so {until - stopped.since:.1f} s after the stop")
                stopped.assert_at_most(GONE, f"the card of a phone whose app was {state}", until)
            for state, phone in phones.items():
                old, back = phone.socket, Elapsed()
                await phone.open("active")
                await phone.sees(lambda card: card["connected"], "a card that says that the app is back")
                print(f"{state}: the card said so {back.seconds:.1f} s after the return")
                back.assert_at_most(BACK, f"the card of a phone that is back, whose app was {state}")
                old.socket.abort()
            assert late.updates == [] and all(card["contentState"]["connected"] for card in late.summaries)
            for phone in [late, *phones.values()]:
                await phone.close()
        assert chat.apns.violations == []
