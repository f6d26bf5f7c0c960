"""One seed of a model check: set up, write while all goes wrong, settle, judge."""

import asyncio
import contextlib
import random
import time

from model_cast import CLIENTS, USERS, client_of
from model_client import loader
from model_faults import TABLES, ModelFaults
from model_judge import Judge, Reach, disagreement_of_model
from model_report import ModelOutcome
from model_truth import ALWAYS, Truth
from model_writers import ROOMS, SHARED, Commits, ModelWriter, churning, lasting
from support.deadline import eventually
from support.hub import ROOT, Hub

SCHEMA = ROOT / "loadtest/stress/model_schema.sql"
WRITERS, RATE = 4, 14
#: Deadline for all that has to come: a hub tells of a hole within 5 s, and this machine may be busy.
PATIENCE = 25
LATE = 3  # clients that come in the middle


class ModelRun:
    def __init__(self, cluster, options, seed, capture, plan, redis=None, tampering=None):
        self.cluster, self.options, self.seed, self.capture, self.plan = cluster, options, seed, capture, plan
        self.redis, self.tampering = redis, tampering
        self.database = f"model_{seed}_{capture}"
        self.hubs, self.clients, self.commits = [], [], Commits()
        self.captures = {table: random.Random(f"{seed} {table}").choice(("triggers", "wal")) if capture == "both" else capture
                         for table in TABLES}

    async def __call__(self):
        try:
            return await self._run()
        finally:
            await asyncio.to_thread(self._remove)

    def _remove(self):
        if self.options.keep_log:
            with open(self.options.keep_log, "a") as file:
                file.write("\n".join(f"seed {self.seed}, {self.capture}: hub {number}\n{hub.log}" for number, hub in enumerate(self.hubs)))
        for hub in self.hubs:
            hub.remove()
        with contextlib.suppress(Exception), self.cluster.connect() as connection:
            connection.execute("select pg_terminate_backend(active_pid) from pg_replication_slots where database = %s "
                               "and active_pid is not null", [self.database])
            with self.cluster.connect(self.database) as inside:
                inside.execute("select pg_drop_replication_slot(slot_name) from pg_replication_slots where database = current_database()")
            connection.execute(f"drop database {self.database} with (force)")

    # Setting up

    def _set_up(self):
        url = self.cluster.create_migrated_database(self.database)
        settings = {"ROOST_LOOPS": "2", "ROOST_LOG_LEVEL": self.options.log_level,
                    "ROOST_FEED_CAPTURE": "triggers" if self.capture == "triggers" else "wal"}
        for number in range(self.options.hubs):
            cluster = {"ROOST_NODE_NAME": f"hub{number}", "ROOST_CLUSTER_URL": self.redis.url()} if self.redis else {}
            self.hubs.append(Hub(url, **settings, **cluster))
        with self.cluster.connect(self.database) as connection:
            connection.execute(f"alter database {self.database} set synchronous_commit = on")
            connection.execute(SCHEMA.read_text())
            connection.cursor().executemany(
                "insert into members values (%s, %s)",
                [(room, user.sub) for room, user in {*lasting(USERS), *churning(USERS)[::2]}])
            connection.cursor().executemany(
                "insert into messages (id, room, n, tag, body) values (%s, %s, 0, 'red', '')",
                [(number, number % ROOMS) for number in range(SHARED)])
            for transaction, in connection.execute("select distinct transaction::text::bigint from model.log"):
                self.commits.bounds[transaction] = (ALWAYS, ALWAYS)
            for table in TABLES:
                self.watch(table, self.captures[table])
        for hub in self.hubs:
            hub.start()

    def watch(self, table, capture):
        """Every other seed decides about each row by itself."""
        whole = ["--no-scope"] if self.seed % 2 else []
        self.hubs[0].run("watch", table, *whole, ROOST_FEED_CAPTURE=capture)

    async def _run(self):
        await asyncio.to_thread(self._set_up)
        self.load = loader(self.cluster, self.database)
        self.clients = [client_of(self.seed, number, self.hubs, self.load) for number in range(CLIENTS)]
        if self.tampering:
            self.tampering.apply(self.clients)
        faults = self.faults = ModelFaults(
            self.cluster, self.database, self.hubs, self.clients, self.captures, self.commits, self.redis, self.watch)
        watcher = asyncio.create_task(faults.watch_hub())
        try:
            return await self._live(faults)
        finally:
            watcher.cancel()
            for client in self.clients:
                client.end()

    async def _live(self, faults):
        early, late = self.clients[:-LATE], self.clients[-LATE:]
        for client in early:
            client.start()
        await eventually(lambda: all(client.is_settled for client in early), 30, lambda: "joins: " + "; ".join(
            f"{client.name}: {client.journal.entries[-3:]}" for client in early if not client.is_settled)[:2000])
        url = self.cluster.url(self.database)
        writers = [ModelWriter(url, number, self.seed, USERS, self.commits, RATE) for number in range(WRITERS)]
        self.began, began = time.monotonic(), asyncio.get_running_loop().time()
        for writer in writers:
            writer.start()
        latecomers = asyncio.create_task(self._open(late))
        await asyncio.gather(faults.run(self.plan, began), asyncio.sleep(self.options.seconds), latecomers)
        # What was put right is put to the test, too.
        await asyncio.sleep(1.5)
        for writer in writers:
            writer.ended.set()
        await asyncio.gather(*(asyncio.to_thread(writer.join, 40) for writer in writers))
        faults.failures += [f"{writer.name}: {writer.failure!r}" for writer in writers if writer.failure or writer.is_alive()]
        return await self._settle(faults)

    async def _open(self, late):
        for client in late:
            await asyncio.sleep(self.options.seconds / (LATE + 1))
            client.start()

    # Judging

    async def _settle(self, faults):
        for hub in self.hubs:
            await eventually(lambda: hub.ops("/readyz")[0] == 200, 40, lambda: f"/readyz; the hub said: {hub.log[-2000:]}", every=0.1)
        await faults.rewatch(*TABLES)
        began, patience = time.monotonic(), 2 if self.tampering else PATIENCE
        truth = await asyncio.to_thread(self._truth, faults)
        while True:
            if all(client.is_settled for client in self.clients):
                judges = self._judges(truth, faults)
                if all(judge.is_content for _, judge in judges) or time.monotonic() - began > patience:
                    break
            elif time.monotonic() - began > patience:
                break
            await asyncio.sleep(0.25)
        settled = time.monotonic() - began
        # What nobody has to be sent may still be on its way.
        for hub in self.hubs:
            await hub.settled()
        await asyncio.sleep(0.3)
        if self.tampering:
            self.tampering.finish()
        away = [client for client in self.clients if not client.is_settled]
        judges = self._judges(truth, faults)
        outcome = ModelOutcome(self, truth, faults, settled, away, [(client, judge.fold, judge.verdict()) for client, judge in judges])
        outcome.failures += truth.unknown + await asyncio.to_thread(self._disagreements, truth)
        return outcome

    def _truth(self, faults):
        with self.cluster.connect(self.database) as connection:
            return Truth(connection, self.commits.bounds, faults.policies, self.began)

    def _judges(self, truth, faults):
        shown = [(client, channel, fold) for client in self.clients for channel in client.channels.values()
                 for fold in channel.folds if fold.since]
        reach = Reach(truth, [fold for _, _, fold in shown])
        return [(client, Judge(truth, client.user, fold, channel.absences, faults.holes, reach)) for client, channel, fold in shown]

    def _disagreements(self, truth):
        found = []
        for client in self.clients:
            for channel in client.channels.values():
                _, tables = self.load(client.user, channel.folds)
                for fold, rows in zip(channel.folds, tables):
                    found += disagreement_of_model(truth, client.user, fold, rows)
        return found
