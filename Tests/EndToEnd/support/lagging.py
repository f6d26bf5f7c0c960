"""Hubs of a cluster that hear the others one later than the next: `make test-lagging`.

On a machine with room they hear each other within a millisecond, and a test that asks one what another was told passes by chance. Behind
such links it fails each time.
"""

import asyncio
import contextlib
import os
import subprocess
import sys
import time

#: Seconds by which the first hub, the second, … is late; none where tests run as usual.
LAGS = [float(lag) for lag in os.environ.get("ROOST_LAGS", "").split(",") if lag]


def url(redis, number):
    """What hub `number` is told of a server of support.redis."""
    if not LAGS:
        return redis.url()
    # A process of its own, so that no test that is busy makes a hub take Redis for dead. It ends with this one, which has its input.
    link = subprocess.Popen([sys.executable, __file__, str(redis.port), str(LAGS[number % len(LAGS)])], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)
    return f"redis://127.0.0.1:{int(link.stdout.readline())}"


class Link:
    """What a hub says goes straight to Redis, and what Redis says comes late."""

    def __init__(self, port, lag):
        self.port, self.lag = port, lag

    async def take(self, reader, writer):
        with contextlib.suppress(OSError):
            from_redis, to_redis = await asyncio.open_connection("127.0.0.1", self.port)
            late = asyncio.Queue()
            said, shown = asyncio.create_task(self._pass(reader, to_redis)), asyncio.create_task(self._show(late, writer))
            with contextlib.suppress(OSError):
                while data := await from_redis.read(65_536):
                    late.put_nowait((time.monotonic() + self.lag, data))
            late.put_nowait((0, b""))
            await shown
            said.cancel()
            to_redis.close()
        writer.transport.abort()

    @staticmethod
    async def _pass(reader, to_redis):
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                to_redis.write(data)
                await to_redis.drain()
        to_redis.close()

    @staticmethod
    async def _show(late, writer):
        with contextlib.suppress(OSError):
            while True:
                at, data = await late.get()
                if not data:
                    return
                await asyncio.sleep(max(0, at - time.monotonic()))
                writer.write(data)
                await writer.drain()


async def serve(port, lag):
    server = await asyncio.start_server(Link(port, lag).take, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    # Until whoever started it has ended.
    await asyncio.to_thread(sys.stdin.read)
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), float(sys.argv[2])))
