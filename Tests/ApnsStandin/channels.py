"""Broadcast channels of iOS 18 (Apple: "Sending channel management requests to APNs", "Sending broadcast push
notification requests to APNs")."""

import base64
import binascii
import json
import os
import re

from refusal import Refusal

MANAGEMENT = re.compile(r"/1/apps/([A-Za-z0-9.-]+)/(channels|all-channels)")
BROADCAST = re.compile(r"/4/broadcasts/apps/([A-Za-z0-9.-]+)")


class Channels:
    def __init__(self):
        self.policies = {}  # (bundle, channel) -> message-storage-policy
        self.timestamps = {}

    def manage(self, request):
        """Status, headers and body of the answer."""
        bundle, what = MANAGEMENT.fullmatch(request.path).groups()
        if what == "all-channels":
            if request.method != "GET":
                raise Refusal("MethodNotAllowed", f"{request.method} all-channels")
            return 200, [], {"channels": [channel for owner, channel in self.policies if owner == bundle]}
        if request.method == "POST":
            channel = self.create(bundle, request.body)
            return 201, [("apns-channel-id", channel)], None
        channel = _identifier(request)
        if (bundle, channel) not in self.policies:
            raise Refusal("ChannelNotRegistered")
        if request.method == "GET":
            return 200, [], {"message-storage-policy": self.policies[bundle, channel], "push-type": "LiveActivity"}
        if request.method == "DELETE":
            del self.policies[bundle, channel]
            return 204, [], None
        raise Refusal("MethodNotAllowed", f"{request.method} channels")

    def create(self, bundle, body):
        try:
            wanted = json.loads(body)
        except ValueError:
            wanted = None
        policy = wanted.get("message-storage-policy") if isinstance(wanted, dict) else None
        if policy not in (0, 1) or wanted.get("push-type") != "LiveActivity":
            raise Refusal("PayloadEmpty", "a channel needs message-storage-policy 0 or 1, and push-type LiveActivity")
        channel = base64.b64encode(os.urandom(16)).decode()
        self.policies[bundle, channel] = policy
        return channel

    def target(self, request):
        """(bundle, channel) of a broadcast."""
        if request.method != "POST":
            raise Refusal("MethodNotAllowed", f"{request.method} {request.path}")
        bundle, channel = BROADCAST.fullmatch(request.path)[1], _identifier(request)
        expiration = request.headers.get("apns-expiration")
        if expiration is None:
            raise Refusal("BadExpirationDate", "a broadcast without apns-expiration")
        if request.headers.get("apns-push-type") != "liveactivity":
            raise Refusal("InvalidPushType", "a broadcast that is not of push type liveactivity")
        topic = request.headers.get("apns-topic")
        if topic is not None and topic != bundle + ".push-type.liveactivity":
            raise Refusal("BadTopic", f"topic {topic} with a broadcast of {bundle}")
        policy = self.policies.get((bundle, channel))
        if policy is None:
            raise Refusal("ChannelNotRegistered")
        if policy == 0 and expiration != "0":
            raise Refusal("BadExpirationDate", "an expiration for a channel that stores nothing")
        return bundle, channel

    def take(self, bundle, channel, aps):
        """As `Devices.take`. A broadcast never starts an activity."""
        timestamp, last = aps.get("timestamp"), self.timestamps.get((bundle, channel), 0)
        if aps.get("event") == "start":
            return "a broadcast that starts an activity"
        if type(timestamp) is not int:
            return None
        self.timestamps[bundle, channel] = max(last, timestamp)
        return None if timestamp > last else f"timestamp {timestamp} after {last}"


def _identifier(request):
    channel = request.headers.get("apns-channel-id")
    if channel is None:
        raise Refusal("MissingChannelId", "no apns-channel-id")
    try:
        base64.b64decode(channel, validate=True)
    except (ValueError, binascii.Error):
        raise Refusal("BadChannelId", "apns-channel-id is not base64") from None
    return channel
