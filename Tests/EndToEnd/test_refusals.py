"""Whoever is refused is told why, and so is the operator: in the log, in the metrics, on the live page; never with a token."""

import time

import pytest
from websockets.asyncio.client import connect as websocket
from websockets.exceptions import InvalidStatus

from support.deadline import eventually, until
from support.http import HTTPConnection
from support.tokens import signed, token
from support.websocket import Refused
from support.wsclient import Client

WRONG = signed({"role": "authenticated", "exp": int(time.time()) + 3600}, secret="another secret than the hub's has, as long")


@pytest.fixture
def refusing(own_hub):
    own_hub.environment |= {"ROOST_LOOPS": "1", "ROOST_LIMITS_FAILURES_PER_MINUTE": "0"}
    return own_hub.start()


def lines(hub, kind):
    return [line for line in hub.log.splitlines() if f"A {kind} was refused" in line]


async def counted(hub, line):
    await eventually(lambda: f"\n{line}\n" in hub.ops("/metrics")[1], what=line)


async def test_a_wrong_secret_is_in_the_log_once_and_counted_each_time(refusing):
    for _ in range(20):
        with pytest.raises(Refused) as refused:
            await Client.connect(refusing.port, apikey=WRONG)
        assert refused.value.status == 401 and b"Failed to validate JWT signature" in refused.value.body
    (line,) = until(lambda: lines(refusing, "connection"), what="the line")
    assert "reason=token" in line and "peer=127.0.0.1" in line and "signed with a secret or key that the hub does not have" in line
    assert WRONG not in refusing.log and WRONG.split(".")[2] not in refusing.log
    with pytest.raises(Refused):
        await Client.connect(refusing.port, path="/elsewhere")
    assert "reason=path" in until(lambda: lines(refusing, "connection")[1:], what="another reason")[0]
    await counted(refusing, 'roost_connections_refused_total{reason="token"} 20')


async def test_a_python_client_reads_the_status(refusing):
    """Its WebSocket takes nothing but HTTP/1.1."""
    with pytest.raises(InvalidStatus) as refused:
        async with websocket(f"ws://127.0.0.1:{refusing.port}/realtime/v1/websocket?vsn=1.0.0&apikey={WRONG}"):
            pass
    assert refused.value.response.status_code == 401
    assert "Failed to validate JWT signature" in refused.value.response.body.decode()


async def test_the_address_itself_says_what_it_is_and_what_is_wrong(refusing):
    async with await HTTPConnection.open(refusing.port) as http:
        plain = await http.request("GET", "/realtime/v1/websocket")
        assert plain.status == 426 and b"This is the address of a WebSocket: connect to ws://HOST/realtime/v1/websocket" in plain.body
        bad = await http.request("GET", f"/realtime/v1/websocket?apikey={WRONG}")
        assert bad.status == 401
    with pytest.raises(Refused) as refused:
        await Client.connect(refusing.port, apikey=WRONG)
    assert refused.value.body == bad.body, "as the upgrade has it"


async def test_a_subscription_that_fails_is_in_the_log_and_counted(refusing, cluster):
    with cluster.connect(refusing.database) as sql:
        sql.execute("create table notes (id int primary key)")
    refusing.watch("notes")
    changes = [{"event": "*", "schema": "public", "table": "notes"}]
    async with await Client.connect(refusing.port, apikey=token("nobody")) as client:
        for topic in ("realtime:a", "realtime:b", "realtime:c"):
            await client.join(topic, changes)
            said = await client.next("system")
            assert said.payload["status"] == "error" and "no such role" in said.payload["message"]
        (line,) = until(lambda: lines(refusing, "subscription"), what="the line")
        assert "reason=row_changes" in line and "as nobody: the database has no such role" in line
        await counted(refusing, 'roost_joins_refused_total{reason="row_changes"} 3')
        reply = await client.ask("realtime:d", "phx_join", {"config": {}, "access_token": WRONG})
        assert reply.payload["status"] == "error"
    assert "reason=token" in until(lambda: lines(refusing, "subscription")[1:], what="another reason")[0]
    assert WRONG not in refusing.log


async def test_a_message_that_is_refused_without_an_answer_is_in_the_log_and_counted(refusing):
    async with await Client.connect(refusing.port) as client:
        await client.join("realtime:live-activity:room")
        message = {"type": "broadcast", "event": "summary", "payload": {}}
        for _ in range(3):
            client.push("realtime:live-activity:room", "broadcast", message, client.ref())
        assert await client.settled() == [], "nobody asked for an answer"
        (line,) = until(lambda: lines(refusing, "message"), what="the line")
        assert "reason=message_request" in line and "come from the hub alone" in line
        await counted(refusing, 'roost_messages_refused_total{reason="request"} 3')


async def test_the_live_page_has_the_reasons(hub, open_page):
    for _ in range(2):
        with pytest.raises(Refused):
            await Client.connect(hub.port, apikey=WRONG, source="127.0.0.9")
    page = await open_page()
    rows = "[...document.querySelectorAll('dt')].map((dt) => dt.textContent.trim())"
    # Below the number of all: joins have a line of the same name.
    below = f"{rows}.slice({rows}.indexOf('Upgrades refused')).slice(0, 8)"
    await page.until(f"{below}.includes('bad or expired token')")
