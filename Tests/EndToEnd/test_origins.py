"""Which web pages may use the hub (`http.origins`)."""

import asyncio
import base64
import contextlib
import itertools

import pytest

from support.certificates import Authority
from support.deadline import eventually
from support.http import HTTPConnection
from support.hub import Hub
from support.tokens import token
from support.websocket import Refused
from support.wsclient import Client


@pytest.fixture(scope="module")
def hub(cluster):
    hub = Hub(
        cluster.create_database("origins"), ROOST_LOOPS="1",
        ROOST_HTTP_ORIGINS="https://app.example.com, https://*.preview.example.com https://X.example.com:443, "
                           "http://localhost:5173,http://[::1]:3000, capacitor://localhost")
    try:
        hub.run("migrate")
        yield hub.start()
    finally:
        hub.remove()


ALLOWED = [
    "https://app.example.com", "https://a.preview.example.com", "https://a-1.b.preview.example.com", "https://x.example.com",
    "http://localhost:5173", "http://[::1]:3000", "capacitor://localhost", "HTTPS://APP.example.com",
]
FOREIGN = [
    "https://example.com", "http://app.example.com", "https://app.example.com:8443", "https://preview.example.com",
    "https://.preview.example.com", "https://evil.org/.preview.example.com", "https://a.preview.example.com.evil.org",
    "https://evil.org#.preview.example.com", "http://a.preview.example.com", "http://localhost", "null", "*", "nonsense",
]


@pytest.mark.parametrize("origin", [*ALLOWED, None])
async def test_these_are_let_in(hub, origin):
    async with await Client.connect(hub.port, headers={"Origin": origin}) as client:
        await client.settled()


async def test_others_are_refused_and_counted(hub):
    for origin in FOREIGN:
        with pytest.raises(Refused) as refused:
            await Client.connect(hub.port, headers={"Origin": origin})
        assert refused.value.status == 403, origin
        assert b"http.origins" in refused.value.body
    counted = f'roost_connections_refused_total{{reason="origin"}} {len(FOREIGN)}\n'
    await eventually(lambda: counted in hub.ops("/metrics")[1], what="the refusals counted")


async def ask(hub, method, path, **headers):
    async with await HTTPConnection.open(hub.port) as http:
        body = {"messages": []} if method == "POST" else None
        return (await http.request(method, path, body, **headers)).headers


async def test_answers_may_be_read_by_pages_of_the_list(hub):
    for origin in ALLOWED:
        asked = await ask(hub, "OPTIONS", "/api/broadcast", origin=origin)
        assert asked["access-control-allow-origin"] == origin and asked["vary"] == "origin"
        assert "POST" in asked["access-control-allow-methods"]
        answered = await ask(hub, "POST", "/api/broadcast", origin=origin, apikey=token(), content_type="application/json")
        assert answered["access-control-allow-origin"] == origin and answered["vary"] == "origin"
    for origin in (*FOREIGN, None):
        for method in ("OPTIONS", "POST") if origin else ("OPTIONS",):
            asked = await ask(hub, method, "/api/broadcast", origin=origin, apikey=token(), content_type="application/json")
            assert "access-control-allow-origin" not in asked and asked["vary"] == "origin"


CALLS = [
    ("POST", "/api/broadcast", b'{"messages": []}'), ("POST", "/api/broadcast/t/events/e", b"{}"), ("POST", "/api/sse/ticket", b""),
    ("GET", "/api/broadcast/t/events", None), ("PUT", "/streams/a", b""), ("POST", "/streams/a", b"x"),
    ("POST", "/streams/a/cancel", b""), ("DELETE", "/streams/a", None), ("GET", "/streams/a", None), ("HEAD", "/streams/a", None),
    ("GET", "/api/channels", None), ("POST", "/api/users/ann/disconnect", b"{}"), ("GET", "/api/ping", None),
    ("GET", "/healthcheck", None), ("GET", "/nowhere", None), ("PATCH", "/nowhere", b"x"),
]


