# shellcheck shell=bash
# A machine that runs systemd from a folder, in namespaces: processes, mounts, cgroups, a network of its own with nothing
# but a loopback. For root. To be sourced.

# $1: the folder.
start_machine() {
    local hierarchy
    hierarchy=$(findmnt --noheadings --first-only --types cgroup2 --output TARGET) || {
        echo "there is no cgroup2 here, and systemd does not run without" >&2
        return 1
    }
    machine_cgroup=$hierarchy/roost-test-$$
    mkdir "$machine_cgroup"
    (
        echo "$BASHPID" >"$machine_cgroup/cgroup.procs"
        exec unshare --mount --uts --ipc --net --pid --cgroup --fork --kill-child Tests/Package/init.sh "$1"
    ) </dev/null >"$1.console" 2>&1 &
    machine_outside=$!
    until machine_init=$(pgrep --parent $machine_outside); do
        kill -0 $machine_outside 2>/dev/null || { cat "$1.console" >&2 && return 1; }
        sleep 0.05
    done
    # Only what belongs to the machine is to be in its cgroup.
    echo $machine_outside >"$hierarchy/cgroup.procs"
    within 60 "systemd" inside test -S /run/systemd/private
    within 120 "the end of the boot" has_booted
}

has_booted() {
    local state
    state=$(inside systemctl is-system-running 2>/dev/null || true)
    [[ $state == running || $state == degraded ]]
}

# Runs a command in the machine, as its root.
inside() {
    nsenter --target "$machine_init" --all -- env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM=dumb \
        DEBIAN_FRONTEND=noninteractive "$@"
}

# Runs a command of outside in the machine's network.
beside() {
    nsenter --target "$machine_init" --net -- "$@"
}

stop_machine() {
    [[ -n ${machine_outside-} ]] || return 0
    inside systemctl poweroff --no-wall >/dev/null 2>&1 || true
    within 60 "the machine to stop" is_gone "$machine_outside" || kill -KILL "$machine_outside"
    wait "$machine_outside" 2>/dev/null || true
    machine_outside=
    # Groups from the leaves on; the kernel takes a moment to see that their processes are gone.
    within 10 "empty cgroups" remove_cgroups || true
}

is_gone() { ! kill -0 "$1" 2>/dev/null; }

remove_cgroups() {
    find "$machine_cgroup" -depth -type d -exec rmdir {} \; 2>/dev/null
    [[ ! -e $machine_cgroup ]]
}

# $1: seconds; $2: what is waited for; the rest: a command that succeeds when it is there.
within() {
    local seconds=$1 what=$2 end
    shift 2
    end=$((SECONDS + seconds))
    until "$@"; do
        ((SECONDS < end)) || {
            echo "not within $seconds s: $what" >&2
            return 1
        }
        sleep 0.2
    done
}
