"""The demo's people see exactly their conversations, through the policies of its schema."""

import json
import urllib.request

import pytest

from support.demo import Demo
from support.wsclient import Client

BOTH, CORNER = "c0000000-0000-4000-8000-000000000001", "c0000000-0000-4000-8000-000000000004"
ADA, GRACE, LINUS = ("11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222",
                     "33333333-3333-4333-8333-333333333333")


@pytest.fixture(scope="module")
def demo():
    demo = Demo()
    try:
        yield demo.start()
    finally:
        demo.remove()


@pytest.fixture
def tokens(demo):
    with urllib.request.urlopen(f"http://127.0.0.1:{demo.port}/demo/api/session", timeout=30) as answer:
        return {user["id"]: user["token"] for user in json.load(answer)["users"]}


def say(demo, conversation, body):
    with demo.connect() as sql:
        sql.execute("insert into messages (conversation_id, sender_id, body) values (%s, %s, %s)", [conversation, GRACE, body])


async def heard(client, last):
    """The bodies that came before the last one."""
    bodies = []
    while True:
        body = (await client.next("postgres_changes")).payload["data"]["record"]["body"]
        if body == last:
            return bodies
        bodies.append(body)


async def test_everybody_hears_their_own_conversations_only(demo, tokens):
    """Without a filter: what keeps Ada from Compiler corner is the policy alone."""
    clients = {}
    for person in (ADA, GRACE):
        clients[person] = await Client.connect(demo.port, apikey=tokens[person])
        await clients[person].watch("realtime:lobby", {"event": "INSERT", "schema": "public", "table": "messages"})
    say(demo, CORNER, "For the corner")
    say(demo, BOTH, "For both")
    assert await heard(clients[ADA], "For both") == []
    assert await heard(clients[GRACE], "For both") == ["For the corner"]
    with demo.connect() as sql:
        sql.execute("insert into conversation_participants (conversation_id, user_id) values (%s, %s)", [CORNER, ADA])
        say(demo, CORNER, "Welcome")
        sql.execute("delete from conversation_participants where conversation_id = %s and user_id = %s", [CORNER, ADA])
    say(demo, CORNER, "Gone again")
    say(demo, BOTH, "For both again")
    assert set(await heard(clients[ADA], "For both again")) <= {"Welcome"}
    for client in clients.values():
        await client.close()


async def test_the_page_shows_each_user_their_conversations_only(demo, browser):
    page = await browser.page(demo.page + "?left=ada&right=grace")

    def hook(pane, name):
        return f"document.querySelector('[data-testid=pane-{pane}] [data-testid={name}]')"

    def corner(pane):
        return (f"document.querySelector('[data-testid=pane-{pane}] "
                f"[data-testid=conversation-item][data-conversation-id=\"{CORNER}\"]')")

    for pane in (0, 1):
        await page.until(f"{hook(pane, 'connection-state')}?.dataset.state === 'live'")
        await page.until(f"{hook(pane, 'message-list')}.dataset.state === 'ready'")
    await page.until(f"{corner(1)} !== null")
    assert await page.run(f"{corner(0)} === null"), "Ada is not in Compiler corner"
    say(demo, CORNER, "A row for Grace and Linus")
    await page.until(f"+{corner(1)}.dataset.unread >= 0 && {corner(1)}.textContent.includes('A row for Grace')")
    say(demo, BOTH, "A row for both")
    await page.until(f"{hook(0, 'conversation-list')}.textContent.includes('A row for both')")
    assert not await page.run(f"{hook(0, 'conversation-list')}.textContent.includes('A row for Grace')")
    # The same pane as Linus, who is in there.
    await page.run(f"(select => {{ select.value = '{LINUS}'; select.dispatchEvent(new Event('change', {{bubbles: true}})) }})"
                   f"({hook(0, 'user-select')})")
    await page.until(f"{corner(0)}?.textContent.includes('A row for Grace')")
    assert page.complaints == []
    await page.close()


async def test_an_answer_that_was_under_way_takes_no_message_back(demo, browser):
    """The list of conversations is asked for, and a message comes before the answer, which lacks it."""
    page = await browser.page(demo.page + "?left=ada&right=grace")
    item = f"document.querySelector('[data-testid=pane-1] [data-testid=conversation-item][data-conversation-id=\"{CORNER}\"]')"
    # A message that comes before the pane is subscribed would come by another list only, which is held as well.
    await page.until("document.querySelector('[data-testid=pane-1] [data-testid=connection-state]')?.dataset.state === 'live'")
    await page.until(f"{item} !== null")
    await page.run("""(() => {
        const ask = window.fetch;
        window.fetch = async (...request) => {
            const answer = await ask(...request);
            if (String(request[0]).includes('conversations')) await new Promise((release) => (window.held ??= []).push(release));
            return answer;
        };
    })()""")
    with demo.connect() as sql:
        [(conversation,)] = sql.execute(
            "insert into conversations (kind, title, created_by) values ('group', 'Another', %s) returning id", [ADA]).fetchall()
        sql.execute("insert into conversation_participants (conversation_id, user_id) values (%s, %s) on conflict do nothing",
                    [conversation, GRACE])
    await page.until("window.held?.length > 0")
    with demo.connect() as sql:
        sql.execute("insert into messages (conversation_id, sender_id, body) values (%s, %s, 'Came in between')", [CORNER, LINUS])
    await page.until(f"{item}.textContent.includes('Came in between')")
    # The page may ask a second time when it has the first answer: that one is let through as well.
    await page.until("window.held.splice(0).forEach((release) => release()), [...document.querySelectorAll('[data-testid=pane-1] [data-testid=conversation-item]')]"
                     ".some((each) => each.textContent.includes('Another'))")
    assert await page.run(f"{item}.textContent.includes('Came in between')")
    await page.close()
