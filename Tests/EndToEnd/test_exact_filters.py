"""Filters answer as a SELECT does, on columns of all types that there are, by both captures: over a thousand of them with
ROOST_EXACT=all."""

import random

import psycopg
import pytest

from support.exact_values import IS_WHOLE, create_table, insert_rows, install, rows, sample
from support.markers import Markers
from support.wsclient import Client

pytestmark = pytest.mark.anyio

SYMBOLS = {"eq": "=", "neq": "<>", "lt": "<", "lte": "<=", "gt": ">", "gte": ">=", "isdistinct": "is distinct from"}
PATTERNS = {"like": "like", "ilike": "ilike", "match": "~", "imatch": "~*"}
#: Filters of one join.
AT_ONCE = 50


def literal(text):
    return "E'" + text.replace("\\", r"\\").replace("'", r"\'") + "'"


def written(text):
    """A value as a filter has it."""
    return '"' + text.replace("\\", r"\\").replace('"', r"\"") + '"'


def conditions(columns, texts):
    """Pairs of a condition as a filter has it and as SQL has it."""
    for name in columns:
        yield f"{name}=is.null", f"{name} is null"
        for text in texts[name]:
            for operator, symbol in SYMBOLS.items():
                yield f"{name}={operator}.{written(text)}", f"{name} {symbol} {literal(text)}"
            yield f"{name}=in.(null,{written(text)})", f"{name} in (null, {literal(text)})"
        several = ", ".join(map(literal, texts[name]))
        yield f"{name}=in.({','.join(map(written, texts[name]))})", f"{name} in ({several})"
        if columns[name][0] in ("text", "char(4)", "varchar(3)", "name", "citext"):
            for operator, symbol in PATTERNS.items():
                yield f"{name}={operator}.{written('a')}", f"{name} {symbol} 'a'"


def filters(columns, texts):
    """Each condition, half of them as what it is not; and pairs of them."""
    chance = random.Random(1)
    every = list(conditions(columns, texts))
    for filter, where in every:
        if chance.random() < 0.5:
            name, rest = filter.split("=", 1)
            filter, where = f"{name}=not.{rest}", f"not ({where})"
        yield filter, where
    for _ in range(400):
        (one, first), (other, second) = chance.sample(every, 2)
        yield f"{one},{other}", f"({first}) and ({second})"


@pytest.mark.parametrize("capture", ["triggers", "wal"])
async def test_filters_answer_as_a_select_does(own_hub, cluster, capture):
    own_hub.environment |= {"ROOST_FEED_CAPTURE": capture, "ROOST_LIMITS_UNDECIDED_FILTERS": "10000", "ROOST_LIMITS_JOINS_PER_SECOND": "1000"}
    with cluster.connect(own_hub.database) as sql:
        columns = install(sql)
        create_table(sql, columns)
        own_hub.watch("t")
        own_hub.watch("aside.marker")
        own_hub.start()
        texts = {name: [sql.execute(f"select ({value}::{type})::text").fetchone()[0] for value in values]
                 for name, (type, values) in columns.items()}
        served, refused = [], []
        for filter, where in sample(filters(columns, texts)):
            try:
                sql.execute(f"select from t where {where}")
                served.append((filter, where))
            except psycopg.Error:
                refused.append(filter)
        assert len(served) >= 1000 or not IS_WHOLE
        markers = Markers(sql)
        clients = []
        for first in range(0, len(served), AT_ONCE):
            client = await Client.connect(own_hub.port)
            await markers.follow(client)
            bindings = [{"event": "*", "schema": "public", "table": "t", "filter": filter} for filter, _ in served[first:first + AT_ONCE]]
            _, response = await client.join(f"realtime:filters:{first}", bindings, {"postgres_changes_options": {"wait": True}})
            ids = {binding["id"]: place for place, binding in enumerate(response["postgres_changes"], first)}
            clients.append((client, ids))
        with cluster.connect(own_hub.database) as writer:
            insert_rows(writer, columns)
        wrong, pairs, given_up = [], 0, 0
        for client, ids in clients:
            # What Postgres is asked about comes behind the marker.
            came = await markers.pass_by(client)
            await own_hub.settled()
            came += await client.settled()
            complaints = [frame.payload["message"] for frame in came if frame.event == "system" and frame.payload["status"] != "ok"]
            if complaints:
                # Beside other load a filter may cost more than it may: the hub says so, and that the rest of its answer is missing.
                assert all("Subscribe with a simpler filter" in complaint for complaint in complaints), complaints
                given_up += 1
                await client.close()
                continue
            told = {place: [] for place in ids.values()}
            for frame in came:
                if frame.event == "postgres_changes" and frame.topic.startswith("realtime:filters"):
                    for id in frame.payload["ids"]:
                        told[ids[id]].append(frame.payload["data"]["record"]["id"])
            for place, rows_told in told.items():
                filter, where = served[place]
                shown = [id for id, in sql.execute(f"select id from t where {where} order by id")]
                pairs += len(shown)
                if sorted(rows_told) != shown:
                    wrong.append(f"{filter}: shown {sorted(set(rows_told) - set(shown))}, hidden {sorted(set(shown) - set(rows_told))}, "
                                 f"twice {len(rows_told) - len(set(rows_told))}")
            await client.close()
        assert given_up < len(clients), "nothing was compared"
        assert not wrong, f"{len(wrong)} of {len(served)}\n" + "\n".join(wrong[:40])
        async with await Client.connect(own_hub.port) as client:
            for number, filter in enumerate(refused):
                binding = {"event": "*", "schema": "public", "table": "t", "filter": filter}
                config = {"postgres_changes": [binding], "postgres_changes_options": {"wait": True}}
                reply = await client.ask(f"realtime:refused:{number}", "phx_join", {"config": config})
                assert reply.payload["status"] == "error", filter
        version = sql.execute("show server_version").fetchone()[0]
        print(f"\nPostgres {version}, {capture}: {len(served)} filters of {len(columns)} types on {sum(1 for _ in rows(columns))} rows, {pairs} of the pairs "
              f"match, {len(refused)} refused by both")
