"""Broadcasting over HTTP (wire-protocol A11)."""

import asyncio
import urllib.parse

import pytest

from support.certificates import Authority
from support.http import HTTPConnection
from support.tokens import token
from support.wsclient import Client

both_prefixes = pytest.mark.parametrize("prefix", ["/api/broadcast", "/realtime/v1/api/broadcast"])


def bearer(**claims):
    return {"authorization": "Bearer " + token(**claims)}


@both_prefixes
@pytest.mark.parametrize("version", [1, 2])
async def test_one_message(connect, http, topic, prefix, version):
    client = await connect(version)
    await client.join(topic)
    name = topic.removeprefix("realtime:")
    answer = await http.request("POST", f"{prefix}/{name}/events/news", b'{"n" : 1.0}', content_type="application/json", **bearer())
    assert (answer.status, answer.body) == (202, b"")
    assert answer.headers["access-control-allow-origin"] == "*"
    broadcast = await client.next("broadcast")
    assert broadcast.payload == {"type": "broadcast", "event": "news", "payload": {"n": 1.0}}


@both_prefixes
async def test_a_batch(connect, http, topic, prefix):
    client = await connect()
    await client.join(topic)
    name = topic.removeprefix("realtime:")
    messages = [{"topic": name, "event": f"e{n}", "payload": {"n": n}} for n in range(3)]
    messages[2]["id"] = "m-2"
    answer = await http.request("POST", prefix, {"messages": messages}, content_type="application/json", **bearer())
    assert (answer.status, answer.body) == (202, b"")
    got = [(await client.next("broadcast")).payload for _ in range(3)]
    assert [(m["event"], m["payload"]) for m in got] == [("e0", {"n": 0}), ("e1", {"n": 1}), ("e2", {"n": 2})]
    assert got[2]["meta"] == {"id": "m-2"} and "meta" not in got[0]


async def test_what_a_live_activity_shows_comes_from_the_hub_alone(connect, http, name):
    client = await connect()
    topic = f"live-activity:{name}"
    await client.join(f"realtime:{topic}")
    for event in ("summary", "end"):
        batch = {"messages": [{"topic": topic, "event": "e", "payload": {}}, {"topic": topic, "event": event, "payload": {}}]}
        for path, body in ((f"/{topic}/events/{event}", {}), ("", batch)):
            answer = await http.request("POST", f"/api/broadcast{path}", body, content_type="application/json", **bearer())
            assert answer.status == 403 and "come from the hub alone" in answer.json["message"]
    assert (await http.request("POST", f"/api/broadcast/{topic}/events/other", {}, **bearer())).status == 202
    assert (await client.next("broadcast")).payload["event"] == "other"
    assert not [message for message in await client.settled() if message.event == "broadcast"]


@pytest.mark.parametrize("headers", [
    {"authorization": "Bearer TOKEN"}, {"authorization": "bearer TOKEN"}, {"apikey": "TOKEN"},
    {"authorization": "Bearer TOKEN", "apikey": "nonsense"}])
async def test_where_the_token_may_stand(http, name, headers):
    headers = {key: value.replace("TOKEN", token()) for key, value in headers.items()}
    answer = await http.request("POST", f"/api/broadcast/{name}/events/e", {}, **headers)
    assert answer.status == 202


async def test_the_query_of_the_socket_url_is_left_in_by_js(http, name):
    answer = await http.request("POST", f"/api/broadcast/{name}/events/e?apikey={token()}&vsn=2.0.0", {})
    assert answer.status == 202


@pytest.mark.parametrize("headers", [
    {}, {"authorization": "Bearer nonsense"}, {"authorization": f"Bearer {token(lifetime=-5)}"},
    {"authorization": "Basic dXNlcjpwYXNz"}, {"apikey": ""}])
async def test_without_a_good_token(hub, name, headers):
    async with await HTTPConnection.open(hub.port, source="127.0.2.1") as http:
        answer = await http.request("POST", f"/api/broadcast/{name}/events/e", {}, **headers)
        assert (answer.status, answer.json) == (401, {"message": "Unauthorized"})


