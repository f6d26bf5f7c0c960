"""A private Postgres."""

import glob
import os
import pwd
import shutil
import subprocess
import tempfile

import psycopg

from support import unfairness
from support.ports import free_port


def programs():
    """The folder of Postgres' programs: what ROOST_POSTGRES_BIN names, else the newest of Debian's packages."""
    named = os.environ.get("ROOST_POSTGRES_BIN")
    if named:
        assert os.path.exists(f"{named}/initdb"), f"ROOST_POSTGRES_BIN: there is no initdb in {named}"
        return named
    folders = glob.glob("/usr/lib/postgresql/*/bin")
    assert folders, "no Postgres server is installed: apt-get install postgresql"
    return max(folders, key=lambda folder: int(folder.split("/")[-2]))


#: The roles of clients' tokens, as Supabase has them.
ROLES = """
    do $$ begin
        create role anon nologin noinherit;
        create role authenticated nologin noinherit;
        create role service_role nologin noinherit bypassrls;
    exception when duplicate_object then null;
    end $$
"""


class Cluster:
    """One cluster in a temporary folder, on a free port of 127.0.0.1, with the superuser `postgres`.

    Commits do not wait for the disk: no test pulls the plug, and a killed server keeps what the kernel has.
    """

    def __init__(self, bin=None, port=None, initdb=(), settings=""):
        """With the programs of the folder `bin`; `initdb` are options of it, `settings` lines for postgresql.conf."""
        self.folder = tempfile.mkdtemp(prefix="roost-e2e-pg-")
        self.data = f"{self.folder}/data"
        self.port = port or free_port()
        self.bin = bin or programs()
        self._has_template = False
        unfairness.clusters.add(self)
        # Postgres refuses to run as root.
        self._user = "postgres" if os.geteuid() == 0 else None
        if self._user:
            entry = pwd.getpwnam(self._user)
            os.chown(self.folder, entry.pw_uid, entry.pw_gid)
        self._run("initdb", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-locale", "--no-sync", *initdb,
                  self.data)
        with open(f"{self.data}/postgresql.conf", "a") as file:
            file.write(f"listen_addresses = '127.0.0.1'\nport = {self.port}\n")
            file.write(f"unix_socket_directories = '{self.folder}'\n")
            file.write("fsync = off\nsynchronous_commit = off\nfull_page_writes = off\nmax_connections = 60\n")
            file.write("shared_buffers = 64MB\nmax_wal_size = 2GB\nautovacuum_naptime = '1h'\n")
            file.write("wal_level = logical\nmax_replication_slots = 30\nmax_wal_senders = 30\n")
            file.write(settings)

    def start(self, roles=True):
        """Without the clients' roles it is as initdb leaves it."""
        self._run("pg_ctl", "start", "-w", "-t", "30", "-D", self.data, "-l", f"{self.folder}/log", "-s")
        if roles:
            with self.connect() as connection:
                connection.execute(ROLES)
        return self

    def stop(self, mode="fast"):
        self._run("pg_ctl", "stop", "-w", "-t", "30", "-D", self.data, "-m", mode, "-s")

    def dump(self, database, into, name):
        """Restores a dump of a database as a new one of another cluster."""
        file = f"{into.folder}/dump"
        self._run("pg_dump", "-Fc", "-f", file, "-d", self.url(database))
        into.create_database(name)
        into._run("pg_restore", "--exit-on-error", "-d", into.url(name), file)

    @property
    def pid(self):
        """None while it does not run."""
        try:
            with open(f"{self.data}/postmaster.pid") as file:
                return int(file.readline())
        except (FileNotFoundError, ValueError):
            return None

    def copy_of_files(self):
        """The server must not run."""
        copy = f"{self.folder}/copy"
        shutil.rmtree(copy, ignore_errors=True)
        subprocess.run(["cp", "-a", self.data, copy], check=True)
        return copy

    def put_back(self, copy):
        """The files of before; the server must not run."""
        shutil.rmtree(self.data)
        subprocess.run(["cp", "-a", copy, self.data], check=True)

    def move_to(self, port):
        """From the next start on."""
        with open(f"{self.data}/postgresql.conf", "a") as file:
            file.write(f"port = {port}\n")
        self.port = port

    def remove(self):
        if os.path.exists(f"{self.data}/postmaster.pid"):
            self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database="postgres", user="postgres"):
        return f"postgres://{user}@127.0.0.1:{self.port}/{database}"

    def connect(self, database="postgres", **options):
        """A connection on which every statement is a transaction of its own."""
        return psycopg.connect(self.url(database), autocommit=True, **options)

    def create_database(self, name):
        with self.connect() as connection:
            connection.execute(f'create database "{name}"')
        with self.connect(name) as connection:
            # As Supabase does: what keeps clients from a table in public is row level security.
            connection.execute("alter default privileges in schema public grant all on tables to anon, authenticated, service_role")
        return self.url(name)

    def create_migrated_database(self, name):
        """One that has Roost's schema: a copy, which is a fifth of the work of migrating it."""
        from support.hub import Hub
        with self.connect() as connection:
            if not self._has_template:
                # What another test may have left that failed on the way.
                connection.execute("drop database if exists migrated")
                template = Hub(f"{self.create_database('migrated')}?connect_timeout=30")
                try:
                    template.run("migrate")
                finally:
                    template.remove()
                connection.execute("alter database migrated allow_connections false")
                self._has_template = True
            # By copying files, as before Postgres 15: it takes less than the log of all pages.
            strategy = "strategy file_copy" if connection.info.server_version >= 150000 else ""
            connection.execute(f'create database "{name}" template migrated {strategy}')
        return self.url(name)

    def _run(self, program, *arguments):
        command = [f"{self.bin}/{program}", *arguments]
        if self._user:
            command = ["setpriv", "--reuid", self._user, "--regid", self._user, "--init-groups", *command]
        # The server inherits these; a pipe would keep us waiting for its end.
        with open(f"{self.folder}/{program}.out" if not self._user else os.devnull, "w") as out:
            result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, cwd="/")
        assert result.returncode == 0, f"{program} ended with {result.returncode}; see {self.folder}"
