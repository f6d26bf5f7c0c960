"""One user who takes all that he gets, in a process of its own and with the time that nobody else needs: his machine is not the hub's.

`Greedy(hub, table)` waits until each bound has refused him, and goes on knocking until its end. He stands still in `resting()`.
"""

import asyncio
import contextlib
import itertools
import os
import pathlib
import signal
import sys

from support.events import EventReader
from support.freezing import freeze
from support.http import HTTPConnection
from support.streams import Stream, bearer
from support.tokens import token
from support.websocket import Closed, Refused, WebSocket
from support.wsclient import Client

#: What is refused with 429.
REFUSED = {"streams", "bytes", "tickets", "long-polls", "event streams", "bodies", "sockets"}
PAUSE = 0.03
#: For how many seconds he waits for an answer: he has only the time that nobody else needs.
PATIENCE = 60


class Greedy:
    def __init__(self, hub, table):
        self.arguments = [str(hub.port), table]

    async def __aenter__(self):
        root = pathlib.Path(__file__).parent.parent
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "support.greedy", *self.arguments, cwd=root, env={**os.environ, "PYTHONPATH": str(root)},
            stdout=asyncio.subprocess.PIPE, preexec_fn=lambda: os.nice(19))
        async with asyncio.timeout(60):
            line = await self.process.stdout.readline()
        assert line == b"full\n", "it ended before all was refused"
        return self

    @contextlib.contextmanager
    def resting(self):
        freeze(self.process.pid)
        yield
        self.process.send_signal(signal.SIGCONT)

    async def __aexit__(self, *_):
        assert self.process.returncode is None, "it ended by itself"
        self.process.kill()
        await self.process.wait()


async def main(port, table):
    me, numbers, refused, rests = bearer("authenticated", sub="ann"), itertools.count(), set(), 0

    def goes_on(*_):
        nonlocal rests
        rests += 1
    # It runs before anything that a deadline which passed in between wakes.
    signal.signal(signal.SIGCONT, goes_on)

    def note(what, status):
        if status == 429:
            refused.add(what)

    # What he does, round by round. A pause belongs to the round behind it, whose connection it may end.

    async def ask(what, make):
        async with await HTTPConnection.open(port) as http:
            while True:
                note(what, (await make(http)).status)
                yield
                await asyncio.sleep(PAUSE)

    async def poll():
        async with await HTTPConnection.open(port) as http:
            while True:
                answer = await Stream(http, "ann/first", **me).read("?offset=now&live=long-poll", within=PATIENCE)
                note("long-polls", answer.status)
                yield
                await asyncio.sleep(1)

    async def read_events():
        while True:
            events = await EventReader.open(port, "/api/sse?channel=anns", within=PATIENCE, **me)
            async with events:
                note("event streams", events.status)
                await asyncio.sleep(1)
            yield

    async def upload():
        fields = "".join(f"{name}: {value}\r\n" for name, value in me.items())
        while True:
            async with await HTTPConnection.open(port) as http:
                http.write(f"POST /streams/ann/first HTTP/1.1\r\nhost: a\r\ncontent-type: text/plain\r\n{fields}"
                           "transfer-encoding: chunked\r\n\r\n1\r\na\r\n".encode())
                try:
                    note("bodies", (await http.answer(5)).status)
                except TimeoutError:
                    pass
            await asyncio.sleep(1)
            yield

    async def socket():
        path = f"/realtime/v1/websocket?apikey={token('authenticated', sub='ann')}&vsn=2.0.0"
        try:
            return Client(await WebSocket.open(port, path, within=PATIENCE), 2)
        except Refused as refused:
            note("sockets", refused.status)

    async def hold_sockets():
        while True:
            async with contextlib.AsyncExitStack() as held:
                while client := await socket():
                    await held.enter_async_context(client)
                    yield
                    await asyncio.sleep(PAUSE)
                await asyncio.sleep(1)

    async def come_and_go():
        config = {"postgres_changes": [{"event": "*", "schema": "public", "table": table}]}
        while True:
            if not (client := await socket()):
                await asyncio.sleep(PAUSE)
                continue
            for _ in range(5):
                topic, ref = f"realtime:anns/{next(numbers)}", client.ref()
                client.push(topic, "phx_join", {"config": config}, ref, ref)
                reply = await client.next("phx_reply", topic, ref, within=PATIENCE)
                assert reply.payload["status"] in ("ok", "error"), reply
            await client.close()
            await asyncio.sleep(PAUSE)
            yield

    async def guess():
        while True:
            try:
                await WebSocket.open(
                    port, f"/realtime/v1/websocket?apikey=nonsense{next(numbers)}", source="127.0.0.66", within=PATIENCE)
            except Refused:
                pass
            yield

    async with await HTTPConnection.open(port) as http:
        assert (await Stream(http, "ann/first", **me).create()).status == 201
    big = b"x" * 200_000

    async def go_on(rounds):
        while True:
            before = rests
            try:
                async for _ in rounds():
                    before = rests
            except (TimeoutError, OSError, EOFError, Closed):
                # While he stands still his deadlines go on, and the hub may end what says nothing. Anything else is the hub's fault.
                if rests == before:
                    raise
            await asyncio.sleep(1)

    running = [asyncio.create_task(go_on(rounds)) for rounds in (
        lambda: ask("streams", lambda http: Stream(http, f"ann/{next(numbers)}", **me).create(within=PATIENCE)),
        lambda: ask("streams", lambda http: Stream(http, f"ann/{next(numbers)}", **me).create(stream_closed="true", within=PATIENCE)),
        lambda: ask("bytes", lambda http: Stream(http, f"ann/big/{next(numbers) % 20}", **me).append(big, within=PATIENCE)),
        lambda: ask("bytes", lambda http: Stream(http, f"ann/big/{next(numbers) % 20}", **me).create(within=PATIENCE)),
        lambda: ask("tickets", lambda http: http.request("POST", "/api/sse/ticket", b"", within=PATIENCE, **me)),
        *[poll] * 22, *[read_events] * 22, *[upload] * 22, come_and_go, come_and_go, hold_sockets, guess, guess)]

    async def tell():
        while refused < REFUSED:
            await asyncio.sleep(0.1)
        print("full", flush=True)
    running.append(asyncio.create_task(tell()))
    for task in asyncio.as_completed(running):
        if await task is not None:
            return


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
