#!/usr/bin/env python3
"""Holds every Swift type of this tree to a name of its own, over Sources, Tests, loadtest and examples: a name that stands twice sends
a reader to the wrong file, and an import can change which of the two is meant. Prints each name that stands twice, with its
places, and ends with 1 where there is one. Part of `make lint`.

Types at the top level count, private ones and those of tests too. Types within a type do not: the outer name tells them
apart. Nor does the code of RoostClient's tutorial, which is not compiled: there each step shows the same type anew.

And holds the rooms of the hub to `Wire.Name` where a name decides: a map, a set or a `Hashable` type whose key is a Swift string takes
two names for one that Unicode calls equivalent and Postgres does not. Keys that nobody outside chooses may be strings; they stand in
STRINGS, with the reason. So does `==` of two strings that are names, by the words of NAMES; the excuses are in EQUALS. A script knows no
types: it looks for what a word is declared as, in the type that the receiver is called by, in the file, in its room, and anywhere.
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
    "ChangeFeed/Policies/PolicyFailure.swift": MESSAGE,
    "ChangeFeed/Subscriptions/LiveSubscriptions.swift": MESSAGE, "ChangeFeed/Visibility/PolicyTroubles.swift": MESSAGE,
    "ChangeFeed/Window/WindowStatements.swift": OURS, "Cluster/HubIdentity.swift": OPERATOR, "Cluster/Peers/PeerTable.swift": OPERATOR,
    "Clustering/ClusterWorker+Link.swift": OPERATOR, "Clustering/PeerSessions.swift": OPERATOR,
    "DurableStreams/ShownTypes.swift": OURS, "DurableStreams/StreamRoute.swift": OPERATOR,
    "Gateway/Admission/RefusalLog.swift": OURS, "Gateway/HTTP/RequestRouter.swift": OURS, "Gateway/HTTP/StreamForwards.swift": OPERATOR,
    "Gateway/HTTP/StreamReaders.swift": OPERATOR,
    "Gateway/Loop/LoopFigures.swift": OURS, "HTTP/AllowedOrigins.swift": OPERATOR,
    "HTTP/HTTPRequest.swift": OURS, "HTTP/TokenSource.swift": OURS, "Hub/Changes/RowSource.swift": OURS, "Hub/HubContext.swift": OURS,
    "Hub/Push/PushRegistration.swift": ASCII, "Hub/Recovery/RecoveryQuestion.swift": ASCII, "Hub/Typing/TypingSignal.swift": OURS,
    "Identity/JWTVerifier.swift": ASCII, "Identity/VerificationKey.swift": OPERATOR, "Listening/ListenerWorker.swift": OPERATOR,
    "Listening/NotificationOrder.swift": ASCII, "Matching/ChangeParameters.swift": MESSAGE,
    "Matching/Filter/ChangeFilter.swift": "compared in tests alone", "Matching/Postgres/ValidationQuery.swift": "compared in tests alone",
    "Matching/Values/FilterValueReader.swift": OURS, "Notify/PushRules.swift": OPERATOR, "Ops/Figures.swift": OURS,
    "Ops/OpsPages.swift": OURS, "Ops/Systemd.swift": OPERATOR, "Postgres/SQLFile.swift": OURS, "Postgres/SQLTemplate.swift": OURS,
    "Postgres/Statements.swift": OURS, "Push/Activities/ContentTemplate.swift": OURS, "Push/Activities/PostedState.swift": OURS,
    "Push/Notifications/AlertTemplate.swift": OPERATOR,
    "Push/Notifications/AlertTemplate+Sections.swift": OPERATOR, "Push/Notifications/JSONTemplate.swift": OPERATOR,
    "Push/Notifications/PushID.swift": ASCII, "Push/Notifications/TemplateVariables.swift": OPERATOR, "Push/Sending/Answer.swift": OURS,
    "Push/Sending/PushStatistics.swift": OURS, "Redis/Address/RedisAddress.swift": OPERATOR, "Redis/Link/RedisScript.swift": OURS,
    "Stores/Presence/UserStatusWriter.swift": ASCII, "Stores/Push/Audience.swift": OPERATOR, "Stores/Push/TimedTable.swift": OURS,
    "Wire/EventFrame.swift": OURS, "Wire/TextTemplate.swift": OPERATOR,
    "Workers/Reconnector.swift": MESSAGE,
}

# What a name is called, and what compares two of them.
NAMES = (r"\w*(?:[nN]ame|[tT]opic|[kK]ey|[sS]chema|[tT]able|[cC]olumn|[rR]ole|[uU]ser|[sS]ubject|[dD]evice|[sS]tream|[eE]vent|[sS]ession"
         r"|[pP]roducer|[cC]ondition|[eE]xpression|[tT]ype|[oO]wner)s?")
COLLECTED = re.compile(r"\bSet\([\w.$]+\.map\(\\\.(\w+)\)\)")
TYPED = re.compile(rf"\b({NAMES}): (?:borrowing |inout )?([\w.\[\]: ]+?)\??(?=[\s,)={{]|$)", re.MULTILINE)
MADE = re.compile(rf"\b(?:let|var) ({NAMES}) = ([^\n]*)")
TEXT = re.compile(r"\.text\([^()]*\)$|\.string$|^String\(.*\)$|\.text$|\.description$")
OPERAND = r"(?:[\w$]+(?:\[[^\]]*\])?[.?!]+)*[\w$]+"
EQUAL = re.compile(rf"(?<![\w.$\"])({OPERAND})[?!]? (?:==|!=) ({OPERAND})(?![\w(\"])")
EQUATABLE = re.compile(r"\b(?:struct|enum|class) \w+(?:<[^>]*>)?: [^\n{]*\bEquatable\b[^{]*\{")
NAMED = re.compile(rf"^\s*(?:package |public |private |fileprivate |internal )?(?:let|var) {NAMES}: \[?String\??\]?\??\s*$")
OWNER = re.compile(r"\b(?:struct|class|enum|extension|protocol) (\w+)[^{\n]*\{")
# Rooms in which descriptions of tables are compared as a whole. Elsewhere only tests compare values with names so.
CATALOGUED = {"Capture", "ChangeFeed", "Matching"}
EQUALS = {
    "ChangeFeed/Catalog/Scope.swift": "compared in tests alone", "ChangeFeed/Catalog/TableFault.swift": OURS,
    "Cluster/HubIdentity.swift": OPERATOR, "Clustering/ClusterWorker+Questions.swift": OPERATOR, "HTTP/AllowedOrigins.swift": OURS,
    "HTTP/HTTPRequest.swift": OURS, "HTTP/HTTPResponse.swift": OURS, "HTTP/Parser/HTTPHead.swift": OURS,
    "Hub/Receipts/SentRows.swift": "a ChannelKey, which compares bytes", "Ops/Figures.swift": OURS,
}


def declared(code, only_properties=False):
    """What words that may be names are declared as: sets of whether it is a string."""
    found = defaultdict(set)
    for match in TYPED.finditer(code):
        if not only_properties or re.search(r"\b(?:let|var) $", code[:match.start()][-8:]):
            found[match[1]].add(match[2].strip("[] ") in ("String", "Substring"))
    for match in MADE.finditer("" if only_properties else code):
        made = match[2].rstrip(" {").removesuffix(" else").split(", let ")[0].rstrip(",")
        if TEXT.search(made) or re.search(r"\bName\(|\.name\(", made):
            found[match[1]].add(bool(TEXT.search(made)))
    return found


def union(all_declared):
    found = defaultdict(set)
    for one in all_declared:
        for word, kinds in one.items():
            found[word] |= kinds
    return found


class Declarations:
    def __init__(self, files):
        self.files = {name: declared(code) for name, code in files.items()}
        self.rooms = {room: union(found for name, found in self.files.items() if name.split("/")[0] == room)
                      for room in {name.split("/")[0] for name in files}}
        self.all = union(self.files.values())
        self.receivers = {name: defaultdict(set) for name in files}
        for name, code in files.items():
            for receiver, kind in re.findall(r"\b(\w+): (\w+)\b", code):
                self.receivers[name][receiver].add(kind)
        self.owners = defaultdict(lambda: defaultdict(set))
        for code in files.values():
            for match in OWNER.finditer(code):
                body = code[match.end():end_of_block(code, match.end())]
                for word, kinds in declared(body, only_properties=True).items():
                    self.owners[match[1].lower()][word] |= kinds

    def owner(self, name, receiver):
        """What is declared in the types that a receiver may be of: by its own declaration, or by what it is called."""
        of_type = self.receivers[name].get(receiver, set()) | {receiver}
        return union(self.owners[kind.lower()] for kind in of_type if kind.lower() in self.owners)

    def may_be_string(self, name, operand):
        """None where the operand is no name, or nothing is known of it."""
        words = re.split(r"[.?!]+", re.sub(r"\[[^\]]*\]", "", operand))
        if not re.fullmatch(NAMES, words[-1]):
            return None
        for known in (self.owner(name, words[-2] if len(words) > 1 else ""), self.files[name], self.rooms[name.split("/")[0]], self.all):
            if words[-1] in known:
                return True in known[words[-1]]
        return None


def end_of_block(code, at):
    depth = 1
    while depth and at < len(code):
        depth += {"{": 1, "}": -1}.get(code[at], 0)
        at += 1
    return at


def without_comments(path):
    return "\n".join("" if line.lstrip().startswith("//") else line for line in path.read_text(encoding="utf-8").split("\n"))


def equal_strings(name, code, declarations):
    """Lines of a file on which two names are compared, or collected in a set, as Swift strings."""
    for number, line in enumerate(code.split("\n"), 1):
        for match in EQUAL.finditer(line):
            kinds = [declarations.may_be_string(name, side) for side in match.groups()]
            if "nil" not in match.groups() and True in kinds and False not in kinds:
                yield number
        if any(declarations.may_be_string(name, match[1]) for match in COLLECTED.finditer(line)):
            yield number
    if name.split("/")[0] in CATALOGUED:
        yield from equal_by_strings(code)


def keyed_by_strings(path):
    """Lines of a file on which a Swift string is a key, or part of one."""
    code = without_comments(path)
    yield from (code.count("\n", 0, match.start()) + 1 for match in KEYED.finditer(code))
    for match in HASHABLE.finditer(code):
        body = code[match.end():end_of_block(code, match.end())]
        if "static func ==" in body:
            continue
        depth = 0
        for number, line in enumerate(body.split("\n")):
            if depth == 0 and FIELD.search(line):
                yield code.count("\n", 0, match.end()) + 1 + number
            depth += line.count("{") - line.count("}")


def equal_by_strings(code):
    """Lines of a file on which a name in a type that is compared as a whole is a Swift string."""
    for match in EQUATABLE.finditer(code):
        body = code[match.end():end_of_block(code, match.end())]
        for number, line in enumerate(body.split("\n") if "static func ==" not in body else ()):
            if NAMED.search(line):
                yield code.count("\n", 0, match.end()) + 1 + number


def string_names():
    """Every line of the hub's rooms that STRINGS or EQUALS does not excuse, and every excuse that nothing needs."""
    paths = {str(path.relative_to(ROOT / "Sources")): path for path in sorted((ROOT / "Sources").rglob("*.swift"))}
    paths = {name: path for name, path in paths.items() if name.split("/")[0] not in OUTSIDE}
    files = {name: without_comments(path) for name, path in paths.items()}
    declarations = Declarations(files)
    checks = ((STRINGS, "STRINGS", "a key is a Swift string", lambda name: keyed_by_strings(paths[name])),
              (EQUALS, "EQUALS", "names are compared as Swift strings", lambda name: equal_strings(name, files[name], declarations)))
    for excuses, table, problem, find in checks:
        found = {name: lines for name in paths if (lines := sorted(set(find(name))))}
        for name in sorted(set(found) - set(excuses)):
            for line in found[name]:
                yield f"Sources/{name}:{line}: {problem}; make it a Name, or say in {table} of scripts/check-names.py why it may be one"
        yield from (f"scripts/check-names.py excuses {name} in {table}, which needs no excuse" for name in sorted(set(excuses) - set(found)))


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
    strings = list(string_names())
    for problem in strings:
        print(f"check-names: {problem}", file=sys.stderr)
    sys.exit(1 if twice or strings else 0)


if __name__ == "__main__":
    main()
