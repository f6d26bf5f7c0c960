"""`roost push` against the stand-in: every answer of APNs is handled, and under everything that can go wrong on the way
nothing is lost and nothing is shown twice."""

import collections
import os
import subprocess
import threading
import time

import pytest

from support.apns import BUNDLE, KEY_ID, TEAM, Account, APNs, new_token
from support.deadline import until
from support.ports import free_port
from support.push_line import Pushes, line, push

#: Of the long run. The 10,000 of the issue: ROOST_E2E_PUSHES=10000 make test-e2e ARGS="-k everything_goes_wrong -s"
PUSHES = int(os.environ.get("ROOST_E2E_PUSHES", "2000"))
#: Seconds for an answer, as `roost push --timeout` takes it: where one does not come, and where each does in its time.
PATIENCE, ANSWERED = "1", "60"
#: Where much goes on at once: an answer that comes later than that on a busy machine is taken for none.
MORE_PATIENCE = "2"


@pytest.fixture
def apns():
    with APNs() as apns:
        yield apns


def update(timestamp, **state):
    return {"aps": {"event": "update", "timestamp": timestamp, "content-state": state, "stale-date": timestamp + 900}}


# apns.md §3, row by row

#: What becomes of a push that is answered so once, and how often it was sent in all. None: as often as it takes.
ONCE = {
    **{reason: ("refused", 1) for reason in (
        "BadCollapseId", "BadExpirationDate", "BadMessageId", "BadPriority", "BadTopic", "DuplicateHeaders",
        "InvalidPushType", "MissingTopic", "PayloadEmpty", "MissingDeviceToken", "BadPath", "MethodNotAllowed",
        "PayloadTooLarge")},
    "TopicDisallowed": ("refused", 1),
    "BadDeviceToken": ("badToken", 1), "DeviceTokenNotForTopic": ("badToken", 1),
    "Unregistered": ("unregistered", 1), "ExpiredToken": ("unregistered", 1),
    "IdleTimeout": ("delivered", 2), "UnrelatedKeyIdInToken": ("delivered", 2), "TooManyRequests": ("delivered", 2),
    "TooManyProviderTokenUpdates": ("delivered", 2), "InternalServerError": ("delivered", 2),
    "ServiceUnavailable": ("delivered", 2), "Shutdown": ("delivered", 2),
}
OPERATORS = (
    "InvalidProviderToken", "MissingProviderToken", "BadCertificate", "BadCertificateEnvironment", "Forbidden",
    "BadEnvironmentKeyIdInToken", "BadEnvironmentKeyInToken")


def test_every_answer_is_handled(apns):
    since = int(time.time() * 1000)
    lines = {reason: line() for reason in ONCE}
    lines["a reason that nobody knows"] = line()
    for reason, each in lines.items():
        do = {"answer": reason, **({"timestamp": since} if ONCE.get(reason, "u")[0] == "unregistered" else {})}
        apns.script({"match": {"token": each["token"]}, "times": 1, "do": {"status": 418, **do} if reason not in ONCE else do})
    run = Pushes(apns, lines.values(), "--timeout", ANSWERED)
    outcomes = run.run()
    sent = collections.Counter(push["token"] for push in apns.pushes)
    rows = {reason: (outcomes[each["id"]], sent[each["token"]]) for reason, each in lines.items()}
    print("\nanswered once with             outcome        sent")
    for reason, (outcome, times) in rows.items():
        print(f"{reason:30} {outcome['outcome']:14} {times}")
    for reason, (wanted, times) in ONCE.items():
        outcome, counted = rows[reason]
        assert (outcome["outcome"], counted) == (wanted, times), (reason, outcome)
        if wanted in ("refused", "badToken"):
            assert outcome["reason"] == reason
    assert rows["a reason that nobody knows"][0]["reason"] == "a reason that nobody knows"
    assert rows["a reason that nobody knows"][1] == 1
    ids = collections.defaultdict(set)
    for each in apns.pushes:
        ids[each["token"]].add((each["headers"]["apns-id"], each["headers"].get("apns-collapse-id")))
    assert all(len(found) == 1 for found in ids.values()), "the same id and collapse id each time"
    assert len(apns.summary["provider_tokens"]) == 1, "no new provider token, whatever it was told"
    assert apns.violations == []
    assert_keeps_secrets(run, apns)


