"""The demo as a visitor sees it: `roost demo`, and its chat page in a browser (hooks: Sources/Demo/API.md)."""

import json
import os
import subprocess
import time
import urllib.error
import urllib.request

import pytest

from support.bounds import Elapsed, taken
from support.deadline import until
from support.demo import Demo
from support.wsclient import Client

SCREENSHOTS = os.environ.get("ROOST_E2E_SCREENSHOTS")
GRACE = "22222222-2222-4222-8222-222222222222"
CONVERSATION = "c0000000-0000-4000-8000-000000000001"


@pytest.fixture(scope="module")
def demo():
    demo = Demo()
    try:
        yield demo.start()
    finally:
        demo.remove()


@pytest.fixture
async def open_page(browser, demo, request, tmp_path):
    pages = []

    async def open_one(query="", panes=(0, 1)):
        page = await browser.page(demo.page + query)
        pages.append(page)
        for pane in panes:
            await page.until(live(pane))
            await page.until(f"{hook(pane, 'message-list')}.dataset.state === 'ready'")
        return page

    yield open_one
    folder = SCREENSHOTS or str(tmp_path)
    for number, page in enumerate(pages):
        if not page.is_closed:
            await page.screenshot(f"{folder}/{request.node.name}-{number}.png")
        await page.close()
    assert [page.complaints for page in pages if page.complaints] == []


def hook(pane, name):
    return f"document.querySelector('[data-testid=pane-{pane}] [data-testid={name}]')"


def live(pane):
    return f"{hook(pane, 'connection-state')}?.dataset.state === 'live'"


def messages(pane, body):
    return (f"[...document.querySelectorAll('[data-testid=pane-{pane}] [data-testid=message]')]"
            f".filter(message => message.querySelector('.body').textContent === {json.dumps(body)})")


def shows(pane, body):
    return f"{messages(pane, body)}.length === 1"


async def say(page, pane, text, enter=True):
    await page.run(f"{hook(pane, 'composer')}.focus()")
    await page.type(text, enter)


def psql(demo, session, statement):
    """With the command line that the page shows."""
    subprocess.run(f'{session["psql"]} -q -v ON_ERROR_STOP=1 -c "{statement}"', shell=True, check=True)


def get(demo, path, headers=None, method="GET", body=None):
    request = urllib.request.Request(f"http://127.0.0.1:{demo.port}{path}", headers=headers or {}, method=method, data=body)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except urllib.error.HTTPError as answer:
        return answer.code, dict(answer.headers), answer.read()


@pytest.fixture
def session(demo):
    return json.loads(get(demo, "/demo/api/session")[2])


def insert(body, sender=GRACE):
    return f"insert into messages (conversation_id, sender_id, body) values ('{CONVERSATION}', '{sender}', '{body}')"


async def test_a_row_inserted_with_psql_appears_in_both_panes(demo, session, open_page):
    page = await open_page()
    elapsed = Elapsed()
    psql(demo, session, insert("Hello from psql"))
    for pane in (0, 1):
        await page.until(shows(pane, "Hello from psql"))
    shown = time.monotonic()
    latency = await page.run(f"+{messages(0, 'Hello from psql')}[0].dataset.latencyMs")
    print(f"\ncommit to page: {latency} ms")
    assert latency < 500 or latency / 1000 - taken(elapsed.since, shown, 0.5) < 0.5
    assert "psql" in await page.run("document.querySelector('[data-testid=psql-command]').textContent")


async def test_a_message_goes_from_pane_to_pane_and_is_ticked_off(open_page):
    page = await open_page()
    await say(page, 0, "From the left")
    await page.until(shows(1, "From the left"))
    await page.until(f"{messages(0, 'From the left')}[0].dataset.status === 'read'")
    await say(page, 1, "From the right")
    await page.until(shows(0, "From the right"))
    await page.until(shows(1, "From the right"))


