"""docs/compatibility.md, of what the stories showed."""

import pathlib

from clients import ALL
from clients.stories import ALL as STORIES

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs/compatibility.md"

FEATURES = ("rows", "broadcasts", "presence", "private channels", "tokens")
TITLES = {"rows": "row changes", "tokens": "a fresh token on the same socket"}

#: How a client was tried beside its emulator.
REAL = {"Python": "the package itself, in many end-to-end tests, of which one holds the emulator against it; its own suite (`make test-clients`)",
        "JavaScript": "by Supabase's own suites (`make test-clients`); realtime-js in Node and Chromium, by hand (docs/clients.md)",
        "JavaScriptOne": "realtime-js 1.7.5 in Node, by hand"}

HEAD = """# Compatibility

Clients for Supabase Realtime, and what each can do with Roost. This page is written by the tests (`make compatibility`), and they fail if it
does not say what they saw.

| you want to know | read |
|---|---|
| how to point a client here | [clients.md](clients.md) |
| what an app may notice beside Supabase Realtime | [supabase.md](supabase.md#differences) |
| what each frame means | [protocol.md](protocol.md) |

## How was this tried?

By emulators (`Tests/EndToEnd/clients`): each sends frame by frame what its client sends, with the client's heartbeats, its way to reconnect
and its ways to get stuck, as read in its sources. The pauses between attempts go by 25 times as fast as the client's; what races against the
hub does not. An emulator is not the client: what a library's own types make of a frame is in it only where we knew of it.

| client | version | sources read | tried besides |
|---|---|---|---|
"""

STORIES_HEAD = """
## What happens in a day?

Each story was played with a user's rows, broadcasts and presence, on a hub with the settings of `config/roost.yaml` (but for a smaller limit of
payloads). "yes": the client came
through it and nothing was lost, out of order, or shown to the wrong user, and the lists of who is there were right. What was not proven to
have arrived is brought again, so rows may come twice where a socket was lost ([recovery.md](recovery.md)).

| story | |
|---|---|
"""

REASONS_HEAD = """
**Why not?** Each of these is the client's own doing, as read in its sources, whatever the server is. It was not tried with Supabase's.

| | |
|---|---|
"""


def cell(story, kind, outcome, reasons):
    if outcome is None:
        return "–"
    if story.name in kind.known:
        reason = kind.known[story.name]
        if reason not in reasons:
            reasons.append(reason)
        return f"no ({reasons.index(reason) + 1})"
    return "after a freeze" if outcome.freezes else "yes"


def table(columns, rows):
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def first_sentence(text):
    return text.strip().split("\n\n")[0].replace("\n", " ").strip()


def render(outcome):
    """`outcome(story, kind)`."""
    clients = [(kind.name, kind.version_read, kind.sources, REAL.get(kind.__name__, "")) for kind in ALL]
    head = HEAD + "".join("| " + " | ".join(row) + " |\n" for row in clients)

    lacking = []
    def feature(kind, name):
        reason = kind.lacks.get(name)
        if reason is None:
            return "yes"
        if reason not in lacking:
            lacking.append(reason)
        return f"no ({chr(ord('a') + lacking.index(reason))})"
    features = [[kind.name, *(feature(kind, name) for name in FEATURES)] for kind in ALL]
    can = "\n## Which one can what?\n\n" + table(["", *(TITLES.get(name, name) for name in FEATURES)], features)
    can += "\nA \"no\" is what the client cannot ask for: " + "; ".join(
        f"({chr(ord('a') + place)}) it {reason}" if not reason.startswith("it") else f"({chr(ord('a') + place)}) {reason}"
        for place, reason in enumerate(lacking)) + ".\n"

    reasons = []
    rows = [[kind.name, *(cell(story, kind, outcome(story, kind), reasons) for story in STORIES)] for kind in ALL]
    stories = STORIES_HEAD + "".join(f"| {story.name} | {first_sentence(type(story).__doc__)} |\n" for story in STORIES)
    stories += "\n" + table(["", *(story.name for story in STORIES)], rows)
    stories += "\n\"–\": the client lacks what the story needs. \"After a freeze\": supabase-kt reads nothing for 15 to 30 seconds after any error, and "
    stories += "comes back by itself.\n"
    stories += REASONS_HEAD + "".join(f"| {place + 1} | {reason} |\n" for place, reason in enumerate(reasons))
    return head + can + stories