def assert_keeps_secrets(run, apns):
    """Of a token its first eight digits at most, of the key nothing."""
    for each in run.lines.values():
        if "token" in each:
            assert each["token"] not in run.log
    with open(apns.key_file) as file:
        for secret in file.read().splitlines()[1:-1]:
            assert secret not in run.log
    assert "bearer" not in run.log.lower()


def test_an_operators_error_stops_the_key_and_says_so(apns):
    """One process for each, at the same time: what one key did is not another's fault."""
    runs = {}
    for reason in OPERATORS:
        lines = [line() for _ in range(8)]
        for each in lines:
            apns.script({"match": {"token": each["token"]}, "do": {"answer": reason}})
        runs[reason] = Pushes(apns, lines, "--timeout", ANSWERED)
    print("\nanswered with                  outcomes                         sent of 8")
    everybody = [threading.Thread(target=run.run) for run in runs.values()]
    for each in everybody:
        each.start()
    for each in everybody:
        each.join(60)
    sent = collections.Counter(push["token"] for push in apns.pushes)
    for reason, run in runs.items():
        came = sum(sent[each["token"]] for each in run.lines.values())
        outcomes = collections.Counter(outcome["outcome"] for outcome in run.outcomes.values())
        print(f"{reason:30} {dict(outcomes)!s:32} {came}")
        assert "delivered" not in outcomes and came <= 2, reason
        said = [text for text in run.log.splitlines() if reason in text]
        assert len(said) == 1 and TEAM in said[0] and KEY_ID in said[0], run.log
        assert_keeps_secrets(run, apns)
    assert apns.violations == []


def test_a_clock_that_is_wrong_is_named(apns):
    """An hour and a quarter apart: to APNs our tokens have expired, and a new one is no better."""
    apns.set(clock_offset=4500)
    run = Pushes(apns, [line()], "--timeout", ANSWERED)
    [outcome] = run.run().values()
    assert outcome["outcome"] != "delivered" and "clock" in run.log, run.log
    assert len(apns.pushes) <= 2 and apns.violations == []


def test_of_the_wrong_environment_and_never_on_one_connection(apns):
    production, sandbox = new_token(), [new_token() for _ in range(3)]
    apns.tell(production, environment="production")
    outcomes = push(apns, line(production), *(line(token) for token in sandbox))
    assert [outcome["outcome"] for outcome in outcomes] == ["badToken", *["delivered"] * 3]
    assert outcomes[0]["reason"] == "BadDeviceToken"
    # The stand-in plays both here.
    apns.tell(production)
    push(apns, *(line(new_token(), environment=each) for each in ("production", "sandbox") * 5))
    used = collections.defaultdict(set)
    lines = apns.pushes[4:]
    for number, each in enumerate(lines):
        used[each["connection"]].add(each["token"])
    assert len(used) == 2 and sorted(map(len, used.values())) == [5, 5]
    assert apns.violations == []


def test_too_large_is_not_sent(apns):
    def sized(count):
        payload = {"aps": {"alert": {"body": ""}}}
        payload["aps"]["alert"]["body"] = "x" * (count - len('{"aps":{"alert":{"body":""}}}'))
        return payload
    fits, does_not = push(apns, line(payload=sized(4096)), line(payload=sized(4097)))
    assert (fits["outcome"], does_not["outcome"]) == ("delivered", "tooLarge")
    assert [push["size"] for push in apns.pushes] == [4096]


# Everything goes wrong

#: For 2,000 pushes.
TROUBLE = [
    *({"match": {"number": number}, "times": 1, "do": {"goaway": how}} for number, how in (
        (150, "after"), (100, "before"), (130, "graceful"), (170, "withheld"), (90, "before"), (60, "graceful"))),
    {"match": {"number": 210}, "times": 1, "do": {"abort": "after"}},
    {"match": {"number": 40}, "times": 1, "do": {"abort": "before"}},
    {"skip": 37, "every": 61, "times": 12, "do": {"reset": 7}},
    {"skip": 90, "every": 101, "times": 5, "do": {"reset": 2, "processed": True}},
    {"skip": 93, "every": 103, "times": 5, "do": {"reset": 2}},
    {"skip": 300, "every": 333, "times": 2, "do": {"stall": "after"}},
    {"skip": 320, "every": 351, "times": 2, "do": {"stall": "before"}},
    {"skip": 55, "every": 71, "times": 12, "do": {"answer": "TooManyRequests"}},
    {"skip": 500, "times": 8, "do": {"answer": "ServiceUnavailable"}},
    {"skip": 20, "every": 200, "times": 4, "do": {"delay": 0.3}},
]


