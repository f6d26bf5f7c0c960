"""Transactions at an even pace, and when each commit returned."""

import subprocess
import threading
import time

from programs import BenchError


class Commits(threading.Thread):
    """One psql session. `sql` makes the statement from a number, which is when it was due in monotonic nanoseconds; so a row that
    carries it, or one of the next few numbers, tells by itself how late it is."""

    def __init__(self, cluster, database, rate, sql):
        super().__init__(daemon=True)
        self.session = subprocess.Popen([cluster.bin / "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1",
                                         cluster.url(database)], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.rate, self.sql = rate, sql
        self.done = []  # (number, when the commit returned)
        self.ended = threading.Event()

    def run(self):
        began = time.monotonic_ns()
        for turn in range(1 << 40):
            due = began + int(turn * 1e9 / self.rate)
            if self.ended.wait(max(0, (due - time.monotonic_ns()) / 1e9)):
                return
            self.session.stdin.write(f"{self.sql(due)};\n\\echo committed\n")
            self.session.stdin.flush()
            if not self.session.stdout.readline():
                return
            self.done.append((due, time.monotonic_ns()))

    def finish(self):
        self.ended.set()
        self.join()
        self.session.stdin.close()
        self.session.stdout.close()
        if self.session.wait() != 0:
            raise BenchError("a writer's session failed; see the lines above")
