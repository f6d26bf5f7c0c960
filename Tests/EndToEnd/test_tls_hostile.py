"""Clients of the hub's own TLS that mean no good, and what a scanner of TLS would ask: what bounds each, and that others notice nothing."""

import asyncio
import os
import socket
import ssl
import struct
import subprocess

import pytest

from support.bounds import Elapsed
from support.certificates import Authority
from support.deadline import PATIENCE, eventually
from support.http import HTTPConnection
from support.hub import Hub
from support.tokens import token
from support.wsclient import Client

pytestmark = pytest.mark.anyio
MEGABYTE = 1 << 20
#: Seconds: of the head that has to come, and of the last of a connection that the hub has ended.
HEAD, STILL = 10, 5


@pytest.fixture(scope="module")
def hub(cluster, tmp_path_factory):
    """One loop, so that whoever holds it up holds up all."""
    authority = Authority(tmp_path_factory.mktemp("hostile"))
    hub = Hub(cluster.create_migrated_database("tls_hostile"), ROOST_LOOPS="1").secure(authority.pair(), authority.trust)
    hub.authority_file = authority.file
    try:
        yield hub.start()
    finally:
        hub.remove()


@pytest.fixture(autouse=True)
async def others(hub):
    """Somebody else is served all the time, and all descriptors come back."""
    await eventually(lambda: hub.metric("roost_http_connections") == 0)
    files = hub.open_files
    async with await Client.connect(hub.port, tls=hub.trust) as client:
        await client.join("realtime:others")
        yield client
        await client.settled()
    await eventually(lambda: hub.open_files <= files, what=lambda: f"{hub.open_files} files, {files} before")


class Wire:
    """A client whose records are in the test's hands: TLS in memory, and the socket beside it."""

    def __init__(self, hub, version=None):
        context = hub.trust
        if version:
            context.minimum_version = context.maximum_version = version
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="127.0.0.1")
        self.hub = hub

    async def __aenter__(self):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.hub.port)
        return self

    async def __aexit__(self, *_):
        self.writer.close()

    async def shake_hands(self):
        while True:
            try:
                self.tls.do_handshake()
                return await self.flush()
            except ssl.SSLWantReadError:
                await self.flush()
                self.incoming.write(await asyncio.wait_for(self.reader.read(65_536), PATIENCE))

    async def flush(self):
        self.writer.write(self.outgoing.read())
        await self.writer.drain()

    def record(self, data):
        """One record with the data, as it goes over the wire."""
        self.tls.write(data)
        return self.outgoing.read()

    async def read(self):
        """What the hub sent, decrypted; empty at its end."""
        while True:
            try:
                return self.tls.read(65_536)
            except ssl.SSLWantReadError:
                data = await asyncio.wait_for(self.reader.read(65_536), PATIENCE)
                if not data:
                    return b""
                self.incoming.write(data)
            except ssl.SSLError:
                return b""

    async def ended(self):
        """All that comes until the connection is closed, encrypted."""
        try:
            return await asyncio.wait_for(self.reader.read(-1), PATIENCE)
        except ConnectionError:
            return b""


REQUEST = b"GET /healthcheck HTTP/1.1\r\nhost: x\r\n\r\n"


async def test_a_head_has_to_come_in_time_and_the_handshake_before_it(hub):
    """Nothing, a byte, half of a client's hello, and a handshake without a request behind it."""
    async def sends(data, shakes_hands=False):
        elapsed = Elapsed()
        async with Wire(hub) as wire:
            if shakes_hands:
                await wire.shake_hands()
            wire.writer.write(data)
            await wire.ended()
        assert elapsed.seconds >= HEAD - 2
        elapsed.assert_at_most(HEAD + 2, "a connection without a head")

    await asyncio.gather(
        sends(b""), sends(b"\x16"), sends(bytes.fromhex("16030100c8010000c40303")), sends(b"", shakes_hands=True))


async def test_many_handshakes_at_once_leave_time_for_others(hub, others):
    """Each turn makes a few, and the others wait for the next."""
    wires = [Wire(hub) for _ in range(200)]
    for wire in wires:
        await wire.__aenter__()
    hellos = asyncio.gather(*(wire.shake_hands() for wire in wires))
    for _ in range(20):
        await others.settled()
    await hellos
    for wire in wires:
        await wire.__aexit__()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
