"""What the operator's live page shows of the hubs that act as one."""

import asyncio
import os

import pytest

from support.deadline import PATIENCE
from support.ops import LIVE, connect_operator, hook, watch
from support.redis import Redis
from support.tokens import token
from support.wsclient import Client
from test_cluster import Hubs, say


@pytest.fixture
def redis():
    with Redis() as redis:
        yield redis


@pytest.fixture
def pair(cluster, redis, name):
    hubs = Hubs(cluster.create_database(f"page_{name}"), redis, 2)
    try:
        hubs.start()
        yield hubs.all
    finally:
        hubs.remove()


async def cluster_where(operator, holds, within=PATIENCE):
    async with asyncio.timeout(within):
        while True:
            told = (await operator.next("sample", "ops:overview", within=within)).payload["cluster"]
            if holds(told):
                return told


async def test_a_hub_alone_shows_nothing_of_it(operator):
    await watch(operator, "ops:overview")
    assert (await operator.next("sample", "ops:overview")).payload["cluster"] is None


async def test_the_page_shows_the_hubs_and_why_one_is_alone(pair, redis, browser, topic, tmp_path):
    one, other = [await Client.connect(hub.port, apikey=token()) for hub in pair]
    for client in (one, other):
        await client.join(topic)
    operator = await connect_operator(pair[1])
    await watch(operator, "ops:overview")
    page = await browser.page(f"http://127.0.0.1:{pair[1].ops_port}/")
    await page.until(LIVE)
    try:
        # What a hub says of itself is a moment old on the others' pages.
        stopped = asyncio.Event()

        async def talk():
            n = 0
            while not stopped.is_set():
                say(one, topic, n := n + 1)
                await asyncio.sleep(0.02)
        talking = asyncio.create_task(talk())
        told = await cluster_where(operator, lambda told: told["hubs"][1:] and told["hubs"][1]["said"] and told["hubs"][0]["heard"]
                                   and all(hub["connections"] == 1 for hub in told["hubs"]))
        stopped.set()
        await talking
        own, another = told["hubs"]
        assert (own["name"], another["name"]) == ("hub1", "hub0")
        assert (own["state"], another["state"]) == ("there", "there")
        assert told["problem"] is None and told["gaps"] == 0 and told["server"] == redis.url()
        await page.until(f"{hook('cluster-state')}?.textContent.startsWith('With 1 other hub by redis://')")
        rows = f"Array.from({hook('cluster-hubs')}.querySelectorAll('tbody tr'), row => row.children[0].textContent)"
        assert await page.run(rows) == ["hub1, here", "hub0"]
        redis.freeze()
        told = await cluster_where(operator, lambda told: told["problem"])
        assert "Redis does not answer any more" in told["problem"]
        await page.until(f"{hook('cluster-state')}.textContent.startsWith('Alone: the other hubs cannot be reached')")
        redis.thaw()
        await page.until(f"{hook('cluster-state')}.textContent.startsWith('With 1 other hub')")
        pair[0].kill()
        await page.until(f"{hook('cluster-hubs')}.textContent.includes('died')")
        assert page.complaints == []
    finally:
        await page.screenshot(f"{os.environ.get('ROOST_E2E_SCREENSHOTS') or tmp_path}/cluster.png")
        await page.close()
        for client in (one, other, operator):
            await client.close()
