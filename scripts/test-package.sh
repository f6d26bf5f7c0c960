#!/usr/bin/env bash
# Installs the Debian packages in a clean Debian 12 that boots its own systemd, configures the hub as an administrator would,
# serves clients, upgrades while rows are written, removes and purges. Ends with 0 if all of it was as it should be.
# `make test-package` calls it, as root; its logs are left in .build/package/test.
#
#   --binaries FOLDER   packs roost and roost-load from there instead of building them
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=Tests/Package/machine.sh
. Tests/Package/machine.sh

case "$# ${1-}" in
"0 " | "2 --binaries") ;;
*)
    echo "usage: scripts/test-package.sh [--binaries FOLDER]" >&2
    exit 64
    ;;
esac
[[ $(id -u) == 0 ]] || { echo "test-package: run this as root: it makes namespaces and a Debian of its own" >&2 && exit 69; }
# How small a package is does not matter here, and how soon it is made does.
export PYTHONDONTWRITEBYTECODE=1 DPKG_DEB_COMPRESSOR_LEVEL=1
packages=.build/package
folder=$PWD/$packages/test
root=$folder/root
secret=the-test-of-the-package-signs-with-this
table=package_test
mkdir -p "$folder"

say() { printf '\n== %s\n' "$*"; }

fail() {
    printf '\nFAILED: %s\n' "$*"
    inside journalctl --unit roost --no-pager --lines 30 2>/dev/null || true
    exit 1
}

# $1: what is claimed; the rest: a command that proves it.
check() {
    local claim=$1
    shift
    "$@" >"$folder/check" 2>&1 || {
        tail -n 30 "$folder/check"
        fail "$claim"
    }
    echo "ok  $claim"
}

refuses() { ! "$@"; }
unit_is_verified() { refuses grep roost <(inside systemd-analyze verify --man=no /lib/systemd/system/roost.service 2>&1); }

property() { inside systemctl show --property "$1" --value roost.service; }
is_property() { [[ $(property "$1") == "$2" ]]; }
status_is() { [[ $(property StatusText) == $1 ]]; }

# As the administrator's shell would, by the man page.
roost() { inside runuser -u roost -- sh -c 'set -a; . /etc/roost/environment; exec roost "$@"' roost "$@"; }
database() { inside runuser -u "${2-postgres}" -- psql -X -q -v ON_ERROR_STOP=1 -d app -c "$1"; }
metric() { beside python3 -c "
import sys, urllib.request
page = urllib.request.urlopen('http://127.0.0.1:4001/metrics', timeout=5).read().decode()
print(next(line.split()[1] for line in page.splitlines() if line.startswith(sys.argv[1] + ' ')))" "$1"; }

sends_by_ring() { [[ $(metric roost_send_batches) -ge 1 ]]; }

# Names of files, without what every installation touches.
list_files() {
    inside find / -xdev -not -type d \
        -not -path '/var/cache/*' -not -path '/var/log/*' -not -path '/var/lib/apt/*' -not -path '/var/lib/dpkg/*' \
        -not -path '/var/lib/postgresql/*' -not -path '/root/*' -not -path '/tmp/*' -not -path '/var/tmp/*' | sort >"$folder/$1"
}

# --- The machine

# From where this machine installs, too: its mirror and apt's own settings. Kept for the next time, as it takes a while.
make_base() {
    local mirror
    mirror=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' | awk '$1 == "bookworm" {print $2; exit}')
    [[ -n $mirror ]] || { echo "test-package: apt knows no mirror of bookworm: add one to its sources" >&2 && exit 69; }
    debootstrap --variant=minbase --include=systemd-sysv,dbus,ca-certificates bookworm "$root" "$mirror" >"$folder/base.log"
    apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) main' 'Created-By: Packages' | grep ' bookworm' | sort -u \
        >"$root/etc/apt/sources.list"
    apt-config dump | grep -E '^Acquire::(Check|http|https|Retries)' >"$root/etc/apt/apt.conf.d/90machine" || true
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
    chmod +x "$root/usr/sbin/policy-rc.d"
    in_base apt-get -q update
    in_base apt-get -q -y dist-upgrade
    in_base apt-get -q -y install --no-install-recommends postgresql
    rm "$root/usr/sbin/policy-rc.d"
    tar -C "$root" -cf "$folder/base.tar.new" .
    mv "$folder/base.tar.new" "$folder/base.tar"
}

in_base() {
    unshare --mount -- bash -c 'mount -t proc proc "$0/proc" && exec chroot "$0" env DEBIAN_FRONTEND=noninteractive LANG=C.UTF-8 "$@"' \
        "$root" "$@" >>"$folder/base.log" 2>&1
}

