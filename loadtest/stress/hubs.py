"""Several hubs and the Redis that they share fail while clients live on them: `loadtest/stress.sh --hubs 3`."""

import asyncio
import contextlib
import time

from support import namespaces
from support.cluster import Cluster
from support.cluster_faults import KINDS, NETWORK, plan, possible
from support.cluster_report import story, summary
from support.cluster_run import ClusterRun

DATABASE = "stress"
#: Complaints that are shown; the rest is in the file that --keep-log names.
SHOWN = 40


def postgres():
    """One that hubs on networks of their own reach, too. These are all inside this process's own network."""
    cluster = Cluster(settings="listen_addresses = '*'\n" if namespaces.is_private() else "")
    with open(f"{cluster.data}/pg_hba.conf", "a") as file:
        file.write("host all all 10.0.0.0/8 trust\n")
    return cluster


async def main(chosen):
    kinds = [kind for kind in possible() if kind in chosen.only]
    faults = plan(chosen.seed, chosen.faults, kinds) if kinds else []
    again = f"--hubs 3 --seed {chosen.seed} --faults {chosen.faults}" + (f" --only {','.join(kinds)}" if chosen.only != set(KINDS) else "")
    print(f"seed {chosen.seed}: three hubs, {len(faults)} faults; again with {again}", flush=True)
    if missing := sorted(set(NETWORK) & chosen.only - set(kinds)):
        print(f"packets cannot be lost here, as that takes root and network namespaces; left out: {', '.join(missing)}", flush=True)
    with contextlib.ExitStack() as stack:
        cluster = postgres()
        stack.callback(cluster.remove)
        cluster.start()
        cluster.create_database(DATABASE)
        found, run = ["the run did not end"], ClusterRun(cluster, DATABASE, chosen.seed)
        try:
            async with run:
                progress = asyncio.create_task(tell(run, len(faults)))
                try:
                    await run.faults.play(faults)
                    found = await run.settle()
                finally:
                    progress.cancel()
                    if chosen.keep_log:
                        logs = [f"hub{number}:\n{hub.log}" for number, hub in enumerate(run.hubs.all)]
                        chosen.keep_log.write_text("\n".join([*found, *run.notes, story(run), *logs]))
                print(summary(run))
        except (AssertionError, OSError, TimeoutError) as failure:
            found = [f"the run failed: {failure}", *run.failures]
            print("\n".join(run.notes[-20:]))
    print(f"complaints   {len(found)}", *found[:SHOWN], sep="\n")
    return 1 if found else 0


async def tell(run, count):
    """How far it is, once a minute."""
    while True:
        await asyncio.sleep(60)
        print(f"{time.monotonic() - run.began:.0f} s: {len(run.faults.done)} of {count} faults", flush=True)
