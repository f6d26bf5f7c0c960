"""The hub speaks TLS itself: what it offers, what it presents, and that all goes on over it as it does without."""

import asyncio
import itertools
import json
import signal
import socket
import ssl
import subprocess
import time

import pytest
import websockets.asyncio.client

from support.certificates import Authority, Pair
from support.deadline import eventually
from support.http import HTTPConnection
from support.hub import Hub
from support.pypi import Listener, python_client
from support.returning import Returning
from support.tokens import token
from support.wsclient import Client

MEGABYTE = 1 << 20
SUITES = {"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305"}
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def hub(cluster, authority):
    hub = Hub(cluster.create_database("tls"), ROOST_LOOPS="2", ROOST_LIMITS_PENDING_BYTES_PER_SOCKET=str(MEGABYTE))
    hub.pair = authority.pair("shared")
    hub.database = "tls"
    try:
        hub.run("migrate")
        yield hub.secure(hub.pair, authority.trust).start()
    finally:
        hub.remove()


@pytest.fixture
def table(hub, cluster):
    name = f"row_{next(_numbers)}"
    with cluster.connect(hub.database) as sql:
        sql.execute(f"create table {name} (id int8 primary key, body text, n int4)")
    hub.watch(name)
    return name


@pytest.fixture
async def connect(hub):
    clients = []

    async def open_client(version=2, **options):
        clients.append(await Client.connect(hub.port, version, tls=hub.trust, **options))
        return clients[-1]

    yield open_client
    for client in clients:
        await client.close()


# What is offered


def openssl(hub, *arguments):
    """What `openssl s_client` says of a connection."""
    done = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{hub.port}", "-CAfile", hub.authority_file, *arguments],
        input="", capture_output=True, text=True, timeout=30)
    return done.stdout + done.stderr


@pytest.fixture(autouse=True)
def authority_file(hub, authority):
    hub.authority_file = authority.file


@pytest.mark.parametrize("version, spoken", [("tls1", None), ("tls1_1", None), ("tls1_2", "TLSv1.2"), ("tls1_3", "TLSv1.3")])
def test_versions(hub, version, spoken):
    # At level 0 the client itself would speak all of them.
    said = openssl(hub, f"-{version}", "-cipher", "DEFAULT:@SECLEVEL=0")
    if spoken is None:
        assert "alert protocol version" in said and "Cipher is (NONE)" in said, said
    else:
        assert f"New, {spoken}, Cipher is " in said and "Verify return code: 0 (ok)" in said, said
        assert "Reused" not in said
    assert "Secure Renegotiation IS supported" in said or spoken != "TLSv1.2"


def handshake(hub, context):
    """The suite and the protocol that were agreed on; None where there was none."""
    with socket.create_connection(("127.0.0.1", hub.port), timeout=30) as plain:
        try:
            with context.wrap_socket(plain, server_hostname="127.0.0.1") as secured:
                return secured.cipher()[0], secured.selected_alpn_protocol(), secured.getpeercert()
        except (ssl.SSLError, ConnectionError):
            return None


def test_no_suite_but_those_with_forward_secrecy_and_authenticated_encryption(hub, authority):
    everything = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    everything.set_ciphers("ALL:COMPLEMENTOFALL:@SECLEVEL=0")
    names = [suite["name"] for suite in everything.get_ciphers() if suite["protocol"] != "TLSv1.3"]
    assert len(names) > 50
    taken = set()
    for name in names:
        context = authority.trust
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(f"{name}:@SECLEVEL=0")
        if handshake(hub, context):
            taken.add(name)
    assert taken == SUITES


@pytest.mark.parametrize("offered, agreed", [(["h2", "http/1.1"], "http/1.1"), (["http/1.1"], "http/1.1"), ([], None)])
def test_http_1_and_never_2(hub, authority, offered, agreed):
    context = authority.trust
    context.set_alpn_protocols(offered)
    _, protocol, certificate = handshake(hub, context)
    assert protocol == agreed
    assert int(certificate["serialNumber"], 16) == hub.pair.serial


