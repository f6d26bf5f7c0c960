"""What pushes cost the others: commit → client with and without a thousand alerts a second beside it."""

import contextlib
import json
import os
import pathlib
import subprocess
import tempfile
import threading
import time
import urllib.request

from commits import Commits
from hub import Hub
from processes import cpu_us
from programs import BenchError, free_port
from table import show, spread

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEAM, KEY, TOPIC = "TEAM567890", "KEY4567890", "com.example.roost"
PHONES, PER_SECOND, DELAY = 1000, 1000, 0.02
TOGETHER = 20  # rows of a transaction

TABLE = """create table public.push_load (id bigint generated always as identity primary key, reader text not null, body text not null);
grant select on public.push_load to service_role"""
PHONE = """insert into roost.push_device (token, environment, bundle, kind, user_id, role, claims)
select lpad(to_hex(n), 64, '0'), 'sandbox', '{topic}', 'alert', 'user' || n, 'service_role',
       jsonb_build_object('sub', 'user' || n, 'role', 'service_role')
from generate_series(1, {phones}) n"""
AUDIENCE = """select (n ->> 'row')::int as row, n -> 'record' ->> 'reader' as user_id, 'Load' as conversation_name,
'somebody' as sender_name, n -> 'record' ->> 'body' as body from jsonb_array_elements($1) n"""


def measure(programs, cluster, arguments):
    rounds = arguments.rounds or (1 if arguments.quick else 3)
    duration = 10 if arguments.quick else 20
    database = cluster.create("push")
    cluster.psql(database, TABLE)
    with standin() as apns, PushingHub(programs, cluster, database, arguments.loops, apns) as hub:
        cluster.psql(database, PHONE.format(topic=TOPIC, phones=PHONES))
        results = {"without": [], "with": []}
        sent, used = [], []
        for _ in range(rounds):
            results["without"].append(load(programs, cluster, database, hub, duration))
            before, cpu = apns.count(), cpu_us(hub.pid)
            writer = Alerts(cluster, database)
            writer.start()
            try:
                results["with"].append(load(programs, cluster, database, hub, duration))
            finally:
                writer.finish()
            written = TOGETHER * len(writer.done)
            until(lambda: apns.count() - before >= written, 60, f"{written} pushes")
            if apns.count() - before != written:
                raise BenchError(f"{apns.count() - before} pushes for {written} rows")
            sent.append(written / duration)
            base = results["without"][-1]["hub_cpu_percent"] * duration * 1e4
            used.append((cpu_us(hub.pid) - cpu - base) / written)
    rows = [[name] + [spread([result[f"commit_{point}_us"] / 1000 for result in results[name]], 2)
                      for point in ("p50", "p90", "p99", "max")] for name in results]
    show(f"Commit → client beside {PER_SECOND} alerts/s, the server taking {DELAY * 1000:.0f} ms; 1,000 subscribers, 500 commits/s; "
         f"ms, median of {rounds}", ["alerts", "p50", "p90", "p99", "max"], rows)
    print(f"\nRows alerted of: {spread(sent, 0)} a second, each once; CPU of the hub for each: {spread(used, 0)} µs")


def load(programs, cluster, database, hub, duration):
    return programs.json_of(
        [programs.roost_load, "changes", "--url", hub.url, "--token", hub.token, "--database", cluster.url(database),
         "--duration", duration, "--json", "--pid", f"hub={hub.pid}"], accept=(0, 1))


class PushingHub(Hub):
    def __init__(self, programs, cluster, database, loops, apns):
        super().__init__(programs, cluster, database, loops, watch=["public.roost_load", "public.push_load"])
        self.environment |= {
            "ROOST_APNS_URL": apns.url, "ROOST_APNS_CA_FILE": f"{apns.folder}/ca.pem", "ROOST_APNS_TOPIC": TOPIC,
            "ROOST_APNS_TEAM_ID": TEAM, "ROOST_APNS_KEY_ID": KEY, "ROOST_APNS_ENVIRONMENT": "sandbox",
            "ROOST_APNS_PRIVATE_KEY": pathlib.Path(apns.folder, "key.p8").read_text(),
            "ROOST_ALERTS_TABLES": "public.push_load", "ROOST_ALERTS_AUDIENCE": AUDIENCE,
        }


class Alerts(Commits):
    """A thousand rows a second, each for another phone, in small transactions."""

    def __init__(self, cluster, database):
        super().__init__(cluster, database, PER_SECOND / TOGETHER, self.insert)

    def insert(self, due):
        first = TOGETHER * len(self.done) % PHONES + 1
        return ("insert into push_load (reader, body) select 'user' || n, 'Hello' "
                f"from generate_series({first}, {first + TOGETHER - 1}) n")


class StandIn:
    def __init__(self, folder):
        self.folder, self.port, self.control = folder, free_port(), free_port()

    @property
    def url(self):
        return f"https://127.0.0.1:{self.port}"

    def count(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.control}/summary", timeout=10) as answer:
            summary = json.load(answer)
        if summary["violations"]:
            raise BenchError(f"the hub broke Apple's rules: {summary}")
        return sum(count for answer, count in summary["answers"].items() if answer.startswith("200"))


@contextlib.contextmanager
def standin():
    with tempfile.TemporaryDirectory(prefix="roost-bench-apns-") as folder:
        apns = StandIn(folder)
        process = subprocess.Popen(
            ["/usr/bin/python3", ROOT / "Tests/ApnsStandin", "--port", str(apns.port), "--control-port", str(apns.control),
             "--folder", folder, "--team", TEAM, "--key-id", KEY, "--topic", TOPIC, "--delay", str(DELAY), "--quiet"],
            stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"})
        try:
            for line in process.stdout:
                if line == "listening\n":
                    break
            else:
                raise BenchError("the APNs stand-in did not start; make setup ARGS=--tests")
            threading.Thread(target=lambda: [None for _ in process.stdout], daemon=True).start()
            yield apns
        finally:
            process.terminate()
            process.wait()


def until(condition, within, what):
    end = time.monotonic() + within
    while not condition():
        if time.monotonic() > end:
            raise BenchError(f"not within {within} s: {what}")
        time.sleep(0.05)
