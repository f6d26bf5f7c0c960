"""The must-show: what arrives is what SELECT shows the same user, cell by cell (support/matrix.py has the rows)."""

from dataclasses import dataclass

import pytest

from support.chat import B, PRINCIPALS, install
from support.markers import Markers
from support.matrix import STEPS, TABLES, Oracle, arrived, ordered, part
from support.pypi import Listener, python_client
from support.wsclient import Client


#: Topics that filter messages by their conversation.
FILTERED = {"filter:INSERT", "filter:UPDATE", "filter:DELETE"}


@dataclass(frozen=True)
class Variant:
    name: str
    secured: bool = True
    #: What `roost watch` is told of scopes: to have none, one that is declared, or nothing, so that it derives them.
    scope: str = "none"
    identity: str = "default"
    columns: bool = False

    def prepare(self, hub, sql):
        install(sql)
        for table in TABLES:
            sql.execute(f"alter table {table} replica identity {self.identity}")
            if not self.secured:
                sql.execute(f"alter table {table} disable row level security; grant select on {table} to anon")
        if self.columns:
            # The policy reads a column that its users may not.
            sql.execute("revoke select on messages from authenticated; grant select (id, body) on messages to authenticated")
            # A privilege without a policy.
            sql.execute("grant select on conversations to anon; grant select (message_id, user_id) on read_receipts to anon")
        for table in TABLES:
            flags = [] if self.scope == "derived" else ["--no-scope"]
            if self.scope == "declared" and table in ("messages", "read_receipts"):
                flags = ["--scope", "conversation_id", "--members", "conversation_participants"]
            said = hub.run("watch", table, *flags).stdout
            if self.scope == "derived" and table in ("messages", "read_receipts"):
                assert "visibility by conversation_id, as its policies say" in said, said
        hub.watch("aside.marker")
        hub.start()


VARIANTS = [
    Variant("default"),
    Variant("full", identity="full"),
    Variant("scope", scope="declared"),
    Variant("derived", scope="derived"),
    Variant("derived-full", scope="derived", identity="full"),
    Variant("columns", columns=True),
    Variant("derived-columns-full", scope="derived", identity="full", columns=True),
    Variant("open", secured=False),
    Variant("open-full", secured=False, identity="full"),
]


@pytest.fixture(params=VARIANTS, ids=lambda variant: variant.name)
def variant(request):
    return request.param


@pytest.fixture
def chat(variant, own_hub, cluster):
    """The hub on a chat of this variant; its database."""
    with cluster.connect(own_hub.database) as sql:
        variant.prepare(own_hub, sql)
        yield sql


