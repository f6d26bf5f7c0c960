"""Tests/ApnsStandin itself: a client that is right is served, and each thing that a client may do wrong is refused."""

import base64
import contextlib
import json
import subprocess
import time

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from support.apns import BUNDLE, KEY_ID, TEAM, APNs, Account, new_token
from support.apns_client import APNsClient, provider_token
from support.deadline import until

ALERT = {"aps": {"alert": {"title": "Ada", "body": "Hello"}, "badge": 2, "mutable-content": 1}, "conversationId": "c"}
ACTIVITY = {"apns_push_type": "liveactivity", "apns_topic": f"{BUNDLE}.push-type.liveactivity", "apns_priority": "5"}
BACKGROUND = {"apns_push_type": "background", "apns_priority": "5"}
CODE = {"REFUSED_STREAM": 7}


def update(**changes):
    """A Live Activity's update; None leaves a key out."""
    aps = {"event": "update", "timestamp": int(time.time()), "content-state": {"unread": 1}, **{
        name.replace("_", "-"): value for name, value in changes.items()}}
    return {"aps": {name: value for name, value in aps.items() if value is not None}}


def start(**changes):
    return update(**{"event": "start", "attributes_type": "Chat", "attributes": {"id": "c"}, "alert": {"title": "Ada"}, **changes})


def sized(count):
    """An alert of so many bytes."""
    empty = json.dumps({**ALERT, "x": ""}).encode()
    return empty[:-2] + b"y" * (count - len(empty)) + empty[-2:]


@pytest.fixture(scope="module")
def apns():
    with APNs() as apns:
        yield apns


@pytest.fixture
def client(apns):
    with APNsClient(apns) as client:
        yield client


def new_violations(apns, before):
    return apns.call("GET", "/violations")[before:]


def counted(apns):
    return apns.summary["violations"]


def test_what_is_right_is_served(apns, client):
    token, before = new_token(), counted(apns)
    now = int(time.time())
    good = [
        (ALERT, {}), (ALERT, {"apns_collapse_id": "x" * 64, "apns_expiration": str(now + 86400), "apns_priority": "5"}),
        ({"aps": {"content-available": 1}}, BACKGROUND),
        (sized(4096), {}), ({"aps": {"alert": {"loc-key": "K", "loc-args": ["a"]}}}, {}),
        (start(input_push_token=1), ACTIVITY), (update(timestamp=now - 3), ACTIVITY),
        (update(timestamp=now - 2, alert={"title": "t", "body": "b", "sound": "s"}), {**ACTIVITY, "apns_priority": "10"}),
        (update(timestamp=now - 1, event="end", dismissal_date=now - 5, stale_date=now + 900, relevance_score=0.5), ACTIVITY),
    ]
    for payload, headers in good:
        answer = client.push(token, payload, apns_id=f"00000000-0000-4000-8000-{now:012x}", **headers)
        assert (answer.status, answer.body) == (200, b""), (payload, answer.body)
        assert answer.headers["apns-id"] == f"00000000-0000-4000-8000-{now:012x}"
    assert [push["status"] for push in apns.taken_by(token)] == [200] * len(good)
    assert new_violations(apns, before) == []


