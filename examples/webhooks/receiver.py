"""A backend that is told what happens on a hub (docs/webhooks.md). Python's standard library.

    export ROOST_WEBHOOKS_SECRET=whsec_$(openssl rand -base64 32)       # here, and where the hub runs
    python3 examples/webhooks/receiver.py 8080
    ROOST_WEBHOOKS_URL=http://127.0.0.1:8080/ make run                  # in another terminal

It prints each event once. Yours would store it before it answers: what is answered 2xx is not sent again.
"""

import base64
import collections
import hmac
import http.server
import json
import os
import sys
import time

SECRET = base64.b64decode(os.environ["ROOST_WEBHOOKS_SECRET"].removeprefix("whsec_"))
#: Seconds for which a recorded message could be sent again by somebody else.
TOLERANCE = 300
#: Of the last messages: one whose answer was lost on its way comes again. Yours would keep them in its database.
known = collections.OrderedDict()


def is_from_the_hub(headers, body):
    text = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    right = "v1," + base64.b64encode(hmac.digest(SECRET, text, "sha256")).decode()
    is_new = abs(time.time() - int(headers["webhook-timestamp"] or 0)) < TOLERANCE
    # In constant time, so that a guess learns nothing; over the bytes as they came, before anything is parsed.
    return hmac.compare_digest(right, headers["webhook-signature"] or "") and is_new


def take(event):
    match event["type"]:
        case "channel.occupied" | "channel.vacated":
            print(f"{event['channel']} is {'in use' if event['type'] == 'channel.occupied' else 'empty'}")
        case "member.joined" | "member.left":
            print(f"{event['key']} {'is in' if event['type'] == 'member.joined' else 'has left'} {event['channel']}")
        case "client.connected" | "client.disconnected":
            print(f"{event.get('user', 'somebody')} {event['type'].removeprefix('client.')}")
        case "hub.started":
            print("the hub has started: all that it said before is over")
        case "events.missed":
            print(f"{event['count']} events are missing: read the state anew")
    sys.stdout.flush()


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if not is_from_the_hub(self.headers, body):
            return self.answer(401)
        message = self.headers["webhook-id"]
        if message not in known:
            for event in json.loads(body)["data"]["events"]:
                take(event)
            known[message] = True
            if len(known) > 10_000:
                known.popitem(last=False)
        self.answer(204)

    def answer(self, status):
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
