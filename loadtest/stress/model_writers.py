"""Sessions that write at random by a seed, and note when each of their transactions was committed."""

import random
import threading
import time

import psycopg

from model_truth import ALWAYS, END

ROOMS, SHARED = 6, 6
#: Each writer has few keys, which come and go again and again.
KEYS = 14
FIRST = 1000
TAGS, KINDS = ("red", "rose", "blue", "green"), ("open", "odd", "shut")


class Commits:
    """When each transaction was committed: not before the one, not after the other."""

    def __init__(self):
        self.bounds = {0: (ALWAYS, ALWAYS)}
        self._lock = threading.Lock()
        self._doubtful = {}

    def commit(self, connection, owner):
        """What becomes of it where the connection ends is known by the next connection of the same owner: then it is over."""
        transaction = connection.execute("select pg_current_xact_id_if_assigned()::text::bigint").fetchone()[0]
        before = time.monotonic()
        with self._lock:
            self._doubtful.setdefault(owner, {})[transaction] = before
        connection.commit()
        self._note(owner, {transaction: before})

    def is_back(self, owner):
        with self._lock:
            doubtful = dict(self._doubtful.get(owner, {}))
        self._note(owner, doubtful)

    def _note(self, owner, transactions):
        after = time.monotonic()
        with self._lock:
            for transaction, before in transactions.items():
                self.bounds[transaction] = (before, after)
                self._doubtful.get(owner, {}).pop(transaction, None)


