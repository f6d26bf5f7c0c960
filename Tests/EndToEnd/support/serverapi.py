"""The HTTP API for backends, as a backend calls it."""

from support.deadline import PATIENCE
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
        """All entries of a list, page by page."""
        entries, answer = [], await self.get(path)
        entries += answer[of]
        while answer["next"]:
            answer = await self.get(f"{path}&cursor={answer['next']}")
            entries += answer[of]
        return entries