async def test_private_messages_need_the_right(connect, http, topic):
    name = topic.removeprefix("realtime:")
    secret, public = await connect(apikey=token("service_role")), await connect()
    await secret.join(topic, config={"private": True})
    await public.join(topic)
    path = f"/api/broadcast/{name}/events/e?private=true"
    answer = await http.request("POST", path, {}, **bearer())
    denied = f"You do not have permissions to write to this Channel topic: {name}"
    assert (answer.status, answer.json) == (403, {"message": denied, "topics": [name]})
    answer = await http.request("POST", path, {"n": 1}, **bearer(role="service_role"))
    assert answer.status == 202
    assert (await secret.next("broadcast")).payload["payload"] == {"n": 1}
    await http.request("POST", "/api/broadcast", {"messages": [{"topic": name, "event": "f", "payload": {}}]}, **bearer())
    assert (await public.next("broadcast")).payload["event"] == "f", "the private message did not come before"


async def test_percent_encoding(connect, http, name):
    odd, event = f"{name}/a b?ü%", "e/ü x"
    client = await connect()
    await client.join(f"realtime:{odd}")
    path = f"/api/broadcast/{urllib.parse.quote(odd, safe='')}/events/{urllib.parse.quote(event, safe='')}"
    answer = await http.request("POST", path, {"n": 1}, **bearer())
    assert answer.status == 202
    assert (await client.next("broadcast")).payload["event"] == event


@pytest.mark.parametrize("media_type", ["application/octet-stream", "audio/mpeg", "Image/PNG; q=1", "application/pdf"])
async def test_raw_bytes(connect, http, topic, media_type):
    two, one = await connect(2), await connect(1)
    await two.join(topic)
    await one.join(topic)
    data = bytes(range(256))
    path = f"/api/broadcast/{topic.removeprefix('realtime:')}/events/blob"
    answer = await http.request("POST", path, data, content_type=media_type, **bearer())
    assert answer.status == 202
    frame = await two.next("broadcast")
    assert frame.is_binary and (frame.payload.encoding, frame.payload.payload) == (0, data)
    await one.settled()
    assert one.messages == [], "version 1 has no form for bytes"


async def test_other_media_types(http, name):
    for other in ["text/xml", "text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded",
                  "application/ld+json", "audio", "audio/", "/mpeg", "audio mpeg/x", "audio/a/b"]:
        answer = await http.request("POST", f"/api/broadcast/{name}/events/e", b"<x/>", content_type=other, **bearer())
        assert (answer.status, answer.json) == (
            415, {"error": "Unsupported Media Type. Use application/json or application/octet-stream"}), other
    answer = await http.request("POST", f"/api/broadcast/{name}/events/e", {}, content_type="Application/JSON; charset=utf-8", **bearer())
    assert answer.status == 202


@pytest.mark.parametrize("path, body", [
    ("/api/broadcast/t/events/e", b"{broken"), ("/api/broadcast/t/events/e", b"[1]"), ("/api/broadcast/t/events/e", b'"text"'),
    ("/api/broadcast/t/events/e", b""), ("/api/broadcast/t/events/e", b'{"t":"\xff"}'),
    ("/api/broadcast", b"{broken"), ("/api/broadcast", b"{}"), ("/api/broadcast", b'{"messages":{}}'),
    ("/api/broadcast", b'{"messages":[7]}'), ("/api/broadcast", b'{"messages":[{"topic":"t","event":"e"}]}'),
    ("/api/broadcast", b'{"messages":[{"topic":"","event":"e","payload":{}}]}'),
    ("/api/broadcast", b'{"messages":[{"topic":"t","payload":{}}]}'),
    ("/api/broadcast", b'{"messages":[{"topic":"t","event":"e","payload":[1]}]}'),
])
async def test_bodies_that_cannot_be(http, path, body):
    answer = await http.request("POST", path, body, content_type="application/json", **bearer())
    assert answer.status == 422, answer.body
    assert isinstance(answer.json["errors"], dict)


