"""Prints what `make test-versions` found: a row for each version and part, then what failed. Ends with 1 if anything did."""

import pathlib
import sys
import xml.etree.ElementTree as ElementTree

COLUMNS = "{:<9} {:<9} {:>6} {:>7} {:>7} {:>8} {:>8}"


def suites(path):
    return ElementTree.parse(path).getroot().iter("testsuite")


def main(folder, runs):
    failures = []
    print(COLUMNS.format("Postgres", "part", "tests", "passed", "failed", "skipped", "seconds"))
    for run in runs:
        version, part = run.split("-")
        path = pathlib.Path(folder, f"{run}.xml")
        if not path.exists():
            print(COLUMNS.format(version, part, "-", "-", "-", "-", "-"))
            failures.append(f"Postgres {version}, {part}: ended without a result; see {folder}/{run}.log")
            continue
        tests = failed = skipped = 0
        seconds = 0.0
        for suite in suites(path):
            seconds += float(suite.get("time", 0))
            for case in suite.iter("testcase"):
                tests += 1
                skipped += case.find("skipped") is not None
                problem = next((case.find(kind) for kind in ("failure", "error") if case.find(kind) is not None), None)
                if problem is not None:
                    failed += 1
                    said = (problem.get("message") or problem.text or "").strip().split("\n")[0]
                    failures.append(f"Postgres {version}: {case.get('classname')} {case.get('name')}: {said[:200]}")
        passed = tests - failed - skipped
        print(COLUMNS.format(version, part, tests, passed, failed, skipped, round(seconds)))
        if tests == 0:
            failures.append(f"Postgres {version}, {part}: ran no test; see {folder}/{run}.log")
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
