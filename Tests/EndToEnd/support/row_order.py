"""Tables with triggers made at random and statements made at random on them, beside the truth of what happened to each row.

The truth is exact: the WHEN of an AFTER ROW trigger is evaluated right after each version is written (Postgres queues the
trigger there, and not at the statement's end), so a function in it that notes the version notes them in order.
"""

import collections
import json
import random

import psycopg

TRUTH = """
    create unlogged table truth (id bigserial, operation text, old text, new text);
    create sequence version;
    create function next_version() returns trigger language plpgsql as
        $$ begin new.v := nextval('version'); return new; end $$;
    create function note(operation text, old text, new text) returns boolean language plpgsql as
        $$ begin insert into truth (operation, old, new) values (operation, old, new); return false; end $$;
    create function nothing() returns trigger language plpgsql as $$ begin return null; end $$;
"""

NOTES = """
    create trigger truth_i after insert on t for each row
        when (note('I', null, row_to_json(new)::text)) execute function nothing();
    create trigger truth_u after update on t for each row
        when (note('U', row_to_json(old)::text, row_to_json(new)::text)) execute function nothing();
    create trigger truth_d after delete on t for each row
        when (note('D', row_to_json(old)::text, null)) execute function nothing();
"""

#: What applications' triggers do: count, reset, replace, skip, delete, revive.
COMMON = [
    ("z_touch", "after insert", "update t set note = 'seen' where id = new.id"),
    ("a_count", "after insert", "update t set n = n + 1 where id = new.n"),
    ("b_reset", "after update", "if new.n > 5 then update t set n = 0 where id = new.id; end if"),
    ("drop", "after insert or update", "if new.n = 4 then delete from t where id = new.id; end if"),
    ("replace", "before insert", "delete from t where id = new.id"),
    ("before", "before insert", "update t set n = n + 1 where id = new.n"),
    ("skip", "before insert", "if new.n = 3 then return null; end if"),
    ("zs", "after insert or update", "update t set note = 'all' where n = 2", "statement"),
    ("at_end", "after delete", "update t set n = n + 1 where id = 1", "statement"),
    ("revive", "after delete", "insert into t values (old.id, 1, 'back') on conflict do nothing"),
]
#: And what few do: take a key again at several levels, change other keys before a change, write the same again.
WILD = COMMON + [
    ("retake", "after insert or update",
     "if new.n in (1, 2) then delete from t where id = new.id;"
     " insert into t values (new.id, 5, 'again') on conflict do nothing; end if"),
    ("retake_s", "after insert or update",
     "delete from t where n = 5; insert into t values (2, 6, 's') on conflict do nothing", "statement"),
    ("bs", "before insert or update or delete",
     "insert into t values (4, 2, 'bs') on conflict do nothing; delete from t where id = 6", "statement"),
    ("bd", "before delete", "update t set n = n + 1 where id = old.id % 6 + 1 and id <> old.id"),
    ("bu", "before update", "delete from t where id = new.id and id <> old.id"),
    ("mover", "after insert or update",
     "if new.n = 6 then update t set id = id % 6 + 1 where id = new.id"
     " and not exists (select from t x where x.id = new.id % 6 + 1); end if"),
    ("flip", "after update", "update t set n = old.n where id = new.id and old.n is distinct from new.n"),
    ("upsert", "after delete", "insert into t values (old.id, 2, 'u') on conflict (id) do update set n = 3"),
]
#: What may come of statements and triggers that contradict each other; such a statement is rolled back.
EXPECTED = ("duplicate key", "a second time", "already modified", "stack depth")


def _trigger(name, event, body, each="row"):
    result = {"before delete": "old"}.get(event, "new" if event.startswith("before") else "null") if each == "row" else "null"
    return f"""
        create or replace function "{name}"() returns trigger language plpgsql as $f$
        begin if pg_trigger_depth() < 4 then {body}; end if; return {result}; end $f$;
        create trigger "{name}" {event} on t for each {each} execute function "{name}"()"""


def _plain(rng):
    a = [rng.randint(1, 6) for _ in range(8)]
    return [
        f"insert into t values ({a[0]}, {a[1]}) on conflict do nothing",
        f"insert into t values (1, {a[0]}), (3, {a[1]}), (5, {a[2]}) on conflict (id) do update set n = excluded.n",
        f"update t set n = {a[0]} where id in ({a[1]}, {a[2]})", "update t set n = n + 1",
        f"delete from t where id = {a[3]}", f"update t set id = {a[4]} where id = {a[5]}",
        f"with d as (delete from t where id = {a[6]} returning *)"
        " insert into t select id + 1, n from d on conflict do nothing",
    ]


