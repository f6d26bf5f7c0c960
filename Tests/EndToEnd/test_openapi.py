"""docs/openapi.yaml says what the hub answers: no path, method or status less, and none more."""

import asyncio
import os
import re
import uuid

import pytest
import yaml

from support.chat import ADA
from support.http import HTTPConnection
from support.hub import ROOT
from support.push_hub import PushHub
from support.schemathesis import METHODS, PAGE, schemathesis
from support.tokens import token

DOCUMENT = yaml.safe_load(PAGE.read_text())
ANYWHERE = set(DOCUMENT["x-answers-to-any-request"])
#: Calls for each operation and phase; some thousands take minutes: ROOST_E2E_CALLS=300 pytest test_openapi.py
CALLS = int(os.environ.get("ROOST_E2E_CALLS", "2"))
#: Where HEAD is GET without the body; streams have a HEAD of their own.
SILENT_HEADS = {"health", "operator", "rows", "server", "websocket"}

#: Which files answer the calls of a tag, or which of their functions. A file that answers and is nobody's is found by a test below.
SOURCES = {
    "broadcast": ["Gateway/HTTP/BroadcastAPI.swift", "Gateway/HTTP/Publication.swift", "Gateway/HTTP/HTTPServer.swift#judge"],
    "events": [
        "Gateway/HTTP/EventsAPI.swift", "Gateway/HTTP/StreamingAnswers.swift", "Gateway/Admission/Admission.swift#count",
        "Gateway/HTTP/HeldRequests.swift", "Gateway/HTTP/HTTPServer.swift#judge", "Wire/Refusal.swift"],
    "rows": ["Gateway/HTTP/RowsAPI.swift"],
    "streams": [
        "Gateway/HTTP/StreamsAPI.swift", "Gateway/HTTP/StreamForwards.swift", "Gateway/HTTP/StreamUploads.swift", "DurableStreams/StreamComplaint.swift",
        "DurableStreams/StreamEvents.swift", "DurableStreams/StreamPage.swift", "DurableStreams/StreamResponse.swift",
        "Gateway/HTTP/HeldRequests.swift", "Gateway/HTTP/RequestRouter.swift", "Gateway/Admission/Admission.swift#count"],
    "push": [
        "Notify/PushAPI.swift", "Notify/PushCall.swift", "Notify/PushCallHandler.swift", "Notify/NotificationSender.swift", "Gateway/HTTP/HTTPServer.swift#judge"],
    "server": ["ServerAPI/ServerAPI.swift", "ServerAPI/ServerAnswer.swift", "ServerAPI/ServerCall.swift"],
    "websocket": ["Gateway/Admission/Admission.swift", "Gateway/Admission/Upgrades.swift", "HTTP/WebSocketHandshake.swift"],
    "health": ["Ops/HealthPages.swift"],
    "operator": [
        "Ops/Dashboard/Dashboard.swift", "Ops/HealthPages.swift", "Ops/OpsPages.swift", "Gateway/Ops/OpsSockets.swift", "HTTP/WebSocketHandshake.swift",
        "Gateway/HTTP/RequestRouter.swift"],
}
#: What answers any request.
READERS = [
    "HTTP/Parser/HTTPRefusal.swift", "HTTP/HTTPConnection.swift", "HTTP/AllowedOrigins.swift", "HTTP/HTTPResponse.swift"]
#: lws says by itself that a WebSocket is open.
OF_OTHERS = {"101"}

STATUS = re.compile(
    r"\b(200|201|202|204|304|400|401|403|404|405|408|409|410|411|413|414|415|422|426|429|431|500|501|503|505)\b(?=[,:) ]|$)")
ANSWERS = re.compile(r"\.(?:error|message|json|text|pushProblem|push|refusal)\(\s*\d{3}\b|\bstatus: \d{3}\b")


def operations(tag=None):
    for path, item in DOCUMENT["paths"].items():
        for method in METHODS & item.keys():
            if tag is None or tag in item[method]["tags"]:
                yield path, method, item[method], item.get("parameters", []) + item[method].get("parameters", [])


def resolved(parameter):
    return DOCUMENT["components"]["parameters"][parameter["$ref"].split("/")[-1]] if "$ref" in parameter else parameter


def rooms_that_answer():
    """Rooms that know what an answer is, by Package.swift; the demo's pages are no part of the hub's API."""
    package = (ROOT / "Package.swift").read_text()
    targets = re.findall(r'\.(?:executableT|t)arget\(\s*name: "(\w+)",\s*dependencies: \[(.*?)\]', package, re.DOTALL)
    rooms = {name for name, dependencies in targets if '"HTTP"' in dependencies} - {"Demo", "roost"}
    return {name for name in rooms if (ROOT / "Sources" / name).is_dir()} | {"HTTP"}


def sources():
    for room in sorted(rooms_that_answer()):
        for path in sorted((ROOT / "Sources" / room).rglob("*.swift")):
            yield str(path.relative_to(ROOT / "Sources")), path.read_text()


def code(text):
    """Without comments, and without numbers that are given a name."""
    lines = (line.split("//")[0] for line in text.splitlines())
    return "\n".join(line for line in lines if "static let" not in line or "HTTPResponse" in line)


# MARK: The page and the code


@pytest.mark.parametrize("page", ["openapi", "asyncapi"])
def test_no_comma_made_a_key_of_half_a_sentence(page):
    """As `{description: This, and that}` does."""
    def stray(value):
        pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else []
        return [key for key, one in pairs if one is None and " " in str(key)] + [key for _, one in pairs for key in stray(one)]
    assert stray(yaml.safe_load((ROOT / f"docs/{page}.yaml").read_text())) == []


