"""Row level security: commit → client for a conversation's members, and decisions per second."""

import pathlib
import statistics
import time
import uuid

from hub import Hub, token
from programs import BenchError
from table import show, spread, verdict
from websocket import Connection

MEMBERS = 500
LATENCY_BUDGETS = {"by row": 50, "by scope": 20}  # p99, ms
RUN = 0xC0000000
BUDGETS = {"one row at a time, by row": 20_000, "a full window, by row": 100_000, "a full window, by scope": 1_000_000}
SCHEMA = pathlib.Path(__file__).resolve().parents[2] / "Sources/Demo/SQL/chat.sql"


def user(number):
    return str(uuid.UUID(int=0x11111111_0000_4000_8000_000000000000 + number))


def conversation(number):
    return str(uuid.UUID(int=(RUN << 96) + 0x0000_4000_8000_000000000000 + number))


def measure(programs, cluster, arguments):
    rounds = arguments.rounds or (1 if arguments.quick else 3)
    latency = {name: [] for name in ("by row", "by scope")}
    decisions = {f"{shape}, {name}": [] for name in latency for shape in ("one row at a time", "a full window")}
    databases = {name: prepare(cluster, f"visibility_{n}") for n, name in enumerate(latency)}
    for _ in range(rounds):
        for name, database in databases.items():
            with Hub(programs, cluster, database, arguments.loops) as hub:
                watch(hub, scoped=name == "by scope")
                latency[name].append(commit_to_client(programs, cluster, database, hub, 8 if arguments.quick else 20))
            with Hub(programs, cluster, database, arguments.loops) as hub:
                single, window = decide(cluster, database, hub, 2000 if name == "by row" else 10_000)
                decisions[f"one row at a time, {name}"].append(single)
                decisions[f"a full window, {name}"].append(window)
    report(latency, decisions, rounds)


def prepare(cluster, database):
    """The sample chat: all are members of conversation 0, everybody is the only member of one more."""
    cluster.create(database)
    cluster.psql(database, SCHEMA.read_text())
    cluster.psql(database, f"""
        insert into users (id, name) select ('11111111-0000-4000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'User ' || n
        from generate_series(0, {MEMBERS - 1}) n;
        insert into conversations (id, kind) select ('c0000000-0000-4000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'group'
        from generate_series(0, {MEMBERS}) n;
        insert into conversation_participants (conversation_id, user_id)
        select '{conversation(0)}', id from users union all
        select ('c0000000-0000-4000-8000-' || lpad(to_hex(n + 1), 12, '0'))::uuid,
            ('11111111-0000-4000-8000-' || lpad(to_hex(n), 12, '0'))::uuid from generate_series(0, {MEMBERS - 1}) n;
        analyze""")
    return database


def watch(hub, scoped):
    """Nothing is declared: the scope is the one that `roost watch` derives."""
    hub.command("watch", "public.messages", *([] if scoped else ["--no-scope"]))


def commit_to_client(programs, cluster, database, hub, seconds):
    """All 500 members listen, each as a user of its own, at 30 commits/s."""
    tokens = cluster.folder / "tokens"
    tokens.write_text("\n".join(token(user(n)) for n in range(MEMBERS)))
    return programs.json_of(
        [programs.roost_load, "changes", "--url", hub.url, "--token", hub.token, "--database", cluster.url(database),
         "--table", "public.messages", "--insert",
         f"insert into public.messages (conversation_id, sender_id, body) values ($1, '{user(0)}', $2)",
         "--subscribers", MEMBERS, "--conversations", 1, "--run", RUN, "--tokens", tokens, "--rate", 30, "--writers", 2,
         "--duration", seconds, "--json", "--pid", f"hub={hub.pid}"], accept=(0, 1))


def decide(cluster, database, hub, rows):
    """500 users without a filter, so that every row is a question about each of them; one may see it."""
    connections = [subscribed(hub, user(n)) for n in range(MEMBERS)]
    writer = cluster.session(database)

    def insert(count):
        writer.stdin.write(
            f"insert into messages (conversation_id, sender_id, body) select '{conversation(1)}', '{user(0)}', 'a message of "
            f"an ordinary length, nothing more' from generate_series(1, {count});\n")
        writer.stdin.flush()
        began = time.monotonic()
        while count:
            count -= connections[0].receive()[3] == "postgres_changes"
        return time.monotonic() - began

    for _ in range(20):
        insert(1)
    single = statistics.median(insert(1) for _ in range(100))
    for connection in connections:
        connection.push("phoenix", "heartbeat", {}, "2", None)
    insert(rows)
    window = min(insert(rows) for _ in range(2))
    writer.stdin.close()
    writer.wait()
    for connection in connections:
        connection.close()
    return MEMBERS / single, MEMBERS * rows / window


def subscribed(hub, subject):
    """A connection that is told of every row of public.messages its user may see."""
    connection = Connection(hub.port, token(subject))
    connection.push("realtime:all", "phx_join", {"config": {"postgres_changes": [
        {"event": "INSERT", "schema": "public", "table": "messages"}]}})
    while (answer := connection.receive())[3] != "system":
        pass
    if answer[4]["status"] != "ok":
        raise BenchError(f"the hub refused a subscription: {answer[4]['message']}")
    return connection


def report(latency, decisions, rounds):
    rows = []
    for name, results in latency.items():
        p99 = statistics.median(result["commit_p99_us"] / 1000 for result in results)
        rows.append([name] + [spread([result[f"commit_{point}_us"] / 1000 for result in results], 2)
                              for point in ("p50", "p90", "p99", "max")]
                    + [verdict(p99 <= LATENCY_BUDGETS[name]), sum(result["lost"] + result["wrong"] for result in results),
                       spread([result["hub_cpu_percent"] for result in results])])
    show(f"Commit → client, one conversation with {MEMBERS} members under row level security, 30 commits/s; ms, median of "
         f"{rounds}", ["policies asked", "p50", "p90", "p99", "max", "p99 ≤ 50 by row, 20 by scope", "lost or wrong",
                       "hub, % of a core"], rows)
    rows = [[name, spread(values, 0), verdict(statistics.median(values) >= BUDGETS[name]) if name in BUDGETS else "–"]
            for name, values in decisions.items()]
    show(f"Decisions per second, insert to last delivery, {MEMBERS} users", ["how", "decisions/s", "budget"], rows)
