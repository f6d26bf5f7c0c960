"""The demo's page in a real browser: its button subscribes, and its service worker shows what a push service decrypted.

Chromium's own push service is Google's, which tests do not reach: the page is given a subscription at the stand-in, which decrypts, and
what it decrypted is handed to the service worker as Chromium hands over what its push service delivers.
"""

import asyncio
import json

import pytest

from support.deadline import eventually
from support.demo import Demo
from support.webpush import WebPush, name_of

GRACE = "22222222-2222-4222-8222-222222222222"
CONVERSATION = "c0000000-0000-4000-8000-000000000001"


@pytest.fixture
def service():
    with WebPush() as service:
        yield service
        assert service.violations == []


@pytest.fixture
def demo(service):
    demo = Demo(ROOST_ALERTS_WHEN="away", ROOST_PRESENCE_GRACE_ACTIVE_SECONDS="0", ROOST_PRESENCE_RESTART_SECONDS="0",
                **service.environment)
    try:
        yield demo.start()
    finally:
        demo.remove()


async def test_the_pages_service_worker_shows_a_message(browser, demo, service):
    subscription = service.subscribe()
    origin = f"http://127.0.0.1:{demo.port}"
    page = await browser.page("about:blank")
    await page.call("Browser.grantPermissions", permissions=["notifications"], origin=origin)
    await page.call("Page.addScriptToEvaluateOnNewDocument", source=f"""
        globalThis.asked = null;
        // A page that wants to know of its end is not kept, with its socket, for the case that its user comes back.
        addEventListener("unload", () => {{}});
        PushManager.prototype.subscribe = async function (options) {{ globalThis.asked = options; return {json.dumps(subscription)}; }};""")
    await page.call("Page.navigate", url=f"{demo.page}?user=grace")
    await page.until("document.querySelector('[data-testid=push-button]')?.hidden === false")
    await page.run("document.querySelector('[data-testid=push-button]').click()")
    await page.until("document.querySelector('[data-testid=push-button]').textContent === 'You are notified'")
    assert await page.run("asked.applicationServerKey") == service.public_key and await page.run("asked.userVisibleOnly")

    # The page goes; its service worker stays.
    with demo.connect() as sql:
        query = "select count(*) from roost.online_user where user_id = %s"
        await eventually(lambda: sql.execute(query, [GRACE]).fetchone() == (1,), what="Grace is here")
        await page.call("Page.navigate", url=f"{demo.page}roost.svg")
        await eventually(lambda: sql.execute(query, [GRACE]).fetchone() == (0,), what="Grace is away")
        ada = sql.execute("select id from users where name = 'Ada'").fetchone()[0]
        sql.execute("insert into messages (conversation_id, sender_id, body) values (%s, %s, 'Tea?')", [CONVERSATION, ada])
        await eventually(lambda: service.messages(subscription), what=lambda: "a message that the browser can decrypt: " + str(
            sql.execute("select user_id, state, reason from roost.alert").fetchall()) + demo_log(demo)[-2000:])
    [message] = service.messages(subscription)
    await page.call("ServiceWorker.enable")
    registration = await page.until("navigator.serviceWorker.getRegistration('/demo/').then((it) => it?.active && 'there')")
    assert registration == "there"
    all_of_them = "navigator.serviceWorker.getRegistration('/demo/').then((it) => it.getNotifications())"
    number = await page.registration()
    for attempt in range(6):
        # Chromium drops a push whose worker it could not start in time, as on a busy machine.
        await page.call("ServiceWorker.deliverPushMessage", origin=origin, registrationId=number, data=json.dumps(message))
        try:
            # By then the push was dropped, and is handed over again.
            await page.until(f"{all_of_them}.then((all) => all.length > 0)", within=10)
            break
        except AssertionError:
            if attempt == 5:
                raise
    title, body = await page.run(f"{all_of_them}.then(([it]) => [it.title, it.body])")
    assert title == message["title"] and body.endswith("Tea?") and body == message["body"]
    assert name_of(subscription) not in demo_log(demo)
    await page.close()


def demo_log(demo):
    return "".join(demo.output)