WRONG_REQUESTS = {
    "no authorization": (ALERT, {"authorization": None}, 403, "MissingProviderToken"),
    "not bearer": (ALERT, {"authorization": "basic abc"}, 403, "InvalidProviderToken"),
    "no push type": (ALERT, {"apns_push_type": None}, 400, "InvalidPushType"),
    "strange push type": (ALERT, {"apns_push_type": "news"}, 400, "InvalidPushType"),
    "no topic": (ALERT, {"apns_topic": None}, 400, "MissingTopic"),
    "topic of an activity for an alert": (ALERT, {"apns_topic": ACTIVITY["apns_topic"]}, 400, "TopicDisallowed"),
    "topic of an alert for an activity": (update(), {**ACTIVITY, "apns_topic": BUNDLE}, 400, "TopicDisallowed"),
    "priority": (ALERT, {"apns_priority": "7"}, 400, "BadPriority"),
    "background with 10": ({"aps": {"content-available": 1}}, {**BACKGROUND, "apns_priority": "10"}, 400, "BadPriority"),
    "activity with 1": (update(), {**ACTIVITY, "apns_priority": "1"}, 400, "BadPriority"),
    "upper-case id": (ALERT, {"apns_id": "8985C721-D767-489D-AA86-6EB808FF4B27"}, 400, "BadMessageId"),
    "short id": (ALERT, {"apns_id": "8985c721"}, 400, "BadMessageId"),
    "collapse id": (ALERT, {"apns_collapse_id": "x" * 65}, 400, "BadCollapseId"),
    "expiration in words": (ALERT, {"apns_expiration": "soon"}, 400, "BadExpirationDate"),
    "expiration in ms": (ALERT, {"apns_expiration": str(int(time.time() * 1000))}, 400, "BadExpirationDate"),
    "header twice": (ALERT, {"extra": [("apns-priority", "5")]}, 400, "DuplicateHeaders"),
    "compressed": (ALERT, {"content_encoding": "gzip"}, 400, "PayloadEmpty"),
    "empty": (b"", {}, 400, "PayloadEmpty"),
    "not JSON": (b'{"aps":', {}, 400, "PayloadEmpty"),
    "key twice": (b'{"aps":{"badge":1,"badge":2}}', {}, 400, "PayloadEmpty"),
    "NaN": (b'{"aps":{"badge":NaN}}', {}, 400, "PayloadEmpty"),
    "no aps": ({"alert": "x"}, {}, 400, "PayloadEmpty"),
    "4097 bytes": (sized(4097), {}, 413, "PayloadTooLarge"),
    "GET": (b"", {"method": "GET"}, 405, "MethodNotAllowed"),
    "path": (ALERT, {"path": "/2/device/abcd"}, 404, "BadPath"),
    "no token": (ALERT, {"path": "/3/device/"}, 400, "MissingDeviceToken"),
    "token not hexadecimal": (ALERT, {"path": "/3/device/xyz"}, 400, "BadDeviceToken"),
    "alert that shows nothing": ({"aps": {"content-available": 1}}, {}, 400, "InvalidPushType"),
    "background with an alert": ({"aps": {"content-available": 1, "alert": "x"}}, BACKGROUND, 400, "InvalidPushType"),
    "background without content-available": ({"aps": {}}, BACKGROUND, 400, "InvalidPushType"),
}


@pytest.mark.parametrize("case", WRONG_REQUESTS)
def test_a_wrong_request_is_refused_and_a_violation(apns, client, case):
    payload, options, status, reason = WRONG_REQUESTS[case]
    before, token = counted(apns), new_token()
    answer = client.push(token, payload, **options)
    assert (answer.status, answer.json) == (status, {"reason": reason})
    assert "date" in answer.headers
    [violation] = new_violations(apns, before)
    assert violation["what"].startswith(reason)
    assert apns.taken_by(token) == []


NOW = int(time.time())
IGNORED_BY_PHONES = {
    "no event": update(event=None), "strange event": update(event="stop"), "no timestamp": update(timestamp=None),
    "timestamp in ms": update(timestamp=NOW * 1000), "timestamp not whole": update(timestamp=NOW + 0.5),
    "timestamp of 2001": update(timestamp=NOW - 978307200), "no state": update(content_state=None),
    "state is text": update(content_state="{}"), "stale date in ms": update(stale_date=NOW * 1000),
    "dismissal of an update": update(dismissal_date=NOW), "attributes in an update": update(attributes={}),
    "strange key": update(content_State={}), "alert is text": update(alert="x"),
    "start without alert": start(alert=None), "start without attributes": start(attributes=None),
    "start without type": start(attributes_type=None), "start with both": start(input_push_token=1, input_push_channel="YQ=="),
    "input token": start(input_push_token=2), "relevance in words": update(relevance_score="high"),
}


@pytest.mark.parametrize("case", IGNORED_BY_PHONES)
def test_what_a_phone_ignores_is_taken_and_a_violation(apns, client, case):
    before = counted(apns)
    assert client.push(new_token(), IGNORED_BY_PHONES[case], **ACTIVITY).status == 200
    assert len(new_violations(apns, before)) == 1


