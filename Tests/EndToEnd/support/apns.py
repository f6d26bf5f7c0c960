"""Tests/ApnsStandin as a process of its own, and what it saw."""

import collections
import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import threading
import urllib.error
import urllib.request

from support.deadline import PATIENCE, until
from support.freezing import freeze
from support.hub import ROOT

#: What Debian's python3-h2 belongs to.
PYTHON = "/usr/bin/python3"
BUNDLE, TEAM, KEY_ID = "com.example.roost", "TEAM567890", "KEY4567890"
#: Seconds before the abrupt end of a connection in which an answer may have got lost.
DOUBT = 1.0


def new_token():
    """As a phone would have it."""
    return secrets.token_hex(32)


class APNs:
    """The stand-in on ports that it keeps over restarts, with a key and a log that outlive it."""

    TITLE = "APNs stand-in"

    def __init__(self, *options, both=False):
        """`both`: Apple's sandbox on one port and production on another, instead of one for all."""
        self.folder = tempfile.mkdtemp(prefix="roost-e2e-apns-", dir="/tmp")
        self.port = self.control_port = 0
        self.other_port = 0 if both else -1
        self.options, self.process, self.kills = options, None, 0

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.remove()

    @property
    def command(self):
        return [
            PYTHON, ROOT / "Tests/ApnsStandin", "--port", self.port, "--other-port", self.other_port, "--control-port", self.control_port, "--folder",
            self.folder, "--log", self.log_file, "--team", TEAM, "--key-id", KEY_ID, "--topic", BUNDLE, "--quiet",
            *self.options]

    def start(self):
        errors = open(f"{self.folder}/stderr", "ab")
        self.process = subprocess.Popen(
            [str(word) for word in self.command], stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL, text=True,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
        errors.close()
        listening = threading.Event()
        threading.Thread(target=self._read, args=(self.process, listening), daemon=True).start()
        until(lambda: listening.is_set() or self.process.poll() is not None, what=f"`listening` of the {self.TITLE}")
        assert listening.is_set(), f"the {self.TITLE} ended: {self.errors[-2000:]}"
        return self

    def _read(self, process, listening):
        for line in process.stdout:
            word, _, rest = line.partition(": ")
            if word.startswith(self.TITLE):
                self.port = int(rest.strip().rpartition(":")[2])
            elif word.startswith("other service"):
                self.other_port = int(rest.strip().rpartition(":")[2])
            elif word == "control":
                self.control_port = int(rest.split()[0].rpartition(":")[2])
            elif line == "listening\n":
                listening.set()

    def kill(self):
        """-9. Connections are refused until it starts again."""
        if self.process and self.process.poll() is None:
            self.kills += 1
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(PATIENCE)

    def pause(self):
        freeze(self.process.pid)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def remove(self):
        self.kill()
        self.process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def errors(self):
        with open(f"{self.folder}/stderr") as file:
            return file.read()

    # Who may push

    @property
    def url(self):
        return f"https://127.0.0.1:{self.port}"

    @property
    def ca_file(self):
        return f"{self.folder}/ca.pem"

    @property
    def key_file(self):
        return f"{self.folder}/key.p8"

    @property
    def log_file(self):
        return f"{self.folder}/log"

    @property
    def environment(self):
        """What the hub and `roost push` are told about it."""
        with open(self.key_file) as file:
            key = file.read().strip().replace("\n", "\\n")
        urls = {"ROOST_APNS_URL": self.url}
        if self.other_port >= 0:
            urls = {"ROOST_APNS_URL": f"https://127.0.0.1:{self.other_port}", "ROOST_APNS_SANDBOX_URL": self.url}
        return {
            **urls, "ROOST_APNS_CA_FILE": self.ca_file, "IOS_LIVE_ACTIVITY_TOPIC": BUNDLE,
            "IOS_LIVE_ACTIVITY_TEAM_ID": TEAM, "IOS_LIVE_ACTIVITY_KEY_ID": KEY_ID, "IOS_LIVE_ACTIVITY_ENV": "sandbox",
            "IOS_LIVE_ACTIVITY_PRIVATE_KEY": key,
        }

    # The control port

    def call(self, method, path, body=None):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.control_port}{path}", method=method,
            data=None if body is None else json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.read().decode()}") from None

    def script(self, *rules):
        return self.call("POST", "/script", list(rules))

    def forget_script(self):
        self.call("DELETE", "/script")

    def tell(self, token, **facts):
        """What it is to know of a token; nothing forgets it."""
        self.call("POST", "/tokens", {token: facts or None})

    def set(self, **settings):
        return self.call("POST", "/settings", settings)

    def connections(self, do, seconds=1, environment=None):
        return self.call("POST", "/connections", {"do": do, "seconds": seconds, "environment": environment})

    @property
    def summary(self):
        return self.call("GET", "/summary")

    @property
    def violations(self):
        """What the client did wrong, over all restarts."""
        return [record["what"] for record in self.records if record["kind"] == "violation"]

    # What it saw

    @property
    def records(self):
        """Every line of the log, over all restarts."""
        if not os.path.exists(self.log_file):
            return []
        with open(self.log_file) as file:
            # The last one may be half written.
            lines = file.read().split("\n")[:-1]
        records = []
        for line in lines:
            try:
                records.append(json.loads(line))
            except ValueError:
                # What a killed process had begun.
                assert self.kills, f"a line that is no JSON: {line[:200]}"
        return records

    @property
    def pushes(self):
        return [record for record in self.records if record["kind"] == "push"]

    @property
    def taken(self):
        """What reached a phone, in order."""
        return [record for record in self.pushes if record["processed"]]

    def asked_of(self, token):
        """Where this phone's pushes were tried, and what was answered, in order."""
        return [(record["environment"], record["reason"] or record["status"]) for record in self.pushes
                if record["path"] == f"/3/device/{token}"]

    def taken_by(self, token):
        return [record for record in self.taken if record.get("token") == token]

    def aps(self, token):
        """The `aps` of each push that reached this phone."""
        return [record["payload"]["aps"] for record in self.taken_by(token)]

    def wait_for(self, token, count, within=PATIENCE):
        """The first `count` pushes that reached this phone; fails if there are more."""
        until(lambda: len(self.taken_by(token)) >= count, within, f"{count} pushes to {token[:8]}, there are {self.aps(token)}")
        taken = self.taken_by(token)
        assert len(taken) == count, f"{len(taken)} pushes instead of {count}: {self.aps(token)}"
        return taken

    def deliveries(self):
        """apns-id → for each time that it reached a phone, whether the client must know of it.

        It cannot know where the answer was withheld, or written shortly before the connection ended without a word.
        """
        records = self.records
        late = {(record["n"], record["process"]): record["at"] for record in _numbered(records) if record["kind"] == "answer"}
        ends = {record["connection"]: record for record in records if record.get("event") == "end"}
        last_words = {}
        for record in records:
            if "connection" in record:
                process = record["connection"].split("-")[0]
                last_words[process] = max(last_words.get(process, 0), record["at"])
        found = collections.defaultdict(list)
        for record in _numbered(records):
            if record["kind"] != "push" or not record["processed"]:
                continue
            answered = record["at"] if record["answered"] else late.get((record["n"], record["process"]))
            end = ends.get(record["connection"])
            if end is None:
                # Open until now, or until the process was killed.
                ended = None if record["process"] == str(self.process.pid) else last_words[record["process"]]
            else:
                ended = end["at"] if end["how"] in ("abort", "frozen") else None
            is_known = answered is not None and not (ended is not None and answered > ended - DOUBT)
            found[record["headers"]["apns-id"]].append(is_known)
        return found


def _numbered(records):
    """Each with the process it is of: numbers begin anew with each."""
    process = None
    for record in records:
        if "connection" in record:
            process = record["connection"].split("-")[0]
        yield {**record, "process": process}


class Account:
    """What became of ids that were pushed."""

    def __init__(self, deliveries, wanted):
        wanted = set(wanted)
        self.lost = sorted(wanted - set(deliveries))
        self.strange = sorted(set(deliveries) - wanted)
        again = {id: known for id, known in deliveries.items() if len(known) > 1}
        #: Sent again although the client must have known that the first one came.
        self.twice = sorted(id for id, known in again.items() if any(known[:-1]))
        self.ambiguous = len(again) - len(self.twice)
