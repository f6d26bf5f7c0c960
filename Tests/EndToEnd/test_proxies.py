"""Behind proxies: whose word counts about a client's address, and what docs/proxies.md has people configure."""

import asyncio
import grp
import os
import pathlib
import pwd
import stat
import time

import pytest

from support.bounds import at_most
from support.browser import Browser
from support.certificates import Authority
from support.deadline import eventually
from support.http import HTTPConnection
from support.hub import Hub
from support.proxy_page import PageProxy
from support.tokens import token
from support.websocket import Refused
from support.wsclient import Client

PROXY, STRANGER = "127.0.0.2", "127.0.0.3"
AS = ["setpriv"]


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


@pytest.mark.clock
async def test_who_keeps_failing_is_refused_and_the_proxys_other_clients_are_not(hub):
    for _ in range(3):
        assert await status(hub, PROXY, "192.0.2.50", apikey="nonsense") == 401
    assert await status(hub, PROXY, "192.0.2.50") == 429
    with at_most(1, "an upgrade of somebody else"):
        assert await status(hub, PROXY, "192.0.2.51") == 101
        assert await status(hub, PROXY) == 101


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


# The page docs/proxies.md, as it stands.


@pytest.fixture(scope="module")
def paged(cluster, tmp_path_factory):
    """A hub as the page has it: a Unix domain socket beside its port, and proxies that it believes."""
    hub = Hub(
        cluster.create_database("paged"), ROOST_LOOPS="1", ROOST_LIMITS_CONNECTIONS_PER_ADDRESS="2",
        ROOST_LIMITS_FAILURES_PER_MINUTE="0", ROOST_HTTP_TRUSTED_PROXIES="unix, 127.0.0.1")
    hub.path = f"{hub.folder}/hub.sock"
    hub.environment["ROOST_HTTP_SOCKET"] = hub.path
    os.chmod(hub.folder, 0o755)
    hub.authority = Authority(tmp_path_factory.mktemp("authority"))
    hub.pair = hub.authority.pair()
    try:
        hub.run("migrate")
        yield hub.start()
    finally:
        hub.remove()


@pytest.fixture(params=["nginx", "haproxy", "caddy"])
def page_proxy(paged, request):
    proxy = PageProxy(request.param, paged, paged.pair)
    try:
        yield proxy.start()
    finally:
        proxy.remove()


async def test_the_pages_proxies_pass_on_all_that_a_hub_serves_and_log_no_token(paged, page_proxy, name):
    trust, secret = paged.authority.trust, token(sub="whoever-reads-the-log")
    bearer = {"authorization": f"Bearer {secret}"}
    async with await Client.connect(page_proxy.port, tls=trust, apikey=secret) as client:
        await client.join(f"realtime:{name}")
        async with await Client.connect(page_proxy.port, tls=trust, apikey=secret):
            # A third one is refused: it is the client's address that counts, 127.0.0.1, and it has two.
            with pytest.raises(Refused) as refused:
                await Client.connect(page_proxy.port, tls=trust, apikey=secret)
            assert refused.value.status == 429
        await eventually(lambda: paged.metric("roost_connections") == 1, what="the second one gone")
        async with await HTTPConnection.open(page_proxy.port, tls=trust) as http:
            sent = await http.request(
                "POST", f"/api/broadcast/{name}/events/wave", b'{"n": 1}', content_type="application/json", **bearer)
            assert sent.status == 202, sent.body
        assert (await client.next("broadcast")).payload["payload"] == {"n": 1}
    # nginx and HAProxy name the address that they were called from; so a stranger cannot choose one.
    await eventually(lambda: _served(paged, page_proxy, trust, secret), what="the place of whoever left")
    paged.stop()
    try:
        # An event source is broken off, and so comes back; others may be told.
        for accept in ("text/event-stream", "*/*"):
            async with await HTTPConnection.open(page_proxy.port, tls=trust) as http:
                http.write(f"GET /api/broadcast/a/events?apikey={secret} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: {accept}\r\n\r\n".encode())
                if accept == "*/*" and page_proxy.kind != "haproxy":
                    assert (await http.answer()).status == 502
                else:
                    assert await http.ended() == b""
    finally:
        paged.start()
    page_proxy.stop()
    logs = page_proxy.logs
    assert "/realtime/v1/websocket" in logs and ("502" in logs or "503" in logs), logs
    assert secret not in logs and secret.split(".")[1] not in logs, logs


@pytest.fixture(scope="module")
def browser():
    browser = Browser("--ignore-certificate-errors")
    try:
        yield browser
    finally:
        browser.close()


async def test_a_browsers_event_source_comes_back_after_a_restart(paged, page_proxy, name, browser):
    page = await browser.page(f"https://127.0.0.1:{page_proxy.port}/healthcheck")
    await page.until("location.pathname == '/healthcheck' && document.body.innerText == 'ok'")
    await page.run(
        "window.opened = window.failed = 0;"
        f"window.source = new EventSource('/api/broadcast/{name}/events?apikey={token()}');"
        "source.onopen = () => opened++; source.onerror = () => failed++; 0")
    await page.until("opened == 1")
    await asyncio.to_thread(paged.stop)
    try:
        # The end, and an attempt that finds no hub: without what the page says it would be the last.
        await page.until("failed >= 2", 40)
        assert await page.run("source.readyState") == 0, "it has not given up"
    finally:
        paged.start()
    await page.until("opened == 2", 40)
    await page.close()


async def _served(paged, proxy, trust, secret):
    try:
        async with await Client.connect(proxy.port, tls=trust, apikey=secret) as client:
            await client.settled()
            return True
    except Refused:
        return False


@pytest.mark.skipif(os.geteuid() != 0, reason="it takes root to be other users")
async def test_nginx_opens_the_socket_where_its_user_is_in_the_group(paged):
    """And says 502 where it is not."""
    user, group = pwd.getpwnam("www-data"), grp.getgrnam("games")
    os.chown(paged.path, -1, group.gr_gid)
    assert stat.S_IMODE(os.stat(paged.path).st_mode) == 0o660
    os.chmod(paged.pair.key, 0o644)
    for folder in pathlib.Path(paged.pair.key).parents:
        os.chmod(folder, os.stat(folder).st_mode | 0o011) if str(folder) != "/" else None
    for groups, expected in (["--clear-groups"], 502), ([f"--groups={group.gr_gid}"], 101):
        proxy = PageProxy("nginx", paged, paged.pair)
        try:
            os.chown(proxy.folder, user.pw_uid, user.pw_gid)
            proxy.start([*AS, f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", *groups])
            try:
                async with await Client.connect(proxy.port, tls=paged.authority.trust) as client:
                    await client.settled()
                    status = 101
            except Refused as refused:
                status = refused.status
            assert status == expected, proxy.logs
        finally:
            proxy.remove()
