"""Three hubs are replaced one after the other, under load and beside hubs of other versions: nothing is lost, and nobody is seen to leave.

ROOST_OLDER_BINARY is a `roost` of an older version: the hubs then begin as that and become this one. Without it they are restarted as
what they are, and a later version is heard in their log all the while.
"""

import os

import pytest

from support.cluster_bounds import Bounds
from support.cluster_history import HUBS
from support.cluster_newer import NewerHub
from support.cluster_report import story, summary
from support.cluster_run import ClusterRun
from support.deadline import eventually
from support.hub import BINARY

OLDER = os.environ.get("ROOST_OLDER_BINARY", BINARY)


# A hub that does not get to run for seconds is taken for dead, and rightly so.
@pytest.mark.clock
async def test_a_rolling_upgrade_loses_nothing_and_nobody_is_seen_to_leave(cluster):
    cluster.create_database("rolling")
    run = ClusterRun(cluster, "rolling", seed=1, restless=False)
    run.hubs.binary = OLDER
    async with run, NewerHub(run.primary, [f"hub{number}" for number in range(HUBS)]) as newer:
        try:
            for number in range(HUBS):
                await newer.has_spoken(10)
                await run.hubs.replace(number, BINARY)
                await run.hubs.whole(30)
            await newer.has_spoken(10)
            await eventually(lambda: len(run.items.committed) > 50, what="more than 50 rows")
            found = await run.settle()
            assert not found, "\n".join(found[:40])
            assert [gone for sitting in run.history.sittings for gone in sitting.gone] == [], "nobody left"
            assert Bounds(run.history).absences(run.history) == [], "nobody could be taken for gone"
            # Everybody was sent away at least once, and heard what was said all the while.
            assert {sitting.hub for sitting in run.history.sittings} == set(range(HUBS))
            assert len(run.history.sittings) >= 2 * len(run.everybody)
        except BaseException:
            print(summary(run), *run.notes, story(run), *(f"hub{n}: {hub.log[-6000:]}" for n, hub in enumerate(run.hubs.all)), sep="\n")
            raise
        print(summary(run))
