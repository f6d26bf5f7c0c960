"""`users.statement`: who is online and when they were last seen, in the application's own table."""

import asyncio
import time

import pytest

from support.chat import ADA, GRACE, LINUS, OUTSIDER, Principal, install, statement
from support.cluster import Cluster
from support.bounds import in_time, taken, watch_the_machine
from support.deadline import eventually
from support.hub import Hub
from support.wsclient import Client

STATEMENT = statement("StatusOfSampleChat")
#: Seconds: the windows of these hubs, and what a hub that starts again waits for its users.
ACTIVE, INACTIVE, BACKGROUND, PATIENCE = 1, 60, 3, 3
#: Seconds that the hub's word on when somebody was lost may differ from ours.
EXACT = 0.5
#: Every word that is written down about anybody.
AUDIT = """
    create table public.audit (id int generated always as identity, who uuid, status text, seen float8, at timestamptz);
    create function public.audit() returns trigger language plpgsql as $$ begin
        insert into public.audit (who, status, seen, at)
        values (new.id, new.status, extract(epoch from new.last_seen), clock_timestamp());
        return null;
    end $$;
    create trigger audit after update on public.users for each row execute function public.audit();
"""


class Online:
    """A hub that tells the sample chat who is online, and what it told it."""

    def __init__(self, cluster, name, **environment):
        self.cluster, self.name, self.clients = cluster, name, []
        self.hub = Hub(
            cluster.create_database(name), ROOST_USERS_STATEMENT=STATEMENT, ROOST_LOOPS="2",
            ROOST_PRESENCE_GRACE_ACTIVE_SECONDS=str(ACTIVE), ROOST_PRESENCE_GRACE_BACKGROUND_SECONDS=str(BACKGROUND),
            ROOST_PRESENCE_GRACE_INACTIVE_SECONDS=str(INACTIVE),
            ROOST_PRESENCE_RESTART_SECONDS=str(PATIENCE), **environment)

    async def __aenter__(self):
        self.hub.run("migrate")
        with self.sql() as sql:
            install(sql)
            sql.execute(AUDIT)
        await asyncio.to_thread(self.hub.start)
        return self

    async def __aexit__(self, kind, *_):
        for client in self.clients:
            await client.close()
        if kind:
            print("the hub's log:", self.hub.log[-3000:])
        self.hub.remove()

    def sql(self):
        return self.cluster.connect(self.name)

    async def enter(self, who, state=None, topic="realtime:room", version=2):
        client = await Client.connect(self.hub.port, version, apikey=who.token())
        self.clients.append(client)
        await client.join(topic, config={"app_state": state} if state else {})
        return client

    def status(self, who):
        with self.sql() as sql:
            return sql.execute("select status from users where id = %s", [who.sub]).fetchone()[0]

    def told(self, who):
        """(status, last seen, when) of each word on somebody, in order; times in seconds since 1970."""
        with self.sql() as sql:
            return sql.execute("select status, seen, extract(epoch from at)::float8 from audit where who = %s order by id",
                               [who.sub]).fetchall()

    async def becomes(self, who, status):
        await eventually(lambda: self.status(who) == status, what=lambda: f"{who} {status}: {self.told(who)}", every=0.05)


def lose(client):
    """An RST. When, in seconds since 1970."""
    client._task.cancel()
    client.socket.abort()
    return time.time()


def is_exact(moment, seen, since=None):
    """The hub's word on a moment, in seconds since 1970; it may have come round to it late. `since`: what the hub answered may have
    happened as early as that."""
    assert seen > (since or moment) - EXACT, f"{moment - seen:.2f} s before the loss"
    if seen >= moment + EXACT:
        monotonic = time.monotonic() - time.time()
        lost = taken(moment + monotonic, seen + monotonic, EXACT)
        assert seen - lost < moment + EXACT, f"{seen - moment:.2f} s after it, of which the machine took {lost:.2f} s"


@pytest.fixture(scope="module", autouse=True)
def watched():
    watch_the_machine()


@pytest.fixture
async def online(cluster, name):
    async with Online(cluster, name) as online:
        yield online