async def test_a_byte_in_each_record(hub, others, version):
    async with Wire(hub, version) as wire:
        await wire.shake_hands()
        for _ in range(20):
            wire.writer.write(b"".join(wire.record(REQUEST[at:at + 1]) for at in range(len(REQUEST))))
            assert (await wire.read()).startswith(b"HTTP/1.1 200 OK")
        # A body of a hundred thousand records, while another waits for its answers.
        body = b'{"x":"' + b"y" * 100_000 + b'"}'
        head = (f"POST /api/broadcast/others/events/e HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token()}\r\n"
                f"content-length: {len(body)}\r\n\r\n").encode()
        wire.writer.write(wire.record(head))
        for at in range(0, len(body), 1000):
            wire.writer.write(b"".join(wire.record(body[place:place + 1]) for place in range(at, min(at + 1000, len(body)))))
            await wire.writer.drain()
            if at % 20_000 == 0:
                await others.settled()
        assert (await wire.read()).startswith(b"HTTP/1.1 202")
    assert len((await others.next("broadcast")).payload["payload"]["x"]) == 100_000


async def test_a_record_that_is_cut_into_single_bytes(hub):
    async with Wire(hub) as wire:
        await wire.shake_hands()
        for byte in wire.record(REQUEST):
            wire.writer.write(bytes([byte]))
            await wire.writer.drain()
        assert (await wire.read()).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("length", [0x4000 + 257, 0xffff])
async def test_a_record_that_is_too_long_ends_the_connection(hub, length):
    async with Wire(hub) as wire:
        await wire.shake_hands()
        memory = hub.resident_bytes
        wire.writer.write(struct.pack(">BHH", 23, 0x0303, length) + bytes(length))
        await wire.ended()
    assert hub.resident_bytes - memory < MEGABYTE


async def test_garbage_where_a_record_should_be_ends_the_connection(hub):
    async with Wire(hub) as wire:
        await wire.shake_hands()
        wire.writer.write(struct.pack(">BHH", 23, 0x0303, 64) + os.urandom(64))
        await wire.ended()


@pytest.mark.parametrize("how", ["without a close_notify", "with a reset"])
async def test_an_end_is_noticed_however_it_comes(hub, how):
    connections = hub.metric("roost_connections")
    client = await Client.connect(hub.port, tls=hub.trust)
    await client.join("realtime:gone")
    await eventually(lambda: hub.metric("roost_connections") == connections + 1)
    raw = client.socket.writer.get_extra_info("socket")
    if how == "with a reset":
        client.socket.abort()
    else:
        # The end of TCP alone.
        os.close(os.dup(raw.fileno()))
        socket.socket(fileno=os.dup(raw.fileno())).shutdown(socket.SHUT_WR)
    elapsed = Elapsed()
    await eventually(lambda: hub.metric("roost_connections") == connections)
    elapsed.assert_at_most(5, "a connection that ended")
    client._task.cancel()


async def test_who_shuts_only_the_own_side_is_answered(hub):
    async with Wire(hub) as wire:
        await wire.shake_hands()
        wire.writer.write(wire.record(REQUEST))
        with pytest.raises(ssl.SSLWantReadError):
            wire.tls.unwrap()
        await wire.flush()
        wire.writer.write_eof()
        assert (await wire.read()).startswith(b"HTTP/1.1 200 OK")


async def test_a_client_that_never_reads_is_read_no_more(hub):
    """Answers that nobody takes fill the sockets, then the hub reads no further request; what it holds is bounded."""
    memory = hub.resident_bytes
    async with Wire(hub) as wire:
        await wire.shake_hands()
        wire.writer.transport.pause_reading()
        wire.writer.transport.set_write_buffer_limits(high=1 << 16)
        request = wire.record(b"GET /api/nothing HTTP/1.1\r\nhost: x\r\n\r\n" * 300)

        async def flood():
            nonlocal request
            while True:
                wire.writer.write(request)
                await wire.writer.drain()
                request = wire.record(b"GET /api/nothing HTTP/1.1\r\nhost: x\r\n\r\n" * 300)

        with pytest.raises(TimeoutError):
            # That no more is read can only be waited for.
            await asyncio.wait_for(flood(), 5)
        assert hub.resident_bytes - memory < 4 * MEGABYTE
        wire.writer.transport.abort()


