"""The demo's assistant as a visitor sees it: a reply that grows in both panes, is stopped, and becomes a row (Sources/Demo/API.md)."""

import json
import uuid

import pytest

from support.deadline import eventually, until
from support.wsclient import Client
from test_demo import CONVERSATION, SCREENSHOTS, demo, get, hook, live, open_page, say, session  # noqa: F401

ASSISTANT = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
ADA, GRACE, LINUS = range(3)
#: Notes all texts that the last reply of each pane ever had, and how many replies there were at most.
OBSERVE = """
    window.seen = [0, 1].map(pane => {
      const list = document.querySelector(`[data-testid=pane-${pane}] [data-testid=message-list]`)
      if (!list) return null
      const replies = () => [...list.querySelectorAll('[data-sender-id="ASSISTANT"]')]
      const seen = {before: replies().length, most: 0, texts: [], growing: false}
      new MutationObserver(() => {
        const now = replies()
        seen.most = Math.max(seen.most, now.length - seen.before)
        const text = now.at(-1)?.querySelector('.body').textContent ?? ''
        if (now.length > seen.before && text !== seen.texts.at(-1)) seen.texts.push(text)
        if (now.length > seen.before && now.at(-1).dataset.status === 'streaming' && text && !seen.growing) {
          seen.growing = true
          now.at(-1).dataset.mark = 'the same element'
        }
      }).observe(list, {subtree: true, childList: true, characterData: true})
      return seen
    }); null""".replace("ASSISTANT", ASSISTANT)


def numbers(count):
    return "".join(f"{number} " for number in range(1, count + 1))


def last(pane):
    return f"[...document.querySelectorAll('[data-testid=pane-{pane}] [data-sender-id=\"{ASSISTANT}\"]')].at(-1)"


def text(pane):
    return f"{last(pane)}?.querySelector('.body').textContent"


def status(pane):
    return f"{last(pane)}?.dataset.status"


def grows(pane, beyond=0):
    return f"{status(pane)} === 'streaming' && {text(pane)}.length > {beyond}"


async def ask(page, pane, question):
    await say(page, pane, question, enter=False)
    await page.run(f"{hook(pane, 'ask-button')}.click()")


async def stop(page, pane):
    await page.run(f"{hook(pane, 'stop-button')}.click()")


def rows(demo, body):
    with demo.connect() as sql:
        return sql.execute(
            "select body from messages where sender_id = %s and body = %s", (ASSISTANT, body)).fetchall()


def mine(session, who=ADA):
    return {"Authorization": "Bearer " + session["users"][who]["token"]}


def post(demo, session, question, who=ADA):
    """Asks as the page does; the stream of the reply."""
    local_id = str(uuid.uuid4())
    body = json.dumps({"conversation_id": CONVERSATION, "body": f"@assistant {question}", "local_id": local_id}).encode()
    assert get(demo, "/demo/api/messages", mine(session, who), "POST", body)[0] == 200
    return f"reply/{CONVERSATION}/{local_id}"


def exists(demo, session, stream):
    return get(demo, f"/streams/{stream}?offset=-1", mine(session))[0] == 200


async def test_a_reply_grows_in_both_panes_and_is_one_message_in_the_end(demo, session, open_page):
    page = await open_page()
    await page.run(OBSERVE)
    await ask(page, 0, "Please count to 150")
    for pane in (0, 1):
        await page.until(f"{status(pane)} === 'received'", 60)
        assert await page.run(text(pane)) == numbers(150)
        assert await page.run(f"{last(pane)}.dataset.mark") == "the same element", "a row takes the text's place"
        assert await page.run(f"+{last(pane)}.dataset.messageId > 0")
        assert not await page.run(f"{last(pane)}.querySelector('[data-testid=stop-button]')")
    for seen in await page.run("window.seen"):
        assert seen["most"] == 1 and seen["growing"], "never the text and its row"
        assert len(seen["texts"]) > 10 and all(numbers(150).startswith(text) for text in seen["texts"]), seen["texts"]
        assert seen["texts"] == sorted(seen["texts"], key=len), "it grows"
    assert len(rows(demo, numbers(150))) == 1


