"""Tokens: where they may stand, who may sign them, and that nobody ever sees one."""

import asyncio
import base64
import json
import subprocess
import threading
import time
import urllib.parse

import pytest

from support.bounds import Elapsed
from support.deadline import eventually
from support.http import HTTPConnection
from support.hub import BINARY, Hub
from support.keys import Key, KeyServer, key_set
from support.tokens import SECRET, signed, token
from support.websocket import Refused, WebSocket
from support.wsclient import Client

PATH = "/realtime/v1/websocket"
#: Seconds between two times that keys are fetched (KeyRefresher).
PAUSE = 5
# The hub answers late where an address keeps failing; so every refusal of this file has its own.
_hosts = iter(f"127.0.2.{number}" for number in range(1, 250))


async def outcome(hub, query="", headers=None):
    """None where the upgrade succeeds, else status and text."""
    path = f"{PATH}?vsn=2.0.0" + (f"&{urllib.parse.urlencode(query)}" if query else "")
    try:
        await (await WebSocket.open(hub.port, path, headers, source=next(_hosts))).close()
        return None
    except Refused as answer:
        return answer.status, json.loads(answer.body)["error"]


UNKNOWN = (401, "Failed to generate JWT signer, check your JWT secret or JWKS configuration")
SIGNATURE = (401, "Failed to validate JWT signature")
MALFORMED = (401, "The token provided is not a valid JWT")
EXPIRED = (401, "Token has expired")


# Where a token may stand

@pytest.mark.parametrize("place", [
    ({}, {"x-api-key": "TOKEN"}), ({}, {"Authorization": "Bearer TOKEN"}), ({}, {"authorization": "bearer TOKEN"}),
    ({"apikey": "TOKEN"}, {}), ({"token": "TOKEN"}, {}), ({}, {"apiKey": "TOKEN"}),
    ({"apikey": "sb_publishable_abc"}, {"Authorization": "Bearer TOKEN"}),
    ({"apikey": "sb_publishable_abc", "token": "TOKEN"}, {}),
    ({"apikey": "TOKEN"}, {"x-api-key": "sb_secret_abc", "Authorization": "Bearer sb_secret_abc"}),
    ({"apikey": "TOKEN"}, {"Authorization": "Basic bWU6c2VjcmV0"}),
    ({"token": "TOKEN", "apikey": ""}, {}),
], ids=str)
async def test_where_the_token_of_an_upgrade_may_stand(hub, place):
    def filled(words, text):
        return {key: value.replace("TOKEN", text) for key, value in words.items()}
    query, headers = place
    assert await outcome(hub, filled(query, token()), filled(headers, token())) is None
    assert await outcome(hub, filled(query, "nonsense"), filled(headers, "nonsense")) == MALFORMED
    assert await outcome(hub, filled(query, token(lifetime=-5)), filled(headers, token(lifetime=-5))) == EXPIRED


async def test_the_order_of_an_upgrade(hub):
    anon = token(role="anon")
    bad = "x.y.z"
    assert await outcome(hub, {"apikey": bad, "token": bad}, {"Authorization": f"Bearer {bad}", "x-api-key": anon}) is None
    assert await outcome(hub, {"apikey": anon, "token": anon}, {"Authorization": f"Bearer {anon}", "x-api-key": bad}) == MALFORMED
    assert await outcome(hub, {"apikey": bad, "token": bad}, {"Authorization": f"Bearer {anon}"}) is None
    assert await outcome(hub, {"apikey": anon, "token": anon}, {"Authorization": f"Bearer {bad}"}) == MALFORMED
    assert await outcome(hub, {"apikey": anon, "token": bad}) is None
    assert await outcome(hub, {"apikey": bad, "token": anon}) == MALFORMED
    assert await outcome(hub, {"apikey": "sb_publishable_abc"}) == MALFORMED, "an opaque key alone is no token"
    assert await outcome(hub) == (401, "API key is missing")