def many(count):
    """To 1 phone for 20 pushes each; every tenth phone shows an activity. In the order of their lanes."""
    tokens, now = [new_token() for _ in range(count // 20)], int(time.time())
    return [
        line(token, update(now + number, n=number), "liveactivity", priority=5) if index % 10 == 0 else
        line(token, {"aps": {"alert": {"body": "x" * 80}}, "n": number}, collapseId=f"message-{number}")
        for number in range(20) for index, token in enumerate(tokens)]


def test_everything_goes_wrong_and_nothing_is_lost_or_shown_twice(apns):
    # A longer run has as many of each, but for those that leave a whole connection unanswered: a push that this happens to
    # again and again is given up.
    is_rare = [rule["do"].get("goaway") == "withheld" or "abort" in rule["do"] for rule in TROUBLE]
    factor = max(1, PUSHES // 2000)
    trouble = [{**rule, "times": rule["times"] * (1 if rare else factor)} for rule, rare in zip(TROUBLE, is_rare)]
    apns.script(*trouble)
    lines = many(PUSHES)
    run, restarts, began = Pushes(apns, lines, "--timeout", MORE_PATIENCE), [], time.monotonic()

    fired = collections.Counter()

    def disturb():
        """-9 in the middle, and refused connections for a while; what is left of the script is told again."""
        until(lambda: shown(apns) > PUSHES * 0.3, 120, "the first part", every=0.02)
        # On a quick machine the most part may be over by now.
        rest = PUSHES - shown(apns)
        left = [
            {**rule, "times": rule["times"] - progress["fired"]}
            for rule, progress in zip(trouble, apns.summary["script"]) if rule["times"] > progress["fired"]]
        fired.update(goaways(apns))
        apns.kill()
        time.sleep(0.3)
        apns.start()
        apns.script(*left)
        until(lambda: shown(apns) > rest * 0.4, 120, "the second part", every=0.02)
        apns.connections("vanish", 5)
        restarts.append(True)

    disturber = threading.Thread(target=disturb)
    disturber.start()
    outcomes = run.run(within=120)
    took = time.monotonic() - began
    disturber.join(30)
    assert restarts == [True], "all went well too early"
    fired.update(goaways(apns))

    activities = {each["id"] for each in lines if each["type"] == "liveactivity"}
    deliveries = apns.deliveries()
    account = Account(deliveries, run.lines)
    unanswered = {id for id, outcome in outcomes.items() if outcome["outcome"] == "unanswered"}
    counts = collections.Counter(outcome["outcome"] for outcome in outcomes.values())
    answers = collections.Counter(f"{push['status']} {push['reason']}" for push in apns.pushes)
    ends = collections.Counter(record["how"] for record in apns.records if record.get("event") == "end")
    print(f"\n{PUSHES} pushes in {took:.1f} s: {dict(counts)}; lost {len(set(account.lost) - unanswered)}, "
          f"sent twice {len(account.twice)}, ambiguous {account.ambiguous}\nanswers {dict(answers)}; GOAWAYs {dict(fired)}; ends of connections {dict(ends)} and {apns.kills} kill -9")

    assert {"429 TooManyRequests", "503 ServiceUnavailable", *(
        f"None {what}" for what in ("reset", "stall", "abort", "goaway"))} <= set(answers), "not everything went wrong"
    assert account.twice == [] and account.strange == []
    assert unanswered <= activities, "an alert goes again"
    assert {id for id in outcomes if outcomes[id]["outcome"] != "delivered"} == unanswered
    assert set(account.lost) <= unanswered, "what was said to be delivered was, and what was not was not said to be"
    assert all(len(deliveries[id]) <= 1 for id in activities), "an activity's state never goes again"
    # In the order of each phone; one that came twice came again before the next one.
    order = {id: number for number, id in enumerate(run.lines)}
    for token, taken in by_token(apns.taken).items():
        numbers = [order[push["headers"]["apns-id"]] for push in taken]
        assert numbers == sorted(numbers), token
    # Each process that listened saw one provider token.
    assert len(apns.summary["provider_tokens"]) == 1
    # The timestamps of activities, and the limit of streams from the first request on, too.
    assert apns.violations == []


def goaways(apns):
    """How many of each kind, since the stand-in started."""
    counts = collections.Counter()
    for rule in apns.summary["script"]:
        if "goaway" in rule["do"]:
            counts[rule["do"]["goaway"]] += rule["fired"]
    return counts


def shown(apns):
    """How many reached a phone since the stand-in started."""
    return apns.summary["answers"].get("200", 0)


def by_token(pushes):
    found = collections.defaultdict(list)
    for each in pushes:
        found[each["token"]].append(each)
    return found


def test_a_newer_one_takes_the_place_of_one_that_has_not_left(apns):
    token, now = new_token(), int(time.time())
    apns.script({"match": {"token": token}, "times": 1, "do": {"delay": 0.5}})
    lines = [line(token, update(now + n, n=n), "liveactivity", priority=5, replaces=True) for n in range(6)]
    outcomes = [outcome["outcome"] for outcome in push(apns, *lines)]
    assert outcomes[-1] == "delivered" and "superseded" in outcomes
    assert [aps["content-state"]["n"] for aps in apns.aps(token)] == [n for n in range(6) if outcomes[n] == "delivered"]
    assert apns.violations == []


def test_a_frozen_peer_is_given_up(apns):
    """What nobody reads is not waited for longer than two timeouts, and arrives once."""
    tokens = [new_token() for _ in range(4)]
    apns.script({"match": {"token": tokens[0]}, "times": 1, "do": {"delay": 0.3}})
    run = Pushes(apns, [line(token) for token in tokens for _ in range(3)], "--timeout", PATIENCE)
    vanishing = threading.Thread(target=lambda: until(lambda: apns.pushes) and apns.connections("vanish", 4))
    vanishing.start()
    outcomes = run.run()
    vanishing.join()
    assert {outcome["outcome"] for outcome in outcomes.values()} == {"delivered"}
    account = Account(apns.deliveries(), run.lines)
    assert (account.lost, account.twice) == ([], [])
    assert apns.summary["connections"]["opened"] >= 2 and apns.violations == []


def test_a_server_that_is_not_trusted_is_told_nothing(apns):
    with APNs() as somebody_else:
        [outcome] = push(apns, line(), options=("--within", "3"), ROOST_APNS_CA_FILE=somebody_else.ca_file)
    assert outcome["outcome"] == "expired" and apns.pushes == []


# The second referee


def test_nghttpd_finds_no_fault(apns, tmp_path):
    """It knows nothing of pushes, and is strict about frames."""
    port, tokens = free_port(), [new_token() for _ in range(5)]
    (tmp_path / "3/device").mkdir(parents=True)
    for token in tokens:
        (tmp_path / "3/device" / token).touch()
    with open(tmp_path / "log", "w") as log:
        referee = subprocess.Popen(
            ["nghttpd", "-v", "-a", "127.0.0.1", "-d", tmp_path, str(port), f"{apns.folder}/server.pem",
             f"{apns.folder}/server.pem"], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        until(lambda: referee.poll() is None and is_listening(port), what="nghttpd")
        outcomes = push(apns, *(line(token) for token in tokens * 60), ROOST_APNS_URL=f"https://127.0.0.1:{port}")
    finally:
        referee.kill()
        referee.wait()
    assert {outcome["outcome"] for outcome in outcomes} == {"delivered"}
    seen = (tmp_path / "log").read_text()
    assert seen.count("recv HEADERS frame") == 300
    for fault in "PROTOCOL_ERROR", "send RST_STREAM", "[INVALID", "FLOW_CONTROL_ERROR", "COMPRESSION_ERROR", "ENHANCE_YOUR_CALM":
        assert fault not in seen, [text for text in seen.splitlines() if fault in text][:5]


def is_listening(port):
    import socket
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
