"""Somebody else writes into the Redis of a cluster: whatever that is, no hub ends, it is counted, and what is put right works again."""

import asyncio
import random
import socket

import pytest

from support.deadline import eventually
from support.http import HTTPConnection
from support.redis import Redis
from support.streams import Stream, new_name
from support.tokens import token
from support.wsclient import Client
from test_cluster import Hubs, say
from test_stream_hubs import wait_until_shared

PREFIX = "{roost:roost}:"
HUGE = ["9223372036854775807", "18446744073709551615", "-9223372036854775808", "9007199254740993", "1e308", "nan"]
WRONG = {"list": ("RPUSH", "x"), "set": ("SADD", "x"), "hash": ("HSET", "x", "y"), "stream": ("XADD", "1-1", "x", "y"),
         "text": ("SET", "x")}


@pytest.fixture(scope="module")
def redis():
    with Redis() as redis:
        yield redis


@pytest.fixture(scope="module")
def hubs(cluster, redis):
    hubs = Hubs(cluster.create_database("poisoned"), redis)
    try:
        yield hubs.start()
    finally:
        hubs.remove()


@pytest.fixture
def pipes(redis):
    """Commands by the hundred, and what Redis says about them is all the same."""
    def send(*commands):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(60)
            connection.connect(redis.socket)
            for command in commands:
                parts = [part if isinstance(part, bytes) else str(part).encode() for part in command]
                connection.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
            connection.sendall(b"*1\r\n$4\r\nPING\r\n")
            with connection.makefile("rb") as file:
                while file.readline() != b"+PONG\r\n":
                    pass
    return send


class Listener:
    """What hubs publish on a channel."""

    def __init__(self, redis, channel):
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.settimeout(60)
        self.connection.connect(redis.socket)
        self.connection.sendall(b"*2\r\n$9\r\nSUBSCRIBE\r\n$%d\r\n%s\r\n" % (len(channel), channel.encode()))
        self.file = self.connection.makefile("rb")
        self._read()

    def _read(self):
        line = self.file.readline()
        if line[:1] == b"*":
            return [self._read() for _ in range(int(line[1:]))]
        if line[:1] == b"$":
            return self.file.read(int(line[1:]) + 2)[:-2]
        return line[1:-2]

    def take(self, count):
        try:
            return [self._read()[2] for _ in range(count)]
        finally:
            self.connection.close()


def alive(hubs):
    for hub in hubs.all:
        assert hub.process.poll() is None, hub.log[-3000:]


def damage(hubs):
    return sum(hub.metric("roost_cluster_damaged_total") + hub.metric("roost_streams_damaged_total") for hub in hubs.all)


async def everything_works(hubs):
    alive(hubs)
    await asyncio.to_thread(hubs.wait_until_whole, within=30)
    await asyncio.to_thread(wait_until_shared, hubs.all, 30)
    topic = f"realtime:{new_name()}"
    clients = [await Client.connect(hub.port, 2, apikey=token()) for hub in hubs.all]
    for client in clients:
        await client.join(topic)
    async def say_it_again():
        # A hub whose connection was cut may say that it is whole a moment longer, and what is said then reaches no other.
        while True:
            for number, client in enumerate(clients):
                say(client, topic, number)
            await asyncio.sleep(1)
    saying = asyncio.create_task(say_it_again())
    for number, client in enumerate(clients):
        heard = set()
        while heard != {0, 1, 2} - {number}:
            message = await client.next("broadcast", topic, where=lambda m: m.payload.get("event") == "e")
            heard.add(message.payload["payload"]["n"])
    saying.cancel()
    async with await HTTPConnection.open(hubs.all[0].port) as here, await HTTPConnection.open(hubs.all[1].port) as there:
        streams = [Stream(here), Stream(there)]
        streams[1].name = streams[0].name

        # A hub whose connection was cut may say that it is whole a moment longer; then it refuses.
        async def is_made():
            return (await streams[0].create()).status in (200, 201)

        async def is_taken():
            return (await streams[1].append(b"Hello")).status == 204

        async def has_it():
            return (await streams[0].read()).body.startswith(b"Hello")
        for step in (is_made, is_taken, has_it):
            await eventually(step, what=step.__name__)
    for client in clients:
        await client.close()


