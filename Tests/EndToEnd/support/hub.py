"""The program under test: `roost`, as its users start it."""

import asyncio
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import weakref

from support.deadline import PATIENCE, until
from support.ports import free_port
from support.tokens import SECRET

ROOT = pathlib.Path(__file__).resolve().parents[3]
BINARY = str(pathlib.Path(os.environ.get("ROOST_BINARY", ROOT / ".build/release/roost")).resolve())

#: Every hub of this process of tests.
hubs = weakref.WeakSet()


class Hub:
    """`roost serve` on ports of its own, which it keeps over restarts."""

    def __init__(self, database_url, host="127.0.0.1", within=(), **settings):
        """`within`: a command that the hub's own is handed to, such as nsenter."""
        # An empty folder of its own: no config/roost.yaml is found in it.
        self.folder = tempfile.mkdtemp(prefix="roost-e2e-hub-", dir="/tmp")
        self.host, self.port, self.ops_port = host, free_port(), free_port()
        self.within, self.binary = list(within), BINARY
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("ROOST_", "PG"))},
            "ROOST_DATABASE_URL": database_url,
            "ROOST_JWT_SECRET": SECRET,
            "ROOST_HTTP_PORT": str(self.port),
            "ROOST_OPS_PORT": str(self.ops_port),
            "ROOST_DRAIN_SECONDS": "1",
            # Tests that wait for the end of a token do not wait for half a minute more.
            "ROOST_TIMEOUTS_TOKEN_GRACE": "0",
            "ROOST_STREAMS_DIRECTORY": f"{self.folder}/streams",
            **({} if host == "127.0.0.1" else {"ROOST_HTTP_HOST": host, "ROOST_OPS_HOST": host}),
            **settings,
        }
        self.process = None
        hubs.add(self)
        #: For clients of a hub that speaks TLS (`secure`).
        self.trust = None
        self._listening = threading.Event()

    def secure(self, pair, trust):
        """From the next start on: the certificate that it shows, and the ssl.SSLContext of its clients."""
        self.environment |= {"ROOST_TLS_CERTIFICATE": pair.certificate, "ROOST_TLS_KEY": pair.key}
        self.trust = trust
        return self

    @property
    def url(self):
        """What a client's constructor is given."""
        return f"{'wss' if self.trust else 'ws'}://{self.host}:{self.port}/realtime/v1"

    @property
    def address(self):
        return self.host, self.port

    def start(self, wait=True):
        self._listening.clear()
        errors = open(f"{self.folder}/stderr", "ab")
        self.process = subprocess.Popen(
            [*self.within, self.binary, "serve"], env=self.environment, cwd=self.folder, stdout=subprocess.PIPE, stderr=errors,
            stdin=subprocess.DEVNULL, text=True)
        errors.close()
        threading.Thread(target=self._read, args=(self.process,), daemon=True).start()
        if wait:
            self.wait_until_listening()
        return self

    def _read(self, process):
        for line in process.stdout:
            if line.startswith("listening on "):
                self._listening.set()

    @property
    def is_listening(self):
        return self._listening.is_set()

    def wait_until_listening(self, within=PATIENCE):
        until(
            lambda: self.is_listening or self.process.poll() is not None, within,
            f"`listening on`; the hub said: {self.log[-2000:]}")
        assert self.is_listening, f"the hub ended with {self.process.returncode}: {self.log[-2000:]}"

    def stop(self, within=PATIENCE):
        """As a service manager does. The exit status."""
        return self._end(signal.SIGTERM, within)

    def kill(self):
        return self._end(signal.SIGKILL, PATIENCE)

    def _end(self, number, within):
        if self.process is None or self.process.poll() is not None:
            return self.process and self.process.returncode
        self.process.send_signal(number)
        return self.process.wait(within)

    def remove(self):
        # What a process has leaked is known when it ends by itself (scripts/test-sanitizers.sh).
        if "ROOST_SANITIZER" in os.environ and self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            try:
                self.stop(within=60)
            except subprocess.TimeoutExpired:
                print(f"a hub did not stop within a minute: {self.log[-2000:]}", file=sys.stderr)
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, *arguments, check=True, **settings):
        """Another command with the hub's configuration, until it ends."""
        result = subprocess.run(
            [*self.within, self.binary, *arguments], env={**self.environment, **settings}, cwd=self.folder, capture_output=True, text=True,
            timeout=2 * PATIENCE)
        if check and arguments[0] == "migrate" and result.returncode and "did not answer in time" in result.stderr:
            # The machine stood still, and everything of a worker's begins with this.
            time.sleep(5)
            result = subprocess.run(
                [*self.within, self.binary, *arguments], env={**self.environment, **settings}, cwd=self.folder, capture_output=True,
                text=True, timeout=2 * PATIENCE)
        if check:
            assert result.returncode == 0, f"roost {' '.join(arguments)}: {result.stdout}{result.stderr}"
        return result

    def watch(self, table):
        """`table` as SQL writes it."""
        self.run("watch", table)

    @property
    def log(self):
        with open(f"{self.folder}/stderr", errors="replace") as file:
            return file.read()

    def wait_until_logged(self, text):
        """What a hub has done may be in its log a moment after a client has seen it."""
        until(lambda: text in self.log, what=lambda: f"{text!r} in the log: {self.log[-2000:]}")

    # What the operator sees.

    def ops(self, path):
        """Status and text of a page of the operator's port, which a hub that has just been started opens in its own time."""
        return until(lambda: self._ops(path), what="the operator's port")

    def _ops(self, path):
        try:
            with urllib.request.urlopen(f"http://{self.host}:{self.ops_port}{path}", timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as answer:
            return answer.code, answer.read().decode()
        except urllib.error.URLError as error:
            if isinstance(error.reason, ConnectionRefusedError) and self.process.poll() is None:
                return None
            raise

    def settle(self):
        """The hub's barrier: what had reached it before this call is done, and every observer may be read.

        Nothing is known of bytes that the network still has: `client.settled()` first, where a client has sent something.
        """
        request = urllib.request.Request(f"http://{self.host}:{self.ops_port}/settled?seconds={PATIENCE:.0f}", method="POST")
        with urllib.request.urlopen(request, timeout=2 * PATIENCE) as answer:
            assert answer.read() == b"ok\n"

    async def settled(self):
        """`settle` for coroutines: their clients go on reading meanwhile."""
        await asyncio.to_thread(self.settle)

    def read_metrics(self):
        """The text of /metrics, in which all is counted that had reached the hub: what a client was answered may be counted a moment later.

        A hub that cannot settle, such as one whose Postgres is away, is read as it is.
        """
        request = urllib.request.Request(f"http://{self.host}:{self.ops_port}/settled?seconds=2", method="POST")
        with contextlib.suppress(urllib.error.URLError, TimeoutError):
            urllib.request.urlopen(request, timeout=5).close()
        return self.ops("/metrics")

    def metric(self, name):
        for line in self.read_metrics()[1].splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
        raise AssertionError(f"no metric {name}")

    @property
    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    @property
    def open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))
