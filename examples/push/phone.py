"""What an app tells the hub of its phone, so that its user is alerted while the app is closed. Python's standard library.

    export HUB=http://127.0.0.1:4000 TOKEN=…         # of the user; examples/README.md says where from
    python3 examples/push/phone.py register 0a0a…    # at each start of the app, with the token that iOS gave it
    python3 examples/push/phone.py forget 0a0a…      # when the user signs out
    python3 examples/push/phone.py activity CHAT-1 0b0b… CONVERSATION       # a Live Activity, each time its token changes
    python3 examples/push/phone.py activities        # which ones the hub knows

Without Apple: `make apns-standin` prints what to set for the hub, and then a line for each push. The calls are those of
docs/push.md; an app makes them with URLSession, and every one may be repeated.
"""

import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request

HUB, TOKEN = os.environ.get("HUB", "http://127.0.0.1:4000"), os.environ["TOKEN"]


def call(method, path, body=None, **query):
    address = f"{HUB}/api/{path}" + (f"?{urllib.parse.urlencode(query)}" if query else "")
    request = urllib.request.Request(
        address, method=method, data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            text = answer.read()
            return json.loads(text) if text else {}
    except urllib.error.HTTPError as refusal:
        # 401: get another token and try again. 4xx: the sentence says what to change. 5xx: try again later.
        problem = json.loads(refusal.read() or b"{}")
        sys.exit(f"{refusal.code}: {problem.get('message') or problem.get('error')}")


def register(device, replaces=None):
    """Of two users of one phone the last one to register gets its alerts. `replaces`: the token from before, if it changed."""
    body = {"token": device, "environment": "sandbox", **({"replaces": replaces} if replaces else {})}
    print(call("POST", "devices", body))


def forget(device):
    call("DELETE", "devices", device=device)
    print("nothing more goes to this phone")


def activity(activity_id, push_token, conversation):
    """From here on the hub keeps the card right: by socket while the app is connected, else by push."""
    print(call("POST", "live-activity/register", {
        "activityId": activity_id, "activityPushToken": push_token, "conversationId": conversation,
        "environment": "sandbox"}))


def activities():
    for one in call("GET", "live-activity/registrations")["registrations"]:
        print(one["activityId"], one["environment"], f"{one['tokenPrefix']}…")


COMMANDS = {"register": register, "forget": forget, "activity": activity, "activities": activities}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        sys.exit(__doc__)
    COMMANDS[sys.argv[1]](*sys.argv[2:])
