"""How a hub ends that is told to: the load balancer first, then the sockets, then the cursor; and in time, whatever hangs."""

import asyncio
import os
import signal
import socket

import pytest

from support.bounds import Elapsed
from support.deadline import eventually, until
from support.freezing import freeze
from support.http import HTTPConnection
from support.websocket import Refused
from support.wsclient import Client

#: What the hub may take beyond `drain.seconds` (DrainTimes.margin), and a second for a busy machine.
MARGIN = 6


def begin(hub):
    """SIGTERM; the time since."""
    elapsed = Elapsed()
    hub.process.send_signal(signal.SIGTERM)
    return elapsed


async def ended(hub):
    return await asyncio.to_thread(hub.process.wait, 60)


async def crowd(hub, count, topic="realtime:crowd"):
    clients = []
    for start in range(0, count, 50):
        clients += await asyncio.gather(*(Client.connect(hub.port) for _ in range(start, min(start + 50, count))))
    await asyncio.gather(*(client.join(topic) for client in clients))
    return clients


async def close(clients):
    for client in clients:
        await client.close()


@pytest.mark.clock
async def test_a_thousand_sockets_are_closed_in_batches(own_hub):
    own_hub.environment |= {"ROOST_DRAIN_SECONDS": "8", "ROOST_LOOPS": "2"}
    own_hub.start()
    clients = await crowd(own_hub, 1000)
    ends = []

    async def note(client):
        end = await client.end()
        ends.append((elapsed.seconds, end.code))

    notes = [asyncio.create_task(note(client)) for client in clients]
    await asyncio.sleep(0)
    elapsed = begin(own_hub)
    await asyncio.gather(*notes)
    assert await ended(own_hub) == 0
    elapsed.assert_at_most(8 + MARGIN, "the drain")
    assert {code for _, code in ends} == {1012}, "all three clients come back from it"
    # Spread over half of the time: no quarter of a second has more than a few batches.
    seconds = sorted(second for second, _ in ends)
    assert 2.5 < seconds[900] - seconds[100] < 6, f"between {seconds[0]:.1f} and {seconds[-1]:.1f} s"
    most = max(sum(start <= second < start + 0.25 for second in seconds) for start in seconds)
    assert most < 250, f"{most} of 1,000 in a quarter of a second"
    await close(clients)


async def test_http_ends_before_the_sockets_do(own_hub):
    """What is idle at once, and what is not behind its answer."""
    # Who closes its socket is not waited for.
    own_hub.environment |= {"ROOST_DRAIN_SECONDS": "60"}
    own_hub.start()
    clients = await crowd(own_hub, 100)
    async with await HTTPConnection.open(own_hub.port) as idle, await HTTPConnection.open(own_hub.port) as busy:
        for http in (idle, busy):
            assert (await http.request("GET", "/healthcheck")).status == 200
        busy.write(b"GET /healthcheck HTTP/1.1\r\nhost: ")
        await busy.writer.drain()
        begin(own_hub)
        assert await idle.ended() == b""
        assert any(client.closed is None for client in clients), "the sockets have half of the time"
        busy.write(b"x\r\n\r\n")
        answer = await busy.answer()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert await busy.ended() == b""
    await close(clients)
    assert await ended(own_hub) == 0


@pytest.mark.clock
async def test_what_waits_for_a_socket_comes_before_its_close(own_hub):
    own_hub.start()
    reader, sender = await crowd(own_hub, 2)
    reader.socket.writer.transport.pause_reading()
    for number in range(40):
        sender.push("realtime:crowd", "broadcast", {"event": "e", "payload": {"n": number, "x": "y" * 20_000}})
    await sender.settled()
    elapsed = begin(own_hub)
    await sender.end()
    reader.socket.writer.transport.resume_reading()
    assert (await reader.end()).code == 1012
    assert [message.payload["payload"]["n"] for message in reader.messages if message.event == "broadcast"] == list(range(40))
    assert await ended(own_hub) == 0
    elapsed.assert_at_most(1 + MARGIN, "the drain")
    await close([reader, sender])


