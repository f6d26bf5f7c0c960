import ChangeFeed
import Hub
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// What was read to decide: an answer may be kept only while all of that stays the same.
    @Suite struct PolicyReadsTests {
        private static let tables = """
            create table members (room int, who text); insert into members values (1, 'ann'), (2, 'bob');
            create table hidden (who text); insert into hidden values ('ann');
            create view viewed as select * from hidden;
            create table parted (room int, who text) partition by list (room);
            create table parted1 partition of parted for values in (1);
            create table parted2 partition of parted default;
            create materialized view kept as select * from members;
            create function secretly() returns boolean language sql stable security definer as
                'select exists (select from hidden where who = sub())';
            create function branching() returns boolean language plpgsql stable security definer as $$
                begin
                    if sub() = 'bob' then return exists (select from hidden); end if;
                    return exists (select from members where who = sub());
                end $$;
            create table t (id int, room int); insert into t values (1, 1), (2, 2);
            grant select on members, viewed, parted, kept, t to policy_user; alter table t enable row level security;
            """

        @Test(arguments: [
            ("true", []), ("room in (select m.room from members m)", ["members"]), ("secretly()", ["hidden"]),
            ("exists (select from viewed)", ["hidden"]), ("exists (select from kept)", ["kept"]),
            ("exists (select from parted p where p.room = t.room)", ["parted"]),
            ("exists (select from parted1)", ["parted"]), ("branching()", ["members", "hidden"]),
            ("room = 1 and secretly()", ["hidden"]), ("sub() = 'ann' or exists (select from members)", ["members"]),
            ("exists (select from pg_class)", []),
        ])
        func tablesRead(condition: String, expected: [String]) throws {
            let stage = try PolicyStage(
                Self.tables + "grant select on parted1 to policy_user; create policy p on t using (\(condition))")
            let table = try stage.table("t")
            let records = try stage.records(of: table)
            for records in [records, [records[0]]] {
                let answer = try stage.ask(table, records: records, users: .named("ann", "bob"), wantsTablesRead: true)
                #expect(answer.problems == [])
                try #expect(answer.tablesRead == Set(expected.map { try stage.table($0).oid }))
                try #expect(stage.ask(table, records: records, users: .named("ann", "bob")).tablesRead == nil)
            }
        }

        @Test func onlyWhatASubjectsTurnRead() throws {
            let stage = try PolicyStage(Self.tables + "create policy p on t using (branching())")
            let table = try stage.table("t")
            let answer = try stage.ask(
                table, records: stage.records(of: table), users: .named("ann"), wantsTablesRead: true)
            try #expect(answer.tablesRead == [stage.table("members").oid])
        }

        @Test func whatIsDecidedWithoutReading() throws {
            let stage = try PolicyStage(Self.tables)
            let table = try stage.table("t")
            func ask() throws -> PolicyAnswer {
                try stage.ask(table, records: stage.records(of: table), users: .named("ann"), wantsTablesRead: true)
            }
            try #expect(ask().tablesRead == [])
            try stage.changed("alter table t disable row level security")
            try #expect(ask().tablesRead == [])
        }
    }
}
