"""Reminders that fall due while hubs are killed and rows are moved, deleted and done: a hub with `alerts.timed`, and a run of it.

`python -m support.timed_rows --rows 10000` from Tests/EndToEnd is the large one (loadtest/timed.sh).
"""

import argparse
import asyncio
import collections
import datetime
import random
import statistics
import time
import uuid

from support.apns import BUNDLE, new_token
from support.bounds import Elapsed, taken, watch_the_machine
from support.chat import Principal
from support.cluster import Cluster
from support.deadline import eventually
from support.push_hub import Phone, PushHub

TABLE = """
    create table reminders (id bigint primary key, user_id text not null, title text, reminder_time timestamptz, done_at timestamptz);
    create index on reminders (reminder_time);
    alter table reminders enable row level security;
    grant select on reminders to authenticated;
    create policy own on reminders for select to authenticated
        using (user_id = current_setting('request.jwt.claims', true)::jsonb ->> 'sub');
"""
AUDIENCE = """
    select n.row, coalesce(r.audience, r.user_id) as user_id, r.title as body, r.reminder_time as due
    from jsonb_to_recordset($1) n (row int, "table" text, record jsonb)
    cross join jsonb_to_record(n.record) r (user_id text, title text, reminder_time timestamptz, audience text)
    where n."table" = 'reminders'
"""
SETTINGS = {
    "ROOST_ALERTS_TIMED": "public.reminders.reminder_time unless done_at is not null", "ROOST_ALERTS_AUDIENCE": AUDIENCE,
    "ROOST_ALERTS_TITLE": "{due}", "ROOST_ALERTS_BODY": "{preview}",
}
#: Seconds after which a reminder of a healthy hub is late.
LATE = 2


class TimedHub(PushHub):
    """`PushHub` with reminders that are pushed when they are due."""

    def __init__(self, cluster, name, **settings):
        super().__init__(cluster, name, **{**SETTINGS, **settings})
        self.next_reminder = 0

    def __enter__(self):
        super().__enter__()
        try:
            with self.sql() as sql:
                sql.execute(TABLE)
                self.hub.watch("public.reminders")
                self.wait_until_looked_at(sql)
        except BaseException as error:
            self.__exit__(type(error))
            raise
        return self

    @staticmethod
    def wait_until_looked_at(sql):
        deadline = time.monotonic() + 60
        while not sql.execute("select 1 from roost.timed_source").fetchone():
            assert time.monotonic() < deadline, "no hub looks at the reminders"
            time.sleep(0.05)

    def remind(self, sql, who, seconds, title="Tea"):
        """A reminder that is due so many seconds after now; its id."""
        self.next_reminder += 1
        sql.execute("insert into reminders (id, user_id, title, reminder_time) values (%s, %s, %s, clock_timestamp() + %s * interval '1 s')",
                    [self.next_reminder, who.sub, title, seconds])
        return self.next_reminder

    def outcomes(self, sql):
        return dict(sql.execute("select (key::jsonb ->> 0)::int, outcome from roost.timed_row order by due_at").fetchall())


def due_of(push):
    """When the row of a push was due as it was read for it, in seconds since 1970."""
    return datetime.datetime.fromisoformat(push["payload"]["aps"]["alert"]["title"]).timestamp()


def titles(pushes):
    return [push["payload"]["aps"]["alert"]["body"] for push in pushes]


def shown(pushes):
    """What a failed assertion says of the pushes of one row."""
    return [(push["headers"]["apns-id"][:8], push["at"], due_of(push)) for push in pushes]