async def test_authorization_names_the_user(hub, name):
    """The project's public key in `apikey`, the user in Authorization: the user's token is the socket's."""
    query = urllib.parse.urlencode({"apikey": token(role="anon"), "vsn": "2.0.0"})
    for role, status in (("service_role", "ok"), ("authenticated", "error")):
        socket = await WebSocket.open(hub.port, f"{PATH}?{query}", {"Authorization": "Bearer " + token(role=role)})
        async with Client(socket, 2) as client:
            reply = await client.ask(f"realtime:{name}-{role}", "phx_join", {"config": {"private": True}})
            # Without a policy, a private channel is for service_role only: so one sees whose token it is.
            assert reply.payload["status"] == status, (role, reply)


async def test_a_stale_authorization_does_not_keep_a_client_out(hub):
    """A phone wakes with the header it was started with; its apikey is good, and its join brings a fresh token."""
    stale, good = {"Authorization": "Bearer " + token(lifetime=-60)}, token(role="anon")
    assert await outcome(hub, {"apikey": good}, stale) is None
    assert await outcome(hub, {"apikey": token(lifetime=-5)}, stale) == EXPIRED
    assert await outcome(hub, {"apikey": "nonsense"}, stale) == MALFORMED
    assert await outcome(hub, {}, stale) == EXPIRED
    forged = {"Authorization": "Bearer " + signed({"role": "anon", "exp": 1}, secret="x" * 32)}
    assert await outcome(hub, {"apikey": good}, forged) == SIGNATURE


@pytest.mark.parametrize("query, headers, status", [
    ({}, {"authorization": "Bearer GOOD", "apikey": "BAD"}, 202), ({}, {"authorization": "Bearer BAD", "apikey": "GOOD"}, 401),
    ({"apikey": "BAD", "token": "BAD"}, {"apikey": "GOOD"}, 202), ({"apikey": "GOOD"}, {"apikey": "BAD"}, 401),
    ({"apikey": "GOOD", "token": "BAD"}, {}, 202), ({"token": "GOOD"}, {}, 202), ({"token": "BAD"}, {}, 401),
    ({"apikey": "sb_publishable_abc", "token": "GOOD"}, {}, 202), ({}, {}, 401),
    ({}, {"authorization": "Bearer GOOD", "apikey": "sb_secret_abc"}, 202),
    ({}, {"authorization": "Bearer sb_secret_abc", "apikey": "GOOD"}, 202),
    ({"apikey": "sb_secret_abc"}, {}, 401),
], ids=str)
async def test_where_the_token_of_a_call_may_stand(hub, name, query, headers, status):
    def filled(words):
        return {key: value.replace("GOOD", token()).replace("BAD", "nonsense") for key, value in words.items()}
    async with await HTTPConnection.open(hub.port) as http:
        path = f"/api/broadcast/{name}/events/e?{urllib.parse.urlencode(filled(query))}"
        assert (await http.request("POST", path, {}, **filled(headers))).status == status


# Who may sign

@pytest.fixture
def keyed_hub(cluster):
    """Makes hubs with other keys than the usual secret, on the shared database's server."""
    hubs = []

    def make(**settings):
        cluster_url = cluster.create_migrated_database(f"keys_{time.monotonic_ns()}")
        hub = Hub(cluster_url, ROOST_LIMITS_FAILURES_PER_MINUTE="0", **settings)
        hubs.append(hub)
        return hub

    yield make
    for hub in hubs:
        hub.remove()


