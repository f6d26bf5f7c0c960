"""Who is let in, and how the others are told (wire-protocol A1)."""

import asyncio
import json
import time

import pytest

from support.bounds import at_most
from support.tokens import signed, token
from support.websocket import Refused, WebSocket
from support.wsclient import Client

# The hub answers late where an address keeps failing; so every refusal of this file has its own.
_hosts = iter(f"127.0.1.{number}" for number in range(1, 250))


async def refusal(hub, path, headers=None, source=None):
    with pytest.raises(Refused) as caught:
        await WebSocket.open(hub.port, path, headers, source=source or next(_hosts))
    return caught.value


def the_error(answer):
    assert answer.headers["content-type"].startswith("application/json")
    return json.loads(answer.body)["error"]


PATH = "/realtime/v1/websocket"


@pytest.mark.parametrize("prefix", ["/realtime/v1", "/socket"])
async def test_refusals_of_bad_tokens(hub, prefix):
    soon = int(time.time()) + 600
    cases = {
        "": "API key is missing",
        "apikey=": "API key is missing",
        "apikey=" + token(lifetime=-1): "Token has expired",
        "apikey=" + signed({"exp": soon}): "Fields `role` and `exp` are required in JWT",
        "apikey=" + signed({"role": "anon"}): "Fields `role` and `exp` are required in JWT",
        "apikey=nonsense": "The token provided is not a valid JWT",
        "apikey=a.b.c": "The token provided is not a valid JWT",
        "apikey=" + signed({"role": "anon", "exp": soon}, secret="not the hub's secret at all, not it"):
            "Failed to validate JWT signature",
        "apikey=" + signed({"role": "anon", "exp": soon}, header={"alg": "none"}): "Failed to validate JWT signature",
        "apikey=" + signed({"role": "anon", "exp": soon, "iat": "yesterday"}): "The token provided is not a valid JWT",
    }
    for query, text in cases.items():
        answer = await refusal(hub, f"{prefix}/websocket?vsn=2.0.0&{query}")
        assert (answer.status, the_error(answer)) == (401, text), query


@pytest.mark.parametrize("vsn", ["3.0.0", "0.9.0", "2", "2.1.0", "x", "1.1.0", ""])
async def test_an_odd_version_is_refused_with_an_empty_body(hub, vsn):
    answer = await refusal(hub, f"{PATH}?apikey={token()}&vsn={vsn}")
    assert (answer.status, answer.body) == (403, b"")


@pytest.mark.parametrize("vsn", ["1.0.0", "1.0.1", "2.0.0", "2.0.9"])
async def test_versions_match_as_semver_does(hub, vsn):
    await (await WebSocket.open(hub.port, f"{PATH}?vsn={vsn}&apikey={token()}")).close()


async def test_the_header_wins_over_the_query(hub):
    socket = await WebSocket.open(hub.port, f"{PATH}?vsn=2.0.0&apikey=nonsense", {"x-api-key": token()})
    await socket.close()
    answer = await refusal(hub, f"{PATH}?vsn=2.0.0&apikey={token()}", {"x-api-key": "nonsense"})
    assert answer.status == 401


async def test_other_parameters_are_ignored_and_extensions_declined(hub):
    socket = await WebSocket.open(
        hub.port, f"{PATH}?log_level=info&eventsPerSecond=10&apikey={token()}&vsn=2.0.0",
        {"Sec-WebSocket-Extensions": "permessage-deflate; client_max_window_bits", "Origin": "https://elsewhere.example"})
    await socket.close()


async def test_a_long_token(hub):
    """Identity services put much into a token."""
    socket = await WebSocket.open(hub.port, f"{PATH}?vsn=2.0.0&apikey={token(app_metadata={'x': 'y' * 5000})}")
    await socket.close()


async def test_an_upgrade_elsewhere(hub):
    for path in ("/", "/websocket", "/realtime/v1/other", "/socket/longpoll", "/realtime/v1/websocket/more"):
        answer = await refusal(hub, f"{path}?apikey={token()}&vsn=2.0.0")
        assert answer.status == 404, path


async def test_an_upgrade_without_a_key_or_with_another_version(hub):
    answer = await refusal(hub, f"{PATH}?apikey={token()}&vsn=2.0.0", {"Sec-WebSocket-Key": None})
    assert answer.status == 400
    answer = await refusal(hub, f"{PATH}?apikey={token()}&vsn=2.0.0", {"Sec-WebSocket-Version": "8"})
    assert answer.status == 426
    assert answer.headers["sec-websocket-version"] == "13"


@pytest.mark.clock
async def test_the_first_failures_are_answered_at_once_and_those_that_go_on_late(hub):
    source = next(_hosts)
    # Ten (`limits.failures_per_minute`), whichever loop they reach.
    for _ in range(10):
        with at_most(1, "a developer's first mistake"):
            await refusal(hub, f"{PATH}?vsn=2.0.0&apikey=nonsense", source=source)
    with at_most(4, "an address that keeps failing") as elapsed:
        await refusal(hub, f"{PATH}?vsn=2.0.0&apikey=nonsense", source=source)
        assert elapsed.seconds > 1.5, "it waits"
    # Nobody else does.
    with at_most(1, "the refusal of another address"):
        await refusal(hub, f"{PATH}?vsn=2.0.0&apikey=nonsense")


async def test_a_loop_that_waits_is_not_called_busy(own_hub):
    """The end of a connection is the last thing that happens before a loop waits, and no turn that goes on until it wakes."""
    own_hub.environment["ROOST_LOOPS"] = "1"
    own_hub.start()
    for _ in range(10):
        async with await Client.connect(own_hub.port) as client:
            await client.settled()
        await asyncio.sleep(0.3)
    # A busy machine may stop the hub now and then, but not each time.
    assert own_hub.metric("roost_loop_stalls_total") < 8
