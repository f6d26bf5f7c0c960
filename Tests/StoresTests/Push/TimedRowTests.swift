import Administration
import Foundation
import Matching
import Stores
import Testing
import Wire

@testable import PostgresFixtures

extension StoreTests {
    /// What a database says of rows whose time has come.
    @Suite struct TimedRowTests {
        private static let hour: Int64 = 3_600_000
        private static let day = 24 * hour

        /// A table with a column of each type that says a time.
        private static func stage(_ more: String = "") throws -> PushStage {
            let database = try PostgresCluster.shared.migratedDatabase()
            return PushStage(
                try database.prepared(
                    """
                    create table reminders (
                        id bigint primary key, user_id text, title text, reminder_time timestamptz, plain timestamp, day date,
                        done_at timestamptz, "unless" text
                    );
                    create index on reminders (reminder_time);
                    create index on reminders (plain);
                    create index on reminders (day);
                    \(more)
                    """, watching: "reminders"))
        }

        private static func source(
            _ column: Name = "reminder_time", table: Name = "reminders", unless: String? = "done_at is not null"
        ) -> TimedSource {
            TimedSource(schema: "public", table: table, column: column, unless: unless)
        }

        /// As a hub has it, long after it first did.
        private func opened(_ source: TimedSource = source(), at stage: PushStage, _ store: PushStore) throws
            -> TimedTable
        {
            let examined = try store.timedTables(of: [source])
            let table = try #require(examined[0].table, "\(examined[0].problems)")
            #expect(try store.openTimed(table, life: Self.day) == 0)
            try stage.database.run("update roost.timed_source set since = now() - interval '30 days'")
            return table
        }

        private func take(_ table: TimedTable, _ store: PushStore, limit: Int = 500) throws -> [String] {
            try store.takeTimed(table, from: Self.day, to: 0, limit: limit).map(\.key.text)
        }

        @Test func takenOnceByOneHub() throws {
            let stage = try Self.stage()
            let (a, b) = (try stage.hub("a"), try stage.hub("b"))
            let table = try opened(at: stage, a)
            try stage.database.run(
                """
                insert into reminders (id, reminder_time) values
                    (1, now() - interval '1 second'), (2, now() + interval '1 hour'), (3, now() - interval '25 hours'),
                    (4, 'infinity'), (5, '-infinity'), (6, null), (7, '9999-12-31'), (8, now() - interval '1 hour')
                """)
            #expect(try take(table, a, limit: 1) == ["[8]"])
            #expect(try take(table, b) == ["[1]"])
            #expect(try take(table, a).isEmpty && take(table, b).isEmpty)
            let next = try #require(try a.nextTimed(table, within: 2 * Self.hour))
            #expect((1...Self.hour).contains(next) && next > Self.hour - 60_000)
            #expect(try a.nextTimed(table, within: 1000) == nil)
            // Another time of the same row is another claim, the same time never is.
            try stage.database.run("update reminders set reminder_time = now() - interval '2 seconds' where id = 1")
            #expect(try take(table, b) == ["[1]"])
            #expect(try stage.lines("select count(*)::text from roost.timed_row") == ["3"])
            #expect(try stage.lines("select count(distinct message)::text from roost.timed_row") == ["3"])
        }

        @Test func nothingFromBeforeItWasConfigured() throws {
            let stage = try Self.stage()
            let store = try stage.hub()
            let table = try #require(try store.timedTables(of: [Self.source()])[0].table)
            try stage.database.run("insert into reminders (id, reminder_time) values (1, now() - interval '1 minute')")
            #expect(try store.openTimed(table, life: Self.day) == 0)
            #expect(try take(table, store).isEmpty)
            try stage.database.run("insert into reminders (id, reminder_time) values (2, clock_timestamp())")
            #expect(try take(table, store) == ["[2]"])
        }