async def test_keys_of_a_file_and_rotation_without_a_restart(keyed_hub, tmp_path):
    path = tmp_path / "keys.json"
    keys = [Key(algorithm, f"the-{algorithm}") for algorithm in ("RS256", "ES256", "EdDSA", "PS384", "ES384", "ES512")]
    path.write_text(key_set(*keys))
    hub = keyed_hub(ROOST_JWKS_FILE=str(path), ROOST_JWT_SECRET="").start()
    for key in keys:
        assert await outcome(hub, {"apikey": key.token()}) is None, key.algorithm
        assert await outcome(hub, {"apikey": key.token(lifetime=-5)}) == EXPIRED
        assert await outcome(hub, {"apikey": Key(key.algorithm, key.kid).token()}) == SIGNATURE
    assert await outcome(hub, {"apikey": token()}) == SIGNATURE, "there is no secret"

    async with await Client.connect(hub.port, apikey=keys[0].token()) as client:
        await client.join("realtime:room")
        new = Key("ES256", "new")
        path.write_text(key_set(*keys, new))
        assert await outcome(hub, {"apikey": new.token()}) in (None, UNKNOWN)
        await until_let_in(hub, new)
        # Half a file, as an editor leaves it for a moment, changes nothing.
        path.write_text(key_set(new)[:50])
        await eventually(lambda: "cannot be used" in hub.log, what="a complaint")
        assert await outcome(hub, {"apikey": keys[0].token()}) is None
        path.write_text(key_set(new))

        async def old_is_out():
            return await outcome(hub, {"apikey": keys[0].token()}) == UNKNOWN
        await eventually(old_is_out, what="the old keys are out", every=0.1)
        assert await outcome(hub, {"apikey": new.token()}) is None
        await client.ask("realtime:room", "phx_join", {"config": {}, "access_token": new.token()})
    hub.wait_until_logged(str(path))


async def until_let_in(hub, key):
    async def is_let_in():
        return await outcome(hub, {"apikey": key.token()}) is None
    await eventually(is_let_in, what=f"{key.kid} is let in", every=0.1)


async def test_keys_of_a_url_and_rotation_without_a_restart(keyed_hub):
    old, new = Key("RS256", "old"), Key("EdDSA", "new")
    with KeyServer(key_set(old)) as server:
        hub = keyed_hub(
            ROOST_JWKS_URL=f"http://me:sesame@127.0.0.1:{server.port}/jwks?key=sesame",
            ROOST_JWT_ISSUER="https://auth.example.com", ROOST_JWT_AUDIENCE="app, other").start()
        good = {"iss": "https://auth.example.com", "aud": ["x", "other"]}
        assert server.requests == 1, "they are there before the first client"
        assert await outcome(hub, {"apikey": old.token(**good)}) is None
        assert await outcome(hub, {"apikey": token(**good)}) is None, "the secret is in force beside them"
        assert (await outcome(hub, {"apikey": old.token()}))[1] == "The issuer (iss) of the token is not accepted here"
        assert (await outcome(hub, {"apikey": old.token(**{**good, "aud": "y"})}))[1] == \
            "The audience (aud) of the token is not this service"
        assert (await outcome(hub, {"apikey": old.token(**good, nbf=int(time.time()) + 90)}))[1] == "Token is not valid yet"

        server.body = key_set(old, new)
        assert await outcome(hub, {"apikey": new.token(**good)}) == UNKNOWN, "refused at once"

        async def is_let_in():
            return await outcome(hub, {"apikey": new.token(**good)}) is None
        # As a client does: a first fetch was made just before, so this one waits for the pause.
        await eventually(is_let_in, what="the new key", every=0.2)
        assert await outcome(hub, {"apikey": old.token(**good)}) is None
        asked, elapsed = server.requests, Elapsed()
        server.body = None
        for number in range(60):
            assert await outcome(hub, {"apikey": Key("EdDSA", f"no-{number}").token()}) == UNKNOWN
        assert server.requests - asked <= 2 + elapsed.seconds / PAUSE, "however many bad tokens come"
        assert await outcome(hub, {"apikey": old.token(**good)}) is None, "the last good keys stay"
        assert "sesame" not in hub.log and "sesame" not in hub.run("config", "print").stdout
        doctor = hub.run("doctor", "--json", check=False).stdout
        assert "status is 500" in doctor and "sesame" not in doctor


async def test_a_url_that_cannot_be_reached_at_the_start(keyed_hub):
    key = Key("ES256", "k")
    with KeyServer(key_set(key)) as server:
        port = server.port
    hub = keyed_hub(ROOST_JWKS_URL=f"http://127.0.0.1:{port}/jwks").start()
    assert hub.ops("/livez")[0] == 200 and hub.ops("/readyz")[0] == 200
    hub.wait_until_logged("nothing accepts connections there")
    assert await outcome(hub, {"apikey": key.token()}) == UNKNOWN
    assert await outcome(hub, {"apikey": token()}) is None


