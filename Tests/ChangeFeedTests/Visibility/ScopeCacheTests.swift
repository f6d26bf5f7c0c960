import Administration
import ChangeFeed
import Foundation
import Hub
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// Answers that are kept by a scope, and what makes them go.
    @Suite struct ScopeCacheTests {
        private static let all = #"{"event":"*","schema":"public","table":"messages"}"#
        private static let marker = #"{"event":"*","schema":"public","table":"marker"}"#

        /// A chat whose messages are scoped, and a body that runs with the feed on it.
        private func withScope(
            members: String = "participants", before: String = "",
            _ body: (SubscriberStage, Database, ChangeGroupID) throws -> Void
        ) throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            if !before.isEmpty { try database.run(before) }
            try database.run(
                "insert into roost.scope values ('messages', 'conversation', array['\(members)']::regclass[])")
            try Watcher.watch(members, conninfo: database.conninfo)
            try SubscriberStage.with(database) { stage in
                _ = try stage.join(Self.marker, as: "marker")
                try body(stage, database, try stage.join(Self.all, as: "ann", "bob", "eve"))
            }
        }

        private func ids(_ stage: SubscriberStage, _ subject: String, _ group: ChangeGroupID) -> [Int] {
            stage.shown(subject, group).compactMap { data in
                data.firstMatch(of: /"record":\{"id":(\d+)/).flatMap { Int($0.1) }
            }
        }

        @Test func whatNobodyAsksForGoes() {
            var cache = ScopeCache()
            let start = ContinuousClock.now
            for value in 0..<100 { _ = cache.findAnswers(1, [UInt8(value)], at: start) }
            _ = cache.findAnswers(1, [1], at: start + .milliseconds(900))
            #expect(cache.count == 100)
            _ = cache.findAnswers(1, [200], at: start + .milliseconds(1100))
            #expect(cache.count == 2, "the one that was asked for, and the new one")
        }

        @Test(arguments: [
            (#"{"a":1,"b":23}"#, #"{"a":12,"b":3}"#), (#"{"a":"x,","b":"y"}"#, #"{"a":"x","b":",y"}"#),
            (#"{"a":null,"b":1}"#, #"{"a":1,"b":null}"#),
        ]) func rowsThatDifferInAColumnAreKeptApart(one: String, other: String) {
            let scope = Scope(columns: ["a", "b"], members: [])
            #expect(scope.value(of: Array(one.utf8)) != scope.value(of: Array(other.utf8)))
            #expect(scope.value(of: Array(#"{"a":1}"#.utf8)) == nil, "a row that lacks a column has none")
            #expect(Scope(columns: [], members: []).value(of: Array(one.utf8)) == [])
        }

        @Test func answersAreTheSame() throws {
            try withScope { stage, database, group in
                for n in 1...20 {
                    try database.run(
                        "insert into messages values (\(n), 1, 'x'), (\(n + 100), 2, 'x'), (\(n + 200), 3, 'x')")
                }
                try stage.settle(database)
                #expect(ids(stage, "ann", group) == (1...20).flatMap { [$0, $0 + 100] })
                #expect(ids(stage, "bob", group) == Array(1...20))
                #expect(ids(stage, "eve", group) == [])
            }
        }

        /// How policies may ask for members: so that a change concerns everybody, or a user and a conversation; then through a
        /// function, and so that it concerns a conversation or a user.
        private static let shapes = [
            "select 1", "alter table participants disable row level security",
            """
            create function mine() returns setof int language plpgsql stable security definer set search_path = '' as
                $$ begin return query select p.conversation from public.participants p where p.member = public.me(); end $$;
            alter policy of_mine on messages using (conversation in (select mine()));
            """,
            """
            alter table participants disable row level security;
            alter policy of_mine on messages using (exists (
                select from participants p where p.conversation = messages.conversation and p.member || '' = me()));
            """,
            """
            alter table participants disable row level security;
            alter policy of_mine on messages using (exists (
                select from participants p where p.conversation = messages.conversation + 0 and p.member = me()));
            """,
        ]

        /// Each change of membership counts from the next commit on, whatever was answered before. The commits follow
        /// each other as fast as they can, so that many are in one window, and every answer was asked for just before.
        @Test(arguments: shapes) func membershipCountsFromTheNextCommitOn(policy: String) throws {
            let rounds = 20
            try withScope(before: policy) { stage, database, group in
                let session = try database.session()
                try session.runScript(
                    "insert into participants select 1, 'out' || n from generate_series(1, \(rounds)) n")
                for n in 1...rounds {
                    try stage.admit("out\(n)", to: group)
                    try stage.admit("in\(n)", to: group)
                }
                var number = 0
                func post() throws {
                    number += 1
                    try session.runScript("insert into messages values (\(number), 1, 'x')")
                }
                var removedAfter: [Int] = []
                var addedAfter: [Int] = []
                for round in 1...rounds {
                    try post()
                    if round % 5 == 0 { try stage.settle(database) }
                    try session.runScript("delete from participants where member = 'out\(round)'")
                    removedAfter.append(number)
                    try post()
                    try session.runScript("insert into participants values (1, 'in\(round)')")
                    addedAfter.append(number)
                    try post()
                }
                try stage.settle(database)
                #expect(ids(stage, "bob", group) == Array(1...number))
                for round in 1...rounds {
                    let out = ids(stage, "out\(round)", group)
                    #expect(out.allSatisfy { $0 <= removedAfter[round - 1] }, "out\(round) received \(out.suffix(3))")
                    let into = Set(ids(stage, "in\(round)", group))
                    #expect(into.isSuperset(of: (addedAfter[round - 1] + 1)...number), "in\(round) missed some")
                }
                #expect(!ids(stage, "out\(rounds)", group).isEmpty)
            }
        }

        @Test func whoWasAddedMissesNothing() throws {
            try withScope { stage, database, group in
                try database.run("insert into messages values (1, 1, 'x')")
                try stage.settle(database)
                try database.run("insert into participants values (1, 'eve')")
                try database.run("insert into messages values (2, 1, 'x')")
                try stage.settle(database)
                #expect(ids(stage, "eve", group) == [2])
            }
        }

        @Test(arguments: shapes.prefix(2)) func truncateCounts(policy: String) throws {
            try withScope(before: policy) { stage, database, group in
                try database.run("insert into messages values (1, 1, 'x')")
                try stage.settle(database)
                try database.run("truncate participants")
                try database.run("insert into messages values (2, 1, 'x')")
                try stage.settle(database)
                #expect(ids(stage, "ann", group) == [1])
            }
        }

        /// A window with more changes than are looked at singly, and rows that move from one conversation to another.
        @Test(arguments: shapes) func manyMembersMoveAtOnce(policy: String) throws {
            try withScope(before: policy) { stage, database, group in
                try database.run("insert into participants select 9, 'm' || n from generate_series(1, 300) n")
                try database.run("insert into messages values (1, 1, 'x'), (2, 2, 'x')")
                try stage.settle(database)
                try database.run("update participants set conversation = 2 where member = 'bob'")
                try database.run("insert into messages values (3, 1, 'x'), (4, 2, 'x')")
                try stage.settle(database)
                #expect(ids(stage, "bob", group) == [1, 4])
                try database.run(
                    "begin; update participants set conversation = conversation + 1 where member like 'm%'; "
                        + "delete from participants where member = 'ann'; update participants set member = 'eve' "
                        + "where member = 'bob'; insert into messages values (5, 1, 'x'), (6, 2, 'x'); commit")
                try stage.settle(database)
                #expect(ids(stage, "ann", group) == [1, 2, 3, 4])
                #expect(ids(stage, "bob", group) == [1, 4])
                #expect(ids(stage, "eve", group) == [6])
            }
        }

        /// Whoever may write a row of a members table writes any value into it: one that is nested deeper than the hub reads stops
        /// nobody's changes, and counts like any other.
        @Test(arguments: shapes.prefix(2)) func aValueThatIsNestedTooDeepStopsNobody(policy: String) throws {
            try withScope(before: policy + "; alter table participants add note jsonb") { stage, database, group in
                let nested = String(repeating: "[", count: 1000) + String(repeating: "]", count: 1000)
                try database.run("insert into messages values (1, 1, 'x')")
                try stage.settle(database)
                try database.run("insert into participants values (1, 'eve', '\(nested)')")
                try database.run("insert into messages values (2, 1, 'x')")
                try stage.settle(database)
                #expect(ids(stage, "eve", group) == [2])
                #expect(ids(stage, "ann", group) == [1, 2])
            }
        }

        /// A scope that says too little is no way in: where policies read another column, or another table, be it in a
        /// function, rows are judged one by one.
        @Test(arguments: [
            "alter policy of_mine on messages using (not hidden and exists (select from participants p "
                + "where p.conversation = messages.conversation and p.member = me()))",
            """
            create table bans (member text);
            create function is_free() returns boolean language plpgsql security definer stable as
                $$ begin return not exists (select from bans where member = me()); end $$;
            alter policy of_mine on messages using (is_free() and exists (select from participants p
                where p.conversation = messages.conversation and p.member = me()));
            """,
        ]) func aWrongScopeIsNotBelieved(policy: String) throws {
            try withScope(before: policy) { stage, database, group in
                let isBan = policy.contains("bans")
                try database.run("insert into messages values (1, 1, 'x')")
                try stage.settle(database)
                if isBan { try database.run("insert into bans values ('bob')") }
                try database.run("insert into messages values (2, 1, 'hidden', true)")
                try stage.settle(database)
                #expect(ids(stage, "ann", group) == (isBan ? [1, 2] : [1]))
                #expect(ids(stage, "bob", group) == [1])
            }
        }

        /// Policies that change forget the answers.
        @Test func policiesChange() throws {
            try withScope { stage, database, group in
                try database.run("insert into messages values (1, 1, 'x')")
                try stage.settle(database)
                try database.run("drop policy of_mine on messages")
                usleep(1_000_000)
                try database.run("insert into messages values (2, 1, 'x')")
                try stage.settle(database)
                #expect(ids(stage, "ann", group) == [1])
            }
        }
    }
}
