import Administration
import ChangeFeed
import Testing

@testable import PostgresFixtures

extension CommandTests {
    /// What `roost doctor` says of roles, policies and scopes.
    @Suite struct VisibilityDoctorTests {
        let database: Database

        init() throws { database = try PostgresCluster.shared.migratedDatabase().preparedForScopes() }

        func findings(_ subject: String, as role: String = "postgres") -> [Finding] {
            Doctor.examineDatabase(conninfo: database.role(role).conninfo).filter { $0.subject == subject }
        }

        @Test func aScopeThatHolds() throws {
            _ = try database.declareScope()
            #expect(
                findings("scope") == [
                    Finding(
                        .good, "scope",
                        "Visibility of public.messages depends on conversation_id: 20 rows were checked as 2 users.")
                ])
        }

        /// A function that hides from the policies' parsed form that its answer is not the room's alone: every second row.
        @Test(arguments: ["uuid", "text", "bigint"]) func aScopeThatAFunctionBelies(type: String) throws {
            try database.run(
                """
                create table members (room int, member \(type));
                create table notes (id int primary key, room int, body text);
                insert into members select 1, \(type == "uuid" ? "gen_random_uuid()" : "n") from generate_series(1, 3) n;
                insert into notes select n, n / 4, 'secret' from generate_series(1, 9) n;
                create function decide(room int, sub text) returns bool language plpgsql as $$
                declare
                    turn int := coalesce(nullif(current_setting('test.turn', true), ''), '0')::int;
                begin
                    perform set_config('test.turn', (turn + 1)::text, true);
                    return sub is not null and turn % 2 = 0;
                end $$;
                alter table notes enable row level security;
                create policy decide on notes using (decide(room, current_setting('request.jwt.claim.sub', true)));
                grant select on notes to authenticated;
                """)
            _ = try database.declareScope("notes", "room", "members")
            let found = findings("scope")
            #expect(found.first?.severity == .error)
            #expect(found.first?.message.contains("Rows of public.notes with the same room differ") ?? false)
            #expect(!(found.first?.message.contains("secret") ?? true))
        }

