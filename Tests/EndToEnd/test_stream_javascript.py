"""The JavaScript of docs/streams.md, as it stands there: in Node, where there is one, and in Chromium."""

import asyncio
import json
import re
import shutil

import pytest

from support.deadline import PATIENCE, eventually
from support.hub import ROOT
from support.streams import Stream
from support.tokens import token

pytestmark = pytest.mark.anyio
BLOCKS = re.findall(r"```js\n(.*?)```", (ROOT / "docs/streams.md").read_text(), re.DOTALL)
[LONG] = [block for block in BLOCKS if "duplex" in block]
[SHORT] = [block for block in BLOCKS if "Producer-Seq" in block]
#: What stands for a model behind each library.
MODELS = {
    "openai": """[
        {choices: [{delta: {role: 'assistant', content: ''}}]}, {choices: [{delta: {content: 'Grüße'}}]}, {choices: [{delta: {content: ', 🐦'}}]},
        {choices: []}]""",
    "anthropic": """[
        {type: 'message_start', message: {}}, {type: 'content_block_delta', delta: {type: 'text_delta', text: ''}},
        {type: 'content_block_delta', delta: {type: 'text_delta', text: 'Grüße'}},
        {type: 'content_block_delta', delta: {type: 'input_json_delta', partial_json: '{}'}},
        {type: 'content_block_delta', delta: {type: 'text_delta', text: ', 🐦'}}, {type: 'message_delta', delta: {stop_reason: 'end_turn'}}]""",
    "vercel": "{textStream: (async function* () { yield* ['Grüße', '', ', 🐦'] })()}",
}
in_node = pytest.mark.skipif(not shutil.which("node"), reason="there is no Node here (Debian's package nodejs)")


@pytest.fixture
def node(hub, tmp_path):
    """Starts Node with a program in a file: what is given to `node -e` has more names."""
    async def start(script):
        settings = f"const hub = {json.dumps(f'http://127.0.0.1:{hub.port}')}, token = {json.dumps(token('service_role'))}\n"
        (tmp_path / "program.mjs").write_text(settings + script)
        return await asyncio.create_subprocess_exec(
            "node", tmp_path / "program.mjs", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT)
    return start


async def said(process, within=PATIENCE):
    out, _ = await asyncio.wait_for(process.communicate(), within)
    assert process.returncode == 0, out.decode()
    return out.decode()


@in_node
@pytest.mark.parametrize("library", MODELS)
async def test_what_libraries_return_is_piped_into_a_stream(node, stream, library):
    functions = LONG[:LONG.index("const answer")]
    script = f"console.log((await write({json.dumps(stream.name)}, {library}({MODELS[library]}))).status)"
    assert await said(await node(functions + script)) == "204\n"
    answer = await stream.read("?offset=-1")
    assert answer.body.decode() == "Grüße, 🐦" and answer.headers["stream-status"] == "complete"


@in_node
async def test_a_long_request_writes_as_it_comes_and_is_told_of_a_stop(node, stream):
    """The block of the page as a whole; its `client` yields one piece and never ends."""
    client = """
        const [model, messages] = []
        async function* create() {
          yield {choices: [{delta: {content: 'Hello'}}]}
          await new Promise(() => setInterval(() => {}, 1000))
        }
        const client = {chat: {completions: {create}}}
        """
    process = await node(client + LONG.replace("reply/1", stream.name) + "process.exit(0)")

    async def is_there():
        return (await stream.read("?offset=-1")).body == b"Hello"
    await eventually(is_there, what="what was said, before the request ends")
    await stream.cancel()
    assert await said(process) == "stopped by a reader\n"
    assert (await stream.read("?offset=-1")).body == b"Hello"


@in_node
async def test_short_requests_of_node(node, stream):
    call = f"await append({json.dumps(stream.name)}, ['one ', '', 'two'])"
    assert await said(await node(SHORT + call)) == ""
    answer = await stream.read("?offset=-1")
    assert answer.body == b"one two" and answer.headers["stream-status"] == "complete"


async def test_short_requests_of_a_page(hub, stream, http, browser):
    """Of another origin, as the page of an application is."""
    page = await browser.page(f"http://localhost:{hub.port}/livez")
    await page.until("location.hostname == 'localhost' && document.readyState == 'complete'")
    await page.run(
        f"var hub = 'http://127.0.0.1:{hub.port}', token = {json.dumps(token('service_role'))}\n{SHORT};"
        f"append({json.dumps(stream.name)}, ['one ', 'two'])")
    assert (await stream.read("?offset=-1")).body == b"one two"
    stopped = Stream(http)
    await stopped.create()
    await page.run(f"""
        window.took = 0
        var wait = new Promise(resolve => window.goOn = resolve)
        window.appending = append({json.dumps(stopped.name)}, (async function* () {{
          for (const piece of ['one', 'two', 'three']) {{ took += 1; yield piece; if (took === 1) await wait }}
        }})()); null""")

    async def has_one():
        return (await stopped.read("?offset=-1")).body == b"one"
    await eventually(has_one, what="the first piece")
    await stopped.cancel()
    await page.run("goOn(); appending")
    assert await page.run("took") == 2, "it stops when it is told"
    assert (await stopped.read("?offset=-1")).body == b"one"
    await page.close()
