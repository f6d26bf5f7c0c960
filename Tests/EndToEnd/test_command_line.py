"""The commands besides `serve` and `demo`."""

import asyncio
import base64
import json
import os
import pty
import re
import subprocess
import time

import pytest

from support.deadline import eventually, until
from support.hub import BINARY, Hub
from support.tokens import SECRET, signed
from support.wsclient import Client


def claims(text):
    part = text.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


async def test_token(hub):
    text = hub.run("token", "--role", "authenticated", "--sub", "user-1", "--expires-in", "15m").stdout.strip()
    said = claims(text)
    assert (said["role"], said["sub"]) == ("authenticated", "user-1")
    assert abs(said["exp"] - time.time() - 900) < 60
    assert text == signed(said), "signed with jwt.secret"
    async with await Client.connect(hub.port, apikey=text) as client:
        await client.settled()
    assert hub.run("token", "--expires-in", "soon", check=False).returncode == 64
    assert hub.run("token", check=False, ROOST_JWT_SECRET="").returncode == 78


@pytest.fixture
async def tail(hub):
    """Starts `roost tail` and gives the lines it prints."""
    running = []

    async def start(*arguments):
        process = await asyncio.create_subprocess_exec(
            BINARY, "tail", *arguments, env=hub.environment, cwd=hub.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        running.append(process)
        lines = []

        async def read():
            async for line in process.stdout:
                lines.append(json.loads(line))

        process.reader = asyncio.create_task(read())
        return process, lines

    yield start
    for process in running:
        if process.returncode is None:
            process.kill()
        await process.wait()
        process.reader.cancel()


async def test_tail_prints_broadcasts_presence_and_changes(hub, connect, sql, table, name, topic, tail):
    process, lines = await tail(name, "--table", f"public.{table}", "--filter", "id=gt.1")
    await eventually(lambda: any(line["event"] == "system" for line in lines), what=lambda: f"the subscription in {lines}")
    client = await connect()
    await client.join(topic, config={"presence": {"key": "me", "enabled": True}})
    client.push(topic, "broadcast", {"type": "broadcast", "event": "text", "payload": {"n": 1}})
    client.send_binary(bytes([3, 1, 1, len(topic.encode()), 6, 0, 1]) + b"11" + topic.encode() + b'binary{"n":2}')
    await client.ask(topic, "presence", {"event": "track", "payload": {"mood": "fine"}})
    sql.execute(f"insert into {table} values (1), (2)")
    await eventually(lambda: any(line["event"] == "postgres_changes" for line in lines), what=lambda: f"the change in {lines}")
    payloads = {line["event"]: line["payload"] for line in lines}
    broadcasts = [line["payload"] for line in lines if line["event"] == "broadcast"]
    assert [(b["event"], b["payload"]) for b in broadcasts] == [("text", {"n": 1}), ("binary", {"n": 2})]
    assert payloads["presence_diff"]["joins"]["me"]["metas"][0]["mood"] == "fine"
    assert payloads["postgres_changes"]["data"]["record"]["id"] == 2
    process.terminate()
    await asyncio.wait_for(process.wait(), 30)


async def test_tail_says_why_it_cannot(hub, name, tail):
    """Once: what is refused for good is not tried again."""
    async def ended(*arguments):
        process, _ = await tail(*arguments)
        said = (await asyncio.wait_for(process.stderr.read(), 30)).decode()
        return await process.wait(), [line for line in said.splitlines() if line.strip()]

    for arguments in [(name,), ("--stream", name)]:
        status, lines = await ended(*arguments, "--token", "nonsense")
        assert status == 1 and len(lines) == 1 and "HTTP status 401: it does not accept the token" in lines[0], lines
    status, lines = await ended(name, "--url", f"ws://127.0.0.1:{hub.port}/elsewhere/websocket")
    assert status == 1 and len(lines) == 1 and "HTTP status 404" in lines[0], lines


async def test_tail_comes_back_after_a_restart_of_the_hub(own_hub):
    own_hub.start()
    process = await asyncio.create_subprocess_exec(
        BINARY, "tail", "room", env=own_hub.environment, cwd=own_hub.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        await asyncio.wait_for(process.stdout.readline(), 30)
        await asyncio.to_thread(own_hub.kill)
        own_hub.start()
        # Its next join brings the next lines.
        line = await asyncio.wait_for(process.stdout.readline(), 30)
        assert json.loads(line)["event"] in ("phx_reply", "presence_state", "presence_diff")
    finally:
        process.kill()
        await process.wait()


def test_doctor_finds_nothing_wrong(hub):
    result = hub.run("doctor")
    assert "ERROR" not in result.stdout
    assert result.stdout.splitlines()[-1] == "Nothing is wrong." or "0 errors, " in result.stdout.splitlines()[-1]
    report = json.loads(hub.run("doctor", "--json").stdout)
    assert set(report) == {"findings", "errors", "warnings"} and report["errors"] == 0
    severities = [finding["severity"] for finding in report["findings"]]
    assert set(severities) <= {"good", "warning"} and severities.count("warning") == report["warnings"]
    subjects = [finding["subject"] for finding in report["findings"]]
    assert subjects.index("open files") < subjects.index("token keys") < subjects.index("postgres") < subjects.index("tables")
    assert {"io_uring", "kernel", "connections", "outbox", "hubs"} <= set(subjects)


def test_doctor_finds_what_is_wrong(hub, cluster):
    broken = hub.run("doctor", check=False, ROOST_DATABASE_URL="postgres://nobody@127.0.0.1:1/none")
    assert broken.returncode == 69
    assert "ERROR" in broken.stdout and "cannot be reached" in broken.stdout
    empty = hub.run("doctor", check=False, ROOST_DATABASE_URL=cluster.url("template1"))
    assert empty.returncode == 69
    assert "roost migrate" in empty.stdout, "it names the command that helps"
    assert empty.stdout.splitlines()[-1].startswith("1 error, ")
    many = hub.run("doctor", ROOST_LIMITS_CONNECTIONS="1000000")
    assert "warning  open files: " in many.stdout and "limits.connections is 1000000" in many.stdout
    assert "warning  kernel: net.ipv4.ip_local_port_range has " in many.stdout
    assert "io_uring is turned off" in hub.run("doctor", ROOST_IO_URING="false").stdout
    no_secret = hub.run("doctor", check=False, ROOST_JWT_SECRET="")
    assert no_secret.returncode == 69 and "ROOST_JWT_SECRET" in no_secret.stdout


@pytest.mark.parametrize("settings, said", [
    ({"ROOST_HTTP_PORT": "x"}, "ROOST_HTTP_PORT"), ({"ROOST_HTTP_PORT": "70000"}, "65535"),
    ({"ROOST_JWT_SECRET": "short"}, "32 bytes"),
    ({"ROOST_JWT_SECRET": ""}, "jwt.secret"), ({"ROOST_DATABASE_URL": ""}, "database.url"),
    ({"ROOST_LOG_LEVEL": "loud"}, "ROOST_LOG_LEVEL"), ({"ROOST_CONFIG": "/nowhere.yaml"}, "/nowhere.yaml"),
    ({"ROOST_TIMEOUTS_PING_AFTER": "90"}, "idle"),
], ids=lambda value: next(iter(value)) if isinstance(value, dict) else "")
def test_a_wrong_configuration_is_78_and_a_sentence(hub, settings, said):
    for command in (["config", "check"], ["serve"]):
        result = hub.run(*command, check=False, **settings)
        assert result.returncode == 78, result
        assert said in result.stderr and result.stderr.startswith("Error: "), result.stderr
        assert SECRET not in result.stderr
        assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("text, said", [
    ("http:\n  prot: 4000\n", "http.port"), ("http:\n  port: many\n", "bad.yaml"), ("http: [\n", "bad.yaml"), ("- 1\n", "bad.yaml")])
def test_a_wrong_file_is_named(hub, tmp_path, text, said):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    result = hub.run("config", "check", "--config", str(path), check=False)
    assert result.returncode == 78 and said in result.stderr, result.stderr


def test_a_good_configuration(hub):
    assert hub.run("config", "check").returncode == 0
    shown = hub.run("config", "print").stdout
    assert f"port: {hub.port}" in shown and "ROOST_HTTP_PORT" in shown
    assert SECRET not in shown, "secrets are masked"


def test_a_port_that_is_in_use(hub, cluster):
    other = Hub(cluster.url("shared"))
    try:
        for setting, port in (("ROOST_HTTP_PORT", hub.port), ("ROOST_OPS_PORT", hub.ops_port)):
            result = other.run("serve", check=False, **{setting: str(port)})
            assert result.returncode == 69
            assert str(port) in result.stderr and "in use" in result.stderr, result.stderr
    finally:
        other.remove()


def test_migrate_prints_what_it_would_run(hub, cluster):
    printed = hub.run("migrate", "--print").stdout
    url = cluster.create_database("printed")
    with cluster.connect("printed") as sql:
        sql.execute(printed)
        assert sql.execute("select count(*) from pg_class where relnamespace = 'roost'::regnamespace and relname = 'change'").fetchone() == (1,)
    # What was run by hand is what the hub wants.
    again = hub.run("migrate", ROOST_DATABASE_URL=url)
    assert again.returncode == 0
    assert "ERROR  schema" not in hub.run("doctor", check=False, ROOST_DATABASE_URL=url).stdout


def test_migrate_watch_and_unwatch_may_be_repeated(hub, sql, name):
    sql.execute(f"create table {name} (id int primary key)")
    for command in (["migrate"], ["migrate"], ["watch", name], ["watch", name], ["unwatch", name], ["unwatch", name]):
        hub.run(*command)


def test_a_table_that_does_not_exist_is_69_and_a_sentence(hub):
    for arguments in (["watch", "no_such_table"], ["unwatch", "no_such_table"], ["watch", "--publication", "nothing"]):
        result = hub.run(*arguments, check=False)
        assert result.returncode == 69 and result.stderr.startswith("Error: "), result
    assert hub.run("watch", check=False).returncode == 64


def test_a_database_without_the_schema(hub, cluster):
    url = cluster.create_database("bare")
    result = hub.run("watch", "pg_class", check=False, ROOST_DATABASE_URL=url)
    assert result.returncode == 69 and "roost migrate" in result.stderr


def test_doctor_finds_two_hubs_of_one_name(own_hub, cluster):
    own_hub.environment["ROOST_FEED_SAFETY_POLL_SECONDS"] = "1"
    own_hub.start()
    assert "One hub is connected as roost." in own_hub.run("doctor").stdout
    twin = Hub(cluster.url(own_hub.database), ROOST_FEED_SAFETY_POLL_SECONDS="1")
    try:
        twin.start()
        found = own_hub.run("doctor", check=False)
        assert found.returncode == 69 and "ERROR    hubs: 2 hubs are connected as roost" in found.stdout, found.stdout
        assert "ROOST_NODE_NAME" in found.stdout
        until(lambda: "Another hub is connected as roost" in twin.log, what="a word in the log")
        twin.stop()
        until(lambda: own_hub.run("doctor", check=False).returncode == 0, what="the doctor's peace")
        # Of another name it may stay.
        twin.environment["ROOST_NODE_NAME"] = "second"
        twin.start()
        assert own_hub.run("doctor").returncode == 0
    finally:
        twin.remove()


def _waiting(hub, *arguments, stderr):
    return subprocess.Popen([BINARY, *arguments], env=hub.environment, cwd=hub.folder, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=stderr, text=True)


def test_a_command_that_takes_long_says_what_it_waits_for(hub, cluster, sql, name):
    """Elsewhere than on a terminal: a line now and then."""
    sql.execute(f"create table {name} (id int primary key)")
    with cluster.connect("shared", application_name="import") as other:
        other.execute(f"begin; insert into {name} values (1)")
        process = _waiting(hub, "watch", name, stderr=subprocess.PIPE)
        # What it says before it has come to the table tells of no lock.
        lines = iter(process.stderr.readline, "")
        line = next(line for line in lines if "waits for" in line)
        assert line.startswith(f"watching {name}, ") and f"waits for a lock held by process {other.info.backend_pid} (import" in line, line
        other.execute("commit")
    out, errors = process.communicate(timeout=30)
    assert process.returncode == 0 and "is watched now" in out, (out, errors)
    assert all(line.startswith(f"watching {name}, ") for line in errors.splitlines()), errors
    with cluster.connect("shared", application_name="import") as other:
        other.execute(f"begin; insert into {name} values (2)")
        result = hub.run("unwatch", name, "--wait", "0", check=False)
        assert result.returncode == 69 and len(result.stderr.splitlines()) == 1
        assert f"in use by process {other.info.backend_pid} (import, idle in transaction" in result.stderr


def test_a_terminal_has_one_line_that_is_written_anew(hub, cluster, sql, name):
    sql.execute(f"create table {name} (id int primary key)")
    ours, theirs = pty.openpty()
    with cluster.connect("shared") as other:
        other.execute(f"begin; insert into {name} values (1)")
        process = _waiting(hub, "watch", name, stderr=theirs)
        os.close(theirs)
        shown = ""
        while shown.count("waits for a lock") < 2:
            shown += os.read(ours, 4096).decode()
        other.execute("commit")
    assert process.wait(30) == 0
    try:
        while more := os.read(ours, 4096).decode():
            shown += more
    except OSError:  # EIO: the other side is closed, and all is read.
        pass
    os.close(ours)
    process.stdout.close()
    assert "\n" not in shown and re.match(rf"\r\x1b\[K\x1b\[\?7lwatching {name}, \d+ s", shown), shown
    assert shown.endswith("\r\x1b[K"), "nothing is left of it"
