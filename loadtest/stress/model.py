"""The model check: what each client shows is held against SELECT as its role, in many short runs. `loadtest/stress.sh --model`"""

import asyncio
import collections
import contextlib
import time

from model_plan import model_plan
from model_report import described
from model_run import ModelRun
from support.cluster import Cluster
from support.redis import Redis


async def main(chosen):
    captures = ("triggers", "wal") if chosen.capture == "both" else (chosen.capture,)
    began, sums, bad = time.monotonic(), collections.Counter(), 0
    with contextlib.ExitStack() as stack:
        cluster = Cluster()
        stack.callback(cluster.remove)
        cluster.start()
        redis = stack.enter_context(Redis()) if chosen.hubs > 1 else None
        for seed in range(chosen.seed, chosen.seed + chosen.seeds):
            capture = chosen.capture
            plan = model_plan(seed, chosen.seconds * 0.8, capture, chosen.hubs, chosen.only)
            outcome = await ModelRun(cluster, chosen, seed, capture, plan, redis)()
            print(outcome.line(), flush=True)
            if not outcome.is_good:
                bad += 1
                print(outcome.details(), flush=True)
            sums += outcome.figures
    print(f"{chosen.seeds} seeds, {chosen.hubs} hub{'s' * (chosen.hubs > 1)}, {chosen.capture}: {described(sums)}; {bad} seeds failed; "
          f"took {time.monotonic() - began:.0f} s")
    return 1 if bad else 0
