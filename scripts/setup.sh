#!/usr/bin/env bash
# Makes sure of what Roost is built and run with: Debian's packages, Swift. With --tests also of what the tests use:
# a browser, and a Python environment in .venv with the pinned packages of Tests/EndToEnd/requirements.txt. With
# --package also of what Debian packages are built with, with --test-package of what these are tested with, with --pictures
# of what makes docs/pictures smaller.
#
# Installs only what is missing, and needs root only then. Where all is there it takes a few hundredths of a second, so
# every `make` target may call it.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
    git make pkg-config
    libc6-dev binutils libncurses6 libsqlite3-0 libxml2 # Swift's own needs on a bare Debian; libcurl comes with its headers
    libwebsockets-dev libwebsockets-evlib-uv libuv1-dev libcap-dev libssl-dev liburing-dev # the gateway
    libcurl4-openssl-dev # the keys of jwks.url, and the connections to APNs
    libnghttp2-dev # what is spoken on these
    libjansson-dev # JSON documents: key sets, APNs' answers, the operator's page
    libhiredis-dev # several hubs as one: what Redis answers
    libpq-dev postgresql # the change feed; the server is for the demo and the tests
)
# The one of the system's compiler: Swift takes the newest that is there.
case $(. /etc/os-release && echo "${VERSION_ID:-}") in
12) packages+=(libstdc++-12-dev) ;;
13) packages+=(libstdc++-14-dev) ;;
*) packages+=(g++) ;;
esac
services=(caddy haproxy nginx-light pgbouncer redis-server) # packages that start a server of their own
requirements=Tests/EndToEnd/requirements.txt
wants_tests=false
for option in "$@"; do
    case $option in
    --tests)
        wants_tests=true
        packages+=(python3 python3-venv chromium fonts-dejavu-core)
        packages+=(openssl) # what the hub offers by TLS, in the eyes of another
        packages+=(iproute2) # networks of their own for hubs, whose packets are lost
        packages+=("${services[@]}") # what stands in front of a hub, for attacks through it, and of Postgres, where the hub refuses it; what several hubs share
        packages+=(python3-h2 python3-cryptography nghttp2-server) # the stand-in for APNs, and a second referee of the client
        ;;
    --package) packages+=(debhelper dpkg-dev patchelf python3) ;;
    --test-package) packages+=(debootstrap lintian) ;;
    --pictures) packages+=(pngquant) ;;
    *)
        echo "usage: scripts/setup.sh [--tests] [--package] [--test-package] [--pictures]" >&2
        exit 64
        ;;
    esac
done

fail() {
    echo "setup: $*" >&2
    exit 69
}

# Says nothing unless it fails.
apt() {
    local log
    mkdir -p .build/setup
    log=.build/setup/apt.log
    DEBIAN_FRONTEND=noninteractive apt-get -y -q -o Dpkg::Use-Pty=0 "$@" >"$log" 2>&1 || {
        tail -20 "$log" >&2
        fail "apt-get $1 failed; all of it is in $log"
    }
}

missing_packages() {
    local installed package
    # Fails when it does not know one of them, which is what we are asking.
    installed=" $(dpkg-query -W -f '${Package}=${db:Status-Status} ' "${packages[@]}" 2>/dev/null || true)"
    for package in "${packages[@]}"; do
        [[ $installed == *" $package=installed "* ]] || echo "$package"
    done
}

# What an installation changed for its own time.
undo=()
undo_all() {
    local step
    for step in "${undo[@]}"; do eval "$step"; done
    undo=()
}
trap undo_all EXIT

# A machine that never had a Postgres gets the programs, but no cluster of its own that starts by itself on port 5432:
# the demo and the tests bring theirs.
without_a_cluster() {
    local settings=/etc/postgresql-common/createcluster.conf
    local line="create_main_cluster = false # for the time of an installation by Roost's scripts/setup.sh"
    apt install --no-install-recommends postgresql-common
    undo+=("sed -i '/installation by Roost/d' $settings")
    echo "$line" >>"$settings"
}

# The tests start proxies of their own: no service is to take port 80, neither now nor after the next boot. What starts
# a service at its installation asks policy-rc.d; a machine may have one already.
without_services() {
    local policy=/usr/sbin/policy-rc.d service
    if [[ -e $policy ]]; then
        mv "$policy" "$policy.before-roost"
        undo+=("mv $policy.before-roost $policy")
    else
        undo+=("rm -f $policy")
    fi
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    for service; do undo+=("update-rc.d ${service%-light} disable >/dev/null 2>&1 || true"); done
}

install_packages() {
    local missing=("$@") package started=()
    [[ $(id -u) == 0 ]] || fail "run this once as root, then start over: apt-get install ${missing[*]}"
    echo "setup: installing ${missing[*]}"
    apt update
    [[ " ${missing[*]} " != *" postgresql "* ]] || without_a_cluster
    for package in "${services[@]}"; do
        [[ " ${missing[*]} " != *" $package "* ]] || started+=("$package")
    done
    [[ ${#started[@]} == 0 ]] || without_services "${started[@]}"
    apt install --no-install-recommends "${missing[@]}"
    undo_all
}

check_swift() {
    local where stamp answer version
    where=$(command -v swift) ||
        fail "there is no swift in PATH: install Swift 6.3 for Debian 12 from swift.org and add its usr/bin to PATH."
    # Asking for the version takes longer than all the rest; once per toolchain is enough.
    stamp=.build/setup/swift-$(cksum <<<"$where $(stat -L -c %Y "$where") $(cksum <scripts/setup.sh)" | tr ' ' -)
    [[ -e $stamp ]] && return
    answer=$(swift --version 2>&1) ||
        fail "$where does not run; install the packages that swift.org lists for it: $(head -1 <<<"$answer")"
    version=$(sed -nE 's/.*Swift version ([0-9]+\.[0-9]+).*/\1/p' <<<"$answer")
    [[ $(printf '%s\n' 6.3 "$version" | sort -V | head -1) == 6.3 ]] ||
        fail "$where is $(head -1 <<<"$answer"); Roost needs Swift 6.3 or later, from swift.org."
    mkdir -p .build/setup
    touch "$stamp"
}

install_python() {
    local stamp
    stamp=.venv/roost-$(cksum <"$requirements" | tr ' ' -)
    [[ -e $stamp ]] && return
    echo "setup: making .venv with $requirements"
    rm -rf .venv
    # Debian's own, which python3-venv belongs to, whatever else is in PATH.
    /usr/bin/python3 -m venv .venv
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement "$requirements"
    touch "$stamp"
}

command -v dpkg-query >/dev/null ||
    fail "this is made for Debian; elsewhere install libwebsockets 4.1 with libuv, libpq and Postgres, then swift build."
mapfile -t missing < <(missing_packages)
[[ ${#missing[@]} == 0 ]] || install_packages "${missing[@]}"
check_swift
if $wants_tests; then install_python; fi
