"""What this stand-in does other than to answer well, as it is told over the control port.

A rule: {"match": {…}, "skip": 0, "every": 1, "times": null, "do": {…}}. Of the requests that match, it lets `skip` go by,
then fires on every `every`th, `times` times. The first rule that fires has the request.

`match`: `token`, `path` (a prefix), `push_type`, `id`, `channel`, `number` (of the request on its connection, from 1).
`do` is one of
- {"answer": "Reason", "status"?, "timestamp"?: ms, "retry_after"?: s}
- {"delay": seconds}: taken at once, answered later
- {"stall": "before" | "after"}: never answered; before or after the push was taken
- {"reset": HTTP/2 error code, "processed"?: false}: RST_STREAM instead of an answer
- {"goaway": "after" | "before" | "graceful" | "withheld", "reason"?}: see connection.py
- {"abort": "before" | "after"}: the connection is gone, without a word
"""

from refusal import STATUS

ACTIONS = {"answer", "delay", "stall", "reset", "goaway", "abort"}
MATCHES = {"token", "path", "push_type", "id", "channel", "number"}
MOMENTS = {"stall": ("before", "after"), "abort": ("before", "after"),
           "goaway": ("after", "before", "graceful", "withheld")}


class Rule:
    def __init__(self, told):
        unknown = set(told) - {"match", "skip", "every", "times", "do"}
        self.match, self.do = told.get("match", {}), told.get("do", {})
        actions = ACTIONS & set(self.do)
        if unknown or len(actions) != 1 or set(self.match) - MATCHES:
            raise ValueError(f"not a rule: {told}")
        [self.action] = actions
        if self.action in MOMENTS and self.do[self.action] not in MOMENTS[self.action]:
            raise ValueError(f"{self.action} is one of {MOMENTS[self.action]}")
        if self.action == "answer" and self.do["answer"] not in STATUS and "status" not in self.do:
            raise ValueError(f"the status of {self.do['answer']} is not known; say it")
        self.skip, self.every, self.times = told.get("skip", 0), told.get("every", 1), told.get("times")
        self.seen = self.fired = 0

    def fires(self, request):
        if self.times is not None and self.fired >= self.times:
            return False
        for key, wanted in self.match.items():
            if not _fits(key, wanted, request):
                return False
        self.seen += 1
        if self.seen <= self.skip or (self.seen - self.skip - 1) % self.every:
            return False
        self.fired += 1
        return True


def _fits(key, wanted, request):
    if key == "token":
        return wanted in (request.path.removeprefix("/3/device/"), request.facts.get("token"))
    if key == "path":
        return request.path.startswith(wanted)
    if key == "number":
        return request.number == wanted
    header = {"push_type": "apns-push-type", "id": "apns-id", "channel": "apns-channel-id"}[key]
    return request.headers.get(header) == wanted


class Script:
    def __init__(self):
        self.rules = []

    def add(self, told):
        self.rules += [Rule(each) for each in told]

    def pick(self, request):
        """The rule that has this request, or None."""
        for rule in self.rules:
            if rule.fires(request):
                return rule
        return None

    def progress(self):
        return [{"do": rule.do, "seen": rule.seen, "fired": rule.fired} for rule in self.rules]