async def test_online_is_who_has_a_socket_or_is_in_its_window(online):
    """Each of these at the same time, with a user of its own."""
    for who in (ADA, GRACE, LINUS, OUTSIDER):
        assert online.status(who) == "offline"

    async def several_sockets():
        # A phone that is expected back in time, however busy the machine is.
        phone, desk = await online.enter(ADA, "inactive"), await online.enter(ADA, version=1)
        await online.becomes(ADA, "online")
        lose(desk)
        # The desk's window and the writing of it go by, and the phone is there.
        await asyncio.sleep(ACTIVE + 1.5)
        lose(phone)
        await asyncio.sleep(0.2)
        phone = await online.enter(ADA)
        assert [status for status, _, _ in online.told(ADA)] == ["online"], "back in time"
        # Of its last window, the time of the loss is what counts and not its end.
        phone.push("realtime:room", "app_state", {"state": "background"})
        await phone.settled()
        lost = lose(phone)
        await online.becomes(ADA, "offline")
        [_, (status, seen, at)] = online.told(ADA)
        assert status == "offline"
        is_exact(lost, seen)
        assert at - lost > BACKGROUND - EXACT

    async def goodbye():
        client = await online.enter(GRACE, "inactive")
        await online.becomes(GRACE, "online")
        leaves = time.time()
        await client.ask("realtime:room", "phx_leave", {})
        await client.close()
        left = time.time()
        await online.becomes(GRACE, "offline")
        [_, (_, seen, at)] = online.told(GRACE)
        is_exact(left, seen, since=leaves)
        assert at - left < INACTIVE - EXACT, "not after a window"

    async def away_is_the_applications():
        with online.sql() as sql:
            sql.execute("update users set status = 'away' where id = %s", [LINUS.sub])
        client = await online.enter(LINUS)
        # Written in the same batch or after it.
        other = await online.enter(OUTSIDER)
        await online.becomes(OUTSIDER, "online")
        assert online.status(LINUS) == "away"
        lose(client)
        await online.becomes(LINUS, "offline")
        assert [status for status, _, _ in online.told(LINUS)] == ["away", "offline"]
        lose(other)

    async def nobodys():
        """Users that the chat does not have do not keep it from hearing of those that it has."""
        for sub in ("not a uuid", "1' or true --", "99999999-0000-4000-8000-000000000000", "ü\0"):
            await online.enter(Principal("nobody", sub=sub))

    await nobodys()
    await asyncio.gather(several_sockets(), goodbye(), away_is_the_applications())


async def test_who_does_not_come_back_after_the_hub_or_postgres_is_away_goes_offline(cluster, name):
    """A stopped hub, a killed one, and a stopped Postgres, at the same time."""
    def restarted(ending):
        # Who comes back has so long for it.
        return in_time(PATIENCE, lambda number: restart(cluster, f"{name}_{ending}_{number}", ending))
    await asyncio.gather(restarted("stop"), restarted("kill"), outage())


async def restart(cluster, name, ending):
    async with Online(cluster, name) as online:
        back, away = await online.enter(ADA), await online.enter(GRACE)
        for who in (ADA, GRACE):
            await online.becomes(who, "online")
        # Long enough that "seen when it came" and "seen when the hub ended" are two times.
        await asyncio.sleep(2)
        status = await asyncio.to_thread(getattr(online.hub, ending))
        ended = time.time()
        assert status == (0 if ending == "stop" else -9)
        for client in (back, away):
            await client.end()
        assert online.status(ADA) == online.status(GRACE) == "online", "all are expected back"
        await asyncio.to_thread(online.hub.start)
        began = time.time()
        await online.enter(ADA)
        await online.becomes(GRACE, "offline")
        [_, (_, seen, at)] = online.told(GRACE)
        assert at - began > PATIENCE - 1
        print(f"\n{ending}: last seen {ended - seen:.1f} s before the end of the hub")
        # A hub that is killed writes nothing down at that moment; what it last knew may be a little older.
        most = EXACT + 1.5 if ending == "stop" else 15
        monotonic = time.monotonic() - time.time()
        assert -EXACT < ended - seen and (
            ended - seen < most or ended - seen - taken(seen + monotonic, ended + monotonic, most) < most)
        assert [status for status, _, _ in online.told(ADA)] == ["online"], "never written offline, never online again"


async def outage():
    cluster = await asyncio.to_thread(lambda: Cluster().start())
    try:
        # Users come while Postgres is away.
        async with Online(cluster, "outage", ROOST_FEED_REQUIRED="false") as online:
            ada = await online.enter(ADA)
            await online.becomes(ADA, "online")
            await asyncio.to_thread(cluster.stop)
            lost = lose(ada)
            comes = time.time()
            await online.enter(GRACE)
            came = time.time()
            # Comes and goes while nobody can be told.
            linus = await online.enter(LINUS)
            gone = lose(linus)
            await asyncio.sleep(ACTIVE + 1.5)
            await asyncio.to_thread(cluster.start)
            await online.becomes(GRACE, "online")
            await online.becomes(ADA, "offline")
            [_, (_, seen, _)] = online.told(ADA)
            is_exact(lost, seen)
            [(status, seen, at)] = online.told(GRACE)
            assert status == "online" and at - came > ACTIVE
            is_exact(came, seen, since=comes)
            # Only the newest word on each.
            [(status, seen, _)] = online.told(LINUS)
            assert status == "offline"
            is_exact(gone, seen)
    finally:
        await asyncio.to_thread(cluster.remove)
