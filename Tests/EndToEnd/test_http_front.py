"""HTTP as the hub itself reads it, byte by byte: what a client, a proxy or an attacker sees on the wire.

Every connection is a raw socket; the requests are written by hand.
"""

import asyncio
import base64
import itertools
import json
import re
import time

import pytest
from websockets.asyncio.client import connect as websockets_connect
from websockets.exceptions import InvalidStatus

from support.bounds import Elapsed
from support.certificates import Authority
from support.deadline import PATIENCE, eventually
from support.hub import Hub
from support.http import HTTPConnection
from support.tokens import token
from support.websocket import CONTINUATION, TEXT, WebSocket, frame
from support.wsclient import Client

MEGABYTE = 1 << 20
PATH = "/realtime/v1/websocket"


@pytest.fixture(scope="module")
def front(cluster, tmp_path_factory):
    """Two loops, because some of this is counted over all of them."""
    folder = tmp_path_factory.mktemp("front")
    hub = Hub(
        cluster.create_database("front"), ROOST_LOOPS="2", ROOST_HTTP_SOCKET=f"{folder}/hub.sock",
        ROOST_LIMITS_UNFINISHED_BYTES=str(16 * MEGABYTE))
    hub.socket = f"{folder}/hub.sock"
    try:
        hub.run("migrate")
        yield hub.start()
    finally:
        hub.remove()


@pytest.fixture
async def http(front):
    async with await HTTPConnection.open(front.port) as connection:
        yield connection


def bearer(**claims):
    return f"authorization: Bearer {token(**claims)}\r\n"


def post(path="/api/broadcast/t/events/e", body=b"{}", lines=None, method="POST"):
    head = f"{method} {path} HTTP/1.1\r\nhost: x\r\n{bearer() if lines is None else lines}content-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def get(path="/healthcheck", lines="", method="GET", version="1.1"):
    return f"{method} {path} HTTP/{version}\r\nhost: x\r\n{lines}\r\n".encode()


KEY = base64.b64encode(bytes(16)).decode()
UPGRADE = {"upgrade": "websocket", "connection": "Upgrade", "sec-websocket-key": KEY, "sec-websocket-version": "13"}


def upgrade(method="GET", version="1.1", path=PATH, behind="", **changes):
    lines = UPGRADE | {name.replace("_", "-"): value for name, value in changes.items()}
    text = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value is not None)
    return f"{method} {path}?vsn=2.0.0&apikey={token()} HTTP/{version}\r\nhost: x\r\n{text}{behind}\r\n".encode()


def heartbeat(number):
    return frame(TEXT, json.dumps([None, str(number), "phoenix", "heartbeat", {}]))


async def replies(http, count):
    """The refs of so many replies to heartbeats."""
    socket = WebSocket(http.reader, http.writer)
    return [json.loads((await socket.receive())[1])[1] for _ in range(count)]


async def raw(http, within=PATIENCE):
    """All that comes until the end."""
    return await http.ended(within)


# The form of answers


async def test_heads_of_answers(http):
    http.write(get(method="HEAD"))
    answer = await http.answer(has_body=False)
    assert (answer.status, answer.headers["content-length"]) == (200, "2"), "the length that GET has"
    http.write(get())
    assert (await http.answer()).body == b"ok"
    http.write(get("/api/broadcast", method="OPTIONS"))
    answer = await http.answer()
    assert answer.status == 204 and "content-length" not in answer.headers
    http.write(get("/api/broadcast"))
    answer = await http.answer()
    assert (answer.status, answer.headers["allow"]) == (405, "POST, OPTIONS")
    http.write(post(lines=""))
    answer = await http.answer()
    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    http.write(post(body=b"["))
    line = await http.reader.readline()
    assert line == b"HTTP/1.1 422 Unprocessable Content\r\n"


async def test_an_error_says_what_clients_show(http):
    """supabase-js' httpSend shows `error` or `message`, or else the reason phrase."""
    for body, sentence in ((b"[1]", "payload must be an object"), (b"{", "payload is not valid JSON")):
        http.write(post(body=body))
        answer = await http.answer()
        assert (answer.status, answer.json["message"]) == (422, sentence)
        assert answer.json["errors"]