async def test_a_slow_reader_that_is_cut_off_keeps_nothing(hub, others):
    """It stays connected and takes nothing: what was kept for it goes all the same, and its descriptors."""
    files = hub.open_files
    slow = await Client.connect(hub.port, tls=hub.trust, receive_buffer=65_536)
    await slow.join("realtime:others")
    slow.socket.writer.transport.pause_reading()
    connections = hub.metric("roost_connections")
    for number in range(150):
        others.push("realtime:others", "broadcast", {"event": "flood", "payload": {"x": "y" * 100_000}})
        if number % 10 == 0:
            await others.settled()
    await others.settled()
    await eventually(lambda: hub.metric("roost_connections") == connections - 1, what="the end of the socket")
    await eventually(lambda: hub.open_files <= files, what=lambda: f"{hub.open_files} files, {files} before")
    slow._task.cancel()
    slow.socket.abort()


async def test_a_client_that_never_reads_its_last_answer_is_let_go(hub):
    """The hub says goodbye behind an answer that is not taken; the connection does not outlive that for long."""
    files = hub.open_files
    async with Wire(hub) as wire:
        sock = wire.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await wire.shake_hands()
        wire.writer.transport.pause_reading()
        wire.writer.write(wire.record(REQUEST.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")))
        await eventually(lambda: hub.open_files > files)
        await eventually(lambda: hub.open_files <= files, what="the end of the connection")
        wire.writer.transport.abort()


async def test_key_updates_without_end(hub, others):
    """TLS 1.3 lets a client ask for new keys at any time (RFC 8446, section 4.6.3), and every time the hub has to answer."""
    client = await asyncio.create_subprocess_exec(
        "openssl", "s_client", "-connect", f"127.0.0.1:{hub.port}", "-CAfile", hub.authority_file, "-tls1_3", "-crlf",
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    async def until(words):
        said = b""
        while words not in said:
            said += await asyncio.wait_for(client.stdout.readline(), PATIENCE) or pytest.fail(f"{said[-500:]}")

    await until(b"Verify return code: 0 (ok)")
    for _ in range(100):
        client.stdin.write(b"K\n")
        await until(b"KEYUPDATE")
    await others.settled()
    client.stdin.write(REQUEST.replace(b"\r", b""))
    await until(b"200 OK")
    client.kill()
    await client.wait()


# What a scanner asks


async def s_client(hub, *arguments, input=""):
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{hub.port}", "-CAfile", hub.authority_file, *arguments]
    done = await asyncio.to_thread(subprocess.run, command, input=input, capture_output=True, text=True, timeout=PATIENCE)
    return done.stdout + done.stderr


async def test_no_renegotiation(hub):
    said = await s_client(hub, "-tls1_2", input="R\n")
    assert "RENEGOTIATING" in said and "no renegotiation" in said, said


@pytest.mark.parametrize("version", ["tls1_2", "tls1_3"])
async def test_no_tickets_and_no_compression(hub, version):
    said = await s_client(hub, f"-{version}", "-comp", "-reconnect", "-ign_eof", input="Q\n")
    assert "Reused, " not in said and "TLS session ticket:" not in said, said
    assert "Compression: NONE" in said and "Expansion: NONE" in said, said


async def test_a_client_of_another_protocol_is_told(hub):
    assert "no application protocol" in await s_client(hub, "-alpn", "h2"), "RFC 7301, section 3.2"
    assert "ALPN protocol: http/1.1" in await s_client(hub, "-alpn", "h2,http/1.1")


async def test_no_old_version_by_a_downgrade(hub):
    said = await s_client(hub, "-tls1_2", "-fallback_scsv")
    assert "inappropriate fallback" in said, said
    assert "alert protocol version" in await s_client(hub, "-tls1_1", "-cipher", "DEFAULT:@SECLEVEL=0")


async def test_requests_are_answered_by_name_or_without(hub):
    """SNI decides nothing: there is one certificate."""
    for arguments in (["-noservername"], ["-servername", "elsewhere.example"]):
        assert "Verify return code: 0 (ok)" in await s_client(hub, *arguments)
    async with await HTTPConnection.open(hub.port, tls=hub.trust) as http:
        assert (await http.request("GET", "/healthcheck")).status == 200
