"""A POST on a route that is passed on to the application's backend, whose answer is the next turn (`streams.routes` with `forward`)."""

import asyncio
import base64
import hashlib
import hmac
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.bounds import at_most
from support.certificates import Authority
from support.channels import INSTALL, Rights
from support.deadline import eventually
from support.events import EventReader
from support.hub import Hub
from support.http import HTTPConnection
from support.ports import SecurePort
from support.reply_backend import signature
from support.streams import Stream, bearer
from support.tokens import token

pytestmark = pytest.mark.anyio

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwbW8fA3qZ1Yk="
ERROR = '{"type": "error", "why": "$reason"}'


class Process:
    """The backend, which a test may kill and start again at the same address."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "support.reply_backend", SECRET], cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def remove(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture(scope="module")
def backend():
    process = Process()
    yield process
    process.remove()


@pytest.fixture(scope="module")
def forwarding(cluster, backend):
    at = f"http://127.0.0.1:{backend.port}/send"
    hub = Hub(
        cluster.create_database("forwards"), ROOST_LOOPS="2", ROOST_STREAMS_FORWARD_SECRET=SECRET,
        ROOST_STREAMS_FORWARD_ERROR=ERROR, ROOST_STREAMS_FORWARD_TIMEOUT="2", ROOST_STREAMS_ROUTES=(
            f"/send=reply/{{conversation}};forward={at},/say=voice/{{conversation}};forward={at};event=type;cancel,"
            "/nowhere=reply/{conversation};forward=http://127.0.0.1:9/"))
    try:
        hub.run("migrate")
        with cluster.connect("forwards") as sql:
            sql.execute(INSTALL)
        yield hub.start()
    finally:
        hub.remove()


def post(hub, path, asked, **headers):
    body = json.dumps(asked).encode()
    return EventReader.open(
        hub.port, path, method="POST", body=body, **{"content_type": "application/json", **(headers or bearer())})


async def messages(events):
    got = []
    while (event := await events.next()) is not None:
        got.append(json.loads(event.data))
    return got


async def answers(hub, path, asked, **headers):
    async with await post(hub, path, asked, **headers) as events:
        assert events.status == 200, events.status
        return await messages(events)


@pytest.mark.parametrize("way", ["events", "lines"])
async def test_the_answer_is_the_backends_events(forwarding, name, way):
    """The table's second line: a POST, and the reply comes as events in the same response."""
    said = await answers(forwarding, f"/send?conversation={name}", {"as": way, "texts": ["Hel", "lo"]})
    assert said == [{"text": "Hel", "n": 0}, {"text": "lo", "n": 1}]
    by_body = await answers(forwarding, "/send", {"conversation": name, "as": "whole", "texts": ["again"]})
    assert by_body == [{"text": "again", "n": 0}], "the next turn, whose name stands in the JSON"


async def test_events_keep_their_names(forwarding, name):
    async with await post(forwarding, f"/say?conversation={name}", {"texts": ["a"]}) as events:
        event = await events.next()
        assert event.name == "token" and json.loads(event.data) == {"type": "token", "text": "a", "n": 0}


async def test_the_backend_knows_whose_request_it_is(forwarding, name, cluster):
    claims = {"sub": name, "app": {"plan": "pro"}}
    mine = token("authenticated", **claims)
    with cluster.connect("forwards") as sql:
        Rights(sql, f"stream:reply/{name}").give(name, "read broadcast")
        await forwarding.settled()
        [who] = await answers(
            forwarding, f"/send?conversation={name}", {"as": "whoami"}, authorization=f"Bearer {mine}")
    assert who["turn"]["stream"] == f"reply/{name}" and who["turn"]["generation"]
    assert who["turn"]["claims"]["sub"] == name and who["turn"]["claims"]["app"] == {"plan": "pro"}
    assert who["authorization"] == f"Bearer {mine}"


