#!/usr/bin/env bash
# Prints the folder of `prometheus` and `promtool`: where they are installed, or else in .build/prometheus, where
# Debian's package is unpacked and not installed. So no service starts, and it takes no rights.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    echo "prometheus: $*" >&2
    exit 69
}

installed=$(command -v promtool || true)
if [[ -n $installed ]] && command -v prometheus >/dev/null; then
    dirname "$installed"
    exit
fi

folder=$PWD/.build/prometheus
if [[ ! -x $folder/usr/bin/promtool ]]; then
    command -v apt-get >/dev/null || fail "promtool is missing: install Prometheus and add it to PATH"
    rm -rf "$folder" "$folder.new"
    mkdir -p "$folder.new"
    log=$folder.log
    # Without lists of packages, or with old ones, the first download fails.
    (
        cd "$folder.new"
        apt-get -q download prometheus || { apt-get -q update && apt-get -q download prometheus; }
    ) >"$log" 2>&1 || fail "apt-get download prometheus failed; all of it is in $log"
    dpkg-deb --extract "$folder.new"/prometheus_*.deb "$folder.new"
    rm "$folder.new"/prometheus_*.deb
    mv "$folder.new" "$folder"
fi
echo "$folder/usr/bin"