@pytest.mark.parametrize("method, path, body", CALLS)
async def test_nothing_is_carried_out_for_other_pages(hub, method, path, body):
    """Whatever is asked: what a page may not read the answer to, it may not cause either."""
    async def status(**headers):
        async with await HTTPConnection.open(hub.port) as http:
            answer = await http.request(
                method, path, body, apikey=token("service_role"), content_type="application/json", **headers)
            return answer.status
    for origin in ("https://evil.example", "null", f"http://127.0.0.1:{hub.port}"):
        assert await status(origin=origin, sec_fetch_site="cross-site") == 403, origin
    # As on every hub: for what is no page, for a page of the list, and for one of the hub's own origin.
    as_ever = await status()
    assert as_ever != 403
    assert await status(origin=ALLOWED[0]) != 403
    assert await status(origin=f"http://127.0.0.1:{hub.port}", sec_fetch_site="same-origin") != 403


async def test_a_page_of_the_hubs_own_origin_may_open_a_socket(hub):
    own = {"Origin": f"http://127.0.0.1:{hub.port}", "Sec-Fetch-Site": "same-origin"}
    async with await Client.connect(hub.port, headers=own) as client:
        await client.settled()


TRACING = "baggage,sentry-trace,traceparent,x-request-id"


@pytest.mark.parametrize("tls", [False, True])
async def test_a_page_may_send_what_traces_its_requests(hubs, tls):
    async def allowed(origins, origin, asked):
        async with await HTTPConnection.open(hubs[origins, tls].port, tls=hubs[origins, tls].trust) as http:
            answer = await http.request(
                "OPTIONS", "/api/broadcast", None, origin=origin, access_control_request_method="POST",
                access_control_request_headers=asked)
            assert answer.status == 204
            return answer.headers["access-control-allow-headers"].split(", ")
    assert {*TRACING.split(","), "authorization"} <= set(await allowed("", STRANGER, TRACING))
    assert {*TRACING.split(","), "authorization"} <= set(await allowed(PAGE, PAGE, TRACING))
    assert "traceparent" not in await allowed(PAGE, STRANGER, TRACING)
    assert not any(name.startswith("a") and name[1:].isdigit() for name in await allowed("", PAGE, ",".join(f"a{n}" for n in range(999))))


async def test_health_may_be_read_by_pages(hubs):
    for path in ("/healthcheck", "/api/ping", "/realtime/v1/api/ping"):
        assert (await ask(hubs["", False], "GET", path, origin=STRANGER))["access-control-allow-origin"] == "*"
        assert (await ask(hubs[PAGE, False], "GET", path, origin=PAGE))["access-control-allow-origin"] == PAGE
        assert "access-control-allow-origin" not in await ask(hubs[PAGE, False], "GET", path, origin=STRANGER)
        # What is a backend's own is not for pages: it takes a token that none should have.
        channels = await ask(hubs["", False], "GET", "/api/channels", origin=STRANGER, apikey=token("service_role"))
        assert "access-control-allow-origin" not in channels


# Errors, whoever gives them: a browser shows a page neither the status nor the reason of what it may not read.

PAGE, STRANGER = "https://app.example.com", "https://evil.example"
MEGABYTE = 1 << 20
LIMITS = {"ROOST_LOOPS": "1", "ROOST_TIMEOUTS_BODY": "5", "ROOST_LIMITS_UNFINISHED_BYTES": str(MEGABYTE),
          "ROOST_LIMITS_FAILURES_PER_MINUTE": "1000"}
POST, SOCKET = "POST /api/broadcast/t/events/e", "GET /realtime/v1/websocket"
KEY = base64.b64encode(bytes(16)).decode()
UPGRADE = ("upgrade: websocket", "connection: Upgrade", f"sec-websocket-key: {KEY}", "sec-websocket-version: 13")


def error(status, first, *lines, body=b"", knows_the_page=True):
    return pytest.param(status, first, lines, body, knows_the_page, id=f"{status} {first} {' '.join(lines)}"[:60])