        @Test func whatCannotBeComparedIsSaid() throws {
            _ = try database.declareScope()
            try database.run("delete from messages where id > 2")
            #expect(findings("scope").first?.message.contains("no scope value has several rows") ?? false)
            try database.run(
                """
                alter table messages alter column id type smallint, alter column "Odd, Name" type smallint;
                delete from messages; insert into messages select n, null, 1 from generate_series(1, 5) n
                """)
            try database.run("revoke select on messages from authenticated")
            #expect(
                findings("scope") == [
                    Finding(
                        .good, "scope",
                        "Visibility of public.messages is declared to depend on conversation_id; no rows could be compared, as "
                            + "authenticated may not read the table or what its policies read.")
                ])
        }

        /// A policy that fails names values in its message.
        @Test func nothingOfRowsIsTold() throws {
            try database.run(
                """
                alter policy members on messages using (
                    conversation_id in (select conversation_id from participants where auth.uid()::text::int > 0));
                """)
            _ = try database.declareScope()
            let found = findings("scope").first?.message ?? ""
            #expect(
                found.contains("the policies failed for all users that were tried, with SQLSTATE 22P02"), "\(found)")
        }

        @Test func rolesThatCannotBeTaken() throws {
            try database.run(
                """
                do $$ begin create role "Hub" login; exception when duplicate_object then null; end $$;
                grant usage on schema roost to "Hub"; grant all on all tables in schema roost to "Hub";
                revoke authenticated, anon, service_role from "Hub";
                """)
            try Watcher.watch("participants", conninfo: database.conninfo)
            #expect(findings("roles", as: "Hub").map(\.severity) == [.warning, .warning, .warning])
            try Watcher.watch("messages", conninfo: database.conninfo)
            try database.run("grant service_role, anon to \"Hub\"")
            #expect(
                findings("roles", as: "Hub") == [
                    Finding(
                        .error, "roles",
                        "This role may not become authenticated, so tokens with that role see nothing that row level "
                            + "security decides; run `grant authenticated to \"Hub\"`.")
                ])
            try database.run("grant authenticated to \"Hub\"")
            #expect(findings("roles", as: "Hub").map(\.severity) == [.good])
            try database.run("revoke authenticated, anon, service_role from \"Hub\"")
        }

        @Test func rightsOnMessages() throws {
            try database.run(
                "do $$ begin create role hub_rights login; exception when duplicate_object then null; end $$")
            try database.run(
                """
                grant usage on schema roost to hub_rights; grant all on all tables in schema roost to hub_rights;
                grant execute on all functions in schema roost to hub_rights;
                do $$ begin
                    execute format('revoke temporary on database %I from public', current_database());
                end $$;
                """)
            let lacks = findings("rights", as: "hub_rights").map(\.message)
            #expect(lacks.count == 4)
            // Broadcasts that are kept are optional.
            let optional = findings("rights", as: "hub_rights").filter { $0.severity == .warning }
            #expect(optional.map(\.message) == lacks.filter { $0.contains("INSERT") })
            for right in [
                "TEMPORARY on this database", "SELECT on realtime.messages past", "INSERT on realtime.messages past",
                "DELETE on realtime.messages past",
            ] {
                #expect(lacks.contains { $0.contains(right) }, "\(lacks)")
            }
            try database.run(
                """
                do $$ begin
                    execute format('grant temporary on database %I to hub_rights', current_database());
                end $$;
                alter table realtime.messages owner to hub_rights;
                """)
            #expect(findings("rights", as: "hub_rights").map(\.severity) == [.good])
        }

        @Test func tablesThatNobodySees() throws {
            try database.run("create table secret (id int); alter table secret enable row level security")
            try database.run("create policy p on secret as restrictive for select using (true)")
            try Watcher.watch("secret", conninfo: database.conninfo)
            try Watcher.watch("messages", conninfo: database.conninfo)
            #expect(findings("policies").map { $0.message.prefix(32) } == ["public.secret has row level secu"])
            try database.run("create policy q on secret for select using (true)")
            #expect(findings("policies").isEmpty)
        }

        @Test func policiesThatLetSQLWriteToEveryChannel() throws {
            try database.run(
                """
                do $$ begin create role talker login; exception when duplicate_object then null; end $$;
                create policy own on realtime.messages for insert to talker
                    with check (realtime.topic() = 'room' and topic = realtime.topic());
                create policy reads on realtime.messages for select to talker using (realtime.topic() = 'room');
                """)
            #expect(findings("realtime").map(\.severity) == [.good])
            try database.run(
                """
                create policy any_topic on realtime.messages for insert to authenticated
                    with check (realtime.topic() = 'room');
                create policy talks on realtime.messages to talker using (realtime.topic() = 'room');
                """)
            let found = findings("realtime").dropFirst()
            #expect(found.map(\.severity) == [.good, .warning])
            #expect(found.first?.message.hasPrefix("The policy any_topic of realtime.messages asks") ?? false)
            #expect(found.last?.message.contains("one of them may log in; add `and topic = realtime.topic()`") ?? false)
        }

        @Test func channelsThatSQLCannotReach() throws {
            #expect(findings("realtime").map(\.severity) == [.good])
            try database.run("alter table realtime.messages disable trigger roost_message")
            #expect(findings("realtime").map(\.severity) == [.warning])
            let remedy = "`alter table realtime.messages enable trigger roost_message`"
            #expect(findings("realtime").first?.message.contains(remedy) ?? false)
            try database.run("drop schema realtime cascade")
            #expect(findings("realtime").first?.message.contains("There is no realtime.messages") ?? false)
            try Migrator.migrate(conninfo: database.conninfo)
            #expect(findings("realtime").map(\.severity) == [.good])
        }
    }
}
