#!/usr/bin/env bash
# The Swift compiler of a build for tests (SWIFT_EXEC, which scripts/build-quick.sh sets): modules of other packages are not
# optimized, nor compiled twice for their interface. Package.swift decides that for each module of Roost's own, and cannot for a
# dependency's. Most of these modules are built only because SwiftPM builds all of a package.
set -euo pipefail

swiftc=$(dirname "$(readlink -f "$(command -v swift)")")/swiftc
for argument; do
    # The file with the paths of a module's sources.
    if [[ $argument == @*/sources ]] && grep -q -m 1 /checkouts/ "${argument#@}"; then
        exec "$swiftc" "$@" -Onone -no-emit-module-separately-wmo
    fi
done
exec "$swiftc" "$@"
