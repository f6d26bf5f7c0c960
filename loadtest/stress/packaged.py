"""The unmodified client of PyPI, with its own reconnecting."""

import logging
import socket
import struct

from realtime import AsyncRealtimeClient
from realtime.types import RealtimeSubscribeStates

from journal import Journal

# What it says about lost connections is what this run is about.
for name in ("realtime", "websockets"):
    logging.getLogger(name).setLevel(logging.CRITICAL + 1)


class PackagedClient:
    version = 1

    def __init__(self, name, url, token):
        self.name = name
        self.journal = Journal()
        self.tamper = None
        # Options of its constructor; by default it gives up after five attempts.
        self.client = AsyncRealtimeClient(url, token, initial_backoff=0.5, max_retries=50)
        self._channels = {}  # by topic: channel, subscription, what to call when it is live

    def add(self, topic, subscription, on_live):
        channel = self.client.channel(topic.removeprefix("realtime:"))
        binding = subscription.binding
        channel.on_postgres_changes(
            binding["event"], callback=lambda payload: subscription.take(payload["data"]),
            schema="public", table="messages", filter=binding.get("filter"))
        self._channels[topic] = (channel, subscription, on_live)

    async def open(self):
        """It subscribes once; all later joins are its own doing."""
        for topic, (channel, subscription, on_live) in self._channels.items():
            def changed(state, error, topic=topic, subscription=subscription, on_live=on_live):
                if state == RealtimeSubscribeStates.SUBSCRIBED:
                    self.journal.note("joined", topic)
                    on_live(subscription)
                else:
                    self.journal.note("channel error", f"{topic}: {state.value} {error or ''}".strip())
            await channel.subscribe(changed)

    @property
    def subscriptions(self):
        return [subscription for _, subscription, _ in self._channels.values()]

    @property
    def is_settled(self):
        return self.client.is_connected and all(channel.is_joined for channel, _, _ in self._channels.values())

    # Faults

    @property
    def _transport(self):
        connection = self.client._ws_connection
        return connection.transport if connection else None

    def cut(self):
        transport = self._transport
        # The hub may have ended it a moment ago.
        if transport and transport.get_extra_info("socket").fileno() >= 0:
            self.journal.note("lost", "cut")
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            transport.abort()

    def pause(self):
        transport = self._transport
        if transport and not transport.is_closing():
            transport.pause_reading()
        return transport

    def resume(self, transport):
        if transport and not transport.is_closing():
            transport.resume_reading()

    async def end(self):
        await self.client.close()

