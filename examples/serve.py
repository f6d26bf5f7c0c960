"""Serves the pages of these examples, and prints a link for each page and person of a running `make run` (roost demo).

    python3 examples/serve.py                             # the demo on port 4000
    python3 examples/serve.py --hub http://127.0.0.1:4100
    python3 examples/serve.py --token "$(roost token --role authenticated --sub ada)"      # a hub of your own

Only Python's standard library. It listens on 127.0.0.1 alone: whoever reads these links has their tokens.
"""

import argparse
import base64
import functools
import http.server
import json
import pathlib
import urllib.parse
import urllib.request

PAGES = ["chat", "presence", "cursors", "webrtc", "ask", "voice"]
FOLDER = pathlib.Path(__file__).parent / "web"


class Handler(http.server.SimpleHTTPRequestHandler):
    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, ".js": "text/javascript"}

    def log_message(self, *_):
        pass


def people(options):
    """Who the pages may be opened as: id, name, token."""
    if options.token:
        claims = json.loads(base64.urlsafe_b64decode(options.token.split(".")[1] + "=="))
        return [{"id": claims.get("sub", "me"), "name": "Me", "token": options.token}]
    # The demo hands a token of each of its people to whoever asks. No hub of your own does.
    with urllib.request.urlopen(f"{options.hub}/demo/api/session", timeout=5) as answer:
        return json.load(answer)["users"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hub", default="http://127.0.0.1:4000")
    parser.add_argument("--token", help="for a hub that is no demo")
    parser.add_argument("--port", type=int, default=8000, help="0: any that is free")
    options = parser.parse_args()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", options.port), functools.partial(Handler, directory=FOLDER))
    for person in people(options)[:2]:
        print(f"\nas {person['name']}:")
        for page in PAGES:
            query = urllib.parse.urlencode({
                "hub": options.hub.replace("http", "ws", 1), "id": person["id"], "name": person["name"],
                "token": person["token"]})
            print(f"  http://127.0.0.1:{server.server_port}/{page}.html#{query}")
    print("\nserving; Ctrl-C ends it", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
