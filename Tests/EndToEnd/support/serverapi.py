"""The HTTP API for backends, as a backend calls it."""

from support.deadline import PATIENCE, eventually
from support.http import HTTPConnection
from support.tokens import token


class Backend:
    """Calls one hub's API with a service token, on a connection for each call."""

    def __init__(self, hub, prefix="/api"):
        self.hub, self.prefix = hub, prefix

    async def call(self, method, path, body=None, within=PATIENCE, **headers):
        headers = {"authorization": "Bearer " + token("service_role"), **headers}
        async with await HTTPConnection.open(self.hub.port) as http:
            return await http.request(method, self.prefix + path, body, within=within, **headers)

    async def get(self, path):
        answer = await self.call("GET", path)
        assert answer.status == 200, (answer.status, answer.body)
        return answer.json

    async def post(self, path, body=None):
        answer = await self.call("POST", path, body)
        assert answer.status == 200, (answer.status, answer.body)
        return answer.json

    async def pages(self, path, of):
        """All entries of a list, page by page; a page that is not of all hubs is asked for once more, for on a busy machine one may take
        longer than the half second that it has."""
        entries, cursor = [], None
        while True:
            at = f"{path}&cursor={cursor}" if cursor else path
            answer = await eventually(lambda: self._whole(at), what="a page of all hubs")
            entries += answer[of]
            cursor = answer["next"]
            if not cursor:
                return entries

    async def _whole(self, path):
        answer = await self.get(path)
        return None if answer["incomplete"] else answer
