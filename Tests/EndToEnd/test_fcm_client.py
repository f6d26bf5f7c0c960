"""`roost push` to the stand-in for FCM: what becomes of each push, whatever Google answers."""

import uuid

import pytest

from support.fcm import FCM, new_token
from support.push_line import Pushes


@pytest.fixture
def fcm():
    with FCM() as standin:
        yield standin


def line(token=None, number=0, **more):
    return {"kind": "fcm", "id": str(uuid.uuid4()), "token": token or new_token(), "payload": {"data": {"n": str(number)}}, **more}


def push(fcm, *lines, **settings):
    outcomes = Pushes(fcm, lines, "--timeout", "2", **settings).run()
    return [outcomes[each["id"]] for each in lines]


def outcomes(said):
    return [each["outcome"] for each in said]


def test_a_push_is_what_googles_reference_says(fcm):
    token = new_token()
    payload = {"notification": {"title": "Ada", "body": "Hello"}, "android": {"notification": {"tag": "t"}}, "data": {"a": "b"}}
    assert outcomes(push(fcm, {**line(token), "payload": payload, "collapseId": "c", "priority": 5})) == ["delivered"]
    [taken] = fcm.taken_by(token)
    assert taken["payload"] == {
        "token": token, "notification": {"title": "Ada", "body": "Hello"}, "data": {"a": "b"},
        "android": {"priority": "NORMAL", "ttl": "0s", "collapse_key": "c", "notification": {"tag": "t"}}}
    assert fcm.summary["granted"] == 1 and fcm.violations == []


@pytest.mark.parametrize("code, status, outcome, asked", [
    ("INVALID_ARGUMENT", None, "refused", 1), ("SENDER_ID_MISMATCH", None, "badToken", 1), ("UNREGISTERED", None, "unregistered", 1),
    ("THIRD_PARTY_AUTH_ERROR", None, "refused", 1), ("INVALID_ARGUMENT token", None, "badToken", 1),
    ("UNAVAILABLE", None, "delivered", 2), ("INTERNAL", None, "delivered", 2), ("QUOTA_EXCEEDED", None, "delivered", 2),
    ("UNAUTHENTICATED", None, "delivered", 2),
])
def test_an_error_means_what_google_says(fcm, code, status, outcome, asked):
    fcm.script({"times": 1, "do": {"answer": code, "retry_after": 1}})
    each = line()
    assert outcomes(push(fcm, each)) == [outcome]
    assert len(fcm.asked_of(each["token"])) == asked and fcm.violations == []


def test_an_account_that_may_not_send_is_told(fcm):
    fcm.script({"do": {"answer": "PERMISSION_DENIED"}})
    run = Pushes(fcm, [line(), line()])
    assert {each["outcome"] for each in run.run().values()} == {"refused"}
    assert "enable the Firebase Cloud Messaging API (V1)" in run.log, run.log


def test_a_key_that_is_not_the_accounts_is_told(fcm):
    other = FCM()
    with other:
        with open(other.account_file) as file:
            stranger = file.read().replace(str(other.port), str(fcm.port))
    path = f"{fcm.folder}/stranger.json"
    with open(path, "w") as file:
        file.write(stranger)
    run = Pushes(fcm, [line()], ROOST_FCM_SERVICE_ACCOUNT=path)
    assert {each["outcome"] for each in run.run().values()} == {"refused"}
    assert "invalid_grant" in run.log and "Invalid JWT Signature." in run.log, run.log
    assert fcm.pushes == []


@pytest.mark.parametrize("hours", [-3, 3])
def test_a_clock_that_is_wrong_is_made_up_for(fcm, hours):
    fcm.set(clock_offset=hours * 3600)
    run = Pushes(fcm, [line(number=number) for number in range(20)])
    assert {each["outcome"] for each in run.run().values()} == {"delivered"}
    assert f"{'behind' if hours > 0 else 'ahead of'} Google's" in run.log, run.log
    assert fcm.violations == []


def test_a_token_server_that_is_away_is_waited_for(fcm):
    fcm.set(token_faults=[500, 503])
    assert outcomes(push(fcm, line())) == ["delivered"]
    assert fcm.summary["granted"] == 1


def test_a_revoked_access_token_is_renewed_once(fcm):
    fcm.script({"match": {"number": 5}, "do": {"answer": "UNAUTHENTICATED"}})
    assert set(outcomes(push(fcm, *(line(number=number) for number in range(50))))) == {"delivered"}
    assert fcm.summary["granted"] == 2 and fcm.violations == []


@pytest.mark.parametrize("do", [{"goaway": "before"}, {"goaway": "after"}, {"goaway": "graceful"}, {"reset": 7}], ids=str)
def test_what_was_not_looked_at_goes_again(fcm, do):
    fcm.script({"match": {"number": 20}, "times": 2, "do": do})
    lines = [line(number=number) for number in range(200)]
    assert set(outcomes(push(fcm, *lines))) == {"delivered"}
    times = fcm.times("n")
    assert {each["token"] for each in lines} == set(times) and all(len(seen) == 1 for seen in times.values())


@pytest.mark.parametrize("do", [{"stall": "after"}, {"goaway": "withheld"}, {"abort": "after"}], ids=str)
def test_what_may_have_arrived_is_not_sent_again(fcm, do):
    fcm.script({"skip": 10, "every": 50, "times": 2, "do": do})
    lines = [line(number=number) for number in range(100)]
    said = set(outcomes(push(fcm, *lines)))
    assert said == {"delivered", "unanswered"}
    assert all(len(seen) == 1 for seen in fcm.times("n").values())


def test_a_lane_keeps_its_order(fcm):
    fcm.script({"every": 7, "do": {"answer": "UNAVAILABLE", "retry_after": 0}})
    token = new_token()
    assert set(outcomes(push(fcm, *(line(token, number) for number in range(12))))) == {"delivered"}
    assert fcm.times("n")[token] == [str(number) for number in range(12)]
