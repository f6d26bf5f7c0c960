"""A server that answers as a test says, and remembers what it was sent: for what a hub would not do to a client."""

import json

from websockets.asyncio.server import serve


class StandIn:
    """By default it answers as the hub does where all is well. `script(event, topic)` may give other answers: a list of pairs of an event and a
    payload, which are sent with the refs of what they answer; or None for the default."""

    def __init__(self, version, script=None):
        self.version, self.script = version, script or (lambda event, topic: None)
        self.frames = []  # what came, decoded where it is text
        self._sockets = set()
        self._joins = {}

    async def __aenter__(self):
        self._server = await serve(self._serve, "127.0.0.1", 0, compression=None)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self._server.close(close_connections=True)
        await self._server.wait_closed()

    async def _serve(self, socket):
        self._sockets.add(socket)
        try:
            async for data in socket:
                frame = json.loads(data) if isinstance(data, str) else data
                self.frames.append(frame)
                if isinstance(data, str):
                    await self._answer(socket, frame)
        finally:
            self._sockets.discard(socket)

    async def _answer(self, socket, frame):
        names = ("join_ref", "ref", "topic", "event", "payload")
        came = dict(zip(names, frame, strict=True)) if self.version == 2 else frame
        event, topic, ref = came["event"], came["topic"], came.get("ref")
        if event == "phx_join":
            self._joins[topic] = came.get("join_ref") or ref
        answers = self.script(event, topic)
        if answers is None:
            answers = self._default(event, came["payload"])
        for answer, payload in answers:
            await self._send(socket, topic, answer, payload, ref if answer == "phx_reply" else None)

    @staticmethod
    def _default(event, payload):
        def reply(response):
            return [("phx_reply", {"status": "ok", "response": response})]
        match event:
            case "phx_join":
                rows = payload.get("config", {}).get("postgres_changes") or []
                system = {"extension": "postgres_changes", "status": "ok", "message": "Subscribed to PostgreSQL", "channel": "c"}
                return reply({"postgres_changes": [{**row, "id": 7 + place} for place, row in enumerate(rows)]}) + [("system", system)]
            case "heartbeat" | "phx_leave" | "presence": return reply({})
        return []

    async def say(self, topic, event, payload):
        for socket in list(self._sockets):
            await self._send(socket, topic, event, payload, None)

    async def _send(self, socket, topic, event, payload, ref):
        join_ref = self._joins.get(topic)
        if event in ("phx_close", "phx_error"):
            ref = join_ref
        frame = [join_ref, ref, topic, event, payload] if self.version == 2 else {
            "topic": topic, "event": event, "payload": payload, "ref": ref}
        await socket.send(json.dumps(frame))

    def events(self, topic=None):
        """Of the text frames that came."""
        names = [frame[2:4] if self.version == 2 else [frame["topic"], frame["event"]] for frame in self.frames if not isinstance(frame, bytes)]
        return [event for of, event in names if topic in (None, of) and event != "heartbeat"]
