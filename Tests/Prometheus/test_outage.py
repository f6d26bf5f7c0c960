"""Trouble that is made, and what a real Prometheus says of it."""

import asyncio

import pytest

from support.deadline import until
from support.tokens import token
from support.websocket import Refused, WebSocket

#: More than one a second for the five minutes that the rule looks at.
STRANGERS = 400


def test_postgres_and_the_hub_go_and_come_back(prometheus, hub, cluster):
    def fires(*names):
        until(lambda: set(prometheus.firing) == set(names), 30, f"{names or 'nothing'} to fire", every=0.2)

    until(lambda: prometheus.query('up{job="roost"} == 1'), what="the first scrape", every=0.2)
    fires()
    cluster.stop()
    fires("RoostFeedDown", "RoostNotReady")
    assert f"127.0.0.1:{hub.ops_port}" in prometheus.firing["RoostFeedDown"]["summary"]
    cluster.start()
    fires()
    hub.kill()
    fires("RoostDown")
    hub.start()
    fires()


def test_redis_goes_and_comes_back(prometheus, hub, redis):
    def fires(*names):
        until(lambda: set(prometheus.firing) == set(names), 30, f"{names or 'nothing'} to fire", every=0.2)

    fires()
    redis.kill()
    fires("RoostClusterNotReached")
    assert "/readyz says why" in prometheus.firing["RoostClusterNotReached"]["description"]
    assert hub.ops("/readyz")[0] == 200, "balancers go on sending it clients"
    redis.start()
    fires()


def test_strangers_are_noticed(prometheus, hub):
    """The last, because the rule remembers it for five minutes."""
    assert "RoostTokensRefused" not in prometheus.firing

    async def knock():
        with pytest.raises(Refused):
            await WebSocket.open(hub.port, f"/realtime/v1/websocket?apikey={token()}x", tls=hub.trust)

    async def all_knock():
        for _ in range(STRANGERS):
            await knock()

    asyncio.run(all_knock())
    until(lambda: "RoostTokensRefused" in prometheus.firing, 30, "the alert", every=0.2)