async def test_two_pages_see_each_others_presence_and_typing(open_page):
    ada = await open_page("?user=ada", panes=(0,))
    await ada.until(f"{hook(0, 'presence')}.dataset.state === 'offline'")
    bob = await open_page("?user=grace", panes=(0,))
    await ada.until(f"{hook(0, 'presence')}.dataset.state === 'online'")
    await bob.until(f"{hook(0, 'presence')}.dataset.state === 'online'")
    # Noted by the page itself: it is over after three seconds.
    await ada.run(f"""(shown => {{
        window.typists = []
        new MutationObserver(() => {{ if (shown.dataset.state === 'active') typists.push(shown.dataset.users) }})
            .observe(shown, {{attributes: true}})
    }})({hook(0, 'typing')})""")
    await say(bob, 0, "I am wri", enter=False)
    await ada.until("typists.length > 0")
    assert await bob.run("document.querySelector('[data-testid=pane-0]').dataset.userId") in await ada.run("typists")
    if SCREENSHOTS:
        await ada.screenshot(f"{SCREENSHOTS}/typing.png")
    await ada.until(f"{hook(0, 'typing')}.dataset.state === 'idle'")
    await say(bob, 0, "ting")
    await ada.until(shows(0, "I am writing"))
    await bob.close()
    await ada.until(f"{hook(0, 'presence')}.dataset.state === 'offline'")


async def test_what_was_missed_while_the_socket_was_dropped_appears(demo, session, open_page):
    page = await open_page()
    await page.run(f"{hook(0, 'drop-button')}.click()")
    # Whoever is cut off does not know who is there; on a busy machine it is back before the rest is seen.
    await page.until(f"{hook(0, 'connection-state')}.dataset.state === 'reconnecting' && {hook(0, 'presence')}.dataset.state === 'unknown'")
    await page.until(f"{hook(1, 'presence')}.dataset.state === 'offline'")
    psql(demo, session, insert("Missed by the left"))
    await page.until(shows(1, "Missed by the left"))
    assert await page.run(f"{hook(0, 'presence')}.textContent") == "You are offline"
    await say(page, 0, "Written in a tunnel")
    await page.until(f"{messages(0, 'Written in a tunnel')}[0].querySelector('.why').textContent.includes('this pane is offline')")
    assert await page.run(f"{messages(0, 'Written in a tunnel')}[0].dataset.status") == "pending"
    assert not await page.run(shows(1, "Written in a tunnel")), "a phone in a tunnel sends nothing"
    if SCREENSHOTS:
        await page.screenshot(f"{SCREENSHOTS}/dropped.png")
    assert not await page.run(shows(0, "Missed by the left"))
    await page.run(f"{hook(0, 'drop-button')}.click()")
    await page.until(live(0))
    await page.until(shows(0, "Missed by the left"))
    await page.until(shows(1, "Written in a tunnel"))
    await page.until(f"['sent', 'delivered', 'read'].includes({messages(0, 'Written in a tunnel')}[0].dataset.status)")
    assert await page.run(f"{messages(0, 'Written in a tunnel')}[0].querySelector('.why').textContent") == ""
    await page.until(f"{hook(0, 'presence')}.dataset.state === 'online'")
    ids = await page.run("[...document.querySelectorAll('[data-testid=pane-0] [data-testid=message]')].map(m => +m.dataset.messageId)")
    assert ids == sorted(set(ids)), "each once, in order"


async def test_the_first_look_says_what_to_try_and_where_to_look(demo, open_page):
    page = await open_page()
    assert not await page.run("document.querySelector('[data-testid=tries]').checkVisibility()")
    await page.run("document.querySelector('[data-testid=try-button]').click()")
    await page.until("document.querySelector('[data-testid=tries]').checkVisibility()")
    if SCREENSHOTS:
        await page.screenshot(f"{SCREENSHOTS}/try.png")
    links = await page.run("[...document.querySelectorAll('a.operator')].filter(link => !link.closest('[hidden]')).map(link => link.href)")
    assert links == [f"http://127.0.0.1:{demo.ops_port}/"] * 2