async def test_who_speaks_plain_http_is_hung_up_on(hub, connect):
    async with await HTTPConnection.open(hub.port) as plain:
        plain.write(b"GET /api/ping HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"HTTP" not in await plain.ended()
    client = await connect()
    await client.settled()


def test_the_operator_sees_when_it_expires(hub):
    assert hub.metric("roost_tls_certificate_expiry_seconds") == hub.pair.expires


# Everything else, over it


async def test_the_python_client(hub, authority, table, cluster, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", authority.file)
    async with python_client(hub) as client, python_client(hub) as other:
        listener = Listener(client, "room", presence=True, presence_key="one").on_broadcast("e")
        listener.on_changes(table=table, schema="public")
        await listener.subscribe()
        sender = await Listener(other, "room").subscribe()
        await eventually(lambda: listener.systems)
        await sender.channel.send_broadcast("e", {"n": 1})
        await eventually(lambda: listener.broadcasts)
        with cluster.connect(hub.database) as sql:
            sql.execute(f"insert into {table} values (1, 'x', 1)")
            [change] = await listener.take()
        assert change["record"]["id"] == 1


async def test_the_websockets_library_and_frames_at_the_edges_of_records(hub):
    """A TLS record holds 16,384 bytes (RFC 8446, section 5.1); the frames' heads come on top."""
    url = f"wss://127.0.0.1:{hub.port}/socket/websocket?vsn=2.0.0&apikey={token()}"
    async with websockets.asyncio.client.connect(url, ssl=hub.trust, max_size=None) as socket:
        async def ask(frame):
            await socket.send(json.dumps(frame))
            return json.loads(await asyncio.wait_for(socket.recv(), 30))

        await ask(["1", "1", "realtime:sizes", "phx_join", {"config": {"broadcast": {"self": True}}}])
        for size in (1, 16_200, *range(16_290, 16_400, 7), 32_768, 65_536, 65_540, 200_000, 2_900_000):
            payload = {"type": "broadcast", "event": "e", "payload": {"x": "y" * size}}
            reply = await ask(["1", "2", "realtime:sizes", "broadcast", payload])
            assert reply[3:] == ["broadcast", payload], size
        pong = await socket.ping(b"still there")
        await asyncio.wait_for(pong, 30)
        await socket.close(1000)
        assert socket.close_code == 1000


async def test_http(hub):
    """On one connection, bodies in chunks, too."""
    messages = [{"topic": "x", "event": "e", "payload": {"x": "y" * 300_000}}]
    body = json.dumps({"messages": messages}).encode()
    async with await HTTPConnection.open(hub.port, tls=hub.trust) as http:
        for _ in range(3):
            answer = await http.request("GET", "/api/nothing")
            assert answer.status == 404 and "connection" not in answer.headers
            answer = await http.request("POST", "/api/broadcast", body, apikey=token(), content_type="application/json")
            assert answer.status == 202, answer.body
            http.write((f"POST /api/broadcast HTTP/1.1\r\nhost: x\r\napikey: {token()}\r\ncontent-type: application/json\r\n"
                        "transfer-encoding: chunked\r\n\r\n").encode())
            for at in range(0, len(body), 17_000):
                piece = body[at:at + 17_000]
                http.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            http.write(b"0\r\n\r\n")
            assert (await http.answer()).status == 202


async def test_answers_longer_than_a_record(hub):
    topics = [f"{number:03}-" + "x" * 240 for number in range(100)]
    messages = [{"topic": topic, "event": "e", "payload": {}, "private": True} for topic in topics]
    async with await HTTPConnection.open(hub.port, tls=hub.trust) as http:
        for _ in range(3):
            denied = await http.request(
                "POST", "/api/broadcast", {"messages": messages}, apikey=token(), content_type="application/json")
            assert denied.status == 403 and len(denied.body) > 40_000
            assert denied.json["topics"] == topics


async def test_a_socket_is_cut_again_and_again_while_rows_flow(hub, table, cluster):
    client = Returning(hub, "realtime:cut", table)
    await client.enter()
    with cluster.connect(hub.database) as sql:
        for turn in range(6):
            sql.execute(f"insert into {table} select g, 'x', {turn} from generate_series({turn * 50}, {turn * 50 + 49}) g")
            await client.cut(unread=0.1 if turn % 2 else 0)
            await client.enter()
    await client.has(range(300))
    await client.close()


async def test_a_hub_that_drains_says_goodbye(own_hub, authority):
    own_hub.secure(authority.pair("drained"), authority.trust).start()
    clients = [await Client.connect(own_hub.port, tls=own_hub.trust) for _ in range(20)]
    for client in clients:
        await client.join("realtime:room")
    assert await asyncio.to_thread(own_hub.stop) == 0
    for client in clients:
        assert (await client.end()).code == 1012


async def test_descriptors_are_given_back_however_a_socket_ends(hub, connect):
    watcher = await connect()
    await watcher.join("realtime:ends")
    before = hub.open_files
    clients = [await Client.connect(hub.port, tls=hub.trust) for _ in range(30)]
    await asyncio.gather(*(client.join("realtime:ends") for client in clients))
    for number, client in enumerate(clients):
        if number % 3 == 0:
            client.socket.writer.transport.pause_reading()
    for number in range(20):
        watcher.push("realtime:ends", "broadcast", {"event": "e", "payload": {"x": "y" * 40_000}})
    await watcher.settled()
    assert hub.open_files >= before + len(clients)
    for number, client in enumerate(clients):
        client._task.cancel()
        if number % 2 == 0:
            client.socket.abort()
        else:
            await client.close()
    await eventually(lambda: hub.open_files <= before, what=lambda: f"{hub.open_files} files, {before} before")


async def test_a_sender_that_is_left_unread_for_a_while_is_heard_in_full(own_hub, authority):
    """What OpenSSL has decrypted and the hub has not read would wait for ever, if nobody came back to it."""
    own_hub.environment |= {"ROOST_LIMITS_MESSAGES_PER_SECOND": "300", "ROOST_LOOPS": "1",
                            "ROOST_LIMITS_PENDING_BYTES_PER_SOCKET": str(64 * MEGABYTE)}
    own_hub.secure(authority.pair("unread"), authority.trust).start()
    async with await Client.connect(own_hub.port, tls=own_hub.trust) as reader:
        async with await Client.connect(own_hub.port, tls=own_hub.trust) as sender:
            for client in (reader, sender):
                await client.join("realtime:room")
            for number in range(1200):
                size = (10, 900, 17_000)[number % 3]
                sender.push("realtime:room", "broadcast", {"event": "e", "payload": {"n": number, "x": "y" * size}})
            await eventually(lambda: len(reader.messages) >= 1200 or reader.closed)
            assert [m.payload["payload"]["n"] for m in reader.messages] == list(range(1200))
    await own_hub.settled()
    assert own_hub.metric('roost_slowed_total{limit="messages_per_second"}') > 0


# Slow readers


async def flood(sender, topic, count, size=100_000):
    for number in range(count):
        sender.push(topic, "broadcast", {"event": "flood", "payload": {"n": number, "x": "y" * size}})
        if number % 10 == 0:
            await sender.settled()
    await sender.settled()


async def test_at_its_cap_a_slow_reader_is_told_to_come_back(hub, connect):
    slow, sender = await connect(receive_buffer=65_536), await connect()
    for client in (slow, sender):
        await client.join("realtime:slow")
    before = hub.metric("roost_slow_reader_closed_total")
    slow.socket.writer.transport.pause_reading()
    await flood(sender, "realtime:slow", 120)
    await eventually(lambda: hub.metric("roost_slow_reader_closed_total") == before + 1, what="the close")
    slow.socket.writer.transport.resume_reading()
    end = await slow.end()
    assert end.code == 1013
    numbers = [m.payload["payload"]["n"] for m in slow.messages if m.event == "broadcast"]
    assert numbers == list(range(len(numbers))) and numbers, "no hole before the end"


async def test_a_reader_that_takes_nothing_is_cut_off_and_costs_no_memory(hub, connect):
    slow, sender = await connect(receive_buffer=65_536), await connect()
    for client in (slow, sender):
        await client.join("realtime:stalled")
    connections, memory = hub.metric("roost_connections"), hub.resident_bytes
    slow.socket.writer.transport.pause_reading()
    await flood(sender, "realtime:stalled", 300)
    assert hub.resident_bytes - memory < 12 * MEGABYTE
    await eventually(lambda: hub.metric("roost_connections") == connections - 1, what="the end of the stalled socket")


# Another certificate


class Crowd:
    """Sockets on which broadcasts and row changes arrive all the time, and that notice what is missing."""

    def __init__(self, hub, table, size):
        self.hub, self.table, self.size = hub, table, size
        self.members, self.sent, self.rows, self.is_over = [], 0, 0, False

    async def gather(self):
        for start in range(0, self.size, 50):
            self.members += await asyncio.gather(
                *(Client.connect(self.hub.port, tls=self.hub.trust) for _ in range(min(50, self.size - start))))
        change = {"event": "INSERT", "schema": "public", "table": self.table}
        await asyncio.gather(*(member.watch("realtime:crowd", change) for member in self.members))
        return self

    async def talk(self, cluster):
        with cluster.connect(self.hub.database) as sql:
            while not self.is_over:
                self.members[0].push("realtime:crowd", "broadcast", {"event": "e", "payload": {"n": self.sent}})
                self.sent += 1
                if self.sent % 5 == 0:
                    sql.execute(f"insert into {self.table} values ({self.rows}, 'x', 1)")
                    self.rows += 1
                await asyncio.sleep(0.02)

    async def end(self, talking):
        """Nobody was dropped, and everybody has everything."""
        self.is_over = True
        await talking
        for member in self.members[1:]:
            assert member.closed is None
            await eventually(lambda member=member: len(member.messages) >= self.sent + self.rows)
            told = {"broadcast": [], "postgres_changes": []}
            for message in member.messages:
                if message.event == "broadcast":
                    told["broadcast"].append(message.payload["payload"]["n"])
                else:
                    told["postgres_changes"].append(message.payload["data"]["record"]["id"])
            assert told == {"broadcast": list(range(self.sent)), "postgres_changes": list(range(self.rows))}
        for member in self.members:
            await member.close()


async def test_a_new_certificate_is_shown_to_new_sockets_and_nobody_is_dropped(own_hub, cluster, authority):
    pair = authority.pair("renewed")
    own_hub.environment["ROOST_LOOPS"] = "2"
    own_hub.secure(pair, authority.trust).start()
    with cluster.connect(own_hub.database) as sql:
        sql.execute("create table t (id int8 primary key, body text, n int4)")
    own_hub.watch("t")
    crowd = await Crowd(own_hub, "t", 200).gather()
    talking = asyncio.create_task(crowd.talk(cluster))

    def shown(_=None):
        """By several connections: each loop presents for itself."""
        context = authority.trust
        return {int(handshake(own_hub, context)[2]["serialNumber"], 16) for _ in range(8)}

    async def shows(serial):
        async def is_shown():
            return await asyncio.to_thread(shown) == {serial}
        await eventually(is_shown, what="the new certificate", every=0.1)

    # The other kind of key: nothing of the old one may be left that a client could be shown.
    pair.write(authority.issue("rsa"))
    await shows(pair.serial)
    await eventually(lambda: own_hub.metric("roost_tls_certificate_expiry_seconds") == pair.expires)
    with_rsa = authority.trust
    with_rsa.maximum_version = ssl.TLSVersion.TLSv1_2
    with_rsa.set_ciphers("ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256")
    assert handshake(own_hub, with_rsa)[0] == "ECDHE-RSA-AES128-GCM-SHA256"
    # Half of a pair, as if whoever renews it stopped there.
    last, broken = pair.serial, authority.issue("ec")
    pair.write(broken, key=False)
    complaint = "The certificate stays as it was. The key"
    await eventually(lambda: complaint in own_hub.log, what="the complaint")
    assert shown() == {last}
    pair.write(broken, certificate=False)
    await shows(broken.serial)
    assert own_hub.log.count("The certificate stays as it was.") == 1
    await crowd.end(talking)
    assert "dropped" not in own_hub.log


async def test_a_reload_reads_the_files_again(own_hub, authority):
    pair = authority.pair("reloaded")
    own_hub.secure(pair, authority.trust).start()
    shown = "New connections are shown the certificate"
    assert shown not in own_hub.log
    own_hub.process.send_signal(signal.SIGHUP)
    await eventually(lambda: shown in own_hub.log, what="the certificate, though nothing changed")
    pair.write(authority.issue(), key=False)
    own_hub.process.send_signal(signal.SIGHUP)
    await eventually(lambda: "The configuration is not reloaded" in own_hub.log, what="the refusal of half a pair")
    assert handshake(own_hub, authority.trust)


# A start that cannot be


def ruined(authority, ruin):
    """A pair of which something is wrong."""
    good, other = authority.issue(), authority.issue()
    pair = Pair(authority.folder, f"ruined-{next(_numbers)}").write(good)
    match ruin:
        case "no certificate":
            pair.certificate += ".gone"
        case "no key":
            pair.key += ".gone"
        case "a folder":
            pair.certificate = authority.folder
        case "another's key":
            pair.write(other, certificate=False)
        case "noise":
            open(pair.certificate, "wb").write(b"\x00\xff" * 500)
        case "half a chain":
            open(pair.certificate, "wb").write(good.chain[:-100])
        case "a key for a certificate":
            pair.certificate = pair.key
        case "a certificate for a key":
            pair.key = pair.certificate
        case "a locked key":
            pair.write(authority.issue(password=b"secret"))
        case "a short key":
            pair.write(authority.issue("short"))
    return pair


@pytest.mark.parametrize("ruin, said", [
    ("no certificate", "cannot be read: no such file or directory; correct tls.certificate"),
    ("no key", "cannot be read: no such file or directory; correct tls.key"),
    ("a folder", "is not a certificate in PEM"),
    ("another's key", "does not belong to the certificate"),
    ("noise", "is not a certificate in PEM"),
    ("half a chain", "or one of its chain is damaged"),
    ("a key for a certificate", "is not a certificate in PEM"),
    ("a certificate for a key", "is not a private key in PEM"),
    ("a locked key", "is encrypted"),
    ("a short key", "does not allow"),
])
def test_a_pair_that_cannot_be_used_is_one_sentence_and_78(hub, authority, ruin, said):
    pair = ruined(authority, ruin)
    settings = {"ROOST_TLS_CERTIFICATE": pair.certificate, "ROOST_TLS_KEY": pair.key}
    for command in (["config", "check"], ["serve"]):
        done = hub.run(*command, check=False, **settings)
        assert done.returncode == 78
        [line] = done.stderr.splitlines()
        assert line.startswith("Error: ") and said in line and line.endswith("."), line
        assert done.stdout == ""


@pytest.mark.parametrize("missing, given", [("TLS_KEY", "tls.certificate"), ("TLS_CERTIFICATE", "tls.key")])
def test_half_a_pair_is_refused(hub, missing, given):
    done = hub.run("config", "check", check=False, **{f"ROOST_{missing}": ""})
    assert done.returncode == 78 and f"{given} (ROOST_{given.upper().replace('.', '_')}) is set" in done.stderr


@pytest.mark.parametrize("days, said", [((-30, -1), "it has expired"), ((1, 30), "it is not valid yet")])
def test_a_certificate_out_of_its_time_is_a_warning(hub, authority, days, said):
    pair = Pair(authority.folder, f"late-{next(_numbers)}").write(authority.issue(days=days))
    done = hub.run("config", "check", ROOST_TLS_CERTIFICATE=pair.certificate, ROOST_TLS_KEY=pair.key)
    assert "warning" in done.stderr and f"{said}; renew it." in done.stderr


# The doctor


@pytest.mark.parametrize("days, severity, said", [
    ((-1, 30.5), "good", "is good for 30 days, and its key fits."),
    ((-1, 10), "warning", "renew it, and the hub shows the new one within seconds."),
    ((-30, -1), "error", "it has expired; renew it."),
    (None, "error", "correct tls.certificate"),
])
def test_the_doctor_looks_at_the_certificate(hub, authority, days, severity, said):
    pair = authority.pair(f"seen-{next(_numbers)}", **({"days": days} if days else {}))
    if not days:
        pair.certificate += ".gone"
    done = hub.run("doctor", "--json", check=False, ROOST_TLS_CERTIFICATE=pair.certificate, ROOST_TLS_KEY=pair.key)
    [finding] = [finding for finding in json.loads(done.stdout)["findings"] if finding["subject"] == "certificate"]
    assert finding["severity"] == severity and said in finding["message"]
    assert done.returncode == (69 if severity == "error" else 0)
