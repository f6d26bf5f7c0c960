#!/usr/bin/env python3
"""Holds every Swift type of this tree to a name of its own, over Sources, Tests, loadtest and examples: a name that stands twice sends
a reader to the wrong file, and an import can change which of the two is meant. Prints each name that stands twice, with its
places, and ends with 1 where there is one. Part of `make lint`.

Types at the top level count, private ones and those of tests too. Types within a type do not: the outer name tells them
apart. Nor does the code of RoostClient's tutorial, which is not compiled: there each step shows the same type anew.

And holds the rooms of the hub to `Wire.Name` where a name decides: a map, a set or a `Hashable` type whose key is a Swift string takes
two names for one that Unicode calls equivalent and Postgres does not. Keys that nobody outside chooses may be strings; they stand in
STRINGS, with the reason.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TYPE = re.compile(r"^(?:(?:@\w+(?:\([^)]*\))?|[a-z]+(?:\([a-z]+\))?)\s+)*?(?:actor|class|enum|protocol|struct|typealias)\s+(\w+)", re.MULTILINE)

# Rooms in which no name of a client's decides: commands, pages, configuration, the client's library.
OUTSIDE = {"Administration", "Demo", "Documents", "RoostClient", "Settings", "roost"}
KEYED = re.compile(r"\[String ?: ?[^(\s]|\b(?:Set|OrderedSet|OrderedDictionary|Dictionary|TimerQueue|Deque)<String\b")
HASHABLE = re.compile(r"\b(?:struct|enum|class) \w+(?:<[^>]*>)?: [^\n{]*\bHashable\b[^{]*\{")
FIELD = re.compile(r"\b(?:let|var) \w+: \[?String\??\]?\s*$|^\s*(?:indirect )?case .*\bString\b")
OURS, OPERATOR, ASCII, MESSAGE = (
    "constants of the hub", "the operator's configuration", "numbers or base64, which have no equivalents", "sentences, for the log")
STRINGS = {
    "Capture/Storing/CaptureStore.swift": ASCII,
    "ChangeFeed/Catalog/MemberReadsAnalysis.swift": OURS, "ChangeFeed/Catalog/NodeTree.swift": OURS,
    "ChangeFeed/Policies/PolicyPlan.swift": OURS, "ChangeFeed/Policies/PolicyRequest.swift": MESSAGE,
    "ChangeFeed/Subscriptions/LiveSubscriptions.swift": MESSAGE, "ChangeFeed/Visibility/Visibility.swift": MESSAGE,
    "ChangeFeed/Window/Snapshot.swift": OURS, "Cluster/HubIdentity.swift": OPERATOR, "Cluster/Peers/PeerTable.swift": OPERATOR,
    "Clustering/ClusterWorker+Link.swift": OPERATOR, "Clustering/PeerSessions.swift": OPERATOR,
    "DurableStreams/ShownTypes.swift": OURS, "DurableStreams/StreamRoute.swift": OPERATOR,
    "Gateway/Admission/RefusalLog.swift": OURS, "Gateway/HTTP/RequestRouter.swift": OURS, "Gateway/HTTP/StreamReaders.swift": OPERATOR,
    "Gateway/HTTP/TLSServer.swift": OURS, "Gateway/Loop/LoopFigures.swift": OURS, "HTTP/AllowedOrigins.swift": OPERATOR,
    "HTTP/HTTPRequest.swift": OURS, "HTTP/TokenSource.swift": OURS, "Hub/HubContext.swift": OURS,
    "Hub/Push/PushRegistration.swift": ASCII, "Hub/Recovery/RecoveryQuestion.swift": ASCII, "Hub/Typing/TypingSignal.swift": OURS,
    "Identity/JWTVerifier.swift": ASCII, "Identity/VerificationKey.swift": OPERATOR, "Listening/ListenerWorker.swift": OPERATOR,
    "Listening/NotificationOrder.swift": ASCII, "Matching/ChangeParameters.swift": MESSAGE,
    "Matching/Filter/ChangeFilter.swift": "compared in tests alone", "Matching/Postgres/ValidationQuery.swift": "compared in tests alone",
    "Matching/Values/FilterValueReader.swift": OURS, "Notify/PushRules.swift": OPERATOR, "Ops/Figures.swift": OURS,
    "Ops/OpsPages.swift": OURS, "Ops/Systemd.swift": OPERATOR, "Postgres/SQLFile.swift": OURS, "Postgres/SQLTemplate.swift": OURS,
    "Postgres/Statements.swift": OURS, "Push/Activities/ContentTemplate.swift": OURS, "Push/Notifications/JSONTemplate.swift": OPERATOR,
    "Push/Notifications/PushID.swift": ASCII, "Push/Notifications/TemplateVariables.swift": OPERATOR, "Push/Sending/Answer.swift": OURS,
    "Push/Sending/PushStatistics.swift": OURS, "Redis/Address/RedisAddress.swift": OPERATOR, "Redis/Link/RedisScript.swift": OURS,
    "Stores/Presence/UserStatusWriter.swift": ASCII, "Wire/EventFrame.swift": OURS, "Wire/TextTemplate.swift": OPERATOR,
    "Workers/Reconnector.swift": MESSAGE,
}


def keyed_by_strings(path):
    """Lines of a file on which a Swift string is a key, or part of one."""
    text = path.read_text(encoding="utf-8")
    code = "\n".join("" if line.lstrip().startswith("//") else line for line in text.split("\n"))
    yield from (code.count("\n", 0, match.start()) + 1 for match in KEYED.finditer(code))
    for match in HASHABLE.finditer(code):
        depth, at = 1, match.end()
        while depth and at < len(code):
            depth += {"{": 1, "}": -1}.get(code[at], 0)
            at += 1
        body = code[match.end():at]
        if "static func ==" in body:
            continue
        depth = 0
        for number, line in enumerate(body.split("\n")):
            if depth == 0 and FIELD.search(line):
                yield code.count("\n", 0, match.end()) + 1 + number
            depth += line.count("{") - line.count("}")


def string_keys():
    """Every line of the hub's rooms that STRINGS does not excuse, and every excuse that nothing needs."""
    needed = set()
    for path in sorted((ROOT / "Sources").rglob("*.swift")):
        name = str(path.relative_to(ROOT / "Sources"))
        if name.split("/")[0] in OUTSIDE:
            continue
        lines = sorted(set(keyed_by_strings(path)))
        if lines and name in STRINGS:
            needed.add(name)
        elif lines:
            yield f"Sources/{name}:{lines[0]}: a key is a Swift string; make it a Name, or say in scripts/check-names.py why it may be one"
    yield from (f"scripts/check-names.py excuses {name}, which has no string for a key" for name in sorted(set(STRINGS) - needed))


def main():
    places = defaultdict(list)
    for folder in ("Sources", "Tests", "loadtest", "examples"):
        for path in sorted((ROOT / folder).rglob("*.swift")):
            if not any(part.endswith(".docc") or part == ".build" for part in path.parts):
                for name in TYPE.findall(path.read_text(encoding="utf-8")):
                    places[name].append(str(path.relative_to(ROOT)))
    twice = {name: paths for name, paths in places.items() if len(paths) > 1}
    for name, paths in sorted(twice.items()):
        print(f"check-names: {name} is the name of {len(paths)} types: {', '.join(paths)}", file=sys.stderr)
    strings = list(string_keys())
    for problem in strings:
        print(f"check-names: {problem}", file=sys.stderr)
    sys.exit(1 if twice or strings else 0)


if __name__ == "__main__":
    main()
