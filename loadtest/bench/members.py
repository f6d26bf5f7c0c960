"""Members of channels: what presence costs when many come and go, and what typing costs when many type."""

import statistics
import time

from crowd import Crowd
from hub import Hub
from processes import cpu_us, resident
from programs import BenchError
from table import show, spread, verdict

MEMBERS, RATE = 1000, 200  # members, and joins and then leaves a second: ten seconds in all
TYPISTS, STARTS, SECONDS = 500, 3, 10  # typists, what each says in a second, and for how long
FIRST = 100
MEMORY_BUDGET = 5
REST = 1.0  # seconds of silence after which nothing more is expected


class Members(Crowd):
    """So many members of so many channels; the commands are those of `MemberCrowd`."""
    script = "member_crowd.py"

    def __init__(self, hub, count, channels=1, watches=True):
        super().__init__(hub, count, channels, "watch" if watches else "track")
        self.count = count

    def __enter__(self):
        self.ask("connect")
        self.until(lambda state: state["open"] == self.count)
        return self

    def until(self, holds, within=60):
        deadline = time.monotonic() + within
        while True:
            state = self.ask("report")
            if holds(state):
                return state
            if time.monotonic() > deadline:
                raise BenchError(f"not within {within} s: {state}")
            time.sleep(0.05)

    def all_say(self, what, rate):
        """Until everybody was answered."""
        before = self.ask("report")["replies"]
        self.ask(what, rate=rate)
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


# Presence


def presence(programs, cluster, arguments):
    rounds = arguments.rounds or (1 if arguments.quick else 3)
    database = cluster.create("presence")
    variants = {"merged (100 ms)": {}, "each by itself": {"ROOST_PRESENCE_MERGE_MILLISECONDS": 0}}
    results = {name: [] for name in variants}
    for _ in range(rounds):
        for name, settings in variants.items():
            with Hub(programs, cluster, database, arguments.loops, **settings) as hub, Members(hub, MEMBERS) as crowd:
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
    crowd.ask("forget")
    before, began, testers = cpu_us(hub.pid), time.monotonic(), crowd.ask("report")["cpu"]
    # Each joins and tracks, and is answered twice.
    crowd.ask("join", rate=RATE)
    crowd.until(lambda state: state["replies"] == 2 * MEMBERS and not state["to_do"])
    joined = crowd.at_rest()["by_kind"]
    crowd.ask("leave", rate=RATE)
    crowd.until(lambda state: state["replies"] >= 3 * MEMBERS and not state["to_do"])
    state = crowd.at_rest()
    seconds, spent, changes = time.monotonic() - began - 2 * REST, cpu_us(hub.pid) - before, 2 * MEMBERS
    seen = known(crowd.ask("hand_over")["kept"])
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
        with Hub(programs, cluster, database, arguments.loops) as hub:
            # The first sockets touch memory that is the hub's and not theirs.
            with Members(hub, FIRST, FIRST, watches=False) as crowd:
                crowd.all_say("join", 2000)
                crowd.all_say("track", 2000)
                crowd.at_rest()
            idle = resident(hub.pid)
            # Without lists: how long those are that others wait for is another question.
            with Members(hub, sockets, channels, watches=False) as crowd:
                crowd.all_say("join", 2000)
                crowd.at_rest()
                joined = resident(hub.pid)
                crowd.all_say("track", 2000)
                crowd.at_rest()
                tracked = resident(hub.pid)
        per_socket = (tracked - idle) / sockets / 1024
        rows.append([name, f"{(joined - idle) / sockets / 1024:.2f}", f"{per_socket:.2f}",
                     verdict(per_socket <= MEMORY_BUDGET)])
    show(f"Memory of {sockets:,} idle sockets that joined a channel and track their presence, KB per socket",
         ["channels", "joined", "tracked, too", f"≤ {MEMORY_BUDGET}"], rows)


# Typing


def typing(programs, cluster, arguments):
    rounds = arguments.rounds or (1 if arguments.quick else 3)
    database = cluster.create("typing")
    found = []
    for _ in range(rounds):
        with Hub(programs, cluster, database, arguments.loops) as hub, Members(hub, TYPISTS, watches=False) as crowd:
            crowd.all_say("join", 500)
            crowd.at_rest()
            crowd.ask("forget")
            testers, before, began = crowd.ask("report")["cpu"], cpu_us(hub.pid), time.monotonic()
            crowd.ask("type", rate=STARTS, seconds=SECONDS)
            crowd.until(lambda state: not state["to_do"])
            state, seconds = crowd.ask("report"), time.monotonic() - began
            spent = cpu_us(hub.pid) - before
            # All end by themselves.
            crowd.at_rest(4)
            still = {}
            for _, _, _, _, payload in crowd.ask("hand_over")["kept"]:
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
