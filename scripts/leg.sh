#!/usr/bin/env bash
# Runs a command as one leg of the tests, and says how long it took: scripts/leg.sh "the change feed" command arguments…
set -euo pipefail

name=$1
shift
echo "== $name"
began=$EPOCHREALTIME
status=0
"$@" || status=$?
ended=$EPOCHREALTIME
echo "== $name: $(((${ended/./} - ${began/./}) / 1000000)) s$([[ $status == 0 ]] || echo ", FAILED")"
exit "$status"
