"""Pushes to browsers: what they decrypt, who may be reached, and what a push service's answers lead to."""

import asyncio
import base64
import json
import time

import http_ece
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from py_vapid import Vapid02

from support.chat import ADA, B, GRACE, LINUS
from support.deadline import eventually
from support.push_hub import call
from support.webpush import Browser, WebPushHub, name_of


@pytest.fixture(scope="module")
def chat(cluster):
    with WebPushHub(cluster, "webpush") as chat:
        yield chat
        assert chat.apns.violations == []


@pytest.fixture
def sql(chat):
    with chat.sql() as connection:
        yield connection


@pytest.fixture(autouse=True)
def no_script(chat):
    yield
    chat.apns.forget_script()
    chat.apns.set(largest=4096, clock_offset=0, delay=0)


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


async def told(browser, *ends, within=20):
    """The texts that the browser decrypted, in order, end so, and there are no others."""
    def texts():
        return [message["body"].rpartition(": ")[2] for message in browser.messages]
    await eventually(lambda: len(texts()) >= len(ends), within, lambda: f"{ends}, came {texts()}", every=0.05)
    assert texts() == list(ends)


async def test_pages_are_told_the_key(chat):
    answer = await call(chat.hub, "GET", "/api/push/key", None)
    assert answer.status == 200 and answer.json == {"publicKey": chat.apns.public_key}
    assert answer.headers["access-control-allow-origin"] == "*"


async def test_a_browser_is_told_of_a_message(chat, sql):
    browser = await Browser(chat, GRACE).register()
    message = chat.say(sql, ADA, "Hello — 你好")
    await told(browser, "Hello — 你好")
    [shown] = browser.messages
    assert shown["title"] and shown["data"]["messageId"] == str(message)
    [record] = chat.apns.taken_by(name_of(browser.subscription))
    headers = record["headers"]
    assert headers["urgency"] == "high" and 86000 < int(headers["ttl"]) <= 86400 and headers["content-encoding"] == "aes128gcm"


async def test_others_decrypt_and_verify_what_is_sent(chat, sql):
    """By http_ece and py_vapid, which others wrote, and which share no code with the hub and the stand-in."""
    key = ec.generate_private_key(ec.SECP256R1())
    secret = b"0123456789abcdef"
    point = key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    subscription = chat.apns.subscribe()
    browser = Browser(chat, LINUS, subscription={**subscription, "keys": {"p256dh": encoded(point), "auth": encoded(secret)}})
    chat.apns.call("POST", "/settings", {"keeps_bodies": True})
    await browser.register()
    chat.say(sql, GRACE, "for Linus", conversation=B)
    # The stand-in's own keys do not fit: it is no violation of the hub's that it cannot read this one.
    await eventually(lambda: chat.apns.pushes and chat.apns.pushes[-1].get("token") == browser.device, what="the push")
    record = chat.apns.pushes[-1]
    text = http_ece.decrypt(base64.b64decode(record["body"]), private_key=key, auth_secret=secret, version="aes128gcm")
    assert json.loads(text)["body"].endswith("for Linus")
    assert Vapid02.verify(record["authorization"].replace(", k=", ",k="))
    chat.apns.call("POST", "/settings", {"keeps_bodies": False})
    await browser.unregister()


#: What a browser might say, and a piece of the one sentence that it is answered.
HOSTILE = {
    "http://push.example.com/1": "https", "ftp://push.example.com/123456": "https", "file:///etc/passwd": "https",
    "https://10.0.0.1/1234": "private", "https://172.16.3.4/1": "private", "https://192.168.1.1/1": "private",
    "https://169.254.169.254/latest/meta-data": "metadata", "https://100.64.0.1/1": "provider", "https://0.0.0.0/1": "this machine",
    "https://224.0.0.1/1": "multicast", "https://255.255.255.255/1": "reserved", "https://8.8.8.8/12": "no name",
    "https://2130706433/1": "no name", "https://0x7f000001/1": "no name", "https://0177.0.0.1/1": "no name", "https://127.1/123": "no name",
    "https://[::1]/12345": "this machine", "https://[::ffff:127.0.0.1]/1": "version 4", "https://[fe80::1]/1": "link-local",
    "https://[fc00::1]/1": "private", "https://[fd00:ec2::254]/latest": "private", "https://[64:ff9b::7f00:1]/1": "NAT64",
    "https://[2002:7f00:1::]/1": "6to4", "https://[ff02::1]/1": "multicast", "https://[2001:db8::1]/1": "documentation",
    "https://user:secret@push.example.com/1": "user", "https://push.example.com@127.0.0.1/1": "user",
    "https://push.example.com": "path", "https://push.example.com/1#2": "path", "https://push.example.com\\@127.0.0.1/1": "characters",
    "https://push.Example.com/1": "name", "https://push.example.com:99999/1": "443", "https://push.example.com:443/1": "443",
}


async def test_hostile_endpoints_are_refused(chat):
    assert len(HOSTILE) >= 30
    browser = Browser(chat, GRACE)
    before = len(chat.apns.records)
    for endpoint, words in HOSTILE.items():
        answer = await browser.ask_to_register(endpoint=endpoint)
        assert answer.status == 400 and words in answer.json["message"], (endpoint, answer.body)
    assert len(chat.apns.records) == before


