"""docs/asyncapi.yaml says which frames there are: a day on two sockets of each version, each frame held to its schema."""

import base64
import json
import re

import jsonschema_rs
import pytest
import yaml

from support.deadline import eventually
from support.hub import ROOT
from support.streams import Stream
from support.tokens import token
from support.websocket import BINARY
from support.wsclient import Client, kind3

DOCUMENT = yaml.safe_load((ROOT / "docs/asyncapi.yaml").read_text())
MESSAGES = DOCUMENT["components"]["messages"]


def names(version, action):
    """Of the messages of a version that the hub receives, or sends."""
    return [reference["$ref"].split("/")[-1] for reference in DOCUMENT["operations"][f"{action}{version}"]["messages"]]


#: AsyncAPI's schemas are those of draft 7.
VALIDATORS = {
    name: jsonschema_rs.Draft7Validator({**message["payload"], "components": DOCUMENT["components"]})
    for name, message in MESSAGES.items()}


def unpacked(data, kind, sizes):
    """A binary frame, as the page writes it."""
    assert data[0] == kind
    head, offset, texts = data[1:1 + sizes], 2 + sizes, []
    for size in head:
        texts.append(data[offset:offset + size])
        offset += size
    fields = ["join_ref", "ref", "topic", "event", "metadata"][5 - sizes:]
    values = [text.decode() for text in texts[:-1]] + [json.loads(texts[-1]) if texts[-1] else None]
    encoding, payload = data[1 + sizes], data[offset:]
    return {**dict(zip(fields, values)), "encoding": encoding,
            "payload": json.loads(payload) if encoding == 1 else base64.b64encode(payload).decode()}


class Recorder(Client):
    """A client whose frames are kept: (version, action, frame)."""
    frames = []

    def send_text(self, text):
        self.frames.append((self.version, "receive", json.loads(text)))
        super().send_text(text)

    def send_binary(self, data):
        self.frames.append((self.version, "receive", unpacked(data, 3, 5)))
        super().send_binary(data)

    def _decoded(self, opcode, data):
        self.frames.append((self.version, "send", unpacked(data, 4, 3) if opcode == BINARY else json.loads(data)))
        return super()._decoded(opcode, data)


def event_of(frame):
    return frame[3] if isinstance(frame, list) else frame["event"]


def message_of(version, action, frame):
    """The name of the message that a frame is: by its event, and by whether it is binary."""
    is_binary = isinstance(frame, dict) and "encoding" in frame
    event = "broadcast" if is_binary else event_of(frame)
    event = "INSERT" if event in ("UPDATE", "DELETE") else event
    found = [name for name in names(version, action)
             if MESSAGES[name]["name"] == event and (MESSAGES[name].get("contentType") is not None) == is_binary]
    assert len(found) == 1, (version, action, event, found)
    return found[0]


