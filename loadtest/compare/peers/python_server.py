"""A fan-out server on Python's `websockets`: every message goes to every socket. python_server.py PORT [LOSE]

With LOSE it leaves out every LOSE-th message, for the self-test: the check must notice."""

import asyncio
import sys

import websockets

sockets = set()
lose = int(sys.argv[2]) if len(sys.argv) > 2 else 0
count = 0


async def serve(socket):
    global count
    sockets.add(socket)
    try:
        async for message in socket:
            count += 1
            if not lose or count % lose:
                websockets.broadcast(sockets, message)
    finally:
        sockets.discard(socket)


async def main():
    async with websockets.serve(serve, "127.0.0.1", int(sys.argv[1]), compression=None, ping_interval=None, backlog=4096):
        await asyncio.Future()


asyncio.run(main())