async def test_whoever_stops_a_reply_fixes_it_for_both(demo, session, open_page):
    page = await open_page()
    await page.run(OBSERVE)
    await ask(page, 0, "count to 1500")
    for pane in (0, 1):
        await page.until(grows(pane, 40))
    await stop(page, 1)
    for pane in (0, 1):
        await page.until(f"{status(pane)} === 'received'")
    shown = await page.run(text(0))
    assert shown == await page.run(text(1)) and numbers(1500).startswith(shown) and 40 < len(shown) < 7000
    # Neither pane was ever shown a byte behind the end.
    for seen in await page.run("window.seen"):
        assert seen["texts"][-1] == max(seen["texts"], key=len) == shown and seen["most"] == 1
    assert len(rows(demo, shown)) == 1, "what was shown is kept"
    question = await page.run(f"{last(0)}.dataset.localId")
    answered, headers, body = get(demo, f"/streams/reply/{CONVERSATION}/{question}?offset=-1", mine(session))
    assert answered == 200 and body.decode() == shown
    assert headers["stream-status"] == "cancelled" and headers["stream-closed"] == "true"


async def test_a_page_that_is_loaded_again_or_loses_its_line_goes_on(demo, open_page):
    ada, grace = await open_page("?user=ada", panes=(0,)), await open_page("?user=grace", panes=(0,))
    await ask(ada, 0, "count to 1600")
    for page in (ada, grace):
        await page.until(grows(0, 60))
    before = await ada.run(text(0))
    await ada.call("Page.reload")
    await ada.until(f"performance.getEntriesByType('navigation')[0].type === 'reload' && ({live(0)} ?? false)")
    await ada.until(grows(0))
    first = await ada.run(text(0))
    assert first.startswith(before) and numbers(1600).startswith(first), "all so far, at once"
    await ada.run(OBSERVE)
    await ada.until(grows(0, len(first) + 20))
    await ada.run(f"{hook(0, 'drop-button')}.click()")
    await ada.until(f"{hook(0, 'connection-state')}.dataset.state === 'reconnecting'")
    there = len(await ada.run(text(0)))
    await grace.until(grows(0, there + 20))
    await ada.run(f"{hook(0, 'drop-button')}.click()")
    await ada.until(grows(0, there + 20))
    texts = (await ada.run("window.seen[0]"))["texts"]
    assert all(numbers(1600).startswith(each) for each in texts) and texts == sorted(texts, key=len), "it never begins anew"
    await stop(grace, 0)
    for page in (ada, grace):
        await page.until(f"{status(0)} === 'received'")
    assert await ada.run(text(0)) == await grace.run(text(0))
    await grace.close()


async def test_markup_in_a_question_is_text_in_its_reply(demo, open_page):
    page = await open_page()
    markup = "<img src=x onerror=alert(1)><b>bold</b>"
    await ask(page, 0, markup)
    for pane in (0, 1):
        await page.until(f"{text(pane)}?.startsWith({json.dumps(f'You asked: “{markup}”')})")
    assert await page.run("document.querySelectorAll('[data-testid=message] img, [data-testid=message] b').length") == 0
    assert await page.run(f"{last(0)}.getAttribute('aria-busy')") == "true", "a screen reader waits for the whole text"
    await stop(page, 0)
    await page.until(f"{status(0)} === 'received' && !{last(0)}.hasAttribute('aria-busy')")


@pytest.mark.parametrize("query, width, height, scheme", [
    ("", 1280, 720, "light"), ("?user=ada", 390, 844, "light"), ("?user=ada", 390, 844, "dark")])
