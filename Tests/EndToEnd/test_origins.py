"""Which web pages may use the hub (`http.origins`)."""

import pytest

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
        for method in ("OPTIONS", "POST"):
            asked = await ask(hub, method, "/api/broadcast", origin=origin, apikey=token(), content_type="application/json")
            assert "access-control-allow-origin" not in asked and asked["vary"] == "origin"


@pytest.mark.parametrize("text", [
    "app.example.com", "https://app.example.com/", "https://app.example.com/path", "https://*", "*", "https://a.*.example.com",
    "https://app.example.com:99999", "https://user@app.example.com", "https://",
])
def test_what_is_no_origin(hub, text):
    done = hub.run("config", "check", check=False, ROOST_HTTP_ORIGINS=text)
    assert done.returncode == 78 and "expected origins such as" in done.stderr
