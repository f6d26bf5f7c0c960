"""A private Postgres with default durability, thrown away afterwards unless it is to be kept."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from programs import BenchError, free_port

TABLE = """create table public.roost_load (
    id bigint generated always as identity primary key,
    conversation_id uuid not null,
    stamp text not null,
    sent_at timestamptz not null default now()
)"""

# Whom the load tester's tokens name: a role that no policy holds back.
ROLE = """do $$ begin
    if to_regrole('service_role') is null then create role service_role nologin bypassrls; end if;
end $$;
grant select on public.roost_load to service_role"""


class Cluster:
    """`kept` is a folder for tables that take minutes to fill: the next run finds them there."""

    def __init__(self, kept=None):
        self.kept = kept

    def __enter__(self):
        versions = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda p: int(p.parts[-3]))
        if not versions:
            raise BenchError("Postgres is not installed: make setup")
        self.bin = versions[-1].parent
        self.port = free_port()
        self.folder = self.kept or pathlib.Path(tempfile.mkdtemp(prefix="roost-bench-"))
        self.folder.mkdir(exist_ok=True)
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")
        try:
            if not self.data.exists():
                self._postgres("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8")
            options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder} "
            options += "-c wal_level=logical"
            self._postgres("pg_ctl", "-D", self.data, "-l", self.folder / "log", "-w", "-o", options, "start")
        except BaseException:
            if not self.kept:
                shutil.rmtree(self.folder, ignore_errors=True)
            raise
        return self

    def __exit__(self, *_):
        self._postgres("pg_ctl", "-D", self.data, "-m", "fast" if self.kept else "immediate", "-w", "stop")
        if not self.kept:
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def data(self):
        return self.folder / "data"

    def url(self, database):
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def psql(self, database, sql):
        outcome = subprocess.run([self.bin / "psql", "-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql, self.url(database)],
                                 capture_output=True, text=True)
        if outcome.returncode != 0:
            raise BenchError(f"psql failed: {outcome.stderr.strip()}")
        return outcome.stdout.strip()

    def has(self, database):
        return self.psql("postgres", f"select 1 from pg_database where datname = '{database}'") == "1"

    def create(self, database):
        """A database with the table that the load goes to."""
        self.psql("postgres", f"create database {database}")
        self.psql(database, TABLE)
        self.psql(database, ROLE)
        return database

    def session(self, database):
        """A psql that takes statements, a line each, and says nothing."""
        return subprocess.Popen([self.bin / "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", self.url(database)], text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def log_by_who_asks(self):
        """From now on the server's log says who asks: `asked` counts by it."""
        self.psql("postgres", "alter system set log_line_prefix = '%a|%d|'")
        self.psql("postgres", "select pg_reload_conf()")

    def log_statements(self, database):
        """Of sessions that begin from now on."""
        self.psql("postgres", f"alter database {database} set log_statement = 'all'")

    def asked(self, database):
        """The statements of the hub's sessions."""
        return [line for line in (self.folder / "log").read_text(errors="replace").splitlines()
                if line.startswith("roost") and f"|{database}|" in line
                and (" statement: " in line or " execute " in line)]

    def backends(self, database, application):
        """The processes of a program's sessions."""
        found = self.psql(database, f"select pid from pg_stat_activity where datname = '{database}' and "
                          f"application_name like '{application}%'")
        return [int(line) for line in found.splitlines()]

    def cpu_microseconds(self):
        """Of the postmaster, the children it has, and those it had."""
        postmaster = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        ticks = 0
        for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = path.read_text().rsplit(")", 1)[1].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(path.parent.name) == postmaster:
                ticks += sum(map(int, fields[11:15]))
            elif int(fields[1]) == postmaster:
                ticks += sum(map(int, fields[11:13]))
        return ticks * 1e6 / os.sysconf("SC_CLK_TCK")

    def _postgres(self, program, *arguments):
        command = [str(self.bin / program), *map(str, arguments)]
        if os.geteuid() == 0:
            # Postgres refuses to run as root.
            command = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", *command]
        outcome = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/tmp")
        if outcome.returncode != 0:
            raise BenchError(f"{program} failed: {outcome.stdout.strip()[-300:]}")