async def test_a_batch_is_published_whole_or_not_at_all(connect, http, topic):
    client = await connect()
    await client.join(topic)
    name = topic.removeprefix("realtime:")
    bad = {"messages": [{"topic": name, "event": "good", "payload": {}}, {"topic": name, "event": "bad"}]}
    assert (await http.request("POST", "/api/broadcast", bad, **bearer())).status == 422
    await http.request("POST", f"/api/broadcast/{name}/events/fence", {}, **bearer())
    assert (await client.next("broadcast")).payload["event"] == "fence"


@pytest.mark.parametrize("body", [
    {"messages": [{"topic": "t", "event": "e", "payload": {"t": "x" * 3_100_000}}]}, {"t": "x" * 3_100_000}],
    ids=["batch", "single"])
async def test_a_payload_over_the_limit(http, body):
    """What a socket may not send, HTTP may not either; Python's clients would be cut off by it."""
    path = "/api/broadcast" if "messages" in body else "/api/broadcast/t/events/e"
    answer = await http.request("POST", path, body, content_type="application/json", **bearer())
    assert answer.status == 422
    assert "Payload size exceeds" in answer.body.decode()


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "HEAD"])
async def test_other_methods(http, method):
    body = {} if method in ("PUT", "PATCH") else None
    # What is sent to with a POST is read with a GET (test_sse.py).
    paths = ["/api/broadcast"] + ["/realtime/v1/api/broadcast/t/events/e"] * (method != "GET")
    for path in paths:
        answer = await http.request(method, path, body, **bearer())
        assert answer.status == 405, path


@pytest.mark.parametrize("path", [
    "/", "/api", "/api/broadcast/t", "/api/broadcast/t/events/", "/api/broadcasts", "/demo/",
    "/metrics"])
async def test_nothing_else_is_served(http, path):
    assert (await http.request("POST", path, {}, **bearer())).status == 404
    # Events are read there (test_sse.py), by whoever has a token.
    assert (await http.request("GET", path)).status == (401 if path == "/api/broadcast/t/events" else 404)


@both_prefixes
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
async def test_addresses_that_name_no_topic_or_no_event(hub, prefix, method):
    """One of them ended the hub, whoever asked for it: where the topic is missing, one slash is the first and the marker's."""
    async with await HTTPConnection.open(hub.port) as http:
        for rest in ("/", "//", "/events", "/events/", "/events/e", "//events/e", "/t/events/", "/events/events/", "/events/e/",
                     "%2fevents%2fe", "/%2fevents/e", "/t", "/t/event/e", "s/t/events/e"):
            answer = await http.request(method, prefix + rest, b"{}", **bearer())
            assert answer.status == (204 if method == "OPTIONS" else 404), rest


async def test_a_post_needs_a_length(hub):
    async with await HTTPConnection.open(hub.port) as http:
        answer = await http.request("POST", "/api/broadcast", **bearer())
        assert answer.status == 411


async def test_a_body_over_the_limit(hub):
    async with await HTTPConnection.open(hub.port) as http:
        # The answer comes before the body was sent, as it should.
        answer = await http.request("POST", "/api/broadcast", b"", content_length="5000001", **bearer())
        assert answer.status == 413


async def test_a_body_over_the_limit_that_is_sent_at_once(hub):
    """Most libraries send first and read then; a reset would cost them the answer."""
    async with await HTTPConnection.open(hub.port) as http:
        answer = await http.request("POST", "/api/broadcast", b"x" * 5_000_001, **bearer())
        assert answer.status == 413


@both_prefixes
async def test_cors_preflight(http, prefix):
    answer = await http.request(
        "OPTIONS", f"{prefix}/t/events/e", origin="https://app.example", access_control_request_method="POST",
        access_control_request_headers="authorization,apikey,content-type")
    assert answer.status in (200, 204)
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "POST" in answer.headers["access-control-allow-methods"]
    allowed = answer.headers["access-control-allow-headers"].lower()
    assert all(name in allowed for name in ("authorization", "apikey", "content-type", "x-client-info"))


