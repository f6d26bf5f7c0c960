#!/usr/bin/env bash
# Measures this build on this machine and prints tables: fan-out against the limit, sockets, commit → client, writers, visibility;
# only by name: a stalled reader, a storm of reconnects, presence, typing, pushes, many channels, idle sockets, broadcasts in,
# posts, many rows, a huge transaction, two loops, scrapes, TLS, hostile filters.
# `make bench` calls it; `loadtest/bench.sh --help` lists the flags. --quick takes about three minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v python3 >/dev/null || {
    echo "bench: python3 is missing: apt-get install python3" >&2
    exit 69
}
PYTHONDONTWRITEBYTECODE=1 exec python3 loadtest/bench "$@"
