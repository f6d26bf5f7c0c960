"""Clients of PyPI that hear the rows of a table while somebody restarts the hub, and what of it they got.

    witness.py URL SECRET CONNINFO TABLE

Writes a row every few milliseconds, and prints `joined` when all clients hear them. On SIGTERM it writes no more, gives the
clients time to get what they miss, prints one line and ends with 0 if nothing was lost.
"""

import asyncio
import logging
import signal
import sys

from realtime import AsyncRealtimeClient

from support.deadline import eventually
from support.returning import Rows, in_order
from support.tokens import signed

CLIENTS = 20
ROWS_A_SECOND = 100
LAST = 4102444800  # 2100-01-01: these tokens do not expire

# What the client says about lost connections is what this is about.
for name in ("realtime", "websockets"):
    logging.getLogger(name).setLevel(logging.CRITICAL + 1)


class Witness:
    def __init__(self, url, secret, number):
        claims = {"role": "authenticated", "sub": f"witness-{number}", "exp": LAST}
        # Its own pauses are made for the internet.
        self.client = AsyncRealtimeClient(url, signed(claims, secret), initial_backoff=0.2, max_retries=100)
        self.ids, self.joins = [], 0

    async def open(self, table):
        channel = self.client.channel("package")
        channel.on_postgres_changes(
            "INSERT", schema="public", table=table,
            callback=lambda change: self.ids.append(change["data"]["record"]["id"]))
        await channel.subscribe(self._state)

    def _state(self, state, _):
        self.joins += state.value == "SUBSCRIBED"


async def main(url, secret, conninfo, table):
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    witnesses = [Witness(url, secret, number) for number in range(CLIENTS)]
    await asyncio.gather(*(witness.open(table) for witness in witnesses))
    rows = Rows(conninfo, f"public.{table}", ROWS_A_SECOND)
    rows.start()
    await eventually(lambda: all(witness.ids for witness in witnesses), 20, "rows for all clients")
    print("joined", flush=True)
    await stop.wait()
    committed = set(await rows.stop())

    def lost():
        # A row that was committed before a client's first one was not for it.
        return sum(len({id for id in committed if id >= min(witness.ids)} - set(witness.ids)) for witness in witnesses)
    try:
        await eventually(lambda: lost() == 0, 30, "all rows")
    except AssertionError:
        pass
    repeated = sum(len(witness.ids) - len(set(witness.ids)) for witness in witnesses)
    disordered = sum(not in_order(witness.ids) for witness in witnesses)
    joins = sum(witness.joins for witness in witnesses)
    print(f"{len(committed)} rows committed, {CLIENTS} clients, {joins} joins: {lost()} lost, {repeated} repeated, "
          f"{disordered} clients out of order", flush=True)
    for witness in witnesses:
        await witness.client.close()
    return 1 if lost() or disordered else 0


sys.exit(asyncio.run(main(*sys.argv[1:])))
