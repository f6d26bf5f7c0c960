import ChangeFeed
import Foundation
import Hub
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// Whatever goes wrong, rows are hidden from those alone whom it concerns, and somebody is told.
    @Suite struct PolicyFailureTests {
        @Test func aFaultySubject() throws {
            let (stage, table, records) = try PolicyStage.notes(
                "create policy p on notes using (owner = 'ann' and sub()::uuid is not null)")
            let users = [
                PolicyUser(sub: UUID().uuidString), PolicyUser(sub: "secret"), PolicyUser(sub: UUID().uuidString),
            ]
            let answer = try stage.ask(table, records: records, users: users)
            #expect(answer.visible == [[0, 2], [], [0, 2]])
            #expect(answer.problems.count == 1)
            #expect(
                answer.problems.first?.contains("1 user") == true && answer.problems.first?.contains("22P02") == true)
            #expect(answer.problems.first?.contains("secret") == false)
            let alone = try stage.ask(table, records: [records[0]], users: users)
            #expect(alone.visible == [[0], [], [0]])
        }

        @Test func aFaultyRow() throws {
            let (stage, table, records) = try PolicyStage.notes(
                "create policy p on notes using (owner = sub() and size::int > 0)")
            let answer = try stage.ask(table, records: records, users: .named("ann", "bob"), wantsTablesRead: true)
            #expect(answer.visible == [[0], [1]])
            #expect(answer.problems.count == 1)
            // Whom the faulty row is none of may or may not meet the error: Postgres chooses what it evaluates first.
            #expect(answer.failed.contains(0))
        }

        @Test func anErrorOfThePolicy() throws {
            // A policy that reads its own table asks itself for ever; Postgres says so.
            let (stage, table, records) = try PolicyStage.notes(
                "create policy p on notes using (exists (select from notes n where n.owner = sub()))")
            let answer = try stage.ask(table, records: records, users: .named("ann", "bob"))
            #expect(answer.visible == [[], []])
            #expect(answer.problems.count == 1 && answer.problems.first?.contains("infinite recursion") == true)
        }

        @Test func anAssertion() throws {
            let (stage, table, records) = try PolicyStage.notes(
                """
                create function sure() returns boolean language plpgsql stable as
                    $$ begin assert sub() = 'ann'; return true; end $$;
                create policy p on notes using (sure())
                """)
            try #expect(stage.ask(table, records: records, users: .named("bob", "ann")).visible == [[], [0, 1, 2]])
        }

        @Test func thePolicyRaisesTheFunctionsOwnError() throws {
            let (stage, table, records) = try PolicyStage.notes(
                """
                create function sly() returns boolean language plpgsql stable as
                    $$ begin raise sqlstate 'RO000'; end $$;
                create policy p on notes using (sly())
                """)
            try #expect(stage.ask(table, records: records, users: .named("ann")).visible == [[]])
            try #expect(stage.ask(table, records: [records[0]], users: .named("ann")).visible == [[]])
        }

        @Test func aMissingFunctionPrivilege() throws {
            let (stage, table, records) = try PolicyStage.notes(
                "create policy p on notes using (sub() = owner); revoke execute on function sub() from public")
            let answer = try stage.ask(table, records: records, users: .named("ann"))
            #expect(answer.visible == [[]])
            #expect(answer.problems.first?.contains("permission denied for function sub") == true)
        }

        @Test func policiesMayNotWrite() throws {
            let (stage, table, records) = try PolicyStage.notes(
                """
                create table log (who text); grant insert on log to policy_user;
                create function logged() returns boolean language plpgsql volatile as
                    $$ begin insert into log values (sub()); return true; end $$;
                create policy p on notes using (logged())
                """)
            try #expect(stage.ask(table, records: records, users: .named("ann")).visible == [[]])
            try #expect(stage.ask(table, .insert, records: records, users: .named("ann")).visible == [[0, 1, 2]])
            try #expect(stage.session.queryRows("select from log").isEmpty)
        }

        @Test(arguments: [
            "nobody", "none", "public", "NONE", "\"", "a'b", "policy_user\0", "", String(repeating: "x", count: 70),
        ])
        func aRoleThatDoesNotExist(role: String) throws {
            let (stage, table, records) = try PolicyStage.notes("create policy p on notes using (true)")
            let answer = try stage.ask(table, role: role, records: records, users: .named("ann"))
            #expect(answer.visible == [[]] && !answer.isUnrestricted)
            #expect(answer.problems.count == 1)
        }

        @Test func aRoleThatIsCutOff() throws {
            // Postgres cuts names at 63 bytes: the longer name must not become the shorter role.
            let name = String(repeating: "r", count: 63)
            let (stage, table, records) = try PolicyStage.notes(
                """
                do $$ begin create role \(name); exception when duplicate_object then null; end $$;
                grant select on notes to \(name); create policy p on notes using (true)
                """)
            try #expect(stage.ask(table, role: name, records: records, users: .named("ann")).visible == [[0, 1, 2]])
            try #expect(stage.ask(table, role: name + "r", records: records, users: .named("ann")).visible == [[]])
        }

        @Test func aRoleTheHubMayNotBe() throws {
            let (stage, table, records) = try PolicyStage.notes(
                "revoke policy_user from policy_hub; create policy p on notes using (true)", user: "policy_hub")
            let answer = try stage.ask(table, records: records, users: .named("ann"))
            #expect(answer.visible == [[]] && answer.isDenied)
            #expect(
                answer.problems == [
                    #"The hub may not act as "policy_user", so its users see no rows of public.notes; "#
                        + #"run: grant "policy_user" to "policy_hub""#
                ])
            try stage.changed("grant policy_user to policy_hub")
            try #expect(stage.ask(table, records: records, users: .named("ann")).visible == [[0, 1, 2]])
        }

        @Test func noTemporaryFunctions() throws {
            let (stage, table, records) = try PolicyStage.notes(
                "grant policy_user to policy_hub; create policy p on notes using (true)", user: "policy_hub")
            let name = try stage.session.queryRows("select current_database()")[0][0] ?? ""
            try stage.changed("revoke temporary on database \(name) from public")
            let answer = try stage.ask(table, records: records, users: .named("ann"))
            #expect(answer.visible == [[]] && answer.problems.first?.contains("temporary") == true)
        }

        @Test func noPrivilegeOnTheSchema() throws {
            let (stage, table, records) = try PolicyStage.notes(
                "create policy p on notes using (true); revoke usage on schema public from public")
            let answer = try stage.ask(table, records: records, users: .named("ann"))
            #expect(answer.visible == [[]] && answer.isDenied)
            #expect(answer.problems.first?.contains("grant usage on schema") == true)
        }

        @Test func aColumnIsMissing() throws {
            let (stage, table, records) = try PolicyStage.notes("create policy p on notes using (owner = sub())")
            let answer = try stage.ask(table, records: [Array(#"{"id":1}"#.utf8), records[0]], users: .named("ann"))
            #expect(answer.visible == [[1]])
            #expect(answer.problems.count == 1 && answer.problems[0].contains("\"owner\""))
            // A column that no policy reads may be missing.
            try #expect(
                stage.ask(table, records: [Array(#"{"owner":"ann"}"#.utf8)], users: .named("ann")).visible == [[0]])
        }

        @Test func aRowThatIsNone() throws {
            let (stage, table, records) = try PolicyStage.notes("create policy p on notes using (id > 0 or id is null)")
            let broken = Array(#"{"id":"three"}"#.utf8)
            let answer = try stage.ask(
                table, records: [broken, records[0], broken, records[1]], users: .named("ann", "bob"))
            #expect(answer.visible == [[1, 3], [1, 3]])
            #expect(answer.problems.count == 1)
        }

        @Test func aNulInAJSONColumn() throws {
            let (stage, table, _) = try PolicyStage.notes(
                "alter table notes add j json; create policy p on notes using (j is not null)")
            let records = [#"{"j":{"a":"\u0000"}}"#, #"{"j":{"a":"b"}}"#, #"{"j":null}"#].map { Array($0.utf8) }
            try #expect(stage.ask(table, records: records, users: .named("ann")).visible == [[1]])
        }

        @Test func claimsThatPostgresCannotTake() throws {
            let (stage, table, records) = try PolicyStage.notes("create policy p on notes using (owner = 'ann')")
            let users = [
                PolicyUser(sub: "a\0'); drop table notes; --"), PolicyUser(sub: "ann"),
                PolicyUser(sub: "x", topic: "\0"),
                PolicyUser(sub: "it's \\ \"quoted\"", topic: "é'\\"),
            ]
            let answer = try stage.ask(table, records: records, users: users)
            #expect(answer.visible == [[], [0, 2], [], [0, 2]])
            #expect(answer.problems.count == 1)
        }

        @Test func settingsArriveAsTheyAre() throws {
            let name = #"it's \ "quoted" é \u0041 {one} $1"#
            let (stage, table, _) = try PolicyStage.notes(
                "create policy p on notes using (owner = sub() and owner = current_setting('realtime.topic'))")
            let record = #"{"owner":"it's \\ \"quoted\" é \\u0041 {one} $1"}"#
            let users = [PolicyUser(sub: name, topic: name), PolicyUser(sub: name, topic: name + " ")]
            try #expect(stage.ask(table, records: [Array(record.utf8)], users: users).visible == [[0], []])
        }
    }
}
