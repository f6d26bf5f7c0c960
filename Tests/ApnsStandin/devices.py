"""What this stand-in knows about tokens: nothing, until it is told or a push comes."""

from refusal import Refusal


class Devices:
    def __init__(self):
        self.told = {}
        self.environments = {}
        self.timestamps = {}

    def tell(self, token, facts):
        """`facts`: environment, bundle, kind ("alert", "start", "activity"), `gone` (since when, in milliseconds since
        1970; 410) and `gone_reason`, `bad` (BadDeviceToken). None forgets the token."""
        if facts is None:
            self.told.pop(token, None)
        else:
            known = {"environment", "bundle", "kind", "gone", "gone_reason", "bad"}
            if not isinstance(facts, dict) or not set(facts) <= known:
                raise ValueError(f"of a token, {', '.join(sorted(known))} may be told")
            self.told[token] = facts
        self.environments.pop(token, None)

    def check(self, token, bundle, environment):
        facts = self.told.get(token, {})
        if self.environments.get(token, environment) != environment:
            raise Refusal("BadDeviceToken")
        if facts.get("bad") or facts.get("environment", environment) != environment:
            raise Refusal("BadDeviceToken")
        if facts.get("bundle", bundle) != bundle:
            raise Refusal("DeviceTokenNotForTopic")
        if "gone" in facts:
            raise Refusal(facts.get("gone_reason", "Unregistered"), timestamp=facts["gone"])

    def settle(self, token, environment):
        """A token that was taken by one of two services is the other's no more, unless it is told otherwise."""
        if "environment" not in self.told.get(token, {}):
            self.environments[token] = environment

    def kind_is_wrong(self, token, kind, aps):
        """A sentence, or None."""
        told = self.told.get(token, {}).get("kind")
        event = aps.get("event") if kind == "liveactivity" else None
        fits = {None: True, "alert": event is None, "start": event == "start", "activity": event in ("update", "end")}
        return None if fits[told] else f"{event or kind} to a token of kind {told}"

    def take(self, token, aps):
        """Notes the timestamp of a Live Activity push that was taken. A sentence if it does not come after the last."""
        timestamp = aps.get("timestamp")
        if type(timestamp) is not int or aps.get("event") == "start":
            return None
        last = self.timestamps.get(token, 0)
        self.timestamps[token] = max(last, timestamp)
        return None if timestamp > last else f"timestamp {timestamp} after {last}"
