"""The model check: what each client shows is held against SELECT as its role, in many short runs. `loadtest/stress.sh --model`"""

import asyncio
import collections
import contextlib
import time

from model_plan import model_plan
from model_report import described
from model_run import ModelRun
from model_selftest import ModelTampering
from support.cluster import Cluster
from support.redis import Redis


async def main(chosen):
    began, sums, bad = time.monotonic(), collections.Counter(), 0
    with contextlib.ExitStack() as stack:
        cluster = Cluster()
        stack.callback(cluster.remove)
        cluster.start()
        redis = stack.enter_context(Redis()) if chosen.hubs > 1 else None
        for seed in range(chosen.seed, chosen.seed + chosen.seeds):
            tampering = ModelTampering(seed) if chosen.self_test else None
            plan = [] if tampering else model_plan(seed, chosen.seconds * 0.8, chosen.capture, chosen.hubs, chosen.only)
            outcome = await ModelRun(cluster, chosen, seed, chosen.capture, plan, redis, tampering)()
            print(outcome.line(), flush=True)
            if tampering:
                complaints = list(tampering.complaints(outcome))
                print("\n".join([tampering.text, *complaints[:20], "the check is blind" if complaints else "the check found all"]))
                bad += bool(complaints)
                continue
            if not outcome.is_good:
                bad += 1
                print(outcome.details(), flush=True)
            sums += outcome.figures
    if chosen.self_test:
        return 1 if bad else 0
    print(f"{chosen.seeds} seeds, {chosen.hubs} hub{'s' * (chosen.hubs > 1)}, {chosen.capture}: {described(sums)}; {bad} seeds failed; "
          f"took {time.monotonic() - began:.0f} s")
    return 1 if bad else 0
