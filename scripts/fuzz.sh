#!/usr/bin/env bash
# scripts/fuzz.sh [SECONDS] [TARGET…]: builds roost-fuzz with libFuzzer in .build/fuzz and runs each target for so long (60 seconds).
#
# What a target has found stays in .build/fuzz/corpus/TARGET for the next run. An input that ends the process is a finding: it stands in
# .build/fuzz/findings, and `.build/fuzz/release/roost-fuzz TARGET .build/fuzz/corpus/TARGET FILE` repeats it.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}
shift || true
library=$(dirname "$(dirname "$(readlink -f "$(command -v swiftc)")")")/lib/clang
library=$(find "$library" -name 'libclang_rt.fuzzer_no_main-*.a' | head -1)
if [ -z "$library" ]; then
    echo "fuzz: this Swift toolchain has no libFuzzer (libclang_rt.fuzzer_no_main)" >&2
    exit 1
fi
ROOST_FUZZ=$library swift build -c release --product roost-fuzz --scratch-path .build/fuzz
program=.build/fuzz/release/roost-fuzz

# Swift's own report of a crash would come instead of libFuzzer's, and takes minutes.
export SWIFT_BACKTRACE=enable=no
targets=("$@")
if [ ${#targets[@]} = 0 ]; then
    read -ra targets <<<"$("$program" | sed 's/.*one of: //')" || true
fi
mkdir -p .build/fuzz/findings
failed=()
for target in "${targets[@]}"; do
    corpus=.build/fuzz/corpus/$target
    mkdir -p "$corpus"
    log=.build/fuzz/$target.log
    if "$program" "$target" "$corpus" -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=2048 \
        -artifact_prefix=".build/fuzz/findings/$target-" -print_final_stats=1 </dev/null >"$log" 2>&1; then
        echo "fuzz: $target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs, no finding"
    else
        echo "fuzz: $target: a finding; see $log" >&2
        failed+=("$target")
    fi
done
[ ${#failed[@]} = 0 ]