        @Test func whatWasDueWhileNoHubRanIsCounted() throws {
            let stage = try Self.stage()
            let store = try stage.hub()
            let table = try opened(at: stage, store)
            try stage.database.run(
                """
                update roost.timed_source set looked_at = now() - interval '3 days';
                insert into reminders (id, reminder_time, done_at) values
                    (1, now() - interval '2 days', null), (2, now() - interval '2 days', now()), (3, now() - interval '1 hour', null),
                    (4, now() - interval '4 days', null)
                """)
            #expect(try store.openTimed(table, life: Self.day) == 1)
            #expect(try take(table, store) == ["[3]"])
            try store.noteLook(at: table)
            #expect(
                try stage.lines("select (looked_at > now() - interval '1 minute')::text from roost.timed_source") == [
                    "true"
                ])
        }

        /// Both are read in UTC, whatever the database says.
        @Test func timesWithoutZone() throws {
            let stage = try Self.stage(
                "do $$ begin execute format('alter database %I set timezone = ''Asia/Kolkata''', current_database()); end $$;"
            )
            let store = try stage.hub()
            for column in ["plain", "day"] as [Name] {
                let table = try opened(Self.source(column), at: stage, store)
                let now = "(clock_timestamp() at time zone 'UTC')"
                try stage.database.run(
                    """
                    truncate reminders;
                    insert into reminders (id, plain, day) values
                        (1, \(now) - interval '1 minute', \(now)::date), (2, \(now) + interval '1 hour', \(now)::date + 1),
                        (3, 'infinity', 'infinity'), (4, '294276-12-31', '5874897-12-31'), (5, null, null)
                    """)
                let claims = try store.takeTimed(table, from: Self.day, to: 0, limit: 10)
                #expect(claims.map(\.key) == ["[1]"])
                let due = try stage.lines(
                    "select floor(extract(epoch from \(column)::timestamp at time zone 'UTC'))::text from reminders where id = 1"
                )
                #expect(claims.map { String($0.due / 1_000_000) } == due)
                let readings = try store.readTimed(claims, of: table)
                #expect(words(readings) == ["due"])
            }
        }

        private func words(_ readings: [TimedReading]) -> [String] {
            readings.map { reading in
                switch reading {
                case .due: "due"
                case .gone: "gone"
                case .moved: "moved"
                case .done: "done"
                case .tooLarge: "too large"
                case .refused: "refused"
                case .unanswered: "unanswered"
                }
            }
        }