async def test_several_secrets_at_once(keyed_hub):
    old = "the-secret-of-last-year,-which-was-long"
    hub = keyed_hub(ROOST_JWT_PREVIOUS_SECRETS=f"{old} {'x' * 40}").start()
    soon = {"role": "anon", "exp": int(time.time()) + 600}
    for secret in (SECRET, old, "x" * 40):
        assert await outcome(hub, {"apikey": signed(soon, secret=secret)}) is None
    assert await outcome(hub, {"apikey": signed(soon, secret="y" * 40)}) == SIGNATURE


@pytest.mark.parametrize("settings, said", [
    ({"ROOST_JWT_SECRET": "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A"}, "lets everybody sign"),
    ({"ROOST_JWT_ALGORITHMS": "none"}, "ROOST_JWT_ALGORITHMS is 'none', expected one or more of HS256"),
    ({"ROOST_JWT_ALGORITHMS": "RS256"}, "nobody could come in"),
    ({"ROOST_JWKS_FILE": "nowhere.json"}, "The key file nowhere.json cannot be used: no such file or directory"),
    ({"ROOST_JWKS_URL": "file:///etc/passwd"}, "ROOST_JWKS_URL"),
    ({"ROOST_JWT_SECRET": ""}, "jwt.secret, jwks.file or jwks.url"),
], ids=lambda value: str(value)[:40])
def test_wrong_keys_are_78_and_a_sentence(hub, settings, said):
    result = hub.run("serve", check=False, **settings)
    assert result.returncode == 78 and said in result.stderr and len(result.stderr.splitlines()) == 1, result


def test_minting(hub):
    def parts(text):
        return [json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))) for part in text.split(".")[:2]]
    for algorithm in ("HS256", "HS384", "HS512"):
        text = hub.run("token", "--algorithm", algorithm, "--claims", '{"aud":"a","role":"x"}').stdout.strip()
        header, claims = parts(text)
        assert header["alg"] == algorithm and (claims["aud"], claims["role"]) == ("a", "x")
        assert asyncio.run(outcome(hub, {"apikey": text})) is None
    for wrong in (["--algorithm", "RS256"], ["--algorithm", "none"], ["--claims", "[]"], ["--claims", "{"]):
        assert hub.run("token", *wrong, check=False).returncode == 64, wrong


# Secrets

