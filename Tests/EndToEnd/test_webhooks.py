"""Events for a backend: signed, in order for each channel, none lost while the hub lives."""

import asyncio
import base64
import collections
import contextlib
import hmac
import http.server
import json
import os
import random
import re
import socket
import sys
import threading
import time

import pytest

from support.deadline import eventually
from support.hub import ROOT
from support.ports import free_port
from support.program import Program
from support.tokens import token
from support.wsclient import Client

#: W3C Trace Context, section 3.2.
TRACE = re.compile("00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]")
KEY = base64.b64encode(bytes(range(32))).decode()
#: Events of the long proof: ROOST_E2E_WEBHOOK_EVENTS=10000
EVENTS = int(os.environ.get("ROOST_E2E_WEBHOOK_EVENTS", "400"))


class Receiver:
    """A backend. `verdict` says what to answer a message with; what was answered 200 is stored, once for each id."""

    def __init__(self, verdict=lambda: 200):
        self.port, self.verdict = free_port(), verdict
        self.attempts, self.messages, self.violations, self.connections = 0, {}, [], []
        self.traces = {}  # of each message; it is the same each time the message is sent
        self.server = None

    def start(self):
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                super().setup()
                receiver.connections.append(self.connection)

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                status = receiver.take(self.headers, body)
                if status is None:
                    self.close_connection = True
                    return
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def take(self, headers, body):
        self.attempts += 1
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        right = "v1," + base64.b64encode(hmac.digest(base64.b64decode(KEY), signed, "sha256")).decode()
        if headers["webhook-signature"] != right or abs(time.time() - int(headers["webhook-timestamp"])) > 60:
            self.violations.append(dict(headers))
        trace = headers["traceparent"] or ""
        if not TRACE.fullmatch(trace) or self.traces.setdefault(headers["webhook-id"], trace) != trace:
            self.violations.append(dict(headers))
        status = self.verdict()
        if status == 200:
            self.messages.setdefault(headers["webhook-id"], json.loads(body))
        return status

    def stop(self):
        """As a process that dies: its connections end with it."""
        self.server.shutdown()
        self.server.server_close()
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.connections.clear()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/hooks"

    @property
    def events(self):
        """In the order in which they were taken."""
        return [event for message in list(self.messages.values()) for event in message["data"]["events"]]


@pytest.fixture
def receiver():
    receiver = Receiver().start()
    yield receiver
    receiver.stop()
    assert receiver.violations == []


@pytest.fixture
def webhook_hub(own_hub, receiver):
    own_hub.environment |= {
        "ROOST_WEBHOOKS_URL": receiver.url, "ROOST_WEBHOOKS_SECRET": f"whsec_{KEY}", "ROOST_PRESENCE_GRACE_ACTIVE_SECONDS": "1",
        "ROOST_PRESENCE_RESTART_SECONDS": "3", "ROOST_LIMITS_JOINS_PER_SECOND": "0"}
    return own_hub.start()


def kinds(events, **details):
    return [event["type"] for event in events if all(event.get(name) == value for name, value in details.items())]


async def test_what_happens_is_told(webhook_hub, receiver):
    ada = await Client.connect(webhook_hub.port, apikey=token(sub="ada"))
    other = await Client.connect(webhook_hub.port, apikey=token(sub="ada"))
    await ada.join("realtime:room", config={"presence": {"key": "ada", "enabled": True}})
    await other.join("realtime:room", config={"presence": {"key": "ada", "enabled": True}})
    for client in (ada, other):
        await client.ask("realtime:room", "presence", {"type": "presence", "event": "track", "payload": {"n": 1}})
    # The same member says something else: nobody came or went.
    await ada.ask("realtime:room", "presence", {"type": "presence", "event": "track", "payload": {"n": 2}})
    await ada.ask("realtime:room", "phx_leave", {})
    await ada.close()
    await eventually(lambda: "client.disconnected" in kinds(receiver.events), what=lambda: receiver.events)
    assert kinds(receiver.events, channel="room") == ["channel.occupied", "member.joined"]
    # Cut off: the channel is empty at once, the member is there until its window is over.
    other.socket.abort()
    await eventually(lambda: "member.left" in kinds(receiver.events), what=lambda: receiver.events)
    assert kinds(receiver.events, channel="room") == [
        "channel.occupied", "member.joined", "channel.vacated", "member.left"]
    joined = next(event for event in receiver.events if event["type"] == "member.joined")
    assert joined["user"] == joined["key"] == "ada" and joined["payload"] == {"n": 1} and joined["private"] is False
    clients = collections.Counter(event["client"] for event in receiver.events if event["type"].startswith("client."))
    assert sorted(clients.values()) == [2, 2]
    await other.close()