async def test_whoever_may_not_read_the_stream_reaches_no_backend(forwarding, name):
    async with await HTTPConnection.open(forwarding.port) as http:
        path = f"/send?conversation={name}"
        before = forwarding.metric("roost_forwards_total")
        assert (await http.request("POST", path, b"{}", content_type="application/json")).status == 401
        stranger = bearer("authenticated", sub="stranger")
        assert (await http.request("POST", path, b"{}", content_type="application/json", **stranger)).status == 403
        missing = await http.request("POST", "/send", b"{}", content_type="application/json", **bearer())
        assert missing.status == 400 and "conversation" in missing.json["error"]
        assert (await http.request("POST", "/send?conversation=a/b", b"{}", content_type="application/json", **bearer())).status == 400
        await forwarding.settled()
        assert forwarding.metric("roost_forwards_total") == before


async def test_a_client_that_drops_comes_back_by_get(forwarding, name):
    path = f"/send?conversation={name}"
    async with await post(forwarding, path, {"texts": list("abcdef"), "pause": 0.05}) as events:
        got = [json.loads((await events.next()).data)["text"]]
        last = events.id
    async with await EventReader.open(forwarding.port, path, last_event_id=last, **bearer()) as events:
        got += [message["text"] for message in await messages(events)]
    assert got == list("abcdef"), "nobody waited for it meanwhile, and it went on"


async def test_a_second_request_while_a_reply_is_under_way(forwarding, name):
    path = f"/send?conversation={name}"
    async with await post(forwarding, path, {"texts": list("abc"), "pause": 0.2}) as events:
        await events.next()
        async with await HTTPConnection.open(forwarding.port) as http:
            second = await http.request("POST", path, b"{}", content_type="application/json", **bearer())
            assert second.status == 409 and second.headers["stream-generation"] == events.headers["stream-generation"]
        assert len(await messages(events)) == 2


async def test_closing_cancels_if_the_route_says_so(forwarding, name):
    async with await post(forwarding, f"/say?conversation={name}", {"texts": ["a"], "times": 10_000, "pause": 0.01}) as events:
        await events.next()
    async with await HTTPConnection.open(forwarding.port) as http:
        stream = Stream(http, f"voice/{name}")

        async def is_cancelled():
            return (await stream.head()).headers.get("stream-status") == "cancelled"
        await eventually(is_cancelled)
    await eventually(lambda: forwarding.metric("roost_forwards_under_way") == 0)


@pytest.mark.parametrize("asked, said", [
    ({"as": "break"}, {"type": "error", "why": "broken"}),
    ({"as": "silent"}, {"type": "error", "why": "timeout"}),
    ({"as": "page", "texts": ["<p>"]}, {"type": "error", "why": "invalid"}),
    ({"as": "status", "status": "500 Oops", "body": "no object"}, {"type": "error", "why": "refused"}),
    ({"as": "status", "status": "402 Payment Required", "body": {"code": "quota"}}, {"code": "quota"}),
])
async def test_a_backend_that_fails_is_told_in_the_apps_shape(forwarding, name, asked, said):
    assert await answers(forwarding, f"/send?conversation={name}", asked) == [said]
    async with await HTTPConnection.open(forwarding.port) as http:
        head = await Stream(http, f"reply/{name}").head()
        assert head.headers["stream-status"] == "aborted"
    again = await answers(forwarding, f"/send?conversation={name}", {"texts": ["works"]})
    assert again == [{"text": "works", "n": 0}]


async def test_a_backend_that_is_not_there(forwarding, name):
    assert await answers(forwarding, f"/nowhere?conversation={name}", {}) == [{"type": "error", "why": "unreachable"}]


async def test_a_backend_that_is_killed_in_the_middle_is_told_at_once(cluster):
    """Within a second, with what it had said before."""
    process = Process()
    hub = Hub(
        cluster.create_database("forwards_killed"), ROOST_STREAMS_FORWARD_SECRET=SECRET, ROOST_STREAMS_FORWARD_ERROR=ERROR,
        ROOST_STREAMS_ROUTES=f"/send=reply/{{conversation}};forward=http://127.0.0.1:{process.port}/")
    try:
        hub.run("migrate")
        hub.start()
        async with await post(hub, "/send?conversation=1", {"texts": list("abc"), "pause": 0.01, "dies_after": 2}) as events:
            said = [json.loads((await events.next()).data) for _ in range(2)]
            with at_most(1):
                said += await messages(events)
        assert said == [{"text": "a", "n": 0}, {"text": "b", "n": 1}, {"type": "error", "why": "broken"}]
    finally:
        process.remove()
        hub.remove()


