"""Schemathesis: calls that a description of an API allows, and some that it does not, made up by the hundred."""

import asyncio
import collections
import json
import pathlib
import sys

import yaml

from support.hub import ROOT

PAGE = ROOT / "docs/openapi.yaml"
METHODS = {"get", "head", "put", "post", "delete"}
#: What is asked of every answer. Not `ensure_resource_availability` and `use_after_free`: what is created under a name that
#: is made up, others may delete, and an alert's phone is nobody's to look up.
CHECKS = [
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
    "response_schema_conformance", "negative_data_rejection", "positive_data_acceptance", "unsupported_method",
    "ignored_auth",
]


def complete(page):
    """The page with what any request may be answered as an answer of each of its operations."""
    anywhere = page["x-answers-to-any-request"]
    for path in page["paths"].values():
        for method in METHODS & path.keys():
            path[method]["responses"] = {**anywhere, **path[method]["responses"]}
    # A long-poll waits for half a minute, as it should; test_streams.py has it.
    live = next(one for one in page["paths"]["/streams/{name}"]["get"]["parameters"] if one.get("name") == "live")
    live["schema"]["enum"].remove("long-poll")
    return page


#: Answers that go on are read up to their first event, those that may have none for half a second. What a schema cannot say
#: is refused with 400 though it fits: times in the past alone, headers that exclude each other, bytes where JSON counts characters.
CONFIGURATION = """
max-stream-events = 1
generation.with-security-parameters = false

[[operations]]
include-operation-id = "readStream"
request-timeout = 0.5
checks.positive_data_acceptance.expected-statuses = ["2xx", "3xx", 400, 401, 403, 404, 410]

[[operations]]
include-operation-id = ["createStream", "appendToStream", "describeStream", "deleteStream", "cancelStream"]
checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 404, 409]
# A header that nobody knows is no mistake.
checks.negative_data_rejection.expected-statuses = ["2xx", 400, 401, 403, 404, 409]

[[operations]]
include-operation-id = ["readRows"]
# A table is one that is watched, and has such columns.
checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 429]

[[operations]]
include-operation-id = ["listChannels", "readPresence", "unsubscribeUser"]
# A cursor is one that was given out, and 600.0 is no whole number here.
checks.positive_data_acceptance.expected-statuses = ["2xx", 400]

[[operations]]
include-operation-id = ["updateActivity", "registerActivity", "broadcastActivity", "startActivity"]
checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 404, 409]

[[operations]]
include-operation-id = ["notifyUsers"]
# An audience of which the statement says nothing, 1.0 for a whole number; and so many users a second.
checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 429]
checks.negative_data_rejection.expected-statuses = [400, 401, 403, 413, 429]

[[operations]]
include-operation-id = ["openWebSocket", "openPhoenixWebSocket", "opsWebSocket"]
checks.positive_data_acceptance.expected-statuses = [426]
checks.negative_data_rejection.expected-statuses = [400, 401, 405, 426]
"""


class Report:
    def __init__(self, status, output, calls):
        self.status, self.output, self.calls = status, output, calls
        self.answers = collections.Counter(call["status"] for call in calls)


async def schemathesis(folder, url, bearer, *options, seed=1):
    """Runs it against `url` as the bearer of a token; what it did, call by call."""
    folder = pathlib.Path(folder)
    report = folder / "calls.ndjson"
    config = folder / "schemathesis.toml"
    config.write_text(CONFIGURATION)
    page = folder / "openapi.json"
    page.write_text(json.dumps(complete(yaml.safe_load(PAGE.read_text()))))
    process = await asyncio.create_subprocess_exec(
        str(pathlib.Path(sys.executable).with_name("st")), "--config-file", str(config), "run", str(page), "--url", url,
        "--header", f"Authorization: Bearer {bearer}", "--checks", ",".join(CHECKS), "--seed", str(seed),
        "--continue-on-failure", "--no-color", "--request-timeout", "20", "--generation-database", "none",
        "--suppress-health-check", "all", "--report-ndjson-path", str(report), *options, cwd=folder,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT)
    output, _ = await process.communicate()
    return Report(process.returncode, output.decode(), list(calls(report)) if report.exists() else [])


def calls(report):
    with open(report) as lines:
        for line in lines:
            yield from found(json.loads(line))


def found(value):
    """Answers, wherever they stand in an event of the report."""
    if isinstance(value, dict):
        if "status_code" in value and "headers" in value:
            yield {"status": value["status_code"]}
        for member in value.values():
            yield from found(member)
    elif isinstance(value, list):
        for element in value:
            yield from found(element)
