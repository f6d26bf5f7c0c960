#!/usr/bin/env bash
# Kills, freezes and restarts the hub and Postgres and cuts sockets while rows are written, and then holds what every
# client received against what it was entitled to; with --hubs 3, several hubs and the Redis that they share. `make stress`
# calls it; `loadtest/stress.sh --help` lists the flags.
set -euo pipefail
cd "$(dirname "$0")/.."
[[ -x .venv/bin/python ]] || {
    echo "stress: .venv is missing: scripts/setup.sh --tests" >&2
    exit 69
}
# The tests' harness has a private Postgres, the hub as a child and tokens; the benchmark's folder has the bytes of a WebSocket.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=Tests/EndToEnd:loadtest/bench exec .venv/bin/python loadtest/stress "$@"