async def test_methods(front):
    for method, status in (("TRACE", 405), ("PUT", 405), ("BREW", 501), ("get", 501)):
        async with await HTTPConnection.open(front.port) as http:
            http.write(get("/api/broadcast", method=method))
            answer = await http.answer()
            assert answer.status == status, method
            assert (status == 405) == ("allow" in answer.headers)
    async with await HTTPConnection.open(front.port) as http:
        http.write(b"CONNECT elsewhere:443 HTTP/1.1\r\nhost: elsewhere:443\r\n\r\n")
        assert (await http.answer()).status == 405


@pytest.mark.parametrize("data, status", [
    (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nhost: x\r\n\r\n", 414),
    (b"GET / HTTP/1.1\r\nhost: x\r\ncookie: " + b"a" * 20_000 + b"\r\n\r\n", 431),
    (b"GET / HTTP/1.1\r\nhost: x\r\n" + b"".join(b"x-%d: 1\r\n" % n for n in range(150)) + b"\r\n", 431),
    (b"GET / HTTP/1.1\r\nhost: x\r\nno colon\r\n\r\n", 400), (b"GET / HTTP/1.1\r\nhost: x\r\na: 1\r\n 2\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n", 400), (b"GET / HTTP/2.0\r\n\r\n", 505),
    (b"GET / HTTP/1.1\r\n\r\n", 400), (b"\x16\x03\x01\x02\x00\x01\x00", 400)])
async def test_what_is_no_request_is_answered_and_closed(front, data, status):
    async with await HTTPConnection.open(front.port) as http:
        http.write(data + get())
        answer = await http.answer()
        assert (answer.status, answer.headers["connection"]) == (status, "close")
        assert answer.json["error"]
        assert await raw(http) == b"", "what came behind it was answered"


@pytest.mark.parametrize("data, status, is_kept", [
    (get("/nowhere"), 404, True), (get("/api/broadcast", method="TRACE"), 405, True), (get("/nowhere", "connection: close\r\n"), 404, False),
    (get("/nowhere", "connection: a, Close, upgrade\r\nupgrade: h2c\r\n"), 404, False),
    # What is no method may have a body that is framed in a way that nobody here knows.
    (get("/nowhere", method="BREW"), 501, False), (b"CONNECT x:443 HTTP/1.1\r\nhost: x:443\r\n\r\n", 405, False),
    (post(body=b""), 422, True), (post(lines="", body=b"x" * 60_000), 401, True), (post(lines="", body=b"x" * 70_000), 401, False),
    (post(lines="transfer-encoding: chunked\r\n", body=b"").replace(b"content-length: 0\r\n", b""), 401, False),
    (get("/nowhere", "expect: 100-continue\r\ncontent-length: 2\r\n", method="POST") + b"{}", 404, False)],
    # The requests have tokens, and tokens have times: they are no names.
    ids=list(map(str, range(11))))
async def test_what_is_said_behind_an_answer_is_read_or_the_connection_ends(http, data, status, is_kept):
    http.write(data + get())
    answer = await http.answer()
    assert (answer.status, "close" in answer.headers.get("connection", "")) == (status, not is_kept)
    if is_kept:
        assert (await http.answer()).body == b"ok"
    else:
        assert await raw(http) == b""


async def test_a_refused_upgrade_is_the_last_answer(front):
    for changes in ({"sec_websocket_key": "x"}, {"path": "/elsewhere"}, {"transfer_encoding": "chunked"}, {"content_length": "5"}):
        async with await HTTPConnection.open(front.port) as http:
            http.write(upgrade(**changes) + get())
            assert "close" in (await http.answer()).headers["connection"]
            assert await raw(http) == b"", changes


async def test_pipelining(connect_front, http):
    client = await connect_front()
    await client.join("realtime:t")
    requests = [post(body=b'{"n":%d}' % n) for n in range(300)]
    chunks = get("/healthcheck")
    http.write(b"".join(requests) + chunks)
    assert [(await http.answer()).status for _ in requests] == [202] * 300
    assert (await http.answer()).body == b"ok"
    assert [(await client.next("broadcast")).payload["payload"]["n"] for _ in requests] == list(range(300))


async def test_a_client_that_asks_much_and_reads_late_gets_all_of_it_in_order(front):
    async with await HTTPConnection.open(front.ops_port) as http:
        expected = [(await http.request("GET", path)).body for path in ("/dashboard.js", "/dashboard.css")]
        memory = front.resident_bytes
        http.write((get("/dashboard.js") + get("/dashboard.css")).replace(b"host: x", b"host: localhost") * 300)
        http.reader._transport.pause_reading()
        async with await HTTPConnection.open(front.ops_port) as other:
            for _ in range(20):
                assert (await other.request("GET", "/livez")).status == 200
        assert front.resident_bytes < memory + 8 * MEGABYTE, "one answer waits, and not all of them"
        http.reader._transport.resume_reading()
        for _ in range(300):
            assert [(await http.answer()).body for _ in range(2)] == expected


async def test_chunked_bodies(connect_front, http):
    client = await connect_front()
    await client.join("realtime:chunked")
    http.write(f"POST /api/broadcast/chunked/events/e HTTP/1.1\r\nhost: x\r\n{bearer()}transfer-encoding: chunked\r\n\r\n".encode())
    for piece in (b'{"a', b'":1', b"}"):
        http.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        await http.writer.drain()
        await asyncio.sleep(0.01)
    http.write(b"0\r\n\r\n" + get())
    assert [(await http.answer()).status for _ in range(2)] == [202, 200]
    assert (await client.next("broadcast")).payload["payload"] == {"a": 1}


async def test_100_continue(front, http):
    head = post(body=b"{}", lines=bearer() + "expect: 100-continue\r\n")[:-2]
    http.write(head)
    assert await http.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    http.write(b"{}")
    assert (await http.answer()).status == 202
    async with await HTTPConnection.open(front.port) as stranger:
        stranger.write(post(lines="expect: 100-continue\r\n")[:-2])
        assert (await stranger.answer()).status == 401, "who is not let in is not told to go on"
        assert await raw(stranger) == b""


async def test_http_1_0(http):
    http.write(get(lines="connection: keep-alive\r\n", version="1.0") + get())
    answer = await http.answer()
    assert (answer.body, answer.headers["connection"]) == (b"ok", "close")
    assert await raw(http) == b""


async def test_an_answer_is_one_write(http):
    http.write(get())
    data = await http.reader.read(65_536)
    assert data.startswith(b"HTTP/1.1 200 OK\r\n") and data.endswith(b"\r\n\r\nok")


# Upgrades


@pytest.mark.parametrize("frames", [1, 3, 100, 700])
async def test_frames_in_the_packet_of_the_upgrade(front, encrypted, frames):
    for hub in (front, encrypted):
        async with await HTTPConnection.open(hub.port, tls=hub.trust) as http:
            http.write(upgrade() + b"".join(heartbeat(n) for n in range(frames)))
            assert (await http.answer()).status == 101
            assert await replies(http, frames) == [str(n) for n in range(frames)]


async def test_half_a_frame_in_the_packet_of_the_upgrade(front):
    async with await HTTPConnection.open(front.port) as http:
        data = upgrade() + heartbeat(1) + heartbeat(2)
        http.write(data[:-10])
        assert (await http.answer()).status == 101
        http.write(data[-10:])
        assert await replies(http, 2) == ["1", "2"]


async def test_an_upgrade_behind_requests_on_a_connection_that_was_kept(front, encrypted):
    for pause, hub in itertools.product((0, 0.02), (front, encrypted)):
        async with await HTTPConnection.open(hub.port, tls=hub.trust) as http:
            http.write(get() + post())
            await asyncio.sleep(pause)
            data = upgrade() + heartbeat(1)
            http.write(data[:50])
            await asyncio.sleep(pause)
            http.write(data[50:])
            assert [(await http.answer()).status for _ in range(3)] == [200, 202, 101]
            assert await replies(http, 1) == ["1"]


async def test_the_answer_to_an_upgrade(http):
    """Headers that libwebsockets would misread, or answer, are none of its business."""
    http.write(upgrade(
        sec_websocket_protocol="phoenix, other", x_auth="a", sec_websocket_extensions="permessage-deflate",
        sec_websocket_version=" 13\t"))
    answer = await http.answer()
    assert answer.status == 101
    assert "sec-websocket-protocol" not in answer.headers and "sec-websocket-extensions" not in answer.headers
    # RFC 6455, section 1.3, for a key of zeros.
    assert answer.headers["sec-websocket-accept"] == "ICX+Yqv66kxgM0FcWaLWlFLwTAI="
    http.write(heartbeat(1))
    assert await replies(http, 1) == ["1"]


@pytest.mark.parametrize("changes, status, sentence", [
    ({"method": "POST", "content_length": "0"}, 405, "GET"), ({"method": "PUT"}, 405, "GET"), ({"method": "HEAD"}, 426, None),
    ({"version": "1.0"}, 426, "WebSocket"), ({"sec_websocket_key": "short"}, 400, "Key"),
    ({"sec_websocket_key": None}, 400, "Key"), ({"sec_websocket_version": "8"}, 426, "13"),
    ({"sec_websocket_version": None}, 426, "13"), ({"connection": "keep-alive"}, 400, "Connection"),
    ({"upgrade": None}, 426, "WebSocket"), ({"content_length": "5"}, 400, "body"), ({"path": "/elsewhere"}, 404, PATH),
    ({"path": PATH + "/"}, 404, PATH)])
async def test_upgrades_that_are_none(front, changes, status, sentence):
    async with await HTTPConnection.open(front.port) as http:
        http.write(upgrade(**changes))
        answer = await http.answer(has_body=changes.get("method") != "HEAD")
        assert answer.status == status
        if sentence:
            assert sentence in answer.json["error"]
        if status == 426:
            assert answer.headers["upgrade"] == "websocket" and "upgrade" in answer.headers["connection"]
        if "sec_websocket_version" in changes:
            assert answer.headers["sec-websocket-version"] == "13"
        if status == 405:
            assert answer.headers["allow"] == "GET, HEAD"


async def test_a_plain_get_says_what_it_is(http):
    http.write(get(PATH))
    answer = await http.answer()
    assert answer.status == 426
    assert "address of a WebSocket" in answer.json["error"]
    http.write(get(f"{PATH}?apikey={token(lifetime=-5)}"))
    answer = await http.answer()
    assert (answer.status, answer.json["error"]) == (401, "Token has expired"), "curl says why, as the README says"
    http.write(get(f"{PATH}?apikey={token()}"))
    assert (await http.answer()).status == 426
    http.write(get())
    assert (await http.answer()).status == 200, "the connection is kept"


async def test_refused_upgrades_are_read_by_websockets(front, encrypted):
    """PyPI's `websockets`, which takes no answer but HTTP/1.1: on a plain port, and over TLS."""
    for hub in (front, encrypted):
        for query, status, sentence in (
                ("", 401, "API key is missing"), ("apikey=x", 401, "JWT"), (f"apikey={token()}&vsn=9", 403, "")):
            scheme = "wss" if hub.trust else "ws"
            with pytest.raises(InvalidStatus) as refused:
                async with websockets_connect(f"{scheme}://127.0.0.1:{hub.port}{PATH}?{query}", ssl=hub.trust):
                    pass
            response = refused.value.response
            assert (response.status_code, sentence in response.body.decode()) == (status, True), response


# Whoever is not entitled costs nothing


async def test_bodies_of_strangers_are_not_kept(front):
    async def stranger():
        http = await HTTPConnection.open(front.port)
        http.write(post(body=b"", lines="content-length: 5000000\r\n").replace(b"content-length: 0\r\n", b""))
        assert (await http.answer(within=60)).status == 401
        try:
            http.write(b"x" * 5_000_000)
            await http.writer.drain()
        except ConnectionError:
            pass
        return http

    before = front.resident_bytes
    strangers = []
    for _ in range(6):
        strangers += await asyncio.gather(*(stranger() for _ in range(50)))
        assert front.resident_bytes < before + 16 * MEGABYTE
    for http in strangers:
        http.writer.close()


def refused_as_unfinished(front):
    name = 'roost_refused_total{limit="unfinished_bytes"}'
    return next(float(line.split()[1]) for line in front.read_metrics()[1].splitlines() if line.startswith(name))


async def test_unfinished_requests_share_a_cap(front, http):
    """16 MiB here; four bodies of 5 MB are over it."""
    connections = [await HTTPConnection.open(front.port) for _ in range(4)]
    statuses = []

    async def send(connection):
        connection.write(post(body=b"", lines=bearer() + "content-length: 4999999\r\n").replace(b"content-length: 0\r\n", b""))
        connection.write(b"x" * 4_900_000)
        statuses.append(await connection.answer(within=30))

    tasks = [asyncio.create_task(send(connection)) for connection in connections]
    await eventually(lambda: statuses, what=lambda: "none of the bodies was refused")
    assert statuses[0].status == 503 and statuses[0].headers["retry-after"] == "1"
    await eventually(lambda: refused_as_unfinished(front) >= len(statuses), what="the figure")
    http.write(post())
    assert (await http.answer()).status == 202, "others are served"
    for task in tasks:
        task.cancel()
    for connection in connections:
        connection.writer.close()
    # What they held is given back: a large body is taken again.
    body = json.dumps({"t": "x" * 2_900_000}).encode()

    async def is_taken():
        async with await HTTPConnection.open(front.port) as other:
            other.write(post(body=body))
            return (await other.answer()).status == 202
    await eventually(is_taken, what="the bytes given back")


def unread(port):
    """Bytes that came for a port and were not read yet (proc(5), /proc/net/tcp)."""
    with open("/proc/net/tcp") as table:
        rows = [line.split() for line in table][1:]
    return sum(int(row[4].split(":")[1], 16) for row in rows if int(row[1].split(":")[1], 16) == port and row[3] == "01")


async def test_who_sends_little_is_heard_though_the_cap_is_full(front, http):
    """16 MiB here, of which others hold all but a few bytes."""
    large = [await HTTPConnection.open(front.port) for _ in range(4)]
    for connection, size in zip(large, (4_800_000, 4_800_000, 4_800_000, 2_377_000)):
        connection.write(post(body=b"", lines=bearer() + "content-length: 4999999\r\n").replace(b"content-length: 0\r\n", b""))
        connection.write(b"x" * size)
        await connection.writer.drain()
        await eventually(lambda: unread(front.port) == 0, what="all of it read")
    data = post(body=json.dumps({"t": "x" * 15_000}).encode())
    http.write(data[:-1])
    await eventually(lambda: unread(front.port) == 0, what="all of it read")
    async with await HTTPConnection.open(front.port) as over:
        over.write(post(body=b"x" * 20_000)[:-1])
        assert (await over.answer()).status == 503, "the cap is full"
    http.write(data[-1:])
    assert (await http.answer()).status == 202
    for connection in large:
        connection.writer.close()


async def test_unfinished_messages_count_too(front):
    """Fragments without an end; the socket that takes it over the cap is told to come back (1013)."""
    sockets = []
    piece = frame(CONTINUATION, b"x" * 900_000, fin=False)
    try:
        for _ in range(5):
            http = await HTTPConnection.open(front.port)
            sockets.append(http)
            http.write(upgrade() + frame(TEXT, b"x", fin=False))
            assert (await http.answer()).status == 101
        closed = []

        async def fill(http):
            socket = WebSocket(http.reader, http.writer)
            for _ in range(5):
                http.write(piece)
                await http.writer.drain()
            while True:
                await socket.receive()

        async def watched(http):
            try:
                await fill(http)
            except Exception as error:  # noqa: BLE001: which one it is, is looked at below
                closed.append(error)

        tasks = [asyncio.create_task(watched(http)) for http in sockets]
        await eventually(lambda: closed, what=lambda: "no socket was closed")
        assert getattr(closed[0], "code", None) == 1013, closed
        for task in tasks:
            task.cancel()
    finally:
        for http in sockets:
            http.writer.close()


async def test_a_failing_address_is_counted_over_all_loops(cluster):
    """Eleven bad tokens, one more than may be, are answered at once, whichever loops they reach; the next has to wait."""
    hub = Hub(cluster.create_database("failing"), ROOST_LOOPS="4")
    try:
        hub.run("migrate")
        hub.start()
        for _ in range(11):
            async with await HTTPConnection.open(hub.port, source="127.0.7.7") as http:
                http.write(upgrade().replace(token().encode(), b"x"))
                assert (await http.answer()).status == 401
        began = time.monotonic()
        async with await HTTPConnection.open(hub.port, source="127.0.7.7") as http:
            http.write(upgrade().replace(token().encode(), b"x"))
            assert (await http.answer()).status == 401
        assert time.monotonic() - began >= 1.9
    finally:
        hub.remove()


# `private`


@pytest.mark.parametrize("value, is_private", [
    ("true", True), ("1", True), ("false", False), ("0", False), ("True", None), ("t", None), ("yes", None), ("", None)])
async def test_private_in_the_query(http, value, is_private):
    http.write(post(f"/api/broadcast/t/events/e?private={value}"))
    answer = await http.answer()
    assert answer.status == {True: 403, False: 202, None: 422}[is_private], answer.body
    if is_private is None:
        assert answer.json["message"] == "private must be true or false"


@pytest.mark.parametrize("value, is_private", [
    (True, True), ("true", True), ("1", True), (False, False), ("false", False), ("0", False), (None, False),
    (1, None), (0, None), ("t", None), ("True", None), ("", None), ([], None), ({}, None)])
async def test_private_in_a_batch(http, value, is_private):
    message = {"topic": "t", "event": "e", "payload": {}, "private": value}
    http.write(post("/api/broadcast", json.dumps({"messages": [message]}).encode()))
    answer = await http.answer()
    assert answer.status == {True: 403, False: 202, None: 422}[is_private], answer.body


# The operator's port


@pytest.mark.parametrize("host, status", [
    ("127.0.0.1:4001", 200), ("localhost", 200), ("[::1]:4001", 200), ("127.0.0.2", 200), ("evil.example", 403),
    ("evil.example:4001", 403), ("127.0.0.1.evil.example", 403)])
async def test_the_operators_port_answers_to_loopback_names(front, host, status):
    """Or a page of anybody's, in a browser on this machine, could read it by a name that it makes resolve to 127.0.0.1."""
    async with await HTTPConnection.open(front.ops_port) as http:
        for path in ("/", "/metrics", "/readyz", "/livez", "/dashboard.js"):
            answer = await http.request("GET", path, host=host)
            assert answer.status in ((403,) if status == 403 else (200, 404)), path
        http.write(b"GET /readyz HTTP/1.0\r\n\r\n")
        assert (await http.answer()).status == 200, "a probe without a Host is no browser"


async def test_the_operators_socket_by_http(front):
    async with await HTTPConnection.open(front.ops_port) as http:
        http.write(b"GET /ops/websocket HTTP/1.1\r\nhost: localhost\r\n\r\n")
        answer = await http.answer()
        assert (answer.status, answer.headers["upgrade"]) == (426, "websocket")


async def test_the_unix_socket_speaks_the_same(front):
    reader, writer = await asyncio.open_unix_connection(front.socket)
    http = HTTPConnection(reader, writer)
    http.write(get() + upgrade() + heartbeat(1))
    assert [(await http.answer()).status for _ in range(2)] == [200, 101]
    assert await replies(http, 1) == ["1"]
    writer.close()


# Time


async def test_what_drips_is_ended(own_hub):
    """A head within 10 seconds, a body too, here, whatever comes meanwhile; and the idle are left alone."""
    # 30 seconds are what a body has where nobody sets it.
    own_hub.environment["ROOST_TIMEOUTS_BODY"] = "10"
    own_hub.start()

    async def drip(head):
        elapsed = Elapsed()
        async with await HTTPConnection.open(own_hub.port) as http:
            http.write(head)
            answer = asyncio.create_task(http.answer(within=60))
            while not answer.done():
                http.write(b"x")
                await asyncio.wait({answer}, timeout=0.5)
            assert answer.result().status == 408 and elapsed.seconds > 8
            elapsed.assert_at_most(25, "the end of what drips")

    async with await HTTPConnection.open(own_hub.port) as idle:
        idle.write(get())
        await idle.answer()
        await asyncio.gather(
            drip(b"GET / HTTP/1.1\r\nhost: "),
            drip(post(body=b"", lines=bearer() + "content-length: 1000\r\n").replace(b"content-length: 0\r\n", b"")))
        idle.write(get())
        assert (await idle.answer()).status == 200


# Where the hub ends TLS


@pytest.fixture(scope="module")
def encrypted(cluster, tmp_path_factory):
    authority = Authority(tmp_path_factory.mktemp("certificates"))
    hub = Hub(cluster.create_database("front_tls"), ROOST_LOOPS="1").secure(authority.pair(), authority.trust)
    try:
        hub.run("migrate")
        yield hub.start()
    finally:
        hub.remove()


def chunked(body, lines=""):
    return (f"POST /api/broadcast/t/events/e HTTP/1.1\r\nhost: x\r\n{bearer()}transfer-encoding: chunked\r\n{lines}\r\n{body}").encode()


def last():
    return get(lines="connection: close\r\n")


def hiding(name):
    """A request in the body of another, behind a header whose name is the beginning of one that a careless parser knows."""
    hidden = post("/api/broadcast/t/events/hidden")
    return get(lines=f"{name}: a\r\ncontent-length: {len(hidden)}\r\n") + hidden + last()


#: What is sent on one connection, and the statuses of all that comes.
EXCHANGES = {
    "three requests": (lambda: get() + get() + last(), [200, 200, 200]),
    "a call and a request": (lambda: post() + last(), [202, 200]),
    "a call without a token": (lambda: post(lines="") + last(), [401, 200]),
    "chunks": (lambda: chunked("2\r\n{}\r\n0\r\n\r\n", "connection: close\r\n"), [202]),
    "a broken chunk": (lambda: chunked("x\r\n"), [400]),
    "HTTP/1.0": (lambda: get("/elsewhere", version="1.0"), [404]),
    "HEAD": (lambda: get(method="HEAD", version="1.0"), [200]),
    "no upgrade": (lambda: get(PATH, lines="connection: close\r\n"), [426]),
    "a bad upgrade": (lambda: upgrade(sec_websocket_key="x"), [400]),
    "a bad token": (lambda: upgrade().replace(token().encode(), b"x"), [401]),
    "no colon": (lambda: get(lines="no colon\r\n"), [400]),
    "a bare line feed": (lambda: get(lines="a: b\nc: d\r\n"), [400]),
    "a long target": (lambda: get("/" + "a" * 9000), [414]),
    "a long header": (lambda: get(lines="a: " + "b" * 20_000 + "\r\n"), [431]),
    "another version": (lambda: get(version="2.0"), [505]),
    **{f"hidden behind {name}": (lambda name=name: hiding(name), [200, 200]) for name in ("X", "X-Auth", "If", "Proxy", "Content")},
}


@pytest.mark.parametrize("what", EXCHANGES)
async def test_every_answer_is_the_same_over_tls(front, encrypted, what):
    data, statuses = EXCHANGES[what]
    sent, answers = data(), []
    for hub in (front, encrypted):
        async with await HTTPConnection.open(hub.port, tls=hub.trust) as http:
            http.write(sent)
            answers.append(await raw(http))
    assert answers[0] == answers[1]
    assert [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+) ", answers[1])] == statuses


@pytest.fixture
async def connect_front(front):
    clients = []

    async def open_client():
        clients.append(await Client.connect(front.port))
        return clients[-1]

    yield open_client
    for client in clients:
        await client.close()
