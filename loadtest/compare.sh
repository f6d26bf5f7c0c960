#!/usr/bin/env bash
# Compares this build of Roost with the limit and with Debian's packages of the same trade, and prints tables.
# `make compare` calls it; `loadtest/compare.sh --help` lists the flags. --quick takes about five minutes.
#
# Installs what it measures only where it is missing, only as root, and starts none of it as a service.
set -euo pipefail
cd "$(dirname "$0")/.."
export PYTHONDONTWRITEBYTECODE=1
# Servers are there, which is not in the PATH of everybody.
export PATH=$PATH:/usr/sbin

fail() {
    echo "compare: $*" >&2
    exit 69
}

# Neither while it is installed nor when the machine starts again: these are servers that listen on every address.
without_services() {
    local policy=/usr/sbin/policy-rc.d service status=0 before=() is_ours=false
    local services=(nginx nats-server mosquitto)
    if [[ ! -e $policy ]]; then
        is_ours=true
        # shellcheck disable=SC2064 # the value of now
        trap "rm -f $policy" EXIT
        printf '#!/bin/sh\nexit 101\n' >$policy
        chmod +x $policy
    fi
    for service in "${services[@]}"; do
        [[ ! -e /lib/systemd/system/$service.service ]] || before+=("$service")
    done
    "$@" || status=$?
    if $is_ours; then
        rm -f $policy
        trap - EXIT
    fi
    [[ -d /run/systemd/system ]] || return $status
    for service in "${services[@]}"; do
        [[ " ${before[*]} " == *" $service "* || ! -e /lib/systemd/system/$service.service ]] ||
            systemctl disable --quiet "$service"
    done
    return $status
}

install_packages() {
    local log=.build/compare/apt.log
    echo "compare: installing $*"
    mkdir -p .build/compare
    export DEBIAN_FRONTEND=noninteractive
    { apt-get -q update && without_services apt-get -y -q install --no-install-recommends "$@"; } >"$log" 2>&1 || {
        tail -5 "$log" >&2
        echo "compare: not all of it could be installed (all of it is in $log); what is missing is left out" >&2
    }
}

command -v python3 >/dev/null || fail "python3 is missing: apt-get install python3"
# Wrong flags and --help are answered there.
missing=$(python3 loadtest/compare --list-missing-packages "$@") || exit $?
if [[ $missing == usage:* ]]; then
    echo "$missing"
    exit 0
fi
if [[ -n $missing ]]; then
    read -ra packages <<<"$missing"
    if [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
        install_packages "${packages[@]}"
    else
        echo "compare: what needs these is left out; as root: apt-get install ${packages[*]}" >&2
    fi
fi
exec python3 loadtest/compare "$@"
