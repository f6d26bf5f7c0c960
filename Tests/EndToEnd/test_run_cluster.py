"""`make run-cluster`: three hubs as one on the demo's database, and nothing is left of it after Ctrl-C."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import urllib.request

import pytest

from support.deadline import eventually, until
from support.hub import BINARY, ROOT
from support.ports import free_port
from support.wsclient import Client


def free_ports():
    """The first of those that the script takes, all of them free."""
    while True:
        first = free_port()
        try:
            for port in [first, *(first + 10 * hub + more for hub in (1, 2, 3) for more in (0, 1))]:
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first


class RunCluster:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="roost-e2e-run-", dir="/tmp")
        os.chmod(self.folder, 0o755)
        self.first, self.postgres_port = free_ports(), free_port()
        self.output = ""
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith(("ROOST_", "PG")) or key == "ROOST_POSTGRES_BIN"}
        self.process = subprocess.Popen(
            [ROOT / "scripts/run-cluster.sh", "--postgres-port", str(self.postgres_port)],
            env={**environment, "ROOST_BINARY": BINARY, "FOLDER": f"{self.folder}/demo", "PORT": str(self.first), "TMPDIR": self.folder},
            cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.output += line

    @property
    def processes(self):
        """The hubs' processes, in their order."""
        return [int(pid) for pid in re.findall(r"process (\d+)", self.output)]

    @property
    def all_processes(self):
        """All whose command line names this run's folder or its Postgres, or whose environment does."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                said = open(f"/proc/{pid}/cmdline").read() + open(f"/proc/{pid}/environ", errors="replace").read()
            except OSError:
                continue
            if self.folder in said and int(pid) != self.process.pid:
                found.append(int(pid))
        return found

    def figure(self, hub, name):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.first + 10 * hub + 1}/metrics", timeout=30) as answer:
            return float(re.search(rf"^{name} (\S+)$", answer.read().decode(), re.MULTILINE)[1])

    def remove(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture
def run():
    run = RunCluster()
    try:
        until(lambda: "Ctrl-C stops" in run.output or run.process.poll() is not None, 90, lambda: run.output)
        assert run.process.poll() is None, run.output
        yield run
    finally:
        run.remove()


async def test_three_hubs_and_a_balancer_until_ctrl_c(run):
    with urllib.request.urlopen(f"http://127.0.0.1:{run.first}/demo/api/session", timeout=30) as answer:
        user = json.load(answer)["users"][0]["token"]
    clients = [await Client.connect(run.first, apikey=user) for _ in range(3)]
    for client in clients:
        await client.join("realtime:x")
    # Loops publish once a second.
    await eventually(lambda: [run.figure(hub, "roost_connections") for hub in (1, 2, 3)] == [1, 1, 1], what="a socket on each")
    clients[0].push("realtime:x", "broadcast", {"type": "broadcast", "event": "e", "payload": {"n": 1}})
    for client in clients[1:]:
        assert (await client.next("broadcast")).payload["payload"] == {"n": 1}
    # A hub that is killed ends nothing else.
    os.kill(run.processes[1], signal.SIGKILL)
    await eventually(lambda: run.figure(1, "roost_cluster_hubs") == 1)
    assert run.process.poll() is None
    for client in clients:
        await client.close()
    assert run.all_processes
    run.process.send_signal(signal.SIGINT)
    await eventually(lambda: run.process.poll() is not None, 60)
    assert run.process.returncode == 0, run.output
    await eventually(lambda: not run.all_processes, what=lambda: str(run.all_processes))
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", run.postgres_port)) != 0, "the demo's Postgres ended"
    assert os.listdir(run.folder) == ["demo"]
