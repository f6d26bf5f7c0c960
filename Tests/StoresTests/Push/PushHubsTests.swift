import ChangeFeed
import Foundation
import Hub
import Stores
import Testing

@testable import PostgresFixtures

extension StoreTests {
    /// Alerts to users of whom several hubs know something else.
    @Suite struct PushHubsTests {
        let stage: PushStage
        let a: PushStore
        let b: PushStore

        init() throws {
            stage = try PushStage.bare()
            a = try stage.hub("a")
            b = try stage.hub("b")
            _ = try a.register(.sample(1), .alert, by: .sample("ann"))
        }

        /// As if 30 seconds went by.
        private func wait() throws {
            try stage.database.run("update roost.alert set due_at = due_at - interval '31 seconds'")
        }

        @Test func onlineElsewhere() throws {
            try stage.online("ann", at: "b")
            try stage.online("bob", at: "a")
            try stage.online("cat", at: "dead")
            try stage.bury("dead")
            #expect(try a.onlineElsewhere(["ann", "bob", "cat", "dan\u{0}"]) == ["ann"])
            #expect(try b.onlineElsewhere(["ann", "bob", "cat"]) == ["bob"])
            try stage.bury("b")
            #expect(try a.onlineElsewhere(["ann"]).isEmpty)
        }

        @Test func whoHasTheUserKnowsBest() throws {
            let later = unixTime(in: 3600)
            let cases: [(first: AlertDraft.State, second: AlertDraft.State, state: String)] = [
                (.elsewhere, .dropped, "dropped"), (.elsewhere, .held(until: later), "held"),
                (.elsewhere, .due, "due"), (.due, .dropped, "dropped"), (.due, .held(until: later), "held"),
                (.due, .elsewhere, "due"), (.held(until: 1), .dropped, "dropped"), (.held(until: 1), .due, "held"),
                (.held(until: 1), .elsewhere, "held"), (.dropped, .due, "dropped"),
                (.dropped, .held(until: later), "dropped"),
            ]
            func drafts(_ state: (Int) -> AlertDraft.State) -> [AlertDraft] {
                cases.indices.map { AlertDraft.sample("m\(10 + $0)", "ann", state($0)) }
            }
            _ = try a.enqueue(drafts { cases[$0].first })
            _ = try b.enqueue(drafts { cases[$0].second })
            #expect(try stage.alerts() == cases.indices.map { "m\(10 + $0) ann \(cases[$0].state)" })
        }

        /// Hub c has not heard yet that the user is at b.
        @Test func awayIsNoNewsWhereTheUserIsOnline() throws {
            try stage.online("ann", at: "b")
            _ = try a.enqueue([.sample("m", "ann", .elsewhere)])
            _ = try stage.hub("c").enqueue([.sample("m", "ann", .due)])
            #expect(try stage.alerts() == ["m ann elsewhere"])
            _ = try b.enqueue([.sample("m", "ann", .due)])
            #expect(try stage.alerts() == ["m ann due"], "the hub itself says that the user is gone")
        }

        @Test func elsewhereFallsDueWhereThatHubIsDead() throws {
            try stage.online("ann", at: "b")
            _ = try a.enqueue([.sample("m", "ann", .elsewhere)])
            #expect(try a.takeDue(limit: 10).count == 0)
            let due = try #require(try a.nextDue())
            #expect(abs(due - unixTime(in: 30)) < 25_000)
            try stage.bury("b")
            try wait()
            #expect(try a.takeDue(limit: 10).alerts.count == 1)
        }

        @Test func whoIsStillOnlineThereIsNotAlerted() throws {
            try stage.online("ann", at: "b")
            _ = try a.enqueue([.sample("m", "ann", .elsewhere), .sample("n", "ann", .held(until: unixTime(in: 1)))])
            try wait()
            let taken = try a.takeDue(limit: 10)
            #expect(taken.alerts.isEmpty && taken.dropped == 2)
            #expect(try stage.alerts() == ["m ann dropped", "n ann dropped"])
        }

        @Test func heldByADeadHub() throws {
            _ = try b.enqueue([.sample("m", "ann", .held(until: unixTime(in: -1)))])
            #expect(try a.nextDue() == nil)
            #expect(try a.takeDue(limit: 10).count == 0)
            try stage.bury("b")
            #expect(try a.takeDue(limit: 10).alerts.count == 1)
        }

        @Test func whoComesBackAtAnotherHubIsNotAlerted() throws {
            _ = try b.enqueue([.sample("m", "ann", .held(until: unixTime(in: 60))), .sample("n", "ann", .due)])
            #expect(try a.release(["ann"]) == 2)
            try wait()
            #expect(try b.takeDue(limit: 10).count == 0)
        }
    }
}