make_root() {
    rm -rf "$root"
    mkdir -p "$root"
    # dpkg waits for the disk after every file.
    if [[ $(scripts/scratch.sh) == /dev/shm ]]; then mount -t tmpfs -o mode=755 roost-test "$root"; fi
    if [[ -e $folder/base.tar ]]; then tar -C "$root" -xf "$folder/base.tar"; else make_base; fi
    cp "$old" "$old_load" "$new" "$root/root/"
    # The machine has no network; what its apt will want is in its cache.
    in_base apt-get -q -y install --no-install-recommends --download-only "/root/${old##*/}" "/root/${old_load##*/}"
}

cleanup() {
    [[ -z ${witness-} ]] || kill "$witness" 2>/dev/null || true
    stop_machine
    if mountpoint -q "$root"; then umount "$root"; fi
}

# --- The packages

say "packages"
scripts/package.sh "$@" >"$folder/package.log" || { cat "$folder/package.log" && fail "the package is built"; }
version=$("$packages/stage/bin/roost" --version | cut -d" " -f1)
architecture=$(dpkg --print-architecture)
binaries=$folder/binaries
rm -rf "$binaries"
cp -R "$packages/stage/bin" "$binaries"
# The next version is the same tree under a higher number.
scripts/package.sh --binaries "$binaries" --version "$version+next" >>"$folder/package.log"
old=$packages/roost_${version}_$architecture.deb
old_load=$packages/roost-load_${version}_$architecture.deb
new=$packages/roost_${version}+next_$architecture.deb
dpkg-deb --info "$old" control | grep -E '^(Version|Depends|Installed-Size)'
ls -l "$old" "$old_load" "$new"
check "lintian finds nothing to complain of" lintian --fail-on error,warning "$old" "$old_load"
check "the program names its commit" grep -qE "^$version \((commit [0-9a-f]{12}(\+changes)?|development build)\)$" <("$packages/stage/bin/roost" --version)

say "a release"
scripts/release.sh --any --binaries "$binaries" --output "$folder/release" >"$folder/release.log" 2>&1 ||
    { tail -n 20 "$folder/release.log" && fail "the release is made"; }
check "the sums are those of the files" sh -c "cd '$folder/release' && sha256sum --quiet --check SHA256SUMS && test \$(wc -l <SHA256SUMS) = 3"
tar -C "$folder" -xzf "$folder"/release/roost-"$version"-linux-"$architecture".tar.gz
check "the program of the archive runs" "$folder/roost-$version-linux-$architecture/bin/roost" --version
(cd "$folder/release" && sha256sum -- *.tar.gz) >"$folder/once"
scripts/release.sh --any --binaries "$binaries" --output "$folder/release" >>"$folder/release.log" 2>&1
check "the same tree makes the same archive" sh -c "cd '$folder/release' && sha256sum --quiet --check '$folder/once'"

say "a clean Debian 12"
trap cleanup EXIT
make_root
start_machine "$root"
inside sh -c '. /etc/os-release; echo "$PRETTY_NAME, $(systemctl --version | head -1), $(dpkg -l | grep -c ^ii) packages"'
inside systemctl --failed --no-legend --plain
within 30 "Postgres" inside runuser -u postgres -- psql -X -q -c "select 1" >/dev/null
list_files before

say "installation"
inside apt-get -q -y install --no-install-recommends "/root/${old##*/}" "/root/${old_load##*/}" >"$folder/install.log" 2>&1 ||
    { tail -n 20 "$folder/install.log" && fail "the package is installed"; }
grep "not started yet" "$folder/install.log" || fail "an installation says what is left to do"
check "the programs run with Debian's libraries alone" inside sh -c '! ldd /usr/bin/roost /usr/bin/roost-load | grep -E "not found|swift|/opt|/usr/local"'
check "the service is enabled" inside systemctl is-enabled roost
check "the service is not started" is_property ActiveState inactive
check "secrets are readable by root and roost alone" test "$(inside stat -c '%a %U:%G' /etc/roost/environment)" = "640 root:roost"
check "started without a configuration it fails" refuses inside systemctl start roost
check "with status 78" is_property ExecMainStatus 78
check "and is not tried again" is_property NRestarts 0
inside systemctl reset-failed roost
check "completions of bash" inside bash -c '. /usr/share/bash-completion/completions/roost; complete -p roost'
check "systemd has nothing to say against the unit" unit_is_verified
inside systemd-analyze security --no-pager roost.service | tail -n 1

say "configuration"
inside runuser -u postgres -- createdb app
database "create role roost login; create role writer login password 'writer';
    create role anon nologin; create role authenticated nologin; create role service_role nologin bypassrls;
    grant anon, authenticated, service_role to roost; grant create on database app to roost;
    grant create on schema public to roost"
inside tee -a /etc/roost/environment >/dev/null <<END
ROOST_DATABASE_URL='postgres:///app?host=/var/run/postgresql'
ROOST_JWT_SECRET='$secret'
END
inside sh -c 'echo "# The administrator was here." >>/etc/roost/roost.yaml'
roost migrate
database "create table public.$table (id bigint primary key); create table public.roost_load (conversation_id uuid, stamp text);
    grant select on public.$table, public.roost_load to authenticated; grant insert on public.$table to writer" roost
