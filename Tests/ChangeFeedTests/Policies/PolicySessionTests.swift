import ChangeFeed
import Hub
import Matching
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// Policies that end the session that asks them, as an extension that crashes does, or a backend that is out of memory.
    @Suite struct PolicySessionTests {
        static let deadly = """
            create function end_session() returns boolean language plpgsql volatile security definer as
                $$ begin perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(60); return true; end $$;
            """

        @Test("whoever's policies end the session that asks them is hidden the rows, and the others are answered")
        func subjects() throws {
            let (stage, table, records) = try PolicyStage.notes(
                """
                \(Self.deadly) create policy p on notes using (
                    case when sub() like 'bad%' then end_session() else true end)
                """)
            let users: [PolicyUser] = .named("ann", "bad1", "bob", "bad2")
            let answer = try stage.ask(table, records: records, users: users)
            #expect(answer.visible == [[0, 1, 2], [], [0, 1, 2], []])
            #expect(answer.ending == [1, 3])
            #expect(answer.undecided.isEmpty)
            #expect(answer.problems.contains { $0.contains("end the session of Postgres") && $0.contains("2 user(s)") })
            // They are not asked for again for a while, and the session of the others stays.
            let again = try stage.ask(table, records: records, users: users)
            #expect(again.visible == [[0, 1, 2], [], [0, 1, 2], []] && again.ending == [1, 3])
            #expect(again.columnsRead != nil)
            #expect(try stage.ask(table, records: records, users: .named("bad1")).visible == [[]])
        }

        @Test("questions about other tables are answered, whatever one of them costs")
        func questions() throws {
            let (stage, table, records) = try PolicyStage.notes(
                """
                \(Self.deadly) create policy p on notes using (end_session());
                create table fine (id int); alter table fine enable row level security; insert into fine values (1);
                create policy p on fine using (true); grant select on fine to policy_user
                """)
            let fine = try stage.table("fine")
            let question = { (table: Table, records: [[UInt8]]) in
                PolicyQuestion(
                    table: table, command: .select, role: "policy_user", rows: records,
                    subjects: [
                        .init(claims: PolicyUser(sub: "ann").claims("policy_user"), rows: Array(records.indices))
                    ])
            }
            let fineRecords = try stage.records(of: fine)
            for _ in 0..<2 {
                let answers = try stage.ask([question(table, records), question(fine, fineRecords)])
                #expect(answers.map(\.visible) == [[[]], [[0]]])
                #expect(answers.map(\.ending) == [[0], []])
            }
        }

        @Test("a row that ends its session stops nobody's feed: whose policies do it is told, and the others go on")
        func feed() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try database.run(
                """
                \(Self.deadly) create policy deadly on messages as restrictive for select to authenticated
                using (case when body = 'poison' and me() = 'bob' then end_session() else true end)
                """)
            try SubscriberStage.with(database) { stage in
                let binding = #"{"event":"*","schema":"public","table":"messages"}"#
                let marker = #"{"event":"*","schema":"public","table":"marker"}"#
                let group = try stage.join(binding, marker, as: "ann", "bob")
                try database.run(
                    """
                    insert into messages values (1, 1, 'before'), (2, 1, 'poison'), (3, 1, 'after');
                    """)
                try stage.settle(database)
                try database.run("insert into messages values (4, 1, 'later')")
                try stage.settle(database)
                let shown = { (subject: String) in
                    stage.shown(subject, group).compactMap { data in
                        ["before", "poison", "after", "later"].first { data.contains($0) }
                    }
                }
                #expect(shown("ann") == ["before", "poison", "after", "later"])
                #expect(shown("bob") == [])
                try eventually("a word") { !stage.told.isEmpty }
                #expect(stage.told.map(\.subject) == ["bob"])
                #expect(stage.told.first?.message.contains("public.messages") == true)
                #expect(stage.statistics.connections == 1, "the feed's own session has nothing to do with it")
            }
        }

        @Test("whoever is shown nothing for now is told whenever he comes, and where what he missed ends the session")
        func returning() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            // Two tokens of one user.
            try database.run(
                """
                \(Self.deadly) create policy deadly on messages as restrictive for select to authenticated
                using (case when body = 'poison' and me() like 'bob%' then end_session() else true end);
                insert into participants values (1, 'bob2')
                """)
            try SubscriberStage.with(database, oldestMark: { 0 }) { stage in
                let binding = #"{"event":"*","schema":"public","table":"messages"}"#
                let marker = #"{"event":"*","schema":"public","table":"marker"}"#
                let group = try stage.join(binding, marker, as: "ann", "bob")
                try stage.settle(database)
                try eventually("a mark") { !stage.marks.isEmpty }
                let mark = try #require(stage.marks.first)
                try database.run("insert into messages values (1, 1, 'poison')")
                try stage.settle(database)
                #expect(stage.told.map(\.subject) == ["bob"])
                // He reloads: the same token, other bindings.
                let again = try stage.join(marker, binding, as: "ann", "bob")
                let without = try stage.join(marker, as: "bob")
                try stage.settle(database)
                #expect(stage.told.map(\.subject) == ["bob", "bob"], "not of \(again) and \(without) in all")
                // With a new one it is only tried again, here on what he missed.
                try stage.admit("bob2", to: group)
                let recovered = try stage.recovery(of: group, as: "bob2", from: .mark(mark))
                #expect(recovered.seam != nil && !recovered.changes.contains { $0.data.contains("poison") })
                #expect(stage.told.map(\.subject) == ["bob", "bob", "bob2"])
            }
        }

        @Test("changes that could not be recorded are told to those who hear their table, who are served as before")
        func losses() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(
                    #"{"event":"*","schema":"public","table":"messages"}"#,
                    #"{"event":"*","schema":"public","table":"marker"}"#, as: "ann")
                let other = try stage.join(#"{"event":"*","schema":"public","table":"marker"}"#, as: "ann")
                try database.run("insert into roost.change (relid, op) values ('messages'::regclass, 'L')")
                try stage.settle(database)
                try eventually("a word") { !stage.losses.isEmpty }
                try stage.settle(database)
                #expect(stage.losses.map(\.group) == [group], "and not \(other)")
                #expect(
                    stage.losses.first?.message
                        == "ChangesLost: Changes of public.messages could not be recorded; load the data again")
                #expect(stage.outcomes(of: group).count == 1)
                try database.run("insert into messages values (1, 1, 'after')")
                try stage.settle(database)
                #expect(stage.shown("ann", group).contains { $0.contains("after") })
            }
        }
    }

    /// When questions are asked apart.
    @Suite struct PolicyTrialTests {
        private func question(_ subjects: String...) -> PolicyQuestion {
            PolicyQuestion(
                table: Table(oid: 1, schema: "public", name: "t", columns: []), command: .select, role: "r", rows: [],
                subjects: subjects.map { .init(claims: SubscriberStage.claims($0), rows: []) })
        }

        @Test("one loss may have any reason; two in a row are apart, over sessions")
        func losses() {
            var trials = PolicyTrials()
            trials.lostTogether()
            #expect(!trials.isApart([question("ann")]))
            trials.recordAnswered()
            trials.lostTogether()
            #expect(!trials.isApart([question("ann")]))
            trials.lostTogether()
            #expect(trials.isApart([question("ann")]))
        }

        @Test("who is barred is not asked for until the time is over, whatever the other subjects are")
        func bars() {
            var trials = PolicyTrials()
            let now = ContinuousClock.now
            let first = trials.strikeSubject(1, of: question("ann", "bob"), at: now)
            #expect(!first)
            #expect(trials.barred(of: question("bob", "cat")).isEmpty, "once may have any reason")
            let second = trials.strikeSubject(1, of: question("ann", "bob"), at: now)
            #expect(second)
            #expect(trials.barred(of: question("bob", "cat")) == [0])
            trials.forgetOld(at: now + PolicyTrials.bar - .seconds(1))
            #expect(trials.barred(of: question("bob", "cat")) == [0])
            trials.forgetOld(at: now + PolicyTrials.bar + .seconds(1))
            #expect(trials.barred(of: question("bob", "cat")).isEmpty)
        }
    }
}
