"""A project for the suites of others: a hub behind Envoy, beside a stand-in for the rest of Supabase."""

import dataclasses
import itertools

import pytest

from project import ANON_KEY, SECRET, SERVICE_KEY, USERS, Project
from support.cluster import Cluster
from support.envoy import Envoy
from support.hub import Hub

_numbers = itertools.count(1)
#: Things that each project of Supabase has.
EXTENSIONS = 'create extension "uuid-ossp"; create publication supabase_realtime'


@dataclasses.dataclass
class Served:
    """A project as its clients see it."""

    url: str
    hub: Hub
    database: str
    anon_key: str = ANON_KEY
    service_key: str = SERVICE_KEY


@pytest.fixture(scope="session")
def cluster():
    cluster = Cluster()
    try:
        yield cluster.start()
    finally:
        cluster.remove()


@pytest.fixture
def serve(cluster):
    """Starts a hub with a database of its own, in which `sql` has been run and `tables` are watched."""
    running = []

    def start(sql, tables, secret=SECRET):
        name = f"suite_{next(_numbers)}"
        hub = Hub(cluster.create_migrated_database(name), ROOST_JWT_SECRET=secret, ROOST_HTTP_TRUSTED_PROXIES="127.0.0.1")
        running.append((hub.remove, ()))
        with cluster.connect(name) as connection:
            connection.execute(EXTENSIONS)
            connection.execute(USERS)
            connection.execute(sql)
        for table in tables:
            hub.watch(table)
        hub.start()
        project = Project(lambda: cluster.connect(name)).__enter__()
        running.append((project.__exit__, (None,) * 3))
        envoy = Envoy(hub.port, project.port).__enter__()
        running.append((envoy.__exit__, (None,) * 3))
        return Served(f"http://127.0.0.1:{envoy.port}", hub, cluster.url(name))

    yield start
    for end, arguments in reversed(running):
        end(*arguments)