def _wild(rng, has_merge):
    a = [rng.randint(1, 6) for _ in range(8)]
    merge = [
        f"merge into t using (values ({a[0]}, {a[1]}), ({a[2]}, {a[3]})) s (id, n) on t.id = s.id"
        " when matched and t.n > 3 then delete when matched then update set n = s.n"
        " when not matched then insert values (s.id, s.n)"]
    return _plain(rng) + (merge if has_merge else []) + [
        f"with d as (delete from t where id = {a[6]} returning *), u as (update t set n = {a[5]}"
        f" where id = {a[4]} and id <> {a[6]} returning *) insert into t select id, n from d",
        f"with d as (delete from t where id = {a[6]} returning *) insert into t select id, n, note from d",
        f"insert into t values ({a[0]}, {a[1]}), ({a[2]}, {a[3]}), ({a[4]}, {a[5]}) on conflict do nothing",
        "update t set n = n", f"update t set note = null, n = 1 where id in ({a[0]}, {a[1]})", f"delete from t where n = {a[0]}",
    ]


class RowOrder:
    """One seed: a table `t`, watched, with triggers; `rounds` writes to it and compares."""

    def __init__(self, sql, watch, seed, wild):
        """`watch` has a table watched."""
        self.sql, self.wild, self.rng = sql, wild, random.Random(seed)
        self.has_merge = sql.info.server_version >= 150000
        sql.execute("drop table if exists t cascade; truncate truth; delete from roost.change")
        shape = self.rng.choice(["key", "key", "key", "unique", "full", "composite"]) if wild else "key"
        has_versions = not wild or self.rng.random() < 0.6
        sql.execute(f"create table t (id int, n int, note text{', v bigint' if has_versions else ''}"
                    f"{', part int default 1' if shape == 'composite' else ''})")
        sql.execute({
            "key": "alter table t add primary key (id)",
            "unique": "alter table t alter id set not null; create unique index on t (id)",
            "full": "alter table t add primary key (id); alter table t replica identity full",
            "composite": "alter table t add primary key (part, id); create unique index on t (id)",
        }[shape])
        if has_versions:
            sql.execute("create trigger zz before insert or update on t for each row execute function next_version()")
        watch("public.t")
        sql.execute(NOTES)
        for trigger in WILD if wild else COMMON:
            if self.rng.randint(0, 3 if wild else 2) == 0:
                sql.execute(_trigger(*trigger))

    def _statements(self):
        def one():
            return self.rng.choice(_wild(self.rng, self.has_merge) if self.wild else _plain(self.rng))

        def block():
            return "; ".join(one() for _ in range(self.rng.randint(2, 4)))

        def attempts():
            return "; ".join(f"begin {one()}; exception when others then null; end" for _ in range(self.rng.randint(2, 4)))

        for _ in range(self.rng.randint(1, 4)):
            kind = self.rng.randint(0, 9) if self.wild else 0
            if kind < 5:
                yield one()
            elif kind < 8:
                yield f"do $$ begin {block()}; end $$"
            elif kind < 9:
                yield block()
            else:
                yield f"do $$ begin {attempts()}; end $$"

    def round(self):
        """One transaction. What was lost or made up; what a client that applies the changes shows wrongly in the end; the
        keys whose changes came in another order than they happened in."""
        sql = self.sql
        sql.execute("truncate truth; delete from roost.change")
        with sql.transaction():
            shown = {_key(row): row for row in self._rows()}
            for statement in self._statements():
                try:
                    with sql.transaction():
                        sql.execute(statement)
                except psycopg.Error as error:
                    assert any(words in str(error) for words in EXPECTED), f"{statement}: {error}"
        happened = sql.execute("select operation, old, new from truth order by id").fetchall()
        told = sql.execute(
            "select op::text, old_record::text, record::text from roost.change where op in ('I', 'U', 'D') order by id"
        ).fetchall()
        for _, old, new in told:
            if old:
                shown.pop(_key(old), None)
            if new:
                shown[_key(new)] = new
        difference = collections.Counter(happened)
        difference.subtract(told)
        rows = {_key(row): row for row in self._rows()}
        paths, got = _paths(happened), _paths(told)
        return ([change for change, count in difference.items() if count],
                sorted(key for key in rows.keys() | shown.keys() if rows.get(key) != shown.get(key)),
                sorted(key for key in paths if paths[key] != got.get(key)))

    def _rows(self):
        return [row for row, in self.sql.execute("select row_to_json(t)::text from t").fetchall()]


def _key(row):
    return json.loads(row)["id"]


def _paths(changes):
    paths = collections.defaultdict(list)
    for change in changes:
        for key in {_key(row) for row in change[1:] if row}:
            paths[key].append(change)
    return paths
