"""FCM, but for its connections: which requests are right, and what becomes of them."""

import secrets
import time

import assertions
import message_rules
import refusal
from refusal import Refusal
from script import Script

#: The codes of FcmError, as a script may answer with them, and the HTTP status of each ("FCM Error Codes").
refusal.STATUS.update({
    "UNSPECIFIED_ERROR": 500, "INVALID_ARGUMENT": 400, "UNREGISTERED": 404, "SENDER_ID_MISMATCH": 403, "QUOTA_EXCEEDED": 429,
    "UNAVAILABLE": 503, "INTERNAL": 500, "THIRD_PARTY_AUTH_ERROR": 401, "UNAUTHENTICATED": 401, "PERMISSION_DENIED": 403,
    "INVALID_ARGUMENT token": 400, "NOT_FOUND": 404,
})
#: Seconds that an access token holds.
LIFE = 3599


class FcmService:
    def __init__(self, project, streams, log):
        self.project, self.streams, self.first_streams, self.log = project, streams, streams, log
        self.environment = "fcm"
        self.delay, self.speed, self.clock_offset, self.token_life = 0.0, 0.0, 0.0, LIFE
        self.account, self.connections, self.opened = None, set(), 0
        self.given = {}
        self.reset()

    def reset(self):
        """Forgets what it was told and what it saw; access tokens stay good."""
        self.devices, self.script, self.token_faults, self.granted = {}, Script(), [], 0
        self.log.clear()

    @property
    def now(self):
        """Seconds since 1970, by Google's clock."""
        return time.time() + self.clock_offset

    def token_for(self, request):
        """The answer to a request for an access token; raises assertions.NoToken."""
        if self.token_faults:
            return self.token_faults.pop(0), {"error": "internal_failure"}
        assertions.check(request, self.account, self.now)
        # Google's have more than a thousand bytes.
        token = "ya29." + secrets.token_urlsafe(768)
        self.given[token] = time.monotonic() + self.token_life
        self.granted += 1
        return 200, {"access_token": token, "expires_in": int(self.token_life), "token_type": "Bearer"}

    def revoke(self):
        self.given.clear()

    def authenticated(self, request):
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme != "Bearer" or not token:
            raise Refusal("UNAUTHENTICATED", "no access token")
        if token not in self.given:
            raise Refusal("UNAUTHENTICATED")
        if time.monotonic() > self.given[token]:
            raise Refusal("UNAUTHENTICATED", "an access token past its end")

    def examined(self, request):
        """Raises Refusal for all that is not good. `request.facts` is for the log."""
        if request.method != "POST" or request.path != f"/v1/projects/{self.project}/messages:send":
            raise Refusal("NOT_FOUND", f"{request.method} {request.shown_path}")
        if request.duplicates or request.headers.get("content-type") != "application/json":
            raise Refusal("INVALID_ARGUMENT", f"headers {sorted(request.headers)}")
        message = request.facts["payload"] = message_rules.check(request.body)
        token = request.facts["token"] = message["token"]
        told = self.devices.get(token, {})
        if told.get("gone"):
            raise Refusal("UNREGISTERED")
        if told.get("sender"):
            raise Refusal("SENDER_ID_MISMATCH")
        return list

    def summary(self):
        return {
            "violations": self.log.violation_count, "answers": dict(self.log.counts), "granted": self.granted,
            "connections": {"opened": self.opened, "open": sorted(connection.name for connection in self.connections)},
            "script": self.script.progress(), "cpu_seconds": round(time.process_time(), 3),
        }
