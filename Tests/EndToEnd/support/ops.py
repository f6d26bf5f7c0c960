"""The operator's WebSocket, as a page uses it, and the page in a browser."""

import urllib.parse

from support.deadline import PATIENCE, patience
from support.websocket import WebSocket
from support.wsclient import Client


async def connect_operator(hub, headers=None, **query):
    """A raw client of the operator's port."""
    arguments = urllib.parse.urlencode({"vsn": "2.0.0", **query})
    return Client(await WebSocket.open(hub.ops_port, f"/ops/websocket?{arguments}", headers), 2)


async def watch(operator, topic):
    """Joins a topic and returns its first event's payload."""
    ref = operator.ref()
    operator.push(topic, "phx_join", {}, ref, ref)
    reply = await operator.next("phx_reply", topic, ref)
    assert reply.payload["status"] == "ok", reply
    return (await operator.next(topic=topic)).payload


async def state_where(operator, topic, holds, within=PATIENCE):
    """The first state of a topic of which something holds."""
    async with patience(within):
        while True:
            payload = (await operator.next("state", topic, within=within)).payload
            if holds(payload):
                return payload


def hook(name):
    return f"document.querySelector('[data-testid=\"{name}\"]')"


LIVE = f"{hook('line')}?.dataset.state === 'live'"
