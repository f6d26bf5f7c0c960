#!/usr/bin/env bash
# Tries the archive of a release on bare Debians: unpacks it, and has it serve a client a row of a Postgres outside. Ends with 0 if all of
# it was as it should be. `make test-release` calls it, as root.
#
#   scripts/test-release.sh                        Debian 12, 13 and sid
#   scripts/test-release.sh trixie                 these
#   --archive FILE      this archive, instead of one made from this tree
#   --binaries FOLDER   one made of roost and roost-load from there
#
# Each system is a root in .build/bare, made by debootstrap from the mirror that this machine installs from, with ca-certificates and
# nothing else, and kept for the next time. It sees this machine's network, and of its files none.
set -euo pipefail
cd "$(dirname "$0")/.."

archive=
options=(--any)
suites=()
while [[ $# -gt 0 ]]; do
    case $1 in
    --archive) archive=$(realpath "${2?}") && shift 2 ;;
    --binaries) options+=(--binaries "${2?}") && shift 2 ;;
    -*) echo "usage: scripts/test-release.sh [--archive FILE] [--binaries FOLDER] [SUITE…]" >&2 && exit 64 ;;
    *) suites+=("$1") && shift ;;
    esac
done
[[ ${#suites[@]} -gt 0 ]] || suites=(bookworm trixie sid)
[[ $(id -u) == 0 ]] || { echo "test-release: run this as root: it makes Debians of its own" >&2 && exit 69; }

# shellcheck source=Tests/Package/bare.sh
. Tests/Package/bare.sh
folder=$PWD/.build/bare
secret=the-test-of-the-archive-signs-with-this
mkdir -p "$folder"
if [[ -z $archive ]]; then
    scripts/release.sh "${options[@]}" --output "$folder/release" >"$folder/release.log" 2>&1 ||
        { tail -n 20 "$folder/release.log" && fail "the release is made"; }
    archive=$(ls "$folder"/release/roost-*.tar.gz)
fi
trap leave EXIT
start_postgres
start_keys
for suite in "${suites[@]}"; do
    root=$folder/$suite/root
    make_root "$suite"
    say "$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' "$root/etc/os-release"), glibc $(inside ldd --version | sed -n '1s/.* //p')"
    check "none of Roost's libraries is there" refuses inside sh -c 'ls /usr/lib/*/libwebsockets* /usr/lib/*/libpq* /usr/lib/*/libcurl*'

    rm -rf "$root"/opt/roost-*
    began=$(now)
    tar -C "$root/opt" -xzf "$archive"
    program=/opt/$(ls "$root/opt")/bin/roost
    echo "unpacked in $(since "$began") s: $(du -sh "$root/opt" | cut -f1)"
    check "the system gives it glibc's libraries alone" is_self_contained "$program"
    check "roost --version" inside "$program" --version
    check "roost-load --help" inside "$program-load" --help
    check "Postgres is missed in a sentence" misses_postgres

    database=$suite
    psql_outside postgres "create database $database"
    psql_outside "$database" "create table public.notes (id bigint generated always as identity primary key)"
    export ROOST_DATABASE_URL="postgres://postgres@127.0.0.1:$postgres_port/$database" ROOST_JWT_SECRET=$secret
    check "roost migrate" inside "$program" migrate
    check "roost init" inside "$program" init public.notes --yes
    check "roost watch" inside "$program" watch public.notes
    check "roost doctor" inside "$program" doctor
    start_hub "$program"
    row=$(python Tests/Package/one_row.py "ws://127.0.0.1:$hub_port/realtime/v1" "$(inside "$program" token --role authenticated --sub tester)" \
        "$ROOST_DATABASE_URL" notes) || { cat "$folder/hub.log" && fail "a client hears a row"; }
    echo "ok  a client hears a row, $row s after its INSERT began, and $(since "$began") s after the archive was there"
    check "keys come by https, trusted by the system's certificates" within 60 grep "The keys of jwks.url were read" "$folder/hub.log"
    stop_hub
done
say "all is well"