def noise(real, seed=20261128):
    """Of what was really sent: cut, with other numbers, with bytes changed; and what never was anything."""
    chance = random.Random(seed)
    out = [b"", b"\n", b"beat\n", b"direct\n", b"w\n", b"0 0 0 0\n", b"\xff" * 200, bytes(range(256))]
    for huge in HUGE:
        out += [f"{huge} 0 0 0\n".encode(), f"0 {huge} 0 0\n".encode(), f"5 1 {huge} {huge}\nxx".encode(),
                f"{huge} {huge} {huge}\n".encode(), f"5 {huge} a\n".encode() + b"\xff" * 8]
    for one in real:
        for _ in range(40):
            bytes_ = bytearray(one)
            for _ in range(chance.randint(1, 4)):
                if bytes_:
                    bytes_[chance.randrange(len(bytes_))] = chance.randrange(256)
            out.append(bytes(bytes_))
            out.append(one[:chance.randrange(len(one) + 1)])
            out.append(one + bytes(chance.randrange(256) for _ in range(chance.randrange(20))))
        head, _, body = one.partition(b"\n")
        words = head.split(b" ")
        for place in range(len(words) if words[0][:1].isdigit() else 0):
            for huge in HUGE:
                out.append(b" ".join([*words[:place], huge.encode(), *words[place + 1:]]) + b"\n" + body)
    return out


async def traffic(hubs):
    """Something of each kind is said: entries, beats, questions, changes of streams."""
    topic = f"realtime:{new_name()}"
    clients = [await Client.connect(hub.port, 2, apikey=token(sub=f"user {number}")) for number, hub in enumerate(hubs.all)]
    for number, client in enumerate(clients):
        await client.join(topic, config={"presence": {"key": f"m{number}", "enabled": True}})
        client.push(topic, "presence", {"type": "presence", "event": "track", "payload": {"n": number}})
        say(client, topic, number)
    async with await HTTPConnection.open(hubs.all[0].port) as http:
        stream = Stream(http)
        await stream.create()
        await stream.append(b"word ")
        await stream.close()
    for client in clients:
        await client.settled()
        await client.close()


@pytest.mark.parametrize("channel", ["c", "sc", "n:hub0"])
async def test_noise_on_a_channel(hubs, redis, pipes, channel):
    await everything_works(hubs)
    listener = Listener(redis, PREFIX + channel)
    if channel == "n:hub0":
        # A hub that comes is told who is present.
        reading = asyncio.create_task(asyncio.to_thread(listener.take, 1))
        await asyncio.to_thread(hubs.all[0].stop)
        hubs.all[0].start()
    else:
        reading = asyncio.create_task(asyncio.to_thread(listener.take, 12 if channel == "c" else 3))
    for _ in range(20):
        if reading.done():
            break
        await traffic(hubs)
    real = await reading
    sent = noise(real)
    await everything_works(hubs)
    before = damage(hubs)
    pipes(*[("PUBLISH", PREFIX + channel, one) for one in sent])
    await traffic(hubs)
    alive(hubs)
    await eventually(lambda: damage(hubs) > before)
    # Beats of hubs that never were are forgotten in their time.
    await everything_works(hubs)


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("key", ["r", "m", "s", "sm", "l:hub0", "l:hub9", "doctor"])
async def test_a_key_of_another_type(hubs, redis, pipes, key, kind):
    command, *rest = WRONG[kind]
    pipes(("DEL", PREFIX + key), (command, PREFIX + key, *rest))
    await traffic(hubs)
    redis.kill_clients("normal")
    # Nobody has to put it right: keys of another type are replaced.
    await everything_works(hubs)


@pytest.mark.parametrize("what", [
    *[f"{huge} 0 0 0" for huge in HUGE], *[f"5 {huge} x 0" for huge in HUGE], "", " ", "x", "1 2 3 4 5-6 7", "-1 -1 - -", "5 5 OWNER 5 1-1 1-x",
])
async def test_a_head_that_nobody_wrote(hubs, redis, pipes, what):
    for key in ("m", "sm", "l:hub1"):
        pipes(("SET", PREFIX + key, what))
    await traffic(hubs)
    redis.kill_clients("normal")
    await everything_works(hubs)


