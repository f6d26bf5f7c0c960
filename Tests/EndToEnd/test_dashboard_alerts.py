"""What the operator's live page says of alerts: whether a user was alerted of a message, and why or why not."""

import asyncio
import json
import os

from support.chat import ADA, GRACE
from support.ops import LIVE, connect_operator, hook, state_where, watch
from support.push_hub import Phone, PushHub
from test_push_receipts import reason

#: Of the table of alerts: one text for each cell.
CELLS = f"[...{hook('alerts')}.querySelectorAll('tbody tr')].map(row => [...row.children].map(cell => cell.textContent))"


def rows(count):
    return f"{hook('alerts')}?.querySelectorAll('tbody tr').length === {count}"


async def test_without_pushes_the_page_says_so(operator, open_page):
    for topic in "ops:user_alerts:somebody", "ops:message_alerts:7":
        seen = await watch(operator, topic)
        assert seen == {"alerts": [], "problem": "This hub sends no pushes: apns.topic is not set."}
    for topic in "ops:user_alerts:", "ops:message_alerts", "ops:user_alerts":
        assert (await operator.ask(topic, "phx_join", {})).payload["status"] == "error", topic
    page = await open_page("#/user/somebody")
    await page.until(f"{hook('alerts-note')}?.textContent.startsWith('This hub sends no pushes')")
    assert not await page.run(f"{hook('alerts')}.checkVisibility()")


async def test_the_page_says_why(cluster, browser, tmp_path):
    async with PushHub(cluster, "page_why") as chat:
        phone = await Phone(chat, GRACE).register()
        operator = await connect_operator(chat.hub)
        with chat.sql() as sql:
            away = chat.say(sql, ADA, "to nobody")
            assert await reason(sql, away) == "away"
            await phone.has_alerts("to nobody")
            await phone.open()
            shown = chat.say(sql, ADA, "to the app")
            assert await reason(sql, shown) == "shown"
        messages = [f"public.messages {each}" for each in (shown, away)]
        await watch(operator, f"ops:user_alerts:{GRACE.sub}")
        seen = await state_where(operator, f"ops:user_alerts:{GRACE.sub}", lambda payload: "delivered" in json.dumps(payload))
        assert seen["problem"] is None and [row["message"] for row in seen["alerts"]] == messages
        assert {row["user"] for row in seen["alerts"]} == {GRACE.sub}
        shown_row, away_row = seen["alerts"]
        assert (shown_row["outcome"], shown_row["time"], shown_row["phones"]) == ("not sent", None, None)
        assert shown_row["reason"] == "an app on the screen proved that it arrived"
        assert (away_row["outcome"], away_row["reason"]) == ("sent at", "the user had no socket")
        assert away_row["phones"] == f"{phone.device[:8]}... delivered" and away_row["at"] <= away_row["time"]
        assert phone.device[:9] not in json.dumps(seen) and "to nobody" not in json.dumps(seen)

        page = await browser.page(f"http://127.0.0.1:{chat.hub.ops_port}/#/user/{GRACE.sub}")
        try:
            await page.until(LIVE)
            await page.until(rows(2))
            cells = await page.run(CELLS)
            assert [row[1] for row in cells] == messages
            assert cells[0][2:] == ["not sent", shown_row["reason"], "–"]
            assert cells[1][2].startswith("sent at ") and cells[1][3:] == [away_row["reason"], away_row["phones"]]
            await page.screenshot(f"{os.environ.get('ROOST_E2E_SCREENSHOTS') or tmp_path}/alerts-of-a-user.png")
            # From a user to a message, and by a search.
            await page.run(f"{hook('alerts')}.querySelector('tbody a').click()")
            await page.until(f"document.querySelector('.subject')?.textContent === 'Message {messages[0]}'")
            await page.until(rows(1))
            await page.run("location.hash = '#/connections'")
            await page.until("Boolean(document.querySelector('#message'))")
            await page.run(f"document.querySelector('#message').value = '{away}'")
            await page.run("document.querySelector('#message').form.requestSubmit()")
            await page.until(f"document.querySelector('.subject')?.textContent === 'Message {away}'")
            await page.until(rows(1))
            assert (await page.run(CELLS))[0][1:] == [GRACE.sub, *cells[1][2:]]
            assert await page.run(f"{hook('alerts')}.querySelector('tbody a').hash") == f"#/user/{GRACE.sub}"
            await page.run("location.hash = '#/message/nothing'")
            await page.until("document.body.textContent.includes('No alert is remembered: no reader has registered a phone')")
            await page.call("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=False)
            await page.run(f"location.hash = '#/message/{away}'")
            await page.until(rows(1))
            assert await page.run("document.documentElement.scrollWidth") <= 390
            assert page.complaints == []
        finally:
            await page.close()
            await operator.close()
            await phone.close()


async def test_a_queue_that_cannot_be_read_holds_up_nothing_else(cluster):
    async with PushHub(cluster, "page_locked") as chat:
        operator, other = [await connect_operator(chat.hub) for _ in range(2)]
        await watch(other, "ops:overview")
        with chat.sql() as sql, sql.transaction():
            sql.execute("lock table roost.alert")
            asked = asyncio.create_task(watch(operator, "ops:user_alerts:somebody"))
            for _ in range(2):
                await other.next("sample", "ops:overview")
            seen = await asked
            assert seen["alerts"] == [] and seen["problem"].startswith("Postgres took too long to find them"), seen
        seen = await state_where(operator, "ops:user_alerts:somebody", lambda payload: payload["problem"] is None)
        assert seen["alerts"] == []
        with chat.sql() as sql:
            query = "select count(*) from pg_stat_activity where application_name = 'roost alerts' and datname = current_database()"
            assert sql.execute(query).fetchone()[0] == 1
        for each in operator, other:
            await each.close()