        /// What happened to a row since it was claimed decides.
        @Test func rowsAreReadAgain() throws {
            let stage = try Self.stage("alter table reminders alter title set storage external;")
            let store = try stage.hub()
            let table = try opened(at: stage, store)
            try stage.database.run(
                """
                insert into reminders (id, title, reminder_time)
                select i, 'nr ' || i, now() - interval '1 minute' + i * interval '1 second' from generate_series(1, 7) i
                """)
            let claims = try store.takeTimed(table, from: Self.day, to: 0, limit: 10)
            try stage.database.run(
                """
                delete from reminders where id = 2;
                update reminders set reminder_time = reminder_time + interval '1 day' where id = 3;
                update reminders set done_at = now() where id = 4;
                update reminders set title = repeat('x', 600000) where id = 5;
                update reminders set reminder_time = 'infinity' where id = 6;
                """)
            let readings = try store.readTimed(claims, of: table)
            #expect(words(readings) == ["due", "gone", "moved", "done", "too large", "moved", "due"])
            guard case .due(let row) = readings[0] else { return }
            #expect(row.table.name == "reminders" && row.committedAtMicroseconds == claims[0].due)
            let record = JSON(trusted: (row.record ?? [])[...])
            #expect(record["title"]?.string == "nr 1" && record["unless"]?.isNull == true)
            try store.settleTimed(zip(claims, words(readings)).map { ($0, $1) })
            #expect(
                try stage.lines("select outcome from roost.timed_row order by key")
                    == ["due", "gone", "moved", "done", "too large", "moved", "due"])
        }

        /// A user may write what the operator's condition does not bear.
        @Test func aConditionThatFailsForOneRowKeepsNoOther() throws {
            let stage = try Self.stage()
            let store = try stage.hub()
            let table = try opened(Self.source(unless: "1 / length(title) = 7"), at: stage, store)
            try stage.database.run(
                """
                insert into reminders (id, title, reminder_time)
                select i, case when i = 5 then '' else 'x' end, now() - interval '1 minute' + i * interval '1 second'
                from generate_series(1, 9) i
                """)
            let claims = try store.takeTimed(table, from: Self.day, to: 0, limit: 10)
            #expect(
                words(try store.readTimed(claims, of: table))
                    == ["due", "due", "due", "due", "refused", "due", "due", "due", "due"])
            #expect(stage.notes.all.contains { $0.contains("cannot be read") })
            // A statement that cannot work at all blames no row.
            try stage.database.run("alter table reminders rename title to name")
            #expect(Set(words(try store.readTimed(claims, of: table))) == ["unanswered"])
        }

        @Test func keys() throws {
            let stage = try Self.stage(
                """
                create table odd (a text, "B ""c" uuid, d timestamptz, e bytea, "key" int, at timestamptz, primary key (a, "B ""c", d, e));
                create index on odd (at);
                """)
            try Watcher.watch("odd", conninfo: stage.database.conninfo)
            let store = try stage.hub()
            let table = try opened(
                TimedSource(schema: "public", table: "odd", column: "at", unless: #"odd."key" = 7 or "key" = 8"#),
                at: stage, store)
            try stage.database.run(
                #"""
                insert into odd select a, gen_random_uuid(), now(), '\x00ff', 1, now() - interval '1 minute'
                from unnest(array['', 'x', '"', '[1]', E'\u00e9', E'e\u0301', '\', repeat('k', 2000)]) a
                """#)
            let claims = try store.takeTimed(table, from: Self.day, to: 0, limit: 100)
            #expect(claims.count == 7, "not the one that is too long for an index")
            #expect(Set(words(try store.readTimed(claims, of: table))) == ["due"])
            // What the feed says of a row finds the same.
            try stage.database.run("delete from roost.timed_row")
            for reading in try store.readTimed(claims, of: table) {
                guard case .due(let row) = reading, let record = row.record, let key = table.key(of: record) else {
                    Issue.record("no row")
                    continue
                }
                let found = try store.takeTimed(table, from: Self.day, to: 0, limit: 10, keys: [key])
                #expect(found.count == 1)
            }
            #expect(try take(table, store).isEmpty)
        }

        /// kill -9 ends a session: what it had claimed is another hub's.
        @Test func claimsOfEndedSessionsAreTakenOver() throws {
            let stage = try Self.stage()
            let living = try stage.hub("b")
            let table = try opened(at: stage, living)
            let source = Self.source()
            try stage.database.run(
                "insert into reminders (id, reminder_time) select i, now() - interval '1 minute' from generate_series(1, 4) i"
            )
            var dying: PushStore? = try stage.hub("a")
            #expect(try dying.map { try take(table, $0, limit: 2) }?.count == 2)
            #expect(try take(table, living).count == 2)
            #expect(try living.retakeTimed([source], limit: 10).isEmpty, "both live")
            try stage.database.run(
                """
                select pg_terminate_backend(session) from roost.timed_row where node = 'a' limit 1
                """)
            dying = nil
            var taken: [TimedClaim] = []
            try eventually("the session has ended") {
                taken += try living.retakeTimed([source], limit: 10)
                return taken.count == 2
            }
            // The next process of a hub takes over its own at once.
            let next = try stage.hub("b")
            #expect(try next.retakeTimed([source], limit: 10).count == 4)
            #expect(try next.retakeTimed([], limit: 10).isEmpty)
            try next.settleTimed(taken.map { ($0, "alerted") })
            #expect(try stage.hub("b").retakeTimed([source], limit: 10).count == 2)
        }

        @Test func whatIsOldIsForgottenAndNeverLookedAtAgain() throws {
            let stage = try Self.stage()
            let store = try stage.hub()
            let table = try opened(at: stage, store)
            try stage.database.run(
                """
                insert into reminders (id, reminder_time) values
                    (1, now() - interval '9 days'), (2, now() - interval '8 days 1 minute'), (3, now() - interval '1 minute')
                """)
            let life = 30 * Self.day
            #expect(try store.takeTimed(table, from: life, to: 0, limit: 10).count == 3)
            #expect(try store.pruneTimed(olderThan: .seconds(8 * 86_400), batch: 1) == 1)
            #expect(try store.pruneTimed(olderThan: .seconds(8 * 86_400)) == 1)
            #expect(try store.pruneTimed(olderThan: .seconds(8 * 86_400)) == 0)
            // alerts.hours was raised meanwhile.
            #expect(try store.takeTimed(table, from: life, to: 0, limit: 10).isEmpty)
        }

        /// However many rows are due some day, and however many were yesterday, what is asked each second stays as quick.
        @Test func aMillionRowsCostNothingBeforeTheyAreDue() throws {
            let stage = try Self.stage(
                """
                insert into reminders (id, reminder_time)
                select i, now() + interval '1 day' + i * interval '1 second' from generate_series(1, 200000) i;
                insert into reminders (id, reminder_time) select -i, '9999-12-31' from generate_series(1, 1000) i;
                analyze reminders;
                """)
            let store = try stage.hub()
            let table = try opened(at: stage, store)
            try stage.database.run("insert into reminders (id, reminder_time) values (0, now())")
            let began = ContinuousClock.now
            #expect(try take(table, store) == ["[0]"])
            for _ in 0..<200 {
                #expect(try take(table, store).isEmpty)
                #expect(try store.nextTimed(table, within: 1000) == nil)
            }
            let took = ContinuousClock.now - began
            print("a look at 201,001 rows takes \(took / 200)")
            #expect(took < .seconds(20), "a reading of the table takes 50 ms or more each time")
        }

        @Test func doctor() throws {
            let stage = try Self.stage(
                "create table bare (id int, at timestamptz); create table unwatched (id int primary key, at timestamptz);"
            )
            try Watcher.watch("bare", conninfo: stage.database.conninfo)
            func says(_ source: TimedSource) -> String {
                Doctor.examine(timed: [source], conninfo: stage.database.conninfo)
                    .map { "\($0.severity.rawValue): \($0.message)" }.joined(separator: "\n")
            }
            #expect(says(Self.source("at", table: "unwatched")).contains("error: public.unwatched is not watched"))
            #expect(says(Self.source("nothing")).contains("has no column nothing"))
            #expect(says(Self.source("title")).contains("says no time"))
            #expect(says(Self.source("at", table: "bare", unless: nil)).contains("no primary key"))
            #expect(says(Self.source(unless: "finished")).contains("error: The condition of"))
            #expect(says(Self.source("done_at", unless: nil)).contains("warning: No index serves"))
            let fine = says(Self.source())
            #expect(fine.contains("good: ") && fine.contains("No hub has looked at"))
            let store = try stage.hub()
            let table = try opened(at: stage, store)
            #expect(says(Self.source()).split(separator: "\n").count == 1)
            try stage.database.run("insert into reminders (id, reminder_time) values (1, now() - interval '1 minute')")
            let claims = try store.takeTimed(table, from: Self.day, to: 0, limit: 1)
            try store.settleTimed(claims.map { ($0, "alerted") })
            try stage.database.run("update roost.timed_source set looked_at = now() - interval '5 minutes'")
            let late = says(Self.source())
            #expect(late.contains("1 rows of public.reminders.reminder_time were pushed late"))
            #expect(late.contains("No hub has looked at public.reminders.reminder_time for 30"))
        }
    }
}
