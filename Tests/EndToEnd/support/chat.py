"""The sample chat in a database of its own: its people, who they are to Postgres, and what SELECT shows them."""

import contextlib
import json
import uuid

from psycopg import sql as text
from psycopg.errors import Error

from support.hub import ROOT
from support.tokens import token

A, B = "aaaaaaaa-0000-4000-8000-00000000000a", "bbbbbbbb-0000-4000-8000-00000000000b"


def statement(name):
    """What an operator of the sample chat would configure: a statement of SampleChat.sql, by its name."""
    statements = (ROOT / "Sources/Stores/SQL/SampleChat.sql").read_text().split("-- name: ")
    return next(text.removeprefix(name) for text in statements if text.startswith(f"{name}\n"))


def person(number):
    """The id of a user; 0 and up."""
    return str(uuid.UUID(int=0x11111111_0000_4000_8000_000000000000 + number))


class Principal:
    """A role and claims."""

    def __init__(self, name, role="authenticated", sub=None):
        self.name, self.role, self.sub = name, role, sub

    def __repr__(self):
        return self.name

    def token(self, **claims):
        return token(self.role, **({"sub": self.sub} if self.sub else {}), **claims)

    @contextlib.contextmanager
    def acting(self, connection):
        """A transaction as this principal, set up as PostgREST does; rolled back."""
        claims = {"role": self.role, **({"sub": self.sub} if self.sub else {})}
        with connection.transaction(force_rollback=True):
            connection.execute(
                "select set_config('request.jwt.claims', %s, true), set_config('request.jwt.claim.sub', %s, true), "
                "set_config('request.jwt.claim.role', %s, true)", [json.dumps(claims), self.sub or "", self.role])
            connection.execute(text.SQL("set local role {}").format(text.Identifier(self.role)))
            yield

    def select(self, connection, table, keys, columns):
        """Rows as SELECT shows them: for each key, a dictionary of columns, the row or None."""
        keys = list(keys)
        if not keys or not columns:
            return [None] * len(keys)
        names = list(keys[0])
        query = text.SQL("select {}, row_to_json(shown) from {} t, lateral (select {}) shown where ({}) in ({})").format(
            identifiers(names, "t"), text.Identifier("public", table), identifiers(columns, "t"), identifiers(names, "t"),
            text.SQL(", ").join(text.SQL("({})").format(text.SQL(", ").join(map(text.Literal, key.values()))) for key in keys))
        found = {}
        # A policy that fails for somebody shows nothing.
        with contextlib.suppress(Error), self.acting(connection):
            found = {tuple(map(str, row[:-1])): row[-1] for row in connection.execute(query)}
        return [found.get(tuple(map(str, key.values()))) for key in keys]


def identifiers(names, table):
    return text.SQL(", ").join(text.Identifier(table, name) for name in names)


ADA, GRACE, LINUS, OUTSIDER = (Principal(name, sub=person(n)) for n, name in enumerate(("ada", "grace", "linus", "outsider")))
#: Member of A, of both, of B, of none; then those who are nobody's member.
PRINCIPALS = [
    ADA, GRACE, LINUS, OUTSIDER, Principal("no-sub"), Principal("bad-sub", sub="not-a-uuid"), Principal("anon", "anon"),
    Principal("service", "service_role"),
]

PEOPLE = f"""
    insert into users (id, name) values ('{ADA.sub}', 'Ada'), ('{GRACE.sub}', 'Grace'), ('{LINUS.sub}', 'Linus'),
        ('{OUTSIDER.sub}', 'Outsider');
    insert into conversations (id, kind, title, created_by) values ('{A}', 'group', 'A', '{ADA.sub}'),
        ('{B}', 'group', 'B', '{LINUS.sub}');
    insert into conversation_participants (conversation_id, user_id) values ('{A}', '{GRACE.sub}'), ('{B}', '{GRACE.sub}');
    insert into messages (id, conversation_id, sender_id, body) values (1, '{A}', '{ADA.sub}', 'first in A'),
        (2, '{B}', '{LINUS.sub}', 'first in B'), (3, '{B}', '{GRACE.sub}', 'second in B');
    insert into read_receipts (message_id, user_id, conversation_id) values (3, '{LINUS.sub}', '{B}');
"""

#: Read by everybody, so that a socket knows when all that came before is through.
MARKERS = """
    create schema aside;
    create table aside.marker (id int primary key);
    grant usage on schema aside to public;
    grant select on aside.marker to public;
"""


def install(connection, people=PEOPLE):
    """The sample chat with people, and the table of markers."""
    # Its own grants and no others, whatever this cluster gives every new table.
    connection.execute("alter default privileges in schema public revoke all on tables from public, anon, authenticated, service_role")
    for script in (ROOT / "Sources/Demo/SQL/chat.sql").read_text(), people, MARKERS:
        connection.execute(script)
    # As the hub writes times.
    connection.execute("set timezone = 'UTC'")


def message(number, conversation, sender, body="text"):
    return (f"insert into messages (id, conversation_id, sender_id, body) "
            f"values ({number}, '{conversation}', '{sender}', '{body}')")
