"""A hub of its own for a measurement."""

import base64
import hashlib
import hmac
import json
import os
import signal
import subprocess
import time
import urllib.request

from programs import BenchError, free_port

SECRET = "a-secret-for-benchmarks-only-0123456789"
#: Settings of a hub that leaves sockets alone that say nothing: neither its pings nor heartbeats are to be in a figure.
SILENCE = {"ROOST_TIMEOUTS_PING_AFTER": 3000, "ROOST_TIMEOUTS_IDLE": 6000}
#: Settings of a hub that bounds nobody.
NO_LIMITS = {"ROOST_LIMITS_MESSAGES_PER_SECOND": 0, "ROOST_LIMITS_BYTES_PER_SECOND": 0, "ROOST_LIMITS_FAILURES_PER_MINUTE": 0}


def token(subject):
    """Of a user, as the hub's configuration verifies it."""
    def encoded(data):
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
    now = int(time.time())
    claims = {"role": "authenticated", "sub": subject, "iat": now, "exp": now + 86400}
    text = ".".join(encoded(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, claims))
    return f"{text}.{encoded(hmac.new(SECRET.encode(), text.encode(), hashlib.sha256).digest())}"


class Hub:
    """`roost serve` on a database; migrated, and ready when entered. `settings` are environment variables."""

    def __init__(self, programs, cluster, database, loops, watch=(), ops=False, **settings):
        self.programs, self.cluster, self.database, self.watch = programs, cluster, database, watch
        self.port = free_port()
        self.ops_port = free_port() if ops else 0
        self.environment = os.environ | {
            "ROOST_DATABASE_URL": cluster.url(database), "ROOST_HTTP_PORT": str(self.port), "ROOST_OPS_PORT": str(self.ops_port),
            "ROOST_JWT_SECRET": SECRET, "ROOST_LOOPS": str(loops), "ROOST_LOG_LEVEL": "warning",
            "ROOST_DRAIN_SECONDS": "0",
        } | {name: str(value) for name, value in settings.items()}

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
