"""What each principal is to be told of a write, cell by cell, worked out from SELECTs before and after it."""

from dataclasses import dataclass, field

from support.chat import A, ADA, B, GRACE, LINUS, OUTSIDER, Principal, message

TABLES = ("conversations", "conversation_participants", "messages", "read_receipts")
KEYS = {"conversations": ("id",), "conversation_participants": ("conversation_id", "user_id"), "messages": ("id",),
        "read_receipts": ("message_id", "user_id")}
C = "cccccccc-0000-4000-8000-00000000000c"


@dataclass
class Step:
    """One transaction, and the rows it writes: table, operation, key, and the key before where it changes."""
    statement: str
    touches: list = field(default_factory=list)


def touch(table, operation, *key, before=None):
    names = KEYS[table]
    return table, operation, dict(zip(names, key)), dict(zip(names, before or key))


def step(statement, table, operation, *key, before=None):
    return Step(statement, [touch(table, operation, *key, before=before)])


MANY = range(100, 370)  # more than the hub judges at a time

STEPS = [
    step(message(10, A, ADA.sub), "messages", "INSERT", 10),
    step(message(11, B, LINUS.sub, "in B"), "messages", "INSERT", 11),
    step("update messages set body = 'changed' where id = 10", "messages", "UPDATE", 10),
    step("update messages set body = 'changed', edited_at = now() where id = 11", "messages", "UPDATE", 11),
    # From one conversation to the other: some lose it, some gain it and must not be shown what it was.
    step(f"update messages set conversation_id = '{B}', body = 'moved' where id = 10", "messages", "UPDATE", 10),
    step("update messages set id = 1010 where id = 10", "messages", "UPDATE", 1010, before=(10,)),
    step("delete from messages where id = 11", "messages", "DELETE", 11),
    step("delete from messages where id = 1010", "messages", "DELETE", 1010),
    Step(f"insert into messages (id, conversation_id, sender_id, body) select n, case n % 2 when 0 then '{A}'::uuid else "
         f"'{B}' end, '{GRACE.sub}', 'one of many' from generate_series({MANY.start}, {MANY.stop - 1}) n",
         [touch("messages", "INSERT", n) for n in MANY]),
    Step("update messages set body = 'many changed' where id >= 100", [touch("messages", "UPDATE", n) for n in MANY]),
    Step("delete from messages where id >= 100", [touch("messages", "DELETE", n) for n in MANY]),
    step(f"insert into read_receipts (message_id, user_id, conversation_id) values (1, '{GRACE.sub}', '{A}')",
         "read_receipts", "INSERT", 1, GRACE.sub),
    step(f"update read_receipts set read_at = now() where message_id = 3 and user_id = '{LINUS.sub}'",
         "read_receipts", "UPDATE", 3, LINUS.sub),
    step(f"delete from read_receipts where message_id = 3 and user_id = '{LINUS.sub}'",
         "read_receipts", "DELETE", 3, LINUS.sub),
    step(f"update conversations set title = 'A, renamed' where id = '{A}'", "conversations", "UPDATE", A),
    step(f"update conversations set title = null where id = '{B}'", "conversations", "UPDATE", B),
    # A trigger makes its creator a member, in the same transaction.
    Step(f"insert into conversations (id, title, created_by) values ('{C}', 'C', '{OUTSIDER.sub}')",
         [touch("conversations", "INSERT", C), touch("conversation_participants", "INSERT", C, OUTSIDER.sub)]),
    step(message(20, C, OUTSIDER.sub), "messages", "INSERT", 20),
    Step(f"delete from conversations where id = '{C}'",
         [touch("messages", "DELETE", 20), touch("conversation_participants", "DELETE", C, OUTSIDER.sub),
          touch("conversations", "DELETE", C)]),
    step(f"insert into conversation_participants (conversation_id, user_id) values ('{B}', '{OUTSIDER.sub}')",
         "conversation_participants", "INSERT", B, OUTSIDER.sub),
    step(message(21, B, LINUS.sub), "messages", "INSERT", 21),
    step(f"update conversation_participants set muted = true where conversation_id = '{B}' and user_id = '{LINUS.sub}'",
         "conversation_participants", "UPDATE", B, LINUS.sub),
    step(f"delete from conversation_participants where conversation_id = '{B}' and user_id = '{OUTSIDER.sub}'",
         "conversation_participants", "DELETE", B, OUTSIDER.sub),
    step(message(22, B, LINUS.sub), "messages", "INSERT", 22),
    # Membership and what it decides about in one transaction: it counts as it is when both are committed.
    Step(f"insert into conversation_participants (conversation_id, user_id) values ('{A}', '{LINUS.sub}'); "
         + message(23, A, LINUS.sub),
         [touch("conversation_participants", "INSERT", A, LINUS.sub), touch("messages", "INSERT", 23)]),
    Step(message(24, A, LINUS.sub) + f"; delete from conversation_participants where conversation_id = '{A}' and "
         f"user_id = '{LINUS.sub}'",
         [touch("messages", "INSERT", 24), touch("conversation_participants", "DELETE", A, LINUS.sub)]),
]