class ModelWriter(threading.Thread):
    def __init__(self, url, number, seed, users, commits, rate):
        super().__init__(daemon=True, name=f"writer {number}")
        self.url, self.number, self.users, self.commits = url, number, users, commits
        self.chance = random.Random(f"{seed} writer {number}")
        self.pause = 1 / rate
        self.ended = threading.Event()
        self.committed = self.rolled_back = self.failed = 0
        self.failure = None
        #: Whose memberships this one changes: no other writer does.
        self.pairs = [(room, user) for index, (room, user) in enumerate(churning(users)) if index % 4 == number % 4]

    def run(self):
        while not self.ended.is_set():
            try:
                with psycopg.connect(self.url, connect_timeout=5) as connection:
                    connection.execute("set lock_timeout = '2s'; set statement_timeout = '20s'")
                    connection.commit()
                    self.commits.is_back(self.number)
                    while not self.ended.is_set():
                        self._transact(connection)
                        self.ended.wait(self.chance.expovariate(1) * self.pause)
            except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected, psycopg.errors.UniqueViolation):
                self.rolled_back += 1
            except psycopg.Error:
                # The database is away.
                self.failed += 1
                self.ended.wait(0.1 + self.chance.random() * 0.2)
            except BaseException as failure:  # told by the run
                self.failure = failure
                return
        self._look_back()

    def _look_back(self):
        """Whether the last commit was one is known when the server answers again."""
        for _ in range(100):
            try:
                with psycopg.connect(self.url, connect_timeout=5):
                    self.commits.is_back(self.number)
                    return
            except psycopg.Error:
                time.sleep(0.1)

    def _transact(self, connection):
        shape = self.chance.random()
        if shape < 0.5:
            self._write(connection)
        else:
            for _ in range(self.chance.randint(2, 5)):
                if self.chance.random() < 0.2:
                    self._attempt(connection)
                else:
                    self._write(connection)
                if shape > 0.93:
                    # Early versions that are committed late.
                    self.ended.wait(self.chance.random() * 0.2)
        if self.chance.random() < 0.06:
            connection.rollback()
            self.rolled_back += 1
            return
        self.commits.commit(connection, self.number)
        self.committed += 1

    def _attempt(self, connection):
        """Half of it is taken back, as a savepoint does."""
        connection.execute("savepoint s")
        self._write(connection)
        self._write(connection)
        connection.execute("rollback to savepoint s" if self.chance.random() < 0.5 else "release savepoint s")

    def _write(self, connection):
        kind = self.chance.random()
        if kind < 0.40:
            self._write_messages(connection)
        elif kind < 0.58:
            self._write_notes(connection)
        elif kind < 0.76:
            self._write_posts(connection)
        elif kind < 0.93:
            self._write_events(connection)
        elif self.pairs:
            self._change_membership(connection)

    # Values

    def _key(self):
        return FIRST * (self.number + 1) + self.chance.randrange(KEYS)

    def _keys(self):
        return sorted({self._key() for _ in range(self.chance.randint(1, 5))})

    def _n(self):
        return None if self.chance.random() < 0.1 else self.chance.randrange(100)

    def _owner(self):
        return self.chance.choice(self.users).sub

    def _body(self, largest=12):
        """Sometimes one that Postgres keeps apart from its row, where the WAL has it nevertheless (docs/capture.md)."""
        size = largest if self.chance.random() < 0.02 else self.chance.randint(1, 12)
        return "".join(f"{self.chance.getrandbits(32):08x}" for _ in range(size))

    # Statements

    def _write_messages(self, connection):
        what, run = self.chance.random(), connection.execute
        if what < 0.35:
            run("insert into messages (id, room, n, tag, body) select id, %s, %s, %s, %s from unnest(%s::int[]) id "
                "on conflict (id) do nothing",
                [self.chance.randrange(ROOMS), self._n(), self.chance.choice(TAGS), self._body(3000), self._keys()])
        elif what < 0.55:
            run("update messages set n = %s, tag = %s where id = any (%s)", [self._n(), self.chance.choice(TAGS), self._keys()])
        elif what < 0.65:
            run("update messages set room = %s where id = %s", [self.chance.randrange(ROOMS), self._key()])
        elif what < 0.78:
            run("delete from messages where id = any (%s)", [self._keys()])
        elif what < 0.84:
            run("update messages set id = %(to)s where id = %(of)s and not exists (select from messages where id = %(to)s)",
                {"of": self._key(), "to": self._key()})
        elif what < 0.90:
            run("insert into messages (id, room, n, tag, body) values (%s, %s, %s, 'rose', %s) "
                "on conflict (id) do update set n = excluded.n, body = excluded.body",
                [self._key(), self.chance.randrange(ROOMS), self._n(), self._body(3000)])
        else:
            run("update messages set n = %s where id = %s", [self._n(), self.chance.randrange(SHARED)])

    def _write_notes(self, connection):
        what, run = self.chance.random(), connection.execute
        if what < 0.35:
            run("insert into notes (id, owner, n, body) select id, %s, %s, %s from unnest(%s::int[]) id on conflict (id) do nothing",
                [self._owner(), self._n(), self._body(), self._keys()])
        elif what < 0.55:
            run("update notes set n = %s where id = any (%s)", [self._n(), self._keys()])
        elif what < 0.75:
            run("update notes set owner = %s where id = any (%s)", [self._owner(), self._keys()])
        elif what < 0.82:
            run("update notes set id = %(to)s where id = %(of)s and not exists (select from notes where id = %(to)s)",
                {"of": self._key(), "to": self._key()})
        else:
            run("delete from notes where id = any (%s)", [self._keys()])

    def _write_posts(self, connection):
        what, run = self.chance.random(), connection.execute
        if what < 0.35:
            run("insert into posts (id, owner, is_public, kind, n) select id, %s, %s, %s, %s from unnest(%s::int[]) id "
                "on conflict (id) do nothing",
                [self._owner(), self.chance.random() < 0.5, self.chance.choice(KINDS), self._n(), self._keys()])
        elif what < 0.6:
            run("update posts set is_public = not is_public where id = any (%s)", [self._keys()])
        elif what < 0.7:
            run("update posts set owner = %s where id = any (%s)", [self._owner(), self._keys()])
        elif what < 0.8:
            run("update posts set kind = %s, n = %s where id = any (%s)", [self.chance.choice(KINDS), self._n(), self._keys()])
        else:
            run("delete from posts where id = any (%s)", [self._keys()])

    def _write_events(self, connection):
        what, run = self.chance.random(), connection.execute
        part = self.chance.randrange(2)
        if what < 0.4:
            run("insert into events (part, id, n, body) select %s, id, %s, %s from unnest(%s::int[]) id on conflict do nothing",
                [part, self._n(), self._body(), self._keys()])
        elif what < 0.65:
            run("update events set n = %s where id = any (%s)", [self._n(), self._keys()])
        elif what < 0.75:
            run("update events e set part = %(part)s where id = %(id)s and part = 1 - %(part)s and not exists ("
                "select from events o where o.id = e.id and o.part = %(part)s)", {"part": part, "id": self._key()})
        else:
            run("delete from events where id = any (%s) and part < 2", [self._keys()])

    def _change_membership(self, connection):
        room, user = self.chance.choice(self.pairs)
        if self.chance.random() < 0.5:
            connection.execute("insert into members values (%s, %s) on conflict do nothing", [room, user.sub])
        else:
            connection.execute("delete from members where room = %s and member = %s", [room, user.sub])


def churning(users):
    """Memberships that come and go. The rest is as it was at first, so that it is certain who sees what."""
    return [(room, user) for number, user in enumerate(users) for room in ((number + 3) % ROOMS, (number + 4) % ROOMS)]


def lasting(users):
    return [(room, user) for number, user in enumerate(users) for room in (number % ROOMS, (number + 1) % ROOMS)]
