"""What the headers of a request must be (Apple: "Sending notification requests to APNs")."""

import re

from refusal import Refusal

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
HEX = re.compile(r"(?:[0-9a-f]{2})+")
INTEGER = re.compile(r"0|[1-9][0-9]{0,18}")

#: What a push type puts behind the bundle id.
SUFFIX = {
    "alert": "", "background": "", "location": ".location-query", "voip": ".voip", "complication": ".complication",
    "fileprovider": ".pushkit.fileprovider", "mdm": "", "liveactivity": ".push-type.liveactivity",
    "pushtotalk": ".voip-ptt", "widgets": ".push-type.widgets",
}
PRIORITIES = {"background": ("1", "5"), "liveactivity": ("5", "10")}
#: Bytes.
COLLAPSE_ID, PAYLOAD, LARGE_PAYLOAD = 64, 4096, 5120
#: Seconds. APNs stores for 30 days; a time that is far beyond was meant as something else, such as milliseconds.
FARTHEST = 366 * 86400


def device(request):
    """The token in the path."""
    if request.method != "POST":
        raise Refusal("MethodNotAllowed", f"{request.method} {request.shown_path}")
    token = request.path.removeprefix("/3/device/")
    if not token:
        raise Refusal("MissingDeviceToken", "no token in the path")
    if not HEX.fullmatch(token):
        raise Refusal("BadDeviceToken", "the token is not lower-case hexadecimal")
    return token


def duplicates(request):
    if request.duplicates:
        raise Refusal("DuplicateHeaders", f"twice: {', '.join(sorted(request.duplicates))}")
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Refusal("PayloadEmpty", "a compressed body")


def identifier(request):
    value = request.headers.get("apns-id")
    if value is not None and not UUID.fullmatch(value):
        raise Refusal("BadMessageId", f"apns-id {value[:60]!r}")


def push_type(request):
    value = request.headers.get("apns-push-type")
    if value not in SUFFIX:
        raise Refusal("InvalidPushType", f"apns-push-type {value!r}")
    return value


def bundle(request, kind, bundles):
    """The bundle id in the topic."""
    topic = request.headers.get("apns-topic")
    if not topic:
        raise Refusal("MissingTopic", "no apns-topic")
    suffix = SUFFIX[kind]
    name = topic[:len(topic) - len(suffix)] if suffix and topic.endswith(suffix) else topic
    others = [other for other in SUFFIX.values() if other and name.endswith(other)]
    if (suffix and name == topic) or others:
        raise Refusal("TopicDisallowed", f"topic {topic} with push type {kind}")
    if bundles and name not in bundles:
        raise Refusal("TopicDisallowed")
    return name


def priority(request, kind):
    value = request.headers.get("apns-priority")
    if value is None:
        # APNs takes it for 10.
        value = "10"
    if value not in PRIORITIES.get(kind, ("1", "5", "10")):
        raise Refusal("BadPriority", f"priority {value} with push type {kind}")


def expiration(request, now):
    value = request.headers.get("apns-expiration")
    if value is not None and (not INTEGER.fullmatch(value) or int(value) > now + FARTHEST):
        raise Refusal("BadExpirationDate", f"apns-expiration {value[:30]!r}")


def collapse_id(request):
    value = request.headers.get("apns-collapse-id")
    if value is not None and not 0 < len(value.encode("latin-1")) <= COLLAPSE_ID:
        raise Refusal("BadCollapseId", f"apns-collapse-id of {len(value)} bytes")


def size(request, kind):
    limit = LARGE_PAYLOAD if kind in ("voip", "broadcast") else PAYLOAD
    if not request.body:
        raise Refusal("PayloadEmpty", "no body")
    if len(request.body) > limit:
        raise Refusal("PayloadTooLarge", f"{len(request.body)} bytes, {limit} at most")
