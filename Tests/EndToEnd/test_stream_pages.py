"""Pages of applications that read streams at paths of their own (`streams.routes`), in a real Chromium: a page knows nothing of Roost."""

import base64
import json
import random

import pytest

from support.http import HTTPConnection
from support.proxy import Proxy
from support.streams import Stream, stamp
from support.tokens import token

pytestmark = pytest.mark.anyio

#: A page that shows a reply: text that comes in pieces, until one says that it is done.
REPLY = """
    window.app = {text: '', pieces: 0, done: false, opened: 0}
    window.source = new EventSource(%s)
    source.onopen = () => app.opened += 1
    source.onmessage = ({data}) => {
      const {text, isDone} = JSON.parse(data)
      app.text += text
      app.pieces += 1
      app.done ||= isDone
    }; null"""

#: A page that speaks a reply: text and sound, each by an event of its own.
VOICE = """
    window.app = {text: '', sound: '', indexes: [], isFinal: false, done: 0, errors: [], opened: 0}
    window.source = new EventSource(%s)
    source.onopen = () => app.opened += 1
    const on = (name, take) => source.addEventListener(name, event => take(event.data === undefined ? null : JSON.parse(event.data)))
    on('textChunk', ({text}) => app.text += text)
    on('audioChunk', ({audio, chunkIndex, isFinal}) => {
      app.sound += atob(audio)
      app.indexes.push(chunkIndex)
      app.isFinal = isFinal
    })
    on('done', () => { app.done += 1; source.close() })
    on('error', data => data && app.errors.push(data.message)); null"""

#: Five seconds are 50 of these.
CHUNK_MILLISECONDS = 100
#: 16 bits, 24,000 times a second.
CHUNK_BYTES = 24_000 * 2 * CHUNK_MILLISECONDS // 1000


@pytest.fixture
async def app(own_hub):
    own_hub.environment["ROOST_STREAMS_ROUTES"] = (
        "/reply=reply/{conversation},/api/voice/open-stream=voice/{dialogueId};event=type")
    own_hub.start()
    async with await HTTPConnection.open(own_hub.port) as http:
        yield own_hub, http


@pytest.fixture
async def open_page(app, browser):
    pages = []

    async def open_one(script, path, port=None):
        """On the application's origin; `port`: where its events come from, if that is another way."""
        hub, _ = app
        page = await browser.page(f"http://127.0.0.1:{hub.port}/livez")
        await page.until(f"location.port == {hub.port} && document.readyState == 'complete'")
        pages.append(page)
        origin = f"http://127.0.0.1:{port}" if port else ""
        await page.run(script % json.dumps(f"{origin}{path}&apikey={token('service_role')}"))
        return page

    yield open_one
    for page in pages:
        await page.close()


class Backend:
    """What the application has behind its pages: it appends messages, each by a numbered request."""

    def __init__(self, http, name):
        self.stream, self.sequence = Stream(http, name), 0

    async def begin(self):
        await self.stream.http.open_again()
        assert (await self.stream.create("application/json")).status == 201
        return self

    async def say(self, *messages, **fields):
        answer = await self.stream.append(
            json.dumps(messages).encode(), "application/json", **stamp(self.sequence), **fields)
        assert answer.status in (200, 204), answer
        self.sequence += 1


async def test_a_reply_in_pieces_of_text(app, open_page):
    hub, http = app
    path = "/reply?conversation=7"
    words = [f"{number} Grüße 🐦, " for number in range(300)]
    pieces = [{"text": word, "isDone": False} for word in words]
    async with Proxy(hub.port) as network:
        first = await open_page(REPLY, path)
        cut = await open_page(REPLY, path, network.port)
        for page in (first, cut):
            await page.until("app.opened == 1")
        backend = await Backend(http, "reply/7").begin()
        for piece in pieces[:100]:
            await backend.say(piece)
        late = await open_page(REPLY, path)
        for page in (first, cut, late):
            await page.until("app.pieces == 100")
        await network.close()
        for piece in pieces[100:200]:
            await backend.say(piece)
        await first.until("app.pieces == 200")
        assert await cut.run("app.pieces") == 100
        await network.open()
        # Its browser comes back by itself, with what it had last, and the page does not know.
        await cut.until("app.pieces == 200 && app.opened == 2")
        await backend.say(*pieces[200:])
        await backend.say({"text": "", "isDone": True}, stream_closed="true")
        for page in (first, cut, late):
            await page.until("app.done && app.pieces == 301")
            # The page did not close it: the hub tells the browser to stay away, and it gets nothing again.
            await page.until("source.readyState == EventSource.CLOSED")
            assert await page.run("app.pieces") == 301 and await page.run("app.text") == "".join(words)
        after = await open_page(REPLY, path)
        await after.until("app.done && app.pieces == 301")
        assert await after.run("app.text") == "".join(words)


async def test_a_reply_in_text_and_sound(app, open_page):
    """Whoever connects after more than five seconds of speech hears it from its first word, which is how such apps lose it."""
    hub, http = app
    path = "/api/voice/open-stream?dialogueId=d1"
    chance = random.Random(5)
    sound = [chance.randbytes(CHUNK_BYTES) for _ in range(120)]
    words = [f"word {number} " for number in range(120)]

    def spoken(number):
        return [
            {"type": "textChunk", "text": words[number]},
            {"type": "audioChunk", "audio": base64.b64encode(sound[number]).decode(), "chunkIndex": number,
             "isFinal": number == len(sound) - 1}]

    async with Proxy(hub.port) as network:
        cut = await open_page(VOICE, path, network.port)
        await cut.until("app.opened == 1")
        backend = await Backend(http, "voice/d1").begin()
        for number in range(70):
            await backend.say(*spoken(number))
        assert 70 * CHUNK_MILLISECONDS > 5000
        late = await open_page(VOICE, path)
        for page in (cut, late):
            await page.until("app.indexes.length == 70")
        await network.close()
        for number in range(70, 110):
            await backend.say(*spoken(number))
        await late.until("app.indexes.length == 110")
        await network.open()
        await cut.until("app.indexes.length == 110 && app.opened == 2")
        for number in range(110, 120):
            await backend.say(*spoken(number))
        await backend.say({"type": "done"}, stream_closed="true")
        over = await open_page(VOICE, path)
        for page in (cut, late, over):
            await page.until("app.done == 1 && source.readyState == EventSource.CLOSED")
            assert await page.run("app.indexes") == list(range(120)), "each once, in order"
            assert await page.run("app.text") == "".join(words) and await page.run("app.isFinal")
            heard = base64.b64decode(await page.run("btoa(app.sound)"))
            assert heard == b"".join(sound)
            assert await page.run("app.errors") == []


async def test_speech_that_fails_says_so_by_an_event(app, open_page):
    """The name `error` is also that of a lost connection, which has no data."""
    _, http = app
    page = await open_page(VOICE, "/api/voice/open-stream?dialogueId=d2")
    backend = await Backend(http, "voice/d2").begin()
    await backend.say({"type": "textChunk", "text": "I was about to"})
    await backend.say({"type": "error", "message": "no voice <b>today</b>"}, stream_closed="true")
    await page.until("source.readyState == EventSource.CLOSED")
    assert await page.run("app.errors") == ["no voice <b>today</b>"] and await page.run("app.text") == "I was about to"
    assert await page.run("app.done") == 0
