"""Each program of examples/, as its README says to run it: against `roost demo`."""

import asyncio
import json
import pathlib
import re
import sys
import urllib.parse
import urllib.request

import pytest

from support.apns import APNs, new_token
from support.browser import Browser
from support.deadline import eventually
from support.demo import Demo
from support.hub import BINARY, ROOT, Hub
from support.program import Program
from support.tokens import token

EXAMPLES = ROOT / "examples"
CHAT = pathlib.Path(BINARY).with_name("example-chat")
CONVERSATION = "c0000000-0000-4000-8000-000000000001"


@pytest.fixture(scope="module")
def apns():
    with APNs() as apns:
        yield apns


@pytest.fixture(scope="module")
def demo(apns):
    demo = Demo(**apns.environment)
    try:
        # Its statement says who is alerted; key and topic are the stand-in's.
        yield demo.start("--config", str(EXAMPLES / "push/roost.yaml"))
    finally:
        demo.remove()


@pytest.fixture(scope="module")
def people(demo):
    """By name: id, name, token."""
    with urllib.request.urlopen(f"http://127.0.0.1:{demo.port}/demo/api/session", timeout=30) as answer:
        return {person["name"]: person for person in json.load(answer)["users"]}


@pytest.fixture(scope="module")
def browser():
    # Two tabs of one machine without a network: connections over the loopback, by its plain addresses.
    browser = Browser("--allow-loopback-in-peer-connection", "--disable-features=WebRtcHideLocalIpsWithMdns")
    try:
        yield browser
    finally:
        browser.close()


@pytest.fixture
async def open_page(browser, demo):
    """Opens what serve.py prints a link to."""
    pages = []
    async with Program(sys.executable, EXAMPLES / "serve.py", "--port", 0, "--hub", f"http://127.0.0.1:{demo.port}") as server:
        await server.prints("serving")

        async def open_one(name, person):
            links = [line.strip() for line in server.lines if f"/{name}.html#" in line]
            link = next(link for link in links if dict(urllib.parse.parse_qsl(link.split("#")[1]))["name"] == person)
            pages.append(await browser.page(link))
            await pages[-1].until("document.querySelector('#state')?.dataset.state === 'SUBSCRIBED'")
            return pages[-1]

        yield open_one
        for page in pages:
            await page.close()
    assert [page.complaints for page in pages if page.complaints] == []


def shows(element, text):
    return f"document.querySelector('{element}').textContent.includes({json.dumps(text)})"


async def say(page, text):
    await page.run("document.querySelector('#text').focus()")
    await page.type(text)
    await page.run("document.querySelector('form button').click()")


# The first, because it sees people come online: in the others they have been there already.
async def test_receipts_and_last_seen(demo, people):
    settings = {"HUB": f"http://127.0.0.1:{demo.port}"}
    script = EXAMPLES / "receipts/receipts.py"
    async with Program(sys.executable, script, "Grace", **settings) as grace:
        await grace.prints("following")
        async with Program(sys.executable, script, "Ada", **settings) as ada:
            await ada.prints("following")
            await grace.prints("Ada is online")
            with demo.connect() as sql:
                sql.execute("insert into messages (conversation_id, sender_id, body) values (%s, %s, 'Read me')",
                            [CONVERSATION, people["Grace"]["id"]])
            await ada.prints("Grace: Read me")
            await grace.prints("Ada has read: Read me")
        # Cut off, and away when the window is over.
        news = grace.lines.index("following; Ctrl-C ends it")
        await eventually(lambda: any(re.match(r"Ada was last seen \d", line) for line in grace.lines[news:]),
                         what=lambda: f"last seen, in {grace.lines}")


