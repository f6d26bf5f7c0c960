"""One Postgres, one Redis, one hub with all that it can be configured to count, and one Prometheus that scrapes it."""

import asyncio

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from prometheus import Prometheus
from support.certificates import Authority
from support.cluster import Cluster
from support.hub import Hub
from support.ports import free_port
from support.redis import Redis
from support.websocket import Refused, WebSocket
from support.wsclient import Client


@pytest.fixture(scope="session")
def cluster():
    cluster = Cluster()
    try:
        yield cluster.start()
    finally:
        cluster.remove()


@pytest.fixture(scope="session")
def redis():
    # With its data on the disk: a log that is gone is a gap, and told.
    with Redis("appendonly yes") as redis:
        yield redis


@pytest.fixture(scope="session")
def hub(cluster, redis, tmp_path_factory):
    hub = Hub(cluster.create_database("scraped"), ROOST_LIMITS_FAILURES_PER_MINUTE="0",
              ROOST_NOTIFY_CHANNELS="c -> t / e", ROOST_FEED_CAPTURE="wal", ROOST_CLUSTER_URL=redis.url(),
              ROOST_STREAMS_ON_CLOSE="insert into t values (length($1)) returning id", **webhooks(), **pushes())
    authority = Authority(tmp_path_factory.mktemp("tls"))
    hub.secure(authority.pair(), authority.trust)
    try:
        hub.run("migrate")
        with cluster.connect("scraped") as sql:
            sql.execute("create table t (id int primary key)")
            hub.watch("t")
            hub.start()
            asyncio.run(use(hub, sql))
        yield hub
    finally:
        hub.remove()


@pytest.fixture(scope="session")
def prometheus(hub):
    with Prometheus(hub.ops_port) as prometheus:
        yield prometheus


def webhooks():
    """Nobody listens at the address."""
    return {"ROOST_WEBHOOKS_URL": f"http://127.0.0.1:{free_port()}", "ROOST_WEBHOOKS_SECRET": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}


def pushes():
    """What makes a hub count pushes. Nobody listens at the address, and nothing is sent."""
    key = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return {
        "ROOST_APNS_TOPIC": "com.example.roost", "ROOST_APNS_TEAM_ID": "TEAM567890", "ROOST_APNS_KEY_ID": "KEY4567890",
        "ROOST_APNS_PRIVATE_KEY": key.decode(), "ROOST_APNS_URL": f"https://127.0.0.1:{free_port()}"}


async def use(hub, sql):
    """Something of everything whose figures appear with the first time."""
    async with await Client.connect(hub.port, tls=hub.trust) as client:
        await client.watch("realtime:room", {"event": "*", "schema": "public", "table": "t"})
        sql.execute("insert into t values (1)")
        await client.next("postgres_changes")
        client.push("realtime:room", "broadcast", {"type": "broadcast", "event": "e", "payload": {}})
        await client.settled()
    with pytest.raises(Refused):
        await WebSocket.open(hub.port, "/realtime/v1/websocket?apikey=wrong", tls=hub.trust)