class TimedRun:
    """Rows that fall due over some time, of which some are moved, deleted or done before, and two hubs that are killed meanwhile."""

    #: Seconds between what is done to a row and its time: a hub has read a row at its time.
    MARGIN = 3

    def __init__(self, chat, rows, people, seconds, kills, seed=1, say=lambda line: None):
        self.chat, self.rows, self.seconds, self.kills, self.say = chat, rows, seconds, kills, say
        self.random = random.Random(seed)
        self.people = [Principal(f"user {number}", sub=str(uuid.uuid4())) for number in range(people)]
        self.tokens = {person.sub: new_token() for person in self.people}
        self.killed, self.doubtful = [], set()
        self.counts = collections.Counter()

    async def run(self):
        watch_the_machine()
        self.other = await asyncio.to_thread(self.chat.another_hub().start)
        with self.chat.sql() as sql:
            await self.register(sql)
            lead = 5 + self.rows / 4000
            sql.execute("set synchronous_commit = off")
            with sql.cursor().copy("copy reminders (id, user_id, title, reminder_time) from stdin") as copy:
                base = time.time()
                for number in range(self.rows):
                    due = base + lead + self.random.random() * self.seconds
                    person = self.random.choice(self.people)
                    copy.write_row([number, person.sub, f"nr {number}", time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(due)) + f"{due % 1:.6f}"[1:] + "+00"])
            self.ends = base + lead + self.seconds
            self.say(f"{self.rows} rows are written; the last is due in {self.ends - time.time():.0f} s")
            changes, faults = asyncio.create_task(self.change_rows()), asyncio.create_task(self.kill_hubs())
            await changes
            await faults
            await self.wait(sql)
            return await asyncio.to_thread(self.judge, sql)

    async def register(self, sql):
        """The phones, as the API would write them down; one of them by it."""
        phone = Phone(self.chat, self.people[0])
        phone.device = self.tokens[self.people[0].sub]
        await phone.register()
        with sql.cursor() as cursor:
            cursor.executemany(
                "insert into roost.push_device (token, environment, bundle, kind, user_id, role, claims) values "
                "(%s, 'sandbox', %s, 'alert', %s, 'authenticated', jsonb_build_object('sub', %s::text, 'role', 'authenticated'))",
                [[self.tokens[each.sub], BUNDLE, each.sub, each.sub] for each in self.people[1:]])

    async def change_rows(self):
        """Moves a fifth of the rows, deletes a tenth and marks a twentieth as done, each well before its time."""
        wanted = self.rows * 7 // 20
        kinds = (
            ["update reminders set reminder_time = reminder_time + random() * %(span)s * interval '1 s'"] * 2
            + ["update reminders set reminder_time = clock_timestamp() + (%(margin)s + random() * extract(epoch from reminder_time "
               "- clock_timestamp())) * interval '1 s'"] * 2
            + ["delete from reminders"] * 2 + ["update reminders set done_at = clock_timestamp()"])
        batch, done = max(1, self.rows // 500), 0
        with self.chat.sql() as sql:
            while done < wanted and time.time() < self.ends - self.MARGIN - 1:
                kind = self.random.choice(kinds)
                ids = self.random.sample(range(self.rows), batch)
                began = time.monotonic()
                changed = await asyncio.to_thread(lambda: sql.execute(
                    f"{kind} where id = any (%(ids)s) and done_at is null and reminder_time > clock_timestamp() + %(margin)s * interval '1 s' "
                    "returning id", {"ids": ids, "margin": self.MARGIN, "span": min(10, self.seconds / 4)}).fetchall())
                count = len(changed)
                # On a machine that stands still a row may have been due before this was committed.
                if time.monotonic() - began > self.MARGIN - 1:
                    self.doubtful |= {number for number, in changed}
                self.counts["deleted" if "delete" in kind else "done" if "done_at =" in kind else "moved"] += count
                done += count
                await asyncio.sleep(self.seconds * 0.6 * batch / wanted)

    async def kill_hubs(self):
        """-9 to one hub after the other; one is always there."""
        for number in range(self.kills):
            await asyncio.sleep(self.seconds / (self.kills + 1))
            hub = (self.chat.hub, self.other)[number % 2]
            hub.kill()
            self.killed.append(time.time())
            await asyncio.sleep(self.random.random() * 2)
            await asyncio.to_thread(hub.start)

    async def wait(self, sql):
        unsettled = ("select (select count(*) from reminders r where done_at is null and not exists (select from roost.timed_row t "
                     "where t.due_at = r.reminder_time and (t.key::jsonb ->> 0)::bigint = r.id and t.settled_at is not null)) + "
                     "(select count(*) from roost.alert where state = 'due') + "
                     "(select count(*) from roost.alert_device d where outcome is null and exists (select from pg_stat_activity a where "
                     "a.application_name = 'roost push'))")

        def left():
            return sql.execute(unsettled).fetchone()[0]
        quiet = 0
        # What a killed hub was about to send stays without an outcome until its next process says that it is unknown.
        while quiet < 6:
            await asyncio.sleep(0.5)
            now = await asyncio.to_thread(left)
            quiet = quiet + 1 if now == 0 else 0
            assert time.time() < self.ends + 120, f"{now} rows are left"

    def judge(self, sql):
        """Holds the pushes against the table; what failed is an AssertionError."""
        chat = self.chat
        final = {row: (user, due) for row, user, due in sql.execute(
            "select id, user_id, extract(epoch from reminder_time)::float8 from reminders where done_at is null").fetchall()}
        unsure = {message for message, in sql.execute(
            "select message from roost.alert_device where outcome is distinct from 'delivered'").fetchall()}
        pushed = collections.defaultdict(list)
        for push in chat.apns.taken:
            pushed[int(push["payload"]["messageId"])].append(push)
        # Of all others what was done to a row was committed well before its time.
        for number in self.doubtful:
            pushed.pop(number, None)
            final.pop(number, None)
        wrong = [number for number in pushed if number not in final]
        assert not wrong, f"rows that were deleted or done, and pushed: {wrong[:10]}"
        # What Apple did not answer in time is sent again under the same id, which a phone shows once; test_push_client.py is about that.
        again = [number for number, pushes in pushed.items() if len(pushes) > 1]
        twice = [number for number in again if len({push["headers"]["apns-id"] for push in pushed[number]}) > 1]
        assert not twice, f"pushed more than once: {len(twice)}, such as {[(row, shown(pushed[row])) for row in twice[:3]]}"
        lateness, at_kill = [], []
        for number, (push, *_) in pushed.items():
            user, due = final[number]
            assert push["token"] == self.tokens[user], number
            assert abs(due_of(push) - due) < 1e-3, f"{number} was pushed for {due_of(push)} and is due at {due}"
            assert push["at"] >= due, f"{number} came {due - push['at']} s early"
            near = any(kill - LATE <= due <= kill + LATE for kill in self.killed)
            (at_kill if near else lateness).append((push["at"] - due, due))
        lost = [number for number in final if number not in pushed]
        # At most once: a hub that had taken an alert may have sent it.
        unaccounted = [number for number in lost
                       if f"public.reminders.reminder_time [{number}] @{round(final[number][1] * 1e6)}" not in unsure]
        assert not unaccounted, f"neither pushed nor with a hub when that was killed: {unaccounted[:10]}"
        assert chat.apns.violations == []
        late = [(seconds, due) for seconds, due in lateness if seconds > LATE]
        offset = time.monotonic() - time.time()
        excused = [each for each in late if each[0] - taken(each[1] + offset, each[1] + each[0] + offset, LATE) <= LATE]
        values = sorted(seconds for seconds, _ in lateness + at_kill)
        return {
            "rows": self.rows, "users": len(self.people), **self.counts, "changed too slowly to tell": len(self.doubtful),
            "kills": len(self.killed), "due": len(final),
            "pushed": len(pushed), "with a killed hub": len(lost), "sent again as Apple did not answer": len(again), "twice": 0, "early": 0, "of deleted or done rows": 0,
            "late by more than 2 s": len(late) - len(excused), "of which the machine explains": len(excused),
            "late by more than 2 s within 2 s of a kill": sum(seconds > LATE for seconds, _ in at_kill),
            "seconds late": {
                "median": round(statistics.median(values), 3), "p99": round(values[int(len(values) * 0.99)], 3),
                "most": round(values[-1], 3)},
        }


async def main():
    parser = argparse.ArgumentParser(description="Reminders over two hubs with kills, moves and deletions.")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--users", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=120, help="in which they fall due")
    parser.add_argument("--kills", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    cluster, began = Cluster(), Elapsed()
    try:
        async with TimedHub(cluster.start(), "timed_run") as chat:
            run = TimedRun(chat, options.rows, options.users, options.seconds, options.kills, options.seed, print)
            for name, figure in (await run.run()).items():
                print(f"{name}: {figure}")
            print(f"it took {began.seconds:.0f} s")
    finally:
        cluster.remove()


if __name__ == "__main__":
    asyncio.run(main())
