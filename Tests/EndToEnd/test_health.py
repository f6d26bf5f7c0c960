"""What the hub tells those who ask whether it is well."""

import json

from support.cluster import Cluster
from support.deadline import eventually, until
from support.http import HTTPConnection
from support.hub import Hub
from support.threads import stopped
from support.wsclient import Client


def checks(hub, path):
    """The status, and the reason of each check by its name; None where it is well."""
    status, text = hub.ops(path)
    report = json.loads(text)
    return status, report, {check["name"]: check.get("reason") for check in report["checks"]}


def test_a_hub_that_is_well(hub):
    for path in ("/livez", "/readyz", "/healthz"):
        assert hub.ops(path) == (200, "ok\n")
    assert checks(hub, "/livez?verbose") == (
        200, {"ok": True, "checks": [{"name": "loop 0", "ok": True}, {"name": "loop 1", "ok": True}]},
        {"loop 0": None, "loop 1": None})
    status, report, found = checks(hub, "/readyz?verbose")
    assert status == 200 and report["ok"] and list(found) == ["drain", "feed", "lag", "loop 0", "loop 1"]
    status, report, _ = checks(hub, "/healthz?verbose=1")
    assert status == 200 and report["live"] and report["ready"]


async def test_what_the_original_answers_on_the_port_of_clients(hub):
    async with await HTTPConnection.open(hub.port) as http:
        for path, type, body in (
                ("/healthcheck", "text/plain; charset=utf-8", b"ok"), ("/api/ping", "application/json", b'{"message":"Success"}'),
                ("/realtime/v1/api/ping", "application/json", b'{"message":"Success"}')):
            answer = await http.request("GET", path)
            assert (answer.status, answer.headers["content-type"], answer.body) == (200, type, body)
            assert (await http.request("POST", path, b"{}")).status == 405
        # The operator's pages are not among them.
        for path in ("/livez", "/readyz", "/healthz", "/metrics"):
            assert (await http.request("GET", path)).status == 404


def test_a_loop_that_is_stuck(own_hub):
    own_hub.environment |= {
        "ROOST_LOOPS": "2", "ROOST_FEED_READY_LAG_SECONDS": "1", "ROOST_FEED_SAFETY_POLL_SECONDS": "1"}
    own_hub.start()
    pid = own_hub.process.pid
    with stopped(pid, "roost-feed"):
        until(lambda: own_hub.ops("/readyz")[0] == 503, what="a word of the lag")
        assert "the change feed is " in own_hub.ops("/readyz")[1] and "s behind the database" in own_hub.ops("/readyz")[1]
        until(lambda: "Nothing moves although something waits: the change feed is " in own_hub.log, what="a word in the log")
        assert own_hub.metric("roost_feed_behind_seconds") > 1
        # A restart would not bring what the database does not give.
        until(lambda: own_hub.ops("/livez")[0] == 200, what="the loops alive")
        until(lambda: own_hub.ops("/healthz")[1].startswith("alive, not ready: the change feed is "), what="alive, and not ready")
    until(lambda: own_hub.ops("/readyz")[0] == 200, what="the feed to catch up")
    until(lambda: "What did not move moves again." in own_hub.log, what="the end of it in the log")
    with stopped(pid, "roost-loop-1"):
        until(lambda: own_hub.ops("/livez")[0] == 503, what="a word of the loop")
        for path in ("/livez", "/healthz"):
            assert own_hub.ops(path)[1].startswith("not alive: event loop 1 has not turned for "), own_hub.ops(path)
        def is_loop_1():
            status, report, found = checks(own_hub, "/livez?verbose")
            assert status == 503 and not report["ok"]
            return found["loop 0"] is None and "event loop 1" in found["loop 1"]
        until(is_loop_1, what="loop 1 alone")
        assert "event loop 1" in own_hub.ops("/readyz")[1]
    until(lambda: own_hub.ops("/livez") == (200, "ok\n"), what="the loop to turn again")


async def test_readiness_follows_postgres():
    cluster = Cluster().start()
    try:
        hub = Hub(cluster.create_database("moody"))
        try:
            hub.run("migrate")
            hub.start()
            for _ in range(2):
                cluster.stop()
                until(lambda: hub.ops("/readyz")[0] == 503, what="/readyz to notice")
                status, report, found = checks(hub, "/healthz?verbose")
                assert status == 200 and report["live"] and not report["ready"] and "onnect" in found["feed"], report
                assert hub.ops("/livez") == (200, "ok\n")
                until(lambda: hub.metric("roost_ready") == 0, what="the same in the metrics")
                cluster.start()
                until(lambda: hub.ops("/readyz") == (200, "ok\n"), what="/readyz to notice that it is back")
            until(lambda: hub.metric("roost_ready") == 1, what="the same in the metrics")
        finally:
            hub.remove()
    finally:
        cluster.remove()


async def test_a_drain_is_not_ready_and_alive(own_hub):
    own_hub.environment |= {"ROOST_DRAIN_DELAY_SECONDS": "60"}
    own_hub.start()
    client = await Client.connect(own_hub.port)
    own_hub.process.terminate()
    await eventually(lambda: own_hub.ops("/readyz")[0] == 503, what="/readyz")
    assert checks(own_hub, "/readyz?verbose")[2]["drain"] == "the hub is draining before it stops"
    assert own_hub.ops("/livez") == (200, "ok\n")
    assert own_hub.ops("/healthz") == (200, "alive, not ready: the hub is draining before it stops\n")
    await client.settled()
    await client.close()
    own_hub.kill()


async def test_a_hub_lives_within_a_limited_address_space(own_hub, cluster):
    """A third of what malloc would reserve for its threads if it was let."""
    own_hub.within = ["prlimit", f"--as={350 << 20}"]
    own_hub.environment["ROOST_LOOPS"] = "2"
    own_hub.start()
    with cluster.connect(own_hub.database) as sql:
        sql.execute("create table spacious (id int primary key, body text); grant select on spacious to anon, authenticated")
        own_hub.watch("spacious")
        clients = [await Client.connect(own_hub.port) for _ in range(20)]
        for client in clients:
            await client.join("realtime:room", [{"event": "*", "schema": "public", "table": "spacious"}])
        sql.execute("insert into spacious select n, repeat('x', 1000) from generate_series(1, 1000) n")
        for client in clients:
            await client.next("postgres_changes", where=lambda message: message.payload["data"]["record"]["id"] == 1000)
            await client.close()
    assert own_hub.ops("/livez") == (200, "ok\n")
    assert own_hub.process.poll() is None