def test_alerts_that_say_nothing_are_violations(apns, client):
    for aps in (
        {"alert": {}}, {"alert": 3}, {"badge": "3"}, {"alert": "x", "mutable-content": "yes"}, {"alert": "x", "threadId": "y"},
        {"alert": "x", "thread-id": 7}, {"alert": {"loc-key": "k", "loc-args": [1]}},
    ):
        before = counted(apns)
        assert client.push(new_token(), {"aps": aps}).status == 200
        assert len(new_violations(apns, before)) == 1, aps


def test_timestamps_of_a_token_increase(apns, client):
    token, now = new_token(), int(time.time())
    for timestamp, is_wrong in (now, False), (now + 1, False), (now + 1, True), (now, True), (now + 2, False):
        before = counted(apns)
        assert client.push(token, update(timestamp=timestamp), **ACTIVITY).status == 200
        assert bool(new_violations(apns, before)) == is_wrong, timestamp - now
    # What was refused was not shown, and may come again.
    apns.script({"match": {"token": token}, "times": 1, "do": {"answer": "ServiceUnavailable"}})
    before = counted(apns)
    assert [client.push(token, update(timestamp=now + 3), **ACTIVITY).status for _ in range(2)] == [503, 200]
    assert new_violations(apns, before) == []


def encoded(value):
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def wrong_tokens(key):
    other = ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    now = int(time.time())
    good = provider_token(key)
    head, claims, _ = good.split(".")
    return {
        "not a token": ("abc", "InvalidProviderToken", True),
        "not base64": (f"{head}.{claims}=.{encoded(b'x' * 64)}", "InvalidProviderToken", True),
        "not objects": (f"{encoded([1])}.{claims}.{encoded(b'x' * 64)}", "InvalidProviderToken", True),
        "HS256": (jwt.encode({"iss": TEAM, "iat": now}, "s" * 32, "HS256", headers={"kid": KEY_ID}), "InvalidProviderToken", True),
        "no kid": (jwt.encode({"iss": TEAM, "iat": now}, key, "ES256"), "InvalidProviderToken", True),
        "iat is a float": (provider_token(key, iat=now + 0.25), "InvalidProviderToken", True),
        "iat is text": (f"{head}.{encoded({'iss': TEAM, 'iat': str(now)})}.{encoded(b'x' * 64)}", "InvalidProviderToken", True),
        "another key's": (provider_token(other), "InvalidProviderToken", True),
        "DER": (f"{head}.{claims}.{encoded(b'0' * 70)}", "InvalidProviderToken", True),
        "unknown team": (provider_token(key, team="UNKNOWNTEA"), "InvalidProviderToken", False),
        "an hour old": (provider_token(key, iat=now - 3601), "ExpiredProviderToken", False),
        "of tomorrow": (provider_token(key, iat=now + 86400), "InvalidProviderToken", False),
    }


def test_provider_tokens(apns, client):
    for case, (token, reason, is_violation) in wrong_tokens(client.key).items():
        before = counted(apns)
        answer = client.push(new_token(), ALERT, authorization=f"bearer {token}")
        assert (answer.status, answer.reason) == (403, reason), case
        assert bool(new_violations(apns, before)) == is_violation, case
    assert client.push(new_token(), ALERT).status == 200
    before = counted(apns)
    soon = provider_token(client.key, iat=int(time.time()) - 5)
    answer = client.push(new_token(), ALERT, authorization=f"bearer {soon}")
    assert (answer.status, answer.reason) == (429, "TooManyProviderTokenUpdates")
    assert len(new_violations(apns, before)) == 1
    assert client.push(new_token(), ALERT).status == 200, "the old one is still good"


def test_a_second_key_needs_a_second_connection(tmp_path):
    pem = ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (tmp_path / "second.p8").write_bytes(pem)
    keys = [f"--key={team}:SECONDKEY1:{tmp_path}/second.p8:production" for team in (TEAM, "OTHERTEAM1")]
    with APNs(*keys) as apns, APNsClient(apns) as client:
        second = provider_token(pem, key_id="SECONDKEY1")
        assert client.push(new_token(), ALERT).status == 200
        assert client.push(new_token(), ALERT, authorization=f"bearer {second}").reason == "UnrelatedKeyIdInToken"
        others = provider_token(pem, team="OTHERTEAM1", key_id="SECONDKEY1")
        assert client.push(new_token(), ALERT, authorization=f"bearer {others}").reason == "InvalidProviderToken"
        assert len(apns.violations) == 2
        with APNsClient(apns, second) as other:
            assert other.push(new_token(), ALERT).reason == "BadEnvironmentKeyInToken"
        apns.set(environment="production")
        with APNsClient(apns, second) as other:
            assert other.push(new_token(), ALERT).status == 200