class Ear:
    """All subscriptions of one principal, each on a topic of its own, on one socket."""

    def __init__(self, principal, client, oracle):
        self.principal, self.client, self.oracle = principal, client, oracle
        self.refused = {}

    async def subscribe(self):
        await Markers.follow(self.client)
        for table in TABLES:
            await self._add(f"table:{table}", {"event": "*", "schema": "public", "table": table})
        await self._add("wild", {"event": "*", "schema": "public"})
        selected = [name for name in self._columns("messages") if name in ("body", "id")]
        await self._add("select", {"event": "*", "schema": "public", "table": "messages", "select": selected or ["id"]})
        for event in ("INSERT", "UPDATE", "DELETE"):
            await self._add(f"filter:{event}", {
                "event": event, "schema": "public", "table": "messages", "filter": f"conversation_id=eq.{B}"})

    def _columns(self, table):
        return self.oracle.columns[self.principal, table]

    async def _add(self, name, binding):
        topic = f"realtime:{name}"
        await self.client.join(topic, [binding])
        system = await self.client.next("system", topic)
        if system.payload["status"] != "ok":
            self.refused[name] = system.payload["message"]

    def check_refusals(self):
        """Exactly what the role may not read is refused, and the message says what would help."""
        may_read = {table for table in TABLES if self._columns(table)}
        wanted = {f"table:{table}" for table in TABLES if table not in may_read}
        if "messages" not in may_read:
            wanted.add("select")
        if "conversation_id" not in self._columns("messages"):
            wanted |= FILTERED
        assert set(self.refused) == wanted, (self.principal, self.refused)
        for name in wanted - FILTERED:
            table = name.partition(":")[2] or "messages"
            assert f'grant select on public.{table} to "{self.principal.role}";' in self.refused[name]
        if "messages" in may_read:
            for name in wanted & FILTERED:
                assert "permission denied for column conversation_id" in self.refused[name]

    def check(self, told, frames, statement):
        by_topic = {}
        for frame in frames:
            by_topic.setdefault(frame.topic.removeprefix("realtime:"), []).append(frame)
        cells = {table: told.get((self.principal, table), []) for table in TABLES}
        wanted = {f"table:{table}": {table: cell} for table, cell in cells.items()}
        wanted["wild"] = cells
        wanted["select"] = {"messages": [self._selected(cell) for cell in cells["messages"]]}
        for event in ("INSERT", "UPDATE"):
            wanted[f"filter:{event}"] = {"messages": [
                cell for cell in cells["messages"] if cell[0] == event and (cell[1] or {}).get("conversation_id") == B]}
        # By what is not sent of a deleted row.
        may_filter = "conversation_id" in self._columns("messages")
        wanted["filter:DELETE"] = {"messages": [
            cell for cell in cells["messages"] if cell[0] == "DELETE" and may_filter and self.oracle.home[cell[2]["id"]] == B]}
        for topic, tables in wanted.items():
            came = arrived(by_topic.pop(topic, []))
            for table, cell in tables.items():
                assert ordered(came.pop(table, [])) == ordered(cell), f"{self.principal}, {topic}, {table}: {statement}"
            assert not came, f"{self.principal}, {topic}: {came}"
        assert not by_topic, by_topic
        for frame in frames:
            self._check_columns(frame)

    @staticmethod
    def _selected(cell):
        operation, record, old = cell
        return operation, record and part(record, ("id", "body")), old and part(old, ("id", "body"))

    def _check_columns(self, frame):
        data = frame.payload["data"]
        names = self._columns(data["table"])
        if frame.topic == "realtime:select":
            names = [name for name in names if name in ("id", "body")]
        assert [column["name"] for column in data["columns"]] == names


async def test_what_arrives_is_what_select_shows(chat, variant, own_hub):
    oracle = Oracle(chat, PRINCIPALS, variant.identity)
    markers = Markers(chat)
    ears = [Ear(p, await Client.connect(own_hub.port, apikey=p.token()), oracle) for p in PRINCIPALS]
    try:
        for ear in ears:
            await ear.subscribe()
            ear.check_refusals()
        seen = hidden = 0
        for step in STEPS:
            told = oracle.run(step)
            marker = markers.write()
            for ear in ears:
                ear.check(told, await markers.reach(ear.client, marker), step.statement)
            cells = sum(map(len, told.values()))
            seen, hidden = seen + cells, hidden + len(PRINCIPALS) * len(step.touches) - cells
        print(f"\n{variant.name}: {seen} cells were shown, {hidden} were not")
        assert seen > 1000 and (hidden > 1000 or not variant.secured), "the matrix is empty"
        assert "does not hold" not in own_hub.log, own_hub.log
    finally:
        for ear in ears:
            await ear.client.close()


@pytest.mark.parametrize("variant", [Variant("pypi"), Variant("pypi-scope", scope="derived")], ids=lambda v: v.name)
async def test_the_same_through_the_python_client(chat, variant, own_hub):
    people = [p for p in PRINCIPALS if p.role != "anon"]  # a refusal makes this client leave
    oracle = Oracle(chat, people, variant.identity)
    markers = Markers(chat)
    clients, listeners = [], {}
    try:
        for principal in people:
            clients.append(python_client(own_hub, principal.token()))
            client = await clients[-1].__aenter__()
            listener = Listener(client, f"chat-{principal}")
            for table in (*TABLES, "marker"):
                listener.on_changes("*", schema="public" if table != "marker" else "aside", table=table)
            listeners[principal] = await listener.subscribe()
        for step in [step for step in STEPS if len(step.touches) < 5]:
            told = oracle.run(step)
            number = markers.write()
            for principal, listener in listeners.items():
                came = {}
                for data in await listener.take_until(lambda d, n=number: d["table"] == "marker" and d["record"]["id"] == n):
                    came.setdefault(data["table"], []).append((data["type"], data.get("record"), data.get("old_record")))
                for table in TABLES:
                    assert ordered(came.pop(table, [])) == ordered(told.get((principal, table), [])), (
                        f"{principal}, {table}: {step.statement}")
                assert not came
    finally:
        for client in clients:
            await client.__aexit__(None, None, None)
