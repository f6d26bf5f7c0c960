# shellcheck shell=bash
# What scripts/test-release.sh has around the archive: bare Debians, a Postgres outside of them, keys by https. For root. To be sourced,
# with `folder` set to where all of it is kept.

say() { printf '\n== %s\n' "$*"; }

fail() {
    printf '\nFAILED: %s\n' "$*"
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
now() { date +%s.%N; }
since() { python3 -c "import sys, time; print(f'{time.time() - float(sys.argv[1]):.2f}')" "$1"; }
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
python() { PYTHONDONTWRITEBYTECODE=1 .venv/bin/python "$@"; }

# $1: seconds; the rest: a command that is to succeed by then.
within() {
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        ((SECONDS < end)) || return 1
        sleep 0.1
    done
}

# --- The system

# $1: the suite; from where this machine installs.
make_root() {
    local mirror
    [[ ! -e $folder/$1/made ]] || return 0
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | head -n 1)
    rm -rf "${folder:?}/$1/root"
    mkdir -p "$folder/$1/root"
    debootstrap --variant=minbase --include=ca-certificates "$1" "$folder/$1/root" "$mirror" >"$folder/$1/made.log" ||
        fail "a root of $1 is made; see $folder/$1/made.log"
    touch "$folder/$1/made"
}

# Runs a command in $root, with this machine's network; what it started ends with it.
inside() {
    # shellcheck disable=SC2016
    unshare --mount --pid --fork --kill-child -- bash -c '
        root=$1
        mount -t proc proc "$root/proc"
        mount --bind /dev "$root/dev"
        # The hub finds the system'"'"'s certificates where Debian has them, and among them that of the keys of this test.
        mount --bind "$2" "$root/etc/ssl/certs/ca-certificates.crt"
        shift 2
        exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM=dumb \
            ROOST_DATABASE_URL="${ROOST_DATABASE_URL-}" ROOST_JWT_SECRET="${ROOST_JWT_SECRET-}" ROOST_JWKS_URL="${ROOST_JWKS_URL-}" \
            ROOST_HTTP_PORT="${hub_port-4000}" ROOST_OPS_PORT="${ops_port-4001}" ROOST_DRAIN_SECONDS=0 "$@"' \
        bash "$root" "$folder/keys/certificates.crt" "$@"
}

# $1: a program in the root. Of the libraries that it and its own load, those not beside it are glibc's, which are one package's.
is_self_contained() {
    local library
    inside ldd "$1" >"$folder/libraries"
    grep -q "not found" "$folder/libraries" && cat "$folder/libraries" && return 1
    grep -q " => ${1%/bin/*}/bin/../lib/libwebsockets" "$folder/libraries"
    sed -nE 's/.* => (\S+) \(.*/\1/p' "$folder/libraries" | { grep -v "^${1%/bin/*}/" || true; } | while read -r library; do
        # Debian has moved /lib to /usr/lib, and dpkg knows some files by the old name.
        [[ $(inside sh -c "dpkg-query --search '${library#/usr}' '/usr${library#/usr}' 2>/dev/null") == libc6:* ]] || { echo "$library" && return 1; }
    done
}

# `roost demo` has no Postgres here to start.
misses_postgres() {
    inside "$program" demo --http-port "$(free_port)" --ops-port 0 >"$folder/demo" 2>&1 && return 1
    cat "$folder/demo"
    grep -q "apt-get install postgresql" "$folder/demo"
}

# --- What the hub is for

start_postgres() {
    local programs data=$folder/postgres
    programs=$(find /usr/lib/postgresql -maxdepth 2 -name bin | sort -V | tail -n 1)
    postgres_port=$(free_port)
    rm -rf "$data"
    install -d -o postgres "$data"
    postgres_control=(runuser -u postgres -- "$programs/pg_ctl" --pgdata "$data/data" --wait --silent --log "$data/log")
    runuser -u postgres -- "$programs/initdb" --pgdata "$data/data" --username postgres --auth trust --no-sync >"$folder/initdb.log"
    "${postgres_control[@]}" --options "-p $postgres_port -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off" start
}

psql_outside() { psql --no-psqlrc --quiet --host 127.0.0.1 --port "$postgres_port" --username postgres --set ON_ERROR_STOP=1 --command "$2" "$1"; }

# A key set by https, from a server whose certificate is trusted in the roots, and nowhere else.
start_keys() {
    keys_port=$(free_port)
    mkdir -p "$folder/keys"
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
        -keyout "$folder/keys/key.pem" -out "$folder/keys/certificate.pem" 2>/dev/null
    cat /etc/ssl/certs/ca-certificates.crt "$folder/keys/certificate.pem" >"$folder/keys/certificates.crt"
    # That of RFC 7517, A.1.
    echo '{"keys": [{"kty": "EC", "crv": "P-256", "kid": "1", "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
        "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}]}' >"$folder/keys/jwks.json"
    : >"$folder/keys.log"
    (cd "$folder/keys" && exec python3 -u -c "
import http.server, ssl
server = http.server.ThreadingHTTPServer(('127.0.0.1', $keys_port), http.server.SimpleHTTPRequestHandler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain('certificate.pem', 'key.pem')
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()") >"$folder/keys.log" 2>&1 &
    keys=$!
    export ROOST_JWKS_URL=https://localhost:$keys_port/jwks.json
}

# $1: the program in the root.
start_hub() {
    hub_port=$(free_port) ops_port=$(free_port)
    export hub_port ops_port
    inside "$1" serve >"$folder/hub.log" 2>&1 &
    hub=$!
    within 60 grep -q "listening on" "$folder/hub.log" || { cat "$folder/hub.log" && fail "the hub listens"; }
}

stop_hub() {
    [[ -n ${hub-} ]] || return 0
    # `unshare` lets no other signal end it, and what it started ends with it.
    pkill --signal KILL --parent "$hub" || true
    wait "$hub" 2>/dev/null || true
    hub=
}

leave() {
    stop_hub
    [[ -z ${keys-} ]] || kill "$keys" 2>/dev/null || true
    [[ -z ${postgres_control-} ]] || "${postgres_control[@]}" --mode immediate stop || true
}
