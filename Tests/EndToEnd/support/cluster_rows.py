"""Rows that are written while several hubs fail."""

import asyncio
import random
import threading

import psycopg

from support.cluster_history import Row


class Items(threading.Thread):
    """Inserts rows and updates them, each in a transaction of its own; `committed` has them in order."""

    def __init__(self, url, seed, rate=20):
        super().__init__(daemon=True)
        self.url, self.chance, self.pause = url, random.Random(seed), 1 / rate
        self.committed, self.newest = [], []
        self.ended = threading.Event()
        self.failure = None

    def run(self):
        try:
            with psycopg.connect(self.url, autocommit=True) as connection:
                while not self.ended.wait(self.pause):
                    if self.newest and self.chance.random() < 0.5:
                        row = self.chance.choice(self.newest[-20:])
                        row.n += 1
                        connection.execute("update items set n = %s where id = %s", [row.n, row.id])
                    else:
                        row = Row(len(self.newest) + 1, 0)
                        connection.execute("insert into items (id, n) values (%s, 0)", [row.id])
                        self.newest.append(row)
                    self.committed.append(Row(row.id, row.n))
        except BaseException as failure:  # shown by the run
            self.failure = failure

    async def stop(self):
        self.ended.set()
        await asyncio.to_thread(self.join, 20)
        assert self.failure is None, self.failure
        return self.committed
