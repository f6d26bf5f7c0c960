#!/usr/bin/env bash
# 10,000 reminders that fall due over two hubs, which are killed by turns while rows are moved, deleted and done: each is pushed once, at
# its time. Prints how late they came. `loadtest/timed.sh --help` lists the flags; docs/push.md has figures.
set -euo pipefail
cd "$(dirname "$0")/.."
[[ -x .venv/bin/python ]] || {
    echo "timed: .venv is missing: scripts/setup.sh --tests" >&2
    exit 69
}
cd Tests/EndToEnd
PYTHONDONTWRITEBYTECODE=1 exec ../../.venv/bin/python -m support.timed_rows "$@"
