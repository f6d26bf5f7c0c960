"""One run: set up, write while all goes wrong, let it settle, judge."""

import asyncio
import contextlib
import time

import psycopg

from cast import Cast, Everything
from faults import Faults
from report import Outcome
from support.cluster import Cluster
from support.deadline import eventually
from support.hub import ROOT, Hub
from truth import Snapshot, Truth, judge
from writers import Writer

DATABASE = "stress"
SCHEMA = ROOT / "loadtest/stress/schema.sql"
WRITERS = 8
PACKAGED = 10


class Run:
    def __init__(self, options, plan, tampering=None):
        self.options, self.plan, self.tampering = options, plan, tampering
        self.stack = contextlib.ExitStack()

    async def __call__(self):
        try:
            return await self._run()
        finally:
            await asyncio.to_thread(self.stack.close)

    async def _run(self):
        await asyncio.to_thread(self._set_up)
        count, seed = self.options.clients, self.options.seed
        cast = self.cast = Cast(seed, count, min(PACKAGED, count // 4), self.hub)
        cast.on_late = lambda subscription: self._later.append(asyncio.ensure_future(self._note_since(subscription)))
        self._later = []
        await asyncio.to_thread(self._fill_and_watch)
        if self.tampering:
            self.tampering.apply(cast)
        faults = Faults(self.cluster, DATABASE, self.hub, cast.clients)
        self.stack.callback(faults.thaw)
        watcher = asyncio.create_task(faults.watch_hub())
        await self._open(cast)
        url, rate = self.cluster.url(DATABASE), self.options.rate / WRITERS
        # Who changes a table over needs its lock for himself, between two transactions.
        slowest = 0.05 if self.options.capture == "both" else 1
        writers = [Writer(url, number, seed, cast.conversations, rate, slowest) for number in range(WRITERS)]
        began = asyncio.get_running_loop().time()
        for writer in writers:
            writer.start()
        latecomers = asyncio.create_task(self._open_late(cast, self.options.seconds / 2))
        switches = asyncio.create_task(faults.switch_captures() if self.options.capture == "both" else asyncio.sleep(0))
        await asyncio.gather(faults.run(self.plan, began), asyncio.sleep(self.options.seconds))
        switches.cancel()
        for writer in writers:
            writer.ended.set()
        await asyncio.gather(*(asyncio.to_thread(writer.join, 30) for writer in writers), latecomers)
        outcome = await self._settle(cast, faults)
        watcher.cancel()
        outcome.writers(writers)
        for client in cast.raw:
            client.end()
        for client in cast.packaged:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(client.end(), 5)
        return outcome

    def _set_up(self):
        self.cluster = Cluster()
        self.stack.callback(self.cluster.remove)
        with open(f"{self.cluster.data}/postgresql.conf", "a") as file:
            # For those who look into a loss: a row may be written long before it is committed.
            file.write("track_commit_timestamp = on\n")
        self.cluster.start()
        url = self.cluster.create_database(DATABASE)
        with self.cluster.connect(DATABASE) as connection:
            # The test clusters do without; but what was told to be committed has to survive a killed server here.
            connection.execute(f"alter database {DATABASE} set synchronous_commit = on")
            connection.execute(SCHEMA.read_text())
        # A hub that reads the WAL also passes on what triggers wrote.
        capture = "triggers" if self.options.capture == "triggers" else "wal"
        self.hub = Hub(url, ROOST_LOOPS="2", ROOST_LOG_LEVEL=self.options.log_level, ROOST_FEED_CAPTURE=capture)
        self.stack.callback(self.hub.remove)
        self.stack.callback(self._keep_log)
        self.hub.run("migrate")

    def _keep_log(self):
        if self.options.keep_log:
            self.options.keep_log.write_text(self.hub.log)

    def _fill_and_watch(self):
        with self.cluster.connect(DATABASE) as connection:
            connection.cursor().executemany(
                "insert into members values (%s, %s) on conflict do nothing", self.cast.members)
            # The rows that all writers change, one for each conversation.
            connection.cursor().executemany(
                "insert into messages (conversation_id, writer, number) values (%s, -1, 0)",
                [[conversation] for conversation in self.cast.conversations])
            connection.execute("truncate stress.log")
        # Watched from here on, so that what is in the log is what there is to receive. There are two ways to decide who
        # sees what; each has every other run.
        scope = ["--scope", "conversation_id", "--members", "members"] if self.options.seed % 2 else []
        self.hub.run("watch", "messages", *scope)
        self.hub.start()

    async def _open(self, cast):
        for number, client in enumerate(cast.raw):
            if client not in cast.late:
                client.start()
            if number % 20 == 19:
                await asyncio.sleep(0.01)
        await asyncio.gather(*(client.open() for client in cast.packaged))
        present = [client for client in cast.clients if client not in cast.late]
        await eventually(lambda: all(client.is_settled for client in present), 30, lambda: "joins; " + "; ".join(
            f"{client.name}: {client.journal.entries[-3:]}" for client in present if not client.is_settled)[:2000])

    async def _open_late(self, cast, seconds):
        for client in cast.late:
            await asyncio.sleep(seconds / len(cast.late))
            client.start()

    async def _note_since(self, subscription):
        """From the first SUBSCRIBED on: what this snapshot does not see has to come."""
        def snapshot():
            with self.cluster.connect(DATABASE, connect_timeout=5) as connection:
                return Snapshot(connection.execute("select pg_current_snapshot()::text").fetchone()[0])
        life = subscription.lives
        while subscription.since is Everything and subscription.lives == life:
            try:
                found = await asyncio.to_thread(snapshot)
            except (psycopg.Error, OSError):
                await asyncio.sleep(0.3)
                continue
            if subscription.since is Everything and subscription.lives == life:
                subscription.since = found

    async def _settle(self, cast, faults):
        """All is well again; how long everybody needs to have everything."""
        faults.thaw()
        began = time.monotonic()
        await eventually(lambda: self.hub.ops("/readyz")[0] == 200, 40,
                         lambda: f"/readyz; the hub said: {self.hub.log[-2000:]}", every=0.2)
        await asyncio.gather(*self._later)
        truth = await asyncio.to_thread(self._truth)
        due = {id(mine): truth.due(mine) for client in cast.clients for mine in client.subscriptions}

        def has_all(client):
            return client.is_settled and all(due[id(mine)] <= mine.received for mine in client.subscriptions)
        waiting = list(cast.clients)
        while waiting and time.monotonic() - began < self.options.settle:
            await asyncio.sleep(0.1)
            waiting = [client for client in waiting if not has_all(client)]
        settled = time.monotonic() - began
        # Repeats and strangers may still be on their way.
        await asyncio.sleep(0.5)
        if self.tampering:
            self.tampering.finish()
        verdicts = [(client, subscription, judge(truth, subscription))
                    for client in cast.clients for subscription in client.subscriptions]
        away = [client for client in cast.clients if not client.is_settled]
        return Outcome(truth, cast.clients, verdicts, faults, settled, away)

    def _truth(self):
        with self.cluster.connect(DATABASE) as connection:
            return Truth(connection)