async def test_entries_that_nobody_wrote(hubs, redis, pipes):
    await everything_works(hubs)
    entry = redis.ask("XREVRANGE", PREFIX + "r", "+", "-", "COUNT", 1)[0]
    epoch, offset = (int(number) for number in entry[0].split("-"))
    # In the place of the next ones, and far behind: hubs find their own taken, and begin anew.
    pipes(
        ("XADD", PREFIX + "r", f"{epoch}-{offset + 1}", "what", "ever"),
        ("XADD", PREFIX + "r", f"{epoch}-{offset + 2}", "p", HUGE[0], "t", HUGE[1], "b", b"\xff" * 100),
        ("XADD", PREFIX + "r", f"{epoch}-{offset + 3}", "p", "0", "t", "0", "b", ""),
        ("XADD", PREFIX + "r", f"{epoch}-9223372036854775807", "p", "1", "t", "2", "b", "x"))
    await traffic(hubs)
    await everything_works(hubs)
    pipes(("XADD", PREFIX + "r", "18446744073709551615-18446744073709551615", "x", "y"))
    await traffic(hubs)
    redis.kill_clients("normal")
    await everything_works(hubs)
    # And whoever starts now.
    await asyncio.to_thread(hubs.all[2].stop)
    hubs.all[2].start()
    await everything_works(hubs)


async def test_streams_that_nobody_wrote(hubs, redis, pipes):
    await everything_works(hubs)
    async with await HTTPConnection.open(hubs.all[0].port) as http:
        streams = [Stream(http) for _ in range(6)]
        for stream in streams:
            await stream.create(body=b"Hello")
        index = redis.ask("HGETALL", PREFIX + "s")
        places = dict(zip(index[::2], index[1::2]))
        ids = [places[stream.name].split()[0] for stream in streams]
        before = damage(hubs)
        pipes(
            # Logs that are cut, longer, noise, of another type; and places that are none.
            ("SET", f"{PREFIX}s:{ids[0]}", "H"), ("APPEND", f"{PREFIX}s:{ids[1]}", b"\xff" * 300),
            ("SETRANGE", f"{PREFIX}s:{ids[2]}", 0, b"\xff" * 30), ("DEL", f"{PREFIX}s:{ids[3]}"), ("RPUSH", f"{PREFIX}s:{ids[3]}", "x"),
            ("HSET", PREFIX + "s", streams[4].name, f"{ids[4]} {HUGE[0]}"), ("HSET", PREFIX + "s", streams[5].name, "x"),
            *[("HSET", PREFIX + "s", f"nobody/{number}", text)
              for number, text in enumerate([f"{huge} {huge}" for huge in HUGE] + ["", "a1", "a1 -5", "zz 5", f"a1 {HUGE[3]}"])],
            ("HSET", PREFIX + "s", b"\xff\xfe", "a1 5"))
        for stream in streams:
            for _ in range(2):
                assert (await stream.append(b"more")).status in (204, 404, 409, 503)
        # Each looks everything up, and says what it cannot read.
        redis.kill_clients("normal")
        await asyncio.to_thread(wait_until_shared, hubs.all, 30)
        alive(hubs)
        await eventually(lambda: damage(hubs) > before)
        # Others go on beside them, and what is deleted by its name is over.
        await everything_works(hubs)
        await asyncio.to_thread(hubs.all[1].stop)
        hubs.all[1].start()
        await everything_works(hubs)
        pipes(*[("HDEL", PREFIX + "s", name) for name in [*(stream.name for stream in streams), b"\xff\xfe",
                                                          *(f"nobody/{number}" for number in range(len(HUGE) + 5))]],
              *[("DEL", f"{PREFIX}s:{id_}") for id_ in ids])
        redis.kill_clients("normal")
        await asyncio.to_thread(wait_until_shared, hubs.all, 30)
    async with await HTTPConnection.open(hubs.all[0].port) as http:
        for stream in streams:
            stream.http = http
            until_made = [201, 200]

            async def is_made(stream=stream):
                return (await stream.create()).status in until_made
            await eventually(is_made, what=lambda stream=stream: stream.name)
    await everything_works(hubs)
