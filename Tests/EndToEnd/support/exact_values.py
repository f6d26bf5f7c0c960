"""Values of many types, among them those that JSON does not keep, for comparisons of a SELECT with what clients are told."""

import os

import psycopg

#: Whether all cases are tried, as `make test-versions` does. A part of them takes a fifth of the time.
IS_WHOLE = os.environ.get("ROOST_EXACT") == "all"


def sample(cases):
    return list(cases)[:: 1 if IS_WHOLE else 4]


EXTENSIONS = ["hstore", "citext", "ltree", "cube", "isn"]
TYPES = [
    "create type mood as enum ('sad', 'so so', 'ok')", "create type pair as (a int, b text)",
    "create type deep as (doc jsonb, pairs pair[], tags text[])", "create domain positive as int check (value > 0)",
    "create domain document as jsonb", "create domain words as text[]", "create domain folded as citext", "create domain place as pair"]
TABLES = """
    create schema hidden; create table hidden.thing (); create table thing (); grant usage on schema hidden to authenticated;
    create schema aside; create table aside.marker (id int primary key);
    grant usage on schema aside to anon, authenticated; grant select on aside.marker to anon, authenticated
"""

#: By column: its type and values, as SQL. None of them are SQL's null, which every column gets besides.
VALUES = {
    "i": ("int8", ["9007199254740993", "-1"]),
    "n": ("numeric", ["'NaN'", "0.10", "1e-30"]),
    "f": ("float8", ["0.1", "'-0'", "'Infinity'", "1.7976931348623157e308"]),
    "b": ("bool", ["true", "false"]),
    "tx": ("text", ["''", "'null'", r"E'a,\"b\\\\c\n(d)'", "'{}'"]),
    "ch": ("char(4)", ["'a'"]),
    "u": ("uuid", ["'00000000-0000-4000-8000-000000000001'"]),
    "by": ("bytea", [r"'\x00ff'", "''"]),
    "d": ("date", ["'2026-03-01'", "'0044-03-15 BC'", "'infinity'"]),
    "ts": ("timestamp", ["'2026-03-01 12:30:00.000001'"]),
    "tz": ("timestamptz", ["'2026-03-29 02:30 Europe/Berlin'", "'-infinity'"]),
    "iv": ("interval", ["'1 mon -1 day 00:00:00.000001'"]),
    "j": ("json", ["' null '", "'null'", """'{"a": null}'""", "'[1, 2]'", "'\"null\"'"]),
    "jb": ("jsonb", ["'null'", """'{"public": null}'""", "'[null]'", "'\"null\"'", "'1e3'"]),
    "doc": ("document", ["'null'", """'{"a": 1}'"""]),
    "js": ("jsonb[]", ["array['null', '1']::jsonb[]", "array[null, '1']::jsonb[]", "'{}'"]),
    "ai": ("int[]", ["'[0:1]={1,2}'", "'{1,2}'", "'{NULL,1}'", "'[-1:0][5:6]={{1,2},{3,4}}'", "'{}'"]),
    "ta": ("text[]", [r"""'[5:6]={"a,b",null}'""", """'{"null",NULL}'"""]),
    "w": ("words", ["'[0:0]={a}'", "'{a}'"]),
    "m": ("mood", ["'so so'"]),
    "p": ("pair", ["row(1, 'x\"y')", "row(null, null)"]),
    "pl": ("place", ["row(2, 'null')"]),
    "dp": ("deep", ["row('null', array[row(1, null)::pair], '[0:0]={x}')", "row(null, null, null)"]),
    "po": ("positive", ["7"]),
    "h": ("hstore", ["'a=>b'", "'a=>NULL'", "''"]),
    "hs": ("hstore[]", ["array['a=>b'::hstore]"]),
    "c": ("citext", ["'ABC'"]),
    "fo": ("folded", ["'ABC'"]),
    "lt": ("ltree", ["'a.b.c'"]),
    "cu": ("cube", ["'(0.1, 2), (3, 4)'"]),
    "isb": ("isbn", ["'978-0-393-04002-9'"]),
    "ir": ("int4range", ["'empty'", "'[1,5)'"]),
    "dr": ("daterange", ["'[2026-01-02,2026-03-04)'"]),
    "tr": ("tstzrange", ["'[2026-01-02 00:00+00,)'"]),
    "rc": ("regclass", ["'hidden.thing'", "'public.thing'", "'pg_class'"]),
    "rp": ("regprocedure", ["'pg_catalog.lower(text)'"]),
    "pt": ("point", ["'(0.1,-1e308)'"]),
    "ip": ("inet", ["'10.0.0.1/8'"]),
    "v": ("tsvector", ["'a:1A b'"]),
    "bi": ("varbit", ["'1010'", "''"]),
    "x": ("xml", ["'<a>1</a>'"]),
    "i2": ("int2", ["-32768", "7"]),
    "i4": ("int4", ["2147483647"]),
    "r": ("float4", ["0.1", "'-0'", "16777217"]),
    "mo": ("money", ["'1000.01'"]),
    "vc": ("varchar(3)", ["'abc'"]),
    "nm": ("name", ["'a b'"]),
    "qc": ('"char"', ["'a'", "''"]),
    "ti": ("time", ["'24:00'", "'00:00:00.000001'"]),
    "tt": ("timetz", ["'12:00+05:30'"]),
    "mc": ("macaddr", ["'08:00:2b:01:02:03'"]),
    "m8": ("macaddr8", ["'08:00:2b:01:02:03:04:05'"]),
    "ci": ("cidr", ["'10.0.0.0/8'"]),
    "bf": ("bit(4)", ["'1010'"]),
    "oi": ("oid", ["4294967295"]),
    "ls": ("pg_lsn", ["'16/B374D848'"]),
    "jp": ("jsonpath", ["'$.a[*] ? (@ > 1)'"]),
    "bx": ("box", ["'(1,1),(0,0)'"]),
    "ce": ("circle", ["'<(0,0),1>'"]),
    "li": ("line", ["'{1,-1,0}'"]),
    "sg": ("lseg", ["'[(0,0),(1,1)]'"]),
    "pa": ("path", ["'[(0,0),(1,1)]'", "'((0,0),(1,1))'"]),
    "pg": ("polygon", ["'((0,0),(1,1),(1,0))'"]),
    "nr": ("numrange", ["'[0.10,2)'"]),
    "lr": ("int8range", ["'[1,9007199254740993)'"]),
    "sr": ("tsrange", ["'(-infinity,2026-01-02 00:00]'"]),
    "tq": ("tsquery", ["'a & !b'"]),
    "ua": ("uuid[]", ["'{00000000-0000-4000-8000-000000000001}'"]),
    "za": ("timestamptz[]", ["array['2026-03-29 02:30 Europe/Berlin', null]::timestamptz[]"]),
    "nu": ("numeric[]", ["'{0.10,NaN}'"]),
    "ba": ("bool[]", ["'{t,f,NULL}'"]),
    "ma": ("mood[]", ["'{so so,ok}'"]),
    "pp": ("pair[]", ["array[row(1, 'x,y'), null]::pair[]"]),
    "im": ("int4multirange", ["'{[1,3),[5,8)}'", "'{}'"]),
    "dm": ("datemultirange", ["'{[2026-01-01,2026-01-03)}'"]),
    "rt": ("regtype", ["'int4'", "'mood'"]),
    "xd": ("xid8", ["'18446744073709551615'"]),
    "sn": ("pg_snapshot", ["'10:20:10,14'"]),
}


