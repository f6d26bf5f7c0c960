#!/usr/bin/env bash
# Measures this build on this machine and prints tables. loadtest/README.md says what each part measures.
# `make bench` calls it; `loadtest/bench.sh --help` lists the flags. --quick takes about three minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v python3 >/dev/null || {
    echo "bench: python3 is missing: apt-get install python3" >&2
    exit 69
}
PYTHONDONTWRITEBYTECODE=1 exec python3 loadtest/bench "$@"
