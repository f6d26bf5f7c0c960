"""Kills, freezes and restarts the hub and Postgres, and cuts sockets, while rows are written; at the end every client
must have received every row that it was entitled to, in order, and no other. Ends with 0 if so, with 1 if not."""

import argparse
import asyncio
import os
import pathlib
import random
import signal
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAULTS_UNTIL = 0.72  # of the time; the writers go on for the rest


def options():
    from plan import KINDS
    from support.cluster_faults import KINDS as OF_HUBS
    parser = argparse.ArgumentParser(prog="loadtest/stress.sh", description=__doc__)
    parser.add_argument("--seed", type=int, help="repeats the plan of an earlier run; default: random")
    parser.add_argument("--minutes", type=float, default=0.6, help="how long to write (0.6: under a minute in all)")
    parser.add_argument("--only", metavar="FAULT[,FAULT]", help=f"none, or some of {', '.join(KINDS)}; with --hubs 3 of {', '.join(OF_HUBS)}")
    parser.add_argument("--hubs", type=int, choices=(1, 3), default=1,
                        help="3: several hubs that act as one, and their Redis, fail (docs/verification.md); of the other options "
                        "these count: --seed, --faults, --only, --hub, --keep-log")
    parser.add_argument("--model", action="store_true",
                        help="holds what each client shows against SELECT as its role, in short runs with more faults: capture that is "
                        "broken, policies and memberships that change (docs/verification.md); of the other options these count: --seed, "
                        "--seeds, --seconds, --hubs, --capture, --only, --hub, --keep-log, --self-test")
    parser.add_argument("--seeds", type=int, default=1, help="with --model: how many runs, from --seed on (1)")
    parser.add_argument("--seconds", type=float, default=8, help="with --model: how long each writes (8)")
    parser.add_argument("--faults", type=int, default=40, help="with --hubs 3: how many (40, some five minutes)")
    parser.add_argument("--every", type=float, default=2.0, metavar="SECONDS", help="about how often a fault comes (2)")
    parser.add_argument("--clients", type=int, default=200, help="how many clients, ten of them from PyPI (200)")
    parser.add_argument("--rate", type=float, default=100, help="transactions per second that are attempted (100)")
    parser.add_argument("--capture", choices=("triggers", "wal", "both"), default="triggers",
                        help="how changes get into the outbox; both: the table goes from one to the other and back (triggers)")
    parser.add_argument("--settle", type=float, default=45, metavar="SECONDS",
                        help="deadline for the last deliveries (45)")
    parser.add_argument("--hub", type=pathlib.Path, default=ROOT / ".build/release/roost", help="the hub to test")
    parser.add_argument("--log-level", default="warning", help="of the hub (warning)")
    parser.add_argument("--keep-log", type=pathlib.Path, help="where to put the hub's log")
    parser.add_argument("--self-test", action="store_true",
                        help="no faults, but clients that drop, swap and make up changes: does the check find them?")
    found = parser.parse_args()
    # A run of nothing would be a green one.
    if found.seeds < 1:
        parser.error(f"--seeds is {found.seeds}, expected 1 or more")
    kinds = KINDS if found.hubs == 1 else OF_HUBS
    if found.model:
        from model_plan import kinds as of_model
        kinds = sum(map(tuple, of_model(found.capture, found.hubs)), ())
    is_all = found.only is None
    found.only = set(kinds if is_all else found.only.split(",")) - {"none"}
    if unknown := found.only - set(kinds):
        parser.error(f"there is no fault {', '.join(unknown)}; there are {', '.join(kinds)}")
    if not found.hub.exists():
        parser.error(f"{found.hub} is not there: make build")
    if found.self_test and not found.model:
        found.only, found.minutes, found.settle = set(), min(found.minutes, 0.3), 2
    found.seed = random.randrange(1 << 31) if found.seed is None else found.seed
    if found.model:
        # Which kinds a run has is the seed's to say.
        found.only = None if is_all else found.only
    else:
        found.seconds = found.minutes * 60
    return found


async def main():
    # Ended from outside, what was started must end, too.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asyncio.current_task().cancel)
    chosen = options()
    # The harness reads it when it is imported.
    os.environ["ROOST_BINARY"] = str(chosen.hub.resolve())
    if chosen.model:
        import model
        return await model.main(chosen)
    if chosen.hubs > 1:
        import hubs
        return await hubs.main(chosen)
    from plan import plan
    from run import Run
    from selftest import Tampering
    faults = plan(chosen.seed, chosen.seconds * FAULTS_UNTIL, chosen.only, chosen.every)
    print(f"seed {chosen.seed}: {chosen.clients} clients, {chosen.seconds:.0f} s of writing, {len(faults)} faults, "
          f"capture: {chosen.capture}; again with --seed {chosen.seed} --minutes {chosen.minutes:g} --capture {chosen.capture}")
    print("\n".join(map(str, faults)), flush=True)
    tampering = Tampering(chosen.seed) if chosen.self_test else None
    began = time.monotonic()
    run = Run(chosen, faults, tampering)
    outcome = await run()
    print(outcome.text() + f"\ntook         {time.monotonic() - began:.0f} s")
    if tampering:
        complaints = tampering.complaints(outcome)
        print("\n".join([tampering.text, *complaints, "the check is blind" if complaints else "the check found all"]))
        return 1 if complaints else 0
    if not outcome.is_good:
        print(outcome.details())
    return 0 if outcome.is_good else 1


def has_several(arguments):
    return "--model" not in arguments and any(
        word == "--hubs=3" or before == "--hubs" and word == "3" for before, word in zip(["", *arguments], arguments))


if __name__ == "__main__":
    from support import namespaces
    if has_several(sys.argv) and namespaces.are_possible():
        namespaces.become_private()
    sys.exit(asyncio.run(main()))
