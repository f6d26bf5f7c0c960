#!/usr/bin/env bash
# `swift build` of a build for tests (make ROOST_BUILD=quick), by a compiler that does not optimize modules of other packages
# (scripts/swiftc.sh): scripts/build-quick.sh --build-tests and other options.
set -euo pipefail
cd "$(dirname "$0")/.."

# SwiftPM looks for a library of the toolchain beside the compiler that SWIFT_EXEC names.
shim=$PWD/.build/quick
toolchain=$(dirname "$(dirname "$(readlink -f "$(command -v swift)")")")
mkdir -p "$shim/bin"
ln -sfn "$toolchain/lib" "$shim/lib"
cmp -s scripts/swiftc.sh "$shim/bin/swiftc" || install -m 755 scripts/swiftc.sh "$shim/bin/swiftc"
SWIFT_EXEC=$shim/bin/swiftc exec swift build -c release -debug-info-format none "$@"
