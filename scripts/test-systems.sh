#!/usr/bin/env bash
# Builds Roost from source and runs its tests on other Debians than this machine's, as a newcomer there would: scripts/setup.sh, then
# make. `make test-systems` calls it, as root.
#
#   scripts/test-systems.sh                          trixie (Debian 13)
#   scripts/test-systems.sh bookworm trixie sid      these
#   COMMAND="make test-swift" scripts/test-systems.sh trixie     another command than `make test`
#
# Each system is a root of its own in .build/systems, made by debootstrap from the mirror that this machine installs from, and kept for
# the next time. It sees this machine's Swift toolchain, its network and its memory, and of its files only a clone of this checkout,
# HEAD, in /root/roost. The toolchain is the one for Debian 12; swift.org's for others differs in nothing that Roost is built with.
set -euo pipefail
cd "$(dirname "$0")/.."

[[ $(id -u) == 0 ]] || { echo "test-systems: run this as root: it makes Debians of its own" >&2 && exit 69; }
command -v debootstrap >/dev/null || { echo "test-systems: run \`scripts/setup.sh --test-package\` first, for debootstrap" >&2 && exit 69; }
suites=("$@")
[[ $# -gt 0 ]] || suites=(trixie)
command=${COMMAND:-ROOST_BUILD=quick make test}
toolchain=$(dirname "$(dirname "$(readlink -f "$(command -v swift)")")")
# Where git finds packages, if this machine has copies of them.
mapfile -t copies < <(git config --get-regexp '^url\..*\.insteadof$' | sed -E 's/^url\.(.*)\.insteadof .*/\1/' | grep '^/' | sort -u)
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | head -n 1)

# $1: root; the rest: a command in it, which ends with all that it started.
inside() {
    local root=$1
    shift
    # shellcheck disable=SC2016
    unshare --mount --pid --fork --kill-child -- bash -c '
        root=$1 toolchain=$2
        shift 2
        mount -t proc proc "$root/proc"
        mount --rbind /dev "$root/dev"
        mount --rbind /sys "$root/sys"
        while [[ $1 != -- ]]; do
            mkdir -p "$root$1"
            mount --bind -o ro "$1" "$root$1"
            shift
        done
        shift
        cp /etc/resolv.conf "$root/etc/resolv.conf"
        # Whom this machine trusts to be a registry.
        cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
        [[ ! -e /etc/gitconfig ]] || cp /etc/gitconfig "$root/etc/gitconfig"
        exec chroot "$root" env -i HOME=/root LANG=C.UTF-8 TERM=dumb DEBIAN_FRONTEND=noninteractive \
            PIP_CERT=/etc/ssl/certs/ca-certificates.crt PIP_DEFAULT_TIMEOUT=180 \
            PATH="$toolchain/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" "$@"' \
        bash "$root" "$toolchain" "$(dirname "$toolchain")" "${copies[@]}" -- "$@"
}

failed=0
for suite in "${suites[@]}"; do
    folder=$PWD/.build/systems/$suite
    root=$folder/root
    if [[ ! -e $folder/made ]]; then
        rm -rf "$root"
        mkdir -p "$root"
        debootstrap --variant=minbase --include=ca-certificates,git,make "$suite" "$root" "$mirror" >"$folder/made.log"
        apt-config dump | grep -E '^Acquire::(Check|http|https|Retries)' >"$root/etc/apt/apt.conf.d/90machine" || true
        # dpkg waits for the disk after every file, which nobody needs here.
        echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe"
        touch "$folder/made"
    fi
    # What was built there the last time is kept.
    if [[ -e $root/root/roost/.git ]]; then
        git -C "$root/root/roost" fetch -q "$PWD" HEAD
        git -C "$root/root/roost" checkout -q --detach FETCH_HEAD
    else
        git clone -q "$PWD" "$root/root/roost"
    fi
    outcome=passed
    inside "$root" bash -c "git config --global --add safe.directory '*'; cd /root/roost && scripts/setup.sh --tests && $command" \
        >"$folder/log" 2>&1 || { outcome="failed, see .build/systems/$suite/log" failed=1; }
    echo "== $suite: $(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' "$root/etc/os-release"): $outcome"
    grep -hE '^== |tests? (in|with)|passed|FAILED' "$folder/log" | tail -n 20
done
exit "$failed"