async def a_day(hub, http, sql, table, topic, version):
    """All that a client can say, and hear."""
    service = token("service_role", sub="ada")
    ada = await Recorder.connect(hub.port, version, apikey=service)
    grace = await Recorder.connect(hub.port, version, apikey=token(sub="grace"))
    try:
        everything = {"broadcast": {"self": True, "ack": True, "history": True}, "presence": {"key": "ada", "enabled": True},
                      "resume": {"cursor": None}, "app_state": "active"}
        joined, _ = await ada.watch(topic, {"event": "*", "schema": "public", "table": table}, config=everything)
        await grace.join(topic, config={"broadcast": {"history": True}, "presence": {"key": "grace", "enabled": True}})
        await grace.join(f"{topic}_count", config={"presence": {"occupancy": True}})
        await grace.next("broadcast", f"{topic}_count")

        # Rows, and those of a client that joins without a config.
        legacy = f"realtime:public:{table}"
        ref = ada.ref()
        ada.push(legacy, "phx_join", {}, ref, ref)
        await ada.next("phx_reply", legacy, ref)
        await ada.next("system", legacy)
        for statement in (f'insert into "{table}" values (1, %s)', f'update "{table}" set body = %s', f'delete from "{table}" where body = %s'):
            sql.execute(statement, [f"v{version}"])
            await ada.next("postgres_changes", topic)
            await ada.next(topic=legacy)

        # Messages, typing, who is there.
        await ada.ask(topic, "broadcast", {"type": "broadcast", "event": "wave", "payload": {"n": 1}}, joined)
        await grace.next("broadcast", topic)
        ada.push(topic, "broadcast", {"type": "broadcast", "event": "typing", "payload": {"typing": True, "user_id": "ada"}})
        await grace.next("broadcast", topic)
        if version == 2:
            for encoding, payload in ((1, b'{"n": 2}'), (0, b"\x00\x01")):
                ada.send_binary(kind3(joined, ada.ref(), topic, "wave", payload, encoding))
                await grace.next("broadcast", topic)
        await grace.ask(topic, "presence", {"type": "presence", "event": "track", "payload": {"name": "Grace"}})
        await ada.next("presence_diff", topic)
        await grace.ask(topic, "presence", {"type": "presence", "event": "untrack"})
        await ada.next("presence_diff", topic)
        await ada.ask(topic, "presence", {"type": "presence", "event": "track", "payload": {"name": "Ada"}})
        ada.push(topic, "app_state", {"type": "app_state", "state": "background"})
        ada.push(topic, "access_token", {"access_token": service})
        answer = await http.request(
            "POST", f"/api/broadcast/{topic.removeprefix('realtime:')}/events/note", {"by": "HTTP"},
            authorization=f"Bearer {service}", content_type="application/json")
        assert answer.status == 202
        await grace.next("broadcast", topic, where=lambda message: message.payload.get("event") == "note")
        # Back on another socket: who is there, who types, what was said.
        late = await Recorder.connect(hub.port, version, apikey=service)

        async def is_told_who_types():
            # Typing ends by itself after three seconds.
            ada.push(topic, "broadcast", {"type": "broadcast", "event": "typing", "payload": {"typing": True, "user_id": "ada"}})
            await ada.settled()
            await late.join(topic, config={"broadcast": {"history": {"limit": 5, "seconds": 30}}, "presence": {"enabled": True}})
            told = [message for message in await late.settled() if message.event == "broadcast" and not message.is_binary]
            return any(message.payload.get("event") == "typing_state" for message in told)
        await eventually(is_told_who_types)
        await late.close()

        # A stream, and its channel.
        stream = Stream(http)
        await stream.create()
        channel = f"realtime:stream:{stream.name}"
        stream_ref, _ = await ada.join(channel, config={"private": True, "broadcast": {"ack": True}, "stream": {"every_ms": 0}})
        await ada.ask(channel, "broadcast", {"type": "broadcast", "event": "append", "payload": {"delta": "Hello"}}, stream_ref)
        await ada.ask(channel, "broadcast", {"type": "broadcast", "event": "close", "payload": {"delta": "!"}}, stream_ref)
        await ada.settled()

        # What is refused, what ends, and how one leaves.
        assert (await ada.ask("realtime:", "phx_join", {"config": {}})).payload["status"] == "error"
        await ada.join(f"{topic}_nothing", [{"event": "*", "schema": "public", "table": "nowhere"}])
        assert (await ada.next("system", f"{topic}_nothing")).payload["status"] == "error"
        short, _ = await ada.join(f"{topic}_short")
        ada.push(f"{topic}_short", "access_token", {"access_token": token(lifetime=1)}, None, short)
        await ada.next("phx_error", f"{topic}_short")
        ada.push(topic, "phx_leave", {}, ada.ref(), joined)
        await ada.next("phx_close", topic)
    finally:
        await ada.close()
        await grace.close()


async def test_frames_are_those_of_the_page(hub, http, sql, table, topic):
    Recorder.frames = []
    for version in (1, 2):
        await a_day(hub, http, sql, table, f"{topic}_{version}", version)
    seen, wrong = set(), []
    for version, action, frame in Recorder.frames:
        name = message_of(version, action, frame)
        seen.add(name)
        wrong += [f"{name}: {error.message[:300]} in {json.dumps(frame)[:600]}" for error in VALIDATORS[name].iter_errors(frame)]
    print(f"{len(Recorder.frames)} frames of {len(seen)} messages")
    assert wrong == []
    assert set(MESSAGES) - seen == set(), "in the page, and nobody says it"


def test_events_of_the_code_are_in_the_page():
    """Whatever the hub sends or understands by name."""
    sent = set(re.findall(r'event: "(\w+)"', (ROOT / "Sources/Wire/ServerFrame.swift").read_text()))
    for path in (ROOT / "Sources/Hub").rglob("*.swift"):
        sent |= set(re.findall(r'(?:\.push|fanOut)\(\s*"(\w+)"', path.read_text()))
    receive = re.search(r"switch frame\.event \{.*?\n    \}\n", (ROOT / "Sources/Hub/Hub.swift").read_text(), re.DOTALL).group()
    understood = set(re.findall(r'case "(\w+)"', receive))
    told = {MESSAGES[name]["name"] for version in (1, 2) for name in names(version, "send")}
    heard = {MESSAGES[name]["name"] for version in (1, 2) for name in names(version, "receive")}
    assert sent - told == set() and len(sent) >= 7, sent
    assert understood - heard == set() and {"phx_join", "broadcast", "presence", "access_token"} <= understood


@pytest.mark.parametrize("version", [1, 2])
def test_messages_of_a_channel_are_those_of_its_operations(version):
    messages = set(DOCUMENT["channels"][f"version{version}"]["messages"])
    assert messages == set(names(version, "receive")) | set(names(version, "send"))