async def test_the_end_of_the_hub_is_told(cluster, backend):
    hub = Hub(
        cluster.create_database("forwards_end"), ROOST_STREAMS_FORWARD_SECRET=SECRET, ROOST_STREAMS_FORWARD_ERROR=ERROR,
        ROOST_STREAMS_ROUTES=f"/send=reply/{{conversation}};forward=http://127.0.0.1:{backend.port}/")
    try:
        hub.run("migrate")
        hub.start()
        async with await post(hub, "/send?conversation=1", {"texts": ["a"], "times": 1000, "pause": 0.1}) as events:
            await events.next()
            last = events.id
            await asyncio.to_thread(hub.stop)
        hub.start()
        async with await EventReader.open(hub.port, "/send?conversation=1", last_event_id=last, **bearer()) as events:
            assert (await messages(events))[-1] == {"type": "error", "why": "restarting"}
    finally:
        hub.remove()


async def test_a_backend_that_writes_the_stream_by_itself(forwarding, name):
    """It answers nothing, and appends by the ticket of its request, which is good for this turn alone."""
    [who] = await answers(forwarding, f"/send?conversation={name}", {"as": "whoami"})
    async with await post(forwarding, f"/send?conversation={name}", {"as": "nothing"}) as events:
        async with await HTTPConnection.open(forwarding.port) as http:
            generation = events.headers["stream-generation"]
            await eventually(lambda: forwarding.metric("roost_forwards_under_way") == 0)

            async def append(ticket, name=f"reply/{name}", **headers):
                return await http.request("POST", f"/streams/{name}", b'{"own": 1}', content_type="application/json",
                                          stream_ticket=ticket, **headers)
            old = who["turn"]["ticket"]
            assert (await append(old)).status == 409, "of the turn before"
            assert (await append(old, f"reply/{name}x")).status == 401 and (await append(old[:-4] + "AAA=")).status == 401
            ticket = ticket_of(forwarding, name, generation)
            read = await http.request("GET", f"/streams/reply/{name}", None, stream_ticket=ticket)
            assert read.status == 401, "it writes, and reads nothing"
            assert (await append(ticket, stream_closed="true")).status == 204
        assert await messages(events) == [{"own": 1}]


def ticket_of(hub, name, generation):
    """As the hub makes it: what it says, and a signature of that."""
    facts = json.dumps({"stream": f"reply/{name}", "generation": generation, "expires": int(time.time()) + 60, "role": "service_role",
                        "claims": {"role": "service_role"}}).encode()
    code = hmac.digest(base64.b64decode(SECRET.removeprefix("whsec_")), b"stream-ticket.0." + facts, hashlib.sha256)
    return base64.b64encode(facts).decode() + ".v1," + base64.b64encode(code).decode()


async def test_one_user_has_so_many_under_way(forwarding, name, cluster):
    mine = bearer("authenticated", sub=name)
    with cluster.connect("forwards") as sql:
        rights = Rights(sql, None)
        for number in range(21):
            rights.give(name, "read broadcast", topic=f"stream:reply/{name}{number}")
    await forwarding.settled()
    opened = [await post(forwarding, f"/send?conversation={name}{n}", {"texts": ["a"], "times": 300, "pause": 0.1}, **mine)
              for n in range(20)]
    for events in opened:
        await events.next()
    async with await HTTPConnection.open(forwarding.port) as http:
        refused = await http.request("POST", f"/send?conversation={name}20", b"{}", content_type="application/json", **mine)
        assert refused.status == 429 and refused.headers["retry-after"]
    for events in opened:
        async with events:
            pass
    async with await HTTPConnection.open(forwarding.port) as http:
        for number in range(20):
            assert (await Stream(http, f"reply/{name}{number}").cancel()).status == 200
    await eventually(lambda: forwarding.metric("roost_forwards_under_way") == 0)