async def test_a_reply_fits_the_screen_while_it_grows(demo, browser, query, width, height, scheme):
    page = await browser.page(demo.page + query, width=width, height=height)
    await page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    await page.until(live(0))
    await page.run(f"{hook(0, 'ask-button')}.click()")
    await page.until(grows(0, 120))
    if SCREENSHOTS:
        await page.until(grows(0, 330))
        await page.screenshot(f"{SCREENSHOTS}/reply-{width}-{scheme}.png")
    assert (await page.run(text(0))).startswith("You asked: “What is this reply?”")
    assert await page.run("document.documentElement.scrollWidth <= innerWidth")
    box = await page.run(f"(({{left, right, top, bottom}}) => [left, right, top, bottom])({hook(0, 'stop-button')}.getBoundingClientRect())")
    assert 0 <= box[0] < box[1] <= width and 0 <= box[2] < box[3] <= height
    await stop(page, 0)
    await page.until(f"{status(0)} === 'received'")
    assert page.complaints == []
    await page.close()


async def test_a_stranger_sees_nothing_and_a_member_does_not_write(demo, session):
    stream = post(demo, session, "count to 1500")
    until(lambda: exists(demo, session, stream), what="the reply")
    linus, grace = mine(session, LINUS), mine(session, GRACE)
    assert session["users"][LINUS]["name"] == "Linus"
    assert get(demo, f"/streams/{stream}?offset=-1", linus)[0] == 403
    assert get(demo, f"/streams/{stream}/cancel", linus, "POST", b"")[0] == 403
    client = await Client.connect(demo.port, apikey=session["users"][LINUS]["token"])
    refused = await client.ask(f"realtime:stream:{stream}", "phx_join", {"config": {"private": True}})
    assert refused.payload["response"]["reason"].startswith("Unauthorized")
    await client.close()
    # Names that are like a reply's and are none are nobody's.
    for name in ("reply/1", f"reply/{CONVERSATION}", f"reply/{CONVERSATION}/x", f"{stream}/more", "reply/" + "-" * 36 + "/x"):
        assert get(demo, f"/streams/{name}?offset=-1", grace)[0] == 403, name
    text_type = {"Content-Type": "text/plain"}
    assert get(demo, f"/streams/{stream}", {**grace, **text_type}, "POST", b"not the assistant")[0] == 403
    assert get(demo, f"/streams/reply/{CONVERSATION}/{uuid.uuid4()}", {**grace, **text_type}, "PUT", b"")[0] == 403
    assert get(demo, f"/streams/{stream}", grace, "DELETE")[0] == 403
    answered, headers, _ = get(demo, f"/streams/{stream}/cancel", grace, "POST", b"")
    assert answered in (200, 204) and "not the assistant" not in get(demo, f"/streams/{stream}?offset=-1", grace)[2].decode()


async def test_a_question_that_is_sent_twice_is_answered_once(demo, session):
    stream = post(demo, session, "count to 40")
    body = json.dumps({"conversation_id": CONVERSATION, "body": "@assistant count to 40", "local_id": stream.split("/")[2]}).encode()
    assert get(demo, "/demo/api/messages", mine(session), "POST", body)[0] == 200

    async def row():
        return rows(demo, numbers(40))
    await eventually(row, what="the reply's row")
    assert get(demo, f"/streams/{stream}?offset=-1", mine(session))[2].decode() == numbers(40)
    assert get(demo, "/demo/api/messages", mine(session), "POST", body)[0] == 200
    assert len(rows(demo, numbers(40))) == 1


async def test_so_many_questions_at_once_and_no_more(demo, session):
    streams = [post(demo, session, "count to 1600") for _ in range(17)]

    def said(stream):
        return get(demo, f"/streams/{stream}?offset=-1", mine(session))[2].decode()
    until(lambda: said(streams[-1]) == "I am answering 16 questions already. Ask me again in a moment.", what="the refusal")
    for stream in streams[:-1]:
        until(lambda: said(stream).startswith("1 2 "), what="a reply")
        assert get(demo, f"/streams/{stream}/cancel", mine(session), "POST", b"")[0] in (200, 204)

    def is_answered_again():
        again = post(demo, session, "count to 3")
        until(lambda: exists(demo, session, again) and said(again), what="an answer")
        return said(again).startswith("1 ")
    until(is_answered_again, what="room for another question", every=0.2)