def test_what_is_told_of_a_token(apns, client):
    before = counted(apns)
    gone, bad, elsewhere, other, starts = (new_token() for _ in range(5))
    since = int(time.time() * 1000) - 5
    apns.tell(gone, gone=since)
    apns.tell(bad, bad=True)
    apns.tell(elsewhere, environment="production")
    apns.tell(other, bundle="com.example.other")
    answer = client.push(gone, ALERT)
    assert (answer.status, answer.json) == (410, {"reason": "Unregistered", "timestamp": since})
    assert client.push(bad, ALERT).reason == client.push(elsewhere, ALERT).reason == "BadDeviceToken"
    assert client.push(other, ALERT).reason == "DeviceTokenNotForTopic"
    assert client.push(new_token(), ALERT, apns_topic="com.example.strange").reason == "TopicDisallowed"
    assert new_violations(apns, before) == []
    apns.tell(gone)
    assert client.push(gone, ALERT).status == 200
    apns.tell(starts, kind="start")
    assert client.push(starts, update(), **ACTIVITY).status == 200
    assert len(new_violations(apns, before)) == 1
    for _ in range(20):
        client.push(bad, ALERT)
    client.settle()
    [(code, _, data)] = client.goaways
    assert code == 0 and json.loads(data) == {"reason": "BadDeviceToken"}


def test_one_stream_until_the_first_answer_and_then_many(apns):
    with APNsClient(apns) as client:
        client.settle()
        assert client.limits == [1]
        assert client.push(new_token(), ALERT).status == 200
        client.settle()
        assert client.limits == [1, 1000]
        answers = [client.send(new_token(), ALERT) for _ in range(200)]
        assert {client.wait(answer).status for answer in answers} == {200}
        # A refusal lowers it, an unknown operator is back to one.
        assert client.push(new_token(), ALERT, apns_priority="8").status == 400
        assert client.push(new_token(), ALERT, authorization=None).status == 403
        client.settle()
        assert client.limits == [1, 1000, 500, 1]
    device, before = new_token(), counted(apns)
    apns.script({"match": {"token": device}, "do": {"delay": 5}})
    with APNsClient(apns) as greedy:
        # It does not wait for the SETTINGS.
        for _ in range(2):
            greedy.send(device, ALERT)
        while not greedy.is_ended:
            greedy.read()
        [(code, _, _)] = greedy.goaways
        assert code != 0
        assert "TooManyStreamsError" in new_violations(apns, before)[0]["what"]


def test_paths_and_provider_tokens_are_not_to_be_indexed(apns, monkeypatch):
    monkeypatch.setattr("support.apns_client._never_indexed", lambda name, value: (name, value))
    before = counted(apns)
    with APNsClient(apns) as client:
        assert client.push(new_token(), ALERT).status == 200
    assert "HPACK" in new_violations(apns, before)[0]["what"]


def test_without_alpn_there_is_nothing(apns):
    before = counted(apns)
    with APNsClient(apns, alpn=()) as client:
        while not client.is_ended:
            client.read()
    assert "ALPN" in new_violations(apns, before)[0]["what"]


def test_the_script(apns):
    try:
        the_script(apns)
    finally:
        apns.forget_script()


