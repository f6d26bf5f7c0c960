"""The load tester: every scenario against a real hub, and servers that make the mistakes that it has to notice."""

import asyncio
import json
import os
import pathlib
import ssl
import subprocess
import tempfile

import pytest

from support.bounds import at_most
from support.deadline import eventually
from support.faulty_server import FaultyServer
from support.hub import ROOT
from support.tokens import token

BINARY = str(pathlib.Path(os.environ.get("ROOST_LOAD_BINARY", ROOT / ".build/release/roost-load")).resolve())


async def load(url, *arguments, status=0, secret=None):
    """What a run prints as JSON; with `status` what it has to end with."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ROOST_")}
    environment["ROOST_TOKEN"] = secret or token("service_role")
    process = await asyncio.create_subprocess_exec(
        BINARY, *map(str, arguments), "--url", url, "--json", "--quiet", env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, errors = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == status, f"{process.returncode}: {out.decode()}{errors.decode()}"
    return json.loads(out) if out else {}, errors.decode()


def url(hub):
    return f"ws://127.0.0.1:{hub.port}/realtime/v1/websocket"


@pytest.fixture
def rows(hub, cluster, sql, name):
    """A watched table for rows, as flags."""
    sql.execute(f'create table public."{name}" (id bigint generated always as identity primary key, '
                "conversation_id uuid not null, stamp text not null)")
    sql.execute(f'grant select on public."{name}" to service_role')
    hub.watch(f'public."{name}"')
    return ["--database", f"host=127.0.0.1 port={cluster.port} user=postgres dbname=shared", "--table", f"public.{name}"]


async def test_idle(hub):
    result, _ = await load(url(hub), "idle", "--sockets", 100, "--hold", 1, "--pid", f"hub={hub.process.pid}")
    assert result["closed_sockets"] == 0 and result["join_count"] == 100
    assert {"hub_join_us", "hub_kb_per_socket", "hub_kb_per_socket_held", "hub_idle_percent"} <= result.keys()


@pytest.mark.parametrize("flags", [
    ["--vsn", 1], ["--vsn", 2, "--binary"], ["--workers", 2, "--channels", 60, "--channels-per-socket", 5, "--burst", 4]])
async def test_fanout(hub, flags):
    result, _ = await load(url(hub), "fanout", "--sockets", 60, "--rate", 100, "--duration", 1, "--warm-up", 0.2, *flags)
    assert result["delivered"] == result["expected"] > 100
    assert result["lost"] == result["repeated"] == result["out_of_order"] == result["wrong"] == 0
    assert 0 < result["sent_p50_us"] <= result["broadcast_max_us"]


@pytest.mark.parametrize("workers", [1, 2])
async def test_changes(hub, rows, workers):
    result, _ = await load(
        url(hub), "changes", "--subscribers", 45, "--conversations", 10, "--rate", 100, "--duration", 1,
        "--workers", workers, *rows)
    # A tick that was late when the time was over is not sent. Of ten conversations five have four subscribers and five have five.
    assert 10 < result["commits"] <= 100
    assert 4 * result["commits"] <= result["delivered"] == result["expected"] <= 5 * result["commits"]
    assert result["commit_count"] == result["schedule_count"] == result["delivered"]
    assert result["commits"] < 100 or result["delivered"] == 450


async def test_changes_takes_few_sockets_and_says_what_too_few_are(hub, rows):
    result, _ = await load(url(hub), "changes", "--sockets", 5, "--rate", 50, "--duration", 1, *rows)
    assert result["delivered"] == result["expected"] == result["commits"]
    process = await asyncio.create_subprocess_exec(
        BINARY, "changes", "--sockets", "50", "--conversations", "100", "--database", "none", stderr=asyncio.subprocess.PIPE)
    said = (await process.communicate())[1].decode()
    assert process.returncode == 64 and "give --sockets 100 or --conversations 50" in said, said


@pytest.mark.parametrize("version", [1, 2])
async def test_chat(hub, rows, version):
    result, _ = await load(
        url(hub), "chat", "--sockets", 60, "--members", 6, "--conversations-per-socket", 2, "--rate", 40, "--duration", 2,
        "--warm-up", 0.5, "--churn", 6, "--vsn", version, *rows)
    assert result["delivered"] == result["expected"] > 300
    for kind in ("commit", "broadcast", "typing", "presence"):
        assert result[f"{kind}_count"] > 0, kind


async def test_soak(hub, rows, tmp_path):
    page, record = tmp_path / "report.html", tmp_path / "record.json"
    result, _ = await load(
        url(hub), "soak", "--sockets", 30, "--rate", 20, "--duration", 1.5, "--warm-up", 0.5, "--pid", f"hub={hub.process.pid}",
        "--html", page, "--record", record, *rows)
    assert result["lost"] == 0
    assert "<svg" in page.read_text()
    samples = json.loads(record.read_text())["samples"]
    assert any(sample["processes"] for sample in samples)
    assert token("service_role")[:20] not in page.read_text()


async def test_presence(hub):
    result, _ = await load(
        url(hub), "presence", "--sockets", 60, "--channels", 3, "--rate", 60, "--duration", 1, "--workers", 2,
        "--warm-up", 0)
    assert result["wrong_states"] == 0 and result["presence_count"] > 50


async def test_storm(hub):
    with at_most(30, "a storm of 200"):
        result, _ = await load(url(hub), "storm", "--sockets", 200)
    assert result["came_back"] == result["back_count"] == 200
    assert result["all_back_seconds"] < 60


async def test_slow(hub):
    result, _ = await load(
        url(hub), "slow", "--sockets", 20, "--stalled", 2, "--size", 60000, "--rate", 100, "--duration", 1.5,
        "--warm-up", 0)
    assert result["lost"] == 0 and result["stalled"] == 2
    assert result["stalled_cut"] + result["stalled_closed_later"] == 2


async def test_bounds(hub):
    fanout = ["fanout", "--sockets", 5, "--rate", 50, "--duration", 0.5, "--warm-up", 0]
    result, errors = await load(url(hub), *fanout, "--expect", "p99<1ns", "--expect", "delivered>1", status=1)
    assert not result["passed"]
    assert [verdict["holds"] for verdict in result["expectations"]][-2:] == [False, True]
    assert "expected p99<1ns, but found" in errors
    await load(url(hub), *fanout, "--expect", "p99<10s", "--expect", "lost<1")


async def test_what_cannot_be_run(hub):
    _, errors = await load(url(hub), "idle", "--sockets", 2, secret="nonsense", status=2)
    assert "None of 2 sockets has joined" in errors and "401" in errors
    _, errors = await load("ws://127.0.0.1:1/x", "idle", "--sockets", 1, status=2)
    assert "refused" in errors
    for flags in (["--size", 10], ["--vsn", 3], ["--expect", "p99"], ["--sockets", 0]):
        await load(url(hub), "fanout", *flags, status=64)


async def test_ctrl_c_still_reports(hub):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ROOST_")}
    await hub.settled()
    before = hub.metric("roost_frames_received_total")
    process = await asyncio.create_subprocess_exec(
        BINARY, "fanout", "--sockets", "10", "--rate", "50", "--duration", "60", "--url", url(hub), "--token",
        token("service_role"), "--json", "--quiet", env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    await eventually(lambda: hub.metric("roost_frames_received_total") > before + 100, what="messages")
    process.send_signal(2)
    out, errors = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 0, errors.decode()
    result = json.loads(out)
    assert result["measured_seconds"] < 60 and result["delivered"] == result["expected"] > 0
    assert any("early" in remark for remark in result["remarks"])


# Mistakes of a server, each at message 5 of 50 or so: a busy machine sends fewer.

def lost(server, number, text, is_own):
    return [text] if is_own and number != 5 else []


def repeated(server, number, text, is_own):
    return [text] * (2 if number == 5 else 1) if is_own else []


def reordered(server, number, text, is_own):
    if not is_own:
        return []
    topic = json.loads(text)[2]
    if number == 5:
        server.held[topic] = text
        return []
    return [text, server.held[topic]] if number == 6 else [text]


def wrong(server, number, text, is_own):
    return [text] if is_own or number == 5 else []


@pytest.mark.parametrize("fault,figure", [
    (lost, "lost"), (repeated, "repeated"), (reordered, "out_of_order"), (wrong, "wrong")])
async def test_mistakes_are_noticed(fault, figure):
    async with FaultyServer(fault) as server:
        result, errors = await load(
            server.url, "fanout", "--sockets", 4, "--channels", 2, "--rate", 100, "--duration", 1, "--warm-up", 0,
            "--settle", 1, status=1)
    counts = {name: result[name] for name in ("lost", "repeated", "out_of_order", "wrong")}
    # Two channels of two listeners; where it goes wrong, both of the other channel hear it.
    assert counts == {name: 4 if name == figure else 0 for name in counts}
    assert "Failed: expected every message once and in order" in errors


async def test_tls(hub):
    folder = tempfile.mkdtemp(dir="/tmp", prefix="roost-e2e-tls-")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{folder}/key.pem", "-out",
         f"{folder}/cert.pem", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/cert.pem", f"{folder}/key.pem")

    async def forward(reader, writer):
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", hub.port)

        async def pump(source, sink):
            try:
                while data := await source.read(65536):
                    sink.write(data)
            except OSError:
                pass
            sink.close()

        await asyncio.gather(pump(reader, there_writer), pump(there_reader, writer))

    server = await asyncio.start_server(forward, "127.0.0.1", 0, ssl=context)
    secure = f"wss://127.0.0.1:{server.sockets[0].getsockname()[1]}/realtime/v1/websocket"
    fanout = ["fanout", "--sockets", 10, "--rate", 50, "--duration", 0.5, "--warm-up", 0]
    for trust in (["--insecure"], ["--ca-file", f"{folder}/cert.pem"]):
        result, _ = await load(secure, *fanout, *trust)
        # A tick that was late when the time was over is not sent.
        assert 0 < result["delivered"] == result["expected"] <= 250
    _, errors = await load(secure, *fanout, status=2)
    assert "certificate" in errors
    server.close()
