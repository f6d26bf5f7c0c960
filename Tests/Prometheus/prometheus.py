"""Debian's Prometheus: its tool, and a server of our own on a hub."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request

from support.deadline import until
from support.hub import ROOT
from support.ports import free_port

CONFIG = ROOT / "config/prometheus"
RULES = CONFIG / "roost.rules.yml"
DASHBOARD = ROOT / "config/grafana/roost.json"
MANUAL = ROOT / "docs/operations.md"
#: Seconds from one scrape, and one look at the rules, to the next.
INTERVAL = 1


def program(name):
    """The path of one of Prometheus' programs; scripts/prometheus.sh says where they are."""
    folder = os.environ.get("PROMETHEUS_BIN", "")
    path = f"{folder}/{name}"
    assert folder and os.path.exists(path), f"there is no {path or name}: run make test-prometheus"
    return path


def promtool(*arguments, text=None):
    """What `promtool` says, status and text."""
    result = subprocess.run(
        [program("promtool"), *map(str, arguments)], input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=60)
    return result.returncode, result.stdout


def replaced(pattern, by, text):
    """`text` with all of the pattern replaced, of which there must be some."""
    text, count = re.subn(pattern, by, text)
    assert count, f"nothing is like {pattern}"
    return text


class Prometheus:
    """A server with the sample configuration and rules, but that nothing is waited for long."""

    def __init__(self, ops_port):
        self.folder = tempfile.mkdtemp(prefix="roost-prometheus-")
        self.port = free_port()
        config = (CONFIG / "prometheus.yml").read_text()
        config = replaced(r"127\.0\.0\.1:4001", f"127.0.0.1:{ops_port}", config)
        config = replaced(r"_interval: 15s", f"_interval: {INTERVAL}s", config)
        self._write("prometheus.yml", config)
        self._write("roost.rules.yml", replaced(r"for: \d+[mh]", "for: 2s", RULES.read_text()))

    def _write(self, name, text):
        with open(f"{self.folder}/{name}", "w") as file:
            file.write(text)

    def __enter__(self):
        with open(f"{self.folder}/log", "wb") as log:
            self.process = subprocess.Popen(
                [program("prometheus"), f"--config.file={self.folder}/prometheus.yml",
                 f"--storage.tsdb.path={self.folder}/data", f"--web.listen-address=127.0.0.1:{self.port}"],
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            until(self._is_ready, 30, "a Prometheus that is ready", every=0.1)
        except AssertionError:
            print("Prometheus:", open(f"{self.folder}/log").read()[-3000:])
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _is_ready(self):
        assert self.process.poll() is None, "Prometheus ended"
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def api(self, path, **query):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path} {query}: {error.read().decode()}") from None

    def query(self, expression):
        """The samples of now."""
        return self.api("query", query=expression)["result"]

    @property
    def firing(self):
        """The names of the alerts that fire, and what they say."""
        return {alert["labels"]["alertname"]: alert["annotations"]
                for alert in self.api("alerts")["alerts"] if alert["state"] == "firing"}
