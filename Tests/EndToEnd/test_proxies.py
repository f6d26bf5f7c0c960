"""Behind proxies: whose word counts about a client's address."""

import time

import pytest

from support.hub import Hub
from support.websocket import Refused
from support.wsclient import Client

PROXY, STRANGER = "127.0.0.2", "127.0.0.3"


@pytest.fixture(scope="module")
def hub(cluster):
    hub = Hub(
        cluster.create_database("proxies"), ROOST_LOOPS="1", ROOST_LIMITS_CONNECTIONS_PER_ADDRESS="1",
        ROOST_LIMITS_FAILURES_PER_MINUTE="3", ROOST_HTTP_TRUSTED_PROXIES=f"{PROXY}/32, 10.0.0.0/8, 2001:db8:1::/48")
    try:
        hub.run("migrate")
        yield hub.start()
    finally:
        hub.remove()


async def status(hub, source, forwarded=None, **options):
    """Of an upgrade; a socket that is opened is closed, and its seat free, when this returns."""
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    try:
        async with await Client.connect(hub.port, source=source, headers=headers, **options) as client:
            await client.settled()
            return 101
    except Refused as refused:
        return refused.status


@pytest.mark.parametrize("first, second", [
    ("192.0.2.1", "192.0.2.1"),
    ("192.0.2.1", "198.51.100.7, 192.0.2.1"),
    ("192.0.2.1", "192.0.2.1, 10.1.2.3"),
    ("192.0.2.1", "10.1.2.3, 192.0.2.1, 10.1.2.3,2001:db8:1::5"),
    ("192.0.2.1", "nonsense, 192.0.2.1"),
    ("192.0.2.1", "192.0.2.1:49152"),
    ("192.0.2.1", "::ffff:192.0.2.1"),
    ("2001:db8:2::1", "[2001:db8:2::2]:49152"),
])
async def test_the_last_that_is_no_proxy_is_the_client(hub, first, second):
    async with await Client.connect(hub.port, source=PROXY, headers={"X-Forwarded-For": first}) as client:
        await client.settled()
        assert await status(hub, PROXY, second) == 429
        assert await status(hub, PROXY, "192.0.2.77") == 101
        assert await status(hub, PROXY, f"{first}, 192.0.2.78") == 101


async def test_two_headers_are_one_list(hub):
    async with await Client.connect(hub.port, source=PROXY, headers={"X-Forwarded-For": "192.0.2.1"}):
        assert await status(hub, PROXY, "192.0.2.9\r\nX-Forwarded-For: 192.0.2.1") == 429
        assert await status(hub, PROXY, "192.0.2.1\r\nX-Forwarded-For: 192.0.2.9") == 101


@pytest.mark.parametrize("name", ["X", "X-Auth", "X-Forwarded", "Proxy", "If"])
async def test_no_header_before_it_swallows_it(hub, name):
    """As libwebsockets 4.1 reads names that are the beginning of others."""
    async with await Client.connect(hub.port, source=PROXY, headers={name: "a", "X-Forwarded-For": "192.0.2.1"}) as client:
        await client.settled()
        assert await status(hub, PROXY, "192.0.2.1") == 429


async def test_a_strangers_header_means_nothing(hub):
    async with await Client.connect(hub.port, source=STRANGER, headers={"X-Forwarded-For": "192.0.2.1"}):
        assert await status(hub, STRANGER, "192.0.2.2") == 429, "by its own address it has one already"
        assert await status(hub, PROXY, "192.0.2.1") == 101, "and it took nobody's place"


async def test_a_proxy_that_names_nobody_is_not_counted(hub):
    async with await Client.connect(hub.port, source=PROXY):
        assert await status(hub, PROXY) == 101


async def test_who_keeps_failing_is_refused_and_the_proxys_other_clients_are_not(hub):
    for _ in range(4):
        assert await status(hub, PROXY, "192.0.2.50", apikey="nonsense") == 401
    assert await status(hub, PROXY, "192.0.2.50") == 429
    began = time.monotonic()
    assert await status(hub, PROXY, "192.0.2.51") == 101
    assert await status(hub, PROXY) == 101
    assert time.monotonic() - began < 1, "nobody waits"


async def test_a_stranger_that_keeps_failing_waits(hub):
    source = "127.0.0.4"
    for _ in range(4):
        assert await status(hub, source, "192.0.2.60", apikey="nonsense") == 401
    began = time.monotonic()
    assert await status(hub, source, "192.0.2.61") == 101
    assert time.monotonic() - began > 1.5
    assert await status(hub, PROXY, "192.0.2.60") == 101


@pytest.mark.parametrize("text", ["10.0.0.0/33", "10.0.0", "fe80::/129", "example.com", "10.0.0.0/", "unix:/x", "10.0.0.0/-1"])
def test_what_is_no_network(hub, text):
    done = hub.run("config", "check", check=False, ROOST_HTTP_TRUSTED_PROXIES=text)
    assert done.returncode == 78 and "expected addresses and networks" in done.stderr
