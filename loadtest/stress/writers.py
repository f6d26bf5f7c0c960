"""Eight sessions that write as applications do: one row, many rows, slowly, and sometimes not after all."""

import random
import threading

import psycopg

MARGIN = 150  # rows of its own that a writer keeps


class Writer(threading.Thread):
    """Seeded, as far as a database that is killed now and then lets it be."""

    def __init__(self, url, number, seed, conversations, rate, slowest=1):
        """`slowest`: seconds that a slow transaction may pause between two statements."""
        super().__init__(daemon=True, name=f"writer {number}")
        self.url, self.number, self.conversations = url, number, conversations
        self.chance = random.Random(seed * 1000 + number)
        self.pause, self.slowest = 1 / rate, slowest
        self.ended = threading.Event()
        self.committed = self.rolled_back = self.failed = 0
        self.failure = None
        self._mine, self._written = [], 0

    def run(self):
        while not self.ended.is_set():
            try:
                with psycopg.connect(self.url, connect_timeout=5) as connection:
                    # Writers wait for each other's rows; a deadline keeps a slow one from holding up all.
                    connection.execute("set lock_timeout = '2s'; set statement_timeout = '20s'")
                    connection.commit()
                    self._reload(connection)
                    while not self.ended.is_set():
                        self._transact(connection)
                        self.ended.wait(self.chance.expovariate(1) * self.pause)
            except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
                self.rolled_back += 1
            except psycopg.Error:
                # The database is away. Whether the last commit was one, stress.log knows.
                self.failed += 1
                self.ended.wait(0.1 + self.chance.random() * 0.3)
            except BaseException as failure:  # told by the run
                self.failure = failure
                return

    def _reload(self, connection):
        self._mine = [row[0] for row in connection.execute("select id from messages where writer = %s", [self.number])]
        connection.commit()

    def _transact(self, connection):
        shape = self.chance.random()
        gone, new = [], []
        if shape < 0.45:
            self._insert(connection, 1, new)
        elif shape < 0.60:
            self._update(connection)
        elif shape < 0.68:
            self._update_shared(connection)
        elif shape < 0.76:
            self._remove(connection, 1, gone)
        elif shape < 0.93:
            for _ in range(self.chance.randint(2, 5)):
                self._some(connection, new, gone)
        else:
            # Ids are drawn early and committed late.
            for _ in range(self.chance.randint(2, 4)):
                self._some(connection, new, gone)
                self.ended.wait(self.chance.random() * self.slowest)
        if self.chance.random() < 0.06:
            connection.rollback()
            self.rolled_back += 1
            return
        connection.commit()
        self.committed += 1
        self._mine = [identity for identity in self._mine if identity not in set(gone)] + new

    def _some(self, connection, new, gone):
        kind = self.chance.random()
        if kind < 0.35:
            self._insert(connection, self.chance.randint(1, 8), new)
        elif kind < 0.65:
            self._update(connection, self.chance.randint(1, 8))
        elif kind < 0.75:
            self._remove(connection, self.chance.randint(1, 4), gone)
        elif kind < 0.85:
            self._update_shared(connection)
        else:
            # What a savepoint takes back was never there.
            connection.execute("savepoint s")
            self._insert(connection, 2, [])
            self._update(connection, 2)
            connection.execute("rollback to savepoint s")

    def _insert(self, connection, count, new):
        conversation = self.chance.choice(self.conversations)
        first = self._written + 1
        self._written += count
        rows = connection.execute(
            "insert into messages (conversation_id, writer, number) "
            "select %s, %s, n from generate_series(%s::int, %s) n returning id",
            [conversation, self.number, first, self._written])
        new += [row[0] for row in rows]

    def _update(self, connection, count=1):
        rows = sorted(self.chance.sample(self._mine, min(count, len(self._mine))))
        connection.execute("update messages set number = number where id = any (%s)", [rows])

    def _update_shared(self, connection):
        """Rows that all writers change, so that the order of their versions is the order of the commits."""
        row = self.chance.randint(1, len(self.conversations))
        connection.execute("update messages set number = number where id = %s", [row])

    def _remove(self, connection, count, gone):
        spare = [identity for identity in self._mine if identity not in gone]
        # Never short of rows, never more and more of them.
        count = min(count if len(spare) < MARGIN else count + len(spare) - MARGIN, len(spare))
        rows = self.chance.sample(spare, count)
        connection.execute("delete from messages where id = any (%s)", [sorted(rows)])
        gone += rows
