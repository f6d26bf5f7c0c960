"""An application's backend that answers requests which the hub passes on (`streams.routes` with `forward`), in a process of its own.

    python -m support.reply_backend SECRET

It prints its port. The JSON of a request says how it is answered: `{"as": "events", "texts": ["a", "b"], "pause": 0.01}`.
"""

import asyncio
import base64
import hashlib
import hmac
import json
import os
import sys

HEADS = {"events": "text/event-stream", "lines": "application/x-ndjson", "whole": "application/json", "page": "text/html"}


def signature(secret, headers, body):
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.{headers['roost-turn']}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def is_signed(secret, headers, body):
    return hmac.compare_digest(headers["webhook-signature"], signature(secret, headers, body))


class Backend:
    def __init__(self, secret):
        self.secret, self.seen = secret, 0

    async def serve(self, reader, writer):
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            self.seen += 1
            if not is_signed(self.secret, headers, body):
                return await self.answer(writer, "401 Unauthorized", "application/json", b'{"type": "error", "error": "signature"}')
            turn = json.loads(base64.b64decode(headers["roost-turn"]))
            await self.reply(json.loads(body), turn, headers, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def answer(self, writer, status, kind, body):
        writer.write(f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()

    async def reply(self, asked, turn, headers, writer):
        way = asked.get("as", "events")
        if way == "status":
            return await self.answer(writer, asked["status"], "application/json", json.dumps(asked["body"]).encode())
        if way == "silent":
            return await asyncio.sleep(60)
        if way == "break":
            return None
        if way == "whoami":
            return await self.answer(writer, "200 OK", HEADS["whole"], json.dumps(
                {"turn": turn, "authorization": headers.get("authorization"), "seen": self.seen}).encode())
        if way == "nothing":
            return await self.answer(writer, "202 Accepted", HEADS["whole"], b"")
        writer.write(f"HTTP/1.1 200 OK\r\ncontent-type: {HEADS[way]}\r\ntransfer-encoding: chunked\r\n\r\n".encode())
        for number, text in enumerate(asked.get("texts", []) * asked.get("times", 1)):
            message = json.dumps({"text": text, "n": number})
            piece = {"events": f"event: token\ndata: {message}\n\n", "lines": message + "\n", "whole": message, "page": text}[way].encode()
            writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            await writer.drain()
            if number + 1 == asked.get("dies_after"):
                os._exit(1)
            if pause := asked.get("pause"):
                await asyncio.sleep(pause)
        writer.write(b"0\r\n\r\n")
        await writer.drain()


async def main():
    server = await asyncio.start_server(Backend(sys.argv[1]).serve, "127.0.0.1", 0, backlog=2000)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
