import Administration
import ChangeFeed
import Foundation
import Hub
import Matching
import TestSupport
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// What is told of bindings that cannot be served, and of policies that fail for a while.
    @Suite struct PartlyServedTests {
        private static func binding(_ table: String, _ more: String = "") -> String {
            #"{"event":"*","schema":"public","table":"\#(table)"\#(more)}"#
        }

        private func complaints(_ stage: SubscriberStage, _ group: ChangeGroupID) -> [SubscriptionComplaint] {
            if case .partly(let complaints) = stage.outcome(group) { complaints } else { [] }
        }

        @Test func oneBadBindingSilencesNoOther() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(
                    Self.binding("marker"), Self.binding("nowhere"), Self.binding("marker", #","filter":"wrong=eq.1""#),
                    as: "ann")
                let told = complaints(stage, group)
                #expect(told.map(\.isError) == [true, true])
                #expect(told.first?.message.contains("public.nowhere: no such table") ?? false)
                try stage.settle(database)
                #expect(stage.shown("ann", group).count == 1)
                try database.run("create table nowhere (id int); grant select on nowhere to authenticated")
                try Watcher.watch("nowhere", conninfo: database.conninfo)
                try eventually("one complaint is left") { complaints(stage, group).count == 1 }
            }
        }

        @Test func whatIsNoTableIsNamedAndWhatToDo() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try database.run(
                """
                create view seen as select * from messages; create materialized view kept as select 1 as id;
                create sequence numbers; create table whole (id int) partition by range (id);
                create table "Part 1" partition of whole for values from (0) to (10) partition by range (id);
                create table part11 partition of "Part 1" for values from (0) to (5);
                """)
            let expected = [
                "seen": "it is a view, which has no changes of its own; subscribe to the table that its rows are "
                    + "written to.",
                "kept": "it is a materialized view,", "numbers": "it is a sequence,",
                "part11": "it is a partition of public.whole, whose changes are told as that table's; subscribe to "
                    + "public.whole, and run: roost watch public.whole",
                "Part 1": "it is a partition of public.whole,",
                "whole": "the table is not watched; run: roost watch public.whole",
            ]
            try SubscriberStage.with(database) { stage in
                for (name, sentence) in expected {
                    let group = try stage.join(Self.binding("marker"), Self.binding(name), as: "ann")
                    let told = complaints(stage, group).map(\.message)
                    #expect(told.map { $0.contains("public.\(name): \(sentence)") } == [true], "\(told)")
                }
                let group = try stage.join(
                    Self.binding("marker"), #"{"event":"*","schema":"pg_catalog","table":"pg_class"}"#, as: "ann")
                let told = complaints(stage, group).map(\.message)
                #expect(told.map { $0.hasSuffix("it is a system table, which cannot be watched.") } == [true])
                try Watcher.watch("whole", conninfo: database.conninfo)
                try database.run("grant select on whole to authenticated")
                let again = try stage.join(Self.binding("marker"), Self.binding("part11"), as: "bob")
                try eventually("the command is not named any more") {
                    complaints(stage, again).first?.message.hasSuffix("subscribe to public.whole.") == true
                }
            }
        }

        /// As a column of citext is, though the domain would refuse the empty text that the pattern is tried on.
        @Test func aDomainOverTextOfAnExtensionTakesPatterns() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            guard try database.hasExtension("citext") else { return }
            try database.run(
                """
                create extension citext; create domain address as citext not null check (value ~ '@');
                create table people (id int primary key, mail address); grant select on people to authenticated
                """)
            try Watcher.watch("people", conninfo: database.conninfo)
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(
                    Self.binding("people", #","filter":"mail=like.ann%""#), Self.binding("marker"), as: "ann")
                guard case .live = stage.outcome(group) else {
                    Issue.record("the subscription is not live: \(String(describing: stage.outcome(group)))")
                    return
                }
                try database.run("insert into people values (1, 'bob@x'), (2, 'Ann@x')")
                try stage.settle(database)
                let shown = stage.shown("ann", group).joined()
                #expect(shown.contains("Ann@x") && !shown.contains("bob@x"))
            }
        }

        @Test func aRenamedTableStopsNoOther() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(Self.binding("messages"), Self.binding("marker"), as: "ann")
                guard case .live = stage.outcome(group) else {
                    Issue.record("the subscription is not live")
                    return
                }
                try database.run("alter table messages rename to older; create table messages (id int)")
                try eventually("the complaint") {
                    complaints(stage, group).first?.message.contains("run: roost watch public.messages") ?? false
                }
                try stage.settle(database)
                #expect(stage.shown("ann", group).count == 1)
            }
        }

        @Test func disabledTriggersAndNewPartitionsAreTold() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try database.run(
                """
                create table parts (id int) partition by range (id);
                create table part1 partition of parts for values from (0) to (10);
                grant select on parts to authenticated;
                """)
            try Watcher.watch("parts", conninfo: database.conninfo)
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(Self.binding("parts"), Self.binding("marker"), as: "ann")
                try database.run("create table part2 partition of parts for values from (10) to (20)")
                try eventually("the partition is told of") {
                    complaints(stage, group).first.map { $0.message.contains("new partition") && !$0.isError } ?? false
                }
                try database.run("alter table marker disable trigger roost_update")
                try eventually("the trigger is told of") { complaints(stage, group).contains { $0.isError } }
                try Watcher.watch("marker", conninfo: database.conninfo)
                try Watcher.watch("parts", conninfo: database.conninfo)
                try eventually("all is well again") { if case .live = stage.outcome(group) { true } else { false } }
            }
        }

        /// Rows that a failing policy hid are shown when it works again, in order, with what came meanwhile behind them.
        @Test func rowsOfAFailingPolicyAreJudgedAgain() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(Self.binding("messages"), Self.binding("marker"), as: "ann", "eve")
                let other = try stage.join(Self.binding("marker"), as: "cat")
                try database.run("insert into messages values (1, 1, 'before')")
                try eventually("the first row") { stage.shown("ann", group).count == 1 }
                try database.run(
                    """
                    alter function me() rename to me_;
                    create function me() returns text language plpgsql as $$ begin raise exception 'broken'; end $$;
                    drop policy of_mine on messages;
                    create policy of_mine on messages for select to authenticated using (exists (
                        select from participants p where p.conversation = messages.conversation and p.member = me()));
                    """)
                for id in 2...20 { try database.run("insert into messages values (\(id), 1, 'x')") }
                try database.run("update messages set body = 'y' where id = 2; delete from messages where id = 3")
                try database.run("insert into marker values ('during')")
                try eventually("others hear of what came meanwhile") { !stage.shown("cat", other).isEmpty }
                #expect(stage.shown("ann", group).count == 1)
                try database.run(
                    "create or replace function me() returns text language plpgsql as $$ begin return me_(); end $$")
                try eventually("all of it") { stage.shown("ann", group).last?.contains("during") ?? false }
                let ids = stage.shown("ann", group).map { $0.contains("during") ? 0 : Self.id($0) }
                #expect(ids == Array(1...20) + [2, 3, 0])
                #expect(stage.shown("eve", group).allSatisfy { $0.contains("during") || $0.contains("DELETE") })
            }
        }

        /// What a failing policy hides is no reason to say that a member has caught up: it joins again until it works.
        @Test func aFailingPolicyEndsARecovery() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(Self.binding("messages"), Self.binding("marker"), as: "ann", "eve")
                try stage.settle(database)
                let cursor = try #require(stage.seen.last?.cursor)
                try database.run("insert into messages values (1, 1, 'missed'), (2, 1, 'missed')")
                try database.run(
                    """
                    alter function me() rename to me_;
                    create function me() returns text language plpgsql as $$ begin
                        if me_() = 'ann' then raise exception 'broken'; end if; return me_(); end $$;
                    drop policy of_mine on messages;
                    create policy of_mine on messages for select to authenticated using (exists (
                        select from participants p where p.conversation = messages.conversation and p.member = me()));
                    """)
                let failed = try stage.recovery(of: group, as: "ann", from: .cursor(cursor))
                #expect(failed.isUndecided && !failed.isUnavailable, "it is not the database that is away")
                #expect(failed.seam == nil && failed.changes.isEmpty && failed.faults == 0)
                // A policy that says no is none that fails.
                let eve = try stage.recovery(of: group, as: "eve", from: .cursor(cursor))
                #expect(eve.seam != nil && eve.changes.isEmpty)
                try database.run(
                    "create or replace function me() returns text language plpgsql as $$ begin return me_(); end $$")
                let told = try stage.recovery(of: group, as: "ann", from: .cursor(cursor))
                #expect(told.seam != nil && told.changes.map { Self.id($0.data) } == [1, 2])
            }
        }

        /// A change that a policy always fails on keeps nobody from catching up for good.
        @Test func patienceWithRecoveriesEnds() {
            let now = ContinuousClock.now
            var postponed = PostponedChanges()
            func ends(_ change: Int64, after seconds: Int) -> Bool {
                postponed.endsRecovery(change, of: 1, "a", at: now + .seconds(seconds))
            }
            #expect(ends(7, after: 0) && ends(7, after: 9))
            #expect(ends(8, after: 11), "another change has only begun to fail")
            #expect(!ends(7, after: 12) && !ends(8, after: 12))
            #expect(!postponed.isWorthWaiting(1, "a", at: now + .seconds(13)))
            let over = 12 + Int(PostponedChanges.resignation.components.seconds)
            #expect(ends(7, after: over) && ends(7, after: over + 1))
            // Nobody knows of what happened between two failures that are far apart.
            #expect(ends(7, after: 3 * over))
        }

        /// Nothing that waits is let past by one that is told, and what waits longest is hidden where it is too much.
        @Test func whatWaitsIsCountedAndBounded() {
            let now = ContinuousClock.now
            let group = ChangeGroupID(loop: 0, serial: 1)
            let ann = PostponedChanges.Member(group: group, claims: SubscriberStage.claims("ann"))
            let eve = PostponedChanges.Member(group: group, claims: SubscriberStage.claims("eve"))
            var postponed = PostponedChanges()
            for id in 1...2 { postponed.addChange(Self.change(Int64(id)), cursor: "", for: [ann], at: now) }
            postponed.updateMembers([[], [ann]])
            #expect(postponed.isBehind(ann), "the second waits still")
            for id in 3...10_001 { postponed.addChange(Self.change(Int64(id)), cursor: "", for: [eve], at: now) }
            #expect(postponed.isBehind(ann) && postponed.isBehind(eve))
            postponed.addChange(Self.change(10_002), cursor: "", for: [eve], at: now)
            #expect(!postponed.isBehind(ann) && postponed.isBehind(eve))
        }

        @Test func whatRecoveriesMissedIsBounded() {
            let now = ContinuousClock.now
            var postponed = PostponedChanges()
            func ends(_ change: Int64, after seconds: Int) -> Bool {
                postponed.endsRecovery(change, of: 1, "a", at: now + .seconds(seconds))
            }
            for id in 1...10_000 { #expect(ends(Int64(id), after: 0)) }
            #expect(ends(10_001, after: 1))
            #expect(ends(1, after: 11), "since when it fails was forgotten")
        }

        /// A policy that fails on a row for ever hides that row, and not what comes behind it.
        @Test func aPolicyThatNeverWorksSilencesNobodyForGood() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(Self.binding("messages"), Self.binding("marker"), as: "ann")
                try database.run(
                    """
                    create function broken() returns boolean language plpgsql as $$ begin raise 'broken'; end $$;
                    drop policy of_mine on messages;
                    create policy of_mine on messages for select to authenticated using (broken());
                    """)
                let began = ContinuousClock.now
                try database.run("insert into messages values (1, 1, 'hidden'); insert into marker values ('behind')")
                try eventually("what came behind it", within: .seconds(60)) { !stage.shown("ann", group).isEmpty }
                #expect(ContinuousClock.now - began > PostponedChanges.patience - .seconds(1))
                try database.run("insert into messages values (2, 1, 'hidden'); insert into marker values ('second')")
                let resigned = Elapsed()
                try eventually("what comes then", within: .seconds(60)) { stage.shown("ann", group).count > 1 }
                #expect(resigned.isAtMost(PostponedChanges.patience), "nobody waits again: \(resigned.time)")
                #expect(stage.shown("ann", group).allSatisfy { !$0.contains("hidden") })
            }
        }

        /// An error about values that passes hides nothing: what it lies in may be what the policy reads.
        @Test func aPolicyThatDividesByZeroForAWhile() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(Self.binding("messages"), Self.binding("marker"), as: "ann")
                try database.run(
                    """
                    create function divisor() returns int language plpgsql stable as $$ begin return 0; end $$;
                    drop policy of_mine on messages;
                    create policy of_mine on messages for select to authenticated using (1 / divisor() = 1);
                    """)
                for id in 1...3 { try database.run("insert into messages values (\(id), 1, 'x')") }
                try eventually("they wait") { !stage.withheldAt.isEmpty }
                try database.run(
                    "create or replace function divisor() returns int language plpgsql as $$ begin return 1; end $$")
                try stage.settle(database)
                try eventually("all of it") { stage.shown("ann", group).count >= 4 }
                #expect(stage.shown("ann", group).prefix(3).map(Self.id) == [1, 2, 3])
            }
        }

        /// An application loads its data at that word, so that no older version may come behind it.
        @Test func aLossIsToldBehindWhatWaitsForAPolicy() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(Self.binding("messages"), as: "ann")
                let others = try stage.join(Self.binding("marker"), as: "ann")
                try database.run(
                    """
                    create function divisor() returns int language plpgsql stable as $$ begin return 0; end $$;
                    drop policy of_mine on messages;
                    create policy of_mine on messages for select to authenticated using (1 / divisor() = 1);
                    insert into messages values (1, 1, 'before');
                    """)
                try eventually("it waits") { !stage.withheldAt.isEmpty }
                try database.run("insert into roost.change (relid, op) values ('messages'::regclass, 'L')")
                try database.run("insert into marker values ('behind')")
                try eventually("what came behind the loss") { !stage.shown("ann", others).isEmpty }
                #expect(stage.losses.isEmpty)
                try database.run(
                    "create or replace function divisor() returns int language plpgsql as $$ begin return 1; end $$")
                try eventually("the word") { !stage.losses.isEmpty }
                #expect(stage.losses.map(\.group) == [group] && stage.losses.map(\.behind) == [1])
                #expect(stage.shown("ann", group).map(Self.id) == [1])
            }
        }

        /// Its readers are shown the next one before the patience with it is over, and nobody resigns.
        @Test func oneRowThatAPolicyCannotReadHoldsUpNobody() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(Self.binding("messages"), as: "ann")
                try database.run(
                    """
                    drop policy of_mine on messages;
                    create policy of_mine on messages for select to authenticated using (body::int > 0);
                    """)
                for round in 0..<3 {
                    let elapsed = Elapsed()
                    try database.run("insert into messages values (\(round * 2), 1, 'x')")
                    try database.run("insert into messages values (\(round * 2 + 1), 1, '1')")
                    try eventually("the next row", within: .seconds(60)) {
                        stage.shown("ann", group).count == round + 1
                    }
                    #expect(elapsed.isAtMost(PostponedChanges.patience), "\(elapsed.time)")
                }
                #expect(stage.shown("ann", group).map(Self.id) == [1, 3, 5])
            }
        }

        /// A user whose claims no policy can read costs no other user anything.
        @Test func whereErrorsAreAboutValuesOneReaderIsResigned() {
            let now = ContinuousClock.now
            let (ann, eve) = (SubscriberStage.claims("ann"), SubscriberStage.claims("eve"))
            var postponed = PostponedChanges()
            let ends = [0, 11].map { postponed.endsRecovery(7, of: 1, "a", ann, at: now + .seconds($0)) }
            #expect(ends == [true, false])
            let later = now + .seconds(12)
            #expect(!postponed.isWorthWaiting(1, "a", ann, at: later))
            #expect(postponed.isWorthWaiting(1, "a", eve, at: later) && postponed.isWorthWaiting(1, "a", at: later))
            postponed.resignPolicies(1, "a", at: later)
            #expect(!postponed.isWorthWaiting(1, "a", eve, at: later + .seconds(1)))
        }

        private static func change(_ id: Int64) -> RowChange {
            RowChange(
                id: id, table: Table(oid: 1, schema: "public", name: "t", columns: [], hasRowSecurity: true),
                operation: .insert, commitTimestamp: "", record: nil, oldRecord: nil, isReduced: false)
        }

        /// Once, before what came with it, and to all loops.
        @Test func whatWaitsForAPolicyIsAnnounced() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(
                    #"{"event":"*","schema":"public","table":"messages"}"#,
                    #"{"event":"*","schema":"public","table":"marker"}"#, as: "ann", "bob")
                try stage.settle(database)
                let before = stage.count
                try database.run(
                    """
                    alter function me() rename to me_;
                    create function me() returns text language plpgsql as $$ begin
                        if me_() = 'ann' then raise exception 'broken'; end if; return me_(); end $$;
                    drop policy of_mine on messages;
                    create policy of_mine on messages for select to authenticated using (exists (
                        select from participants p where p.conversation = messages.conversation and p.member = me()));
                    """)
                #expect(stage.withheldAt.isEmpty)
                for id in 1...3 { try database.run("insert into messages values (\(id), 1, 'x')") }
                try eventually("the others have it") { stage.withheldAt == [before] }
                try database.run(
                    "create or replace function me() returns text language plpgsql as $$ begin return me_(); end $$")
                try stage.settle(database)
                try eventually("all of it") { stage.shown("ann", group).filter { $0.contains(#""id":"#) }.count == 3 }
                #expect(stage.withheldAt == [before])
            }
        }

        private static func id(_ data: String) -> Int {
            guard let range = data.range(of: #""id":"#, options: .backwards) else { return -1 }
            return Int(data[range.upperBound...].prefix { $0.isNumber }) ?? -1
        }

        /// A row that a policy always fails on is hidden in the end, and its readers go on.
        @Test func patienceEnds() {
            let now = ContinuousClock.now
            let group = ChangeGroupID(loop: 0, serial: 1)
            let member = PostponedChanges.Member(group: group, claims: SubscriberStage.claims("ann"))
            let change = RowChange(
                id: 1, table: Table(oid: 1, schema: "public", name: "t", columns: [], hasRowSecurity: true),
                operation: .insert, commitTimestamp: "", record: nil, oldRecord: nil, isReduced: false)
            var postponed = PostponedChanges()
            #expect(postponed.isWorthWaiting(1, "a", at: now))
            postponed.addChange(change, cursor: "", for: [member], at: now)
            #expect(postponed.isBehind(member))
            let due = [0, 500, 600].map { postponed.isDue(at: now + .milliseconds($0)) }
            #expect(due == [false, true, false])
            postponed.updateMembers([[member]])
            #expect(postponed.isBehind(member))
            postponed.resignPolicies(1, "a", at: now)
            #expect(!postponed.isWorthWaiting(1, "a", at: now + .seconds(1)))
            #expect(postponed.isWorthWaiting(1, "b", at: now + .seconds(1)))
            #expect(postponed.isWorthWaiting(1, "a", at: now + PostponedChanges.resignation))
            postponed.updateMembers([[]])
            #expect(postponed.isEmpty && !postponed.isBehind(member))
        }
    }
}
