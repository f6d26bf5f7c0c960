#!/usr/bin/env python3
"""Makes docs/pictures from the real pages: the demo, the live page and a report of roost-load, in a headless Chromium.

usage: .venv/bin/python scripts/pictures.py [FOLDER]     (scripts/pictures.sh builds what it needs and calls it)

The demo runs in a folder of its own, on free ports. Its conversations are those of `Sources/Demo/SQL/seed.sql`; the load on the
live page is a minute of `roost-load chat`.
"""

import asyncio
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "Tests/EndToEnd"))

from support.browser import Browser  # noqa: E402
from support.demo import Demo  # noqa: E402

LOAD = ROOT / ".build/release/roost-load"
#: A picture in a README is loaded by everybody who looks at it.
MOST_BYTES = 200_000
TABLE = """
    create table if not exists roost_load (id bigserial primary key, conversation_id uuid, stamp text);
    grant select on roost_load to authenticated, service_role
"""


def hook(name, pane=None):
    inside = f"[data-testid=pane-{pane}] " if pane is not None else ""
    return f"document.querySelector('{inside}[data-testid=\"{name}\"]')"


class Camera:
    def __init__(self, browser, folder):
        self.browser = browser
        self.folder = folder

    async def page(self, url, width, height, scheme="light"):
        page = await self.browser.page(url, width=width, height=height)
        await page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        return page

    async def take(self, page, name):
        path = self.folder / f"{name}.png"
        await page.screenshot(str(path))
        # 256 colours are what these pages have; without the program the picture is only larger.
        subprocess.run(["pngquant", "--force", "--skip-if-larger", "--strip", "--speed", "1", "--output", path, "256", path], check=False)
        size = path.stat().st_size
        print(f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}: {size // 1000} kB")
        assert size <= MOST_BYTES, f"{path} is too large for a README"


async def chat(camera, demo):
    """The demo while a reply grows in both panes, and as a phone shows it."""
    page = await camera.page(demo.page, 1280, 760)
    for pane in (0, 1):
        await page.until(f"{hook('connection-state', pane)}?.dataset.state === 'live'", 15)
    await page.run(f"{hook('composer', 0)}.focus()")
    await page.type("Have you seen the new hub?", enter=True)
    await page.until(f"{hook('message-list', 1)}.textContent.includes('new hub')")
    await page.run(f"{hook('composer', 1)}.focus()")
    await page.type("Just now. Ask it something!", enter=True)
    await page.until(f"{hook('message-list', 0)}.textContent.includes('Ask it')")
    phone = await camera.page(demo.page, 390, 844, "dark")
    for pane in (0, 1):
        await phone.until(f"{hook('connection-state', pane)}?.dataset.state === 'live'", 15)
    await camera.take(phone, "demo-phone")
    await phone.close()
    await page.run(f"{hook('ask-button', 0)}.click()")
    streaming = "[...document.querySelectorAll('[data-status=streaming] .body')].every(body => body.textContent.length > 260)"
    await page.until(f"document.querySelectorAll('[data-status=streaming]').length === 2 && {streaming}", 20)
    await camera.take(page, "reply")
    await page.run(f"{hook('stop-button', 1)}.click()")
    await page.until("document.querySelectorAll('[data-status=streaming]').length === 0")
    await page.close()


async def live_page(camera, demo, views=()):
    """The operator's page under load, and the report of that load."""
    with demo.connect() as sql:
        sql.execute(TABLE)
    demo.command("watch", "public.roost_load")
    report = camera.folder / "report.html"
    load = await asyncio.create_subprocess_exec(
        LOAD, "chat", "--url", f"ws://127.0.0.1:{demo.port}/realtime/v1/websocket", "--database",
        f"postgresql://postgres@127.0.0.1:{demo.postgres_port}/chat", "--token", demo.command("token", "--role", "service_role").strip(),
        "--sockets", "400", "--rate", "80", "--duration", "60", "--churn", "0.6", "--html", report, "--quiet",
        "--pid", f"hub={demo.process.pid}", stdout=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{demo.ops_port}/"
    page = await camera.page(address, 1280, 860)
    await asyncio.sleep(55)  # the picture is of a minute of load
    await page.until(f"{hook('line')}?.dataset.state === 'live'", 15)
    await camera.take(page, "live-page")
    await page.close()
    phone = await camera.page(address, 390, 844, "dark")
    await phone.until(f"Boolean({hook('connections-0')}?.textContent)", 15)
    await camera.take(phone, "live-page-phone")
    await phone.close()
    for view, width, scheme in views:
        page = await camera.page(f"{address}#/{view}", width, 860, scheme)
        await page.until("Boolean(document.querySelector('main .card'))", 15)
        await asyncio.sleep(2.5)
        await camera.take(page, f"view-{view.split('/')[0] or 'overview'}-{width}-{scheme}")
        await page.close()
    assert await load.wait() in (0, 1), "roost-load could not run"
    page = await camera.page(report.as_uri(), 1180, 860)
    await page.until("document.readyState === 'complete'")
    await camera.take(page, "load-report")
    await page.close()
    report.unlink()


async def main(folder, views):
    folder.mkdir(parents=True, exist_ok=True)
    demo, browser = Demo(), Browser()
    try:
        demo.start()
        camera = Camera(browser, folder)
        await chat(camera, demo)
        await live_page(camera, demo, views)
    finally:
        browser.close()
        demo.remove()


if __name__ == "__main__":
    arguments = [each for each in sys.argv[1:] if not each.startswith("--")]
    every_view = [(view, width, scheme) for view in ("", "channels", "streams", "connections", "log", "configuration", "channel/realtime%3Alobby")
                  for width, scheme in ((1280, "light"), (390, "dark"))]
    asyncio.run(main(pathlib.Path(arguments[0] if arguments else ROOT / "docs/pictures").resolve(),
                     every_view if "--every-view" in sys.argv else ()))