async def test_errors_can_be_read_from_other_origins(http, name):
    answer = await http.request("POST", f"/api/broadcast/{name}/events/e", b"<x/>", content_type="text/xml", **bearer())
    assert answer.headers["access-control-allow-origin"] == "*"


async def test_one_connection_serves_many_requests(connect, http, topic):
    client = await connect()
    await client.join(topic)
    path = f"/api/broadcast/{topic.removeprefix('realtime:')}/events/e"
    for number in range(20):
        # Refusals keep the connection, too.
        assert (await http.request("POST", path, {"n": number}, **bearer())).status == 202
        assert (await http.request("POST", path, b"[", **bearer())).status == 422
    for number in range(20):
        assert (await client.next("broadcast")).payload["payload"] == {"n": number}


@pytest.mark.parametrize("is_secure", [False, True], ids=["plain", "tls"])
async def test_requests_that_come_in_one_piece(own_hub, is_secure, tmp_path):
    """Pipelining (RFC 9112, section 9.3.2): answers in order. On a hub of its own with one loop, which all others would wait for."""
    if is_secure:
        authority = Authority(tmp_path)
        own_hub.secure(authority.pair(), authority.trust)
    own_hub.environment["ROOST_LOOPS"] = "1"
    own_hub.start()
    async with await Client.connect(own_hub.port, tls=own_hub.trust) as client:
        await client.join("realtime:t")
        for headers, status in ((bearer(), 202), ({}, 401)):
            lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            async with await HTTPConnection.open(own_hub.port, tls=own_hub.trust) as http:
                for number in range(3):
                    body = b'{"n":%d}' % number
                    http.gather((f"POST /api/broadcast/t/events/e HTTP/1.1\r\nhost: x\r\n{lines}"
                                 f"content-length: {len(body)}\r\n\r\n").encode() + body)
                http.flush()
                assert [(await http.answer()).status for _ in range(3)] == [status] * 3
            await client.settled()  # the loop still turns
            got = [m.payload["payload"] for m in client.messages]
            client.messages.clear()
            assert got == [{"n": number} for number in range(3 if status == 202 else 0)]


async def test_a_body_that_comes_in_pieces(connect, http, topic):
    client = await connect()
    await client.join(topic)
    body = b'{"t":"' + b"y" * 200_000 + b'"}'
    http.write((f"POST /api/broadcast/{topic.removeprefix('realtime:')}/events/e HTTP/1.1\r\nhost: x\r\n"
                f"authorization: {bearer()['authorization']}\r\ncontent-length: {len(body)}\r\n\r\n").encode())
    for start in range(0, len(body), 50_000):
        http.write(body[start:start + 50_000])
        await http.writer.drain()
        await asyncio.sleep(0.01)
    assert (await http.answer()).status == 202
    assert len((await client.next("broadcast")).payload["payload"]["t"]) == 200_000


async def test_http_1_0_is_closed_after_the_answer(hub, name):
    async with await HTTPConnection.open(hub.port) as http:
        http.write(f"POST /api/broadcast/{name}/events/e HTTP/1.0\r\nauthorization: {bearer()['authorization']}\r\n"
                   "content-length: 2\r\n\r\n{}".encode())
        assert (await http.answer()).status == 202
        await http.ended()


async def test_the_operators_pages(hub):
    async with await HTTPConnection.open(hub.ops_port) as ops:
        assert (await ops.request("GET", "/livez")).status == 200
        assert (await ops.request("GET", "/readyz")).status == 200
        metrics = await ops.request("GET", "/metrics")
        assert b"# TYPE roost_connections gauge" in metrics.body
        assert (await ops.request("GET", "/nothing")).status == 404
        assert (await ops.request("POST", "/api/broadcast/t/events/e", {}, **bearer())).status in (404, 405)
    async with await HTTPConnection.open(hub.port) as public:
        assert (await public.request("GET", "/metrics")).status == 404