async def test_names_that_lead_to_this_machine_are_not_reached(cluster):
    """They are looked up as the hub connects, and what they lead to is not the internet's. `localhost` is one that every machine has."""
    with WebPushHub(cluster, "webpush_names", networks="10.255.0.0/16") as chat, chat.sql() as sql:
        before = len(chat.apns.records)
        endpoint = f"https://localhost:{chat.apns.port}/push/123456"
        answer = await Browser(chat, GRACE).ask_to_register(endpoint=endpoint)
        assert answer.status == 200, answer.body
        chat.say(sql, ADA)
        await eventually(lambda: "its address is not on the internet" in chat.hub.log, what="a line that says why")
        assert [record for record in chat.apns.records[before:] if record["kind"] != "violation"] == []


async def test_keys_that_are_none_are_refused(chat):
    browser = Browser(chat, GRACE)
    good = browser.subscription["keys"]
    for keys in ({}, {**good, "auth": "AAAA"}, {**good, "p256dh": encoded(b"\4" + bytes(64))}, {**good, "p256dh": good["auth"]}, {**good, "auth": 1}):
        answer = await browser.ask_to_register(keys=keys)
        assert answer.status == 400 and "keys" in answer.json["message"], (keys, answer.body)


@pytest.mark.parametrize("status", [404, 410])
async def test_a_subscription_that_is_gone_is_dropped(chat, sql, status):
    browser = await Browser(chat, GRACE).register()
    chat.apns.gone(browser.subscription, status)
    chat.say(sql, ADA, "one")
    query = "select count(*) from roost.push_device where token = %s"
    await eventually(lambda: sql.execute(query, [browser.subscription["endpoint"]]).fetchone() == (0,), what="it is dropped")
    assert chat.apns.answers_to(browser.subscription) == [status]
    # It comes back, as its page registers it again.
    chat.apns.back(browser.subscription)
    await browser.register()
    chat.say(sql, ADA, "two")
    await told(browser, "two")


async def test_a_service_that_takes_less_gets_less(chat, sql):
    browser = await Browser(chat, GRACE).register()
    chat.apns.set(largest=700)
    chat.say(sql, ADA, "a" * 90)
    await eventually(lambda: len(browser.messages) == 1, what="the message")
    chat.apns.set(largest=420)
    chat.say(sql, ADA, "b" * 90)
    await eventually(lambda: len(browser.messages) == 2, what="the shorter one")
    assert browser.messages[1]["body"].endswith("b…")
    assert 413 in chat.apns.answers_to(browser.subscription)


async def test_a_service_that_is_busy_is_asked_later(chat, sql):
    browser = await Browser(chat, GRACE).register()
    chat.apns.script({"match": {"path": f"/push/{browser.device}"}, "times": 1, "do": {"answer": "", "status": 429, "retry_after": 2}})
    began = time.monotonic()
    for number in range(3):
        chat.say(sql, ADA, f"message {number}")
    await told(browser, "message 0", "message 1", "message 2")
    assert time.monotonic() - began >= 2
    assert chat.apns.answers_to(browser.subscription) == [429, 201, 201, 201]


async def test_a_service_whose_clock_is_wrong_is_answered_by_its_own(chat, sql):
    browser = await Browser(chat, GRACE).register()
    for hours in 30, -30:
        chat.apns.set(clock_offset=hours * 3600)
        chat.say(sql, ADA, f"{hours} hours")
        await eventually(lambda: len(browser.messages) == (1 if hours > 0 else 2), what="the message")
    assert chat.apns.answers_to(browser.subscription) == [401, 201, 401, 201]


async def test_a_subscription_of_another_key_is_not_asked_again(chat, sql):
    """Its page has to subscribe again, and others of the same service go on."""
    other = Browser(chat, GRACE, subscription=chat.apns.subscribe(key="another"))
    await other.register()
    browser = await Browser(chat, LINUS).register()
    chat.say(sql, ADA, "one")
    await eventually(lambda: chat.apns.answers_to(other.subscription)[-1:] == [403], what="the refusal")
    # One before it may have been about the clock.
    before = chat.apns.answers_to(other.subscription)
    chat.say(sql, ADA, "two")
    chat.say(sql, GRACE, "three", conversation=B)
    await told(browser, "three")
    assert chat.apns.answers_to(other.subscription) == before
    assert "GET /api/push/key" in chat.hub.log


async def test_a_service_that_hangs_holds_up_nobody_else(chat, sql):
    """One service accepts connections and says nothing."""
    server = await asyncio.start_server(lambda reader, writer: asyncio.Event().wait(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    endpoint = f"https://127.0.0.1:{port}/push/123456"
    stuck = await Browser(chat, GRACE, subscription={**chat.apns.subscribe(), "endpoint": endpoint}).register()
    browser = await Browser(chat, LINUS).register()
    chat.say(sql, ADA, "for Grace")
    for number in range(3):
        chat.say(sql, GRACE, f"for Linus {number}", conversation=B)
    await told(browser, "for Linus 0", "for Linus 1", "for Linus 2")
    assert chat.apns.answers_to(stuck.subscription) == []
    await stuck.unregister()
    server.close()
