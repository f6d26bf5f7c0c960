"""The log: a line for each connection's end, not thousands in a second, and nothing in it that is nobody's business."""

import asyncio
import itertools
import json
import re

import pytest

from support.deadline import eventually
from support.hub import Hub
from support.http import HTTPConnection
from support.tokens import SECRET, signed, token
from support.websocket import Refused, WebSocket
from support.wsclient import Client

_numbers = itertools.count(1)


@pytest.fixture
def logging_hub(cluster):
    """Starts hubs with a log of JSON."""
    hubs = []

    def start(**settings):
        hub = Hub(cluster.create_migrated_database(f"log_{next(_numbers)}"), **{"ROOST_LOOPS": "1", "ROOST_LOG_FORMAT": "json", **settings})
        hubs.append(hub)
        return hub.start()

    yield start
    for hub in hubs:
        hub.remove()


def events(hub):
    return [json.loads(line) for line in hub.log.splitlines()]


def ends(hub):
    return [event for event in events(hub) if event["message"] == "connection ended"]


async def test_the_end_of_a_connection_is_a_line(logging_hub):
    hub = logging_hub(ROOST_LIMITS_MESSAGE_BYTES="20000", ROOST_LIMITS_PAYLOAD_BYTES="10000")
    ada = await Client.connect(hub.port, apikey=token(role="anon"), source="127.0.3.1")
    await ada.join("realtime:room", access_token=token(sub="ada"))
    await ada.settled()
    await ada.close()
    await eventually(lambda: len(ends(hub)) == 1, what="the first line")
    gone = await Client.connect(hub.port, apikey=token(sub="grace"))
    await gone.settled()
    gone.socket.abort()
    await eventually(lambda: len(ends(hub)) == 2, what="the second line")
    large = await Client.connect(hub.port)
    large.send_text("x" * 30_000)
    await large.end()
    await eventually(lambda: len(ends(hub)) == 3, what="the third line")
    first, second, third = ends(hub)
    assert (first["level"], first["loop"], first["peer"], first["user"]) == ("info", 0, "127.0.3.1", "ada")
    assert (first["code"], first["by"]) == (1000, "peer") and "reason" not in first
    assert first["messages_in"] == 2 and first["messages_out"] >= 2, first
    assert first["bytes_in"] > 200 and first["bytes_out"] > 100 and 0 <= first["seconds"] < 600, first
    assert (second["code"], second["by"], second["user"]) == (1006, "nobody", "grace")
    assert (third["code"], third["by"], third["reason"]) == (1009, "hub", "message too large")
    assert "user" not in third
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first["time"])
    await eventually(lambda: 'roost_connections_closed_total{code="1009"} 1' in hub.ops("/metrics")[1], what="the same in the metrics")
    assert hub.stop() == 0
    assert ends(hub)[-1] == third, "nobody was there any more"


async def test_lines_have_the_trace_of_an_upgrade(logging_hub):
    hub = logging_hub()
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    headers = {"traceparent": parent, "baggage": "user=7,sb-request-id=a1-b2"}
    client = await Client.connect(hub.port, headers=headers)
    await client.join("realtime:live-activity:room")
    client.push("realtime:live-activity:room", "broadcast", {"type": "broadcast", "event": "summary", "payload": {}}, "9")
    await client.settled()
    await client.close()
    await eventually(lambda: ends(hub), what="the end")
    with pytest.raises(Refused):
        await Client.connect(hub.port, apikey="bad", headers=headers)
    await eventually(lambda: any(event["message"] == "A connection was refused" for event in events(hub)), what="the refusal")
    told = [event for event in events(hub) if event["message"] in ("A message was refused", "connection ended", "A connection was refused")]
    assert len(told) == 3 and all((event["traceparent"], event["request_id"]) == (parent, "a1-b2") for event in told), told


async def test_a_call_that_is_refused_is_told_with_its_trace(logging_hub):
    hub = logging_hub()
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    async with await HTTPConnection.open(hub.port) as http:
        for _ in range(3):
            refused = await http.request("POST", "/api/broadcast", {"messages": []}, traceparent=parent, sb_request_id="a1-b2")
            assert refused.status == 401
        bad = await http.request(
            "POST", "/api/broadcast", {"messages": 7}, authorization=f"Bearer {token('service_role')}", baggage="sb-request-id=c3")
        assert bad.status == 422
        assert (await http.request("GET", "/nowhere")).status == 404

    def told():
        return [event for event in events(hub) if event["message"] == "A call was refused"]
    await eventually(lambda: len(told()) == 2, what=lambda: str(told()))
    first, second = told()
    assert (first["reason"], first["why"], first["traceparent"], first["request_id"]) == ("http_401", "Unauthorized", parent, "a1-b2")
    assert (second["reason"], second["request_id"]) == ("http_422", "c3") and "messages" in second["why"]


