"""Servers of every major version of Postgres, and the ways from one to the next."""

import os
import pathlib
import subprocess

from support.cluster import Cluster
from support.deadline import until

ROOT = pathlib.Path(__file__).resolve().parents[2]


def servers():
    """By major version: the folder of its programs."""
    known = os.environ.get("POSTGRES_VERSIONS")
    if known is None:
        known = subprocess.check_output([ROOT / "scripts/postgres-versions.sh"], text=True)
    words = known.split()
    return {int(major): folder for major, folder in zip(words[::2], words[1::2])}


def cluster(major, folder, port=None, settings=""):
    """A cluster that pg_upgrade accepts beside any other of these: 18 is the first whose pages have checksums unasked."""
    return Cluster(folder, port, ["--no-data-checksums"] if major >= 18 else [], settings)


def run(cluster, *command):
    """A program of the cluster's version, as who owns it; what it wrote."""
    user = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--init-groups"] if os.geteuid() == 0 else []
    result = subprocess.run([*user, f"{cluster.bin}/{command[0]}", *command[1:]], cwd=cluster.folder, text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert result.returncode == 0, f"{' '.join(command)}: {result.stdout[-3000:]}"
    return result.stdout


# Each of these leaves `new` running on the port that `old` had, with all that `old` had, and `old` stopped.


def by_pg_upgrade(old, new, database):
    old.stop()
    run(new, "pg_upgrade", "--old-bindir", old.bin, "--new-bindir", new.bin, "--old-datadir", old.data,
        "--new-datadir", new.data, "--username", "postgres")
    new.start()


def by_dump(old, new, database):
    # Of the newer version's programs, as Postgres advises.
    dump = run(new, "pg_dump", "--dbname", old.url(database), "--file", f"{new.folder}/dump.sql")
    assert not dump, dump
    old.stop()
    new.start()
    new.create_database(database)
    said = run(new, "psql", "-q", "-X", "-v", "ON_ERROR_STOP=1", "-f", f"{new.folder}/dump.sql", new.url(database))
    assert "ERROR" not in said, said


class Replication:
    """`new` follows `old` by logical replication, on a port of its own until it takes over; as docs/upgrading.md has it."""

    #: What of Roost's is replicated as the application's tables are.
    MOVING = ("realtime.messages", "roost.push_device", "roost.push_activity", "roost.alert", "roost.alert_device",
              "roost.timed_source", "roost.timed_row", "roost.online_user")
    #: Of which the structure alone is copied: besides these what is told in no other database.
    LEFT_OUT = ("public.*", "realtime.messages",
                "roost.(change|presence|sign_of_life|online_user|stream_commit|alert|alert_device|push_*|timed_*)")

    def __init__(self, old, new, database):
        self.old, self.new, self.database = old, new, database

    def begin(self, table, hub):
        """Everything but rows is copied, of Roost's own schema also what stays as it is; then rows flow.

        The copy that a subscription begins with fires Roost's triggers: so the table is watched there at the end.
        """
        path = f"{self.new.folder}/structure.sql"
        run(self.new, "pg_dump", *(f"--exclude-table-data={pattern}" for pattern in self.LEFT_OUT),
            "--dbname", self.old.url(self.database), "--file", path)
        self.new.create_database(self.database)
        run(self.new, "psql", "-q", "-X", "-v", "ON_ERROR_STOP=1", "-f", path, self.new.url(self.database))
        hub.run("unwatch", table, ROOST_DATABASE_URL=self.new.url(self.database))
        with self.old.connect(self.database) as sql:
            sql.execute(f"create publication upgrade for table {', '.join((table, *self.MOVING))}")
        with self.new.connect(self.database) as sql:
            sql.execute(f"create subscription upgrade connection '{self.old.url(self.database)}' publication upgrade")

    def is_level(self):
        """All that `old` has is in `new`."""
        with self.new.connect(self.database) as sql:
            if sql.execute("select 1 from pg_subscription_rel where srsubstate <> 'r'").fetchone():
                return False
        with self.old.connect(self.database) as sql:
            return sql.execute(
                "select coalesce(bool_and(replay_lsn >= pg_current_wal_lsn() and state = 'streaming'), false) "
                "from pg_stat_replication where application_name = 'upgrade'").fetchone()[0]

    def end(self, table, hub):
        """The writers rest. Sequences are not replicated; this database needs none of its own."""
        until(self.is_level, 30, "the new server has all of the old one")
        with self.new.connect(self.database) as sql:
            sql.execute("drop subscription upgrade")
            assert sql.execute("select count(*) from roost.change").fetchone()[0] == 0
        hub.run("watch", table, ROOST_DATABASE_URL=self.new.url(self.database))
        self.old.stop()
