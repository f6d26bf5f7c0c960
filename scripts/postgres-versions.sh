#!/usr/bin/env bash
# Makes sure of the Postgres servers that Tests/Versions/servers.txt names, in .build/postgres, and prints one line for
# each, and for each of Debian's: its major version and the folder of its programs, the oldest first.
#
# They are unpacked and not installed: no service starts, and it takes no rights.
set -euo pipefail
cd "$(dirname "$0")/.."

list=Tests/Versions/servers.txt
home=$PWD/.build/postgres

fail() {
    echo "postgres-versions: $*" >&2
    exit 69
}

# Every file is what it was when it was chosen: pip compares the hash.
unpack() { # version package python hash
    local new=$home/$1.new
    rm -rf "$home/$1" "$new"
    mkdir -p "$home"
    echo "postgres-versions: fetching Postgres $1 ($2)" >&2
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --only-binary :all: \
        --python-version "$3" --ignore-requires-python --target "$new" --require-hashes \
        --requirement <(echo "$2 --hash=sha256:$4") >"$home/$1.log" 2>&1 ||
        fail "Postgres $1 could not be fetched; all that pip said is in $home/$1.log"
    # They run as the user postgres.
    chmod -R a+rX "$new"
    mv "$new" "$home/$1"
}

servers() {
    local version package python hash folder bin said
    while read -r version package python hash folder; do
        [[ -d $home/$version ]] || unpack "$version" "$package" "$python" "$hash"
        bin=$home/$version/$folder
        said=$("$bin/initdb" --version) || fail "Postgres $version does not run here: $bin/initdb"
        [[ $said == *" $version" ]] || fail "$bin is not Postgres $version but: $said"
        echo "${version%%.*} $bin"
    done < <(grep -v '^#' "$list")
    for bin in /usr/lib/postgresql/*/bin; do
        [[ -x $bin/initdb ]] && echo "$(basename "$(dirname "$bin")") $bin"
    done
}

[[ $(uname -m) == x86_64 ]] || fail "the servers of $list are built for x86_64, and this is $(uname -m)"
servers | sort -n -u -k 1,1
