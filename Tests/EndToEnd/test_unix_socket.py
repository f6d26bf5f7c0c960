"""The hub listens at a Unix domain socket besides its port."""

import os
import socket
import stat

import pytest

from support.certificates import Authority
from support.tokens import token
from support.websocket import Refused
from support.wsclient import Client


@pytest.fixture
def hub(own_hub):
    own_hub.path = f"{own_hub.folder}/hub.sock"
    own_hub.environment |= {"ROOST_HTTP_SOCKET": own_hub.path, "ROOST_LOOPS": "2"}
    return own_hub


async def test_it_is_the_same_hub(hub):
    hub.environment["ROOST_HTTP_SOCKET_MODE"] = "0600"
    hub.start()
    assert stat.S_IMODE(os.stat(hub.path).st_mode) == 0o600
    # Several, so that both loops have some.
    local = [await Client.connect(hub.path) for _ in range(6)]
    remote = await Client.connect(hub.port)
    for client in (*local, remote):
        await client.join("realtime:room")
    remote.push("realtime:room", "broadcast", {"event": "e", "payload": {"x": "y" * 200_000}})
    for client in local:
        assert len((await client.next("broadcast")).payload["payload"]["x"]) == 200_000
    local[0].push("realtime:room", "broadcast", {"event": "e", "payload": {"n": 1}})
    assert (await remote.next("broadcast")).payload["payload"] == {"n": 1}
    for client in (*local, remote):
        await client.close()
    assert hub.stop() == 0
    assert not os.path.exists(hub.path)


async def test_it_stays_plain_beside_tls(hub, tmp_path):
    authority = Authority(tmp_path)
    hub.secure(authority.pair(), authority.trust).start()
    async with await Client.connect(hub.path) as local, await Client.connect(hub.port, tls=hub.trust) as remote:
        for client in (local, remote):
            await client.join("realtime:room")
        local.push("realtime:room", "broadcast", {"event": "e", "payload": {"n": 1}})
        assert (await remote.next("broadcast")).payload["payload"] == {"n": 1}


async def test_what_a_killed_hub_left_behind_is_replaced(hub):
    hub.start()
    hub.kill()
    assert os.path.exists(hub.path)
    hub.start()
    async with await Client.connect(hub.path) as client:
        await client.settled()


async def test_nobody_elses_file_is_touched(hub):
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(hub.path)
        other.listen()
        done = hub.run("serve", check=False)
        assert done.returncode == 69 and "because another program listens there" in done.stderr
        assert os.path.exists(hub.path)
    os.unlink(hub.path)
    with open(hub.path, "w") as file:
        file.write("precious")
    done = hub.run("serve", check=False)
    assert done.returncode == 69 and "is not a socket" in done.stderr
    assert open(hub.path).read() == "precious"
    done = hub.run("config", "check", check=False, ROOST_HTTP_SOCKET="/tmp/" + "x" * 110)
    assert done.returncode == 78 and "107 bytes" in done.stderr


async def test_a_proxy_at_the_socket_speaks_for_its_clients(hub):
    hub.environment |= {"ROOST_HTTP_TRUSTED_PROXIES": "unix", "ROOST_LIMITS_CONNECTIONS_PER_ADDRESS": "1"}
    hub.start()
    first = await Client.connect(hub.path, headers={"X-Forwarded-For": "192.0.2.1"})
    with pytest.raises(Refused) as refused:
        await Client.connect(hub.path, headers={"X-Forwarded-For": "192.0.2.1"})
    assert refused.value.status == 429
    async with await Client.connect(hub.path, headers={"X-Forwarded-For": "192.0.2.2"}) as second:
        await second.settled()
    await first.close()
