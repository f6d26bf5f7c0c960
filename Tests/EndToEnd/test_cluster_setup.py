"""What docs/cluster.md says of Redis and of the balancer in front."""

import asyncio
import json
import re
import shutil
import signal
import socket
import subprocess
import tempfile

import pytest

from support.certificates import Authority
from support.deadline import eventually, until
from support.hub import ROOT
from support.ports import free_port
from support.redis import ACL, Redis
from support.tokens import token
from support.wsclient import Client
from test_cluster import Hubs, diff, leaves, numbers, present, say, track

PAGE = (ROOT / "docs/cluster.md").read_text()
HAPROXY = re.search(r"```haproxy\n(.*?)```", PAGE, re.DOTALL)[1]
GAP = "Messages from another hub may be missing: load what you show again."


class Pair:
    """Two hubs of one cluster, and clients who are closed at the end."""

    def __init__(self, cluster, name, redis, url=None, **settings):
        database = cluster.create_database(f"setup_{name}")
        self.hubs = Hubs(database, redis, 2, **settings)
        for hub in self.hubs.all:
            hub.environment["ROOST_CLUSTER_URL"] = url or redis.url()
        self.redis, self.clients = redis, []

    async def __aenter__(self):
        self.hubs.start()
        return self

    async def __aexit__(self, *error):
        for client in self.clients:
            await client.close()
        if error[0]:
            print(*(f"{hub.environment['ROOST_NODE_NAME']}: {hub.log[-2000:]}" for hub in self.hubs.all), sep="\n")
        self.hubs.remove()

    def __getitem__(self, number):
        return self.hubs.all[number]

    async def member(self, number, topic, config=None, **claims):
        return await self.enter(self[number].port, topic, config, **claims)

    async def enter(self, port, topic, config=None, tls=None, **claims):
        client = await Client.connect(port, apikey=token(**claims), tls=tls)
        self.clients.append(client)
        client.joined = await client.join(topic, config=config)
        return client

    def are_degraded(self, because):
        for hub in self.hubs.all:
            until(lambda: because in hub.ops("/readyz")[1], what=lambda: hub.ops("/readyz"))
            assert hub.ops("/readyz")[0] == 200

    def gaps(self):
        return [hub.metric("roost_cluster_gaps_total") for hub in self.hubs.all]


def is_gap(message):
    return message.payload.get("extension") == "broadcast" and message.payload["message"] == GAP


async def test_all_that_redis_holds_may_be_deleted(cluster, name, topic):
    with Redis() as redis:
        async with Pair(cluster, name, redis) as pair:
            one, other = await pair.member(0, topic), await pair.member(1, topic)
            for n in range(20):
                say(one, topic, n)
                if n in (5, 15):
                    await one.settled()
                    redis.ask("FLUSHALL")
            assert await numbers(other, topic, 20) == list(range(20))
            assert pair.gaps() == [0, 0]


async def test_the_log_takes_no_more_than_it_is_to(cluster, name, topic):
    with Redis() as redis:
        async with Pair(cluster, name, redis, ROOST_CLUSTER_LOG_BYTES="1048576") as pair:
            one, other = await pair.member(0, topic), await pair.member(1, topic)
            # One after the other: the other client is no slow reader.
            for n in range(80):
                one.push(topic, "broadcast", {"type": "broadcast", "event": "e", "payload": {"n": n, "text": "x" * 100_000}})
                assert await numbers(other, topic, 1) == [n]
            assert redis.ask("MEMORY", "USAGE", "{roost:roost}:r", "SAMPLES", "0") < 4_000_000
            assert redis.ask("XLEN", "{roost:roost}:r") < 80
            # Small ones are kept again.
            for n in range(100):
                say(one, topic, n)
            assert await numbers(other, topic, 100) == list(range(100))
            assert pair.gaps() == [0, 0]


