#!/usr/bin/env bash
# Runs the tests of the change feed, and those end-to-end files in which Postgres has a say, on every major version of
# Postgres that Roost claims to work with, then the upgrades from one to the next; prints a table at the end. Started by
# `make test-versions`, which builds first.
#
#   make test-versions                               all of it
#   make test-versions ARGS="13 18"                  these versions, without the upgrades
#   VERSIONS_PARTS=upgrade make test-versions        these parts: feed, policies (the Swift tests, in two processes),
#                                                    e2e, upgrade
#
# What each of them said is in .build/versions.
set -euo pipefail
cd "$(dirname "$0")/.."

on_postgres=${ON_POSTGRES:?start this by make test-versions}
policies=${POLICIES:?start this by make test-versions}
bundle=.build/release/roostPackageTests.xctest
paths=(Tests/EndToEnd/test_{python_changes,recovery,visibility,every_row,presence_restart,exact_values,exact_filters}.py)
everything="feed policies e2e upgrade"
[[ $# == 0 ]] || everything="feed policies e2e"
read -r -a parts <<<"${VERSIONS_PARTS:-$everything}"
results=$PWD/.build/versions
mkdir -p "$results"
TMPDIR=$(scripts/scratch.sh)
export TMPDIR
# All cases of the comparisons with SELECT.
export ROOST_EXACT=all

# Neither ends this script where a test fails: the table tells, by what they wrote.
swift_tests() { # name arguments…
    rm -f "$results/$1.xml"
    "$bundle" --testing-library swift-testing --no-parallel --xunit-output "$results/$1.xml" "${@:2}" >"$results/$1.log" 2>&1 || true
}

python_tests() { # name arguments…
    rm -f "$results/$1.xml"
    .venv/bin/python -m pytest -q -s --junit-xml "$results/$1.xml" "${@:2}" >"$results/$1.log" 2>&1 || true
}

servers=$(scripts/postgres-versions.sh)
ran=()
while read -r major bin; do
    [[ $# == 0 || " $* " == *" $major "* ]] || continue
    for part in "${parts[@]}"; do
        [[ $part != upgrade ]] || continue
        echo "== Postgres $major: $part"
        export ROOST_POSTGRES_BIN=$bin
        case $part in
        feed) swift_tests "$major-$part" --filter "$on_postgres" --skip "$policies" ;;
        policies) swift_tests "$major-$part" --filter "$policies" ;;
        e2e) python_tests "$major-$part" "${paths[@]}" ;;
        *)
            echo "test-versions: there is no part $part; choose of $everything" >&2
            exit 64
            ;;
        esac
        ran+=("$major-$part")
    done
done <<<"$servers"
if [[ " ${parts[*]} " == *" upgrade "* ]]; then
    echo "== upgrades of Postgres"
    unset ROOST_POSTGRES_BIN
    POSTGRES_VERSIONS=$servers python_tests all-upgrade Tests/Versions
    ran+=(all-upgrade)
    # What clients lacked after each of them.
    grep -h ' rows, ' "$results/all-upgrade.log" || true
fi
[[ ${#ran[@]} -gt 0 ]] || {
    echo "test-versions: none of these versions is here: $*" >&2
    exit 64
}
.venv/bin/python Tests/Versions/table.py "$results" "${ran[@]}"
