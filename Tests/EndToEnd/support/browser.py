"""A headless Chromium, driven over the DevTools protocol."""

import asyncio
import base64
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import urllib.request

import websockets

from support.deadline import PATIENCE, eventually


class Browser:
    def __init__(self, *options):
        self.folder = tempfile.mkdtemp(prefix="roost-e2e-browser-", dir="/tmp")
        # Port 0: Chromium picks one and writes it down. No sandbox: it refuses one for root, and opens our page alone.
        self.process = subprocess.Popen(
            ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--no-first-run", "--disable-background-networking", "--remote-debugging-port=0",
             f"--user-data-dir={self.folder}", *options, "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

    async def page(self, url, width=1280, height=820):
        target = await asyncio.to_thread(self._open, await self._port())
        socket = await websockets.connect(target["webSocketDebuggerUrl"], max_size=None)
        page = Page(socket)
        for domain in ("Page", "Runtime", "Log"):
            await page.call(f"{domain}.enable")
        await page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        # Pages in the background are slowed down; each of ours is to think that it is in front.
        await page.call("Emulation.setFocusEmulationEnabled", enabled=True)
        await page.call("Page.navigate", url=url)
        return page

    async def _port(self):
        path = f"{self.folder}/DevToolsActivePort"
        await eventually(lambda: os.path.exists(path) and open(path).read().count("\n"), what="Chromium")
        with open(path) as file:
            return int(file.readline())

    def _open(self, port):
        request = urllib.request.Request(f"http://127.0.0.1:{port}/json/new?about:blank", method="PUT")
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
        shutil.rmtree(self.folder, ignore_errors=True)


class Page:
    def __init__(self, socket):
        self.socket = socket
        self.complaints = []  # exceptions and console errors, which no page should have
        self._calls = 0
        self._registrations = []
        self._waiting = {}
        self._task = asyncio.create_task(self._read())

    async def _read(self):
        with contextlib.suppress(websockets.ConnectionClosed):
            await self._take_all()

    async def _take_all(self):
        async for text in self.socket:
            message = json.loads(text)
            if message.get("id") == 0:
                continue
            if "id" in message:
                self._waiting.pop(message["id"]).set_result(message)
            elif message["method"] == "ServiceWorker.workerRegistrationUpdated":
                self._registrations += [each["registrationId"] for each in message["params"]["registrations"]]
            elif message["method"] == "Runtime.exceptionThrown" or (
                    message["method"] == "Log.entryAdded" and message["params"]["entry"]["level"] == "error"):
                self.complaints.append(json.dumps(message["params"])[:500])

    async def call(self, method, **parameters):
        self._calls += 1
        future = self._waiting[self._calls] = asyncio.get_running_loop().create_future()
        await self.socket.send(json.dumps({"id": self._calls, "method": method, "params": parameters}))
        answer = await asyncio.wait_for(future, PATIENCE)
        assert "error" not in answer, answer["error"]
        return answer["result"]

    async def registration(self):
        """The id of the page's service worker's registration, once `ServiceWorker.enable` was called."""
        return await eventually(lambda: self._registrations[-1] if self._registrations else None, what="a service worker")

    async def run(self, script):
        result = await self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    async def until(self, script, within=PATIENCE):
        return await eventually(lambda: self.run(script), within, lambda: f"{script}; complaints: {self.complaints}", every=0.05)

    async def type(self, text, enter=False):
        """Into whatever has the focus."""
        await self.call("Input.insertText", text=text)
        if enter:
            for kind in ("rawKeyDown", "keyUp"):
                await self.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13)

    async def screenshot(self, path):
        result = await self.call("Page.captureScreenshot", format="png")
        with open(path, "wb") as file:
            file.write(base64.b64decode(result["data"]))

    async def close(self):
        """The tab, as its user closes it."""
        if self._task.done():
            return
        # No answer comes once it is gone.
        await self.socket.send(json.dumps({"id": 0, "method": "Page.close", "params": {}}))
        await self.socket.wait_closed()
        self._task.cancel()

    @property
    def is_closed(self):
        return self._task.done()