@pytest.mark.clock
async def test_the_load_balancer_hears_it_first(own_hub):
    """/readyz says so at once and until the end; new sockets are let in for as long as the delay lasts."""
    own_hub.environment |= {"ROOST_DRAIN_SECONDS": "3", "ROOST_DRAIN_DELAY_SECONDS": "2"}
    own_hub.start()
    (early,) = await crowd(own_hub, 1)
    early.socket.writer.transport.pause_reading()
    # Accepted and not yet upgraded, when the time comes.
    half = socket.create_connection(("127.0.0.1", own_hub.port))
    half.sendall(b"GET /realtime/v1/websocket?vsn=2.0.0&apikey=")
    elapsed = begin(own_hub)
    until(lambda: own_hub.ops("/readyz")[0] == 503, what="/readyz")
    elapsed.assert_at_most(1, "/readyz")
    assert "draining" in own_hub.ops("/readyz")[1]
    (late,) = await crowd(own_hub, 1)
    elapsed.assert_at_most(2, "the drain")
    assert (await late.end()).code == 1012
    assert elapsed.seconds >= 2
    # Refused; or reset, by a loop that was about to stop listening.
    with pytest.raises((ConnectionRefusedError, ConnectionResetError)):
        await Client.connect(own_hub.port)
    assert own_hub.ops("/readyz")[0] == 503, "answered while the hub drains"
    half.sendall(b"x HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                 b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n")
    half.settimeout(30)
    answer = await asyncio.to_thread(half.recv, 4096)
    assert b" 503 " in answer.partition(b"\r\n")[0], answer
    half.close()
    assert await ended(own_hub) == 0
    early.socket.writer.transport.resume_reading()
    await close([early, late])


@pytest.mark.clock
async def test_a_peer_that_does_not_answer_holds_nothing_up(own_hub):
    own_hub.environment["ROOST_DRAIN_SECONDS"] = "2"
    own_hub.start()
    (sender,) = await crowd(own_hub, 1)
    stalled = await crowd(own_hub, 5)
    for client in stalled:
        client.socket.writer.transport.pause_reading()
    # More than the kernel's buffers take, less than the hub's cap: the close frame has to wait.
    for number in range(40):
        sender.push("realtime:crowd", "broadcast", {"event": "e", "payload": {"x": "y" * 100_000}})
        await sender.settled()
    elapsed = begin(own_hub)
    assert await ended(own_hub) == 0
    elapsed.assert_at_most(5, "the drain")
    assert "did not end in time" in own_hub.log
    for client in stalled:
        client.socket.writer.transport.resume_reading()
    await close([sender, *stalled])


@pytest.mark.clock
async def test_a_postgres_that_hangs_holds_nothing_up(own_hub, cluster):
    own_hub.start()
    with cluster.connect(own_hub.database) as sql:
        sql.execute("create table t (id int primary key)")
        own_hub.watch("t")
        client = await Client.connect(own_hub.port)
        await client.watch("realtime:r", {"event": "*", "schema": "public", "table": "t"})
        backends = [pid for (pid,) in sql.execute(
            "select pid from pg_stat_activity where application_name like 'roost%%' and datname = current_database()")]
        assert backends
        for pid in backends:
            freeze(pid)
        try:
            # The feed is on its way to fetch it, and gets no answer.
            sql.execute("insert into t values (1)")
            elapsed = begin(own_hub)
            assert (await client.end()).code == 1012
            status = await ended(own_hub)
            elapsed.assert_at_most(1 + MARGIN, "the drain")
            # 70 says that something was left undone; what, is in the log.
            undone = "while it was storing the cursor", "while it was writing down who is present"
            assert status == 0 or status == 70 and any(step in own_hub.log for step in undone), own_hub.log[-1000:]
        finally:
            for pid in backends:
                os.kill(pid, signal.SIGCONT)
    await client.close()


@pytest.mark.clock
async def test_who_asks_twice_means_it(own_hub):
    own_hub.environment |= {"ROOST_DRAIN_SECONDS": "30", "ROOST_DRAIN_DELAY_SECONDS": "30"}
    own_hub.start()
    begin(own_hub)
    until(lambda: own_hub.ops("/readyz")[0] == 503, what="/readyz")
    elapsed = begin(own_hub)
    assert await ended(own_hub) == -signal.SIGTERM
    elapsed.assert_at_most(1, "the drain")


@pytest.mark.clock
async def test_nobody_connected_is_no_reason_to_wait(own_hub):
    own_hub.environment["ROOST_DRAIN_SECONDS"] = "30"
    own_hub.start()
    (client,) = await crowd(own_hub, 1)
    await client.close()
    await eventually(lambda: own_hub.metric("roost_connections") == 0)
    elapsed = begin(own_hub)
    assert await ended(own_hub) == 0
    elapsed.assert_at_most(2, "the drain")


async def test_ctrl_c_is_a_drain_too(own_hub):
    own_hub.start()
    (client,) = await crowd(own_hub, 1)
    own_hub.process.send_signal(signal.SIGINT)
    assert (await client.end()).code == 1012
    assert await ended(own_hub) == 0
    await close([client])