async def test_one_room_for_browsers_python_and_swift(demo, people, open_page):
    hub = f"ws://127.0.0.1:{demo.port}"
    ada, grace = await open_page("chat", "Ada"), await open_page("chat", "Grace")
    await ada.until(shows("#here", "Ada, Grace"))
    # Noted by the page itself: it is over after three seconds.
    await ada.run("""(shown => {
        window.typists = []
        new MutationObserver(() => typists.push(shown.textContent)).observe(shown, {childList: true, characterData: true, subtree: true})
    })(document.querySelector('#typing'))""")
    await grace.run("document.querySelector('#text').focus()")
    await grace.type("Hello <b>all")
    await ada.until("typists.some(text => text.includes('Grace'))")
    await grace.run("document.querySelector('form button').click()")
    # As text, and not as a page.
    await ada.until(shows("#messages", "Hello <b>all"))
    await ada.until("document.querySelector('#typing').textContent === ''")

    async with (
        Program(sys.executable, EXAMPLES / "bot/bot.py", HUB=f"{hub}/realtime/v1", TOKEN=people["Linus"]["token"]) as bot,
        Program(CHAT, "Swift", HUB=hub, TOKEN=people["Margaret"]["token"]) as swift,
    ):
        await bot.prints("SUBSCRIBED")
        await swift.prints("you are in")
        await ada.until(shows("#here", "Bot"))
        await say(ada, "!who")
        await swift.prints("Ada: !who")
        await swift.prints("Bot: Here: Ada, Grace, Swift")
        swift.type("From a terminal")
        await grace.until(shows("#messages", "From a terminal"))
        await swift.prints("Swift: From a terminal")
        assert await swift.ends() == 0
        # A leave is seen at once.
        await ada.until("!" + shows("#here", "Swift"))


async def test_who_is_here(open_page):
    grace = await open_page("presence", "Grace")
    ada, other_tab = await open_page("presence", "Ada"), await open_page("presence", "Ada")
    await grace.until(shows("#people", "Ada (2 tabs)"))
    assert await grace.run("document.querySelector('#count').textContent") == "2"
    await other_tab.run("Object.defineProperty(document, 'hidden', { value: true });"
                        "document.dispatchEvent(new Event('visibilitychange'))")
    await ada.run("Object.defineProperty(document, 'hidden', { value: true });"
                  "document.dispatchEvent(new Event('visibilitychange'))")
    await grace.until(shows("#people", "looking away"))
    await grace.close()
    await ada.until("document.querySelector('#count').textContent === '1'")


async def test_cursors(open_page, people):
    ada, grace = await open_page("cursors", "Ada"), await open_page("cursors", "Grace")
    left, top = await ada.run("(({left, top}) => [left, top])(document.querySelector('#board').getBoundingClientRect())")
    for step in range(20):
        await ada.call("Input.dispatchMouseEvent", type="mouseMoved", x=int(left) + 100 + 5 * step, y=int(top) + 40)
    cursor = f"document.querySelector('.cursor[data-id=\"{people['Ada']['id']}\"]')"
    # Where the pointer was left, though most positions on its way were not sent.
    last = await ada.run("(({left, top, width, height}) => "
                         f"`${{Math.round(({int(left) + 195} - left) / width * 1000) / 1000}} "
                         f"${{Math.round(({int(top) + 40} - top) / height * 1000) / 1000}}`)"
                         "(document.querySelector('#board').getBoundingClientRect())")
    await grace.until(f"{cursor}?.dataset.at === '{last}'")
    await ada.close()
    await grace.until(f"{cursor} === null")


async def test_webrtc(open_page):
    ada, grace = await open_page("webrtc", "Ada"), await open_page("webrtc", "Grace")
    for page in (ada, grace):
        await page.until("document.body.dataset.data === 'open'")
    await say(ada, "Straight to you")
    await grace.until(shows("#messages", "Straight to you"))
    await say(grace, "And back")
    await ada.until(shows("#messages", "And back"))
    assert await ada.run("document.querySelector('#link').textContent") == "connected"


