import ChangeFeed
import Hub
import Postgres
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// What a user may write, held against real INSERTs that are rolled back.
    @Suite struct PolicyInsertTests {
        private func check(_ script: String, role: String = "policy_user", decided: [Bool]) throws {
            let stage = try PolicyStage(
                """
                create table messages (id int, topic text, extension text, private boolean default true);
                grant insert on messages to policy_user; alter table messages enable row level security;
                """ + script)
            let table = try stage.table("messages")
            let records = (1...3).map {
                Array(#"{"id":\#($0),"topic":"room \#($0)","extension":"broadcast","private":true}"#.utf8)
            }
            let user = PolicyUser(sub: "ann", topic: "room 2")
            let answer = try stage.ask(table, .insert, role: role, records: records, users: [user])
            #expect(records.indices.map { answer.visible[0].contains($0) } == decided)
            for (index, record) in records.enumerated() {
                try #expect(inserts(record, on: stage, role: role, user) == decided[index])
            }
        }

        private func inserts(_ record: [UInt8], on stage: PolicyStage, role: String, _ user: PolicyUser) throws -> Bool
        {
            try stage.session.runScript("begin")
            defer { stage.rollBack() }
            try stage.assume(role, user)
            do {
                _ = try stage.session.queryRows(
                    "insert into messages select * from json_populate_record(null::messages, $1)",
                    [String(decoding: record, as: UTF8.self)])
                return true
            } catch let error as PostgresError where error.sqlState == "42501" {
                return false
            }
        }

        @Test func theCheckOfInsertCounts() throws {
            try check(
                "create policy p on messages for insert with check (topic = current_setting('realtime.topic'))",
                decided: [false, true, false])
        }

        @Test func theConditionOfSelectDoesNot() throws {
            try check("create policy p on messages for select using (true)", decided: [false, false, false])
        }

        @Test func forAllTheConditionServesWhereThereIsNoCheck() throws {
            try check("create policy p on messages using (id < 3)", decided: [true, true, false])
            try check("create policy p on messages using (id < 3) with check (id > 1)", decided: [false, true, true])
        }

        @Test func nullIsFalse() throws {
            try check(
                "create policy p on messages with check (case id when 1 then true when 2 then null else false end)",
                decided: [true, false, false])
        }

        @Test func restrictiveOnes() throws {
            try check(
                """
                create policy a on messages for insert with check (true);
                create policy b on messages as restrictive for insert with check (id <> 1);
                create policy c on messages as restrictive using (id <> 3);
                """, decided: [false, true, false])
        }

        @Test func aCheckMayReadTheTable() throws {
            try check(
                """
                insert into messages values (1, 'room 1', 'x', true), (7, 'room 3', 'x', true);
                grant select on messages to policy_user; create policy s on messages for select using (id > 5);
                create policy p on messages for insert with check (
                    exists (select from messages m where m.topic = messages.topic))
                """, decided: [false, false, true])
        }

        @Test func thePrivilegeCounts() throws {
            let script = "create policy p on messages with check (true); revoke insert on messages from policy_user;"
            try check(script, decided: [false, false, false])
            try check(
                "grant insert on messages to policy_other; create policy p on messages with check (true)",
                role: "policy_other", decided: [true, true, true])
        }

        @Test func thePrivilegeOfAColumnIsOne() throws {
            let stage = try PolicyStage(
                """
                create table messages (id int, topic text); grant insert (topic) on messages to policy_user;
                alter table messages enable row level security; create policy p on messages with check (true)
                """)
            let table = try stage.table("messages")
            let records = [Array(#"{"topic":"x"}"#.utf8)]
            try #expect(stage.ask(table, .insert, records: records, users: .named("ann")).visible == [[0]])
            let denied = try stage.ask(table, .insert, role: "policy_other", records: records, users: .named("ann"))
            #expect(denied.visible == [[]] && denied.isDenied)
            #expect(
                denied.problems == [
                    #"The role "policy_other" may not insert into public.messages; if it should, "#
                        + #"run: grant insert on "public"."messages" to "policy_other""#
                ])
        }

        @Test func withoutRowSecurityThePrivilegeDecides() throws {
            try check("alter table messages disable row level security", decided: [true, true, true])
            try check(
                "alter table messages disable row level security", role: "policy_other", decided: [false, false, false])
        }
    }
}
