import Administration
import ChangeFeed
import Postgres
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// What `roost migrate` makes of a database's `realtime` and `auth` schemas.
    @Suite struct RealtimeTests {
        let database: Database

        init() throws { database = try PostgresCluster.shared.database() }

        func names(_ schema: String) throws -> [String] {
            try database.session().queryRows(
                """
                select proname from pg_proc where pronamespace = $1::regnamespace
                union all select relname from pg_class where relnamespace = $1::regnamespace and relkind in ('r', 'p')
                order by 1
                """, [schema]
            ).compactMap { $0[0] }
        }

        @Test func emptyDatabase() throws {
            try Migrator.migrate(conninfo: database.conninfo)
            #expect(try names("realtime") == ["broadcast_changes", "messages", "send", "send_binary", "topic"])
            #expect(try names("auth") == ["jwt", "role", "uid"])
            #expect(try database.value("select owns_messages from roost.meta") == "t")
            #expect(
                try database.value("select relrowsecurity from pg_class where oid = 'realtime.messages'::regclass")
                    == "t")
        }

        @Test(arguments: [true, false]) func supabaseIsLeftAlone(binary: Bool) throws {
            try database.createSupabaseRealtime(binary: binary)
            let before = try names("realtime")
            let text =
                "select md5(string_agg(pg_get_functiondef(oid), '' order by oid)) from pg_proc "
                + "where pronamespace = any (array['realtime', 'auth']::regnamespace[]) and proname in ('send', 'uid')"
            let functions = try database.value(text)
            try Migrator.migrate(conninfo: database.conninfo)
            try Migrator.migrate(conninfo: database.conninfo)
            #expect(try names("realtime") == before)
            #expect(try database.value(text) == functions)
            #expect(try names("auth") == ["jwt", "role", "uid"])
            #expect(try database.value("select owns_messages from roost.meta") == "f")
            #expect(try database.value("select has_schema_privilege('anon', 'auth', 'usage')") == "f")

            try database.run("select realtime.send('{}', 'e', 'room', false)")
            #expect(try database.outbox("topic", "payload") == [#"M realtime.messages room {"theirs": true}"#])
            if binary {
                try database.run(
                    "insert into realtime.messages (topic, extension, binary_payload) values ('b', 'broadcast', '\\x01')"
                )
                #expect(try database.outbox("binary_payload").last == #"M realtime.messages \x01"#)
            }
            // Newer tables of theirs say of a row that it has been broadcast.
            try database.run(
                """
                alter table realtime.messages add column skip_broadcast boolean not null default false;
                insert into realtime.messages (topic, extension, skip_broadcast)
                values ('kept', 'broadcast', true), ('told', 'broadcast', false)
                """)
            #expect(
                try database.outbox("topic").filter { $0.contains("kept") || $0.contains("told") } == [
                    "M realtime.messages told"
                ])
            // Theirs to prune.
            try database.run("update realtime.messages set inserted_at = now() - interval '9 days'")
            #expect(try database.value("select roost.prune_messages(1)") == "0")
        }

        @Test func triggerThatMayNotBePutThereIsReportedAndMadeGood() throws {
            try database.createSupabaseRealtime(binary: true)
            try database.run(
                """
                do $$ begin create role tenant login; exception when duplicate_object then null; end $$;
                grant usage on schema realtime to tenant; grant anon, authenticated, service_role to tenant;
                do $$ begin execute format('grant create on database %I to tenant', current_database()); end $$;
                """)
            let conninfo = database.role("tenant").conninfo
            try Migrator.migrate(conninfo: conninfo)
            let complaint = Doctor.examineDatabase(conninfo: conninfo).first { $0.subject == "realtime" }
            #expect(complaint?.severity == .warning)
            #expect(complaint?.message.contains("grant trigger on realtime.messages to tenant") ?? false)
            // That has no effect where nobody is a superuser, so there is more to do than that.
            #expect(
                complaint?.message.contains("On Supabase's platform nobody can") ?? false,
                "\(String(describing: complaint))")
            try database.run("grant trigger on realtime.messages to tenant")
            try Migrator.migrate(conninfo: conninfo)
            #expect(Doctor.examineDatabase(conninfo: conninfo).first { $0.subject == "realtime" }?.severity == .good)
            try database.run("select realtime.send('{}', 'e', 'room')")
            #expect(try database.outbox("topic") == ["M realtime.messages room"])
        }

        @Test func aTableOfThatNameWithOtherColumnsIsNotTouched() throws {
            try database.run("create schema realtime; create table realtime.messages (id int, body text)")
            try Migrator.migrate(conninfo: database.conninfo)
            try database.run("insert into realtime.messages values (1, 'x')")
            #expect(try database.outbox().isEmpty)
            #expect(try names("realtime") == ["messages"])
        }

        @Test func aBusyTableDoesNotStopAMigration() throws {
            try database.createSupabaseRealtime(binary: true)
            let writer = try database.session()
            try writer.runScript("begin; insert into realtime.messages (topic, extension) values ('t', 'presence')")
            try Migrator.migrate(conninfo: database.conninfo)
            try writer.runScript("commit")
            #expect(
                Doctor.examineDatabase(conninfo: database.conninfo).contains {
                    $0.subject == "realtime" && $0.severity == .warning
                })
        }

        @Test func rolesThatComeLaterNeedNothing() throws {
            let cluster = PostgresCluster()
            let database = try cluster.database()
            try Migrator.migrate(conninfo: database.conninfo)
            try database.run(
                """
                create role authenticated login;
                create policy read on realtime.messages for select to authenticated using (realtime.topic() = 'mine');
                create policy write on realtime.messages for insert to authenticated with check (topic = 'mine');
                """)
            let user = database.role("authenticated")
            try user.run("select realtime.send('{}', 'e', 'mine'); select realtime.send('{}', 'e', 'yours')")
            #expect(try database.outbox("topic") == ["M realtime.messages mine"])
            #expect(
                try user.value(
                    "select count(*) from realtime.messages, set_config('realtime.topic', 'mine', false)") == "1")
            #expect(try user.value("select auth.uid() is null and auth.role() is null and auth.jwt() is null") == "t")
            #expect(throws: PostgresError.self) { try user.run("update realtime.messages set topic = 'x'") }
            #expect(throws: PostgresError.self) { try user.run("delete from realtime.messages") }
            try cluster.stop("fast")
        }

        @Test func triggersThatAreMissingAreNamedAndRenewed() throws {
            try Migrator.migrate(conninfo: database.conninfo)
            try database.run("create table t (id int primary key)")
            for (operation, tables) in [
                ("insert", "new table as roost_new"), ("update", "new table as roost_new old table as roost_old"),
                ("delete", "old table as roost_old"),
            ] {
                try database.run(
                    "create trigger roost_\(operation) after \(operation) on t referencing \(tables) "
                        + "for each statement execute function roost.on_\(operation)()")
            }
            try database.run(
                "insert into t values (1); insert into t values (2); select realtime.send('{}', 'e', 'room')")
            #expect(try database.outbox("id").map { $0.prefix(5) } == ["I t 1", "I t 2", "M rea"])
            let complaints = { Doctor.examineDatabase(conninfo: database.conninfo).filter { $0.subject == "tables" } }
            #expect(complaints().contains { $0.message.contains("public.t lacks some of roost's triggers") })
            try Watcher.watch("t", conninfo: database.conninfo)
            #expect(complaints().allSatisfy { $0.severity == .good })
            try database.run("truncate t")
            #expect(try database.outbox().last == "T t")
        }

        @Test func claims() throws {
            try Migrator.migrate(conninfo: database.conninfo)
            let session = try database.session()
            let id = "6a7ab4a4-1111-2222-3333-444444444444"
            func set(_ name: String, _ value: String) throws {
                _ = try session.queryRows("select set_config($1, $2, false)", [name, value])
            }
            func answers() throws -> [String?] {
                try session.queryRows("select auth.uid(), auth.role(), auth.jwt() ->> 'x'")[0]
            }
            #expect(try answers() == [nil, nil, nil])
            try set("request.jwt.claims", #"{"sub":"\#(id)","role":"authenticated","x":"y"}"#)
            #expect(try answers() == [id, "authenticated", "y"])
            try set("request.jwt.claim.sub", "00000000-0000-0000-0000-000000000001")
            try set("request.jwt.claim.role", "anon")
            #expect(try answers() == ["00000000-0000-0000-0000-000000000001", "anon", "y"])
            for name in ["request.jwt.claims", "request.jwt.claim.sub", "request.jwt.claim.role"] { try set(name, "") }
            #expect(try answers() == [nil, nil, nil])
            try set("request.jwt.claims", #"{"sub":""}"#)
            #expect(try answers() == [nil, nil, nil])
            // Inlined: a call for each row of a policy would show as one.
            let plan = try session.queryRows("explain (verbose) select from realtime.messages where id = auth.uid()")
            #expect(!plan.contains { $0[0]?.contains("auth.uid()") ?? true })
        }
    }
}
