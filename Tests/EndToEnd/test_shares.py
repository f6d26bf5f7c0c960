"""What one user may take of everybody's room."""

import pytest

from support.http import HTTPConnection
from support.metrics import came_to
from support.streams import Stream, bearer

pytestmark = pytest.mark.anyio

OWN = """
    create policy own on realtime.messages for insert to authenticated
        with check (starts_with(realtime.topic(), 'stream:' || (current_setting('request.jwt.claims')::json->>'sub') || '/'));
    create policy guests on realtime.messages for insert to anon with check (starts_with(realtime.topic(), 'stream:guests/'));
"""


@pytest.fixture
def small(own_hub, cluster):
    """A hub on which one user may have three streams, and there may be twelve."""
    own_hub.environment |= {"ROOST_STREAMS_COUNT_PER_USER": "3", "ROOST_STREAMS_COUNT": "12"}
    with cluster.connect(own_hub.database) as sql:
        sql.execute(OWN)
    return own_hub.start()


async def made(http, name, who, **headers):
    return (await Stream(http, name, **who).create(**headers)).status


async def test_one_users_streams_take_nothing_from_others(small):
    ann, bob = bearer("authenticated", sub="ann"), bearer("authenticated", sub="bob")
    guest = bearer("anon")
    ended = {"stream_closed": "true"}
    async with await HTTPConnection.open(small.port) as http:
        assert await made(http, "bob/1", bob, **ended) == 201
        assert await made(http, "reply/1", bearer(), **ended) == 201
        for number in range(30):
            assert await made(http, f"ann/{number}", ann, **ended) == 201
        for number in range(3):
            assert await made(http, f"ann/open/{number}", ann) == 201
        refused = await Stream(http, "ann/more", **ann).create()
        assert refused.status == 429 and b"streams.count_per_user" in refused.body and refused.headers["retry-after"]
        for stream in "bob/1", "reply/1":
            assert (await Stream(http, stream).head()).status == 200
        # Whose token names nobody counts with all of that role.
        for number in range(3):
            assert await made(http, f"guests/{number}", guest) == 201
        assert await made(http, "guests/3", bearer("anon", device="another")) == 429
        # A backend has no such bound, and finds room.
        for number in range(2, 6):
            assert await made(http, f"reply/{number}", bearer()) == 201
        assert await made(http, "bob/2", bob) == 201
        await came_to(small, **{'roost_stream_refused_total{reason="share"}': 2})