async def test_push(demo, people, apns):
    device = new_token()
    settings = {"HUB": f"http://127.0.0.1:{demo.port}", "TOKEN": people["Katherine"]["token"]}

    async def phone(*words):
        async with Program(sys.executable, EXAMPLES / "push/phone.py", *words, **settings) as program:
            assert await program.ends() == 0, program.lines
            return program.lines

    await phone("register", device)
    with demo.connect() as sql:
        conversation, = sql.execute("select conversation_id from conversation_participants where user_id = %s limit 1",
                                    [people["Katherine"]["id"]]).fetchone()
        sql.execute("insert into messages (conversation_id, sender_id, body) select %s, user_id, 'Wake up' "
                    "from conversation_participants where conversation_id = %s and user_id <> %s limit 1",
                    [conversation, conversation, people["Katherine"]["id"]])
    await eventually(lambda: apns.taken_by(device), what=lambda: f"an alert among {apns.pushes}")
    assert apns.taken_by(device)[0]["payload"]["aps"]["alert"]["body"] == "Wake up"
    await phone("activity", "CHAT-1", new_token(), conversation)
    assert any("CHAT-1" in line for line in await phone("activities"))
    await phone("forget", device)
    assert apns.violations == []


@pytest.fixture
async def replies(cluster, browser, name):
    """backend.py, a hub that passes questions on to it, and pages of one user."""
    secret, user = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwbW8fA3qZ1Yk=", "11111111-1111-4111-8111-111111111111"
    async with Program(sys.executable, EXAMPLES / "replies/backend.py", 0, ROOST_STREAMS_FORWARD_SECRET=secret) as backend:
        port = (await backend.prints("serving on port")).split()[-1]
        hub = Hub(cluster.create_database(name), ROOST_STREAMS_FORWARD_SECRET=secret, ROOST_STREAMS_ROUTES=(
            f"/ask=answer/{{user}};event=type;forward=http://127.0.0.1:{port}/ask,"
            f"/voice=voice/{{user}};event=type;cancel;forward=http://127.0.0.1:{port}/voice"))
        try:
            hub.run("migrate")
            with cluster.connect(name) as sql:
                sql.execute((EXAMPLES / "replies/policies.sql").read_text())
            hub.start()
            serve = [EXAMPLES / "serve.py", "--port", 0, "--hub", f"http://127.0.0.1:{hub.port}", "--token"]
            async with Program(sys.executable, *serve, token("authenticated", sub=user)) as server:
                await server.prints("serving")

                async def open_one(name):
                    page = await browser.page(next(line.strip() for line in server.lines if f"/{name}.html#" in line))
                    await page.until("document.querySelector('#state')?.dataset.state === 'READY'")
                    return page
                yield hub, open_one
        finally:
            hub.remove()


async def test_a_question_by_post(replies):
    _, open_one = replies
    page = await open_one("ask")
    await say(page, "Why?")
    await page.until(shows("#reply", "you asked: Why?"))
    await page.until("document.querySelector('#reply').dataset.state === 'done'")
    assert page.complaints == []
    await page.close()


async def test_a_spoken_reply_that_is_interrupted(replies):
    hub, open_one = replies
    page = await open_one("voice")
    await say(page, "Tell me a long story, please, and then another one.")
    await page.until("document.querySelector('#reply').dataset.seconds > 0.3")
    await page.run("document.querySelector('#text').value = ''")
    await say(page, "Stop!")
    await page.until("document.querySelector('#reply').dataset.state === 'done'")
    assert await page.run(f"{shows('#reply', 'you asked: Stop!')} && !{shows('#reply', 'story')}")
    assert hub.metric('roost_streams_ended_total{reason="cancelled"}') == 1
    await page.close()


def test_the_index_names_every_example():
    index = (EXAMPLES / "README.md").read_text()
    linked = {EXAMPLES / link for link in re.findall(r"\]\((?!#)([^)]+)\)", index)}
    assert [str(link) for link in linked if not link.exists()] == []
    shared = {EXAMPLES / name for name in (
        "README.md", "serve.py", "web/page.js", "web/style.css", "swift-chat/Package.swift")}
    files = {path for path in EXAMPLES.rglob("*") if path.is_file() and not {".build", "__pycache__"} & set(path.parts)}
    assert files - linked - shared == set()
