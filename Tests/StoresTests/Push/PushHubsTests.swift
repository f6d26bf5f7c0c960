import ChangeFeed
import Foundation
import Hub
import Stores
import Testing
import Wire

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

        private func decide(
            _ hub: PushStore, _ message: Name, _ state: AlertDraft.State, _ reason: AlertReason = .unheard
        ) throws {
            _ = try hub.decide([AlertVerdict(message: message, user: "ann", state: state, reason: reason)])
        }

        @Test(
            "Whoever has proof ends the alert, whoever does not know puts it off, and who has nothing against it does neither"
        )
        func whoHasTheUserKnowsBest() throws {
            let later = unixTime(in: 3600)
            let cases: [(first: AlertDraft.State, second: AlertDraft.State, state: String)] = [
                (.due, .dropped, "dropped"), (.due, .held(until: later), "held"), (.due, .due, "due"),
                (.held(until: 1), .dropped, "dropped"), (.held(until: 1), .due, "held"),
                (.held(until: 1), .held(until: later), "held"),
                (.dropped, .due, "dropped"), (.dropped, .held(until: later), "dropped"),
            ]
            func drafts(_ state: (Int) -> AlertDraft.State) -> [AlertDraft] {
                cases.indices.map { AlertDraft.sample("m\(10 + $0)", "ann", state($0)) }
            }
            _ = try a.enqueue(drafts { cases[$0].first })
            _ = try b.enqueue(drafts { cases[$0].second })
            #expect(try stage.alerts() == cases.indices.map { "m\(10 + $0) ann \(cases[$0].state)" })
        }

        @Test("An alert is due when every living hub where the user is online has nothing against it")
        func everyHubSays() throws {
            let c = try stage.hub("c")
            for node in ["a", "b", "c"] { try stage.online("ann", at: node) }
            try stage.online("ann", at: "dead")
            try stage.bury("dead")
            let first = try a.enqueue([.sample("m", "ann")])
            #expect(first.map(\.isElsewhere) == [true])
            _ = try b.enqueue([.sample("m", "ann", .held(until: unixTime(in: 60)), reason: .unproven)])
            _ = try c.enqueue([.sample("m", "ann")])
            #expect(try stage.alerts() == ["m ann held"])
            _ = try a.enqueue([.sample("m", "ann")])
            try decide(a, "m", .due)
            #expect(try stage.alerts() == ["m ann held"], "hub b has not said what became of it there")
            try decide(b, "m", .due, .unproven)
            #expect(try stage.alerts() == ["m ann due"])
            #expect(
                try stage.lines("select array_to_string(said, ' ') || ' ' || reason from roost.alert") == [
                    "a c b unproven"
                ])
        }

        @Test("A hub where the user is not waits for the one where the user is")
        func waitsForTheHubOfTheUser() throws {
            try stage.online("ann", at: "b")
            _ = try a.enqueue([.sample("m", "ann"), .sample("n", "ann")])
            _ = try stage.hub("c").enqueue([.sample("m", "ann"), .sample("n", "ann")])
            #expect(try stage.alerts() == ["m ann elsewhere", "n ann elsewhere"])
            #expect(try a.waitingAlerts().count == 2)
            _ = try b.enqueue([.sample("m", "ann"), .sample("n", "ann", .dropped, reason: .shown)])
            #expect(try stage.alerts() == ["m ann due", "n ann dropped"])
        }

        @Test("A hub that says nothing is waited for until it counts as dead")
        func silentHub() throws {
            try stage.online("ann", at: "b")
            _ = try a.enqueue([.sample("m", "ann")])
            #expect(try a.takeDue(limit: 10).count == 0)
            let due = try #require(try a.nextDue())
            #expect(abs(due - unixTime(in: 30)) < 25_000)
            try wait()
            #expect(try a.takeDue(limit: 10).alerts.count == 1)
        }

        @Test("Whoever comes to another hub while an alert is held, and proves the message there, is not alerted")
        func provenAtAnotherHub() throws {
            _ = try b.enqueue([.sample("m", "ann", .held(until: unixTime(in: 60)), reason: .grace)])
            _ = try a.enqueue([.sample("m", "ann")])
            try decide(a, "m", .dropped, .shown)
            #expect(try stage.alerts() == ["m ann dropped"])
            try decide(b, "m", .due, .away)
            #expect(try stage.alerts() == ["m ann dropped"])
        }

        @Test("A hub that finds an alert held by another one looks whether the user comes to it")
        func heldElsewhere() throws {
            _ = try b.enqueue([.sample("m", "ann", .held(until: unixTime(in: 60)), reason: .grace)])
            #expect(try a.enqueue([.sample("m", "ann")]).map(\.isElsewhere) == [true])
            let later = try a.enqueue([.sample("m", "ann", .held(until: unixTime(in: 90)), reason: .grace)])
            #expect(later.map(\.isElsewhere) == [false], "it holds it itself, and for longer")
        }

        @Test("What a hub holds that ends is left to the others, and its users have time to come to them")
        func handedOver() throws {
            _ = try b.enqueue([.sample("m", "ann", .held(until: unixTime(in: 1)), reason: .grace)])
            _ = try a.enqueue([.sample("n", "ann", .held(until: unixTime(in: 60)), reason: .grace)])
            try b.handOver(within: 20_000)
            #expect(try stage.alerts() == ["m ann elsewhere", "n ann held"])
            #expect(try a.takeDue(limit: 10).count == 0)
            let due = try #require(try a.nextDue())
            #expect(abs(due - unixTime(in: 20)) < 15_000)
            try wait()
            #expect(try a.takeDue(limit: 10).alerts.map(\.message) == ["m"])
        }

        @Test("What was taken for a connection that ended is known by its phones")
        func unheardOf() throws {
            _ = try a.enqueue([.sample("m", "ann"), .sample("n", "ann")])
            let taken = try a.takeDue(limit: 10).alerts
            #expect(try a.unsettledAlerts().map(\.message).sorted() == ["m", "n"])
            #expect(try b.unsettledAlerts().isEmpty)
            let settlements = taken.map {
                AlertSettlement(message: $0.message, destination: $0.devices[0].destination, outcome: "delivered")
            }
            try a.settle([settlements[0]])
            #expect(
                try a.unsettledAlerts() == [
                    UnsettledAlert(message: settlements[1].message, destination: settlements[1].destination)
                ])
            try a.giveBack([settlements[1]])
            #expect(try a.unsettledAlerts().isEmpty)
            #expect(try b.takeDue(limit: 10).alerts.map(\.message) == [settlements[1].message])
        }

        @Test("Of several words on one alert the last counts")
        func lastWordCounts() throws {
            _ = try a.enqueue([.sample("m", "ann", .held(until: unixTime(in: 60)), reason: .grace)])
            let words: [AlertDraft.State] = [.held(until: unixTime(in: 60)), .held(until: unixTime(in: 90)), .due]
            _ = try a.decide(words.map { AlertVerdict(message: "m", user: "ann", state: $0, reason: .lost) })
            #expect(try stage.alerts() == ["m ann due"])
        }

        @Test func heldByADeadHub() throws {
            _ = try b.enqueue([.sample("m", "ann", .held(until: unixTime(in: -1)))])
            #expect(try b.takeDue(limit: 10).count == 0, "it has to decide")
            #expect(try a.nextDue() == nil)
            #expect(try a.takeDue(limit: 10).count == 0)
            try stage.bury("b")
            #expect(try a.takeDue(limit: 10).alerts.count == 1)
        }
    }
}
