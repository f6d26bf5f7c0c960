"""A backend whose replies the hub keeps and passes on (docs/streams.md). Python's standard library.

    export ROOST_STREAMS_FORWARD_SECRET=whsec_$(openssl rand -base64 32)   # here, and where the hub runs
    python3 examples/replies/backend.py 8081

It answers POST /ask with words and POST /voice with words and sound, as an event stream. It knows nothing of streams: a client that
drops, comes late or interrupts is the hub's concern. If one interrupts, the hub hangs up here, and the next write fails.
"""

import base64
import hmac
import http.server
import json
import math
import os
import struct
import sys
import time

SECRET = base64.b64decode(os.environ["ROOST_STREAMS_FORWARD_SECRET"].removeprefix("whsec_"))


def verify(headers, body):
    """Whose request it is and for which turn; the hub alone can have signed it, and not long ago."""
    text = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.{headers['roost-turn']}.".encode() + body
    right = "v1," + base64.b64encode(hmac.digest(SECRET, text, "sha256")).decode()
    if not hmac.compare_digest(right, headers["webhook-signature"] or "") or abs(time.time() - int(headers["webhook-timestamp"])) > 300:
        raise PermissionError
    return json.loads(base64.b64decode(headers["roost-turn"]))


def tone(word, seconds=0.2, rate=8000):
    """In place of a voice: 16 bits, 8,000 times a second, and as high as the word is long."""
    wave = (int(6000 * math.sin(2 * math.pi * (200 + 40 * len(word)) * n / rate)) for n in range(int(seconds * rate)))
    return base64.b64encode(b"".join(struct.pack("<h", one) for one in wave)).decode()


class Backend(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            turn = verify(self.headers, body)
        except PermissionError:
            return self.send_error(401)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        asked = json.loads(body)["text"]
        for word in f"{turn['claims'].get('sub', 'Somebody')}, you asked: {asked} I am thinking about it. ".split(" "):
            self.say("text", {"text": word + " "})
            if self.path == "/voice" and word:
                self.say("audio", {"audio": tone(word)})
            time.sleep(0.1)
        self.say("done", {})

    def say(self, event, data):
        self.wfile.write(f"event: {event}\ndata: {json.dumps(data)}\n\n".encode())

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Backend)
    server.handle_error = lambda *_: None  # Whoever interrupts hangs up.
    print(f"serving on port {server.server_port}", flush=True)
    server.serve_forever()