async def test_who_is_present_comes_to_a_new_hub_however_much_it_is(cluster, name, topic):
    """12 MB; the link takes 8 MiB at once."""
    with Redis() as redis:
        async with Pair(cluster, name, redis) as pair:
            pair[1].kill()
            for n in range(30):
                client = await pair.member(0, f"{topic}:{n}", present(f"m{n}"), sub=f"m{n}")
                track(client, f"{topic}:{n}", text="x" * 400_000)
                await client.settled()
            pair[1].start()
            pair.hubs.wait_until_whole()
            until(lambda: pair[1].metric("roost_cluster_members") == 30, what=lambda: pair[1].log[-2000:])
            watcher = await pair.member(1, f"{topic}:7", present("w"), sub="w")
            state = await watcher.next("presence_state", f"{topic}:7")
            assert len(state.payload["m7"]["metas"][0]["text"]) == 400_000


async def test_a_redis_that_is_full_is_said_and_is_one_again_when_it_has_room(cluster, name, topic):
    with Redis("maxmemory-policy noeviction") as redis:
        async with Pair(cluster, name, redis) as pair:
            one, beside, other = await pair.member(0, topic), await pair.member(0, topic), await pair.member(1, topic)
            redis.ask("CONFIG", "SET", "maxmemory", "1")
            say(one, topic, 0)
            pair.are_degraded("Redis is full")
            say(one, topic, 1)
            assert await numbers(beside, topic, 2) == [0, 1]
            redis.ask("CONFIG", "SET", "maxmemory", "0")
            pair.hubs.wait_until_whole()
            say(one, topic, 2)
            assert 2 in await numbers(other, topic, 3)


@pytest.mark.parametrize("persistent", [True, False])
async def test_a_restart_is_told_where_redis_keeps_nothing(cluster, name, topic, persistent):
    with Redis(*(["appendonly yes"] if persistent else [])) as redis:
        async with Pair(cluster, name, redis) as pair:
            one, other = await pair.member(0, topic), await pair.member(1, topic)
            say(one, topic, 0)
            assert await numbers(other, topic, 1) == [0]
            redis.kill()
            pair.are_degraded("the other hubs cannot be reached")
            # The time is what is tested: a hub that was away for more than 3 s does not know who came and went meanwhile.
            await asyncio.sleep(4)
            say(one, topic, 1)
            await one.settled()
            redis.start()
            pair.hubs.wait_until_whole()
            assert await numbers(other, topic, 1) == [1], "what was said meanwhile is sent"
            if persistent:
                assert pair.gaps() == [0, 0]
            else:
                told = await other.next("system", topic, where=is_gap)
                assert told.payload["status"] == "ok"


#: As entries, beats and messages between hubs begin, and what a script or a list of arguments could stumble over.
FRAMING = ["beat\n", "direct\n", "5000 1 0 ab\n", "\r\n$-1\r\n", "'); return redis.call('FLUSHALL') --", "{roost:roost}:r", "é\t\u2028\"\\"]


async def test_what_clients_say_is_no_framing_of_the_log(cluster, name, topic):
    with Redis() as redis:
        async with Pair(cluster, name, redis) as pair:
            for text in FRAMING:
                hostile = f"{topic}{text}{text}"
                one = await pair.member(0, hostile, present(text))
                other = await pair.member(1, hostile, present("w"))
                track(one, hostile, said=text)
                joined = await diff(other, hostile, "joins", text)
                assert joined.payload["joins"][text]["metas"][0]["said"] == text
                one.push(hostile, "broadcast", {"type": "broadcast", "event": text, "payload": {text: text}})
                message = await other.next("broadcast", hostile)
                assert (message.payload["event"], message.payload["payload"]) == (text, {text: text})
            assert pair.gaps() == [0, 0]
            assert [hub.metric("roost_cluster_reads_total") for hub in pair.hubs.all] == [0, 0]
            assert not any("cannot be read" in hub.log for hub in pair.hubs.all)


