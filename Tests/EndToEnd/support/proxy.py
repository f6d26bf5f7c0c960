"""The network between a client and a server: TCP through a port that can be cut, closed and opened again."""

import asyncio
import socket
import struct


class Proxy:
    """Forwards a port of its own to `target`: a port of 127.0.0.1, or a pair of an address and a port."""

    #: Bytes that a target's socket takes unread, where it is to be full soon.
    receive_buffer = None

    def __init__(self, target, host="127.0.0.1"):
        self.target, self.host = target, host
        self.port = None
        self._server = None
        self._writers = set()
        self._tasks = set()
        self._flows = asyncio.Event()
        self._flows.set()

    async def __aenter__(self):
        await self.open()
        return self

    async def __aexit__(self, *_):
        await self.close()

    async def open(self):
        """The network is there."""
        self._server = await asyncio.start_server(self._connect, self.host, self.port or 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self):
        """The network is gone: connections are reset, and nobody can connect."""
        if self._server:
            self._server.close()
            self._server = None
        self.cut()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def connections(self):
        """How many there are."""
        return len(self._writers) // 2

    def cut(self):
        """Every connection is reset, in the middle of whatever it does; new ones are possible at once."""
        for writer in self._writers:
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        self._writers = set()

    def stall(self):
        """Connections stay, and nothing passes any more."""
        self._flows.clear()

    def flow(self):
        """What was held up passes, in its order."""
        self._flows.set()

    async def _connect(self, reader, writer):
        task = asyncio.current_task()
        self._tasks.add(task)
        try:
            target = self.target if isinstance(self.target, tuple) else ("127.0.0.1", self.target)
            there = socket.socket()
            there.setblocking(False)
            if self.receive_buffer:
                there.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_buffer)
            await asyncio.get_running_loop().sock_connect(there, target)
            there_reader, there_writer = await asyncio.open_connection(sock=there)
        except OSError:
            there.close()
            writer.transport.abort()
            return
        finally:
            self._tasks.discard(task)
        both = {writer, there_writer}
        self._writers |= both
        for source, sink in ((reader, there_writer), (there_reader, writer)):
            pump = asyncio.create_task(self._pump(source, sink, both))
            self._tasks.add(pump)
            pump.add_done_callback(self._tasks.discard)

    async def _pump(self, source, sink, both):
        try:
            while data := await source.read(65536):
                await self._flows.wait()
                sink.write(data)
                await sink.drain()
        except OSError:
            pass
        finally:
            for writer in both:
                writer.close()
            self._writers -= both