@pytest.mark.parametrize("query, panes, width, height, scheme", [
    ("", (0, 1), 1280, 820, "light"), ("", (0, 1), 1280, 820, "dark"), ("", (0, 1), 390, 844, "light"), ("?user=ada", (0,), 390, 844, "dark")])
async def test_the_page_fits_the_screen(demo, browser, query, panes, width, height, scheme):
    page = await browser.page(demo.page + query, width=width, height=height)
    await page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    for pane in panes:
        await page.until(live(pane))
        await page.until(f"{hook(pane, 'message-list')}.dataset.state === 'ready'")
    if SCREENSHOTS:
        await page.screenshot(f"{SCREENSHOTS}/demo-{width}-{len(panes)}-{scheme}.png")
    assert await page.run("document.documentElement.scrollWidth <= innerWidth")
    for pane in panes:
        bottom = await page.run(f"document.querySelector('[data-testid=pane-{pane}]').getBoundingClientRect().bottom")
        assert bottom <= height, "both people are on the first screen"
    command = "document.querySelector('[data-testid=psql-command]')"
    assert await page.run(f"{command}.scrollWidth <= {command}.clientWidth && {command}.scrollHeight <= {command}.clientHeight"), (
        "the whole command is shown")
    assert page.complaints == []
    await page.close()


async def test_a_database_that_is_away_is_said_and_what_was_written_goes_out_when_it_is_back(demo, browser):
    page = await browser.page(demo.page)
    for pane in (0, 1):
        await page.until(live(pane))
    operator = await browser.page(f"http://127.0.0.1:{demo.ops_port}/")
    await operator.until("document.querySelector('#ready')?.textContent === 'Ready'")
    demo.postgres("stop")
    try:
        await operator.until("document.querySelector('#ready').textContent === 'Not ready'")
        assert (await operator.run("document.querySelector('#trouble').textContent")).startswith("Not ready: ")
        assert not await operator.run("document.querySelector('#line').checkVisibility()"), "no green word beside a red one"
        for pane in (0, 1):
            await page.until(f"{hook(pane, 'connection-state')}.dataset.state === 'stalled'")
            assert "Postgres does not answer" in await page.run(f"{hook(pane, 'notice')}.textContent")
        await say(page, 0, "Written in an outage")
        await page.until(f"{messages(0, 'Written in an outage')}[0]?.querySelector('.why').textContent.includes('Postgres does not answer')")
        assert await page.run(f"{messages(0, 'Written in an outage')}[0].dataset.status") == "pending"
        if SCREENSHOTS:
            await page.screenshot(f"{SCREENSHOTS}/outage.png")
            await operator.screenshot(f"{SCREENSHOTS}/outage-live-page.png")
    finally:
        demo.postgres("restart")
    for pane in (0, 1):
        await page.until(live(pane), 30)
        await page.until(shows(pane, "Written in an outage"), 30)
        assert await page.run(f"{hook(pane, 'notice')}.textContent") == ""
    await operator.until("document.querySelector('#ready').textContent === 'Ready'")
    for each in (page, operator):
        await each.close()


async def test_markup_in_a_message_is_text(demo, session, open_page):
    page = await open_page()
    markup = "<img src=x onerror=alert(1)><b>bold</b>"
    psql(demo, session, insert(markup))
    await page.until(shows(0, markup))
    assert await page.run("document.querySelectorAll('[data-testid=message] img, [data-testid=message] b').length") == 0


def test_the_api_refuses_other_hosts_and_strangers(demo, session):
    assert get(demo, "/demo/api/session", {"Host": "evil.example"})[0] == 403
    assert get(demo, "/demo/api/conversations")[0] == 401
    mine = {"Authorization": "Bearer " + session["users"][0]["token"]}
    status, _, body = get(demo, "/demo/api/conversations", mine)
    assert status == 200 and json.loads(body)
    assert get(demo, "/demo/api/conversations/not-a-uuid/messages", mine)[0] == 400
    assert get(demo, "/demo/api/nothing", mine)[0] == 404
    assert get(demo, "/demo/api/messages", mine)[0] == 405
    assert get(demo, "/demo/api/messages", mine, "POST", b"{broken")[0] == 400
    assert get(demo, "/demo/api/messages", mine, "POST", b'{"body":"' + b"x" * 70_000 + b'"}')[0] == 413