def test_every_path_of_the_code_is_in_the_page():
    paths = set(DOCUMENT["paths"])
    fixed = {re.sub(r"\{\w+\}", "", path) for path in paths} | {"/realtime/v1" + path for path in paths}
    unknown = []
    for file, text in sources():
        # Of what reads a path: its cases are whole paths, with or without `/api/` before them.
        for body in re.findall(r"init\?\(path:.*?\n    \}\n", text, re.DOTALL):
            for case in re.findall(r'case "([a-z][a-z/-]*)"', body):
                if not any(path == "/api/" + case or path.endswith("}/" + case) for path in paths):
                    unknown.append((file, case))
        for piece in re.findall(r'"(/[a-z][a-z0-9/-]*)"', code(text)):
            if piece.startswith("/proc/") or any(piece in path for path in fixed):
                continue
            unknown.append((file, piece))
    assert unknown == [], "not in docs/openapi.yaml"


def test_every_file_that_answers_is_looked_at():
    known = {file.split("#")[0] for files in SOURCES.values() for file in files} | set(READERS)
    assert [file for file, text in sources() if ANSWERS.search(code(text)) and file not in known] == []
    assert [file for file in sorted(known) if not (ROOT / "Sources" / file).exists()] == []


def statuses_of(files):
    found = set()
    for place in files:
        file, _, function = place.partition("#")
        text = code((ROOT / "Sources" / file).read_text())
        if function:
            text = "\n".join(re.findall(rf"\n    [a-z ]*func {function}\(.*?\n    }}\n", text + "\n", re.DOTALL))
            assert text, place
        found |= set(STATUS.findall(re.sub(r"[<>]=? \d+", "", text)))
    return found


@pytest.mark.parametrize("tag", SOURCES)
def test_statuses_are_those_of_the_code(tag):
    answered = statuses_of(SOURCES[tag])
    documented = {status for _, _, operation, _ in operations(tag) for status in operation["responses"]}
    assert answered - documented - ANYWHERE == set(), "answered, and not in the page"
    assert documented - answered - ANYWHERE - OF_OTHERS == set(), "in the page, and answered by nothing"


def test_statuses_of_any_request_are_those_of_the_code():
    answered = statuses_of(READERS + [
        "Gateway/HTTP/HTTPServer.swift", "Gateway/HTTP/RequestRouter.swift", "Gateway/Admission/Admission.swift#requestBegins"])
    # What it is made of, 204 of OPTIONS, and statuses that HTTPResponse has words for.
    assert ANYWHERE - answered == set()


# MARK: The page and the hub


@pytest.fixture(scope="module")
def chat(cluster):
    """A hub that serves all that there is."""
    with PushHub(cluster, f"openapi_{uuid.uuid4().hex[:8]}") as chat:
        yield chat


def example(path, parameters):
    """An address below a path."""
    for parameter in map(resolved, parameters):
        if parameter["in"] == "path":
            path = path.replace("{" + parameter["name"] + "}", str(parameter.get("example", "some-id")))
    return path


def is_operators(item):
    return any("operator" in item[method]["tags"] for method in METHODS & item.keys())


async def test_methods_are_those_of_the_page(chat):
    """Each path is served, and takes the methods that the page has, and says so of them to whoever tries another."""
    bearer = {"authorization": f"Bearer {token('service_role', sub=ADA.sub)}"}
    for path, item in DOCUMENT["paths"].items():
        methods = {method.upper() for method in METHODS & item.keys()}
        parameters = item.get("parameters", [])
        if "get" in item and set(item["get"]["tags"]) & SILENT_HEADS:
            methods |= {"HEAD"}
        port = chat.hub.ops_port if is_operators(item) else chat.hub.port
        prefixes = [""] if "servers" in item else ["", "/realtime/v1"]
        for prefix in prefixes:
            address = prefix + example(path, parameters)
            refused = set()
            for method in ("GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "QUERY"):
                async with await HTTPConnection.open(port) as http:
                    http.write(f"{method} {address} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 0\r\n".encode()
                               + "".join(f"{name}: {value}\r\n" for name, value in bearer.items()).encode() + b"\r\n")
                    answer = await http.answer(has_body=False)
                body_less = method == "HEAD" or answer.status in (204, 304)
                assert answer.status != 404 or body_less or "streams" in path or "live-activity" in path or path in (
                    "/api/devices", "/api/push/key"), (method, address)
                if answer.status == 405:
                    refused.add(method)
                    if method not in ("PATCH", "QUERY") or "allow" in answer.headers:
                        allowed = {word.strip() for word in answer.headers["allow"].split(",")} - {"OPTIONS"}
                        assert methods <= allowed, (method, address, answer.headers)
                        if method in ("PUT", "DELETE"):
                            assert allowed == methods, (method, address, allowed)
            assert refused == {"GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "QUERY"} - methods, (address, refused)


async def test_calls_that_are_made_up(chat, tmp_path):
    """No 500, nothing that the page does not say, nothing taken that it forbids and nothing refused that it allows."""
    bearer = token("service_role", sub=ADA.sub)
    phases = "examples,coverage,fuzzing" if CALLS > 2 else "examples,fuzzing"

    async def run(name, port, selection):
        folder = tmp_path / name
        folder.mkdir()
        return await schemathesis(
            folder, f"http://127.0.0.1:{port}", bearer, selection, "operator", "--phases", phases, "--max-examples", str(CALLS))

    reports = await asyncio.gather(
        run("clients", chat.hub.port, "--exclude-tag"), run("operator", chat.hub.ops_port, "--include-tag"))
    for report in reports:
        print(f"{len(report.calls)} calls, answered {dict(report.answers)}")
        assert report.status == 0, report.output[-12_000:]
        assert len(report.calls) >= 8 and 500 not in report.answers
    assert chat.hub.process.poll() is None