async def test_a_large_answer_that_nobody_reads_waits_in_the_backends_socket(forwarding, name):
    """What comes faster than it can be kept, up to the bound of a stream, behind which the app is told."""
    said = await answers(forwarding, f"/send?conversation={name}", {"texts": ["x" * 1000], "times": 3000})
    assert said[-1] == {"type": "error", "why": "invalid"} or len(said) == 3000
    numbers = [message["n"] for message in said if "n" in message]
    assert numbers == list(range(len(numbers))) and len(numbers) > 500


@pytest.mark.clock
async def test_what_is_added_to_the_first_event(forwarding, backend):
    """Beside the same request to the backend itself, in turns."""
    rounds = int(os.environ.get("FORWARDS", "100"))
    body = json.dumps({"texts": ["a"]}).encode()
    signed = {"webhook-id": "1", "webhook-timestamp": "1", "roost-turn": base64.b64encode(b"{}").decode()}
    signed["webhook-signature"] = signature(SECRET, signed, body)
    ways = {"directly": ([], backend.port, signed), "through the hub": ([], forwarding.port, bearer())}
    for number in range(rounds):
        for took, port, headers in ways.values():
            started = time.perf_counter()
            async with await EventReader.open(
                    port, f"/send?conversation=t{number % 10}", method="POST", body=body, content_type="application/json",
                    **headers) as events:
                await events.next()
                took.append(time.perf_counter() - started)
    for way, (took, _, _) in ways.items():
        took.sort()
        print(f"POST to first event {way}: p50 {took[rounds // 2] * 1000:.2f} ms, p99 {took[rounds * 99 // 100] * 1000:.2f} ms")
    assert ways["through the hub"][0][rounds // 2] < 1


async def test_many_answers_are_open_at_once(forwarding):
    """What each takes of the hub, from /proc."""
    count = int(os.environ.get("FORWARDS_OPEN", "50"))
    before = forwarding.resident_bytes
    opened = await asyncio.gather(*(
        post(forwarding, f"/send?conversation=o{n}", {"texts": ["a"], "times": 100_000, "pause": 5}) for n in range(count)))
    for events in opened:
        await events.next()
    print(f"{count} answers that are open take {(forwarding.resident_bytes - before) / count / 1024:.1f} KB each")
    await eventually(lambda: forwarding.metric("roost_forwards_under_way") >= count)
    async with await HTTPConnection.open(forwarding.port) as http:
        for number in range(count):
            assert (await Stream(http, f"reply/o{number}").cancel()).status == 200
    for events in opened:
        await messages(events)
        await events.__aexit__(None, None, None)
    await eventually(lambda: forwarding.metric("roost_forwards_under_way") == 0)


async def test_over_the_hubs_own_tls_it_is_the_same(cluster, backend, tmp_path):
    authority = Authority(tmp_path)
    hub = Hub(
        cluster.create_migrated_database("forwards_tls"), ROOST_STREAMS_FORWARD_SECRET=SECRET,
        ROOST_STREAMS_ROUTES=f"/send=reply/{{conversation}};forward=http://127.0.0.1:{backend.port}/send",
    ).secure(authority.pair("forwards"), authority.trust)
    hub.port = SecurePort(hub.port, hub.trust)
    try:
        hub.start()
        assert await answers(hub, "/send?conversation=1", {"texts": ["Hel", "lo"]}) == [{"text": "Hel", "n": 0}, {"text": "lo", "n": 1}]
    finally:
        hub.remove()


def test_a_route_without_a_secret_ends_the_start(own_hub):
    result = own_hub.run("serve", check=False, ROOST_STREAMS_ROUTES="/send=reply/{c};forward=http://127.0.0.1:1/")
    assert result.returncode == 78 and "streams.forward_secret" in result.stderr
