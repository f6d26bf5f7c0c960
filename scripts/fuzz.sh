#!/usr/bin/env bash
# scripts/fuzz.sh [SECONDS [AT ONCE]] [TARGET…]: builds roost-fuzz with libFuzzer and the address sanitizer in .build/fuzz, and runs each
# target for so long (60 seconds), so many at once (one).
#
# What a target has found stays in .build/fuzz/corpus/TARGET for the next run. An input that ends the process is a finding: it stands in
# .build/fuzz/findings, and `.build/fuzz/release/roost-fuzz TARGET FILE` repeats it. Each run is a line of
# .build/fuzz/runs: when, the target, seconds, inputs, how many branches its inputs had reached at its beginning and at its end.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}
shift || true
at_once=1
if [[ ${1:-} =~ ^[1-9][0-9]*$ ]]; then
    at_once=$1
    shift
fi
library=$(dirname "$(dirname "$(readlink -f "$(command -v swiftc)")")")/lib/clang
library=$(find "$library" -name 'libclang_rt.fuzzer_no_main-*.a' | head -1)
if [ -z "$library" ]; then
    echo "fuzz: this Swift toolchain has no libFuzzer (libclang_rt.fuzzer_no_main)" >&2
    exit 1
fi
# Optimized, whatever ROOST_BUILD says; a finding names functions, and no lines.
ROOST_BUILD='' ROOST_FUZZ=$library swift build -c release -debug-info-format none --sanitize=address --product roost-fuzz \
    --scratch-path .build/fuzz
program=.build/fuzz/release/roost-fuzz
# No finding says something only where both watch.
for module in Wire Hub; do
    symbols=$(nm .build/fuzz/release/"$module".build/*.o)
    if [[ $symbols != *__asan_report_load* || $symbols != *__sanitizer_cov_* ]]; then
        echo "fuzz: $module is built without the address sanitizer, or without libFuzzer" >&2
        exit 1
    fi
done

# Swift's own report of a crash would come instead of libFuzzer's, and takes minutes.
export SWIFT_BACKTRACE=enable=no
targets=("$@")
if [ ${#targets[@]} = 0 ]; then
    read -ra targets <<<"$("$program" | sed 's/.*one of: //')" || true
fi
mkdir -p .build/fuzz/findings

# Returns 1 where the target has a finding.
run_target() { # target
    local target=$1 corpus=.build/fuzz/corpus/$1 log=.build/fuzz/$1.log outcome="no finding" ran inputs reached branches
    mkdir -p "$corpus"
    # On a busy machine, the seconds that it ran say more than those that went by; and it may stand still for most of a minute.
    local TIMEFORMAT=%U
    ran=$({ time "$program" "$target" "$corpus" -max_total_time="$seconds" -max_len=4096 -timeout=120 -rss_limit_mb=2048 \
        -artifact_prefix=".build/fuzz/findings/$target-" -print_final_stats=1 </dev/null >"$log" 2>&1; } 2>&1) || outcome="a finding"
    inputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    reached=$(sed -n '/INITED/,$s/^#.* cov: \([0-9]*\) .*/\1/p' "$log")
    branches="branches ${reached%%$'\n'*} to ${reached##*$'\n'}"
    inputs=${inputs:-an unknown number of}
    echo "$(date -u +%FT%TZ) $target: $seconds s, of which it ran ${ran%.*}, $inputs inputs, $branches, $outcome" >>.build/fuzz/runs
    if [ "$outcome" = "no finding" ]; then
        echo "fuzz: $target: ${ran%.*} s, $inputs inputs, $branches, no finding"
    else
        echo "fuzz: $target: a finding; see $log" >&2
        cp "$log" ".build/fuzz/findings/$target.log"
        return 1
    fi
}

failed=0
running=0
for target in "${targets[@]}"; do
    if ((running == at_once)); then
        wait -n || failed=1
        running=$((running - 1))
    fi
    run_target "$target" &
    running=$((running + 1))
done
while ((running > 0)); do
    wait -n || failed=1
    running=$((running - 1))
done
exit "$failed"
