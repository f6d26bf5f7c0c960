"""The control port: HTTP/1.1 and JSON, for tests and for curl."""

import asyncio
import json

HELP = """APNs stand-in: the control port
GET  /summary      violations, answers by status and reason, connections, provider tokens
GET  /log?after=n  what came (records after the nth)
GET  /violations   what the client did wrong
POST /tokens       {"<token>": {"environment", "bundle", "kind", "gone": ms, "gone_reason", "bad": true} or null}
POST /script       a rule or a list of rules (see script.py); DELETE /script forgets them
POST /settings     {"delay", "speed", "streams", "environment", "clock_offset"}
POST /connections  {"do": "goaway" | "abort" | "freeze" | "vanish" | "idle" | "refuse", "seconds"?: 1,
                    "environment"?: of one service alone}
POST /reset        forget what it was told and what it saw
"""


class Control:
    def __init__(self, service, listeners):
        self.service, self.listeners = service, listeners

    async def serve(self, reader, writer):
        try:
            while line := await reader.readline():
                method, target, _ = line.decode("latin-1").split(" ", 2)
                length = 0
                while (header := await reader.readline()).strip():
                    name, _, value = header.decode("latin-1").partition(":")
                    if name.lower() == "content-length":
                        length = int(value)
                body = await reader.readexactly(length)
                status, answer = await self.answer(method, target, body)
                data = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode() + b"\n"
                writer.write(
                    f"HTTP/1.1 {status} X\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def answer(self, method, target, body):
        path, _, query = target.partition("?")
        try:
            told = json.loads(body) if body.strip() else {}
            handler = self.ROUTES.get((method, path))
            return (200, await handler(self, told, query)) if handler else (404, HELP)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            return 400, {"error": f"{type(error).__name__}: {error}"}

    async def _help(self, told, query):
        return HELP

    async def _summary(self, told, query):
        return self.service.summary()

    async def _log(self, told, query):
        after = int(query.removeprefix("after=") or 0)
        return [record for record in self.service.log.records if record.get("n", after + 1) > after]

    async def _violations(self, told, query):
        return list(self.service.log.violations)

    async def _tokens(self, told, query):
        for token, facts in told.items():
            self.service.devices.tell(token, facts)
        return {"known": len(self.service.devices.told)}

    async def _script(self, told, query):
        self.service.script.add(told if isinstance(told, list) else [told])
        return self.service.script.progress()

    async def _forget_script(self, told, query):
        self.service.script.rules.clear()
        return []

    async def _settings(self, told, query):
        known = ("delay", "speed", "streams", "environment", "clock_offset")
        if not set(told) <= set(known):
            raise ValueError(f"settings are {', '.join(known)}")
        for name, value in told.items():
            setattr(self.service, name, value)
        return {name: getattr(self.service, name) for name in known}

    async def _connections(self, told, query):
        what, seconds = told["do"], told.get("seconds", 1)
        listeners = [each for each in self.listeners if told.get("environment") in (None, each.environment)]
        connections = [each for each in self.service.connections if each.listener in listeners]
        if what not in ("goaway", "abort", "freeze", "vanish", "idle", "refuse"):
            raise ValueError(f"{what} cannot be done to connections")
        if what == "refuse":
            for listener in listeners:
                await listener.close(seconds)
        for connection in connections:
            if what in ("freeze", "vanish"):
                getattr(connection, what)(seconds)
            elif what in ("abort", "refuse"):
                connection.abort()
            else:
                reason = "IdleTimeout" if what == "idle" else None
                connection.goaway(connection.h2.highest_inbound_stream_id, reason)
        return {"connections": len(connections)}

    async def _reset(self, told, query):
        self.service.reset()
        return {}

    ROUTES = {
        ("GET", "/"): _help, ("GET", "/summary"): _summary, ("GET", "/log"): _log, ("GET", "/violations"): _violations,
        ("POST", "/tokens"): _tokens, ("POST", "/script"): _script, ("DELETE", "/script"): _forget_script,
        ("POST", "/settings"): _settings, ("POST", "/connections"): _connections, ("POST", "/reset"): _reset,
    }
