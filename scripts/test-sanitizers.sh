#!/usr/bin/env bash
# scripts/test-sanitizers.sh [address|thread] [swift|postgres|e2e] [FILTER]: the tests on programs that a sanitizer of clang's watches;
# both sanitizers and all three legs if nothing is said. Started by `make test-sanitizers`, which knows the tests' kinds.
#
#   make test-sanitizers                                 all of it
#   make test-sanitizers ARGS="thread"                   one sanitizer
#   make test-sanitizers ARGS="address swift WireTests"  one leg of it, and those tests of which the name matches
#   make test-sanitizers ARGS="thread e2e cluster"       end to end: pytest's -k
#
# The sanitizer's reports are what this is about: each process writes its own to .build/SANITIZER/reports, and one report fails the run.
# Reports that are explained are in Tests/Sanitizers: leaks.txt and races.txt. What the tests themselves said is in
# .build/SANITIZER/LEG.log; a test that fails fails the run too.
set -euo pipefail
cd "$(dirname "$0")/.."

on_postgres=${ON_POSTGRES:?start this by make test-sanitizers}
clocks=${CLOCKS:?start this by make test-sanitizers}
sanitizers=(address thread)
legs=(swift postgres e2e)
[[ $# == 0 ]] || sanitizers=("$1")
[[ $# -lt 2 ]] || legs=("$2")
filter=${3:-}
[[ " address thread " == *" ${sanitizers[0]} "* && " swift postgres e2e " == *" ${legs[0]} "* && $# -le 3 ]] || {
    echo "usage: scripts/test-sanitizers.sh [address|thread] [swift|postgres|e2e] [FILTER]" >&2
    exit 64
}
TMPDIR=$(scripts/scratch.sh)
export TMPDIR
here=$PWD

# Every way from a socket to the loops, the feed and other hubs, in a part of the end-to-end tests' time.
files=(bad_input broadcast_history cluster drain grace http_front http_smuggling notify_channels private_channels protocol recovery_returns
    reload restarts rfc6455 server_api sse stream_events stream_uploads streams swift_client tls typing unix_socket upgrade webhooks)
files=("${files[@]/#/Tests/EndToEnd/test_}")
files=("${files[@]/%/.py}")
# A program under the address sanitizer is half as fast, which leaves time for all of them.
all_files=(Tests/EndToEnd)
# They measure the process' memory, of which a sanitizer takes many times as much.
measured="memory or resident or without_end or reads_late"

# What both the tests and the canary are built with.
choose_options() { # sanitizer
    mkdir -p ".build/$1"
    # Lines for reports, and nothing else for a debugger.
    compiling=(-gline-tables-only)
    linking=()
    [[ $1 == thread ]] || return 0
    local runtime=$here/.build/thread/runtime.o name
    clang -O1 -c Tests/Sanitizers/runtime.c -o "$runtime"
    linking=(-Xlinker "$runtime")
    for name in $(nm "$runtime" | sed -n 's/.* T __wrap_//p'); do linking+=(-Xlinker "--wrap=$name"); done
}

# The linker warns of every symbol of the sanitizer's that it keeps to itself.
without_warnings() { { grep -v 'warning: Cannot export local symbol' || true; } >&2; }

count_reports() { # folder
    { grep -lE '(WARNING|ERROR): (Thread|Address|Leak)Sanitizer' "$1"/report* 2>/dev/null || true; } | wc -l
}

set_options() { # folder for reports
    mkdir -p "$1"
    rm -f "$1"/report*
    local all="log_path=$here/$1/report:external_symbolizer_path=$symbolizer"
    export ASAN_OPTIONS="$all:detect_leaks=1" LSAN_OPTIONS="suppressions=$here/Tests/Sanitizers/leaks.txt:print_suppressions=0"
    export TSAN_OPTIONS="$all:suppressions=$here/Tests/Sanitizers/races.txt:history_size=4:exitcode=0"
}

# No report says something only where these are made.
try_canary() { # sanitizer
    local program=.build/$1/canary mode expected found
    swiftc -swift-version 6 -parse-as-library -O "${compiling[@]}" -sanitize="$1" "${linking[@]}" Tests/Sanitizers/canary.swift \
        -o "$program" 2> >(without_warnings)
    for mode in LOCKED HANDED RACE OVERFLOW LEAK; do
        case $1-$mode in
        thread-RACE | address-OVERFLOW | address-LEAK) expected=1 ;;
        *) expected=0 ;;
        esac
        set_options ".build/$1/canary-reports"
        "$program" "$mode" >/dev/null 2>&1 || true
        found=$(count_reports ".build/$1/canary-reports")
        [[ $found == "$expected" ]] || {
            echo "test-sanitizers: the $1 sanitizer reported $found instead of $expected for $mode (Tests/Sanitizers/canary.swift)" >&2
            exit 1
        }
    done
}

run_leg() { # sanitizer leg
    local swift=(".build/$1/release/roostPackageTests.xctest" --testing-library swift-testing --quiet)
    local of_leg=("${files[@]}")
    [[ $1 == thread ]] || of_leg=("${all_files[@]}")
    case $2 in
    swift) "${swift[@]}" --skip "$on_postgres" --skip "$clocks" ${filter:+--filter "$filter"} ;;
    postgres) "${swift[@]}" --no-parallel --filter "${filter:-$on_postgres}" --skip "$clocks" ;;
    e2e)
        ROOST_SANITIZER=$1 ROOST_BINARY=.build/$1/release/roost .venv/bin/python -m pytest -q -m "not clock" \
            -k "not ($measured)${filter:+ and ($filter)}" "${of_leg[@]}"
        ;;
    esac
}

# Swift's own report of a crash would come beside the sanitizer's, and takes minutes.
export SWIFT_BACKTRACE=enable=no
symbolizer=$(dirname "$(readlink -f "$(command -v swift)")")/llvm-symbolizer
failed=0
for sanitizer in "${sanitizers[@]}"; do
    choose_options "$sanitizer"
    try_canary "$sanitizer"
    ROOST_BUILD=quick scripts/leg.sh "building for the $sanitizer sanitizer" swift build -c release -debug-info-format none \
        --sanitize="$sanitizer" --scratch-path ".build/$sanitizer" --build-tests -Xswiftc "${compiling[0]}" "${linking[@]}" \
        2> >(without_warnings)
    for leg in "${legs[@]}"; do
        reports=.build/$sanitizer/reports/$leg
        set_options "$reports"
        outcome="all tests passed"
        run_leg "$sanitizer" "$leg" >".build/$sanitizer/$leg.log" 2>&1 || outcome="tests failed, see .build/$sanitizer/$leg.log" failed=1
        found=$(count_reports "$reports")
        [[ $found == 0 ]] || failed=1
        echo "== $sanitizer sanitizer, $leg: $found processes with reports in $reports; $outcome"
    done
done
exit "$failed"