for name in "$table" roost_load; do roost watch "public.$name"; done
check "the service starts" inside systemctl start roost
inside systemctl status --no-pager --lines 3 roost
check "it is active" is_property ActiveState active
check "its status says how it stands" status_is "row changes flow"
check "it sends by io_uring under the unit's filter of system calls" within 5 "the figures" sends_by_ring
# What this machine itself may is the most that systemd can give in it.
files=$(ulimit -Hn)
[[ $files != unlimited && $files -lt 65536 ]] || files=65536
check "it may open $files files" test "$(metric process_max_fds)" = "$files"
roost doctor || fail "roost doctor is green"

say "clients"
token=$(roost token --role authenticated --sub tester)
inside runuser -u roost -- env ROOST_TOKEN="$token" roost-load changes --sockets 200 --conversations 20 --rate 100 --duration 5 \
    --database 'postgres:///app?host=/var/run/postgresql' || fail "roost-load changes"
inside env ROOST_TOKEN="$token" roost-load fanout --sockets 500 --rate 20 --duration 3 || fail "roost-load fanout"

say "upgrade while rows are written"
: >"$folder/witness.log"
# Not by `beside`, whose shell would be the process that is told to end.
PYTHONPATH=Tests/EndToEnd nsenter --target "$machine_init" --net -- .venv/bin/python Tests/Package/witness.py ws://127.0.0.1:4000/realtime/v1 "$secret" \
    postgres://writer:writer@127.0.0.1/app "$table" >"$folder/witness.log" 2>&1 &
witness=$!
within 30 "the witnesses" grep -q joined "$folder/witness.log"
pid=$(property MainPID)
began=$SECONDS
inside apt-get -q -y install --no-install-recommends "/root/${new##*/}" >"$folder/upgrade.log" 2>&1 ||
    { tail -n 20 "$folder/upgrade.log" && fail "the upgrade"; }
echo "apt-get took $((SECONDS - began)) s"
check "the new version is there" test "$(inside dpkg-query -W -f '${Version}' roost)" = "$version+next"
check "the service is active" is_property ActiveState active
check "it is another process" test "$(property MainPID)" != "$pid"
check "the old one ended by itself" is_property NRestarts 0
check "the administrator's file was kept" inside grep -q "administrator was here" /etc/roost/roost.yaml
sleep 3 # of rows on the new version
kill -TERM $witness
wait $witness || { cat "$folder/witness.log" && fail "nothing is lost"; }
witness=
tail -n 1 "$folder/witness.log"
roost doctor >/dev/null || fail "roost doctor is green"

say "what systemd does"
pid=$(property MainPID)
inside mkdir -p /etc/systemd/system/roost.service.d
inside sh -c 'printf "[Service]\nWatchdogSec=5\n" >/etc/systemd/system/roost.service.d/test.conf; systemctl daemon-reload; systemctl restart roost'
inside sh -c 'kill -STOP "$(systemctl show --property MainPID --value roost)"'
check "a hub that hangs is started again" within 20 "another process" is_property NRestarts 1
check "and serves" within 10 "the status" status_is "row changes flow"
inside sh -c 'rm -r /etc/systemd/system/roost.service.d; systemctl daemon-reload; systemctl restart roost'
inside systemctl stop postgresql@15-main
began=$SECONDS
check "a restart does not wait for a database that is away" inside systemctl restart roost
echo "it took $((SECONDS - began)) s, and the status is: $(property StatusText)"
check "the status says what is missing" status_is "not ready: *"
inside systemctl start postgresql@15-main
check "it goes on when the database is back" within 30 "the status" status_is "row changes flow"

say "removal"
inside apt-get -q -y remove roost roost-load >"$folder/remove.log" 2>&1 || { tail -n 20 "$folder/remove.log" && fail "the removal"; }
check "the hub was stopped" refuses inside sh -c 'grep -qx roost /proc/[0-9]*/comm'
inside apt-get -q -y autoremove >>"$folder/remove.log" 2>&1
list_files removed
echo "left by the removal:"
comm -13 "$folder/before" "$folder/removed"
inside apt-get -q -y install --no-install-recommends "/root/${new##*/}" >"$folder/again.log" 2>&1 ||
    { tail -n 20 "$folder/again.log" && fail "the package is installed again"; }
check "installed again it runs, configured as it was" is_property ActiveState active
inside apt-get -q -y purge roost >"$folder/purge.log" 2>&1
inside apt-get -q -y autoremove --purge >>"$folder/purge.log" 2>&1
list_files purged
echo "left by the purge:"
comm -13 "$folder/before" "$folder/purged"
check "a purge leaves no file of roost's" refuses grep roost <(comm -13 "$folder/before" "$folder/purged")
check "the rows are there" database "select 1 / count(*) from public.$table"
check "and so is what the hub keeps in the database" database "select count(*) from roost.change"
say "all is well"
