"""A hub behind PgBouncer: refused before it starts where sessions are lent by the transaction, served in session mode."""

import os
import socket
import subprocess

import pytest

from support.deadline import until
from support.hub import Hub
from support.ports import free_port
from support.returning import Returning

AS_POSTGRES = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--init-groups"] if os.geteuid() == 0 else []


@pytest.fixture
def pooled(cluster, tmp_path):
    """Makes hubs of one database behind a PgBouncer of some mode."""
    made = []
    url = cluster.create_database("pooled")
    direct = Hub(url)
    direct.run("migrate")

    def make(mode):
        port = free_port()
        file = f"{direct.folder}/{mode}.ini"
        with open(file, "w") as configuration:
            configuration.write(
                f"[databases]\n* = host=127.0.0.1 port={cluster.port} user=postgres\n[pgbouncer]\n"
                f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = {mode}\n")
        os.chmod(direct.folder, 0o755)
        made.append(subprocess.Popen([*AS_POSTGRES, "/usr/sbin/pgbouncer", "-q", file], stderr=subprocess.DEVNULL))
        hub = Hub(f"postgres://postgres@127.0.0.1:{port}/pooled")
        made.append(hub)
        until(lambda: hub.run("config", "check", check=False).returncode == 0 and _answers(port), what="PgBouncer")
        return hub

    yield make
    for thing in reversed(made):
        if isinstance(thing, Hub):
            thing.remove()
        else:
            thing.terminate()
            thing.wait(30)
    direct.remove()


def _answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def test_a_pooler_by_the_transaction_is_refused_and_one_by_the_session_is_not(pooled, cluster):
    lent = pooled("transaction")
    for command, status in [("serve", 78), ("doctor", 69), ("migrate", 69)]:
        result = lent.run(command, check=False)
        said = result.stdout + result.stderr
        assert result.returncode == status, said
        assert "pool_mode = transaction" in said and "ROOST_DATABASE_URL" in said, said
    hub = pooled("session")
    with cluster.connect("pooled") as sql:
        sql.execute("create table t (id int primary key)")
        hub.watch("t")
        hub.start()
        client = Returning(hub, "realtime:r", "t")
        await client.enter()
        sql.execute("insert into t values (1)")
        await client.has([1])
        await client.close()