def granted(connection, principal, table):
    """The columns a role may SELECT, in the table's order."""
    rows = connection.execute(
        "select attname from pg_attribute where attrelid = %s::regclass and attnum > 0 and not attisdropped and "
        "has_column_privilege(%s, attrelid, attnum, 'select') order by attnum", [f"public.{table}", principal.role])
    return [name for (name,) in rows]


def part(row, names):
    return {name: value for name, value in row.items() if name in names}


class Oracle:
    """Looks before and after a write, as everybody, and says what everybody is to be told."""

    def __init__(self, connection, principals, identity):
        self.connection, self.principals, self.identity = connection, principals, identity
        self.everything = Principal("everything", "postgres")
        self.columns = {(p, t): granted(connection, p, t) for p in (*principals, self.everything) for t in TABLES}
        #: The conversations of messages that were deleted.
        self.home = {}

    def _look(self, principal, touched):
        """What SELECT shows of rows, (table, key) each, in their order."""
        rows = {}
        for table in {table for table, _ in touched}:
            keys = [key for of, key in touched if of == table]
            rows[table] = iter(principal.select(self.connection, table, keys, self.columns[principal, table]))
        return [next(rows[table]) for table, _ in touched]

    def run(self, step):
        """Writes. By principal and table: (operation, record, old record) of each change, in order of the keys."""
        before = [(table, key) for table, _, _, key in step.touches]
        after = [(table, key) for table, _, key, _ in step.touches]
        old = self._look(self.everything, before)
        # Which versions were visible matters only where they are shown.
        deletes = any(operation == "DELETE" for _, operation, _, _ in step.touches)
        saw = {p: self._look(p, before) if deletes or self.identity == "full" else [None] * len(before) for p in self.principals}
        with self.connection.transaction():
            self.connection.execute(step.statement)
        for n, (table, operation, _, _) in enumerate(step.touches):
            if operation == "DELETE" and table == "messages":
                self.home[old[n]["id"]] = old[n]["conversation_id"]
        told = {}
        for principal in self.principals:
            records = self._look(principal, after)
            for n, (table, operation, _, _) in enumerate(step.touches):
                columns = self.columns[principal, table]
                identity = columns if self.identity == "full" else part(dict.fromkeys(columns), KEYS[table])
                primary_key = part(dict.fromkeys(columns), KEYS[table])
                if operation == "DELETE":
                    if not saw[principal][n]:
                        continue
                    record, shown = None, part(old[n], identity)
                else:
                    record = records[n]
                    if record is None:
                        continue
                    # Of a version that was hidden, and of a row without full identity, its primary key.
                    shown = part(old[n], identity if saw[principal][n] else primary_key) if operation == "UPDATE" else None
                told.setdefault((principal, table), []).append((operation, record, shown))
        return told


def arrived(frames):
    """What came, in the form the oracle tells it, by table."""
    by_table = {}
    for frame in frames:
        data = frame.payload["data"]
        assert data["errors"] is None
        by_table.setdefault(data["table"], []).append((data["type"], data.get("record"), data.get("old_record")))
    return by_table


def ordered(cells):
    return sorted(cells, key=repr)