def the_script(apns):
    token = new_token()

    def scripted(do, count=1, **rule):
        """What becomes of pushes that are sent one after the other, and how many of them reached the phone."""
        apns.forget_script()
        apns.script({"match": {"token": token}, "do": do, **rule})
        before = len(apns.taken_by(token))
        with APNsClient(apns) as client:
            assert client.push(new_token(), ALERT).status == 200
            client.settle()
            answers = [client.send(token, ALERT) for _ in range(count)]
            client.settle()
            return client, answers, len(apns.taken_by(token)) - before

    client, answers, taken = scripted({"answer": "TooManyRequests", "retry_after": 3}, 6, skip=2, every=2, times=1)
    assert [answer.status for answer in answers] == [200, 200, 429, 200, 200, 200] and taken == 5
    assert answers[2].headers["retry-after"] == "3" and answers[2].reason == "TooManyRequests"
    _, [answer], taken = scripted({"answer": "NobodyKnowsThis", "status": 418})
    assert (answer.status, answer.reason, taken) == (418, "NobodyKnowsThis", 0)
    _, [answer], taken = scripted({"answer": "ExpiredToken", "timestamp": 7})
    assert (answer.status, answer.json, taken) == (410, {"reason": "ExpiredToken", "timestamp": 7}, 0)
    _, [answer], taken = scripted({"stall": "before"})
    assert (answer.status, taken) == (None, 0)
    _, [answer], taken = scripted({"stall": "after"})
    assert (answer.status, taken) == (None, 1)
    _, [answer], taken = scripted({"reset": CODE["REFUSED_STREAM"]})
    assert (answer.reset, taken) == (7, 0)
    _, answers, taken = scripted({"reset": 2, "processed": True}, 2, times=1)
    assert [answer.reset for answer in answers] == [2, None] and taken == 2
    # The first request on each connection is the one for another token: streams 3, 5, 7 are these.
    client, answers, taken = scripted({"goaway": "after"}, 3)
    assert [answer.status for answer in answers] == [200, None, None] and taken == 1
    assert client.goaways == [(0, 3, None)]
    client, answers, taken = scripted({"goaway": "before", "reason": "Shutdown"}, 3)
    assert [answer.status for answer in answers] == [None, None, None] and taken == 0
    assert client.goaways == [(0, 1, b'{"reason": "Shutdown"}')]
    client, answers, taken = scripted({"goaway": "graceful"}, 3, times=1)
    assert [answer.status for answer in answers] == [200, 200, 200] and taken == 3
    assert client.goaways[0][:2] == (0, 2**31 - 1)
    client, answers, taken = scripted({"goaway": "withheld"})
    assert [answer.status for answer in answers] == [None] and taken == 1
    client, answers, taken = scripted({"abort": "after"}, 2)
    assert client.is_ended and [answer.status for answer in answers] == [None, None] and taken == 1
    client, answers, taken = scripted({"abort": "before"})
    assert client.is_ended and taken == 0
    apns.forget_script()
    apns.script({"match": {"token": token}, "do": {"delay": 0.2}})
    with APNsClient(apns) as client:
        began = time.monotonic()
        assert client.push(token, ALERT).status == 200 and time.monotonic() - began > 0.2
    for wrong in {"do": {"dance": 1}}, {"do": {"answer": "Nonsense"}}, {"do": {"stall": "now"}}, {"match": {"moon": 1}, "do": {"delay": 1}}:
        with pytest.raises(AssertionError, match="ValueError"):
            apns.script(wrong)


