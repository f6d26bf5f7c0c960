"""What tests share: one Postgres and one hub. Each test has a table or a topic of its own."""

import itertools
import os
import re
import signal
import time

import pytest
from _pytest.runner import runtestprotocol

from support import unfairness
from support.browser import Browser
from support.certificates import Authority
from support.cluster import Cluster
from support.http import HTTPConnection
from support.hub import Hub, hubs
from support.ops import LIVE, connect_operator
from support.ports import SecurePort
from support.proxy import Proxy
from support.standstill import Standstills
from support.streams import Stream
from support.swift_probe import Probe
from support.wsclient import Client

_numbers = itertools.count(1)

# Shells start what runs in their background with SIGINT ignored, and whoever inherits that can trap it no more (POSIX): what the
# tests stop by Ctrl-C would not end.
signal.signal(signal.SIGINT, signal.default_int_handler)

if "ROOST_UNFAIR" in os.environ:
    unfairness.begin(f"{os.environ['ROOST_UNFAIR']} {os.environ.get('PYTEST_XDIST_WORKER', '')}")


def pytest_addoption(parser):
    parser.addoption("--write-compatibility", action="store_true", help="writes docs/compatibility.md as the stories of clients end")


@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="session")
def cluster():
    cluster = Cluster()
    try:
        yield cluster.start()
    finally:
        cluster.remove()


@pytest.fixture(scope="module")
def plain():
    """A Postgres without the roles that clients' tokens name."""
    cluster = Cluster()
    try:
        yield cluster.start(roles=False)
    finally:
        cluster.remove()


@pytest.fixture(scope="session")
def shared_hub(cluster):
    # Two loops, so that what one loop tells the other is tested on any machine. The safety poll is what notices a table
    # that was altered or dropped and not written since; every second, so that tests need not wait for three.
    hub = Hub(cluster.create_database("shared"), ROOST_LOOPS="2", ROOST_FEED_SAFETY_POLL_SECONDS="1")
    try:
        hub.run("migrate")
        yield hub.start()
    finally:
        hub.remove()


@pytest.fixture(scope="module")
def secure_hub(cluster, tmp_path_factory):
    """One that ends TLS, on a database of its own."""
    authority = Authority(tmp_path_factory.mktemp("secure"))
    hub = Hub(cluster.create_migrated_database(f"secure_{next(_numbers)}"), ROOST_LOOPS="2").secure(authority.pair(), authority.trust)
    hub.port = SecurePort(hub.port, hub.trust)
    try:
        yield hub.start()
    finally:
        hub.remove()


@pytest.fixture
def hub(request):
    """The hub that all tests share. A test that breaks it is found at once, and not by those after it."""
    shared = request.getfixturevalue("secure_hub" if getattr(request, "param", "plain") == "tls" else "shared_hub")
    yield shared
    if shared.process.poll() is not None:
        log = shared.log[-3000:]
        status = shared.process.returncode
        shared.start()
        pytest.fail(f"the hub ended with {status}: {log}")


@pytest.fixture
def own_hub(cluster):
    """A hub with a database of its own, for tests that stop it or its Postgres."""
    name = f"own_{next(_numbers)}"
    hub = Hub(cluster.create_migrated_database(name))
    hub.database = name
    try:
        yield hub
    finally:
        hub.remove()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """What failed is told with the logs of the hubs that there are, those of other tests too: they may say why."""
    report = yield
    if report.failed:
        report.sections += [(f"log of the hub on port {hub.port}", hub.log[-4000:]) for hub in list(hubs) if os.path.exists(f"{hub.folder}/stderr")]
    return report


_standstills = Standstills()
#: Of a report: that the test was run once more.
AGAIN = "the machine stood still, seconds"


