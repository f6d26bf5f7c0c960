"""What it costs a hub to be scraped."""

import contextlib
import http.client
import statistics
import threading
import time

from crowd import Rooms
from hub import SILENCE, Hub
from processes import cpu_us
from programs import BenchError
from table import show, spread, verdict

SOCKETS = 10_000
INTERVAL = 1  # second from scrape to scrape
PERCENT_BUDGET = 1


def measure(programs, cluster, arguments):
    rounds = arguments.rounds or (3 if arguments.quick else 5)
    seconds = 10 if arguments.quick else 30
    hub = Hub(programs, cluster, cluster.create("scrape"), arguments.loops, ["public.roost_load"], ops=True, **SILENCE)
    found, scraper = {False: [], True: []}, Scraper()
    with hub, Rooms(hub, SOCKETS) as crowd:
        crowd.ask("join", channels=[[[f"realtime:room {number // 10}", {}]] for number in range(SOCKETS)])
        # The first round warms up.
        for turn in range(rounds + 1):
            for scrapes in (False, True):
                with scraper.scraping(hub.ops_port) if scrapes else contextlib.nullcontext():
                    before = cpu_us(hub.pid)
                    crowd.ask("listen", seconds=seconds)
                    if turn:
                        found[scrapes].append((cpu_us(hub.pid) - before) / 1e4 / seconds)
    extra = [scraped - silent for silent, scraped in zip(found[False], found[True])]
    show(f"{SOCKETS:,} silent sockets, joined ten by ten, {arguments.loops} loop(s): CPU % of a core; median of "
         f"{rounds} rounds of {seconds} s", ["nobody scrapes", f"a scrape every {INTERVAL} s", "the difference", "budget"],
         [[spread(found[False], 3), spread(found[True], 3), spread(extra, 3),
           f"≤ {PERCENT_BUDGET} {verdict(statistics.median(extra) <= PERCENT_BUDGET)}"]])
    print(f"\nA scrape has {scraper.size:,} bytes and takes {spread(scraper.times)} ms.")


class Scraper:
    """As Prometheus: one connection that is kept."""

    def __init__(self):
        self.size, self.times = 0, []

    @contextlib.contextmanager
    def scraping(self, port):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        end, failures = threading.Event(), []

        def work():
            try:
                while not end.wait(INTERVAL):
                    began = time.monotonic()
                    connection.request("GET", "/metrics")
                    self.size = len(connection.getresponse().read())
                    self.times.append((time.monotonic() - began) * 1000)
            except OSError as error:
                failures.append(error)
        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()
            connection.close()
        if failures:
            raise BenchError(f"a scrape failed: {failures[0]}")