async def test_a_drain_says_why(logging_hub):
    hub = logging_hub(ROOST_LOG_FORMAT="text")
    client = await Client.connect(hub.port, apikey=token(sub='a "name" with\nall = of it'))
    await client.settled()
    assert await asyncio.to_thread(hub.stop) == 0
    (line,) = [line for line in hub.log.splitlines() if "connection ended" in line]
    assert " info [Gateway] connection ended " in line
    assert " by=hub " in line and " code=1012 " in line and " reason=restarting " in line
    assert line.endswith(r'user="a \"name\" with\nall = of it"'), line
    await client.close()


async def test_a_thousand_ends_at_once_are_not_a_thousand_lines(logging_hub):
    hub = logging_hub(ROOST_LOOPS="2", ROOST_DRAIN_SECONDS="1")
    clients = []
    for _ in range(10):
        clients += await asyncio.gather(*(Client.connect(hub.port) for _ in range(60)))
    for client in clients:
        client.socket.abort()
    more = re.compile(r"and (\d+) more connections ended")

    def untold():
        all_events = events(hub)
        # What two loops tell in one second may be more than the log takes of a kind.
        beyond = sum(event["untold"] for event in all_events if "more within a second: connection ended" in event["message"])
        return beyond + sum(int(found.group(1)) for event in all_events if (found := more.fullmatch(event["message"])))

    await eventually(lambda: len(ends(hub)) + untold() == 600, 60, lambda: f"{len(ends(hub))} + {untold()} ends")
    seconds = {}
    for event in ends(hub):
        second = event["time"][:19]
        seconds[second] = seconds.get(second, 0) + 1
    # The hub's second need not begin with the clock's.
    assert max(seconds.values()) <= 100, seconds
    # A busy machine has more seconds for them.
    assert len(ends(hub)) < 300 or len(seconds) > 3


async def test_repeats_are_counted_and_told_together(logging_hub):
    hub = logging_hub(ROOST_LOG_LEVEL="debug")
    async with await Client.connect(hub.port) as client:
        for _ in range(400):
            client.send_text("nonsense")
        await client.settled()
        dropped = [event for event in events(hub) if event["message"].startswith("dropped a malformed frame")]
        assert len(dropped) >= 50

        def rest():
            return [event for event in events(hub) if "more within a second: dropped a malformed frame" in event["message"]]

        def told():
            lines = [event for event in events(hub) if event["message"].startswith("dropped a malformed frame")]
            return len(lines) + sum(event["untold"] for event in rest())

        await eventually(lambda: told() == 400, what=lambda: f"{told()} of 400 frames")
        assert rest() and rest()[0]["level"] == "debug"


async def test_nothing_secret_is_in_it(logging_hub):
    """Tokens wherever one may stand, good ones and bad ones, at the level that says most."""
    hub = logging_hub(
        ROOST_LOG_LEVEL="trace", ROOST_LIMITS_FAILURES_PER_MINUTE="0",
        ROOST_JWT_PREVIOUS_SECRETS="a-previous-secret-that-nobody-is-to-see")
    good, late = token(sub="ada"), token(lifetime=-5)
    forged, mangled = signed({"role": "anon", "exp": 4_000_000_000}, "x" * 40), good[:-6] + "nobody"
    path = "/realtime/v1/websocket"
    for text in (good, late, forged, mangled, "opaque-key-of-somebody"):
        for query, headers in ((f"?apikey={text}&vsn=2.0.0", {}), (f"?token={text}&vsn=1.0.0", {}),
                               ("?vsn=2.0.0", {"Authorization": f"Bearer {text}"}), ("?vsn=2.0.0", {"x-api-key": text})):
            try:
                await (await WebSocket.open(hub.port, path + query, headers)).close()
            except Refused:
                pass
        async with await HTTPConnection.open(hub.port) as http:
            await http.request("POST", f"/api/broadcast/t/events/e?apikey={text}", {}, authorization=f"Bearer {text}")
        async with await Client.connect(hub.port, apikey=good) as client:
            client.push("realtime:t", "phx_join", {"config": {}, "access_token": text}, "1", "1")
            client.push("realtime:t", "access_token", {"access_token": text}, "2", "1")
            client.send_text(f'["1","1","realtime:t","access_token",{{"access_token":"{text}"')
            await client.settled()
    assert await asyncio.to_thread(hub.stop) == 0
    assert len(ends(hub)) == 9, "four doors for the good one, and five sockets"
    for text in (good, late, forged, mangled, "opaque-key-of-somebody", SECRET, "a-previous-secret-that-nobody-is-to-see"):
        assert text not in hub.log
        assert text.split(".")[-1] not in hub.log
        if text.count(".") == 2:
            assert text.split(".")[1] not in hub.log, "its claims"
