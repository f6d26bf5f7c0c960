"""Does to the hub, to Postgres and to sockets what the plan says."""

import asyncio
import collections
import contextlib
import os
import pathlib
import random
import signal
import subprocess

import psycopg

from support.deadline import eventually


class Faults:
    """At most one fault of the hub at a time, and one of Postgres; all else may come together.

    `failures` are sentences about what the run could not do; they make it fail, as it then proves nothing.
    """

    def __init__(self, cluster, database, hub, clients):
        self.cluster, self.database, self.hub, self.clients = cluster, database, hub, clients
        self.counts = collections.Counter()
        self.failures = []
        self._hub_lock, self._database_lock = asyncio.Lock(), asyncio.Lock()
        self._frozen = set()
        self._tasks = []

    async def run(self, plan, began):
        loop = asyncio.get_running_loop()
        for fault in plan:
            await asyncio.sleep(max(0, began + fault.at - loop.time()))
            self._tasks.append(asyncio.create_task(self._inject(fault)))
        await asyncio.gather(*self._tasks)

    async def _inject(self, fault):
        try:
            await getattr(self, "_" + fault.kind.replace("-", "_"))(fault, random.Random(fault.seed))
            self.counts[fault.kind] += 1
        except Exception as failure:  # told by the run
            self.failures.append(f"{fault.kind}: {type(failure).__name__}: {failure}")

    def thaw(self):
        for pid in list(self._frozen):
            self._signal(pid, signal.SIGCONT)
        self._frozen.clear()

    # The hub

    async def _hub_kill(self, fault, chance):
        async with self._hub_lock:
            await asyncio.to_thread(self.hub.kill)
            await asyncio.sleep(fault.seconds)
            await self._start_hub()

    async def _hub_stop(self, fault, chance):
        async with self._hub_lock:
            try:
                status = await asyncio.to_thread(self.hub.stop, 20)
            except subprocess.TimeoutExpired:
                await asyncio.to_thread(self.hub.kill)
                status = "nothing for 20 s"
            # While Postgres does not answer, the deadline ends it, and it says so: what was stored before counts.
            steps = ("while it was storing the cursor", "while it was writing down")
            in_time = status == 70 and any(step in self.hub.log for step in steps)
            if status != 0 and not in_time:
                self.failures.append(f"after SIGTERM the hub ended with {status}: {self.hub.log[-500:]}")
            await asyncio.sleep(fault.seconds)
            await self._start_hub()

    async def _hub_freeze(self, fault, chance):
        async with self._hub_lock:
            pid = self.hub.process.pid
            self._frozen.add(pid)
            self._signal(pid, signal.SIGSTOP)
            await asyncio.sleep(fault.seconds)
            self._signal(pid, signal.SIGCONT)
            self._frozen.discard(pid)

    async def _start_hub(self):
        self.hub.start(wait=False)
        # It says so when it follows the database, which may be away itself.
        with contextlib.suppress(AssertionError):
            await eventually(lambda: self.hub.is_listening or self.hub.process.poll() is not None, 15)

    async def switch_captures(self, every=2):
        """From triggers to the WAL and back, whatever else happens. What cannot be done while a server is away, or a writer
        keeps its lock for long, is tried again by the next one."""
        wanted = "triggers"
        while True:
            await asyncio.sleep(every)
            with contextlib.suppress(subprocess.TimeoutExpired):
                outcome = await asyncio.to_thread(
                    self.hub.run, "watch", "messages", "--wait", "25", check=False, ROOST_FEED_CAPTURE=wanted)
                if outcome.returncode == 0:
                    self.counts[f"switch to {wanted}"] += 1
                    wanted = "wal" if wanted == "triggers" else "triggers"

    async def watch_hub(self):
        """A hub that ends by itself is a finding, and is started again as a service manager would."""
        while True:
            await asyncio.sleep(0.2)
            if not self._hub_lock.locked() and self.hub.process.poll() is not None:
                self.failures.append(
                    f"the hub ended by itself with {self.hub.process.returncode}: {self.hub.log[-1500:]}")
                async with self._hub_lock:
                    await self._start_hub()

    # Postgres

    def _hub_sessions(self):
        with self.cluster.connect(self.database) as connection:
            return [row[0] for row in connection.execute(
                "select pid from pg_stat_activity where application_name like 'roost%%' order by pid")]

    async def _backend_kill(self, fault, chance):
        def kill():
            # The server may be away just then: then there is no session to end.
            with contextlib.suppress(psycopg.Error):
                sessions = self._hub_sessions()
                chosen = sessions if chance.random() < 0.5 else chance.sample(sessions, min(1, len(sessions)))
                with self.cluster.connect(self.database) as connection:
                    for pid in chosen:
                        connection.execute("select pg_terminate_backend(%s)", [pid])
        await asyncio.to_thread(kill)

    async def _backend_freeze(self, fault, chance):
        sessions = []
        with contextlib.suppress(psycopg.Error):
            sessions = await asyncio.to_thread(self._hub_sessions)
        chosen = sessions if chance.random() < 0.3 else chance.sample(sessions, min(1, len(sessions)))
        for pid in chosen:
            self._frozen.add(pid)
            self._signal(pid, signal.SIGSTOP)
        await asyncio.sleep(fault.seconds)
        for pid in chosen:
            self._signal(pid, signal.SIGCONT)
            self._frozen.discard(pid)

    async def _pg_fast(self, fault, chance):
        await self._restart_database("fast", fault.seconds)

    async def _pg_immediate(self, fault, chance):
        await self._restart_database("immediate", fault.seconds)

    async def _restart_database(self, mode, pause):
        async with self._database_lock:
            await asyncio.to_thread(self.cluster.stop, mode)
            await asyncio.sleep(pause)
            await asyncio.to_thread(self.cluster.start)

    async def _pg_kill(self, fault, chance):
        """kill -9 of one of its processes: Postgres ends all sessions and recovers."""
        async with self._database_lock:
            postmaster = int(pathlib.Path(self.cluster.data, "postmaster.pid").read_text().split()[0])
            children = pathlib.Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
            self._signal(int(chance.choice(sorted(children))), signal.SIGKILL)
            await eventually(self._answers, 20, "Postgres to recover", every=0.1)

    def _answers(self):
        with contextlib.suppress(psycopg.Error), self.cluster.connect(self.database, connect_timeout=2) as connection:
            return connection.execute("select true").fetchone()[0]

    # Sockets

    def _some(self, fault, chance):
        return chance.sample(self.clients, max(1, round(len(self.clients) * fault.share)))

    async def _rst(self, fault, chance):
        """Some have bytes unread in the kernel then: acknowledged to the hub, and never seen by the client."""
        chosen = self._some(fault, chance)
        for client in chosen:
            if chance.random() < 0.7:
                client.pause()
        await asyncio.sleep(chance.uniform(0, 0.4))
        for client in chosen:
            client.cut()

    async def _half_open(self, fault, chance):
        for client in self._some(fault, chance):
            if hasattr(client, "abandon"):
                client.abandon()

    async def _stall(self, fault, chance):
        chosen = [(client, client.pause()) for client in self._some(fault, chance)]
        await asyncio.sleep(fault.seconds)
        for client, paused in chosen:
            if paused:
                client.resume(paused)

    async def _reload(self, fault, chance):
        for client in self._some(fault, chance):
            if hasattr(client, "reload"):
                client.reload()

    async def _slow(self, fault, chance):
        chosen = [client for client in self._some(fault, chance) if hasattr(client, "slow_down")]
        for client in chosen:
            client.slow_down(48_000)
        await asyncio.sleep(fault.seconds)
        for client in chosen:
            client.slow_down(None)

    @staticmethod
    def _signal(pid, number):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