async def test_nobody_sees_a_token_a_secret_or_a_password(cluster, tmp_path):
    """Debug logging, tokens in every place, good and bad: none of it may come to light anywhere."""
    url = cluster.create_database("secrets").replace("postgres://postgres@", "postgres://postgres:pass-word-1@")
    key = Key("ES256", "k")
    with KeyServer(key_set(key)) as server:
        hub = Hub(
            url, ROOST_LOG_LEVEL="trace", ROOST_JWKS_URL=f"http://me:url-secret@127.0.0.1:{server.port}/?k=query-secret")
        stdout = []
        try:
            hub.run("migrate")
            # Given as flags, which everybody could see in `ps`.
            secret, conninfo = hub.environment.pop("ROOST_JWT_SECRET"), hub.environment.pop("ROOST_DATABASE_URL")
            start_with_flags(hub, ["serve", "--jwt-secret", secret, f"--database-url={conninfo}"], stdout)
            good, bad, mangled = key.token(), token(lifetime=-50), "eyJhbGciOiJIUzI1NiJ9.mangled-token-text.zzz"
            bodies, shown = [], [good, bad, token(role="anon"), mangled, "opaque-token-text"]
            for text in shown:
                for query, headers in (
                        ({"apikey": text}, {}), ({"token": text}, {}), ({}, {"x-api-key": text}),
                        ({}, {"Authorization": f"Bearer {text}"}), ({"apikey": text, "vsn": "9"}, {})):
                    bodies.append(repr(await outcome_of_anything(hub, query, headers)))
                bodies.append(await raw(hub, f"GET {PATH}?apikey={text} HTTP/9.9\r\n\r\n"))
                bodies.append(await raw(hub, f"BREW {PATH}?apikey={text}&vsn=\xff HTTP/1.1\r\nhost: x\r\n{text}\r\n\r\n"))
                bodies.append(await raw(hub, f"GET {PATH}?apikey={text * 40} HTTP/1.1\r\nx-api-key: {text * 40}\r\n\r\n"))
                async with await HTTPConnection.open(hub.port) as http:
                    for path in ("/api/broadcast/t/events/e", "/nowhere", PATH):
                        answer = await http.request("POST", f"{path}?apikey={text}&token={text}", {}, authorization=f"Bearer {text}")
                        bodies.append(answer.body.decode())
                async with await Client.connect(hub.port, apikey=good) as client:
                    client.push("realtime:t", "phx_join", {"config": {}, "access_token": text}, "1", "1")
                    client.push("realtime:t", "access_token", {"access_token": text}, "2", "1")
                    client.send_text(f'["1","1","realtime:t","phx_join",{{"access_token":"{text}"')
                    await client.settled()
                    bodies += [message.raw.decode() for message in client.messages]
            pages = [hub.ops(path)[1] for path in ("/metrics", "/readyz", "/livez", "/", "/nowhere?token=" + good)]
            command = open(f"/proc/{hub.process.pid}/cmdline").read()
            assert hub.stop() == 0
            for place in [hub.log, *stdout, *bodies, *pages, command]:
                for text in [*shown, SECRET, "pass-word-1", "url-secret", "query-secret"]:
                    assert text not in place, f"{text} in {place[:300]!r}"
                assert "mangled-token-text" not in place and good.split(".")[1] not in place
            assert " debug " in hub.log, "it did log, and in detail"
        finally:
            hub.remove()


async def outcome_of_anything(hub, query, headers):
    try:
        await (await WebSocket.open(hub.port, f"{PATH}?{urllib.parse.urlencode(query)}", headers, source=next(_hosts))).close()
        return None
    except Refused as answer:
        return answer.status, answer.headers, answer.body


async def raw(hub, text):
    reader, writer = await asyncio.open_connection("127.0.0.1", hub.port, local_addr=(next(_hosts), 0))
    writer.write(text.encode("latin-1"))
    writer.write_eof()
    try:
        # Some of it is answered by nothing.
        async with asyncio.timeout(5):
            return (await reader.read()).decode("latin-1")
    except (TimeoutError, ConnectionError):
        return ""
    finally:
        writer.close()


def start_with_flags(hub, arguments, lines):
    with open(f"{hub.folder}/stderr", "ab") as errors:
        hub.process = subprocess.Popen(
            [BINARY, *arguments], env=hub.environment, cwd=hub.folder, stdout=subprocess.PIPE, stderr=errors,
            stdin=subprocess.DEVNULL, text=True)

    def read():
        for line in hub.process.stdout:
            lines.append(line)
            if line.startswith("listening on "):
                hub._listening.set()
    threading.Thread(target=read, daemon=True).start()
    hub.wait_until_listening()


@pytest.mark.parametrize("url", [
    "postgres://me:pass-1/word@127.0.0.1:5432/x", "postgres://me:pass-1@word@127.0.0.1:5432/x",
    "postgres://me:pass-1%zz@127.0.0.1/x", "host=127.0.0.1 password=pass-1 word", "host=127.0.0.1 pass-1 dbname=x",
    "postgres://me:pass-1@127.0.0.1:1/x?passw=pass-1", "postgres://me:pass-1@127.0.0.1:1/x"])
def test_a_database_url_that_is_wrong_is_not_quoted(hub, url):
    for command in (["migrate"], ["doctor"], ["config", "print"]):
        if command[0] == "config" and " pass-1" in url:
            continue  # Nothing says that this word is a password.
        result = hub.run(*command, check=False, ROOST_DATABASE_URL=url)
        said = (result.stdout + result.stderr).replace("password", "")
        assert "pass-1" not in said, result
        assert "word" not in url.replace("password", "") or "word" not in said, result
