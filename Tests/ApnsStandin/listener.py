"""A port that clients push to."""

import asyncio

from connection import Connection


class Listener:
    """One of Apple's two services; without an environment of its own, the one that the service is set to."""

    def __init__(self, service, host, port, tls, environment=None, connection=Connection):
        self.service, self.host, self.port, self.tls = service, host, port, tls
        self.own_environment, self.server, self.connection = environment, None, connection

    @property
    def environment(self):
        return self.own_environment or self.service.environment

    async def open(self):
        loop = asyncio.get_running_loop()
        self.server = await loop.create_server(
            lambda: self.connection(self.service, self), self.host, self.port, ssl=self.tls, reuse_address=True, backlog=64)
        self.port = self.server.sockets[0].getsockname()[1]

    async def close(self, seconds):
        """Connections are refused for so long."""
        if self.server is None:
            return
        self.server.close()
        self.server = None
        asyncio.get_running_loop().call_later(seconds, lambda: asyncio.ensure_future(self.open()))
