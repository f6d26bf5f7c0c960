import ChangeFeed
import Foundation
import Hub
import Stores
import Testing
import Wire

@testable import PostgresFixtures

extension StoreTests {
    /// What is read is not alerted, and icons follow.
    @Suite struct PushReadingTests {
        private let stage: PushStage
        private let store: PushStore

        init() throws {
            stage = try PushStage.bare()
            store = try stage.hub()
        }

        private func put(_ message: Name, _ user: Name = "ann", written: Name?, place: Int64, in room: Name = "c")
            throws
        {
            _ = try store.enqueue([
                AlertDraft(
                    message: message, user: user, conversation: room, variables: Array("{}".utf8),
                    expiresAt: unixTime(in: 3600), state: .due, place: place, written: written)
            ])
        }

        private func read(_ position: Name, place: Int64 = 100, user: Name = "ann") throws -> Int {
            try store.withdraw([ReadPosition(user: user, conversation: "c", position: position, place: place)])
        }

        @Test(
            "What lies before the position is withdrawn, and nothing behind it: times, numbers and ids",
            arguments: [
                ["2026-01-01T10:00:00.1+00:00", "2026-01-01T12:00:00.2+02:00", "2026-01-01T10:00:00.3+00:00"],
                ["9", "10", "11"], ["0190a", "0190b", "0190c"],
            ])
        func positions(written: [String]) throws {
            for (place, text) in written.enumerated() {
                try put(Name("m\(place)"), written: Name(text), place: Int64(place))
            }
            try put("other", written: Name(written[0]), place: 1, in: "d")
            try put("m0", "bob", written: Name(written[0]), place: 1)
            #expect(try read(Name(written[1])) == 2)
            #expect(
                try stage.alerts() == ["m0 ann dropped", "m0 bob due", "m1 ann dropped", "m2 ann due", "other ann due"])
            #expect(try stage.lines("select distinct reason from roost.alert where state = 'dropped'") == ["read"])
        }

        @Test("A message that was committed after the position moved is not read, and one of unknown place is")
        func order() throws {
            try put("before", written: nil, place: 99)
            try put("after", written: nil, place: 101)
            try put("early", written: "1", place: 101)
            #expect(try read("5") == 1)
            #expect(try stage.alerts() == ["after ann due", "before ann dropped", "early ann due"])
        }

        @Test("What is taken is sent, and a position that is none keeps no other")
        func takenAndBroken() throws {
            _ = try store.register(.sample(1), .alert, by: .sample("ann"))
            try put("m", written: "2026-01-01T10:00:00Z", place: 1)
            #expect(try store.takeDue(limit: 10).alerts.count == 1)
            try put("n", written: "2026-01-01T10:00:00Z", place: 2)
            try put("n", "bob", written: "2026-01-01T10:00:00Z", place: 2)
            let positions = ["2026-99-99T10:00:00Z", "2026-01-01T11:00:00Z"].map {
                ReadPosition(
                    user: $0.hasPrefix("2026-99") ? "bob" : "ann", conversation: "c", position: Name($0), place: 9)
            }
            #expect(try store.withdraw(positions) == 1)
            #expect(try stage.alerts() == ["m ann taken", "n ann dropped", "n bob due"])
        }

        @Test("One hub tells phones a new number, and not sooner than it may")
        func claims() throws {
            let other = try stage.hub("b")
            _ = try store.register(.sample(1), .alert, by: .sample("ann", session: "s1"))
            _ = try store.register(.sample(2), .alert, by: .sample("ann", session: "s2"))
            let first = try store.claim(["ann": 3], pause: 60_000)
            #expect(first.phones.map(\.badge) == [3, 3])
            #expect(Set(first.phones.compactMap(\.session)) == ["s1", "s2"])
            #expect(first.later.isEmpty)
            let again = try other.claim(["ann": 3], pause: 60_000)
            #expect(again.phones.isEmpty && again.later.isEmpty, "it is told")
            let soon = try other.claim(["ann": 2], pause: 60_000)
            #expect(soon.phones.isEmpty)
            #expect(soon.later["ann"].map { abs($0 - unixTime(in: 60)) < 30_000 } ?? false)
            #expect(try other.claim(["ann": 2], pause: 0).phones.count == 2)
            #expect(try other.claim(["ann": 2], pause: 0).phones.isEmpty)
            try store.forgetBadges(of: ["ann", "nobody"])
            #expect(try other.claim(["ann": 2], pause: 0).phones.count == 2, "an alert said another number since")
        }

        @Test("The statement is asked about users with phones, and one that fails says nothing")
        func statement() throws {
            _ = try store.register(.sample(1), .alert, by: .sample("ann"))
            let statement = "select u as user_id, 10 / length(u) as badge from unnest($1::text[]) u;"
            #expect(try store.badges(of: ["ann", "bob", "\u{0}"], BadgeStatement(statement)) == ["ann": 3])
            #expect(try store.badges(of: ["bob"], BadgeStatement(statement)).isEmpty)
            #expect(
                try store.badges(of: ["ann"], BadgeStatement("select 1 / 0 as user_id, 1 as badge, $1::text[]")).isEmpty
            )
            #expect(stage.notes.all.count == 1)
        }

        @Test("The sample chat's counts what is unread in conversations that are not muted")
        func sampleChat() throws {
            let stage = try PushStage.chat()
            let store = try stage.hub()
            _ = try store.register(.sample(1), .alert, by: .sample(Database.ann))
            try stage.database.run(
                """
                insert into messages (conversation_id, sender_id, body)
                select c::uuid, '\(Database.bob)', 'x' from unnest('{\(PushStage.room),\(PushStage.room),\(PushStage.direct)}'::text[]) c
                """)
            let statement = BadgeStatement(PushStore.badgeOfSampleChat)
            #expect(try store.badges(of: [Name(Database.ann)], statement) == [Name(Database.ann): 3])
            try stage.database.run(
                "update conversation_participants set muted = true where conversation_id = '\(PushStage.direct)'")
            #expect(try store.badges(of: [Name(Database.ann)], statement) == [Name(Database.ann): 2])
            try stage.database.run("update conversation_participants set last_read_at = now()")
            #expect(try store.badges(of: [Name(Database.ann)], statement) == [Name(Database.ann): 0])
        }
    }
}
