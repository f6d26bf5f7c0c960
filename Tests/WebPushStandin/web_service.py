"""A push service for browsers (RFC 8030), but for its connections: which requests are right, and what becomes of them."""

import base64
import json
import re
import secrets
import time

from encryption import BrowserKeys, Undecryptable
from log import Log
from refusal import Refusal
from script import Script
from vapid import Senders, Unknown

TOPIC = re.compile(r"[A-Za-z0-9_-]{1,32}")
TTL = re.compile(r"0|[1-9][0-9]{0,9}")
URGENCIES = ("very-low", "low", "normal", "high")
#: Bytes of a body that a push service has to take (RFC 8030, section 7.2); this one takes no more.
LARGEST = 4096


class Subscription:
    def __init__(self, sender):
        #: The public key that the page subscribed for; None takes any.
        self.sender, self.keys, self.gone = sender, BrowserKeys(), None


class WebService:
    """`trusting`: bodies are not decrypted, which a load generator has no time for."""

    environment, bundles, first_streams, has_both = "web", set(), 100, False

    def __init__(self, streams=100, log=None, trusting=False):
        self.streams, self.first_streams, self.trusting = streams, streams, trusting
        self.largest, self.keeps_bodies = LARGEST, False
        self.delay, self.speed, self.clock_offset, self.clock_was_set = 0.0, 0.0, 0.0, False
        self.log, self.origin = log or Log(), None
        self.connections, self.opened = set(), 0
        self.reset()

    def reset(self):
        self.subscriptions, self.script, self.senders = {}, Script(), Senders()
        self.log.clear()

    @property
    def now(self):
        return time.time() + self.clock_offset

    def subscribe(self, sender=None):
        """A browser's subscription as its page is told it."""
        name = secrets.token_urlsafe(24)
        subscription = self.subscriptions[name] = Subscription(sender)
        return {"endpoint": f"{self.origin}/push/{name}", "expirationTime": None, "keys": subscription.keys.told}

    def tell(self, name, facts):
        """`gone`: 410 or 404 from now on."""
        self.subscriptions[name].gone = (facts or {}).get("gone")

    def examined(self, request):
        """The plain text of a good message. Raises Refusal for all that is not good; `request.facts` is for the log."""
        name = request.facts["token"] = request.path.removeprefix("/push/")
        subscription = self.subscriptions.get(name) if request.path.startswith("/push/") else None
        if request.method != "POST":
            raise Refusal("", f"{request.method} {request.shown_path}", status=405)
        if request.duplicates:
            raise Refusal("", f"twice: {', '.join(sorted(request.duplicates))}", status=400)
        if subscription is None:
            raise Refusal("", status=404)
        try:
            sender = self.senders.check(request.headers.get("authorization"), self.origin, self.now)
        except Unknown as error:
            # Once this clock was set, the hub may know the one before.
            raise Refusal(f"{error}", None if "exp" in str(error) and self.clock_was_set else f"{error}", status=401) from None
        if subscription.sender not in (None, sender):
            raise Refusal("the subscription is another key's", status=403)
        if subscription.gone:
            raise Refusal("", status=subscription.gone)
        if self.keeps_bodies:
            request.facts |= {"body": base64.b64encode(request.body).decode(), "authorization": request.headers["authorization"]}
        self._headers(request.headers)
        if len(request.body) > self.largest:
            raise Refusal("", None if self.largest < LARGEST else f"{len(request.body)} bytes", status=413)
        return b"" if self.trusting else self._text(subscription, request)

    def _headers(self, headers):
        rules = {"ttl": TTL.fullmatch, "urgency": lambda value: value in URGENCIES, "topic": TOPIC.fullmatch}
        for name, is_good in rules.items():
            value = headers.get(name)
            if (value is None and name == "ttl") or (value is not None and not is_good(value)):
                raise Refusal(f"{name} is {value!r}", f"{name} is {value!r}", status=400)
        if headers.get("content-encoding") != "aes128gcm":
            raise Refusal("content-encoding is not aes128gcm", "content-encoding is not aes128gcm", status=415)

    def _text(self, subscription, request):
        try:
            text = subscription.keys.decrypt(request.body)
        except Undecryptable as error:
            # A push service cannot know; the browser drops it without a word.
            if not self.keeps_bodies:
                request.facts["undecryptable"] = str(error)
            return b""
        try:
            request.facts["payload"] = json.loads(text)
        except ValueError:
            request.facts["payload"] = text.decode("latin-1")
        return text

    def summary(self):
        return {
            "violations": self.log.violation_count, "answers": dict(self.log.counts),
            "connections": {"opened": self.opened, "open": sorted(each.name for each in self.connections)},
            "subscriptions": len(self.subscriptions), "script": self.script.progress(),
            "cpu_seconds": round(time.process_time(), 3),
        }
