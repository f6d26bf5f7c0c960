"""Frames of both versions as one form, the way that a client's library reads and writes them."""

import json
from dataclasses import dataclass
from typing import Any

from support.websocket import BINARY
from support.wsclient import kind3


@dataclass
class Frame:
    """What came: in version 1, and in frames of kind 4, there is no `join_ref`."""
    join_ref: Any
    ref: Any
    topic: str
    event: str
    payload: Any


class Undecodable(Exception):
    """A frame that the library has no form for."""


def read_binary(data):
    """A frame of kind 4; the clients know no other (wire-protocol A2)."""
    if data[0] != 4:
        raise Undecodable(f"kind {data[0]}")
    topic_size, event_size, metadata_size, encoding = data[1:5]
    event_start = 5 + topic_size
    topic, event = data[5:event_start].decode(), data[event_start:event_start + event_size].decode()
    payload = data[event_start + event_size + metadata_size:]
    return Frame(None, None, topic, "broadcast", {"event": event, "payload": json.loads(payload) if encoding == 1 else payload})


def read_text(version, data):
    frame = json.loads(data)
    if version == 1:
        return Frame(None, frame["ref"], frame["topic"], frame["event"], frame["payload"])
    return Frame(*frame)


def read(version, opcode, data):
    if opcode == BINARY:
        if version == 1:
            raise Undecodable("a binary frame in version 1")
        return read_binary(data)
    return read_text(version, data)


def write_broadcast(join_ref, ref, topic, event, payload):
    """A frame of kind 3 with JSON."""
    return kind3(join_ref or "", ref or "", topic, event, json.dumps(payload, separators=(",", ":")).encode())
