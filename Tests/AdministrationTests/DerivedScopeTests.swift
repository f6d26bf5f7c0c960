import Administration
import ChangeFeed
import Postgres
import Testing

@testable import PostgresFixtures

extension CommandTests {
    /// What `roost watch` finds out from policies by itself.
    @Suite struct DerivedScopeTests {
        let database: Database

        init() throws {
            database = try PostgresCluster.shared.migratedDatabase().preparedForScopes()
            try database.run(
                """
                create function mine() returns setof int language plpgsql stable security definer set search_path = '' as $$
                begin return query select p.conversation_id from public.participants p where p.user_id = auth.uid(); end $$;
                alter policy members on messages using (conversation_id in (select mine()));
                """)
        }

        private func derive(_ table: String = "messages") throws -> Watcher.Outcome {
            try Watcher.watch(table, scope: .derive, conninfo: database.conninfo)
        }

        private func noted() throws -> [[String?]] {
            try database.session().queryRows(
                "select relid, scope_column, members, derived from roost.scope order by 1::text")
        }

        @Test func findsColumnsInPoliciesAndTablesInFunctions() throws {
            let outcome = try derive()
            #expect(outcome.obstacles.isEmpty, "\(outcome.obstacles)")
            #expect(outcome.scope?.column == "conversation_id" && outcome.scope?.members == "public.participants")
            #expect(outcome.scope?.isDerived ?? false)
            #expect(outcome.scope?.problems == [])
            #expect(outcome.members.map(\.changed) == [["participants"]], "what it rests on is watched")
            #expect(try noted() == [["messages", "conversation_id", "{participants}", "t"]])
        }

        @Test func followsPoliciesThatChange() throws {
            _ = try derive()
            try database.run(
                "alter policy members on messages using (\"Odd, Name\" is null and conversation_id in (select mine()))")
            // The hub reads it like this, without anybody watching again.
            var scope = try DeclaredScope.readScopes(on: PostgresConnection(database.conninfo)).first
            #expect(scope?.columns == ["conversation_id", "Odd, Name"] && scope?.problems == [])
            try database.run("alter policy members on messages using (id in (select mine()))")
            scope = try DeclaredScope.readScopes(on: PostgresConnection(database.conninfo)).first
            #expect(scope?.problems.map(\.text) == ["no two of its rows have the same id, which the policies read"])
            let outcome = try derive()
            #expect(outcome.scope == nil && outcome.obstacles == scope?.problems.map(\.text))
            #expect(try noted().isEmpty)
        }

        /// A policy comes to read another table: where that is watched the scope goes on, and else it waits for `roost watch`.
        @Test func followsTablesThatPoliciesName() throws {
            _ = try derive()
            try database.run(
                """
                grant select on blocks to authenticated;
                create policy no_blocks on messages as restrictive for select using (not exists (select from blocks));
                """)
            var scope = try DeclaredScope.readScopes(on: PostgresConnection(database.conninfo)).first
            #expect(scope?.problems.map(\.kind) == [.watch])
            let outcome = try derive()
            #expect(outcome.scope?.members == "public.blocks, public.participants", "\(outcome.obstacles)")
            scope = try DeclaredScope.readScopes(on: PostgresConnection(database.conninfo)).first
            #expect(scope?.problems == [])
        }

        @Test func whatIsDeclaredOrDeclinedStays() throws {
            _ = try database.declareScope()
            #expect(try derive().scope?.isDerived == false)
            #expect(try noted() == [["messages", "conversation_id", "{participants}", "f"]])
            _ = try Watcher.watch("messages", scope: .remove, conninfo: database.conninfo)
            #expect(try derive().scope?.isDerived == true)
            _ = try database.declareScope()
            #expect(try noted() == [["messages", "conversation_id", "{participants}", "f"]], "a declaration overrides")
            _ = try Watcher.watch("messages", scope: .remove, conninfo: database.conninfo)
            #expect(try noted().isEmpty)
        }

        @Test func doctorNamesTablesThatHaveNone() throws {
            try Watcher.watch("messages", conninfo: database.conninfo)
            func findings() -> [String] {
                Doctor.examineDatabase(conninfo: database.conninfo).filter { $0.subject == "scope" }.map(\.message)
            }
            #expect(findings().first?.hasPrefix("public.messages has no scope, so its policies are asked") ?? false)
            _ = try derive()
            #expect(
                findings() == [
                    "Visibility of public.messages depends on conversation_id: 20 rows were checked as 2 users."
                ])
        }

        @Test func withoutRowSecurityThereIsNothingToSay() throws {
            _ = try derive()
            try database.run("alter table messages disable row level security")
            let outcome = try derive()
            #expect(outcome.scope == nil && outcome.obstacles.isEmpty)
            #expect(try noted().isEmpty)
        }

        @Test func whoSeesAllRowsOrNoneNeedsNoColumn() throws {
            try database.run("alter policy members on messages using (exists (select mine()))")
            let outcome = try derive()
            #expect(outcome.scope?.column == "no column" && outcome.scope?.members == "public.participants")
            #expect(try noted() == [["messages", "", "{participants}", "t"]])
        }

        @Test(arguments: [
            ("alter policy members on messages using (messages is null)", "reads whole rows"),
            (
                "alter policy members on messages using (conversation_id in (select mine()) and now() > '2020-01-01')",
                "depends on the time or on chance"
            ),
            ("alter function mine() volatile", "the function mine() is volatile; where it only reads, run"),
            (
                "alter policy members on messages using (conversation_id = current_setting('app.tenant')::int)",
                "the policy members of messages reads a setting other than the claims ('app.tenant'"
            ),
            (
                """
                create or replace function mine() returns setof int language plpgsql stable as
                    $$ begin return query execute 'select conversation_id from participants'; end $$
                """, "the function mine() depends on more than tables and claims (execute)"
            ),
            (
                """
                create function inner_one() returns bool language sql stable as $$ select now() > '2020-01-01' $$;
                create or replace function mine() returns setof int language sql stable as $$ select 1 where inner_one() $$
                """, "the function inner_one() depends on more than tables and claims (now)"
            ),
            (
                "alter policy members on messages using (exists (select from messages m where m.id = 1))",
                "the policies read the table itself"
            ),
            (
                """
                create or replace function mine() returns setof int language sql stable security definer as
                    $$ select conversation_id from messages where sender_id = auth.uid() $$
                """, "the policies read the table itself"
            ),
            (
                """
                alter table messages add x int, add y int, add z int;
                alter policy members on messages using (x + y + z + conversation_id > 0)
                """, "the policies read 4 of its columns (conversation_id, x, y, z), and at most three"
            ),
            (
                "alter policy members on messages using (exists (select from pg_roles))",
                "visibility also rests on pg_authid, whose changes cannot be followed"
            ),
            (
                """
                create or replace function mine() returns setof int language plpgsql stable as
                    $$ begin raise 'no'; end $$
                """, "they failed for all users that were tried"
            ),
        ])
        func saysWhatCannotBeDerived(change: String, reason: String) throws {
            _ = try derive()
            try database.run(change)
            let outcome = try derive()
            #expect(outcome.obstacles.contains { $0.contains(reason) }, "\(outcome.obstacles)")
            #expect(outcome.scope == nil)
            #expect(try noted().isEmpty)
        }

        @Test func tablesOfAPublication() throws {
            try database.run("create publication several for table messages, blocks")
            let outcomes = try Watcher.watch(publication: "several", derivesScopes: true, conninfo: database.conninfo)
            #expect(outcomes.map { $0.scope?.column } == [nil, "conversation_id"])
        }
    }
}
