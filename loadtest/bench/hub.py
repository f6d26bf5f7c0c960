"""A hub of its own for a measurement."""

import os
import signal
import subprocess
import urllib.request

from ports import free_port
from programs import BenchError

SECRET = "a-secret-for-benchmarks-only-0123456789"


class Hub:
    """`roost serve` on a database; migrated, and ready when entered."""

    def __init__(self, programs, cluster, database, loops, watch=(), ops=False):
        self.programs, self.cluster, self.database, self.watch = programs, cluster, database, watch
        self.port = free_port()
        self.ops_port = free_port() if ops else 0
        self.environment = os.environ | {
            "ROOST_DATABASE_URL": cluster.url(database), "ROOST_HTTP_PORT": str(self.port), "ROOST_OPS_PORT": str(self.ops_port),
            "ROOST_JWT_SECRET": SECRET, "ROOST_LOOPS": str(loops), "ROOST_LOG_LEVEL": "warning",
            "ROOST_DRAIN_SECONDS": "0",
        }

    def __enter__(self):
        self.command("migrate")
        for table in self.watch:
            self.command("watch", table)
        # An answer needs a role that row level security does not hold up.
        self.token = self.command("token", "--role", "service_role", "--expires-in", "1d").strip()
        self.log = open(self.cluster.folder / f"hub-{self.port}.log", "w+")
        self.start()
        return self

    def start(self):
        """Another process with the same settings, when the last has ended."""
        self.process = subprocess.Popen([self.programs.roost, "serve"], env=self.environment, text=True, cwd="/tmp",
                                        stdout=subprocess.PIPE, stderr=self.log)
        line = self.process.stdout.readline()
        if not line.startswith("listening"):
            self.process.kill()
            self.process.wait()
            self.log.seek(0)
            raise BenchError(f"the hub did not start: {line}{self.log.read()[-500:]}")

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def command(self, *arguments):
        outcome = subprocess.run([self.programs.roost, *arguments], env=self.environment, capture_output=True, text=True,
                                 cwd="/tmp")
        if outcome.returncode != 0:
            raise BenchError(f"roost {arguments[0]} failed: {outcome.stderr.strip()}")
        return outcome.stdout

    def figures(self):
        """What /metrics says, by name; needs `ops`."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ops_port}/metrics", timeout=10) as answer:
            lines = [line.split() for line in answer.read().decode().splitlines() if not line.startswith("#")]
        return {line[0]: float(line[1]) for line in lines}

    @property
    def pid(self):
        return self.process.pid

    @property
    def url(self):
        return f"ws://127.0.0.1:{self.port}/realtime/v1/websocket"