async def test_over_tls_as_the_user_of_the_page(cluster, name, topic, tmp_path):
    acl = re.search(r"ACL SETUSER roost on >PASSWORD (.*)", PAGE)[1]
    assert acl == ACL, "the page's rights are those that the tests of the link hold against a server"
    authority = Authority(tmp_path)
    with Redis(users=[("roost", "p@ss")], pair=authority.pair(), authority=authority) as redis:
        url = redis.url("roost", "p%40ss", tls=True)
        async with Pair(cluster, name, redis, url, ROOST_CLUSTER_CA_FILE=str(authority.file)) as pair:
            one, other = await pair.member(0, topic), await pair.member(1, topic)
            say(one, topic, 1)
            assert await numbers(other, topic, 1) == [1]
            assert "p@ss" not in pair[0].log and "p%40ss" not in pair[0].log
            assert "p%40ss" not in pair[0].run("config", "print").stdout
            report = pair[0].run("doctor", "--json").stdout
            said = {finding["subject"]: finding for finding in json.loads(report)["findings"]}
            assert said["redis rights"]["message"] == "The user roost may do what the hubs do."
            assert said["redis hubs"]["message"] == "One hub is called hub0, and 1 other hub is connected."
            assert said["redis encryption"]["message"] == "TLS, and the server's certificate is verified."
            assert {said[subject]["severity"] for subject in said if subject.startswith("redis")} <= {"good", "warning"}
            assert "p@ss" not in report and "p%40ss" not in report
            assert pair.gaps() == [0, 0], "it leaves the hubs alone"
            refused = pair[0].run("doctor", check=False, ROOST_CLUSTER_URL=redis.url("roost", "wrong", tls=True))
            assert refused.returncode == 69
            assert "ERROR    redis: Redis cannot be used at rediss://roost@127.0.0.1" in refused.stdout


class Balancer:
    """HAProxy with the page's file; only its addresses and its certificate are others."""

    def __init__(self, hubs, pair):
        self.port = free_port()
        self.folder = tempfile.mkdtemp(prefix="roost-e2e-balancer-", dir="/tmp")
        with open(f"{self.folder}/hub.pem", "w") as file:
            file.write(open(pair.certificate).read() + open(pair.key).read())
        text = HAPROXY.replace("bind :443", f"bind 127.0.0.1:{self.port}").replace("/etc/haproxy", self.folder)
        text = text.replace("maxconn 100000", "maxconn 200")
        for number, hub in enumerate(hubs, 1):
            address = f"10.0.0.{number}:4000"
            assert address in text
            text = text.replace(address, f"127.0.0.1:{hub.port} check port {hub.ops_port}")
        self.text = text.replace("check port 4001 ", "")

    def __enter__(self):
        path = f"{self.folder}/haproxy.cfg"
        with open(path, "w") as file:
            file.write(self.text)
        program = shutil.which("haproxy", path="/usr/sbin:/usr/bin:/bin")
        assert program, "scripts/setup.sh --tests installs haproxy"
        checked = subprocess.run([program, "-c", "-f", path], capture_output=True, text=True)
        assert checked.returncode == 0, checked.stderr
        self.process = subprocess.Popen([program, "-db", "-f", path], stdin=subprocess.DEVNULL)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


async def test_the_balancer_of_the_page(cluster, name, topic, tmp_path):
    authority = Authority(tmp_path)
    with Redis() as redis:
        # Longer than the balancer takes to notice.
        async with Pair(cluster, name, redis, ROOST_DRAIN_DELAY_SECONDS="3",
                        ROOST_HTTP_TRUSTED_PROXIES="127.0.0.1") as pair:
            with Balancer(pair.hubs.all, authority.pair()) as balancer:
                def connections():
                    return [int(hub.metric("roost_connections")) for hub in pair.hubs.all]

                async def enter(n):
                    # In the background: whoever has to move has more time for it than an active app's two seconds.
                    config = {**present(f"m{n}"), "app_state": "background"}
                    return await pair.enter(balancer.port, topic, config, tls=authority.trust, sub=f"m{n}")

                until(lambda: listens(balancer), what="HAProxy listening")
                members = [await enter(n) for n in range(6)]
                until(lambda: min(connections()) > 0, what=lambda: connections())
                for n, client in enumerate(members):
                    track(client, topic, n=n)
                    if n:
                        await diff(members[0], topic, "joins", f"m{n}")
                watcher = await pair.member(0, topic, present("w"), sub="w")
                pair[1].process.send_signal(signal.SIGTERM)
                await eventually(lambda: pair[1].process.poll() is not None)
                assert pair[1].process.returncode == 0
                moved = [n for n, client in enumerate(members) if client.closed]
                assert moved and len(moved) < len(members)
                for n in moved:
                    back = await enter(n)
                    track(back, topic, n=n)
                    await back.settled()
                await watcher.settled()
                assert leaves(watcher, topic) == []


def listens(balancer):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", balancer.port)) == 0