@pytest.hookimpl
def pytest_runtest_protocol(item, nextitem):
    """As pytest's own, and what failed while the machine stood still for longer than tests have to bear is run once more."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    began = time.monotonic()
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    stood_still = _standstills.since(began) if any(report.failed for report in reports) else 0
    if stood_still:
        item.user_properties.append((AGAIN, round(stood_still, 1)))
        item._initrequest()
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_terminal_summary(terminalreporter):
    again = {report.nodeid: dict(report.user_properties)[AGAIN] for reports in terminalreporter.stats.values() for report in reports
             if AGAIN in dict(getattr(report, "user_properties", ()))}
    for test, seconds in again.items():
        terminalreporter.write_line(f"RUN AGAIN {test}: the machine stood still for {seconds} s of it")


@pytest.fixture
def sql(cluster):
    """A connection to the shared hub's database."""
    with cluster.connect("shared") as connection:
        yield connection


@pytest.fixture
def name(request):
    """A name that no other test has, for a table or a topic."""
    plain = re.sub(r"\W+", "_", request.node.name.lower().removeprefix("test_"))[:40].strip("_")
    return f"{plain}_{next(_numbers)}"


@pytest.fixture
def topic(name):
    return f"realtime:{name}"


@pytest.fixture
def table(hub, sql, name):
    """A watched table in `public`; its name."""
    sql.execute(f'create table "{name}" (id int8 primary key, body text, n int4)')
    hub.watch(f'public."{name}"')
    return name


@pytest.fixture
async def connect(hub):
    """Opens raw clients on the shared hub and closes them at the end."""
    clients = []

    async def open_client(version=2, **options):
        clients.append(await Client.connect(hub.port, version, **options))
        return clients[-1]

    yield open_client
    for client in clients:
        await client.close()


@pytest.fixture
async def http(hub):
    """One connection to the shared hub that is kept."""
    async with await HTTPConnection.open(hub.port) as connection:
        yield connection


@pytest.fixture
async def stream(http):
    """A stream of text on the shared hub."""
    stream = Stream(http)
    await stream.create()
    return stream


@pytest.fixture
async def operator(hub):
    client = await connect_operator(hub)
    yield client
    await client.close()


@pytest.fixture
async def open_page(browser, hub, request, tmp_path):
    pages = []

    async def open_one(path="", **options):
        pages.append(await browser.page(f"http://127.0.0.1:{hub.ops_port}/{path}", **options))
        await pages[-1].until(LIVE, 15)
        return pages[-1]

    yield open_one
    folder = os.environ.get("ROOST_E2E_SCREENSHOTS") or tmp_path
    for number, page in enumerate(pages):
        await page.screenshot(f"{folder}/{request.node.name}-{number}.png")
        await page.close()
    assert [page.complaints for page in pages if page.complaints] == []


@pytest.fixture
async def probes():
    """Starts programs around RoostClient, which do what the test says."""
    running = []

    async def start():
        running.append(await Probe().start("session"))
        return running[-1]

    yield start
    for probe in running:
        await probe.close()


@pytest.fixture
async def probe(probes):
    return await probes()


@pytest.fixture
async def way(hub):
    """The network between a probe and the hub."""
    async with Proxy(hub.port) as proxy:
        proxy.url = f"ws://127.0.0.1:{proxy.port}"
        yield proxy


# The longest first: a file is one worker's, and one that begins late is waited for alone.
LONG = ("visibility_policies", "broken_configurations", "slow_readers", "dashboard", "grace", "push_story",
        "push_restarts", "client_stories", "exact_values", "exact_filters",
        "cluster_upgrade", "recovery_crash", "systemd", "users_online", "recovery", "every_row", "limits",
        "push_client", "push_receipts", "demo", "push_hub", "presence_restart", "swift_client", "restarts", "drain", "swift_outbox", "typing", "push_standin")


def pytest_collection_modifyitems(items):
    order = {f"test_{name}": number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: order.get(item.path.stem, len(LONG)))


@pytest.fixture(scope="module")
def browser():
    browser = Browser()
    try:
        yield browser
    finally:
        browser.close()
