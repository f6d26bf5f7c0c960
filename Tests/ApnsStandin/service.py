"""APNs, but for its connections: which requests are right, and what becomes of them."""

import time

import payload_rules
import request_rules
from channels import BROADCAST, MANAGEMENT, Channels
from devices import Devices
from log import Log
from provider_tokens import ProviderTokens
from refusal import Refusal
from script import Script


class Service:
    def __init__(self, keys, environment="sandbox", bundles=(), streams=1000, log=None):
        self.environment, self.bundles, self.streams = environment, set(bundles), streams
        self.first_streams = 1
        self.has_both = False
        self.delay, self.speed, self.clock_offset = 0.0, 0.0, 0.0
        self.tokens, self.log = ProviderTokens(keys), log or Log()
        self.connections = set()
        self.opened = 0
        self.reset()

    def reset(self):
        """Forgets what it was told and what it saw; open connections stay, and provider tokens stay known."""
        self.devices, self.channels, self.script = Devices(), Channels(), Script()
        self.log.clear()

    @property
    def now(self):
        """Seconds since 1970, by the clock of this service."""
        return time.time() + self.clock_offset

    def authenticated(self, request, latest, environment):
        return self.tokens.check(request.headers.get("authorization"), latest, self.now, environment)

    def managed(self, request):
        """The answer to a request about channels themselves; None for all others."""
        return self.channels.manage(request) if MANAGEMENT.fullmatch(request.path) else None

    def examined(self, request):
        """A function that takes a good push; raises Refusal for all that is not good. `request.facts` is for the log."""
        request_rules.duplicates(request)
        if BROADCAST.fullmatch(request.path):
            return self._broadcast(request)
        if not request.path.startswith("/3/device"):
            raise Refusal("BadPath", f"path {request.shown_path}")
        token = request.facts["token"] = request_rules.device(request)
        request_rules.identifier(request)
        kind = request_rules.push_type(request)
        bundle = request_rules.bundle(request, kind, self.bundles)
        self._common(request, kind)
        request_rules.size(request, kind)
        payload = request.facts["payload"] = payload_rules.parsed(request.body)
        wrong = payload_rules.check(payload, kind, self.now)
        environment = request.connection.environment
        self.devices.check(token, bundle, environment)
        wrong += filter(None, [self.devices.kind_is_wrong(token, kind, payload["aps"])])

        def take():
            if self.has_both:
                self.devices.settle(token, environment)
            late = self.devices.take(token, payload["aps"]) if kind == "liveactivity" else None
            return [*wrong, late] if late else wrong
        return take

    def _broadcast(self, request):
        bundle, channel = self.channels.target(request)
        request.facts["channel"] = channel
        self._common(request, "liveactivity")
        request_rules.size(request, "broadcast")
        payload = request.facts["payload"] = payload_rules.parsed(request.body)
        wrong = payload_rules.check(payload, "liveactivity", self.now)

        def take():
            late = self.channels.take(bundle, channel, payload["aps"])
            return [*wrong, late] if late else wrong
        return take

    def _common(self, request, kind):
        request_rules.priority(request, kind)
        request_rules.expiration(request, self.now)
        request_rules.collapse_id(request)

    def summary(self):
        return {
            "violations": self.log.violation_count, "answers": dict(self.log.counts),
            "connections": {"opened": self.opened, "open": sorted(connection.name for connection in self.connections)},
            "provider_tokens": [
                {"team": seen.team, "key_id": seen.key_id, "issued_at": seen.issued_at, "first_seen": seen.first_seen}
                for seen in self.tokens.seen.values()],
            "script": self.script.progress(), "cpu_seconds": round(time.process_time(), 3),
        }