def test_static_files(demo):
    status, headers, body = get(demo, "/demo/")
    assert status == 200 and b"<!doctype html" in body[:100].lower()
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert get(demo, "/demo")[0] == 200, "a redirect to /demo/"
    for path in ("/demo/nothing.js", "/demo/../Package.swift", "/demo/%2e%2e/Package.swift", "/demo/..%2fsecret", "/demo//etc/passwd"):
        assert get(demo, path)[0] in (400, 404), path


@pytest.mark.parametrize("arguments", [[], ["--fresh"]])
def test_a_second_demo_in_the_same_folder_says_so_and_leaves_the_first_alone(demo, session, arguments):
    with demo.connect() as sql:
        second = Demo()
        try:
            second.start("--folder", f"{demo.folder}/.roost", *arguments, wait=False)
            assert second.process.wait(30) == 69, second.output
            until(lambda: "choose another --folder" in "".join(second.output), what=lambda: f"a sentence in {second.output}")
        finally:
            second.remove()
        assert sql.execute("select 1").fetchone() == (1,), "the first one's Postgres runs"
    assert get(demo, "/demo/api/session")[0] == 200


async def test_the_data_stays_and_the_second_start_is_quick(demo, session):
    """Ctrl-C stops all that was started. Last but one in this file, because it restarts what the others share."""
    with demo.connect() as sql:
        sql.execute(insert("Kept over a restart"))
    client = await Client.connect(demo.port, apikey=session["users"][0]["token"])
    began = time.monotonic()
    assert demo.interrupt() == 0
    print(f"\nstop: {time.monotonic() - began:.1f} s")
    assert not demo.postgres_runs, "Ctrl-C stops the private Postgres, too"
    starting = Elapsed()
    demo.start()
    started = starting.seconds
    print(f"second start: {started:.1f} s")
    starting.assert_at_most(5, "the second start")
    with demo.connect() as sql:
        assert sql.execute("select count(*) from messages where body = 'Kept over a restart'").fetchone() == (1,)
    again = await Client.connect(demo.port, apikey=session["users"][0]["token"])  # pages keep their tokens
    for each in (client, again):
        await each.close()


@pytest.mark.parametrize("moment", ["Starting", "ready"])
def test_ctrl_c_during_the_start_leaves_nothing_running(moment):
    demo = Demo()
    try:
        demo.start(wait=False)
        until(lambda: any(moment in line for line in demo.output) or demo.process.poll() is not None, 30, f"{moment!r}", every=0.005)
        demo.interrupt(30)
        until(lambda: not demo.postgres_runs, what="no Postgres")
    finally:
        demo.remove()


def test_the_port_of_postgres_is_in_use(demo):
    other = Demo()
    other.postgres_port = demo.postgres_port
    try:
        other.start(wait=False)
        assert other.process.wait(40) == 69
        until(lambda: "--postgres-port" in "".join(other.output), what="the sentence that says what to do")
    finally:
        other.remove()


def test_the_port_of_the_hub_is_in_use(demo):
    other = Demo()
    other.port = demo.port
    try:
        other.start(wait=False)
        assert other.process.wait(40) == 69
        until(lambda: str(demo.port) in "".join(other.output), what="the sentence that names the port")
        assert not other.postgres_runs
    finally:
        other.remove()


def test_programs_of_postgres_that_are_not_there(monkeypatch):
    monkeypatch.setenv("ROOST_POSTGRES_BIN", "/nowhere/bin")
    other = Demo()
    try:
        other.start(wait=False)
        assert other.process.wait(40) == 69
        until(lambda: "ROOST_POSTGRES_BIN is /nowhere/bin" in "".join(other.output), what="the sentence that says what to do")
    finally:
        other.remove()
