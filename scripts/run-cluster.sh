#!/usr/bin/env bash
# Three hubs that act as one, on the demo's database, with a private Redis and, where it is installed, HAProxy in front: hub1 is
# `roost demo`, which has the database and the chat page, the others are `roost serve` beside it. Ctrl-C ends all that it started.
#
# ROOST_BINARY names another roost than .build/release/roost, FOLDER another folder than .roost, PORT the first of the ports (4000).
set -euo pipefail
cd "$(dirname "$0")/.."

roost=$(realpath "${ROOST_BINARY:-.build/release/roost}")
# The hubs refuse a variable that they do not know.
unset ROOST_BINARY
folder=${FOLDER:-.roost}
first=${PORT:-4000}
started=()
declare -A process_of
work=$(mktemp -d "${TMPDIR:-/tmp}/roost-cluster-XXXXXX")

fail() {
    echo "run-cluster: $*" >&2
    exit 69
}

stop() {
    trap '' INT TERM EXIT
    # What was started last goes first: so each hub says good-bye to the others, and the one that has the database ends after them.
    for ((i = ${#started[@]} - 1; i >= 0; i--)); do
        if kill -TERM "${started[i]}" 2>/dev/null; then
            wait "${started[i]}" 2>/dev/null || true
        fi
    done
    rm -rf "$work"
}
trap stop EXIT
trap 'exit 0' INT TERM

# In a session of its own: a terminal's Ctrl-C reaches this script alone, which then ends what it started, in its order.
start() {
    local name=$1
    shift
    setsid "$@" </dev/null >"$work/$name.log" 2>&1 &
    started+=($!)
    process_of[$name]=$!
}

# until_it SECONDS NAME COMMAND…: until the command succeeds, or the program NAME, started last, has ended.
until_it() {
    local end=$((SECONDS + $1)) name=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        kill -0 "${started[-1]}" 2>/dev/null || fail "$name has ended: $(tail -n 5 "$work/$name.log")"
        ((SECONDS < end)) || fail "$name does not become ready: $(tail -n 5 "$work/$name.log")"
        sleep 0.1
    done
}

[[ -x $roost ]] || fail "there is no $roost: make build"
command -v redis-server >/dev/null || fail "redis-server is missing: scripts/setup.sh --tests installs it"
PATH=$PATH:/usr/sbin

# By a Unix socket: it takes no port, and nobody but this user reaches it.
start redis redis-server --port 0 --unixsocket "$work/redis" --unixsocketperm 700 --dir "$work" --save '' --appendonly no
until_it 10 redis redis-cli -s "$work/redis" ping

export ROOST_CLUSTER_URL=unix://$work/redis
settings=(ROOST_DRAIN_SECONDS=1 ROOST_HTTP_HOST=127.0.0.1 ROOST_OPS_HOST=127.0.0.1 ROOST_HTTP_TRUSTED_PROXIES=127.0.0.1)
port() { echo $((first + 10 * $1)); }

listens() { grep -q '^listening on ' "$work/$1.log"; }

echo "Starting Redis, the demo's Postgres and three hubs …"
start hub1 env "${settings[@]}" ROOST_NODE_NAME=hub1 ROOST_HTTP_PORT="$(port 1)" ROOST_OPS_PORT="$(($(port 1) + 1))" \
    "$roost" demo --folder "$folder" "$@"
until_it 60 hub1 listens hub1
database=$(sed -n 's/^  database    psql //p' "$work/hub1.log")
[[ -n $database ]] || fail "hub1 does not say where its database is: $(tail -n 5 "$work/hub1.log")"
for number in 2 3; do
    start "hub$number" env "${settings[@]}" ROOST_NODE_NAME="hub$number" ROOST_HTTP_PORT="$(port $number)" \
        ROOST_OPS_PORT="$(($(port $number) + 1))" ROOST_DATABASE_URL="$database" \
        ROOST_JWT_SECRET="$(<"$folder/jwt-secret")" ROOST_STREAMS_DIRECTORY="$work/streams$number" "$roost" serve
    until_it 30 "hub$number" listens "hub$number"
done

page="http://127.0.0.1:$(port 1)/demo/"
if command -v haproxy >/dev/null; then
    cat >"$work/haproxy.cfg" <<END
global
    maxconn 1000
defaults
    mode http
    option redispatch
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    timeout tunnel 90s
frontend clients
    bind 127.0.0.1:$first
    option forwardfor
    use_backend hubs if { path_end /websocket }
    default_backend demo
backend hubs
    balance roundrobin
    option httpchk GET /readyz
    http-check expect status 200
    default-server check inter 500ms fall 2 rise 1
    server hub1 127.0.0.1:$(port 1) port $(($(port 1) + 1))
    server hub2 127.0.0.1:$(port 2) port $(($(port 2) + 1))
    server hub3 127.0.0.1:$(port 3) port $(($(port 3) + 1))
# The chat page, and what it asks.
backend demo
    server hub1 127.0.0.1:$(port 1)
END
    start balancer haproxy -db -f "$work/haproxy.cfg"
    until_it 10 balancer curl -fsS "http://127.0.0.1:$first/demo/"
    page="http://127.0.0.1:$first/demo/"
fi

cat <<END

  chat page   $page
END
if [[ -e $work/haproxy.cfg ]]; then
    echo "              by HAProxy: its panes are on different hubs"
else
    echo "              HAProxy is not installed, so all its panes are on hub1"
fi
for number in 1 2 3; do
    echo "  hub$number        ws://127.0.0.1:$(port $number)/realtime/v1/websocket, operators http://127.0.0.1:$(($(port $number) + 1))/, process ${process_of[hub$number]}"
done
cat <<END
  Redis       redis-cli -s $work/redis
  database    psql $database
  logs        $work

  Kill hub2 or hub3 and see that nobody leaves; Ctrl-C stops everything, the data stays in $folder.
END

# Until Ctrl-C, or until all that were started have ended. A hub that somebody kills ends nothing.
while kill -0 "${started[@]}" 2>/dev/null; do wait -n || true; done
