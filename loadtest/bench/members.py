"""Members of channels: what presence costs when many come and go, and what typing costs when many type."""

import json
import pathlib
import statistics
import subprocess
import sys
import time

from hub import Hub
from programs import BenchError
from table import show, spread, verdict

MEMBERS, RATE = 1000, 200  # members, and joins and then leaves a second: ten seconds in all
TYPISTS, STARTS, SECONDS = 500, 3, 10  # typists, what each says in a second, and for how long
FIRST = 100
MEMORY_BUDGET = 5
REST = 1.0  # seconds of silence after which nothing more is expected


class Crowd:
    def __init__(self, hub, count, channels=1, watches=True):
        script = pathlib.Path(__file__).with_name("members_crowd.py")
        self.count = count
        self.process = subprocess.Popen(
            [sys.executable, script, str(hub.port), str(count), str(channels), "watch" if watches else "track"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        self.ask(do="connect")
        self.until(lambda state: state["open"] == self.count, 60)
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def ask(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def until(self, holds, within=60):
        deadline = time.monotonic() + within
        while True:
            state = self.ask(do="state")
            if state["errors"]:
                raise BenchError(f"the hub refused something: {state['errors']}")
            if holds(state):
                return state
            if time.monotonic() > deadline:
                raise BenchError(f"not within {within} s: {state}")
            time.sleep(0.05)

    def all_say(self, what, rate):
        """Until everybody was answered."""
        before = self.ask(do="state")["replies"]
        self.ask(do=what, rate=rate)
        return self.until(lambda state: state["replies"] - before == self.count)

    def at_rest(self, seconds=REST):
        """Until no byte came for so long; what there was by then."""
        last, since = None, time.monotonic()
        while True:
            state = self.until(lambda _: True)
            if state["bytes"] != last:
                last, since = state["bytes"], time.monotonic()
            elif time.monotonic() - since > seconds and not state["to_do"]:
                return state


def cpu_us(hub):
    # The kernel's clock of a process (clock_getcpuclockid): exact, and it keeps what ended threads have used.
    return time.clock_gettime_ns(~hub.pid << 3 | 2) / 1000


def started(programs, cluster, database, arguments, **settings):
    hub = Hub(programs, cluster, database, arguments.loops)
    hub.environment |= {name: str(value) for name, value in settings.items()}
    return hub


# Presence


def presence(programs, cluster, arguments):
    rounds = arguments.rounds or (1 if arguments.quick else 3)
    database = cluster.create("presence")
    variants = {"merged (100 ms)": {}, "each by itself": {"ROOST_PRESENCE_MERGE_MILLISECONDS": 0}}
    results = {name: [] for name in variants}
    for _ in range(rounds):
        for name, settings in variants.items():
            with started(programs, cluster, database, arguments, **settings) as hub, Crowd(hub, MEMBERS) as crowd:
                results[name].append(churn(hub, crowd))
    rows = []
    for name, found in results.items():
        rows.append([name] + [spread([each[figure] for each in found], digits) for figure, digits in (
            ("cpu", 0), ("bytes", 0), ("frames", 1), ("states", 0), ("seconds", 1), ("testers", 0), ("late", 0))]
            + ["yes" if all(each["is_true"] for each in found) else "NO"])
    show(f"{MEMBERS:,} members join and track, then leave one channel that all of them watch, {RATE} a second; each figure by "
         f"change (join or leave), median of {rounds} interleaved rounds",
         ["changes are told", "hub CPU µs", "bytes", "frames", "of the bytes: state for the joiner", "seconds in all",
          "tester % of a core", "tester late, ms", "the first member knows"], rows)
    for figure, what in (("cpu", "CPU"), ("bytes", "bytes")):
        merged, single = (statistics.median(each[figure] for each in found) for found in results.values())
        print(f"\nMerged, {what} per change: {merged / single:.1%} of what telling every change to everybody takes", end="")
    print()
    memory(programs, cluster, arguments, database)


def churn(hub, crowd):
    crowd.ask(do="forget")
    before, began, testers = cpu_us(hub), time.monotonic(), crowd.ask(do="state")["cpu"]
    # Each joins and tracks, and is answered twice.
    crowd.ask(do="join", rate=RATE)
    crowd.until(lambda state: state["replies"] == 2 * MEMBERS and not state["to_do"])
    joined = crowd.at_rest()["by_kind"]
    crowd.ask(do="leave", rate=RATE)
    crowd.until(lambda state: state["replies"] >= 3 * MEMBERS and not state["to_do"])
    state = crowd.at_rest()
    seconds, spent, changes = time.monotonic() - began - 2 * REST, cpu_us(hub) - before, 2 * MEMBERS
    seen = known(crowd.ask(do="hand over")["kept"])
    return {
        "cpu": spent / changes, "bytes": state["bytes"] / changes, "seconds": seconds,
        "frames": state["frames"]["presence_diff"] / changes, "states": joined["presence_state"] / changes,
        "testers": 100 * (state["cpu"] - testers) / seconds, "late": 1000 * state["late"], "is_true": seen == {"member 0"}}


def known(frames):
    """Whom a member knows to be there that was told this."""
    refs = {}
    for _, _, _, event, payload in frames:
        joins, leaves = (payload, {}) if event == "presence_state" else (payload["joins"], payload["leaves"])
        for key, entry in joins.items():
            refs.setdefault(key, set()).update(meta["phx_ref"] for meta in entry["metas"])
        for key, entry in leaves.items():
            refs[key] -= {meta["phx_ref"] for meta in entry["metas"]}
    return {key for key, there in refs.items() if there}


def memory(programs, cluster, arguments, database):
    sockets = 1000 if arguments.quick else 5000
    rows = []
    for name, channels in (("one each", sockets), ("for ten each", sockets // 10), ("one for all", 1)):
        with started(programs, cluster, database, arguments) as hub:
            # The first sockets touch memory that is the hub's and not theirs.
            with Crowd(hub, FIRST, FIRST, watches=False) as crowd:
                crowd.all_say("join", 2000)
                crowd.all_say("track", 2000)
                crowd.at_rest()
            idle = resident(hub)
            # Without lists: how long those are that others wait for is another question.
            with Crowd(hub, sockets, channels, watches=False) as crowd:
                crowd.all_say("join", 2000)
                crowd.at_rest()
                joined = resident(hub)
                crowd.all_say("track", 2000)
                crowd.at_rest()
                tracked = resident(hub)
        per_socket = (tracked - idle) / sockets / 1024
        rows.append([name, f"{(joined - idle) / sockets / 1024:.2f}", f"{per_socket:.2f}",
                     verdict(per_socket <= MEMORY_BUDGET)])
    show(f"Memory of {sockets:,} idle sockets that joined a channel and track their presence, KB per socket",
         ["channels", "joined", "tracked, too", f"≤ {MEMORY_BUDGET}"], rows)


def resident(hub):
    with open(f"/proc/{hub.pid}/smaps_rollup") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Rss:")) * 1024


# Typing


def typing(programs, cluster, arguments):
    rounds = arguments.rounds or (1 if arguments.quick else 3)
    database = cluster.create("typing")
    found = []
    for _ in range(rounds):
        with started(programs, cluster, database, arguments) as hub, Crowd(hub, TYPISTS, watches=False) as crowd:
            crowd.all_say("join", 500)
            crowd.at_rest()
            crowd.ask(do="forget")
            testers, before, began = crowd.ask(do="state")["cpu"], cpu_us(hub), time.monotonic()
            crowd.ask(do="type", rate=STARTS, seconds=SECONDS)
            crowd.until(lambda state: not state["to_do"])
            state, seconds = crowd.ask(do="state"), time.monotonic() - began
            spent = cpu_us(hub) - before
            # All end by themselves.
            crowd.at_rest(4)
            still = {}
            for _, _, _, _, payload in crowd.ask(do="hand over")["kept"]:
                still[payload["payload"]["user_id"]] = payload["payload"]["typing"]
            found.append({
                "frames": state["frames"]["typing"] / TYPISTS / seconds, "bytes": state["bytes"] / TYPISTS / seconds,
                "cpu": spent / 1e4 / seconds, "start": spent / (TYPISTS * STARTS * SECONDS),
                "testers": 100 * (state["cpu"] - testers) / seconds, "late": 1000 * state["late"], "told": len(still),
                "ghosts": sum(still.values())})
    row = [f"{TYPISTS} × {STARTS}/s", f"{TYPISTS * STARTS:,}"] + [
        spread([each[figure] for each in found], digits) for figure, digits in (
            ("frames", 1), ("bytes", 0), ("cpu", 1), ("start", 1), ("testers", 0), ("late", 0), ("told", 0))]
    show(f"{TYPISTS} typists in one channel for {SECONDS} s, all of them listeners, too; median of {rounds}",
         ["starts", "passed on as they are, frames/s per listener", "frames/s per listener", "bytes/s per listener",
          "hub, % of a core", "hub CPU µs per start", "tester % of a core", "tester late, ms", "users shown"],
         [row])
    print(f"\nStill typing 4 s after the last start: {max(each['ghosts'] for each in found)}")
