"""What the payload must be (Apple: "Generating a remote notification", "Starting and updating Live Activities with
ActivityKit push notifications").

APNs itself looks at little of it: much of what is wrong here would be answered with 200, and then ignored by the phone
without a word. Such a push is answered with 200 here too, and is a violation.
"""

import json

from refusal import Refusal

ALERT_KEYS = {
    "alert", "badge", "sound", "thread-id", "category", "content-available", "mutable-content", "target-content-id",
    "interruption-level", "relevance-score", "filter-criteria",
}
ACTIVITY_KEYS = {
    "timestamp", "event", "content-state", "attributes-type", "attributes", "alert", "input-push-token",
    "input-push-channel", "stale-date", "dismissal-date", "relevance-score",
}
#: Apple, "UNNotificationInterruptionLevel".
LEVELS = {"passive", "active", "time-sensitive", "critical"}
#: Seconds that a `timestamp` may be away from this clock before it cannot be one in seconds since 1970.
OFF = 86400


def parsed(body):
    """A JSON object with an `aps` object."""
    def pairs(items):
        object = dict(items)
        if len(object) != len(items):
            raise ValueError("a key twice")
        return object

    def constant(name):
        raise ValueError(name)

    try:
        payload = json.loads(body.decode("utf-8"), object_pairs_hook=pairs, parse_constant=constant)
    except (ValueError, RecursionError) as error:
        raise Refusal("PayloadEmpty", f"the body is not JSON: {error}") from None
    if not isinstance(payload, dict) or not isinstance(payload.get("aps"), dict):
        raise Refusal("PayloadEmpty", "the payload has no aps object")
    return payload


def check(payload, kind, now):
    """What the phone would ignore without a word, as sentences."""
    aps = payload["aps"]
    if kind == "liveactivity":
        return _activity(aps, now)
    visible = [key for key in ("alert", "badge", "sound") if key in aps]
    if kind == "background":
        if visible or aps.get("content-available") != 1:
            raise Refusal("InvalidPushType", f"a background push with {visible}, content-available {aps.get('content-available')}")
    elif kind == "alert":
        if not visible:
            raise Refusal("InvalidPushType", "an alert push with no alert, badge or sound")
        return _alert(aps)
    return []


def _alert(aps):
    wrong = _unknown(aps, ALERT_KEYS)
    alert = aps.get("alert")
    if alert is not None:
        wrong += _words(alert, allows_text=True)
    badge = aps.get("badge", 0)
    if type(badge) is not int or badge < 0:
        wrong.append(f"badge {badge!r}")
    for key in "thread-id", "category":
        if not isinstance(aps.get(key, ""), str):
            wrong.append(f"{key} is not a string")
    if aps.get("interruption-level", "active") not in LEVELS:
        wrong.append(f"interruption-level {aps['interruption-level']!r}")
    score = aps.get("relevance-score", 0)
    if isinstance(score, bool) or not isinstance(score, (int, float)) or not 0 <= score <= 1:
        wrong.append(f"relevance-score {score!r}")
    for key in "mutable-content", "content-available":
        if aps.get(key, 1) != 1:
            wrong.append(f"{key} {aps[key]!r}")
    return wrong


def _words(alert, allows_text=False):
    if isinstance(alert, str):
        return [] if allows_text else ["the alert of a Live Activity is not an object"]
    if not isinstance(alert, dict):
        return ["alert is neither a string nor an object"]
    wrong = []
    if not any(key in alert for key in ("title", "body", "title-loc-key", "loc-key")):
        wrong.append("an alert that says nothing")
    for key in "title-loc-args", "loc-args":
        value = alert.get(key, [])
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            wrong.append(f"{key} are not strings")
    return wrong


def _unknown(aps, known):
    return [f"aps has the key {key!r}, which nobody knows" for key in aps if key not in known]


def _activity(aps, now):
    wrong = _unknown(aps, ACTIVITY_KEYS)
    event = aps.get("event")
    if event not in ("start", "update", "end"):
        return [*wrong, f"event {event!r}"]
    timestamp = aps.get("timestamp")
    if type(timestamp) is not int or abs(timestamp - now) > OFF:
        wrong.append(f"timestamp {timestamp!r} is not this hour's in whole seconds")
    if not isinstance(aps.get("content-state"), dict):
        wrong.append("no content-state")
    for key in "stale-date", "dismissal-date":
        if key in aps and (type(aps[key]) is not int or abs(aps[key] - now) > 31 * OFF):
            wrong.append(f"{key} {aps[key]!r} is not in whole seconds since 1970")
    score = aps.get("relevance-score", 0)
    if isinstance(score, bool) or not isinstance(score, (int, float)):
        wrong.append(f"relevance-score {score!r}")
    if event == "start":
        wrong += _start(aps)
    else:
        wrong += [f"{key} with event {event}"
                  for key in ("attributes", "attributes-type", "input-push-token", "input-push-channel") if key in aps]
    if event != "end" and "dismissal-date" in aps:
        wrong.append(f"dismissal-date with event {event}")
    if "alert" in aps:
        wrong += _words(aps["alert"])
    return wrong


def _start(aps):
    wrong = []
    if not isinstance(aps.get("attributes-type"), str) or not isinstance(aps.get("attributes"), dict):
        wrong.append("a start without attributes-type and attributes")
    if "alert" not in aps:
        wrong.append("a start without an alert")
    if "input-push-token" in aps and "input-push-channel" in aps:
        wrong.append("a start with both input-push-token and input-push-channel")
    if aps.get("input-push-token", 1) != 1:
        wrong.append(f"input-push-token {aps['input-push-token']!r}")
    return wrong
