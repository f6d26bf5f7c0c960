import ChangeFeed
import Foundation
import Hub
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// Who hears of deleted rows: who could see them, as they were, with what was deleted with them.
    @Suite struct DeletionTests {
        private static let marker = #"{"event":"*","schema":"public","table":"marker"}"#

        private static func all(_ table: String, _ filter: String = "") -> String {
            #"{"event":"DELETE","schema":"public","table":"\#(table)","filter":"\#(filter)"}"#
        }

        /// The old records of what somebody was shown.
        private static func old(_ data: [String]) -> [String] {
            data.map { text in
                guard let start = text.range(of: #""old_record":"#), let end = text.range(of: #","errors""#) else {
                    return "unreadable: \(text)"
                }
                return String(text[start.upperBound..<end.lowerBound])
            }
        }

        /// Participants who know each other, and what hangs on them.
        ///
        /// - Parameter isDefiner: whether the policies ask by a function that reads past them, as most do.
        private static func prepared(isDefiner: Bool = true, scoped: Bool = true) throws -> Database {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            let definer = isDefiner ? "security definer" : ""
            return try database.prepared(
                """
                create table rooms (id int primary key, title text);
                create table typing (conversation int references rooms on delete cascade, member text,
                    primary key (conversation, member));
                create table receipts (message int, member text, primary key (message, member));
                insert into rooms select g, 'room ' || g from generate_series(1, 3) g;
                alter table participants add foreign key (conversation) references rooms on delete cascade;
                alter table messages add foreign key (conversation) references rooms on delete cascade;
                alter table receipts add foreign key (message) references messages on delete cascade;
                create function is_member(room int) returns boolean language sql stable \(definer) set search_path = ''
                    as $$ select exists (
                        select from public.participants p where p.conversation = room and p.member = public.me()) $$;
                drop policy own on participants;
                create policy together on participants for select to authenticated
                    using (\(isDefiner ? "is_member(conversation)" : "true"));
                drop policy of_mine on messages;
                create policy together on messages for select to authenticated using (is_member(conversation));
                alter table rooms enable row level security;
                create policy together on rooms for select to authenticated using (is_member(id));
                alter table typing enable row level security;
                create policy together on typing for select to authenticated using (is_member(conversation));
                alter table receipts enable row level security;
                create policy of_messages on receipts for select to authenticated using (exists (
                    select from messages m where m.id = message));
                grant select on rooms, typing, receipts to authenticated;
                insert into messages values (1, 1, 'a'), (2, 1, 'b'), (3, 2, 'c');
                insert into typing values (1, 'bob'), (2, 'ann');
                insert into receipts values (1, 'bob'), (2, 'ann'), (3, 'ann');
                """, watching: "rooms", "participants", "typing", "receipts")
        }

        @Test func strangersHearNothingOfTheEndOfARow() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try SubscriberStage.with(database) { stage in
                _ = try stage.join(Self.marker, as: "marker")
                let group = try stage.join(Self.all("messages"), as: "ann", "bob", "eve")
                let filtered = try stage.join(Self.all("messages", "conversation=eq.1"), as: "bob", "eve")
                let other = try stage.join(Self.all("messages", "conversation=eq.2"), as: "bob")
                try database.run(
                    "insert into messages values (1, 1, 'a'), (2, 2, 'b'); delete from messages where id = 1; delete from messages"
                )
                try stage.settle(database)
                #expect(Self.old(stage.shown("ann", group)) == [#"{"id":1}"#, #"{"id":2}"#])
                #expect(Self.old(stage.shown("bob", group)) == [#"{"id":1}"#])
                #expect(stage.shown("eve", group).isEmpty)
                #expect(Self.old(stage.shown("bob", filtered)) == [#"{"id":1}"#])
                #expect(stage.shown("eve", filtered).isEmpty)
                #expect(stage.shown("bob", other).isEmpty)
            }
        }

        /// A conversation goes, and its members with it: they hear of all that they could see, live and when they come back.
        @Test(arguments: [true, false]) func whoWasDeletedWithARowHearsOfIt(isDefiner: Bool) throws {
            let database = try Self.prepared(isDefiner: isDefiner)
            let tables = ["rooms", "participants", "typing", "receipts", "messages"]
            let expected = [
                "rooms": [#"{"id":1}"#],
                "participants": [#"{"conversation":1,"member":"ann"}"#, #"{"conversation":1,"member":"bob"}"#],
                "typing": [#"{"conversation":1,"member":"bob"}"#],
                "receipts": [#"{"message":1,"member":"bob"}"#, #"{"message":2,"member":"ann"}"#],
                "messages": [#"{"id":1}"#, #"{"id":2}"#],
            ]
            try SubscriberStage.with(database, oldestMark: { 0 }) { stage in
                let marker = try stage.join(Self.marker, as: "marker")
                var groups: [String: ChangeGroupID] = [:]
                for table in tables { groups[table] = try stage.join(Self.all(table), as: "ann", "bob", "eve") }
                try stage.settle(database)
                let before = try #require(stage.seen.last { $0.group == marker }?.cursor)
                try database.run("delete from rooms where id = 1")
                try stage.settle(database)
                for (table, group) in groups {
                    for subject in ["ann", "bob"] {
                        #expect(
                            Self.old(stage.shown(subject, group)).sorted() == expected[table],
                            "\(subject) on \(table)")
                        let missed = try stage.recovery(of: group, as: subject, from: .cursor(before))
                        #expect(
                            Self.old(missed.changes.map(\.data)).sorted() == expected[table],
                            "\(subject) on \(table), who comes back")
                    }
                    let isOpen = table == "participants" && !isDefiner
                    #expect(stage.shown("eve", group).isEmpty || isOpen, "\(table)")
                    let missed = try stage.recovery(of: group, as: "eve", from: .cursor(before))
                    #expect(missed.changes.isEmpty || isOpen, "\(table)")
                }
                let left =
                    "select relname from pg_class where relname like 'roost_revived%' or relname = 'participants' and relhassubclass"
                #expect(try database.rows(left) == [])
            }
        }

        /// The members that went with one transaction open nothing of another.
        @Test func whoLeftBeforeHearsNothingThatIsDeletedLater() throws {
            let database = try Self.prepared()
            try SubscriberStage.with(database) { stage in
                _ = try stage.join(Self.marker, as: "marker")
                let members = try stage.join(Self.all("participants"), as: "ann", "bob", "eve")
                let messages = try stage.join(Self.all("messages"), as: "ann", "bob", "eve")
                for statement in [
                    "delete from participants where member = 'bob'", "delete from messages where id = 1",
                    "delete from rooms where id = 1",
                ] {
                    try database.run(statement)
                    // Who is removed is told nothing of what a window brings that is read after that.
                    try stage.settle(database)
                }
                let left = #"{"conversation":1,"member":"bob"}"#
                #expect(Self.old(stage.shown("bob", members)) == [left])
                #expect(
                    Self.old(stage.shown("ann", members)).sorted() == [#"{"conversation":1,"member":"ann"}"#, left])
                #expect(stage.shown("bob", messages).isEmpty)
                #expect(Self.old(stage.shown("ann", messages)).sorted() == [#"{"id":1}"#, #"{"id":2}"#])
                #expect(stage.shown("eve", members).isEmpty && stage.shown("eve", messages).isEmpty)
            }
        }

        /// A table that is being vacuumed, or altered: nobody waits for it. Who is a member still hears all the same.
        @Test func aLockOnTheMembersHoldsUpNobody() throws {
            let database = try Self.prepared()
            try SubscriberStage.with(database) { stage in
                _ = try stage.join(Self.marker, as: "marker")
                let members = try stage.join(Self.all("participants"), as: "ann", "bob")
                let session = try database.session()
                try session.runScript("begin; lock table participants in share update exclusive mode")
                try database.run("delete from participants where member = 'bob'")
                try stage.settle(database)
                #expect(Self.old(stage.shown("ann", members)) == [#"{"conversation":1,"member":"bob"}"#])
                #expect(stage.shown("bob", members).isEmpty)
                try session.runScript("rollback")
                // Nothing is put back for a moment after that.
                try eventually("bob hears that he left") {
                    try database.run("insert into participants values (1, 'bob')")
                    try database.run("delete from participants where member = 'bob'")
                    try stage.settle(database)
                    return !stage.shown("bob", members).isEmpty
                }
            }
        }
    }
}
