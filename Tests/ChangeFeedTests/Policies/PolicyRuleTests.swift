import ChangeFeed
import Hub
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// Whom row level security applies to, and which policies count.
    @Suite struct PolicyRuleTests {
        /// Four rows, of ann, bob, cas and nobody.
        private static let notes = """
            create table notes (id int primary key, owner text, open boolean);
            insert into notes values (1, 'ann', true), (2, 'bob', false), (3, 'cas', true), (4, null, null);
            grant select, insert on notes to policy_user, policy_other;
            """

        private func visible(_ script: String, role: String = "policy_user", to name: String = "ann") throws -> [Int] {
            let stage = try PolicyStage(Self.notes + script)
            let table = try stage.table("notes")
            let records = try stage.records(of: table)
            let found = try stage.ask(table, role: role, records: records, users: .named(name)).visible[0]
            // The test's own expectation is held against Postgres, too.
            try #expect(stage.selected(table, role: role, user: PolicyUser(sub: name), among: records) == found)
            return found
        }

        @Test func withoutRowSecurityAllIsVisible() throws {
            try #expect(visible("create policy p on notes using (false)") == [0, 1, 2, 3])
        }

        @Test func withoutPolicyNothingIs() throws {
            try #expect(visible("alter table notes enable row level security") == [])
        }

        @Test func nullIsFalse() throws {
            try #expect(
                visible("alter table notes enable row level security; create policy p on notes using (open)") == [0, 2])
        }

        @Test func permissiveOnesAdd() throws {
            try #expect(
                visible(
                    """
                    alter table notes enable row level security;
                    create policy a on notes using (owner = sub());
                    create policy b on notes for select using (id = 4);
                    create policy c on notes for insert with check (true);
                    create policy d on notes for update using (true);
                    create policy e on notes for delete using (true);
                    """) == [0, 3])
        }

        @Test func restrictiveOnesTakeAway() throws {
            let script = """
                alter table notes enable row level security;
                create policy a on notes using (true);
                create policy b on notes as restrictive for select using (id < 4);
                create policy c on notes as restrictive using (open);
                """
            try #expect(visible(script) == [0, 2])
            try #expect(visible(script + "drop policy a on notes") == [])
        }

        @Test func policiesAreForRoles() throws {
            let script = """
                alter table notes enable row level security;
                create policy a on notes to policy_other using (id = 1);
                create policy b on notes to policy_group using (id = 2);
                create policy c on notes to policy_user, policy_other using (id = 3);
                create policy d on notes as restrictive to policy_other using (id <> 3);
                """
            try #expect(visible(script) == [1, 2])
            try #expect(visible(script, role: "policy_other") == [0])
        }

        @Test(arguments: [
            ("policy_owner", [0, 1, 2, 3]), ("policy_beyond", [0, 1, 2, 3]), ("policy_root", [0, 1, 2, 3]),
            ("policy_user", []),
        ])
        func rolesBeyondPolicies(role: String, expected: [Int]) throws {
            let script = """
                alter table notes owner to policy_owner; alter table notes enable row level security;
                grant select on notes to policy_beyond;
                """
            try #expect(visible(script, role: role) == expected)
            let forced = script + "alter table notes force row level security"
            try #expect(visible(forced, role: role) == (role == "policy_owner" ? [] : expected))
        }

        @Test func ownersPrivilegesAreInherited() throws {
            let script = "alter table notes owner to policy_group; alter table notes enable row level security;"
            try #expect(visible(script) == [0, 1, 2, 3])
            try #expect(visible(script + "alter table notes force row level security") == [])
        }

        @Test func beyondPoliciesIsSaid() throws {
            let stage = try PolicyStage(Self.notes)
            let answer = try stage.ask(stage.table("notes"), records: [Array("{}".utf8)], users: .named("ann"))
            #expect(answer.isUnrestricted && answer.visible == [[0]] && answer.columnsRead == [])
        }

        @Test func columnsRead() throws {
            let stage = try PolicyStage(
                Self.notes + """
                    create table shares (note int);
                    alter table notes enable row level security;
                    create policy a on notes using (
                        owner = sub() and exists (select from shares s where s.note = notes.id));
                    """)
            let table = try stage.table("notes")
            let answer = try stage.ask(table, records: stage.records(of: table), users: .named("ann"))
            #expect(answer.columnsRead == ["owner", "id"])
            try stage.changed("create policy b on notes using (notes is not null)")
            try #expect(stage.ask(table, records: stage.records(of: table), users: .named("ann")).columnsRead == nil)
        }

        @Test func everySettingOfAToken() throws {
            let stage = try PolicyStage(
                Self.notes + """
                    alter table notes enable row level security;
                    create policy p on notes using (
                        current_setting('request.jwt.claims')::jsonb ->> 'sub' = owner
                        and current_setting('request.jwt.claim.sub') = owner
                        and current_setting('request.jwt.claim.role') = 'policy_user' and current_user = 'policy_user'
                        and current_setting('request.headers') = '{}' and current_setting('realtime.topic') = 'room');
                    """)
            let users = [
                PolicyUser(sub: "ann", topic: "room"), PolicyUser(sub: "bob"), PolicyUser(sub: "cas", topic: "room"),
            ]
            try #expect(stage.visible("notes", users: users) == [[0], [], [2]])
        }

        @Test func nothingIsLeftForTheNextSubject() throws {
            // A function that remembers who asked, as some do for speed, must not remember for another.
            let stage = try PolicyStage(
                Self.notes + """
                    create function me() returns text language plpgsql stable as $$
                    begin
                        if coalesce(current_setting('my.name', true), '') = '' then
                            perform set_config('my.name', sub(), false);
                        end if;
                        return current_setting('my.name');
                    end $$;
                    alter table notes enable row level security;
                    create policy p on notes using (owner = me());
                    """)
            for _ in 0..<2 {
                try #expect(stage.visible("notes", users: .named("ann", "bob", "ann", "cas")) == [[0], [1], [0], [2]])
            }
        }

        @Test func versionsMatterNotRows() throws {
            let stage = try PolicyStage(
                Self.notes
                    + "alter table notes enable row level security; create policy p on notes using (owner = sub());")
            let table = try stage.table("notes")
            let old = try stage.records(of: table)
            try stage.session.runScript("update notes set owner = 'ann'")
            try #expect(stage.ask(table, records: old, users: .named("ann", "bob")).visible == [[0], [1]])
        }

        @Test func manyQuestionsAtOnce() throws {
            let stage = try PolicyStage(
                Self.notes + """
                    alter table notes enable row level security; create policy p on notes using (owner = sub());
                    create table other (like notes); insert into other select * from notes;
                    alter table other enable row level security;
                    create policy p on other to policy_other using (owner <> sub());
                    grant select on other to policy_other;
                    """)
            let (notes, other) = try (stage.table("notes"), stage.table("other"))
            let records = try stage.records(of: notes)
            func subject(_ name: String, _ rows: [Int]) -> PolicyQuestion.Subject {
                PolicyQuestion.Subject(claims: PolicyUser(sub: name).claims("x"), rows: rows)
            }
            let answers = try stage.ask([
                PolicyQuestion(
                    table: notes, command: .select, role: "policy_user", rows: records,
                    subjects: [subject("ann", [0, 1]), subject("bob", []), subject("bob", [1]), subject("cas", [0])]),
                PolicyQuestion(table: notes, command: .select, role: "policy_user", rows: [], subjects: []),
                PolicyQuestion(
                    table: other, command: .select, role: "policy_other", rows: records,
                    subjects: [subject("ann", [0, 1, 2, 3]), subject("bob", [3])]),
                PolicyQuestion(
                    table: other, command: .select, role: "policy_user", rows: records,
                    subjects: [subject("ann", [0])]),
            ])
            #expect(answers.map(\.visible) == [[[0], [], [1], []], [], [[1, 2], []], [[]]])
        }
    }
}
