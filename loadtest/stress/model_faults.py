"""What a model check does to hubs and Postgres, and above all to the capture of changes: faults that lose some, of which
clients have to be told (docs/capture.md, docs/recovery.md)."""

import asyncio
import contextlib
import subprocess
import time
from dataclasses import dataclass

import psycopg

from faults import Faults
from support.deadline import eventually

TABLES = ("messages", "notes", "posts", "events")
PUBLISHED = "insert, update, delete, truncate"
NARROW = "alter policy readers on posts using (is_public or owner = model.me())"
WIDE = "alter policy readers on posts using (is_public or owner = model.me() or kind = 'open')"


@dataclass
class Hole:
    """Changes that were committed in this time may be lost, and what was not delivered before it."""
    kind: str
    began: float
    ended: float


class ModelFaults(Faults):
    """`captures` is how each table is captured; it is changed by a switch."""

    def __init__(self, cluster, database, hubs, clients, captures, commits, redis, watch):
        super().__init__(cluster, database, hubs[0], clients)
        self.hubs, self.captures, self.commits, self.redis, self._watch = hubs, captures, commits, redis, watch
        self.holes, self.policies = [], []
        self._choosing, self._policy_lock = asyncio.Lock(), asyncio.Lock()
        self._partitions = 1

    @contextlib.asynccontextmanager
    async def _hole(self, kind):
        """No other fault of the capture or of Postgres meanwhile; hubs and sockets may fail.

        Who takes the hubs down as well does that inside: a fault of Postgres waits for them."""
        async with self._database_lock:
            with self._noted(kind):
                yield

    @contextlib.contextmanager
    def _noted(self, kind):
        hole = Hole(kind, time.monotonic(), float("inf"))
        self.holes.append(hole)
        try:
            yield
        finally:
            hole.ended = time.monotonic()

    def _execute(self, *statements):
        """Each in a transaction of its own, unless it is several."""
        with self.cluster.connect(self.database, connect_timeout=5) as connection:
            connection.execute("set lock_timeout = '10s'")
            for statement in statements:
                connection.execute(statement)

    async def _run(self, *statements):
        await asyncio.to_thread(self._execute, *statements)

    def _table(self, chance, capture):
        return chance.choice([table for table in TABLES if self.captures[table] == capture] or TABLES)

    # Hubs

    async def _hub_kill(self, fault, chance):
        async with self._choosing:
            self.hub = chance.choice(self.hubs)
            await super()._hub_kill(fault, chance)

    async def _hub_stop(self, fault, chance):
        async with self._choosing:
            self.hub = chance.choice(self.hubs)
            await super()._hub_stop(fault, chance)

    async def watch_hub(self):
        while True:
            await asyncio.sleep(0.2)
            for hub in self.hubs:
                if not self._hub_lock.locked() and hub.process.poll() is not None:
                    self.failures.append(f"a hub ended by itself with {hub.process.returncode}: {hub.log[-1500:]}")
                    async with self._choosing, self._hub_lock:
                        self.hub = hub
                        await self._start_hub()

    @contextlib.asynccontextmanager
    async def _all_hubs_down(self):
        async with self._choosing, self._hub_lock:
            for hub in self.hubs:
                await asyncio.to_thread(hub.kill)
            try:
                yield
            finally:
                for self.hub in self.hubs:
                    await self._start_hub()

    async def _redis_kill(self, fault, chance):
        await asyncio.to_thread(self.redis.kill)
        await asyncio.sleep(chance.uniform(0, 1))
        await asyncio.to_thread(self.redis.start)

    # Clients

    async def _leave(self, fault, chance):
        for client in self._some(fault, chance):
            client.leave()

    # Policies

    async def _policy(self, fault, chance):
        async with self._policy_lock:
            widened = await self._certainly(WIDE)
            self.policies.append([widened, (float("inf"), float("inf"))])
            await asyncio.sleep(fault.seconds)
            self.policies[-1][1] = await self._certainly(NARROW)

    async def _certainly(self, statement):
        """Of one that may be said twice: not before the one time, not after the other."""
        before = time.monotonic()
        while True:
            try:
                await self._run(statement)
                return before, time.monotonic()
            except psycopg.Error:
                await asyncio.sleep(0.1)

    # Holes

    async def _outbox(self, fault, chance):
        """Live, with some clients away, or with no hub that runs."""
        statement = chance.choice(("truncate roost.change", "delete from roost.change"))
        way = chance.choice(("live", "away", "down"))
        if way == "away":
            for client in self._some(fault, chance):
                client.go_away(fault.seconds + 0.5)
            await asyncio.sleep(fault.seconds)
        async with self._database_lock, self._all_hubs_down() if way == "down" else contextlib.nullcontext():
            if way == "down":
                await asyncio.sleep(fault.seconds)
            with self._noted(f"outbox {way}"):
                await self._run(statement)

    async def _unwatch(self, fault, chance):
        table = chance.choice(TABLES)
        async with self._hole(f"unwatch {table}"):
            await self._insist(self.hubs[0].run, "unwatch", table)
            await asyncio.sleep(fault.seconds)
            await self.rewatch(table)

    async def rewatch(self, *tables):
        for table in tables:
            await self._insist(self._watch, table, self.captures[table])

    @staticmethod
    async def _insist(command, *arguments, times=5):
        """Other faults end sessions of Postgres, a command's too; it may be given again."""
        for last in range(1, times + 1):
            try:
                return await asyncio.to_thread(command, *arguments)
            except AssertionError:
                if last == times:
                    raise

    async def _triggers_off(self, fault, chance):
        table = self._table(chance, "triggers")
        names = chance.choice((["roost_insert"], ["roost_update"], ["roost_insert", "roost_update", "roost_delete"]))
        is_dropped = chance.random() < 0.3
        async with self._hole(f"triggers of {table} {'dropped' if is_dropped else 'off'}"):
            if is_dropped:
                await self._run(*(f"drop trigger if exists {name} on {table}" for name in names))
                await asyncio.sleep(fault.seconds)
                await self.rewatch(table)
                return
            await self._run("; ".join(f"alter table {table} disable trigger {name}" for name in names))
            await asyncio.sleep(fault.seconds)
            await self._run("; ".join(f"alter table {table} enable trigger {name}" for name in names))

    async def _swap(self, fault, chance):
        table = chance.choice(("messages", "notes"))
        async with self._hole(f"swap of {table}"):
            await self._run(f"""begin; lock table {table} in access exclusive mode;
                alter table {table} rename to {table}_before;
                create table {table} (like {table}_before including all);
                insert into {table} select * from {table}_before;
                select model.furnish('{table}');
                commit""")
            await asyncio.sleep(fault.seconds)
            await self.rewatch(table)
            await self._run(f"drop table {table}_before")

    async def _partition(self, fault, chance):
        """One that is written to at once, by its own name."""
        self._partitions += 1
        part = self._partitions

        def write():
            with psycopg.connect(self.cluster.url(self.database)) as connection:
                connection.execute("set lock_timeout = '10s'")
                connection.execute(f"create table events_{part} partition of events for values in ({part})")
                connection.execute(f"grant select on events_{part} to anon, authenticated")
                for first in (1, 4):
                    connection.execute(f"insert into events_{part} (part, id, n) select {part}, id, 1 from "
                                       f"generate_series({first}, {first + 2}) id")
                    self.commits.commit(connection, f"partition {part}")
                    time.sleep(fault.seconds / 2)
        async with self._hole("partition"):
            await asyncio.to_thread(write)
            await self.rewatch("events")

    # Of the WAL

    async def _slot(self, fault, chance):
        async with self._hole("slot"), self._all_hubs_down() if chance.random() < 0.6 else contextlib.nullcontext():
            def drop():
                with self.cluster.connect(self.database) as connection:
                    connection.execute("select pg_terminate_backend(active_pid) from pg_replication_slots "
                                       "where active_pid is not null and database = current_database()")
                    try:
                        connection.execute("select pg_drop_replication_slot(slot_name) from pg_replication_slots "
                                           "where database = current_database()")
                    except (psycopg.errors.ObjectInUse, psycopg.errors.UndefinedObject):
                        return False
                    return True
            await eventually(lambda: asyncio.to_thread(drop), 20, "the slot to be dropped", every=0.05)
            await asyncio.sleep(fault.seconds)
        # Changes are lost until there is another one.
        hole = self.holes[-1]
        await eventually(self._has_slot, 30, "another slot", every=0.1)
        hole.ended = time.monotonic()

    async def _has_slot(self):
        def look():
            with contextlib.suppress(psycopg.Error), self.cluster.connect(self.database) as connection:
                return connection.execute("select count(*) > 0 from pg_replication_slots where database = current_database() "
                                          "and confirmed_flush_lsn is not null").fetchone()[0]
        return await asyncio.to_thread(look)

    async def _published(self):
        def look():
            with self.cluster.connect(self.database) as connection:
                return [row[0] for row in connection.execute("select tablename from pg_publication_tables where pubname = 'roost'")]
        return await asyncio.to_thread(look)

    async def _publication(self, fault, chance):
        async with self._hole("publication"):
            tables = ", ".join(await self._published())
            await self._run("drop publication roost")
            await asyncio.sleep(fault.seconds)
            await self._run(f"create publication roost for table {tables} with (publish = '{PUBLISHED}', "
                            "publish_via_partition_root = true)")

    async def _narrow(self, fault, chance):
        table = self._table(chance, "wal")
        how = chance.choice(("publish", "rows", "table"))
        if how == "publish":
            broken, mended = "set (publish = 'insert')", f"set (publish = '{PUBLISHED}')"
        elif how == "rows":
            # Postgres refuses UPDATE where a filter reads more than the identity shows: id is in all of them.
            # Another fault may have put it back a moment ago, and what it had is not yet there again.
            published = await eventually(self._published, 20, "tables that are published", every=0.1)
            tables = [each for each in published if each != "members"]
            broken = "set table " + ", ".join(f"{each} where (id % 2 = 0)" if each == table else each for each in tables)
            mended = "set table " + ", ".join(tables)
        else:
            broken, mended = f"drop table {table}", f"add table {table}"
        async with self._hole(f"narrow {how} {table}"):
            await self._run(f"alter publication roost {broken}")
            await asyncio.sleep(fault.seconds)
            await self._run(f"alter publication roost {mended}")

    async def _switch(self, fault, chance):
        """From one capture to the other, which loses nothing."""
        table = chance.choice(TABLES)
        wanted = "wal" if self.captures[table] == "triggers" else "triggers"
        async with self._database_lock:
            with contextlib.suppress(subprocess.TimeoutExpired, AssertionError):
                await asyncio.to_thread(self._watch, table, wanted)
                self.captures[table] = wanted
