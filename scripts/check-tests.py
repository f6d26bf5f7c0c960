#!/usr/bin/env python3
"""Holds the end-to-end tests to what does not race on a busy machine.

An error: a bound of time from above that counts what the machine took from everybody (`assert time.monotonic() - began < 2`);
`at_most` and `Elapsed` of support/bounds.py do not. An error, too: a deadline that is shorter than a busy machine may take, where
nothing is said of why; that of support/deadline.py is the default everywhere, and costs something only where a test fails. A warning: a sleep of a fixed length, where an event or the hub's barrier
(`hub.settle()`) could be waited for. `--list` names these; a sleep that is the point of its test says so in a comment
on its line or the one before it, and is not counted. Part of `make lint`.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BOUND = re.compile(r"assert .*time\.(?:monotonic|perf_counter)\(\) - \w+ <(?!=? *\w+ *- )")
SLEEP = re.compile(r"\b(?:time|asyncio)\.sleep\((\d[\d.]*)\)")
DEADLINE = re.compile(r"\bwithin=(\d[\d.]*)\b|\b(?:asyncio\.timeout|patience)\((\d[\d.]*)\)|\bwait_for\(.*, (\d[\d.]*)\)")
#: Seconds that a deadline has at least.
PATIENCE = 20
#: Seconds; a loop that looks every few hundredths of a second is no fixed wait.
SHORT = 0.1


def main():
    errors, sleeps = [], []
    for path in sorted((ROOT / "Tests/EndToEnd").rglob("*.py")):
        before = ""
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            place = f"{path.relative_to(ROOT)}:{number}"
            if path.name != "bounds.py" and BOUND.search(line):
                errors.append(f"check-tests: {place} bounds a time from above: use at_most or Elapsed of support/bounds.py")
            deadline = DEADLINE.search(line)
            if deadline and "#" not in line and not before.startswith("#") and not path.name.startswith("cluster_"):
                seconds = float(next(filter(None, deadline.groups())))
                if seconds < PATIENCE:
                    errors.append(f"check-tests: {place} gives up after {seconds:g} s: leave the deadline out, or say why in a comment")
            sleep = SLEEP.search(line)
            if sleep and float(sleep[1]) >= SHORT and "#" not in line and not before.startswith("#"):
                sleeps.append((place, float(sleep[1])))
            before = line.strip()
    for error in errors:
        print(error, file=sys.stderr)
    if "--list" in sys.argv[1:]:
        for place, seconds in sleeps:
            print(f"check-tests: {place} sleeps for {seconds:g} s")
    if sleeps:
        total = sum(seconds for _, seconds in sleeps)
        print(f"check-tests: warning: {len(sleeps)} sleeps of a fixed length, {total:.0f} s in all (scripts/check-tests.py --list)")
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
