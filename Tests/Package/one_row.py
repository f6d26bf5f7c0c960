"""A client of PyPI that hears one row: joins, has it inserted, prints after how many seconds it came, and ends with 0.

    one_row.py URL TOKEN CONNINFO TABLE
"""

import asyncio
import logging
import sys
import time

import psycopg
from realtime import AsyncRealtimeClient

#: Seconds for the join and for the row, each; a machine under load takes some.
PATIENCE = 60

# The hub may not listen yet, which the client says for each try.
for name in ("realtime", "websockets"):
    logging.getLogger(name).setLevel(logging.CRITICAL + 1)


async def main(url, token, conninfo, table):
    subscribed, came = asyncio.Event(), asyncio.Event()
    client = AsyncRealtimeClient(url, token, initial_backoff=0.1, max_retries=200)
    channel = client.channel("one-row")
    channel.on_postgres_changes("INSERT", schema="public", table=table, callback=lambda _: came.set())
    channel.on_system(lambda message: "Subscribed to PostgreSQL" in str(message) and subscribed.set())
    await channel.subscribe()
    await asyncio.wait_for(subscribed.wait(), PATIENCE)
    began = time.monotonic()
    async with await psycopg.AsyncConnection.connect(conninfo, autocommit=True) as sql:
        await sql.execute(f"insert into public.{table} default values")
    await asyncio.wait_for(came.wait(), PATIENCE)
    print(f"{time.monotonic() - began:.3f}")
    await client.close()


asyncio.run(main(*sys.argv[1:]))
