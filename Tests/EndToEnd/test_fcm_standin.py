"""The stand-in for FCM keeps Google's rules: what it takes, and what it refuses and how."""

import json
import subprocess
import time
import urllib.parse

import jwt
import pytest

from support.fcm import FCM, PROJECT, new_token

SCOPE = "https://www.googleapis.com/auth/firebase.messaging"


@pytest.fixture(scope="module")
def fcm():
    with FCM() as standin:
        yield standin


def post(fcm, path, body, *headers):
    """By curl, which shares nothing with either. The status, and the body as JSON."""
    words = [word for header in headers for word in ("-H", header)]
    output = subprocess.run(
        ["curl", "-s", "--http2", "--cacert", fcm.ca_file, "-w", "\n%{http_code}", *words, "--data-binary", body, f"{fcm.url}{path}"],
        capture_output=True, text=True, check=True, timeout=30).stdout
    text, _, status = output.rpartition("\n")
    return int(status), json.loads(text)


def assertion(fcm, **changes):
    with open(fcm.account_file) as file:
        account = json.load(file)
    now = int(time.time())
    claims = {"iss": account["client_email"], "scope": SCOPE, "aud": account["token_uri"], "iat": now, "exp": now + 3600, **changes}
    return jwt.encode(claims, account["private_key"], algorithm="RS256", headers={"kid": account["private_key_id"]})


def ask(fcm, text):
    form = urllib.parse.urlencode({"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": text})
    return post(fcm, "/token", form, "content-type: application/x-www-form-urlencoded")


def send(fcm, message, token=None):
    token = token or ask(fcm, assertion(fcm))[1]["access_token"]
    return post(fcm, f"/v1/projects/{PROJECT}/messages:send", json.dumps({"message": message}), f"authorization: Bearer {token}",
                "content-type: application/json")


def test_a_good_message_is_taken(fcm):
    status, answer = send(fcm, {"token": new_token(), "notification": {"title": "a"}, "data": {"b": "c"}, "android": {
        "priority": "HIGH", "ttl": "60s", "collapse_key": "d", "notification": {"channel_id": "e", "tag": "f", "notification_count": 3}}})
    assert status == 200 and answer["name"].startswith(f"projects/{PROJECT}/messages/")
    assert fcm.violations == []


NOW = int(time.time())


@pytest.mark.parametrize("claims", [
    {"aud": "https://example.com/token"}, {"iss": "somebody@example.com"}, {"scope": "email"}, {"iat": NOW, "exp": NOW + 7200},
    {"iat": NOW - 9000, "exp": NOW - 5400}, {"iat": NOW + 5400, "exp": NOW + 9000},
], ids=lambda claims: " ".join(claims))
def test_an_assertion_is_verified(fcm, claims):
    status, answer = ask(fcm, assertion(fcm, **claims))
    assert status == 400 and answer["error"] in ("invalid_grant", "invalid_scope"), answer


def test_an_assertion_of_another_key_is_none(fcm):
    header, claims, _ = assertion(fcm).split(".")
    assert ask(fcm, f"{header}.{claims}.{assertion(fcm, scope='x').split('.')[2]}")[1]["error_description"] == "Invalid JWT Signature."


@pytest.mark.parametrize("change", [
    {"android": {"ttl": 60}}, {"android": {"ttl": "60"}}, {"android": {"ttl": "2419201s"}}, {"android": {"priority": "high!"}},
    {"android": {"channel_id": "x"}}, {"data": {"n": 5}}, {"data": {"from": "x"}}, {"data": {"google.a": "x"}}, {"apns": {}},
    {"notification": {"subtitle": "x"}}, {"android": {"notification": {"notification_count": "3"}}}, {"data": {"a": "x" * 4096}},
    {"token": "short"},
], ids=lambda change: json.dumps(change)[:40])
def test_a_message_that_the_reference_does_not_have_is_refused(fcm, change):
    status, answer = send(fcm, {"token": new_token(), **change})
    assert status == 400 and answer["error"]["status"] == "INVALID_ARGUMENT"


def test_tokens_and_devices_that_are_none(fcm):
    gone, other = new_token(), new_token()
    fcm.tell(gone, gone=True)
    fcm.tell(other, sender=True)
    assert [send(fcm, {"token": token})[1]["error"]["details"][0]["errorCode"] for token in (gone, other)] == [
        "UNREGISTERED", "SENDER_ID_MISMATCH"]
    token = ask(fcm, assertion(fcm))[1]["access_token"]
    fcm.revoke()
    assert send(fcm, {"token": new_token()}, token)[0] == 401
