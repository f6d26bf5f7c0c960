"""`roost demo` in a folder of its own."""

import glob
import os
import shutil
import signal
import subprocess
import tempfile
import threading

import psycopg

from support.deadline import PATIENCE, until
from support.hub import BINARY
from support.ports import free_port


class Demo:
    def __init__(self, **settings):
        self.settings = settings
        # Short, because a Unix socket lies below it; reachable for the postgres user, because /tmp is.
        self.folder = tempfile.mkdtemp(prefix="roost-e2e-demo-", dir="/tmp")
        os.chmod(self.folder, 0o755)
        self.port, self.ops_port, self.postgres_port = free_port(), free_port(), free_port()
        self.process = None

    @property
    def page(self):
        return f"http://127.0.0.1:{self.port}/demo/"

    def start(self, *arguments, wait=True):
        self.output = []
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith(("ROOST_", "PG")) or key == "ROOST_POSTGRES_BIN"}
        self.process = subprocess.Popen(
            [BINARY, "demo", "--http-port", str(self.port), "--ops-port", str(self.ops_port),
             "--postgres-port", str(self.postgres_port), *arguments],
            env={**environment, "ROOST_DRAIN_SECONDS": "1", **self.settings}, cwd=self.folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
        threading.Thread(target=self._read, args=(self.process,), daemon=True).start()
        if wait:
            until(lambda: self.is_listening or self.process.poll() is not None, 60, f"`listening on`: {self.output}")
            assert self.is_listening, "".join(self.output)
        return self

    def _read(self, process):
        for line in process.stdout:
            self.output.append(line)

    @property
    def is_listening(self):
        return any(line.startswith("listening on ") for line in self.output)

    def interrupt(self, within=PATIENCE):
        """Ctrl-C, which a terminal sends to all of the group."""
        os.killpg(self.process.pid, signal.SIGINT)
        return self.process.wait(within)

    def connect(self):
        return psycopg.connect(f"postgresql://postgres@127.0.0.1:{self.postgres_port}/chat", autocommit=True)

    @property
    def postgres_runs(self):
        try:
            psycopg.connect(f"postgresql://postgres@127.0.0.1:{self.postgres_port}/postgres", connect_timeout=20).close()
            return True
        except psycopg.OperationalError as error:
            return "starting up" in str(error) or "shutting down" in str(error)

    def command(self, *arguments):
        """What `roost` prints for a command on the demo's database, with the demo's secret."""
        with open(f"{self.folder}/.roost/jwt-secret") as file:
            secret = file.read()
        done = subprocess.run(
            [BINARY, *arguments], cwd="/", check=True, capture_output=True, text=True,
            env={"PATH": os.environ["PATH"], "ROOST_JWT_SECRET": secret,
                 "ROOST_DATABASE_URL": f"postgresql://postgres@127.0.0.1:{self.postgres_port}/chat"})
        return done.stdout

    def postgres(self, *command):
        """`pg_ctl` for the demo's Postgres: `stop`, or `restart`, which starts it as `roost demo` did."""
        pg_ctl = max(glob.glob("/usr/lib/postgresql/*/bin/pg_ctl"), key=lambda path: int(path.split("/")[4]))
        programs = os.environ.get("ROOST_POSTGRES_BIN")
        as_postgres = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"] if os.geteuid() == 0 else []
        subprocess.run(
            [*as_postgres, f"{programs}/pg_ctl" if programs else pg_ctl, "-D", f"{self.folder}/.roost/postgres",
             "-l", f"{self.folder}/.roost/postgres.log", "-w", "-m", "fast", *command],
            check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd="/")

    def remove(self):
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
        pid_file = f"{self.folder}/.roost/postgres/postmaster.pid"
        if os.path.exists(pid_file):
            with open(pid_file) as file:
                os.kill(int(file.readline()), signal.SIGQUIT)
            until(lambda: not os.path.exists(pid_file), what="the demo's Postgres gone")
        shutil.rmtree(self.folder, ignore_errors=True)