ERRORS = [
    error(400, POST, "{bearer}", "transfer-encoding: chunked", body=b"x\r\n"),
    error(400, SOCKET, "upgrade: websocket"),
    error(401, POST, "content-length: 2", body=b"{}"),
    error(401, SOCKET + "?apikey=x"),
    error(401, SOCKET, *UPGRADE),
    error(403, SOCKET + "?apikey={token}&vsn=9", *UPGRADE),
    error(403, POST + "?private=1", "{bearer}", "content-length: 2", body=b"{}"),
    error(404, "GET /nowhere"),
    error(404, "POST /nowhere", "content-length: 2", body=b"{}"),
    error(405, "GET /api/broadcast"),
    error(405, "POST /realtime/v1/websocket", "content-length: 0"),
    error(405, "TRACE /nowhere"),
    error(408, POST, "{bearer}", "content-length: 5", body=b"{"),
    error(411, POST, "{bearer}"),
    error(413, POST, "{bearer}", "content-length: 5000001"),
    error(415, POST, "{bearer}", "content-type: text/plain", "content-length: 2", body=b"{}"),
    error(422, POST, "{bearer}", "content-length: 1", body=b"{"),
    error(426, SOCKET),
    error(426, SOCKET, *UPGRADE[:3]),
    error(501, "BREW /nowhere"),
    error(503, POST, "{bearer}", "content-length: 4000000", body=b"x" * (MEGABYTE + 1)),
    # The head was not taken, so nobody knows whose it was.
    error(400, "GET /nowhere", "no colon", knows_the_page=False),
    error(408, "GET /nowhere", "a: ", knows_the_page=False),
    error(414, "GET /" + "a" * 9000, knows_the_page=False),
    error(431, "GET /nowhere", "a: " + "b" * 20_000, knows_the_page=False),
]


@pytest.fixture(scope="module")
def hubs(cluster, tmp_path_factory):
    """For all pages and for one, plain and over TLS."""
    authority = Authority(tmp_path_factory.mktemp("certificates"))
    with contextlib.ExitStack() as stack:
        made = {}
        for number, (origins, tls) in enumerate(itertools.product(("", PAGE), (False, True))):
            hub = Hub(cluster.create_database(f"readable{number}"), ROOST_HTTP_ORIGINS=origins, **LIMITS)
            stack.callback(hub.remove)
            if tls:
                hub.secure(authority.pair(), authority.trust)
            hub.run("migrate")
            made[origins, tls] = hub.start()
        yield made


async def refused(hub, status, first, lines, body, origin):
    mine = token()
    filled = [line.format(token=mine, bearer=f"authorization: Bearer {mine}") for line in (first, *lines)]
    head = "\r\n".join([f"{filled[0]} HTTP/1.1", "host: x", *([f"origin: {origin}"] if origin else []), *filled[1:]])
    async with await HTTPConnection.open(hub.port, tls=hub.trust) as http:
        http.write(head.encode() + (b"" if status == 408 and not body else b"\r\n\r\n") + body)
        answer = await http.answer()
    assert answer.status == status, answer.body
    return answer.headers


@pytest.mark.parametrize("status, first, lines, body, knows_the_page", ERRORS)
async def test_errors_may_be_read_by_the_pages_that_are_let_in(hubs, status, first, lines, body, knows_the_page):
    async def check(origins, is_tls, origin):
        # Pages of others are refused before anything else of a head is looked at.
        says = 403 if origins and origin == STRANGER and knows_the_page else status
        headers = await refused(hubs[origins, is_tls], says, first, lines, body, origin)
        reader = "*" if not origins else PAGE if origin == PAGE and knows_the_page else None
        assert headers.get("access-control-allow-origin") == reader, (origins, is_tls, origin)
        assert headers.get("vary") == ("origin" if origins else None)

    # What holds much comes alone, and what takes long beside the others.
    cases = [(origins, is_tls, origin) for origins, is_tls in hubs for origin in (PAGE, STRANGER, None)]
    if status == 408:
        await asyncio.gather(*(check(*case) for case in cases))
    else:
        for case in cases:
            await check(*case)


async def test_nothing_of_the_operators_may_be_read_by_pages(hub):
    for first in ("GET /nowhere", "BREW /", "POST /metrics", "GET /ops/websocket"):
        async with await HTTPConnection.open(hub.ops_port) as http:
            http.write(f"{first} HTTP/1.1\r\nhost: localhost\r\norigin: {ALLOWED[0]}\r\ncontent-length: 0\r\n\r\n".encode())
            answer = await http.answer()
            assert answer.status >= 400 and "access-control-allow-origin" not in answer.headers, first


@pytest.mark.parametrize("text", [
    "app.example.com", "https://app.example.com/", "https://app.example.com/path", "https://*", "*", "https://a.*.example.com",
    "https://app.example.com:99999", "https://user@app.example.com", "https://",
])
def test_what_is_no_origin(hub, text):
    done = hub.run("config", "check", check=False, ROOST_HTTP_ORIGINS=text)
    assert done.returncode == 78 and "expected origins such as" in done.stderr
