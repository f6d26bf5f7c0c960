"""A private Redis that keeps nothing, thrown away afterwards."""

import shutil
import subprocess
import tempfile
import time

from processes import cpu_us
from programs import BenchError


class Redis:
    """On a Unix socket, so that it takes no port; with `port` on one of 127.0.0.1, as hubs on other machines reach it."""

    def __init__(self, port=0):
        self.port = port

    def __enter__(self):
        if not shutil.which("redis-server"):
            raise BenchError("redis-server is missing: make setup")
        self.folder = tempfile.mkdtemp(prefix="roost-bench-redis-")
        self.process = subprocess.Popen(
            ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--unixsocket", f"{self.folder}/socket", "--dir",
             self.folder, "--save", "", "--appendonly", "no", "--logfile", f"{self.folder}/log"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        while not self.ask("ping"):
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise BenchError(f"Redis did not start, see {self.folder}/log")
            time.sleep(0.02)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def ask(self, *command):
        """What redis-cli prints; nothing while there is no answer."""
        outcome = subprocess.run(["redis-cli", "-s", f"{self.folder}/socket", *command], capture_output=True, text=True)
        return outcome.stdout.strip() if outcome.returncode == 0 else ""

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}" if self.port else f"unix://{self.folder}/socket"

    @property
    def used(self):
        """Bytes that it uses for data."""
        lines = self.ask("info", "memory").splitlines()
        return next(int(line.split(":")[1]) for line in lines if line.startswith("used_memory:"))

    def cpu_us(self):
        return cpu_us(self.process.pid)