def test_channels(apns, client):
    def manage(method, body=b"", channel=None, what="channels"):
        return client.push("", body, method=method, path=f"/1/apps/{BUNDLE}/{what}", apns_channel_id=channel)

    def broadcast(payload=None, channel=None, **headers):
        headers = {**ACTIVITY, "apns_topic": None, "apns_channel_id": channel, **headers}
        return client.push("", payload or update(timestamp=clock.pop(0)), path=f"/4/broadcasts/apps/{BUNDLE}", **headers)

    clock = [int(time.time()) + n for n in range(20)]
    before = counted(apns)
    made = [manage("POST", {"message-storage-policy": policy, "push-type": "LiveActivity"}) for policy in (0, 1)]
    assert [answer.status for answer in made] == [201, 201]
    unstored, stored = (answer.headers["apns-channel-id"] for answer in made)
    assert manage("GET", channel=stored).json == {"message-storage-policy": 1, "push-type": "LiveActivity"}
    assert {unstored, stored} <= set(manage("GET", what="all-channels").json["channels"])
    assert broadcast(channel=stored, apns_expiration=str(int(time.time()) + 60)).status == 200
    assert broadcast(channel=unstored).status == 200
    large = update(timestamp=clock.pop(0), content_state={"x": "y" * 4800})
    assert broadcast(large, channel=stored).status == 200
    assert manage("DELETE", channel=unstored).status == 204
    assert broadcast(channel=unstored).reason == manage("GET", channel=unstored).reason == "ChannelNotRegistered"
    assert new_violations(apns, before) == []
    assert [push["channel"] for push in apns.taken if push.get("channel")] == [stored, unstored, stored]
    assert broadcast().reason == "MissingChannelId"
    assert broadcast(channel="*").reason == "BadChannelId"
    assert broadcast(channel=stored, apns_expiration=None).reason == "BadExpirationDate"
    assert broadcast(channel=stored, apns_push_type="alert", apns_priority="10").reason == "InvalidPushType"
    assert broadcast(channel=stored, apns_topic=BUNDLE).reason == "BadTopic"
    assert broadcast(update(timestamp=clock.pop(0), content_state={"x": "y" * 5200}), channel=stored).reason == "PayloadTooLarge"
    assert manage("POST", {"message-storage-policy": 3}).status == 400
    assert len(new_violations(apns, before)) == 7
    assert manage("PUT", channel=stored).status == manage("POST", what="all-channels").status == 405
    assert broadcast(channel=stored, method="PUT").status == 405
    assert broadcast(start(timestamp=clock.pop(0)), channel=stored).status == 200
    assert broadcast(update(timestamp=int(time.time()) - 50), channel=stored).status == 200
    assert len(new_violations(apns, before)) == 12


def test_the_log_outlives_the_process_and_tells_who_may_know_what():
    with APNs() as apns:
        token = new_token()
        ids = [f"00000000-0000-4000-8000-{n:012x}" for n in range(5)]
        apns.script({"match": {"id": ids[1]}, "times": 1, "do": {"stall": "after"}})
        with APNsClient(apns) as client:
            client.push(token, ALERT, apns_id=ids[0])
            client.send(token, ALERT, apns_id=ids[1])
            client.settle()
        until(lambda: any(record.get("event") == "end" for record in apns.records), what="the end of the connection")
        apns.kill()
        apns.start()
        with APNsClient(apns) as client:
            for id in ids[:3]:
                assert client.push(token, ALERT, apns_id=id).status == 200
        account = Account(apns.deliveries(), ids)
        assert account.lost == ids[3:] and account.strange == []
        # The second was withheld, and the first was answered on a connection that the client itself ended.
        assert account.twice == ids[:1] and account.ambiguous == 1
        assert [record["headers"]["apns-id"] for record in apns.taken] == [*ids[:2], *ids[:3]]
        assert apns.violations == []


def connected(apns):
    with contextlib.suppress(ConnectionRefusedError):
        return APNsClient(apns)


def test_connections_can_be_refused_and_frozen(apns):
    with APNsClient(apns) as client:
        assert client.push(new_token(), ALERT).status == 200
        began = time.monotonic()
        apns.connections("refuse", 1)
        while not client.is_ended:
            client.read()
        # A machine that stood still for longer would have it listen again.
        with contextlib.suppress(ConnectionRefusedError), APNsClient(apns):
            assert time.monotonic() - began > 1
    with until(lambda: connected(apns), what="the stand-in again") as client:
        began = time.monotonic()
        apns.connections("freeze", 0.5)
        assert client.push(new_token(), ALERT).status == 200
        assert time.monotonic() - began > 0.4
        apns.connections("idle")
        client.settle()
        assert json.loads(client.goaways[0][2]) == {"reason": "IdleTimeout"}


def test_curl_is_a_client_too(apns):
    with open(apns.key_file) as file:
        token = provider_token(file.read())
    before, device = counted(apns), new_token()
    result = subprocess.run(
        ["curl", "-sS", "--http2", "--cacert", apns.ca_file, "-w", "%{http_code} %{http_version}", "-H",
         f"authorization: bearer {token}", "-H", "apns-push-type: alert", "-H", f"apns-topic: {BUNDLE}", "-d",
         json.dumps(ALERT), f"{apns.url}/3/device/{device}"], capture_output=True, text=True, timeout=30)
    assert (result.stdout, result.stderr) == ("200 2", "")
    assert len(apns.taken_by(device)) == 1 and new_violations(apns, before) == []