def install(sql):
    """Creates the types that this server can have (some builds of Postgres lack extensions, older ones types); the values by column."""
    for statement in [*(f"create extension {name}" for name in EXTENSIONS), *TYPES]:
        runs(sql, statement)
    sql.execute(TABLES)
    return {name: (type, values) for name, (type, values) in VALUES.items() if all(runs(sql, f"select {value}::{type}") for value in values)}


def create_table(sql, columns):
    defined = ", ".join(f"{name} {type}" for name, (type, _) in columns.items())
    sql.execute(f"create table t (id serial primary key, {defined}, version int default 1); grant select on t to anon, authenticated")


def runs(sql, statement):
    try:
        sql.execute(statement)
        return True
    except psycopg.Error:
        return False


def rows(columns):
    """Each value in a row of its own, among nulls; rows full of values, and an empty one."""
    for name, (_, values) in columns.items():
        for value in values:
            yield {name: value}
    for nth in range(5):
        yield {name: values[nth % len(values)] for name, (_, values) in columns.items()}
    yield {}


def insert_rows(writer, columns):
    for row in rows(columns):
        names = ", ".join(row)
        values = ", ".join(f"{value}::{columns[name][0]}" for name, value in row.items())
        writer.execute(f"insert into t ({names}) values ({values})" if row else "insert into t default values")