async def test_nothing_is_lost_and_all_of_it_in_order(webhook_hub, receiver):
    """A receiver that fails a third of the time and dies twice."""
    random.seed(7)
    receiver.verdict = lambda: 200 if random.random() > 1 / 3 else random.choice([500, 503, 429, None])
    client = await Client.connect(webhook_hub.port, apikey=token(sub="ada"))
    expected, done, deaths = [], 0, [EVENTS // 3, 2 * EVENTS // 3]
    number = 0
    while done < EVENTS:
        topics = [f"realtime:t{number % 40}_{n}" for n in range(20)]
        for topic in topics:
            await client.join(topic)
            await client.ask(topic, "phx_leave", {})
            expected += [("channel.occupied", topic[9:]), ("channel.vacated", topic[9:])]
        done, number = done + 40, number + 1
        if deaths and done >= deaths[0]:
            deaths.pop(0)
            receiver.stop()
            await asyncio.sleep(0.5)
            receiver.start()
    await eventually(lambda: len([e for e in receiver.events if "channel" in e]) >= len(expected), 120,
                     lambda: f"{len(expected)}, came {len(receiver.events)}", every=0.1)
    told = [(event["type"], event["channel"]) for event in receiver.events if "channel" in event]
    assert told == expected
    print(f"{len(told)} events in {len(receiver.messages)} messages, {receiver.attempts} attempts")
    # The receiver has a message before the hub has its answer.
    await eventually(lambda: webhook_hub.metric('roost_webhook_events_total{result="sent"}') >= len(told), what="all counted as sent")
    assert webhook_hub.metric('roost_webhook_events_total{result="missed"}') == 0
    await client.close()


async def test_a_killed_hub_leaves_no_ghosts(webhook_hub, receiver):
    """The receiver is down while members leave, and the hub is killed before it can say so."""
    def present():
        there = set()
        for event in receiver.events:
            match event["type"]:
                case "hub.started": there.clear()
                case "member.joined": there.add(event["key"])
                case "member.left": there.discard(event["key"])
        return there

    async def enter(key):
        client = await Client.connect(webhook_hub.port, apikey=token(sub=key))
        await client.join("realtime:room", config={"presence": {"key": key, "enabled": True}})
        await client.ask("realtime:room", "presence", {"type": "presence", "event": "track", "payload": {}})
        return client

    clients = [await enter(f"k{number}") for number in range(6)]
    await eventually(lambda: len(present()) == 6, what=present)
    assert kinds(receiver.events)[0] == "hub.started"
    receiver.verdict = lambda: 503
    for client in clients[:4]:
        await client.ask("realtime:room", "phx_leave", {})
        await client.close()
    await webhook_hub.settled()
    webhook_hub.kill()
    receiver.verdict = lambda: 200
    await asyncio.to_thread(webhook_hub.start)
    await eventually(lambda: kinds(receiver.events).count("hub.started") == 2, what=lambda: receiver.events)
    stays = await enter("k5")
    # The windows of those who do not come back are over.
    await eventually(lambda: present() == {"k5"}, 40, present)
    await stays.close()


async def test_what_is_too_much_is_said(own_hub, receiver):
    receiver.verdict = lambda: 503
    own_hub.environment |= {
        "ROOST_WEBHOOKS_URL": receiver.url, "ROOST_WEBHOOKS_SECRET": f"whsec_{KEY}", "ROOST_WEBHOOKS_QUEUE": "100"}
    own_hub.start()
    async with await Client.connect(own_hub.port, apikey=token(sub="ada")) as client:
        await eventually(lambda: receiver.attempts > 0, what="an attempt")
        for number in range(75):
            await client.join(f"realtime:r{number}")
            await client.ask(f"realtime:r{number}", "phx_leave", {})
        missed = own_hub.metric('roost_webhook_events_total{result="missed"}')
        assert missed >= 40
        receiver.verdict = lambda: 200
        await eventually(lambda: own_hub.metric("roost_webhook_events_waiting") == 0, 30, "an empty queue", every=0.1)
        await client.join("realtime:last")
        await eventually(lambda: "events.missed" in kinds(receiver.events), what=lambda: receiver.events[-3:])
    gap = next(event for event in receiver.events if event["type"] == "events.missed")
    assert gap["count"] == missed
    own_hub.wait_until_logged("more were waiting than webhooks.queue")


async def test_the_example_tells_what_it_is_told(own_hub):
    port, secret = free_port(), f"whsec_{KEY}"
    script = ROOT / "examples/webhooks/receiver.py"
    async with Program(sys.executable, script, port, ROOST_WEBHOOKS_SECRET=secret) as program:
        own_hub.environment |= {"ROOST_WEBHOOKS_URL": f"http://127.0.0.1:{port}/", "ROOST_WEBHOOKS_SECRET": secret}
        own_hub.start()
        async with await Client.connect(own_hub.port, apikey=token(sub="ada")) as client:
            await client.join("realtime:room", config={"presence": {"key": "ada", "enabled": True}})
            await client.ask("realtime:room", "presence", {"type": "presence", "event": "track", "payload": {}})
            await program.prints("ada connected")
            await program.prints("room is in use")
            await program.prints("ada is in room")


def test_a_url_takes_a_secret(own_hub):
    result = own_hub.run("serve", check=False, ROOST_WEBHOOKS_URL="http://127.0.0.1:9/")
    assert result.returncode != 0 and "webhooks.secret" in result.stderr
