"""The body of messages:send, by the schema of Google's reference ("REST Resource: projects.messages"): nothing else is taken."""

import json
import re

from refusal import Refusal

MESSAGE = {"data": dict, "notification": dict, "android": dict, "token": str}
NOTIFICATION = {"title": str, "body": str, "image": str}
ANDROID = {"collapse_key": str, "priority": str, "ttl": str, "restricted_package_name": str, "data": dict, "notification": dict,
           "fcm_options": dict, "direct_boot_ok": bool}
ANDROID_NOTIFICATION = {
    **dict.fromkeys((
        "title", "body", "icon", "color", "sound", "tag", "click_action", "body_loc_key", "title_loc_key", "channel_id", "ticker",
        "event_time", "image"), str),
    **dict.fromkeys(("body_loc_args", "title_loc_args"), list), "notification_count": int, "notification_priority": str,
    **dict.fromkeys(("sticky", "local_only", "default_sound", "default_vibrate_timings", "default_light_settings"), bool)}
DURATION = re.compile(r"\d{1,7}(\.\d{1,9})?s")
#: Seconds that a message may wait, and bytes that it may show and carry.
LONGEST, MOST = 28 * 86400, 4096
TOKEN = re.compile(r"[\w:.-]{16,1024}", re.ASCII)


def wrong(field, what):
    return Refusal("INVALID_ARGUMENT", f"{field}: {what}", status=400)


def fields(value, known, place):
    for name, each in value.items():
        if name not in known:
            raise wrong(f"{place}.{name}", "there is no such field")
        if type(each) is not known[name]:
            raise wrong(f"{place}.{name}", f"{each!r} is no {known[name].__name__}")


def check(body):
    """The message, whose token may be no good all the same."""
    try:
        whole = json.loads(body)
    except ValueError:
        raise wrong("", "no JSON") from None
    if set(whole) != {"message"} or not isinstance(whole["message"], dict):
        raise wrong("", f"{sorted(whole)} instead of a message")
    message = whole["message"]
    fields(message, MESSAGE, "message")
    if "token" not in message:
        raise wrong("message", "no target")
    fields(message.get("notification", {}), NOTIFICATION, "message.notification")
    android = message.get("android", {})
    fields(android, ANDROID, "message.android")
    notification = android.get("notification", {})
    fields(notification, ANDROID_NOTIFICATION, "message.android.notification")
    for name in "title_loc_args", "body_loc_args":
        if not all(isinstance(each, str) for each in notification.get(name, [])):
            raise wrong(f"message.android.notification.{name}", "not all of it is text")
    if notification.get("notification_count", 0) < 0:
        raise wrong("message.android.notification.notification_count", "below 0")
    if android.get("priority", "NORMAL") not in ("NORMAL", "HIGH"):
        raise wrong("message.android.priority", android["priority"])
    if "ttl" in android and (not DURATION.fullmatch(android["ttl"]) or float(android["ttl"][:-1]) > LONGEST):
        raise wrong("message.android.ttl", android["ttl"])
    data = message.get("data", {})
    for name, value in data.items():
        if not isinstance(value, str):
            raise wrong(f"message.data[{name}].value", f"{value!r} is no text")
        if name in ("from", "message_type") or name.startswith(("google.", "gcm.")):
            raise wrong(f"message.data[{name}]", "a name that is FCM's own")
    shown = {"notification": message.get("notification"), "data": data, "android": notification}
    size = len(json.dumps({name: value for name, value in shown.items() if value}, ensure_ascii=False, separators=(",", ":")).encode())
    if size > MOST:
        raise wrong("message", f"{size} bytes")
    if not TOKEN.fullmatch(message["token"]):
        raise Refusal("INVALID_ARGUMENT token", f"token {message['token'][:20]!r}", status=400)
    return message
